"""Versions of a kernel for axes that are short as captured, in front of the one for all sizes.

Long rows that stay on chip (resident_rows.py), small matrices in tiles (interleaved_tiles.py), or
many rows in a tile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from npusmith.errors import PlanError
from npusmith.ir.nodes import Choice, Expr, Load, Program, Store
from npusmith.ir.walk import names, statements
from npusmith.lang.budget import bytes_of
from npusmith.plan.read import Meaning
from npusmith.plan.scalars import parts_of
from npusmith.plan.short_axes import write_interleaved, write_resident, write_short
from npusmith.plan.versions import Version
from npusmith.plan.views import atoms_of
from npusmith.target.chips import Chip


def short_version(meaning: Meaning, name: str, chip: Chip, many: Sequence[Expr]) -> Version | None:
    """The first that takes the graph. `many`: tests that rows are many, where they are short.

    None also where an output has no elements as captured: there is nothing to be quick at.
    """
    if not all(leaf.size for out in meaning.outputs for leaf in atoms_of(out.dims)):
        return None
    with contextlib.suppress(PlanError):  # refused: another serves the graph
        if (resident := write_resident(meaning, name, chip)) is not None:
            return resident
    found = _twice(write_interleaved, meaning, name, chip)
    if found is None and many:
        found = _twice(partial(write_short, many), meaning, name, chip)
    return found


def _twice(
    write: Callable[[Meaning, str, Chip], Version | None], meaning: Meaning, name: str, chip: Chip
) -> Version | None:
    """With room for two of every buffer that is loaded or stored.

    None also where it is refused: the version for all sizes serves the graph.
    """
    room = chip.ub_bytes
    while room > 0:
        small = replace(chip, ub_total_bytes=chip.ub_reserved_bytes + room)
        try:
            found = write(meaning, name, small)
        except PlanError:
            return None
        over = 0 if found is None else _bytes(found.program, chip) - chip.ub_bytes
        if over <= 0:
            return found
        room -= over
    return None


def _bytes(program: Program, chip: Chip) -> int:
    """What its buffers take, those twice that are loaded or stored."""
    moved = [item for item in statements(program.kernel.body) if isinstance(item, Load | Store)]
    queued = {item.dst.buffer if isinstance(item, Load) else item.src.buffer for item in moved}
    consts = dict(program.consts)
    return sum(
        bytes_of(item, consts, chip) * (1 + (item.name in queued))
        for item in program.kernel.buffers
    )


def served(version: Version) -> tuple[Expr, ...] | None:
    """The sizes that a version serves, as conditions of the operator where it is the only one.

    None where they are more than sizes of inputs.
    """
    found: list[Expr] = []
    for value in (version.host or {}).values():
        match value:
            case Choice(test) if not any(True for _ in names(test)):
                found += parts_of(test)
            case _:
                return None
    return tuple(found)
