"""The tile language as rules, in the form that `ir.text.show` prints: one line a statement, four
spaces a level, one space around an operator.

Words, operations with their operands and modes, dtypes and memories come from the tables that
parser and checker read. What the rules do not know: which names are declared, and every rule of
check.py. The nesting of statements and of brackets is bounded, far below what the parser takes.
"""

from __future__ import annotations

import keyword
import string
from collections.abc import Callable, Sequence
from functools import cache

from npusmith.ir.nodes import Atomic, BinOp, StageKind, TensorRole
from npusmith.lang.parse import MOST_COPIES
from npusmith.lang.words import (
    CHIP_FACTS,
    DTYPES,
    EXPRESSIONS,
    MEMORIES,
    OPERATIONS,
    SCALAR_ARGS,
    STAGES,
    why_reserved,
)
from npusmith.lm.automaton import (
    Alt,
    Chars,
    Grammar,
    Item,
    Rule,
    Seq,
    Star,
    Text,
    Word,
    joined,
    maybe,
)
from npusmith.target.intrinsics import COMBINES, INTRINSICS, Intrinsic, Operand

DEPTH = 12  # levels of statements
BRACKETS = 12  # levels of expressions
OPEN, CLOSE = "```python\n", "```"
_DIGITS = frozenset(string.digits.encode())
_LETTERS = frozenset((string.ascii_letters + "_").encode())
_PRINTED = frozenset(range(32, 127)) | frozenset(range(128, 256))
_NEWLINE = frozenset(b"\n")
_QUOTED = _PRINTED - frozenset(b'"\\')
_PYTHON = frozenset(keyword.kwlist)
_PLAIN = "plain"  # statements outside of stages

_IN_STAGE = {
    StageKind.COPY_IN: ("load",),
    StageKind.SPLIT: ("split",),
    StageKind.COMPUTE: ("operation", "mmad"),
    StageKind.COPY_OUT: ("store",),
}


def seq(*items: Item | str) -> Item:
    """One after another; plain texts as they stand."""
    return Seq(tuple(Text(item) if isinstance(item, str) else item for item in items))


def alt(*items: Item | str) -> Item:
    """One of them."""
    return Alt(tuple(Text(item) if isinstance(item, str) else item for item in items))


def words(texts: tuple[str, ...]) -> Item:
    return alt(*texts)


@cache
def _names() -> Item:
    """A name that a program may give to something of its own."""
    known = {*_PYTHON, *MEMORIES, *DTYPES, *OPERATIONS, *EXPRESSIONS, *STAGES}
    known |= {"launch", "chip", "inf", "nan", "range"}
    reserved = {name for name in known if name in _PYTHON or why_reserved(name)}
    return Word(_LETTERS, _LETTERS | _DIGITS, frozenset(reserved))


def rule(name: str) -> Item:
    """The rule of a name: a row of the table, or one of those that depend on a level."""
    kind, _, rest = name.partition(":")
    if kind in _LEVELS:
        return _LEVELS[kind](rest)
    return _RULES[kind]()


def _expr(rest: str) -> Item:
    """`a + b * c if d else e`, as a line of operands: a mask needs no precedence."""
    operand = alt(seq(Star(Text("-")), Rule(f"atom:{rest}")), "True", "False")
    plain = seq(operand, Star(seq(" ", words(tuple(op.value for op in BinOp)), " ", operand)))
    return seq(plain, maybe(seq(" if ", plain, " else ", plain)))


def _atom(rest: str) -> Item:
    level = int(rest)
    flat = alt(
        Rule("number"), Rule("name"), "core_id()", "core_count()", "inf",
        seq(Rule("name"), ".size"),
        seq(Rule("name"), ".shape[", maybe(Text("-")), Chars(_DIGITS), "]"),
        seq("chip.", words(CHIP_FACTS)),
    )  # fmt: skip
    if level == BRACKETS:
        return flat
    inner = Rule(f"expr:{level + 1}")
    calls = [
        seq(fn.value, "(", *_separated([inner] * count), ")") for fn, count in SCALAR_ARGS.items()
    ]
    return alt(flat, seq("(", inner, ")"), seq("value(", Rule(f"view:{level + 1}"), ")"), *calls)


