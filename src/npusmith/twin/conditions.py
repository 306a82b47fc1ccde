"""Which lines of a kernel's text a preprocessor for this chip keeps: `active(code)`.

Libraries write a kernel for several chips into one file, under `#if __NPU_ARCH__ == 3510`. A
condition that asks for more than the chip (element types, macros of the file) is not decided here:
all of its branches stay.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping

from npusmith.twin.scan import MOST_LINE

# What the vendor's compiler defines for dav-2201; None: not defined. Which core is another matter.
_MACROS: dict[str, int | None] = {
    "__NPU_ARCH__": 2201,
    "__CCE_AICORE__": 220,
    "__CCE_KT_TEST__": None,
    "ASCENDC_CPU_DEBUG": None,
    "__DAV_C310__": None,
    "__DAV_310R6__": None,
    "__DAV_M200__": None,
    "__DAV_C100__": None,
}
_LINE = re.compile(r"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b(.*)$")
_ASKS = re.compile(r"^[ \t]*#[ \t]*(?:(ifn?def)|if|elif)\b(.*)$", re.MULTILINE)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
Known = int | None  # None: not decided
Macros = Mapping[str, int | None]


def undefined(codes: Iterable[str], defined: Iterable[str]) -> dict[str, None]:
    """The macros that blanked texts of a kernel ask for and nobody defines, for `active`.

    `defined`: NAME or NAME=VALUE of its build. What begins with _ is the compiler's, and names of
    types and formats (ORIG_DTYPE_X, DT_INT8) come with each build.
    """
    asked: set[str] = set()
    made = {item.partition("=")[0] for item in defined}
    for code in codes:
        made.update(_DEFINE.findall(code))
        for word, rest in _ASKS.findall(code):
            plain = re.findall(r"\w+", rest)[:1] if word else []
            asked.update(plain or [one or other for one, other in _DEFINED.findall(rest)])
    given = re.compile(r"_|(?:ORIG_)?DTYPE_|FORMAT_|DT_|TILING_|ASCENDC_|HAVE_")
    return {name: None for name in sorted(asked - made) if not given.match(name)}


def active(code: str, macros: Macros | None = None) -> str:
    """Blanked text (scan.blank) without conditions and the branches that this chip does not take.

    `macros`: what is defined besides the chip's own; None: not defined.
    """
    known = {**_MACROS, **(macros or {})}
    lines = code.split("\n")
    stack: list[tuple[bool, Known]] = []  # does this branch stay; was one before it taken for sure
    at = 0
    while at < len(lines):
        first, text = at, lines[at]
        while text.endswith("\\") and at + 1 < len(lines):
            at += 1
            text = f"{text[:-1]} {lines[at]}"
        found = _LINE.match(text) if len(text) <= MOST_LINE else None
        if found:
            _step(stack, found[1], found[2], known)
        if found or not all(stays for stays, _ in stack):
            lines[first : at + 1] = [" " * len(line) for line in lines[first : at + 1]]
        at += 1
    return "\n".join(lines)


def _step(stack: list[tuple[bool, Known]], word: str, rest: str, known: Macros) -> None:
    if word == "endif":
        if stack:
            stack.pop()
    elif word in ("if", "ifdef", "ifndef"):
        value = _condition(word, rest, known)
        stack.append((value != 0, value))
    elif stack:  # elif and else: not after a branch that is taken for sure
        _, before = stack[-1]
        value = 1 if word == "else" else _condition("if", rest, known)
        taken = 1 if before == 1 or (value == 1 and before == 0) else value and before
        stack[-1] = (before != 1 and value != 0, 0 if before == 0 and value == 0 else taken)


def _condition(word: str, text: str, known: Macros) -> Known:
    if word != "if":
        text = f"defined({text.strip()})"
    text = _DEFINED.sub(lambda found: _is_defined(found[1] or found[2], known), text)
    text = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", text)
    text = text.replace("&&", " and ").replace("||", " or ")
    text = re.sub(r"!(?!=)", " not ", text).strip()
    try:
        value = _value(ast.parse(text, mode="eval").body, known)
    except (SyntaxError, ValueError, RecursionError):
        return None
    if value is not None and word == "ifndef":
        value = not value
    return None if value is None else int(bool(value))


def _is_defined(name: str, known: Macros) -> str:
    if name not in known:
        return " unknown "
    return " 0 " if known[name] is None else " 1 "


def _value(node: ast.expr, known: Macros) -> Known:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return (known[name] or 0) if name in known else None
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            value = _value(inner, known)
            return None if value is None else int(not value)
        case ast.BoolOp(op=op, values=parts):
            return _joined([_value(part, known) for part in parts], isinstance(op, ast.Or))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            sides = _value(left, known), _value(right, known)
            if sides[0] is None or sides[1] is None:
                return None
            return int(_COMPARE[type(op)](sides[0], sides[1]))
    return None


def _joined(values: list[Known], either: bool) -> Known:
    """`or` is true when one part is, whatever the others are; `and` is false when one part is."""
    if any(value is not None and bool(value) == either for value in values):
        return int(either)
    return None if None in values else int(not either)
