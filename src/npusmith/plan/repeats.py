"""Statements that repeat become a loop: the turns of an iteration, which a graph has unrolled."""

from __future__ import annotations

from dataclasses import replace

from npusmith.ir.nodes import Const, For, If, Stage, StageKind, Stmt
from npusmith.plan.scalars import ONE, ZERO

_TURN = "turn"
_WORTH = 4  # statements that a loop saves


def rolled(block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The same with the longest repetition of each computing stage as a loop."""
    return tuple(_inside(stmt) for stmt in _joined(block))


def _inside(stmt: Stmt) -> Stmt:
    match stmt:
        case Stage(StageKind.COMPUTE):
            return replace(stmt, body=_rolled(stmt.body))
        case For():
            return replace(stmt, body=rolled(stmt.body))
        case If():
            return replace(stmt, then=rolled(stmt.then), orelse=rolled(stmt.orelse))
        case _:
            return stmt


def _joined(block: tuple[Stmt, ...]) -> list[Stmt]:
    """Computing stages that follow one another as one."""
    found: list[Stmt] = []
    for stmt in block:
        match (found[-1] if found else None), stmt:
            case Stage(StageKind.COMPUTE, before), Stage(StageKind.COMPUTE, body):
                found[-1] = Stage(StageKind.COMPUTE, (*before, *body))
            case _:
                found.append(stmt)
    return found


def _rolled(steps: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    saved, start, period, times = 0, 0, 0, 0
    for first in range(len(steps)):
        for size in range(1, (len(steps) - first) // 2 + 1):
            turns = 1
            body = steps[first : first + size]
            while steps[first + turns * size : first + (turns + 1) * size] == body:
                turns += 1
            if (turns - 1) * size > saved:
                saved, start, period, times = (turns - 1) * size, first, size, turns
    if saved < _WORTH:
        return steps
    loop = For(_TURN, ZERO, Const(times), ONE, steps[start : start + period])
    return (*steps[:start], loop, *steps[start + times * period :])