def _view(rest: str) -> Item:
    inner = Rule(f"expr:{rest}")
    return seq(Rule("name"), maybe(seq("[", inner, maybe(seq(", ", inner)), "]")))


def _separated(items: Sequence[Item]) -> list[Item | str]:
    return [part for item in items for part in (", ", item)][1:]


_VALUE, _BUFFER = Rule("expr:0"), Rule("view:0")


def _operation(row: Intrinsic) -> Item:
    """A call of the table, operand by operand."""
    kinds: dict[Operand, Item] = {
        Operand.SCALAR: _VALUE,
        Operand.COUNT: _VALUE,
        Operand.MODE: words(tuple(f'"{mode}"' for mode in row.modes)),
    }
    items = [kinds.get(operand, _BUFFER) for operand in row.operands]
    return seq(row.name, "(", *_separated(items), ")")


def _block(rest: str) -> Item:
    """Statements of one level, without the newline after the last."""
    level, _, kind = rest.partition(":")
    return joined(Rule(f"stmt:{level}:{kind}"), "\n")


def _stmt(rest: str) -> Item:
    text, _, kind = rest.partition(":")
    level = int(text)
    indent = " " * 4 * level
    simple = ["assign", "note"]
    if kind == _PLAIN:
        simple += ["sync", "combine", "flag"]
    else:
        simple += _IN_STAGE[StageKind(kind)]
    found = [Rule(name) for name in simple]
    nested: list[Item] = []
    if level < DEPTH:
        body = Rule(f"block:{level + 1}:{kind}")
        nested.append(seq("for ", Rule("name"), " in ", Rule("range"), ":\n", body))
        nested.append(
            seq(
                "if ", _VALUE, ":\n", body,
                Star(seq(f"\n{indent}elif ", _VALUE, ":\n", body)),
                maybe(seq(f"\n{indent}else:\n", body)),
            )
        )  # fmt: skip
        if kind == _PLAIN:
            for stage in StageKind:
                inside = Rule(f"block:{level + 1}:{stage.value}")
                nested.append(seq(f"with {stage.value}:\n", inside))
    return seq(indent, alt(*found, *nested, "pass"))


_LEVELS = {"expr": _expr, "atom": _atom, "view": _view, "block": _block, "stmt": _stmt}


def _number() -> Item:
    """As Python prints ints and floats; no zero in front, no more digits than an int64 has."""
    digit = Chars(_DIGITS)
    few: Item = seq()
    for _ in range(17):
        few = maybe(seq(digit, few))
    whole = alt("0", seq(Chars(_DIGITS - {ord("0")}), few))
    power = seq("e", alt("-", "+"), digit, digit)
    fraction = seq(".", digit, Star(digit), maybe(power))
    return seq(whole, maybe(alt(fraction, power)))


def _kernel() -> Item:
    tensor = seq(words(tuple(role.value for role in TensorRole)), "(", words(tuple(DTYPES)), ")")
    parameter = seq(Rule("name"), ": ", alt(tensor, "int", "float"))
    copies = alt(*(str(count) for count in range(1, MOST_COPIES + 1)))
    one = seq("ub(", _VALUE, ", ", words(tuple(DTYPES)))
    two = seq(
        words(tuple(name for name in MEMORIES if name != "ub")),
        "(", _VALUE, ", ", _VALUE, ", ", words(tuple(DTYPES)),
    )  # fmt: skip
    buffer = seq("    ", Rule("name"), " = ", alt(one, two), maybe(seq(", copies=", copies)), ")\n")
    return seq(
        "@kernel\ndef ", Rule("function"), "(", joined(parameter, ", "), "):\n",
        maybe(Rule("doc")), Star(buffer), Rule(f"block:1:{_PLAIN}"),
    )  # fmt: skip


