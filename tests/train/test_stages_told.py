"""What stages are told, and the small model's tokenizer; nothing here needs the extra train."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from stages_corpus import programs, samples, write_corpus

from npusmith.errors import NpusmithError
from npusmith.lm import tokenizer as own
from npusmith.target.intrinsics import INTRINSICS
from npusmith.train.configuration import STAGES, read, shipped
from npusmith.train.corpus.sample import Kind, Split
from npusmith.train.data import drawn, read_split

TOLD = {"data": "cot", "out": "run"}
TEXTS = [text for _, text in programs()]


@pytest.fixture(scope="module")
def tokenizer() -> own.Tokenizer:
    return own.build(TEXTS, 1024)


@pytest.mark.parametrize("name", [name for name in shipped() if name.endswith(".toml")])
def test_every_shipped_file_is_a_stage(name: str) -> None:
    stage = name.removesuffix(".toml").split("-")[1]
    told = read(name, stage, TOLD)
    assert isinstance(told, STAGES[stage])
    assert told.batch % told.micro_batch == 0


def test_the_figures_of_large_models_are_the_published_ones() -> None:
    full, lora, pairs = (
        read(f"backbone-{name}.toml", name.split("-")[0], TOLD)
        for name in ("sft", "sft-lora", "dpo")
    )
    assert (full.learning_rate, lora.learning_rate, pairs.learning_rate) == (1.25e-6, 1.25e-5, 1e-6)
    assert (full.batch, full.warmup, full.weight_decay, full.clip) == (128, 0.01, 0.1, 1.0)
    assert (pairs.batch, pairs.warmup, pairs.steps) == (64, 0.1, 150)
    assert pairs.model_dump()["beta"] == 0.1
    assert lora.lora is not None and full.lora is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("learning_rate = 0", "learning_rate"),
        ("learning_rat = 1e-3\nlearning_rate = 1e-3", "learning_rat"),
        ("learning_rate = 1e-3\n[mix]\nprograms = 2", "mix"),
        ("learning_rate = ", "invalid value"),
        ('stage = "dpo"\nlearning_rate = 1e-3', "for dpo"),
        ("", "learning_rate"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "told.toml"
    path.write_text(text)
    with pytest.raises(NpusmithError, match="train-config") as caught:
        read(str(path), "sft", TOLD)
    assert words in caught.value.message.lower()


def test_a_file_that_is_not_there_names_those_that_ship() -> None:
    with pytest.raises(NpusmithError, match=r"small-sft\.toml"):
        read("smal-sft.toml", "sft", TOLD)


def test_a_mix_says_how_often_a_kind_is_seen() -> None:
    found = drawn(samples(), {Kind.CODE: 2.5, Kind.PREFERENCE: 0}, 3)
    kinds = Counter(sample.kind for sample in found)
    once = len(samples()) // 2
    assert 2 * once < kinds[Kind.CODE] < 3 * once and kinds[Kind.PREFERENCE] == 0
    assert found == drawn(samples(), {Kind.CODE: 2.5, Kind.PREFERENCE: 0}, 3)
    with pytest.raises(NpusmithError, match=r"train-config.*no sample is of kind edit"):
        drawn(samples(), {Kind.EDIT: 1}, 0)


def test_a_stage_reads_its_split_and_names_the_line_that_is_damaged(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    assert list(read_split(tmp_path)) == samples()
    assert list(read_split(tmp_path / "train.jsonl", Split.TEST)) == []
    lines = (tmp_path / "train.jsonl").read_bytes().splitlines(keepends=True)
    unverified = json.loads(lines[1]) | {"verified_by": ""}
    for line in (lines[1][:40] + b"\n", b"\xff\xfe\n", json.dumps(unverified).encode() + b"\n"):
        (tmp_path / "train.jsonl").write_bytes(lines[0] + line)
        with pytest.raises(NpusmithError, match=r"corpus-sample.*\n.*train\.jsonl:2"):
            list(read_split(tmp_path))


# ------------------------------------------------------------------------------------- the tokens


def test_words_operators_digits_and_newlines_are_one_token(tokenizer: own.Tokenizer) -> None:
    for word in (*own.WORDS, *own.OPERATORS, *"0123456789", "\n", "    "):
        assert len(tokenizer.encode(word)) == 1, word
    assert len(tokenizer.encode("\n        for i in range(10):")) == 12
    assert [tokenizer.decode([at]) for at in tokenizer.encode("float32x")][:2] != ["float32", "x"]


def test_names_of_operations_stay_spelled_out(tokenizer: own.Tokenizer) -> None:
    spelled = [name for name in INTRINSICS if len(name) > 6 and len(tokenizer.encode(name)) > 1]
    assert len(spelled) > 0.8 * len([name for name in INTRINSICS if len(name) > 6])


def test_every_text_comes_back_and_none_holds_a_special_token(tokenizer: own.Tokenizer) -> None:
    texts = [*TEXTS, "é\t\u2028中文\x00 __a1_b", own.END + own.PAD, "", " " * 7, "\r\n"]
    for text in texts:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert min(ids, default=9) >= len(own.SPECIAL)
    assert max(map(len, tokenizer.tokens)) < 40
    assert tokenizer.decode([0, 1, 2]) == ""
    assert "\ufffd" in tokenizer.decode(tokenizer.encode("é")[:1])


def test_the_same_texts_give_the_same_tokenizer_and_its_file_reads_back(
    tokenizer: own.Tokenizer, tmp_path: Path
) -> None:
    tokenizer.save(tmp_path)
    assert own.read(tmp_path).digest == tokenizer.digest == own.build(TEXTS, 1024).digest
    assert own.build(TEXTS[1:], 1024).digest != tokenizer.digest


def test_a_tokenizer_that_is_damaged_or_of_another_kind_is_refused(
    tokenizer: own.Tokenizer, tmp_path: Path
) -> None:
    with pytest.raises(NpusmithError, match="file-missing"):
        own.read(tmp_path)
    path = tokenizer.save(tmp_path)
    whole = path.read_text(encoding="utf-8")
    other = json.loads(whole)
    other["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "\\w+"
    gap = json.loads(whole)
    del gap["model"]["vocab"]["\u010a"]
    for text in (whole[:-50], "[]", "{}", json.dumps(other), json.dumps(gap), "[" * 100_000):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(NpusmithError, match="lm-tokenizer"):
            own.read(tmp_path)
