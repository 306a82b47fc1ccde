"""The words of the language, and which names a program may not take for itself."""

from __future__ import annotations

from difflib import get_close_matches

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import INT_FNS, Memory, ScalarFn, StageKind
from npusmith.target.intrinsics import COMBINES, INTRINSICS, Intrinsic, Operand

STAGES = tuple(kind.value for kind in StageKind)
DTYPES = {dtype.value: dtype for dtype in DType if dtype.is_computed}
MEMORIES = tuple(memory.value for memory in Memory)
CHIP_FACTS = ("vector_cores", "cube_cores", "ub_bytes")

# Functions in expressions, and how many arguments each takes.
SCALAR_ARGS: dict[ScalarFn, int] = {
    ScalarFn.MIN: 2,
    ScalarFn.MAX: 2,
    ScalarFn.CEIL_DIV: 2,
    ScalarFn.ALIGN_UP: 2,
    ScalarFn.FLOAT: 1,
    ScalarFn.INT: 1,
    **dict.fromkeys(INT_FNS, 2),
}

# Statements that are calls but not rows of the intrinsic table.
SPLIT = "load(a0, a1[row, col], rows, cols) or load(a0, a1[row, col], rows, cols, transposed=True)"
CALLS: dict[str, str] = {
    "load": "load(buf, x[offset], count) or load(buf, x[offset], count, rows=r, pitch=p)",
    "store": 'store(y[offset], buf, count), also with rows=r, pitch=p and atomic="add"',
    "mmad": "mmad(c0, a0, b0, m, n, k, accumulate), also with bias=v0",
    "sync_cores": "sync_cores()",
    "post": 'post("flag")',
    "wait": 'wait("flag")',
    **{f"combine_{op}": f"combine_{op}(dst, src, scratch, count)" for op in COMBINES},
}

EXPRESSIONS: tuple[str, ...] = (
    *(fn.value for fn in ScalarFn),
    *("core_id", "core_count", "value"),
)

OPERATIONS: tuple[str, ...] = (*INTRINSICS, *CALLS)

# Written by passes; the text form shows them, the parser refuses them.
LOWERED = ("alloc", "enque", "deque", "free", "barrier", "event")

_WORDS = frozenset(
    {
        *EXPRESSIONS, *CALLS, *STAGES, *DTYPES, *MEMORIES,
        *("launch", "chip", "inf", "nan", "range", "True", "False", "None"),
    }
)  # fmt: skip

# Words that are names of tasks as well.
_FUNCTIONS = frozenset({"mmad", "split", *MEMORIES})

# Names become C++ names: words of C++, and macros that its headers define.
_CPP = frozenset(
    {
        "alignas", "alignof", "and", "and_eq", "asm", "atomic", "auto", "bitand", "bitor",
        "bool", "break", "case", "catch", "char", "char16_t", "char32_t", "class", "co_await",
        "compl", "concept", "const", "const_cast", "constexpr", "continue", "co_return",
        "co_yield", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else",
        "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
        "inline", "int", "long", "main", "mutable", "namespace", "new", "noexcept", "not",
        "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected", "public",
        "register", "reinterpret_cast", "requires", "return", "short", "signed", "sizeof",
        "static", "static_assert", "static_cast", "struct", "switch", "template", "this",
        "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "union",
        "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
        "half", "bfloat16_t", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t",
        "int64_t", "uint64_t", "size_t", "assert", "errno", "stdin", "stdout", "stderr",
        "INFINITY", "NAN", "NULL", "EOF",
    }
)  # fmt: skip


def why_reserved(name: str, *, function: bool = False) -> str:
    """Why a program may not call something by this name; "" when it may.

    An operation's name may be that of a function: a kernel that computes tanh is called tanh.
    """
    if not name.isascii():
        return "names are ASCII, because they become C++ names"
    if "__" in name:
        return "names with two underscores in a row belong to C++"
    if name in _WORDS and not (function and name in _FUNCTIONS):
        return "it is a word of the language"
    if name in _CPP:
        return "it is a word of C++, and names become C++ names"
    if name in INTRINSICS and not function:
        return "it is an operation of the language"
    return ""


def closest(name: str, among: tuple[str, ...] | list[str]) -> str:
    """The name that was probably meant; "" when none is near."""
    key = name[:64]
    found = get_close_matches(key, among, 1, 0.6) or get_close_matches(key.lower(), among, 1, 0.6)
    return found[0] if found else ""


def mean(name: str, among: tuple[str, ...] | list[str]) -> str:
    """`did you mean 'x'?`, or "" when nothing is near."""
    near = closest(name, among)
    return f"did you mean {near!r}?" if near else ""


_SOURCES = ("a", "b", "c")


def signature(row: Intrinsic) -> str:
    """How a row is called: `add(dst, a, b, n)`, `compare(dst, a, b, "mode", n)`."""
    parts: list[str] = []
    sources = iter(_SOURCES)
    for kind in row.operands:
        match kind:
            case Operand.SRC:
                parts.append(next(sources))
            case Operand.SCALAR:
                parts.append("s")
            case Operand.MODE:
                parts.append('"mode"')
            case Operand.COUNT:
                parts.append("n")
            case _:
                parts.append(kind.value)
    return f"{row.name}({', '.join(parts)})"
