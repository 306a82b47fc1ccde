"""The words of a kernel's text, of tile programs and of Ascend C alike.

`read_tokens(text, route)` never fails: a candidate that does not parse is what repairs are for.
Comments are left out. In a tile program line ends and indentation are tokens, so that a block is
bracketed in both languages; inside brackets they are not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

TILE, DIRECT = "tile", "direct"
ROUTES = (TILE, DIRECT)
END, IN, OUT = "\n", "<in>", "<out>"  # line end, block begins, block ends; of tile programs
# Braces of initialisers are words of their own: a statement does not end at them.
INIT, INIT_END = "{=", "}="
OPENS = {"(": ")", "[": "]", "{": "}", INIT: INIT_END, IN: OUT}
CLOSES = frozenset(OPENS.values())


class Kind(str, Enum):
    """What a token is."""

    NAME = "name"
    NUMBER = "number"
    TEXT = "text"  # a string or character literal
    MARK = "mark"
    HOLE = "hole"  # of patterns only


@dataclass(frozen=True, slots=True)
class Token:
    """`text[start:end]` of the source, on that line (from 1); layout tokens have no width."""

    text: str
    kind: Kind
    start: int
    end: int
    line: int


_NUMBER = r"\d(?:[\w.]|(?<=[eE])[+-])*|\.\d[\w]*"
_WORD = re.compile(
    r"(?P<space>[ \t\r\f\v]+|\\\n)|(?P<end>\n)"
    r"|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<note>\#[^\n]*)"
    r'|(?P<text>"(?:\\.|[^"\\\n])*"?|\'(?:\\.|[^\'\\\n])*\'?)'
    r"|(?P<hole>\$\(\w+(?:\s*[*/+~-]\s*\w+)?\)|\$\w+(?::\w+)?|\.\.\.)"
    rf"|(?P<number>{_NUMBER})|(?P<name>[^\W\d]\w*)"
    r"|(?P<mark>::|->|\+\+|--|<=|>=|==|!=|&&|\|\||[+\-*/%&|^]=|.)",
    re.DOTALL,
)
_DOC = re.compile(r'"""(?:.*?)(?:"""|\Z)', re.DOTALL)
_KINDS = {"text": Kind.TEXT, "hole": Kind.HOLE, "number": Kind.NUMBER, "name": Kind.NAME}


@lru_cache(maxsize=256)  # one kernel is searched by many patterns
def read_tokens(text: str, route: str) -> tuple[Token, ...]:
    """All tokens in order; see the module's text."""
    return _read_tile(text) if route == TILE else tuple(_read_direct(text))


def _read_direct(text: str) -> list[Token]:
    """C++: a line of the preprocessor is read like any other, its mark included."""
    tokens, at, line = [], 0, 1
    while match := _WORD.match(text, at):
        group, word = match.lastgroup or "mark", match.group()
        if group == "note":  # `#` begins a directive here, not a comment
            group, word = "mark", "#"
        if group not in ("space", "end", "comment"):
            kind = _KINDS.get(group, Kind.MARK)
            tokens.append(Token(word, kind, at, at + len(word), line))
        line += word.count("\n")
        at += len(word)
    return _mark_initialisers(tokens)


def _mark_initialisers(tokens: list[Token]) -> list[Token]:
    """Other words for the braces that follow a name or a comma, and no `class X` or `else`."""
    marked: list[Token] = []
    inside: list[bool] = []
    for at, token in enumerate(tokens):
        if token.text == "{":
            inside.append(_is_initialiser(tokens, at))
            if inside[-1]:
                token = replace(token, text=INIT)
        elif token.text == "}" and inside and inside.pop():
            token = replace(token, text=INIT_END)
        marked.append(token)
    return marked


def _is_initialiser(tokens: list[Token], at: int) -> bool:
    before = tokens[at - 1] if at else None
    if before is None or before.text in ("else", "do", "const", "try"):
        return False
    heads = {token.text for token in tokens[max(at - 3, 0) : at]}
    if heads & {"class", "struct", "namespace", "enum", "union", "extern"}:
        return False
    return before.kind in (Kind.NAME, Kind.HOLE) or before.text in ("=", ",", "(", "return")


def _read_tile(text: str) -> tuple[Token, ...]:
    tokens: list[Token] = []
    indents, depth, at, line = [0], 0, 0, 1
    fresh = True  # at the start of a line
    while at < len(text):
        if fresh and depth == 0:
            fresh = False
            _indent(text, at, line, indents, tokens)
        match = _DOC.match(text, at) or _WORD.match(text, at)
        assert match is not None  # the last alternative takes any character
        word, group = match.group(), match.lastgroup or "text"
        if group == "comment":  # `//` divides here
            word, group = ("//", "mark") if word.startswith("//") else ("/", "mark")
        if group == "end":
            if depth == 0 and tokens and tokens[-1].text not in (END, IN, OUT):
                tokens.append(Token(END, Kind.MARK, at, at, line))
            fresh = True
        elif group not in ("space", "note"):
            kind = _KINDS.get(group, Kind.MARK)
            tokens.append(Token(word, kind, at, at + len(word), line))
            depth = max(0, depth + (word in ("(", "[", "{")) - (word in (")", "]", "}")))
        line += word.count("\n")
        at += len(word)
    if tokens and tokens[-1].text not in (END, OUT):
        tokens.append(Token(END, Kind.MARK, at, at, line))
    tokens += [Token(OUT, Kind.MARK, at, at, line) for _ in indents[1:]]
    return tuple(tokens)


def _indent(text: str, at: int, line: int, indents: list[int], tokens: list[Token]) -> None:
    """Open or close blocks where a line begins; empty lines and comments open none."""
    rest = text[at:].split("\n", 1)[0]
    body = rest.lstrip(" \t")
    if not body or body.startswith("#"):
        return
    width = len(rest) - len(body)
    if width > indents[-1]:
        indents.append(width)
        tokens.append(Token(IN, Kind.MARK, at, at, line))
    while width < indents[-1]:
        indents.pop()
        tokens.append(Token(OUT, Kind.MARK, at, at, line))


def words(text: str, route: str) -> tuple[str, ...]:
    """The texts of the tokens: two kernels with the same words are the same kernel."""
    return tuple(token.text for token in read_tokens(text, route))
