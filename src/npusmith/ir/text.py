"""Programs as text: `show` prints what `lang.parse` reads back to an equal program.

Statements and marks that only passes write (queues, barriers, roles, depths) are printed as well,
for people who watch a lowering; the parser refuses them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import groupby

from npusmith.errors import LangError
from npusmith.ir.nodes import (
    ONE_ELEMENT,
    Alloc,
    Assign,
    Await,
    Barrier,
    Binary,
    BinOp,
    Buffer,
    Call,
    ChipFact,
    Choice,
    Combine,
    Const,
    CoreCount,
    CoreId,
    Deque,
    Dim,
    Enque,
    Event,
    Expr,
    For,
    Free,
    Host,
    If,
    Kernel,
    Launch,
    Load,
    Mmad,
    Name,
    Negate,
    Note,
    Op,
    Post,
    Program,
    Size,
    Span,
    Split,
    Stage,
    Stmt,
    Store,
    SyncCores,
    Value,
    View,
)

# How tightly an operator binds, as in Python.
_CHOICE, _OR, _AND, _COMPARE, _SUM, _PRODUCT, UNARY, ATOM = range(8)

_LEVELS: dict[BinOp, int] = {
    BinOp.OR: _OR,
    BinOp.AND: _AND,
    **dict.fromkeys((BinOp.LT, BinOp.LE, BinOp.GT, BinOp.GE, BinOp.EQ, BinOp.NE), _COMPARE),
    **dict.fromkeys((BinOp.ADD, BinOp.SUB), _SUM),
    **dict.fromkeys((BinOp.MUL, BinOp.DIV, BinOp.FLOORDIV, BinOp.MOD), _PRODUCT),
}


def show(program: Program) -> str:
    """The text of a program; `parse(show(program)) == program` unless passes have been at it."""
    lines = [_string(program.doc, '"""')] if program.doc else []
    lines += [f"{name} = {show_number(value)}" for name, value in program.consts]
    blocks = ["\n".join(lines)] if lines else []
    blocks.append("\n".join(_host(program.host)))
    blocks += ["\n".join(_kernel(kernel)) for kernel in program.kernels]
    return "\n\n".join(blocks) + "\n"


# ----------------------------------------------------------------------------------- expressions


def show_expr(expr: Expr) -> str:
    """An expression with no more parentheses than it needs."""
    return _expr(expr)[0]


def show_number(value: float) -> str:
    """A literal that reads back as the same number of the same type."""
    if isinstance(value, bool):
        return "True" if value else "False"
    if isinstance(value, int):
        return str(int(value))
    if math.isnan(value):
        raise LangError("lang-number", "nan cannot be written as a literal", seen="nan")
    return float.__repr__(float(value))


def _expr(expr: Expr) -> tuple[str, int]:
    match expr:
        case Const(value):
            return number(value)
        case Name(name):
            return name, ATOM
        case Binary():
            return infix(expr.op, _expr(expr.left), _expr(expr.right))
        case Negate(value):
            return _negate(value), UNARY
        case Call(fn, args):
            return f"{fn.value}({_list(args)})", ATOM
        case Choice(cond, then, other):
            parts = (_inside(then, _OR), _inside(cond, _OR), _inside(other, _CHOICE))
            return "{} if {} else {}".format(*parts), _CHOICE
        case Dim(tensor, index):
            return f"{tensor}.shape[{index}]", ATOM
        case Size(tensor):
            return f"{tensor}.size", ATOM
        case ChipFact(name):
            return f"chip.{name}", ATOM
        case CoreId():
            return "core_id()", ATOM
        case CoreCount():
            return "core_count()", ATOM
        case Value(source):
            return f"value({show_view(source)})", ATOM


def infix(op: BinOp, left: tuple[str, int], right: tuple[str, int]) -> tuple[str, int]:
    """Two texts with how tightly each binds, joined by an operator; the one place for parentheses.

    `a - (b - c)`, `a / (b * c)`: operators associate to the left.
    """
    level = _LEVELS[op]
    # comparisons do not associate: a < b < c would be read as a chain
    first = _held(left, level + (level == _COMPARE))
    return f"{first} {op.value} {_held(right, level + 1)}", level


def number(value: float) -> tuple[str, int]:
    """A literal with how tightly it binds."""
    text = show_number(value)
    return text, UNARY if text.startswith("-") else ATOM


