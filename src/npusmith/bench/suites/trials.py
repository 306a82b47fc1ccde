"""What a reference gives, kept for all candidates of its item: `make_trials(order) -> Prepared`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from npusmith.bench.suites.sliced import ENDS, Ends
from npusmith.errors import TwinError
from npusmith.task.files import read_plain
from npusmith.task.load import GROUPS, INPUTS, Task
from npusmith.task.prepared import Prepared
from npusmith.task.references import code_digest, keep_folder, keep_references
from npusmith.task.trials import Limits, Sets, make_orders, run_child
from npusmith.task.wire import Calling

_REFERENCE_SLICED = "npusmith.bench.suites.sliced_reference"
_RECORD_BYTES = 64 << 20
_FILE_BYTES = 4 << 30
_TIMES = 4  # a candidate's seconds: several sets, each in float64 too


@dataclass(frozen=True, slots=True)
class Order:
    """Which reference, and how it is called."""

    path: str  # what the text may read lies beside this file
    text: str
    seed: int  # of the model
    seeds: tuple[int, ...]  # of the trials
    training: bool
    most_bytes: int = 0  # of the inputs of a case; larger ones are skipped
    more: bool = False  # values that kernels get wrong (edges.py), however large the inputs are
    bounded: tuple[str, ...] = ()  # sets that get error bounds, however long that takes

    @property
    def task(self) -> Task:
        return task_of(self.path, self.text)

    @property
    def calling(self) -> Calling:
        return Calling(
            training=self.training, most_bytes=self.most_bytes, more=self.more,
            bounded=self.bounded,
        )  # fmt: skip


def task_of(path: str, text: str) -> Task:
    """A suite's reference as a task."""
    return Task(
        path=Path(path), name=Path(path).stem, text=text,
        digest=hashlib.sha256(text.encode()).hexdigest(), summary="",
        has_inputs=INPUTS in text, has_groups=GROUPS in text,
    )  # fmt: skip


def limits_of(seconds: float, memory_mb: float) -> Limits:
    """Those of a reference, which is made once for all candidates; `seconds` is a candidate's."""
    return Limits(_TIMES * seconds, int(memory_mb * (1 << 20)), _FILE_BYTES)


def make_trials(order: Order, *, seconds: float, memory_mb: float) -> Prepared:
    """Run the reference in the sandbox, or take what an earlier run left in the cache.

    Raises TaskError: the task's own failure, or how its process ended.
    """
    found = keep_references(
        order.task,
        limits=limits_of(seconds, memory_mb),
        sets=Sets(seeds=order.seeds, model_seed=order.seed, calling=order.calling),
    )
    if found is None:
        raise TwinError("cache-unusable", "the references were removed while they were read")
    return found


def make_ends(order: Order, *, seconds: float, memory_mb: float) -> tuple[Path, Ends]:
    """What sliced_reference.py leaves: the folder with its files, and its record.

    Raises TaskError as make_trials does; what the reference itself does not allow is in the record.
    """
    task = order.task
    own = Path(__file__).with_name(f"{_REFERENCE_SLICED.rpartition('.')[2]}.py").read_bytes()
    asked = order.path, order.text, str(order.seed), repr(order.calling)

    def make(fresh: Path) -> None:
        orders = make_orders(task, fresh, model_seed=order.seed, calling=order.calling)
        run_child(task, fresh, orders, limits_of(seconds, memory_mb), _REFERENCE_SLICED, ENDS)

    folder = keep_folder("ends", [code_digest(), own, *asked], make)
    return folder, Ends.model_validate_json(bytes(read_plain(folder / ENDS, _RECORD_BYTES)))
