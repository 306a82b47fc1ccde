"""Rebuilding the nodes of a kernel with some of their parts replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import is_
from typing import Any, TypeVar

from npusmith.ir.nodes import (
    Assign,
    Binary,
    Call,
    Choice,
    Combine,
    Expr,
    For,
    Host,
    If,
    Launch,
    Load,
    Mmad,
    Name,
    Negate,
    Op,
    Program,
    Span,
    Split,
    Stage,
    Stmt,
    Store,
    Value,
    View,
)
from npusmith.ir.walk import Block, bodies

Rewrite = Callable[[Expr], Expr]
_T = TypeVar("_T")


def map_children(expr: Expr, fn: Rewrite) -> Expr:
    """`expr` with `fn` applied to what is directly inside it; itself if nothing changed."""
    match expr:
        case Binary(op, left, right):
            one, two = fn(left), fn(right)
            return expr if one is left and two is right else Binary(op, one, two)
        case Negate(value):
            fresh = fn(value)
            return expr if fresh is value else Negate(fresh)
        case Call(name, args):
            made = _each(args, fn)
            return expr if made is args else Call(name, made)
        case Choice(cond, then, other):
            test, one, two = fn(cond), fn(then), fn(other)
            same = test is cond and one is then and two is other
            return expr if same else Choice(test, one, two)
        case Value(source):
            view = _view(source, fn)
            return expr if view is source else Value(view)
        case _:
            return expr


def map_operands(stmt: Stmt, fn: Rewrite) -> Stmt:
    """`stmt` with `fn` applied to the expressions that it evaluates itself.

    Itself if nothing changed: what was found of its expressions before stays known.
    """
    match stmt:
        case Assign():
            return _with(stmt, value=fn(stmt.value))
        case For():
            return _with(stmt, start=fn(stmt.start), stop=fn(stmt.stop), step=fn(stmt.step))
        case If():
            return _with(stmt, cond=fn(stmt.cond))
        case Load():
            return _with(
                stmt,
                dst=_view(stmt.dst, fn),
                src=_span(stmt.src, fn),
                count=fn(stmt.count),
                rows=_maybe(stmt.rows, fn),
                pitch=_maybe(stmt.pitch, fn),
            )
        case Store():
            return _with(
                stmt,
                dst=_span(stmt.dst, fn),
                src=_view(stmt.src, fn),
                count=fn(stmt.count),
                rows=_maybe(stmt.rows, fn),
                pitch=_maybe(stmt.pitch, fn),
            )
        case Split():
            return _with(
                stmt,
                dst=_view(stmt.dst, fn),
                src=_view(stmt.src, fn),
                rows=fn(stmt.rows),
                cols=fn(stmt.cols),
            )
        case Mmad():
            return _with(
                stmt,
                dst=_view(stmt.dst, fn),
                left=_view(stmt.left, fn),
                right=_view(stmt.right, fn),
                m=fn(stmt.m),
                n=fn(stmt.n),
                k=fn(stmt.k),
                accumulate=fn(stmt.accumulate),
                bias=None if stmt.bias is None else _view(stmt.bias, fn),
            )
        case Op():
            return _with(
                stmt,
                views=_each(stmt.views, lambda view: _view(view, fn)),
                scalars=_each(stmt.scalars, fn),
                count=fn(stmt.count),
            )
        case Combine():
            return _with(
                stmt, dst=_view(stmt.dst, fn), src=_view(stmt.src, fn), count=fn(stmt.count)
            )
        case _:
            return stmt


def with_bodies(stmt: Stmt, new: tuple[Block, ...]) -> Stmt:
    """`stmt` with other statement lists, in the order of bodies(); itself if none changed."""
    old = bodies(stmt)
    if all(
        len(one) == len(two) and all(map(is_, one, two)) for one, two in zip(old, new, strict=True)
    ):
        return stmt
    match stmt:
        case For() | Stage():
            return replace(stmt, body=new[0])
        case If():
            return replace(stmt, then=new[0], orelse=new[1])
        case _:
            return stmt


def map_blocks(block: Block, fn: Callable[[Block], Block]) -> Block:
    """`fn` over every statement list, innermost first."""
    inner = tuple(
        with_bodies(stmt, tuple(map_blocks(body, fn) for body in bodies(stmt))) for stmt in block
    )
    return fn(inner)


def map_statements(block: Block, fn: Callable[[Stmt], Stmt]) -> Block:
    """`fn` over every statement, nested ones first."""
    return map_blocks(block, lambda items: tuple(fn(item) for item in items))


def map_host(host: Host, fn: Rewrite) -> Host:
    """`fn` over the expressions of the host function: assignments, cores, what is launched with."""
    launches = tuple(map_launch(item, fn) for item in host.launches)
    return replace(
        host, body=tuple(map_operands(stmt, fn) for stmt in host.body), launches=launches
    )


def map_launch(launch: Launch, fn: Rewrite) -> Launch:
    """`fn` over the expressions of a launch."""
    loop = launch.loop
    return replace(
        launch,
        cores=fn(launch.cores),
        args=tuple((name, fn(value)) for name, value in launch.args),
        parts=tuple(
            (name, replace(part, start=fn(part.start), length=fn(part.length)))
            for name, part in launch.parts
        ),
        loop=loop and replace(loop, start=fn(loop.start), stop=fn(loop.stop)),
    )


def renamed(expr: Expr, new: Mapping[str, str]) -> Expr:
    """The same expression over other names of variables and buffers."""
    match expr:
        case Name(name):
            return Name(new[name]) if name in new else expr
        case Value(View(buffer)):
            inner = map_children(expr, lambda item: renamed(item, new))
            assert isinstance(inner, Value)
            return Value(replace(inner.source, buffer=new[buffer])) if buffer in new else inner
        case _:
            return map_children(expr, lambda item: renamed(item, new))


def with_names(stmt: Stmt, new: Mapping[str, str]) -> Stmt:
    """The same statement over other names of variables, buffers and tensors."""

    def called(name: str) -> str:
        return new.get(name, name)

    def view(item: View) -> View:
        return replace(item, buffer=new[item.buffer]) if item.buffer in new else item

    def span(item: Span) -> Span:
        return replace(item, tensor=new[item.tensor]) if item.tensor in new else item

    stmt = map_operands(stmt, lambda expr: renamed(expr, new))
    match stmt:
        case Assign(target):
            return _with(stmt, target=called(target))
        case For(var):
            return _with(stmt, var=called(var))
        case Load(dst, src):
            return _with(stmt, dst=view(dst), src=span(src))
        case Store(dst, src):
            return _with(stmt, dst=span(dst), src=view(src))
        case Combine(_, dst, src, scratch):
            return _with(stmt, dst=view(dst), src=view(src), scratch=called(scratch))
        case Op(_, views):
            return _with(stmt, views=_each(views, view))
        case Split(dst, src):
            return _with(stmt, dst=view(dst), src=view(src))
        case Mmad(dst, left, right, bias=bias):
            bias = None if bias is None else view(bias)
            return _with(stmt, dst=view(dst), left=view(left), right=view(right), bias=bias)
        case _:
            return stmt


def with_body(program: Program, body: Block) -> Program:
    """The program with another kernel body."""
    return replace(program, kernels=(replace(program.kernel, body=body),))


def _view(view: View, fn: Rewrite) -> View:
    offset, col = fn(view.offset), _maybe(view.col, fn)
    return view if offset is view.offset and col is view.col else View(view.buffer, offset, col)


def _span(span: Span, fn: Rewrite) -> Span:
    offset = fn(span.offset)
    return span if offset is span.offset else Span(span.tensor, offset)


def _each(items: tuple[_T, ...], fn: Callable[[_T], _T]) -> tuple[_T, ...]:
    """`fn` over all of them; the same tuple if nothing changed."""
    new = tuple(map(fn, items))
    return items if all(map(is_, items, new)) else new


def _with(stmt: Stmt, **new: Any) -> Stmt:
    """`stmt` with other fields; itself if they are the same."""
    if all(getattr(stmt, name) is value for name, value in new.items()):
        return stmt
    return replace(stmt, **new)


def _maybe(expr: Expr | None, fn: Rewrite) -> Expr | None:
    return None if expr is None else fn(expr)
