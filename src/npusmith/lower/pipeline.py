"""The passes from tile program to what is emitted, in order."""

from __future__ import annotations

from collections.abc import Callable

from npusmith.ir.launches import each_kernel, joined
from npusmith.ir.nodes import Program
from npusmith.lower.double_buffer import double_buffer
from npusmith.lower.insert_queues import insert_queues
from npusmith.lower.insert_sync import insert_sync
from npusmith.lower.normalize import normalize
from npusmith.lower.pad_copies import pad_copies
from npusmith.lower.place_buffers import place_buffers
from npusmith.lower.share_queues import share_queues
from npusmith.lower.split_combine import split_combine
from npusmith.lower.spread_banks import spread_banks
from npusmith.target.chips import Chip

# Passes see one kernel at a time.
Pass = Callable[[Program, Chip], Program]
Watch = Callable[[str, Program], None]

PIPELINE: tuple[Pass, ...] = (
    normalize,
    split_combine,
    place_buffers,
    share_queues,
    insert_queues,
    pad_copies,
    double_buffer,
    spread_banks,
    insert_sync,
)


def lower(program: Program, chip: Chip, watch: Watch | None = None) -> Program:
    """All passes, one after another; `watch` sees the name of each and what it returned."""
    for step in PIPELINE:
        program = joined([step(part, chip) for part in each_kernel(program)], program)
        if watch is not None:
            watch(step.__name__, program)
    return program
