"""Tasks that are rewarded: `Tasks(folder).use(task)`, prepared once and kept on disk.

A task is a path, or the text of a task file. Its code runs in the sandbox, once; what it left is
read again by later processes. Nothing here is a candidate's.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from npusmith.agent.ports import Ports, find_ports
from npusmith.agent.tasks import open_prepared
from npusmith.agent.values import case_of
from npusmith.agent.written import in_order
from npusmith.errors import LangError, NpusmithError, PlanError
from npusmith.ir.nodes import Program
from npusmith.ir.text import show
from npusmith.plan.write import write
from npusmith.store.refusal import named_errors
from npusmith.target.chips import Chip
from npusmith.task.prepared import Prepared, TrialData
from npusmith.task.weak import weak_task
from npusmith.timing.eager import estimate as eager
from npusmith.train.boxed import Set
from npusmith.train.static_time import static_us

MOST_CHARS = 1 << 20  # of a task
_KEPT = 256  # tasks that are held open
_MOST_BYTES = 1 << 20  # of a set that is interpreted
# kinds of sets, and how many of them are interpreted at most
_CHOSEN = ((("random", "group"), 3), (("drawn",), 2), (("edge",), 6), (("shape",), 5))


@dataclass(slots=True)
class Opened:
    """A prepared task; `sets`: those that the interpreter takes."""

    prepared: Prepared
    chip: Chip
    profile: str
    ports: Ports
    sets: tuple[Set, ...]
    weak: tuple[str, ...]  # do-nothing kernels that would pass
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _teacher: list[Program | None] = field(default_factory=list)
    _hold: ExitStack = field(default_factory=ExitStack)
    users: int = 0

    @property
    def digest(self) -> str:
        return self.prepared.task.digest

    def teacher(self) -> Program | None:
        """The compiler's program; None where it refuses the task."""
        with self._lock:
            if not self._teacher:
                self._teacher.append(self._written())
            return self._teacher[0]

    def _written(self) -> Program | None:
        try:
            plan = write(self.prepared.graph, self.ports.operator, self.chip)
            program = in_order(plan.program, [port.name for port in self.ports.inputs])
            self.ports.spec(program)
        except (PlanError, LangError):
            return None
        return program

    def teacher_text(self) -> str | None:
        program = self.teacher()
        return None if program is None else show(program)

    def static_reference(self) -> tuple[float | None, str]:
        """Microseconds of the teacher's program by its text, or eager PyTorch's, and which."""
        program = self.teacher()
        ports = (*self.ports.inputs, *self.ports.outputs)
        shapes = {port.name: port.shape for port in ports}
        us = None if program is None else static_us(program, shapes, self.chip)
        return (us, "compiler") if us is not None else self.eager_reference()

    def eager_reference(self) -> tuple[float, str]:
        return eager(self.prepared.graph, self.chip).us, "eager"

    def close(self) -> None:
        self._hold.close()


class Tasks:
    """Opened tasks of one chip and tolerance; threads may share it."""

    def __init__(self, folder: Path, chip: Chip, profile: str) -> None:
        self._folder, self._chip, self._profile = folder, chip, profile
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}
        self._open: OrderedDict[str, Opened] = OrderedDict()

    @contextmanager
    def use(self, task: Path | str) -> Iterator[Opened]:
        """The task, opened. Raises TaskError for one that cannot be captured or run."""
        path = task if isinstance(task, Path) else self._written(task)
        key = str(path.absolute())
        with self._lock:
            turn = self._opening.setdefault(key, threading.Lock())
        with turn:
            with self._lock:
                found = self._open.get(key)
            found = found or self._fresh(path)
            with self._lock:
                self._open[key] = found
                self._open.move_to_end(key)
                found.users += 1
                self._drop_old()
        try:
            yield found
        finally:
            with self._lock:
                found.users -= 1

    def _written(self, text: str) -> Path:
        """A text as a file, whose name says which text it is."""
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise NpusmithError("reward-task", "the task is not UTF-8 text") from error
        if len(data) > MOST_CHARS:
            seen = f"{len(data):,} bytes"
            raise NpusmithError("reward-task", "the task is too long", seen=seen)
        path = self._folder / "texts" / f"t{hashlib.sha256(data).hexdigest()[:12]}.py"
        if not path.exists():
            with named_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                fresh = path.with_suffix(f".{threading.get_ident()}")
                fresh.write_bytes(data)
                fresh.replace(path)
        return path

    def _fresh(self, path: Path) -> Opened:
        hold = ExitStack()
        try:
            prepared = hold.enter_context(open_prepared(path, self._folder / "tasks"))
            ports = find_ports(prepared)
            return Opened(
                prepared, self._chip, self._profile, ports, tuple(_sets(prepared, ports)),
                tuple(weak_task(prepared, self._profile)), _hold=hold,
            )  # fmt: skip
        except BaseException:
            hold.close()
            raise

    def _drop_old(self) -> None:
        """With the lock held."""
        for key in [key for key, item in self._open.items() if not item.users]:
            if len(self._open) <= _KEPT:
                return
            self._open.pop(key).close()
            self._opening.pop(key, None)

    def close(self) -> None:
        with self._lock:
            for item in self._open.values():
                item.close()
            self._open.clear()


def _sets(prepared: Prepared, ports: Ports) -> Iterator[Set]:
    """The task's own values, edge values and other shapes, the smallest of each kind."""
    for kinds, most in _CHOSEN:
        usable = [item for item in prepared.trials if item.kind in kinds and _is_usable(item)]
        for trial in sorted(usable, key=lambda item: item.bytes, reverse="shape" in kinds)[:most]:
            yield Set(case_of(trial, ports.inputs, prepared), tuple(trial.shapes), "shape" in kinds)


def _is_usable(trial: TrialData) -> bool:
    return not trial.skipped and bool(trial.record.references) and trial.bytes <= _MOST_BYTES
