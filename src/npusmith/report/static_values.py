"""What is known of a kernel's numbers before it runs: from its launch, for one core."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from npusmith.errors import LangError
from npusmith.ir.nodes import (
    Assign,
    CoreCount,
    CoreId,
    Expr,
    For,
    If,
    Name,
    Note,
    Program,
    Stmt,
)
from npusmith.ir.walk import Block, statements, subexpressions, target
from npusmith.lang.interp import Launched
from npusmith.lang.scalars import Scalar, Scalars

_UNKNOWN = LangError("lang-unknown-name", "read from a buffer while the kernel runs")


class StaticValues:
    """The variables of one core, as far as they follow from the launch and its number."""

    def __init__(self, program: Program, launched: Launched, core: int = 0) -> None:
        self.names: dict[str, Scalar] = _numbers(program.consts) | dict(launched.args)
        self._core, self._cores = core, launched.cores
        self._of_core: set[Expr] = {CoreId(), CoreCount()}  # what differs from core to core
        self._scalars = Scalars(self.names, self._leaf, LangError)

    def value(self, expr: Expr) -> Scalar | None:
        """Its value; None where it depends on data."""
        try:
            return self._scalars.value(expr)
        except (LangError, ArithmeticError):
            return None

    def turns(self, loop: For) -> range | None:
        """The values of a loop's variable; None where they depend on data."""
        start, stop, step = (self.value(item) for item in (loop.start, loop.stop, loop.step))
        if type(start) is not int or type(stop) is not int or type(step) is not int or step < 1:
            return None
        return range(start, stop, step)

    def assign(self, stmt: Assign) -> None:
        """Takes the variable's new value over; one that is not known is forgotten."""
        if self._differs(stmt.value):
            self._of_core.add(Name(stmt.target))
        self._set(stmt.target, self.value(stmt.value))

    def forget(self, block: Block) -> None:
        """What statements that were not followed may have changed."""
        for stmt in statements(block):
            if name := target(stmt):
                self._set(name, None)

    def enter(self, loop: For) -> None:
        """The loop's variable in its first turn."""
        turns = self.turns(loop)
        self._set(loop.var, turns[0] if turns else None)

    def taken(self, stmt: If) -> Block | None:
        """The side of a test that runs; None where that depends on data."""
        cond = self.value(stmt.cond)
        return None if cond is None else stmt.then if cond else stmt.orelse

    def is_dealt(self, loop: For) -> bool:
        """Are the loop's turns dealt to the cores: does where it starts or stops differ?"""
        return self._differs(loop.start) or self._differs(loop.stop)

    def _differs(self, expr: Expr) -> bool:
        return any(item in self._of_core for item in subexpressions(expr))

    def _set(self, name: str, value: Scalar | None) -> None:
        if value is None:
            self.names.pop(name, None)
        else:
            self.names[name] = value

    def _leaf(self, expr: Expr) -> Scalar:
        match expr:
            case CoreId():
                return self._core
            case CoreCount():
                return self._cores
            case _:
                raise _UNKNOWN


def _dealt(block: Block, known: StaticValues) -> tuple[For, range] | None:
    """The first loop outside of any other whose turns are dealt to the cores, and this core's."""
    for stmt in block:
        match stmt:
            case Assign():
                known.assign(stmt)
            case If():
                side = known.taken(stmt)
                if side is None:
                    known.forget((stmt,))
                elif found := _dealt(side, known):
                    return found
            case For() if known.is_dealt(stmt):
                turns = known.turns(stmt)
                return None if turns is None else (stmt, turns)
            case _:
                known.forget((stmt,))
    return None


def runs(program: Program, launched: Launched) -> Block:
    """The statements of the version of a kernel that this launch takes."""
    known, block = StaticValues(program, launched), program.kernel.body
    while len(tests := _statements(block)) == 1 and isinstance(tests[0], If):
        side = known.taken(tests[0])
        if side is None:
            break
        block = side
    return block


def _statements(block: Block) -> list[Stmt]:
    return [stmt for stmt in block if not isinstance(stmt, Note)]


def shares(program: Program, launched: Launched) -> tuple[str, tuple[int, ...]]:
    """The variable of the loop that is dealt to the cores, and each core's turns of it.

    "" and nothing where no loop is, or where it depends on data.
    """
    block, found = runs(program, launched), []
    var = ""
    for core in range(launched.cores):
        item = _dealt(block, StaticValues(program, launched, core))
        if item is None or (var and item[0].var != var):
            return "", ()
        var = item[0].var
        found.append(len(item[1]))
    return var, tuple(found)


def _numbers(consts: Iterable[tuple[str, int | float]]) -> dict[str, Scalar]:
    return {
        name: np.float32(value) if isinstance(value, float) else value for name, value in consts
    }


def constants(values: Mapping[str, Scalar]) -> dict[str, float]:
    """Launch values as plain numbers."""
    return {
        name: int(value) if isinstance(value, int) else float(value)
        for name, value in values.items()
    }
