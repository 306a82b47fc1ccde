"""The source `modules`: blocks of random modules, and all samples that each of them gives."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator

from npusmith.errors import NpusmithError
from npusmith.target.chips import Chip
from npusmith.train.corpus.diagnostics import broken_programs
from npusmith.train.corpus.edits import other_chip, other_type, scheduled_edits
from npusmith.train.corpus.families import belongs, split_of, table_for
from npusmith.train.corpus.programs import ascend_c, code, other_schedules, scheduled
from npusmith.train.corpus.reasoning import reasoning
from npusmith.train.corpus.sample import Sample, Split
from npusmith.train.corpus.subject import Dropped, open_subject
from npusmith.train.modules.case import Crash, Late, Unfit, Wrong
from npusmith.train.modules.draw import Module, draw
from npusmith.train.modules.on_twin import is_chosen

BLOCK = 4  # modules of a unit
_TYPES = 3  # one of so many modules is written for float16 as well
_LINES = 5  # of a module, at most: longer ones take minutes of the compiler, and make long programs
_DRAWS = 60  # for one module of a split that only some draws belong to


def block(seed: int, number: int, chip: Chip, twin: float) -> tuple[list[Sample], Counter[str]]:
    """Samples of a block, and what became of its modules and their mutants."""
    outcomes: Counter[str] = Counter()
    samples: list[Sample] = []
    split = split_of(number)
    for place in range(BLOCK):
        module = _module(seed, number * BLOCK + place, split)
        if module is None:
            outcomes["not of this split"] += 1
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                samples += list(_samples(module, split, chip, twin, outcomes))
            outcomes["module right"] += 1
        except Dropped as error:
            outcomes[f"module {error}"] += 1
        except NpusmithError as error:
            outcomes[f"module {error.code}"] += 1
        except (Wrong, Crash, Unfit, Late, MemoryError, RecursionError) as error:
            outcomes[f"module {type(error).__name__.lower()}"] += 1
    return samples, outcomes


def _module(seed: int, number: int, split: Split) -> Module | None:
    """That number's, or the first after it, far away, that is short and of this split."""
    for at in range(_DRAWS):
        module = draw(seed, number + at * 10_000_019, table_for(split))
        if 0 < len(module.lines) <= _LINES and belongs(module, split):
            return module
    return None


def _samples(
    module: Module, split: Split, chip: Chip, twin: float, outcomes: Counter[str]
) -> Iterator[Sample]:
    subject = open_subject(module, split, chip)
    yield from code(subject)
    others = other_schedules(subject)
    for written in (subject.first, *others):
        yield from reasoning(subject, written)
    outcomes["schedule right"] += len(others)
    yield from scheduled(subject, others)
    yield from scheduled_edits(subject, others)
    yield from broken_programs(subject, outcomes)
    yield from other_chip(subject)
    if module.number % _TYPES == 0:
        yield from other_type(subject, chip)
    if is_chosen(module.seed, module.number, twin):
        said, found = ascend_c(subject)
        outcomes[said] += 1
        yield from found
