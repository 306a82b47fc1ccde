"""Other names for buffers, in statements and in the scalars that they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from npusmith.ir.nodes import (
    Assign,
    Binary,
    Call,
    Choice,
    Combine,
    Expr,
    For,
    If,
    Load,
    Negate,
    Op,
    Stage,
    Stmt,
    Store,
    Value,
    View,
)
from npusmith.ir.rebuild import with_bodies
from npusmith.ir.walk import Block, bodies, elements

Rename = Callable[[str], str]


def renamed(block: Block, names: Mapping[str, str]) -> Block:
    """The same statements, where some buffers have other names; what does not name them is kept."""
    if not names:
        return block
    return _all(block, lambda name: names.get(name, name))


def _all(block: Block, name: Rename) -> Block:
    return tuple(_rename(stmt, name) for stmt in block)


def _rename(stmt: Stmt, name: Rename) -> Stmt:
    match stmt:
        case Assign(_, value):
            new = _expr(value, name)
            return stmt if new is value else replace(stmt, value=new)
        case For() | Stage() | If():
            return with_bodies(stmt, tuple(_all(body, name) for body in bodies(stmt)))
        case Load():
            dst = _view(stmt.dst, name)
            return stmt if dst is stmt.dst else replace(stmt, dst=dst)
        case Store():
            src = _view(stmt.src, name)
            return stmt if src is stmt.src else replace(stmt, src=src)
        case Op():
            views = tuple(_view(view, name) for view in stmt.views)
            scalars = tuple(_expr(item, name) for item in stmt.scalars)
            before = (*stmt.views, *stmt.scalars)
            if all(new is old for new, old in zip((*views, *scalars), before, strict=True)):
                return stmt
            return replace(stmt, views=views, scalars=scalars)
        case Combine():
            return replace(stmt, dst=_view(stmt.dst, name), src=_view(stmt.src, name))
        case _:
            return stmt


def _view(view: View, name: Rename) -> View:
    buffer, offset = name(view.buffer), _expr(view.offset, name)
    return view if buffer == view.buffer and offset is view.offset else View(buffer, offset)


def _expr(expr: Expr, name: Rename) -> Expr:
    if not elements(expr):
        return expr
    match expr:
        case Value(source):
            return Value(_view(source, name))
        case Binary():
            return replace(expr, left=_expr(expr.left, name), right=_expr(expr.right, name))
        case Negate(value):
            return Negate(_expr(value, name))
        case Call():
            return replace(expr, args=tuple(_expr(item, name) for item in expr.args))
        case Choice():
            return Choice(_expr(expr.cond, name), _expr(expr.then, name), _expr(expr.other, name))
        case _:
            return expr
