"""Time of a program that a model wrote, from its text: `static_us(program, shapes, chip)`.

The estimate behind it (plan/estimate.py) takes each loop in its middle, and what stands in a buffer
for 1. A program that wants to look fast would do its work in the first step of a loop, or as often
as a value says. So of a branch that depends on a loop's variable both sides count, and a program
whose loops, branches or counts follow from values, or from `a if c else b` over a loop's variable,
has no time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from npusmith.errors import LangError
from npusmith.ir.nodes import Assign, Choice, CoreId, Expr, For, If, Op, Program, Stmt
from npusmith.ir.rebuild import map_blocks
from npusmith.ir.walk import Block, bodies, elements, names, operands, subexpressions
from npusmith.plan.estimate import estimate
from npusmith.target.chips import Chip

Shape = tuple[int, ...]


def static_us(program: Program, shapes: Mapping[str, Shape], chip: Chip) -> float | None:
    """Microseconds at these shapes; None where the text does not tell."""
    if any(follows_values(item.body) or chooses(item.body) for item in program.kernels):
        return None
    kernels = tuple(replace(item, body=_both_sides(item.body)) for item in program.kernels)
    try:
        return estimate(replace(program, kernels=kernels), shapes, chip)
    except (LangError, ArithmeticError, ValueError):
        return None


def follows_values(block: Block) -> bool:
    """Whether how often something happens, or how much of it, follows from elements of buffers."""
    tainted: set[str] = set()
    while True:
        before = len(tainted)
        decided = _follow(block, tainted)
        if decided or len(tainted) == before:
            return decided


def _follow(block: Block, tainted: set[str]) -> bool:
    """Adds variables that follow from values; True when something is decided by one."""
    for stmt in block:
        match stmt:
            case Assign(target, value):
                if _is_tainted(value, tainted):
                    tainted.add(target)
            case Op(views=views, count=count):  # what it computes with may be a value
                sizes = [count, *(view.offset for view in views)]
                if any(_is_tainted(item, tainted) for item in sizes):
                    return True
            case _:
                if any(_is_tainted(item, tainted) for item in operands(stmt)):
                    return True
        if any(_follow(body, tainted) for body in bodies(stmt)):
            return True
    return False


def _is_tainted(expr: Expr, tainted: set[str]) -> bool:
    return bool(elements(expr)) or not tainted.isdisjoint(names(expr))


def chooses(block: Block) -> bool:
    """Whether a count or a bound is one number in one step of a loop and another in the next."""
    varying = _varying(block)

    def found(items: Block) -> bool:
        return any(
            any(
                isinstance(inner, Choice) and _varies(inner.cond, varying)
                for expr in operands(item)
                for inner in subexpressions(expr)
            )
            or any(map(found, bodies(item)))
            for item in items
        )

    return found(block)


def _both_sides(block: Block) -> Block:
    """With both sides of branches that not every step of a loop, or every core, takes alike."""
    varying = _varying(block)
    return map_blocks(block, lambda items: _flat(items, varying))


def _flat(items: Block, varying: set[str]) -> Block:
    found: list[Stmt] = []
    for item in items:
        if isinstance(item, If) and _varies(item.cond, varying):
            found += [*item.then, *item.orelse]
        else:
            found.append(item)
    return tuple(found)


def _varying(block: Block) -> set[str]:
    """Variables of loops, and those that follow from them or from the core's number."""
    found: set[str] = set()
    while True:
        before = len(found)
        _collect(block, found)
        if len(found) == before:
            return found


def _collect(block: Block, found: set[str]) -> None:
    for stmt in block:
        if isinstance(stmt, For):
            found.add(stmt.var)
        elif isinstance(stmt, Assign) and _varies(stmt.value, found):
            found.add(stmt.target)
        for body in bodies(stmt):
            _collect(body, found)


def _varies(expr: Expr, varying: set[str]) -> bool:
    if not varying.isdisjoint(names(expr)):
        return True
    return any(isinstance(item, CoreId) for item in subexpressions(expr))