def _negate(value: Expr) -> str:
    # a minus glued to a number belongs to the number, so -(3) is what negates the number 3
    if isinstance(value, Const) and _expr(value)[1] == ATOM:
        return f"-({_expr(value)[0]})"
    return "-" + _inside(value, UNARY)


def _inside(expr: Expr, least: int) -> str:
    return _held(_expr(expr), least)


def _held(part: tuple[str, int], least: int) -> str:
    text, level = part
    return text if level >= least else f"({text})"


def _list(items: Iterable[Expr]) -> str:
    return ", ".join(show_expr(item) for item in items)


def show_view(item: View | Span) -> str:
    """`buf`, `buf[offset]`, `buf[row, col]` or `x[offset]`."""
    name = item.buffer if isinstance(item, View) else item.tensor
    if isinstance(item, View) and item.col is not None:
        return f"{name}[{show_expr(item.offset)}, {show_expr(item.col)}]"
    plain = isinstance(item.offset, Const) and type(item.offset.value) is int
    if plain and item.offset == Const(0):
        return name
    return f"{name}[{show_expr(item.offset)}]"


def _string(text: str, quote: str) -> str:
    """A string literal, as plain as its contents allow."""
    breaks = "\n" if len(quote) == 3 else ""
    plain = all(char.isprintable() or char in breaks for char in text)
    if plain and "\\" not in text and '"' not in text:
        return quote + text + quote
    return repr(text)


# ------------------------------------------------------------------------------------ statements


def show_stmt(stmt: Stmt) -> str:
    """The first line of a statement, as error messages quote it."""
    return next(_stmt(stmt))


def _block(block: Iterable[Stmt]) -> list[str]:
    lines = [line for stmt in block for line in _stmt(stmt)]
    return ["    " + line for line in lines or ["pass"]]


def _stmt(stmt: Stmt) -> Iterator[str]:
    match stmt:
        case Note(text):
            yield _string(text, '"')
        case Assign(target, value):
            yield f"{target} = {show_expr(value)}"
        case For():
            yield f"for {stmt.var} in range({_list(_range(stmt))}):"
            yield from _block(stmt.body)
        case If():
            yield from _if(stmt, "if")
        case Stage(kind, body):
            yield f"with {kind.value}:"
            yield from _block(body)
        case _:
            yield _action(stmt)


def _range(stmt: For) -> tuple[Expr, ...]:
    if not _is_int(stmt.step, 1):
        return (stmt.start, stmt.stop, stmt.step)
    return (stmt.stop,) if _is_int(stmt.start, 0) else (stmt.start, stmt.stop)


def _is_int(expr: Expr, value: int) -> bool:
    return isinstance(expr, Const) and type(expr.value) is int and expr.value == value


def _if(stmt: If, word: str) -> Iterator[str]:
    yield f"{word} {show_expr(stmt.cond)}:"
    yield from _block(stmt.then)
    match stmt.orelse:
        case ():
            return
        case (If() as only,):
            yield from _if(only, "elif")
        case _:
            yield "else:"
            yield from _block(stmt.orelse)


def _action(stmt: Stmt) -> str:
    """A statement that is one call."""
    match stmt:
        case Load(dst, src, count):
            return f"load({show_view(dst)}, {show_view(src)}, {show_expr(count)}{_extras(stmt)})"
        case Store(dst, src, count):
            return f"store({show_view(dst)}, {show_view(src)}, {show_expr(count)}{_extras(stmt)})"
        case Split(dst, src, rows, cols, transposed):
            extra = ", transposed=True" if transposed else ""
            return f"load({show_view(dst)}, {show_view(src)}, {_list((rows, cols))}{extra})"
        case Mmad(dst, left, right):
            views = (show_view(dst), show_view(left), show_view(right))
            sizes = _list((stmt.m, stmt.n, stmt.k, stmt.accumulate))
            bias = "" if stmt.bias is None else f", bias={show_view(stmt.bias)}"
            return f"mmad({', '.join(views)}, {sizes}{bias})"
        case Op(name, views, scalars, mode, count):
            # every row has its buffers first, then scalars, then the mode, then the count
            parts = [show_view(view) for view in views] + [show_expr(item) for item in scalars]
            parts += [f'"{mode}"'] if mode else []
            parts += [show_expr(count)] if name != ONE_ELEMENT else []
            return f"{name}({', '.join(parts)})"
        case Combine(op, dst, src, scratch, count):
            pair = f"{show_view(dst)}, {show_view(src)}"
            return f"combine_{op}({pair}, {scratch}, {show_expr(count)})"
        case SyncCores():
            return "sync_cores()"
        case Post(flag):
            return f'post("{flag}")'
        case Await(flag):
            return f'wait("{flag}")'
        case _:
            return _pass_made(stmt)


