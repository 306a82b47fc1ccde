"""Which families of operators are for training, validation and test: decided before any draw.

A module of the training split is drawn from training families alone. One of another split may hold
lines of any family, and holds at least one of a family of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from npusmith.train.corpus.sample import Split
from npusmith.train.modules.draw import Module, Op
from npusmith.train.modules.ops import TABLE

HELD = {Split.TEST: ("scans", "pooling"), Split.VALIDATION: ("sorting",)}
_EVERY = 20  # blocks of modules: one of these is for validation, two are for test


def split_of(block: int) -> Split:
    """Of a block of modules, by its number."""
    place = block % _EVERY
    return Split.VALIDATION if place == 19 else Split.TEST if place in (7, 13) else Split.TRAIN


def table_for(split: Split) -> Sequence[Op]:
    """The rows that modules of a split are drawn from."""
    hidden = [name for other, names in HELD.items() if other is not split for name in names]
    return [row for row in TABLE if row.family not in hidden]


def belongs(module: Module, split: Split) -> bool:
    """Whether the module, as it is returned, is one of that split."""
    own = HELD.get(split)
    return own is None or bool(set(own) & {line.family for line in module.lines})


def family_of(module: Module) -> str:
    """The families of its lines."""
    return "+".join(sorted({line.family for line in module.lines})) or "none"
