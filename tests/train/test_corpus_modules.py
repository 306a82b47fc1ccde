"""Samples of one module: what each says is so, and what was changed in it is noticed."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from npusmith.lang import check_all, parse
from npusmith.target.chips import find_chip
from npusmith.train.corpus import modules_source
from npusmith.train.corpus.diagnostics import broken_programs
from npusmith.train.corpus.edits import in_half, other_chip, other_type, scheduled_edits
from npusmith.train.corpus.families import HELD, belongs, family_of, split_of, table_for
from npusmith.train.corpus.mutants import FAULTS, mutants
from npusmith.train.corpus.program_hash import program_hash
from npusmith.train.corpus.programs import ascend_c, code, other_schedules, scheduled
from npusmith.train.corpus.reasoning import holds, reasoning
from npusmith.train.corpus.sample import Kind, Sample, Split, read_line
from npusmith.train.corpus.subject import Subject, open_subject
from npusmith.train.modules.draw import Input, Line, Module, draw

CHIP = find_chip("910B2")
MODULE = Module(
    0, 0, ("pointwise",),
    (Input("a", (6, 40), "torch.randn({shape})"), Input("b", (6, 40), "torch.randn({shape})")),
    (), (Line(("v0",), "torch.exp(a)", "pointwise"), Line(("v1",), "v0 - b", "pointwise")),
    ("v1",), frozenset(),
)  # fmt: skip
PROGRAM = re.compile(r"```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def subject() -> Subject:
    return open_subject(MODULE, Split.TRAIN, CHIP)


@pytest.fixture(scope="module")
def broken(subject: Subject) -> tuple[list[Sample], Counter[str]]:
    outcomes: Counter[str] = Counter()
    return list(broken_programs(subject, outcomes)), outcomes


def programs(text: str) -> list[str]:
    return [found for found in PROGRAM.findall(text) if "@kernel" in found]


def test_code_holds_a_right_program_and_its_plan(subject: Subject) -> None:
    whole, plan = code(subject)
    (program,) = programs(whole.completion)
    assert subject.judge(program) == ("right", [])
    assert whole.completion.startswith(plan.completion)
    assert "torch.exp(a)" in whole.prompt
    assert read_line(whole.line().encode()) == whole
    assert subject.judge(program.replace("sub(", "add("))[0].startswith("wrong")


def test_other_schedules_are_other_programs_and_right(subject: Subject) -> None:
    others = other_schedules(subject)
    assert len({item.text for item in others} - {subject.first.text}) == len(others) > 0
    for sample in (*scheduled(subject, others), *scheduled_edits(subject, others)):
        assert subject.judge(programs(sample.completion)[-1]) == ("right", [])
        if sample.meta["form"] == "edit faster":
            slow, fast = sample.meta["us"]
            assert slow > fast


def test_every_number_of_a_reasoning_comes_out_again(subject: Subject) -> None:
    found = list(reasoning(subject, subject.first))
    assert [item.meta["form"].split()[1] for item in found] == ["ub", "cores", "traffic", "time"]
    for sample in found:
        head, end, answer = sample.completion.rpartition("Answer: ")
        wrong = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), answer, count=1)
        assert not holds(sample.model_copy(update={"completion": head + end + wrong}))
    total = re.search(r"^.* \+ .* = ", found[0].completion, re.MULTILINE)
    assert total is not None
    wrong = found[0].completion.replace(total[0], f"{total[0]}1", 1)
    assert not holds(found[0].model_copy(update={"completion": wrong}))


def test_the_fix_of_every_broken_program_is_the_right_program(
    subject: Subject, broken: tuple[list[Sample], Counter[str]]
) -> None:
    repairs = [item for item in broken[0] if item.kind is Kind.ERROR]
    assert {item.meta["form"] for item in repairs} >= {"error illegal"}
    for sample in repairs:
        lines = programs(sample.prompt)[-1].rstrip("\n").split("\n")
        fix = sample.completion.rpartition("Fix: ")[2]
        spot = re.fullmatch(r"(line|insert before line) (\d+)(?: becomes|:) `(.*)`", fix)
        assert spot is not None, fix
        at = int(spot[2]) - 1
        lines[at : at + (spot[1] == "line")] = [spot[3]]
        wanted = [line.strip() for line in subject.first.text.rstrip("\n").split("\n")]
        assert [line.strip() for line in lines] == wanted
        assert f"[{sample.meta['code']}]" in sample.prompt


def test_a_rejected_program_is_legal_and_wrong(
    subject: Subject, broken: tuple[list[Sample], Counter[str]]
) -> None:
    pairs = [item for item in broken[0] if item.kind is Kind.PREFERENCE]
    assert len(pairs) == broken[1]["mutant wrong"]
    swapped = subject.first.text.replace("sub(", "add(")
    for rejected in (*(programs(item.rejected)[0] for item in pairs), swapped):
        assert not check_all(parse(rejected), CHIP)
        assert subject.judge(rejected)[0].startswith("wrong")


def test_a_mutant_differs_in_one_line(subject: Subject) -> None:
    own = subject.first.text.split("\n")
    found = list(mutants(subject.first.text, Random(5), 60))
    assert len({item.text for item in found}) == len(found)
    assert len({item.fault for item in found}) > len(FAULTS) // 2
    for item in found:
        lines = item.text.split("\n")
        at = item.line - 1
        assert own[at] == item.before
        assert lines == [*own[:at], *([item.after] if item.after else []), *own[at + 1 :]]


def test_another_chip_and_another_type_are_judged_there(subject: Subject) -> None:
    for sample in other_chip(subject):
        assert subject.first.text not in programs(sample.completion)
    half = in_half(MODULE)
    assert half is not None
    assert "float16" in half.source()
    made = list(other_type(subject, CHIP))
    assert [item.meta["form"] for item in made] == ["edit type", "tile"]
    assert "input(float16)" in made[0].completion


def test_the_twin_agrees_before_ascend_c_is_a_sample(subject: Subject) -> None:
    said, found = ascend_c(subject)
    assert said == "twin agrees"
    assert "op_kernel/" in found[0].completion
    assert "op_host/" in found[0].completion
    assert "op_host/" not in found[1].completion


def test_a_hash_knows_no_names_and_no_sizes_of_tiles() -> None:
    text = '"""doc"""\nTILE = 4096\n\n@kernel\ndef k(x: input(float32), n: int):\n    pass\n'
    renamed = text.replace("TILE", "T").replace("k(x", "other(data").replace("doc", "docs")
    assert program_hash(renamed.replace("4096", "5000")) == program_hash(text)
    assert program_hash(text.replace("float32", "float16")) != program_hash(text)
    assert program_hash(text.replace("4096", "8192")) != program_hash(text)
    assert program_hash("def (") != program_hash("def k(")


def test_families_are_given_away_before_anything_is_drawn() -> None:
    hidden = {name for names in HELD.values() for name in names}
    assert not hidden & {row.family for row in table_for(Split.TRAIN)}
    for number in range(40):
        module = draw(3, number, table_for(Split.TRAIN))
        assert not hidden & set(family_of(module).split("+"))
        assert belongs(module, Split.TRAIN)
        assert not belongs(module, Split.TEST)
    counts = Counter(map(split_of, range(100)))
    assert counts == {Split.TRAIN: 85, Split.TEST: 10, Split.VALIDATION: 5}


def test_a_block_is_the_same_every_time_and_counts_what_it_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unfit = replace(MODULE, lines=(Line(("v1",), "a.reshape(7, 7)", "moves"),))
    drawn = {76: MODULE, 77: None, 78: unfit, 79: None}
    monkeypatch.setattr(modules_source, "_module", lambda seed, number, split: drawn[number])
    first, outcomes = modules_source.block(2, 19, CHIP, 0.0)
    again, _ = modules_source.block(2, 19, CHIP, 0.0)
    assert [item.id for item in first] == [item.id for item in again]
    assert {item.split for item in first} == {Split.VALIDATION}
    assert {item.kind for item in first} >= {Kind.CODE, Kind.REASONING, Kind.ERROR, Kind.EDIT}
    told = {name: n for name, n in outcomes.items() if name.startswith(("module", "not"))}
    assert told["module right"] == 1
    assert told["not of this split"] == 2
    assert sum(told.values()) == 4
