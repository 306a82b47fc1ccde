"""Code blocks and sentences of a Markdown page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; `reason` says why no test runs it, "" where one does."""

    language: str
    text: str
    reason: str
    line: int


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order; `line` counts from one."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            found["language"],
            found["text"],
            found["reason"] or "",
            text[: found.start("text")].count("\n") + 1,
        )
        for found in _BLOCK.finditer(text)
    ]


def indented(page: Path) -> list[Block]:
    """Lines that are indented code and begin with a command, one block each."""
    text = re.sub(
        r"^```.*?^```$", lambda found: "\n" * found[0].count("\n"),
        page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE,
    )  # fmt: skip
    found = re.finditer(r"^ {4}((?:npusmith|python|pip) .*)$", text, re.MULTILINE)
    return [
        Block("sh", item[1], "indented", text[: item.start()].count("\n") + 1) for item in found
    ]


def inline(page: Path) -> list[str]:
    """Commands of npusmith in backticks inside of a paragraph or a table."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    return [" ".join(item.split()) for item in re.findall(r"`(npusmith [^`]+)`", text)]


def commands(text: str) -> list[str]:
    """Lines of a shell block, joined where they end in a backslash, without here-documents."""
    plain = re.sub(r"(<<'(\w+)')\n.*?^\2$", r"\1", text, flags=re.DOTALL | re.MULTILINE)
    return [line.strip() for line in plain.replace("\\\n", " ").splitlines() if line.strip()]


def sentences(page: Path) -> Iterator[str]:
    """Sentences of the prose, without code blocks, tables, headings and pictures.

    What stands in backticks counts as one word.
    """
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-*] )|\n(?=\s*\d+\. )|\n(?=#)", text):
        if paragraph.lstrip().startswith(("#", "|", "![")):
            continue
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
        plain = " ".join(re.sub(r"`[^`]*`", "CODE", plain).split())
        yield from (
            part for part in re.split(r"(?<=[.!?])[*)]*\s+(?=[\W]*[A-Z0-9])|·", plain) if part
        )


def words(sentence: str) -> int:
    """How many words and numbers; a path or a hyphenated word is one."""
    return len(re.findall(r"[^\W_][\w'./:-]*", sentence))
