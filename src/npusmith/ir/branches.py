"""Buffers of a kernel that is one of several versions, by a test of its parameters.

One launch runs one version, so each has the unified buffer to itself: its buffers are made where
the test says so. Only what all versions use is made before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npusmith.ir.nodes import Buffer, If, Note, Program
from npusmith.ir.walk import Block, mentioned, names, values


@dataclass(frozen=True, slots=True)
class Branches:
    """`buffers` of all versions, then those of each side of `test` besides."""

    buffers: tuple[Buffer, ...]
    test: If | None = None
    sides: tuple[Branches, ...] = ()

    def paths(self) -> Iterator[tuple[Buffer, ...]]:
        """The buffers of each version, all together."""
        if not self.sides:
            yield self.buffers
        for side in self.sides:
            for path in side.paths():
                yield (*self.buffers, *path)


def branches(program: Program) -> Branches:
    """The versions of the kernel: its body is a test of parameters with statements on both sides.

    before: `x = ub(..)  y = ub(..)  if brief == 1: (uses x)  else: (uses y)`
    after:  nothing of both, `x` where brief is 1, `y` elsewhere
    """
    kernel = program.kernel
    known = {item.name for item in kernel.scalars} | {name for name, _ in program.consts}
    return _branches(kernel.body, kernel.buffers, known)


def _branches(block: Block, buffers: Sequence[Buffer], known: set[str]) -> Branches:
    test = _test(block, known)
    if test is None:
        return Branches(tuple(buffers))
    both = set.intersection(*_used(block, known))
    first, second = (set(mentioned(side)) - both for side in (test.then, test.orelse))
    sides = (
        _branches(test.then, [item for item in buffers if item.name in first], known),
        _branches(test.orelse, [item for item in buffers if item.name in second], known),
    )
    before = tuple(item for item in buffers if item.name not in first | second)
    return Branches(before, test, sides)


def _used(block: Block, known: set[str]) -> list[set[str]]:
    """The buffers that each version uses."""
    test = _test(block, known)
    if test is None:
        return [set(mentioned(block))]
    return [*_used(test.then, known), *_used(test.orelse, known)]


def _test(block: Block, known: set[str]) -> If | None:
    """The test that is all of a block."""
    match [stmt for stmt in block if not isinstance(stmt, Note)]:
        case [If(cond, _, orelse) as test] if orelse and set(names(cond)) <= known:
            return None if list(values(test)) else test
    return None
