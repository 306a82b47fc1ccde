"""`build(orders, out, wanted)`: units one after another, by several processes, until it is enough.

What is done is on disk as shards; whoever goes on finds them, and a kill costs the units under way.
A process that dies takes its unit with it: the unit is tried once more alone, and left out then.
"""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from npusmith.bench.pool import stay_with
from npusmith.errors import NpusmithError, Place
from npusmith.store.refusal import named_errors
from npusmith.target.chips import find_chip
from npusmith.train.corpus import documentation
from npusmith.train.corpus.sample import Sample
from npusmith.train.corpus.shards import Done, Unit, read_shards, write_shard, write_whole
from npusmith.version import __version__

PLAN = "plan.json"
_MEMORY = 9 << 30  # address space of a worker
_UNITS = 40  # that a process does before another takes its place: what leaks ends with it


class Orders(BaseModel):
    """What the samples of a corpus depend on, besides their number."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = 0
    chip: str
    twin: float = 0.01  # share of the modules whose program the twin runs as well
    root: str = ""  # a folder of the user's own kernels
    version: str = __version__


@dataclass(slots=True)
class Built:
    """What a run made, with what earlier ones had."""

    done: dict[Unit, Done]
    lost: list[Unit] = field(default_factory=list)  # their process died twice
    fresh: int = 0  # samples of this run
    seconds: float = 0.0  # on the clock

    @property
    def samples(self) -> int:
        return sum(item.samples for item in self.done.values())

    @property
    def outcomes(self) -> Counter[str]:
        """What became of everything that was tried, by word."""
        return sum((item.outcomes for item in self.done.values()), Counter())

    def facts(self, orders: Orders) -> dict[str, str]:
        """For the card."""
        spent = sum(item.seconds for item in self.done.values())
        tried = ", ".join(f"{name} {number:,}" for name, number in sorted(self.outcomes.items()))
        return {
            "npusmith": orders.version,
            "seed": str(orders.seed),
            "chip": orders.chip,
            "processor time": f"{spent / 3600:.2f} hours for {self.samples:,} verified samples",
            "what became of what was tried": tried,
            "units whose process died": ", ".join(item.file for item in self.lost) or "none",
        }


def build(
    orders: Orders,
    out: Path,
    wanted: int,
    jobs: int = 0,
    tell: Callable[[str], None] = lambda text: None,
    seconds: float = float("inf"),
) -> Built:
    """Shards in `out` until there are `wanted` samples, no unit is left, or the time is over.

    Raises run-changed where `out` was begun with other orders, store-busy where a living process is
    at it, disk-full and file-denied.
    """
    with _alone(out):
        return _build(orders, out, wanted, jobs, tell, seconds)


def _build(
    orders: Orders, out: Path, wanted: int, jobs: int, tell: Callable[[str], None], seconds: float
) -> Built:
    start = time.monotonic()
    _claim(orders, out)
    built = Built(read_shards(out))
    before = built.samples
    units = (unit for unit in _units(orders) if unit not in built.done)
    workers = _Workers(orders, out, jobs or len(os.sched_getaffinity(0)))
    try:
        while True:
            enough = built.samples >= wanted or time.monotonic() - start > seconds
            while not enough and workers.free and (unit := next(units, None)) is not None:
                workers.give(unit)
            if not workers.busy:
                break
            for done in workers.take():
                built.done[done.unit] = done
                spent = max(time.monotonic() - start, 1e-9)
                made = built.samples - before
                tell(f"{built.samples:,} samples of {wanted:,}, {made / spent:.1f} a second")
    finally:
        workers.close()
    built.lost, built.fresh = workers.lost, built.samples - before
    built.seconds = time.monotonic() - start
    return built


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Holds the folder; a process that was killed holds nothing."""
    with named_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        with (out / ".lock").open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                message = f"another process is building {out}"
                raise NpusmithError("store-busy", message, Place(str(out))) from error
            yield