def _host() -> Item:
    part = seq("part(", Rule("name"), ", ", _VALUE, ", ", _VALUE, ")")
    bound = seq(", ", Rule("name"), "=", alt(_VALUE, part))
    launch = seq(
        "launch(", Rule("function"), ", ", _VALUE, Star(bound), maybe(Text(", beside=True")), ")"
    )
    ends = seq(_VALUE, maybe(seq(", ", _VALUE)))
    loop = seq(
        "    for ", Rule("name"), " in range(", ends, "):", _one_or_more("\n        ", launch)
    )
    return seq(
        "@host\ndef ", Rule("function"), "(", joined(Rule("name"), ", "), "):\n",
        maybe(Rule("doc")),
        Star(seq("    ", alt(Rule("assign"), Rule("note")), "\n")),
        joined(alt(seq("    ", launch), loop), "\n"),
    )  # fmt: skip


def _one_or_more(before: str, item: Item) -> Item:
    return seq(before, item, Star(seq(before, item)))


def _program() -> Item:
    lines = Star(Chars(_QUOTED | _NEWLINE))
    doc = seq('"""', lines, '"""')
    const = seq(Rule("name"), " = ", maybe(Text("-")), alt(Rule("number"), "inf"))
    head = alt(seq(doc, Star(seq("\n", const))), joined(const, "\n"))
    return seq(maybe(seq(head, "\n\n")), Rule("host"), _one_or_more("\n\n", Rule("kernel")), "\n")


def _answer() -> Item:
    """Lines of reasoning, then one program in a fence, then nothing."""
    line = maybe(seq(Chars(_PRINTED - frozenset(b"`")), Star(Chars(_PRINTED))))
    return seq(Star(seq(line, "\n")), OPEN, Rule("program"), CLOSE, maybe(Text("\n")))


_RULES: dict[str, Callable[[], Item]] = {
    "answer": _answer,
    "program": _program,
    "host": _host,
    "kernel": _kernel,
    "doc": lambda: seq('    """', Star(Chars(_QUOTED | _NEWLINE)), '"""\n'),
    "name": _names,
    # a kernel that computes tanh may be called tanh
    "function": lambda: Word(_LETTERS, _LETTERS | _DIGITS, _PYTHON),
    "number": _number,
    "range": lambda: seq(
        "range(", _VALUE, maybe(seq(", ", _VALUE)), maybe(seq(", ", _VALUE)), ")"
    ),
    "assign": lambda: seq(Rule("name"), " = ", _VALUE),
    "note": lambda: seq('"', Star(Chars(_QUOTED)), '"'),
    "sync": lambda: Text("sync_cores()"),
    "flag": lambda: seq(alt("post", "wait"), '("', Rule("name"), '")'),
    "combine": lambda: seq(
        "combine_", words(tuple(COMBINES)), "(", _BUFFER, ", ", _BUFFER, ", ", Rule("name"), ", ",
        _VALUE, ")",
    ),
    "load": lambda: seq(
        "load(", _BUFFER, ", ", _BUFFER, ", ", _VALUE, maybe(Rule("pieces")), ")"
    ),
    "pieces": lambda: seq(", rows=", _VALUE, ", pitch=", _VALUE),
    "split": lambda: seq(
        "load(", _BUFFER, ", ", _BUFFER, ", ", _VALUE, ", ", _VALUE,
        maybe(Text(", transposed=True")), ")",
    ),
    "store": lambda: seq(
        "store(", _BUFFER, ", ", _BUFFER, ", ", _VALUE, maybe(Rule("pieces")),
        maybe(seq(", atomic=", words(tuple(f'"{kind.value}"' for kind in Atomic)))),
        maybe(Text(", relu=True")), ")",
    ),
    "mmad": lambda: seq(
        "mmad(", *_separated([_BUFFER] * 3 + [_VALUE] * 4), maybe(seq(", bias=", _BUFFER)), ")"
    ),
    "operation": lambda: alt(*(_operation(row) for row in INTRINSICS.values())),
}  # fmt: skip


def open_grammar(start: str = "answer") -> Grammar:
    """The rules as a network; "answer": with reasoning before the program, "program": alone."""
    return Grammar(rule, start)
