"""What of a corpus stands in a suite: `read_suites(folders).holds(sample)`.

A suite is a checkout that the user names; every Python file in it with a `forward` counts as a
task. A sample's task is compared by what its forward computes, with its own names and numbers taken
away: the same as a whole ("hash"), thirteen words in a row ("n-gram"), or the same operations, each
as often ("family").
"""

from __future__ import annotations

import ast
import hashlib
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from npusmith.errors import NpusmithError
from npusmith.train.corpus.sample import Sample

NGRAM = 13  # words; the length that is usual for decontamination
_MOST_BYTES = 1 << 20
_TASK = re.compile(r"^(`{3,})python\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
_WORDS = (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP)


@dataclass(frozen=True, slots=True)
class Forward:
    """What a forward computes: words without names and numbers of its own, and its operations."""

    words: tuple[str, ...]
    operations: tuple[str, ...]  # sorted, each as often as it stands there

    @property
    def digest(self) -> str:
        return _digest(self.words)

    @property
    def ngrams(self) -> Iterator[str]:
        for at in range(len(self.words) - NGRAM + 1):
            yield _digest(self.words[at : at + NGRAM])


@dataclass(slots=True)
class Suites:
    """What the suites hold."""

    folders: tuple[Path, ...] = ()
    tasks: int = 0
    hashes: set[str] = field(default_factory=set)
    ngrams: set[str] = field(default_factory=set)
    families: set[tuple[str, ...]] = field(default_factory=set)

    def add(self, forward: Forward) -> None:
        self.tasks += 1
        self.hashes.add(forward.digest)
        self.ngrams.update(forward.ngrams)
        if forward.operations:
            self.families.add(forward.operations)

    def holds(self, sample: Sample) -> str:
        """How a suite holds the sample's task; "" where none does, or it has no task."""
        if not self.tasks:
            return ""
        for _, text in _TASK.findall(sample.prompt):
            for forward in forwards(text):
                if forward.digest in self.hashes:
                    return "hash"
                if any(item in self.ngrams for item in forward.ngrams):
                    return "n-gram"
                if forward.operations in self.families:
                    return "family"
        return ""


def read_suites(folders: Sequence[Path]) -> Suites:
    """Raises file-missing for a folder that is not there, run-empty for one without a task."""
    found = Suites(tuple(folders))
    for folder in folders:
        if not folder.is_dir():
            raise NpusmithError("file-missing", f"{folder} is no folder", seen=str(folder))
        before = found.tasks
        for path in sorted(folder.rglob("*.py")):
            if path.is_file() and path.stat().st_size <= _MOST_BYTES:
                for forward in forwards(path.read_text(encoding="utf-8", errors="replace")):
                    found.add(forward)
        if found.tasks == before:
            raise NpusmithError("run-empty", f"{folder} has no task with a forward")
    return found


def forwards(text: str) -> Iterator[Forward]:
    """Of each `forward` (or `module_fn`) in a Python text; nothing of what is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in ("forward", "module_fn"):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            yield Forward(tuple(_words(body)), tuple(sorted(_operations(body))))


def _words(body: Sequence[ast.stmt]) -> Iterator[str]:
    """With every name of a value as `v` and every number as `0`; names behind dots stay."""
    before = ""
    text = "\n".join(map(ast.unparse, body))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _WORDS:
            continue
        word = token.string
        if token.type == tokenize.NUMBER:
            word = "0"
        elif token.type == tokenize.NAME and before != "." and word not in _KEPT:
            word = "v"
        yield word
        before = token.string


_KEPT = frozenset({"torch", "F", "nn", "self", "return", "for", "in", "if", "else", "not"})


def _operations(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in (inner for stmt in body for inner in ast.walk(stmt)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func).rpartition(".")[2]
        elif isinstance(node, ast.BinOp):
            yield type(node.op).__name__
        elif isinstance(node, ast.Compare):
            yield from (type(item).__name__ for item in node.ops)
        elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
            yield type(node.op).__name__


def _digest(words: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(words).encode(errors="replace")).hexdigest()[:16]