def _extras(stmt: Load | Store) -> str:
    parts = [] if stmt.rows is None else [f"rows={show_expr(stmt.rows)}"]
    parts += [] if stmt.pitch is None else [f"pitch={show_expr(stmt.pitch)}"]
    if isinstance(stmt, Store) and stmt.atomic is not None:
        parts.append(f'atomic="{stmt.atomic.value}"')
    parts += ["relu=True"] if isinstance(stmt, Store) and stmt.relu else []
    parts += [] if stmt.padded is None else [f"padded={stmt.padded}"]
    return "".join(f", {part}" for part in parts)


def _pass_made(stmt: Stmt) -> str:
    match stmt:
        case Alloc(buffer):
            return f"alloc({buffer})"
        case Enque(buffer):
            return f"enque({buffer})"
        case Deque(buffer):
            return f"deque({buffer})"
        case Free(buffer):
            return f"free({buffer})"
        case Barrier(pipe):
            return f'barrier("{pipe}")'
        case Event(first, second):
            return f'event("{first}", "{second}")'
        case _:
            raise TypeError(f"not a statement: {stmt!r}")


# ------------------------------------------------------------------------------------- functions


def _host(host: Host) -> list[str]:
    head = ["@host", f"def {host.name}({', '.join(host.tensors)}):"]
    first = host.body[0] if host.body else None
    body = _block(host.body) if host.body else []
    return [*head, *_doc(host.doc, first), *body, *_launches(host.launches)]


def _launches(launches: tuple[Launch, ...]) -> list[str]:
    lines: list[str] = []
    for loop, group in groupby(launches, key=lambda item: item.loop):
        indent = "    "
        if loop is not None:
            start = "" if loop.start == Const(0) else f"{show_expr(loop.start)}, "
            lines.append(f"{indent}for {loop.var} in range({start}{show_expr(loop.stop)}):")
            indent *= 2
        lines += [indent + _launch(launch) for launch in group]
    return lines


def _launch(launch: Launch) -> str:
    args = [f"{name}={other}" for name, other in launch.tensors]
    args += [
        f"{name}=part({part.tensor}, {show_expr(part.start)}, {show_expr(part.length)})"
        for name, part in launch.parts
    ]
    args += [f"{name}={show_expr(value)}" for name, value in launch.args]
    args += ["beside=True"] if launch.beside else []
    return f"launch({', '.join([launch.kernel, show_expr(launch.cores), *args])})"


def _kernel(kernel: Kernel) -> list[str]:
    params = [f"{item.name}: {item.role.value}({item.dtype.value})" for item in kernel.tensors]
    params += [f"{item.name}: {'float' if item.is_float else 'int'}" for item in kernel.scalars]
    head = ["@kernel", f"def {kernel.name}({', '.join(params)}):"]
    buffers = ["    " + show_buffer(item) for item in kernel.buffers]
    first = None if buffers or not kernel.body else kernel.body[0]
    body = [] if buffers and not kernel.body else _block(kernel.body)
    return [*head, *_doc(kernel.doc, first), *buffers, *body]


def _doc(doc: str, first: Stmt | None) -> list[str]:
    """The docstring; an empty one where a note in its place would be taken for it."""
    return ["    " + _string(doc, '"""')] if doc or isinstance(first, Note) else []


def show_buffer(item: Buffer) -> str:
    """The line that declares it."""
    marks = "" if item.role is None else f", {item.role.value}"
    marks += "" if item.depth == 1 else f", depth={item.depth}"
    marks += "" if item.copies == 0 or item.role is not None else f", copies={item.copies}"
    sides = show_expr(item.length)
    sides += "" if item.cols is None else f", {show_expr(item.cols)}"
    return f"{item.name} = {item.memory.value}({sides}, {item.dtype.value}{marks})"
