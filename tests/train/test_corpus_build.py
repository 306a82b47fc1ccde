"""Shards, resuming, and what is published of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from npusmith.errors import NpusmithError
from npusmith.train.corpus import build as building
from npusmith.train.corpus import documentation
from npusmith.train.corpus.build import Orders, build
from npusmith.train.corpus.decontaminate import Suites, forwards, read_suites
from npusmith.train.corpus.publish import publish, read_corpus
from npusmith.train.corpus.sample import Kind, Sample, Split, read_line
from npusmith.train.corpus.shards import Unit, read_samples, read_shards, write_shard

ORDERS = Orders(chip="910B2")
UNIT = Unit("modules", 3)


def sample(text: str = "a", **more: object) -> Sample:
    given = {
        "kind": Kind.CODE, "family": "pointwise", "split": Split.TRAIN, "prompt": f"write {text}",
        "completion": f"{text}\u2028{text}", "verified_by": "npusmith run", **more,
    }  # fmt: skip
    return Sample.model_validate(given)


def test_a_line_reads_back_as_the_sample_that_wrote_it() -> None:
    pair = sample(kind=Kind.PREFERENCE, completion="right", chosen="right", rejected="wrong")
    assert read_line(sample().line().encode()) == sample()
    assert read_line(pair.line().encode()) == pair


@pytest.mark.parametrize(
    "line",
    [
        sample().line().encode()[:-9],
        sample().line().replace("write a", "write b").encode(),
        b"\xff\xfe",
        b"[]",
        b"",
        b"[" * 5000,
        b'{"id": "x"}',
    ],
)
def test_a_line_that_was_cut_or_changed_is_no_sample(line: bytes) -> None:
    with pytest.raises(NpusmithError, match="corpus-sample"):
        read_line(line, "train.jsonl", 7)


def test_a_shard_that_was_cut_is_named(tmp_path: Path) -> None:
    write_shard(tmp_path, UNIT, [sample("a"), sample("b")], Counter(right=2), 1.5)
    assert read_shards(tmp_path)[UNIT].kinds == {"code": 2}
    assert [item.prompt for item in read_samples(tmp_path, UNIT)] == ["write a", "write b"]
    path = tmp_path / "shards" / UNIT.file
    whole = path.read_bytes()
    path.write_bytes(whole[:-4])
    with pytest.raises(NpusmithError, match="corpus-shard"):
        read_shards(tmp_path)
    path.write_bytes(whole.split(b"\n", 1)[1])
    with pytest.raises(NpusmithError, match="corpus-shard"):
        list(read_samples(tmp_path, UNIT))


def test_what_a_killed_process_left_is_no_shard(tmp_path: Path) -> None:
    write_shard(tmp_path, UNIT, [sample()], Counter(), 0)
    (tmp_path / "shards" / ".modules-000004.jsonl.77").write_text('{"id": "')
    assert list(read_shards(tmp_path)) == [UNIT]
    assert len(list((tmp_path / "shards").iterdir())) == 1


def test_a_build_goes_on_where_another_one_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for source in tuple(building._NUMBERS):
        if source != "documentation":
            monkeypatch.delitem(building._NUMBERS, source)
    first = build(ORDERS, tmp_path, 100, jobs=1)
    assert first.fresh == first.samples > 7000
    assert build(ORDERS, tmp_path, 100_000, jobs=1).fresh == 0
    with pytest.raises(NpusmithError, match="run-changed"):
        build(Orders(chip="910B3"), tmp_path, 100)


def test_answers_of_the_documentation_are_what_the_tables_say() -> None:
    found = list(documentation.samples())
    assert len({item.id for item in found}) == len(found)
    splits: dict[object, set[Split]] = {}
    for item in found:
        splits.setdefault((item.meta["table"], item.meta["row"]), set()).add(item.split)
    assert {len(item) for item in splits.values()} == {1}  # a row's questions are in one split
    cast = next(item for item in found if item.meta["row"] == "add")
    wrong = cast.model_copy(update={"completion": cast.completion[:-3] + "x"})
    assert documentation.is_true(cast)
    assert not documentation.is_true(wrong)


# --------------------------------------------------------------------------------- doubles, suites

BODY = "    def forward(self, {x}):\n        t = torch.exp({x}) * {n}\n        return t\n"
TASK = f"class Model:\n{BODY}"


def test_a_task_of_a_suite_is_found_under_other_names_and_numbers(tmp_path: Path) -> None:
    (tmp_path / "1_exp.py").write_text(TASK.format(x="x", n=2), encoding="utf-8")
    suites = read_suites([tmp_path])

    def held(text: str) -> str:
        return suites.holds(sample(prompt=f"Task\n```python\n{text}```\n"))

    assert held(TASK.format(x="data", n=7.5)) == "hash"
    assert held(TASK.format(x="x", n=2).replace("exp", "cos")) == ""
    assert held("def forward(a):\n    return a * torch.exp(a)\n") == "family"
    assert held("def forward(a):\n    return (\n") == ""
    (tmp_path / "empty").mkdir()
    with pytest.raises(NpusmithError, match="run-empty"):
        read_suites([tmp_path / "empty"])


def test_thirteen_words_in_a_row_are_too_many() -> None:
    body = "    a = torch.exp(x).sum(1) + torch.sin(y)\n"
    suites = Suites()
    for item in forwards(f"def forward(x, y):\n{body}    return a.cos()\n"):
        suites.add(item)
    text = f"def forward(p, q):\n    q = p.tanh()\n{body.replace('x', 'p')}    return a\n"
    assert suites.holds(sample(prompt=f"```python\n{text}```")) == "n-gram"


def test_what_is_published_holds_each_program_once(tmp_path: Path) -> None:
    one = {"program_hash": "p1", "meta": {"form": "tile"}}
    other = {"program_hash": "p1", "meta": {"form": "ascendc"}}
    samples = [
        sample("a", **one), sample("b", **one), sample("c", **other), sample("d"), sample("d"),
        sample("e", split=Split.TEST),
    ]  # fmt: skip
    write_shard(tmp_path, UNIT, samples, Counter(), 0)
    statistics, files = publish(tmp_path, [UNIT], Suites(), {"seed": "0"})
    prompts = [item.prompt for item in read_corpus(tmp_path, Split.TRAIN)]
    assert prompts == ["write a", "write c", "write d"]
    assert (statistics.doubled, len(statistics.programs)) == (2, 1)
    card = (tmp_path / "README.md").read_text()
    assert "4 samples, 1 programs" in card
    assert "path: validation.jsonl" not in card  # of an empty split `datasets` would know no types
    assert {path.name for path in files} >= {"train.jsonl", "test.jsonl", "README.md"}


def test_parquet_holds_the_same_rows(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_shard(tmp_path, UNIT, [sample("a", meta={"n": 1})], Counter(), 0)
    publish(tmp_path, [UNIT], Suites(), {})
    (row,) = parquet.read_table(tmp_path / "train.parquet").to_pylist()
    line = json.loads((tmp_path / "train.jsonl").read_text())
    assert row == {**line, "chosen": "", "rejected": "", "meta": '{"n": 1}'}
