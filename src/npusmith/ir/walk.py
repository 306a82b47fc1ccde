"""Walking the nodes of a program: what stands directly inside an expression or a statement.

What an expression reads is kept with it: compiler and lowering ask again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, TypeVar

from npusmith.ir.nodes import (
    Alloc,
    Assign,
    Binary,
    Call,
    Choice,
    Combine,
    Const,
    Deque,
    Dim,
    Expr,
    For,
    Hashed,
    If,
    Kernel,
    Load,
    Mmad,
    Name,
    Negate,
    Op,
    Size,
    Split,
    Stage,
    Stmt,
    Store,
    Value,
    View,
)

Block = tuple[Stmt, ...]
_T = TypeVar("_T")


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside `expr`."""
    inside = _CHILDREN.get(type(expr))
    return inside(expr) if inside else ()


def _places(*views: View) -> tuple[Expr, ...]:
    """The expressions that say where views begin."""
    found: list[Expr] = []
    for item in views:
        found.append(item.offset)
        if item.col is not None:
            found.append(item.col)
    return tuple(found)


# by class: these are asked for a million times while a network is written
_CHILDREN: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    Binary: lambda expr: (expr.left, expr.right),
    Negate: lambda expr: (expr.value,),
    Call: lambda expr: expr.args,
    Choice: lambda expr: (expr.cond, expr.then, expr.other),
    Value: lambda expr: _places(expr.source),
}


def subexpressions(expr: Expr) -> Iterator[Expr]:
    """`expr` and everything inside it."""
    yield expr
    for child in children(expr):
        yield from subexpressions(child)


def sized_tensors(exprs: Iterable[Expr]) -> set[str]:
    """Tensors of which the expressions take a size."""
    return {
        item.tensor
        for expr in exprs
        for item in subexpressions(expr)
        if isinstance(item, Dim | Size)
    }


_ROOMY = {kind for kind in _CHILDREN if issubclass(kind, Hashed)}


def _kept(find: Callable[[Expr], tuple[_T, ...]]) -> Callable[[Expr], tuple[_T, ...]]:
    """`find`, asked once for each node that has room for what it found."""
    slot = f"_{find.__name__}"

    @wraps(find)
    def asked(expr: Expr) -> tuple[_T, ...]:
        if type(expr) not in _ROOMY:
            return find(expr)
        try:
            known: tuple[_T, ...] = getattr(expr, slot)
        except AttributeError:
            known = find(expr)
            object.__setattr__(expr, slot, known)
        return known

    return asked


@_kept
def names(expr: Expr) -> tuple[str, ...]:
    """The scalar names that an expression reads, each once."""
    if isinstance(expr, Name):
        return (expr.id,)
    if isinstance(expr, Const):
        return ()
    found: tuple[str, ...] = ()
    for child in children(expr):  # mostly of one or two, and mostly one of them has names
        more = names(child)
        if not found:
            found = more
        elif more and more != found:
            found = tuple(dict.fromkeys(found + more))
    return found


@_kept
def elements(expr: Expr) -> tuple[View, ...]:
    """The buffer elements that an expression reads with value()."""
    found: tuple[View, ...] = (expr.source,) if isinstance(expr, Value) else ()
    for child in children(expr):
        found += elements(child)
    return found


def operands(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that `stmt` itself evaluates; those of nested statements are left out."""
    own = _OPERANDS.get(type(stmt))
    return own(stmt) if own else ()


def _of_copy(stmt: Load | Store) -> tuple[Expr, ...]:
    view = stmt.dst if isinstance(stmt, Load) else stmt.src
    extra = tuple(item for item in (stmt.rows, stmt.pitch, view.col) if item is not None)
    return (stmt.dst.offset, stmt.src.offset, stmt.count, *extra)


_OPERANDS: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    Assign: lambda stmt: (stmt.value,),
    For: lambda stmt: (stmt.start, stmt.stop, stmt.step),
    If: lambda stmt: (stmt.cond,),
    Load: _of_copy,
    Store: _of_copy,
    Split: lambda stmt: (*_places(stmt.dst, stmt.src), stmt.rows, stmt.cols),
    Mmad: lambda stmt: (
        *_places(stmt.dst, *stmt.sources), stmt.m, stmt.n, stmt.k, stmt.accumulate,
    ),
    Op: lambda stmt: (*_places(*stmt.views), *stmt.scalars, stmt.count),
    Combine: lambda stmt: (*_places(stmt.dst, stmt.src), stmt.count),
}  # fmt: skip


def values(stmt: Stmt) -> Iterator[View]:
    """The buffer elements that `stmt` itself reads with value()."""
    for operand in operands(stmt):
        if not isinstance(operand, Const | Name):  # most are, and have none
            yield from elements(operand)


def bodies(stmt: Stmt) -> tuple[Block, ...]:
    """The statement lists directly inside `stmt`."""
    kind = type(stmt)
    if kind is For or kind is Stage:
        return (stmt.body,)  # type: ignore[union-attr]
    return (stmt.then, stmt.orelse) if isinstance(stmt, If) else ()


def statements(block: Block) -> Iterator[Stmt]:
    """Every statement of `block`, nested ones included, in program order."""
    ahead = [iter(block)]  # nested generators hand each statement up level by level
    while ahead:
        for stmt in ahead[-1]:
            yield stmt
            if inner := bodies(stmt):
                ahead += (iter(body) for body in reversed(inner))
                break
        else:
            ahead.pop()


def target(stmt: Stmt) -> str:
    """The variable that `stmt` gives a value; empty for others."""
    match stmt:
        case Assign(name) | For(name):
            return name
        case _:
            return ""


def inner_names(kernel: Kernel) -> set[str]:
    """Names of a kernel's parameters but tensors, of its buffers and of its variables."""
    found = {item.name for item in kernel.scalars} | {item.name for item in kernel.buffers}
    return found | {name for stmt in statements(kernel.body) if (name := target(stmt))}


def tensors(stmt: Stmt) -> tuple[str, ...]:
    """The tensors that `stmt` itself loads from or stores to."""
    match stmt:
        case Load():
            return (stmt.src.tensor,)
        case Store():
            return (stmt.dst.tensor,)
        case Combine():
            return (stmt.scratch,)
        case _:
            return ()


def mentioned(block: Block) -> Iterator[str]:
    """Names of the buffers that `block` touches, with repetitions, in program order."""
    for stmt in statements(block):
        match stmt:
            case Load():
                yield stmt.dst.buffer
            case Store():
                yield stmt.src.buffer
            case Combine() | Split():
                yield from (stmt.dst.buffer, stmt.src.buffer)
            case Mmad(dst):
                yield from (view.buffer for view in (dst, *stmt.sources))
            case Op():
                yield from (view.buffer for view in stmt.views)
            case Alloc(buffer) | Deque(buffer):
                yield buffer
        yield from (view.buffer for view in values(stmt))


def names_read(block: Block) -> set[str]:
    """The scalar names that `block` reads, nested statements included."""
    return {name for stmt in statements(block) for expr in operands(stmt) for name in names(expr)}


def line_of(stmt: Stmt) -> int:
    """The line of a statement in the text; 0 where a pass made it."""
    return getattr(stmt, "line", 0)
