"""Buffers of a kernel that is one of several versions, by a test of its parameters.

One launch runs one version, so each has the unified buffer to itself: its buffers are made where
the test says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npusmith.ir.nodes import Buffer, If, Note, Program
from npusmith.ir.walk import Block, mentioned, names, values

_MANY = 3  # times as many buffers, at least, as both sides share: e.g. one that combines cores


@dataclass(frozen=True, slots=True)
class Branches:
    """`buffers` of one version; of several, each side of `test` has its own."""

    body: Block
    buffers: tuple[Buffer, ...]
    test: If | None = None
    sides: tuple[Branches, ...] = ()

    def versions(self) -> Iterator[tuple[Block, tuple[Buffer, ...]]]:
        """The statements of each version, and its buffers, all together."""
        if not self.sides:
            yield self.body, self.buffers
        for side in self.sides:
            for body, buffers in side.versions():
                yield body, (*self.buffers, *buffers)

    def paths(self) -> Iterator[tuple[Buffer, ...]]:
        """The buffers of each version."""
        return (buffers for _, buffers in self.versions())


def branches(program: Program) -> Branches:
    """The versions of the kernel: its body is a test of parameters, and little is on both sides.

    before: `x = ub(..)  y = ub(..)  z = ub(..)  if brief == 1: (uses x, z)  else: (uses y, z)`
    after:  `z`, and `x` where brief is 1, `y` elsewhere
    """
    kernel = program.kernel
    known = {item.name for item in kernel.scalars} | {name for name, _ in program.consts}
    return _branches(kernel.body, kernel.buffers, known)


def _branches(block: Block, buffers: Sequence[Buffer], known: set[str]) -> Branches:
    test = _test(block, known)
    if test is None:
        return Branches(block, tuple(buffers))
    first, second = (set(mentioned(side)) for side in (test.then, test.orelse))
    if len(first & second) * _MANY > min(len(first), len(second)):
        return Branches(block, tuple(buffers))
    sides = (
        _branches(test.then, [item for item in buffers if item.name in first - second], known),
        _branches(test.orelse, [item for item in buffers if item.name in second - first], known),
    )
    rest = tuple(item for item in buffers if item.name not in first ^ second)
    return Branches(block, rest, test, sides)


def _test(block: Block, known: set[str]) -> If | None:
    """The test that is all of a block."""
    match [stmt for stmt in block if not isinstance(stmt, Note)]:
        case [If(cond, _, orelse) as test] if orelse and set(names(cond)) <= known:
            return None if list(values(test)) else test
    return None
