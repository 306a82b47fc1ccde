"""What a C++ source of the runtime is made of: its own text and that of the headers it includes.

Objects are kept by it (toolchain.py), so that a change of a header compiles its users alone, and
chips of the same buffers share what does not ask which chip it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|(\S.*))', re.MULTILINE)
_DEFINE = re.compile(r"^#define (\w+)", re.MULTILINE)
_WORD = re.compile(r"\w+")


def used_text(source: Path, folders: Sequence[Path], made: Mapping[str, str]) -> str:
    """The source and all that it includes by quotes, each once, in order.

    `made`: headers that are no files, by the end of their names; of their `#define` lines only
    those remain whose names stand elsewhere. Headers in angle brackets are the compiler's own.
    ValueError for an include that is neither found nor in brackets.
    """
    texts: dict[str, str] = {}
    _collect(source, folders, made, texts)
    others = {name: text for name, text in texts.items() if name not in made}
    words = {word for text in others.values() for word in _WORD.findall(text)}
    kept = {name: _needed(texts[name], words) for name in made if name in texts}
    return "\n".join([*others.values(), *kept.values()])


def _collect(
    path: Path, folders: Sequence[Path], made: Mapping[str, str], texts: dict[str, str]
) -> None:
    if str(path) in texts:
        return
    text = texts[str(path)] = path.read_text(encoding="utf-8")
    for quoted, other in _INCLUDE.findall(text):
        name = quoted.rpartition("/")[2]
        if name in made:
            texts[name] = made[name]
        elif quoted:
            _collect(_find(quoted, path, folders), folders, made, texts)
        elif not other.startswith("<"):
            raise ValueError(f"{path}: an include that only the compiler understands: {other}")


def _find(name: str, user: Path, folders: Sequence[Path]) -> Path:
    for folder in (user.parent, *folders):
        if (folder / name).is_file():
            return (folder / name).resolve()
    raise ValueError(f"{user} includes {name}, which is not there")


def _needed(text: str, words: set[str]) -> str:
    """Without comments and definitions of names that nobody uses; one may use another one."""
    lines = [line for line in text.splitlines() if not line.startswith("//")]
    while True:
        kept = [line for line in lines if _name(line) in words or not _name(line)]
        found = {word for line in kept if _name(line) for word in _WORD.findall(line)}
        if found <= words:
            return "\n".join(kept)
        words = words | found


def _name(line: str) -> str:
    found = _DEFINE.match(line)
    return found[1] if found else ""