def _claim(orders: Orders, out: Path) -> None:
    """The folder is begun with these orders, now or earlier."""
    path = out / PLAN
    wanted = orders.model_dump(mode="json")
    if not path.exists():
        write_whole(path, json.dumps(wanted, indent=2).encode() + b"\n")
        return
    try:
        held = dict(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise NpusmithError(
            "file-unusable", f"{path} is no plan of a corpus", Place(str(path))
        ) from error
    if differ := [key for key in wanted if held.get(key) != wanted[key]]:
        message = f"{out} was begun with another {', '.join(differ)}"
        seen = ", ".join(f"{key}: {held.get(key)}" for key in differ)
        raise NpusmithError("run-changed", message, Place(str(path)), seen=seen[:200])


# ------------------------------------------------------------------------------------------- units


def _units(orders: Orders) -> Iterator[Unit]:
    """In the order in which they are done."""
    return chain(*(source(orders) for source in _NUMBERS.values()))


def _documentation(orders: Orders, unit: Unit) -> tuple[list[Sample], Counter[str]]:
    found = list(documentation.samples())
    return found, Counter({"true": len(found)})


def _modules(orders: Orders, unit: Unit) -> tuple[list[Sample], Counter[str]]:
    from npusmith.train.corpus.modules_source import block

    return block(orders.seed, unit.number, find_chip(orders.chip), orders.twin)


def _kernels(orders: Orders, unit: Unit) -> tuple[list[Sample], Counter[str]]:
    from npusmith.train.corpus.own_kernels import find_kernels, own_kernel

    kernel = find_kernels(Path(orders.root))[unit.number]
    return own_kernel(kernel, find_chip(orders.chip))


def _kernel_units(orders: Orders) -> Iterator[Unit]:
    from npusmith.train.corpus.own_kernels import find_kernels

    found = find_kernels(Path(orders.root)) if orders.root else []
    return (Unit("kernels", number) for number in range(len(found)))


_NUMBERS: dict[str, Callable[[Orders], Iterator[Unit]]] = {
    "documentation": lambda orders: iter([Unit("documentation", 0)]),
    "kernels": _kernel_units,
    "modules": lambda orders: (Unit("modules", number) for number in count()),
}
_SOURCES: dict[str, Callable[[Orders, Unit], tuple[list[Sample], Counter[str]]]] = {
    "documentation": _documentation, "kernels": _kernels, "modules": _modules,
}  # fmt: skip


def _do(orders: Orders, out: Path, unit: Unit) -> Done:
    """In a worker."""
    start = time.process_time()
    samples, outcomes = _SOURCES[unit.source](orders, unit)
    return write_shard(out, unit, samples, outcomes, time.process_time() - start)


def _begin(parent: int) -> None:
    """In a fresh worker, which ends with its parent; Ctrl-C is the parent's."""
    import torch

    from npusmith.task.export import warm_up

    stay_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    torch.set_num_threads(1)
    warm_up()


class _Workers:
    """Processes, each at a unit."""

    def __init__(self, orders: Orders, out: Path, jobs: int) -> None:
        self._orders, self._out, self._jobs = orders, out, jobs
        self._running: dict[Future[Done], Unit] = {}
        self._again: list[Unit] = []
        self._pool = self._fresh()
        self.lost: list[Unit] = []

    @property
    def free(self) -> bool:
        return len(self._running) < self._jobs and not self._again

    @property
    def busy(self) -> bool:
        return bool(self._running or self._again)

    def give(self, unit: Unit) -> None:
        self._running[self._pool.submit(_do, self._orders, self._out, unit)] = unit

    def take(self) -> list[Done]:
        """What is done since; waits for the first."""
        if not self._running:
            return self._alone(self._again.pop(0))
        finished, _ = wait(self._running, return_when=FIRST_COMPLETED)
        found = []
        for future in finished:
            unit = self._running.pop(future)
            try:
                found.append(future.result())
            except BrokenProcessPool:  # one of them is to blame
                self._again += [unit, *self._running.values()]
                self._running.clear()
                self._pool.shutdown(cancel_futures=True)
                self._pool = self._fresh()
                break
        return found

    def _alone(self, unit: Unit) -> list[Done]:
        try:
            return [self._pool.submit(_do, self._orders, self._out, unit).result()]
        except BrokenProcessPool:
            self._pool.shutdown()
            self._pool = self._fresh()
            self.lost.append(unit)
            return []

    def _fresh(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(
            self._jobs, context, initializer=_begin, initargs=(os.getpid(),),
            max_tasks_per_child=_UNITS,
        )  # fmt: skip

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
