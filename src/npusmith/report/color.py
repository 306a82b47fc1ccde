"""Syntax colours for C++ and the tile language: text in, lines of (class, text) pieces out.

Nothing here makes HTML: the template escapes every piece, so no text of a kernel or of a task can
become markup. What no rule knows stays plain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text of one kind; `kind` is a class of style.css, "" for plain."""

    kind: str
    text: str


Line = tuple[Piece, ...]

_CPP_WORDS = (
    "alignas auto bool break case char class const constexpr continue default delete do double "
    "else enum explicit extern false float for friend half if inline int int8_t int16_t int32_t "
    "int64_t long namespace new nullptr operator private protected public reinterpret_cast "
    "return short signed sizeof static static_cast struct switch template this true typedef "
    "typename uint8_t uint16_t uint32_t uint64_t union unsigned using virtual void volatile while "
    "bfloat16_t size_t __global__ __aicore__ __gm__ __ubuf__ GM_ADDR"
)
_PY_WORDS = (
    "False None True and as assert break class continue def del elif else except finally for from "
    "global if import in is lambda nonlocal not or pass raise return try while with yield"
)


def _words(text: str) -> str:
    return "|".join(re.escape(word) for word in text.split())


_NUMBER = r"(?P<num>\b(?:0[xX][0-9a-fA-F']+|\d[\d']*(?:\.\d*)?(?:[eE][-+]?\d+)?)[uUlLfF]*\b)"
_RULES = {
    "cpp": re.compile(
        r"(?P<com>//[^\n]*|/\*.*?(?:\*/|\Z))"
        r'|(?P<str>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\')'
        r"|(?P<pre>^[ \t]*\#[^\n]*)"
        rf"|(?P<key>\b(?:{_words(_CPP_WORDS)})\b)"
        r"|(?P<fn>\b[A-Z]\w*(?=\s*(?:\(|<|::)))"
        rf"|{_NUMBER}",
        re.DOTALL | re.MULTILINE,
    ),
    "python": re.compile(
        r"(?P<com>\#[^\n]*)"
        r'|(?P<str>"""(?:\\.|[^\\])*?(?:"""|\Z)|\'\'\'(?:\\.|[^\\])*?(?:\'\'\'|\Z)'
        r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
        r"|(?P<pre>^[ \t]*@\w[\w.]*)"
        rf"|(?P<key>\b(?:{_words(_PY_WORDS)})\b)"
        r"|(?P<fn>\b[a-z_]\w*(?=\())"
        rf"|{_NUMBER}",
        re.DOTALL | re.MULTILINE,
    ),
}
_ENDINGS = {".py": "python", ".cpp": "cpp", ".h": "cpp", ".hpp": "cpp", ".cc": "cpp"}


def language(name: str) -> str:
    """The rules for a file of that name; "" when there are none."""
    return _ENDINGS.get(name[name.rfind(".") :] if "." in name else "", "")


def colour(text: str, rules: str) -> tuple[Line, ...]:
    """One tuple of pieces a line; joined again they are the text."""
    lines: list[list[Piece]] = [[]]
    for piece in _pieces(text, rules):
        first, *rest = piece.text.split("\n")
        lines[-1].append(Piece(piece.kind, first))
        lines.extend([Piece(piece.kind, part)] for part in rest)
    return tuple(tuple(piece for piece in line if piece.text) for line in lines)


def _pieces(text: str, rules: str) -> list[Piece]:
    if rules not in _RULES:
        return [Piece("", text)]
    found: list[Piece] = []
    at = 0
    for match in _RULES[rules].finditer(text):
        found.append(Piece("", text[at : match.start()]))
        found.append(Piece(match.lastgroup or "", match[0]))
        at = match.end()
    return [*found, Piece("", text[at:])]
