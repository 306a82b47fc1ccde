"""Blocks of Python on pages that are no tutorials hold what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown_blocks import blocks

DOCS = Path(__file__).parents[2] / "docs"
# By whom the blocks of a page are run or read; those of tutorials by test_tutorials.
READERS = {
    "language.md": "lang/test_lang_rules.py",
    "python.md": "api/test_python.py",
    "reward.md": "house/test_doc_blocks.py",
    "sandbox.md": "house/test_doc_blocks.py",
    "tasks.md": "house/test_doc_blocks.py",
}


def python(name: str) -> list[str]:
    return [block.text for block in blocks(DOCS / name) if block.language == "python"]


def test_every_page_with_a_block_of_python_has_a_test_that_reads_it() -> None:
    pages = {page.name for page in DOCS.glob("*.md") if python(page.name)}
    assert pages == set(READERS)
    tests = Path(__file__).parents[1]
    for page, test in READERS.items():
        assert page in (tests / test).read_text(encoding="utf-8")


def test_the_task_of_the_page_is_one() -> None:
    import torch

    names: dict[str, object] = {}
    exec(python("tasks.md")[0].replace("1024", "16"), names)
    model, given = names["Model"], names["get_inputs"]
    assert callable(model) and callable(given)
    (x,) = given()
    assert torch.allclose(model()(x).sum(-1), torch.ones(16))


def test_the_box_of_the_page_compiles_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.cpp").write_text("int one() { return 1; }\n", encoding="utf-8")
    names: dict[str, object] = {"folder": tmp_path}
    (text,) = python("sandbox.md")
    exec(text, names)
    assert getattr(names["boxed"], "returncode", None) == 0
    assert (tmp_path / "a.o").is_file()
    for name in re.findall(r"boxed\.(\w+)", text):
        assert hasattr(names["boxed"], name)


def test_the_functions_of_the_reward_are_there() -> None:
    from npusmith.train import reward

    used = re.findall(r"\breward\.(\w+)", "".join(python("reward.md")))
    assert {"batch", "ask", "trl"} <= set(used)
    assert [name for name in used if not callable(getattr(reward, name))] == []
    assert callable(reward)
