"""What expressions read, kept: the writer asks the same ones again and again (ir/walk.py)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from npusmith.ir import walk
from npusmith.ir.nodes import Expr, Stmt, Value, View

_KEPT = 1 << 16


@lru_cache(maxsize=_KEPT)
def names(expr: Expr) -> tuple[str, ...]:
    """The scalar names that an expression reads, each once."""
    return tuple(dict.fromkeys(walk.names(expr)))


@lru_cache(maxsize=_KEPT)
def elements(expr: Expr) -> tuple[View, ...]:
    """The buffer elements that an expression reads with value()."""
    found = walk.subexpressions(expr)
    return tuple(item.source for item in found if isinstance(item, Value))


def values(stmt: Stmt) -> Iterator[View]:
    """The buffer elements that a statement itself reads with value()."""
    return (view for operand in walk.operands(stmt) for view in elements(operand))
