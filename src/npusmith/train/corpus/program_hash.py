"""A tile program without its names: `program_hash(text)` does not change with a name.

Notes and docstrings are left out, and lengths of constants count by their power of two, so that
programs that differ by the size of a tile alone are one.
"""

from __future__ import annotations

import hashlib
import io
import tokenize

from npusmith.lang.words import CALLS, CHIP_FACTS, DTYPES, EXPRESSIONS, OPERATIONS, STAGES

_WORDS = frozenset(
    {
        *OPERATIONS, *CALLS, *CHIP_FACTS, *DTYPES, *EXPRESSIONS, *STAGES, "host", "kernel", "def",
        "for", "in", "range", "if", "else", "with", "and", "or", "not", "pass", "launch", "chip",
        "shape", "size", "ub", "l1", "l0a", "l0b", "l0c", "bias_table", "input", "output", "inf",
        "scratch", "int", "float", "copies", "rows", "pitch", "atomic", "part", "relu", "bias",
        "transposed", "True", "False",
    }
)  # fmt: skip
_SMALL = 16  # numbers up to this count as they are


def program_hash(text: str) -> str:
    """Sixteen digits; of a text that is no Python, of its words."""
    try:
        words = _words(text)
    except (tokenize.TokenError, IndentationError, SyntaxError):
        words = text.split()
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _words(text: str) -> list[str]:
    names: dict[str, str] = {}
    found: list[str] = []
    start = True  # of a line: a string there is a note
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        word = token.string
        if token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT):
            start = True
            continue
        if token.type in (tokenize.INDENT, tokenize.DEDENT):
            found.append("{" if token.type == tokenize.INDENT else "}")
            continue
        if token.type == tokenize.STRING and start:
            continue
        start = False
        if token.type == tokenize.NAME and word not in _WORDS:
            word = names.setdefault(word, f"n{len(names)}")
        elif token.type == tokenize.NUMBER:
            word = _bucket(word)
        found.append(word)
    return found


def _bucket(word: str) -> str:
    try:
        number = int(word, 0)
    except ValueError:
        return word
    return word if number <= _SMALL else f"2**{number.bit_length() - 1}"
