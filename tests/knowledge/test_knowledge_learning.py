"""Items from a failure and its fix: small, general, and replayed before they are believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.knowledge.audit import replay
from npusmith.knowledge.base import Base, open_knowledge
from npusmith.knowledge.edit import candidates
from npusmith.knowledge.exchange import read_seeds
from npusmith.knowledge.item import Item, State
from npusmith.knowledge.learn import best_template
from npusmith.knowledge.rewind import rewind
from npusmith.knowledge.tokens import DIRECT, TILE, words
from npusmith.knowledge.trial import WRONG, Bench, Case, Shapes
from npusmith.target.chips import find_chip

CHIP = find_chip("910B2")
KERNEL = """void Compute(int64_t n) {
    LocalTensor<float> x = inQueue.DeQue<float>();
    LocalTensor<float> y = outQueue.AllocTensor<float>();
    Muls(y, x, 2.0f, n);
    PipeBarrier<PIPE_V>();
    Add(y, y, x, n);
    outQueue.EnQue(y);
    inQueue.FreeTensor(x);
}
"""
OTHER = """void Step(int64_t count) {
    LocalTensor<half> a = left.DeQue<half>();
    LocalTensor<half> b = right.AllocTensor<half>();
    Exp(b, a, count);
    right.EnQue(b);
    left.FreeTensor(a);
}
"""
SEEDS = {item.name: item for item in read_seeds()}
PROGRAM = SEEDS["tile-load-once"].proofs[0].case


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    assert PROGRAM is not None
    return Bench(PROGRAM, CHIP, tmp_path_factory.mktemp("case"))


@pytest.mark.parametrize(
    ("fault", "by", "elsewhere"),
    [
        ("    inQueue.FreeTensor(x);\n", "", "    left.FreeTensor(a);\n"),
        ("    outQueue.EnQue(y);\n", "", "    right.EnQue(b);\n"),
    ],
)
def test_what_was_learnt_on_one_kernel_mends_another(fault: str, by: str, elsewhere: str) -> None:
    template = best_template(KERNEL.replace(fault, by), KERNEL, DIRECT)
    assert template is not None
    made = candidates(template, OTHER.replace(elsewhere, ""))
    assert words(OTHER, DIRECT) in [words(text, DIRECT) for text in made]


def test_a_name_that_nobody_declared_is_kept_and_its_arguments_are_not() -> None:
    template = best_template(KERNEL.replace("Muls(", "MulScalar("), KERNEL, DIRECT)
    assert template is not None
    assert template.edits[0].find.startswith("MulScalar($")
    assert candidates(template, "MulScalar(q, r[8], s, 64);") == ["Muls(q, r[8], s, 64);"]


def test_an_int_that_became_a_float_takes_any_int() -> None:
    template = best_template(KERNEL.replace("2.0f", "2"), KERNEL, DIRECT)
    assert template is not None
    assert candidates(template, "Muls(a, b, 7, n);") == ["Muls(a, b, 7.0f, n);"]


def test_two_kernels_without_much_in_common_teach_nothing() -> None:
    many = "".join(f"f{number}(a, b);\n" for number in range(900))
    assert best_template(many, KERNEL, DIRECT) is None
    assert best_template(KERNEL, KERNEL, DIRECT) is None


REPAIRS = [
    name
    for name, item in SEEDS.items()
    if name.startswith("tile-") and item.trigger.aim == "repair"
]
FEW = ["direct-hand-the-tensor-on", "direct-scalars-have-the-type-of-the-tensor"]


@pytest.mark.parametrize("name", [*REPAIRS, *FEW])
def test_a_seed_repairs_what_must_be_caught(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    item = SEEDS[name]
    folder = tmp_path_factory.getbasetemp() / "seeds"  # one project for each case
    found = [replay(item, proof, CHIP, folder) for proof in item.proofs]
    assert found and all(row.holds for row in found), found


def test_a_proof_that_does_not_hold_is_said_so(tmp_path: Path) -> None:
    item = SEEDS["tile-tail-of-the-last-tile"]
    other = SEEDS["tile-load-once"].template
    wrong = item.model_copy(update={"template": other})
    row = replay(wrong, item.proofs[0], CHIP, tmp_path)
    assert not row.holds and "none of 0" in row.why
    fine = item.proofs[0].model_copy(update={"before": item.proofs[0].case.program})
    assert "accepted as it is" in replay(item, fine, CHIP, tmp_path).why


def test_the_judge_tells_wrong_values_from_broken_rules(bench: Bench) -> None:
    good = bench.case.program
    assert bench.judge(TILE, good).accepted
    assert bench.judge(TILE, good.replace("1.0, n", "1.5, n")).codes == (WRONG,)
    assert bench.judge(TILE, good.replace("muls(", "mults(")).codes == ("lang-unknown-op",)
    assert bench.judge(TILE, "no program").rung == 0
    other = good.replace("output(float32)", "output(float16)")
    assert not bench.judge(TILE, other).accepted


def test_a_judge_that_was_killed_leaves_the_right_kernel_right(tmp_path: Path) -> None:
    assert PROGRAM is not None
    right = Bench(PROGRAM, CHIP, tmp_path).kernel
    (kernel,) = (tmp_path / "project" / "op_kernel").glob("*.cpp")
    kernel.write_text("what was being judged")
    assert Bench(PROGRAM, CHIP, tmp_path).kernel == right
    half = tmp_path / "half"
    (half / "project" / "op_host").mkdir(parents=True)  # killed while it was written
    assert Bench(PROGRAM, CHIP, half).kernel == right
    assert (half / "project" / "op_kernel" / kernel.name).read_text() == right


def test_a_removal_that_slows_a_kernel_becomes_an_item(bench: Bench, tmp_path: Path) -> None:
    with open_knowledge(tmp_path / "k.db", seeds=False) as base:
        found = {row.name: row for row in rewind(base, bench, TILE, bench.case.program)}
        assert found["large tiles"].slowdown > 1.05
        kept = base.item(found["large tiles"].item)
        assert kept.state is State.VERIFIED and kept.item.origin == "rewound"
        assert kept.item.trigger.bottleneck
        slow = kept.item.proofs[0].before
        assert any(bench.case.program == text for text in candidates(kept.item.template, slow))


def test_a_case_with_other_tensors_is_refused(tmp_path: Path) -> None:
    case = Case(
        name="odd", program=PROGRAM.program, small=(Shapes(inputs=((4,), (4,)), outputs=((4,),)),)
    )
    with pytest.raises(ValueError):
        Bench(case, CHIP, tmp_path).references  # noqa: B018


def test_every_seed_says_why_and_where_that_is_written() -> None:
    assert len(SEEDS) >= 35
    assert {item.route for item in SEEDS.values()} == {TILE, DIRECT}
    for item in SEEDS.values():
        assert item.rationale.constraint and item.rationale.source and item.proofs


def add_all(base: Base, items: list[Item]) -> None:
    for item in items:
        base.add(item, State.VERIFIED, "test")
