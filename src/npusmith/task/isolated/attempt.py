"""The judge's end of a candidate's processes: `with Candidate(...) as c, c.start(...) as attempt`.

One box holds them (see `start`). `attempt.call(arguments)` hands over one call's inputs and gives
what came back, with the launches of that call: those of operators were made here, those of kernels
that the binding launches itself are told by the process of the compiled module.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import stat
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from npusmith.errors import CODES
from npusmith.sandbox.box import Boxed, Policy, run_boxed
from npusmith.sandbox.server import PythonModule
from npusmith.target.chips import Chip
from npusmith.task.isolated import REPORT, WORDS, arrays
from npusmith.task.isolated.arrays import Value
from npusmith.task.trials import PRELOAD, package_paths
from npusmith.twin import frames
from npusmith.twin.finding import Finding
from npusmith.twin.module import ModuleBuild
from npusmith.twin.project import Project, read_projects
from npusmith.twin.remote import Launch, Launcher, findings_of

Array = np.ndarray[Any, Any]
_START = "npusmith.task.isolated.start"  # it starts the two processes of each attempt
_REPORT_BYTES = 16 << 20
_LOG_CHARS = 2000
_TICK_MS = 1000
_STARTS = 10.0  # seconds that the box may take beyond those of the candidate


def init_value(settings: Value, state: Array | None = None) -> Value:
    """What the class is built with; `state`: torch's random state behind get_init_inputs()."""
    rows: list[Any] = [["settings", settings.tree]]
    if state is None:
        return Value({"dict": rows}, settings.tensors)
    tensors = [*settings.tensors, state]
    return Value({"dict": [*rows, ["state", arrays.leaf(len(tensors) - 1, state)]]}, tensors)


NOTHING = init_value(Value({"list": []}))


@dataclass(slots=True)
class Answer:
    """What one call gave: `tree` and `outputs` are None and [] when it did not come to its end."""

    tree: arrays.Tree | None = None
    outputs: list[Array] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    apis: list[str] = field(default_factory=list)
    error: Finding | None = None
    over: bool = False  # before the first call already: no other one will do better
    alias: Any = None  # as the model's process tells it
    writes: Any = None
    fixed: tuple[str, ...] = ()  # the same: parameters that it was to be given and does not have


@dataclass(frozen=True, slots=True)
class Limits:
    seconds: float
    memory_bytes: int = 16 << 30
    file_bytes: int = 8 << 30


class _Gone(Exception):
    """The processes have ended."""


class Candidate:
    """A box with the compiled module of one submission; a context manager."""

    def __init__(
        self,
        built: ModuleBuild,
        chip: Chip,
        folder: Path,
        limits: Limits,
        *,
        stubs: Sequence[str] = ("npusmith.task.stubs",),
        logs: Path | None = None,
    ) -> None:
        self.built = built
        self.folder = folder.resolve()  # exists, and is empty
        self.limits = limits
        self.stubs = list(stubs)
        self.logs = logs
        self.inside = bool(built.libraries)
        projects = {} if self.inside else _projects(built)
        self.launcher = Launcher(projects, chip, limits.seconds, logs)
        self.boxed: Boxed | None = None
        self.failure: BaseException | None = None
        self.attempts = 0

    def __enter__(self) -> Candidate:
        self._over, self._tell_over = os.pipe()
        self.control = _make_pair(self.folder / "control")
        self._thread = threading.Thread(target=self._box, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(_Gone):
            frames.send(self.control[1], {"kind": "stop"}, wait=self.wait)
        self._thread.join()
        for fd in (*self.control, self._over, self._tell_over):
            os.close(fd)
        if self.failure is not None:
            raise self.failure

    def _box(self) -> None:
        """Runs the box to its end; whatever happens, who waits for it is told."""
        try:
            self.boxed = self._run()
        except BaseException as error:
            self.failure = error
        finally:
            os.write(self._tell_over, b"x")

    def _run(self) -> Boxed:
        paths = package_paths()
        places = (sys.prefix, sys.base_prefix, *paths)
        policy = Policy(
            write=(self.folder,),
            read=(
                *map(Path, places), self.built.root, self.built.modules,
                self.built.toolchain.folder,
            ),
            seconds=self.limits.seconds + _STARTS,
            memory_bytes=self.limits.memory_bytes,
            file_bytes=self.limits.file_bytes,
            processes=True,  # two for each attempt; those may start no other
        )  # fmt: skip
        work = PythonModule(_START, PRELOAD, tuple(paths))
        # Logs of launches inside of the module's process lie where that process may write.
        env = {"NPUSMITH_LOGS": str(self.folder)} if self.logs is not None else {}
        stdin = str(self.folder / "control").encode()
        return run_boxed(work, policy, stdin=stdin, env=env, cwd=self.folder)

    def ready(self, fd: int, write: bool, also: int = -1) -> bool:
        """Until `fd` is ready: True; or, before that, `also` has words: False. _Gone at the end."""
        poller = select.poll()
        poller.register(fd, select.POLLOUT if write else select.POLLIN)
        for other in (self._over, *([also] if also >= 0 else [])):
            poller.register(other, select.POLLIN)
        while True:
            ready = {found for found, _ in poller.poll(_TICK_MS)}
            if fd in ready:
                return True
            if also in ready:
                return False
            if self._over in ready:
                raise _Gone

    def wait(self, fd: int, write: bool) -> None:
        """Until `fd` is ready; _Gone at the end."""
        self.ready(fd, write)

    @contextlib.contextmanager
    def start(
        self, model: Path, entry: str, seed: int, init: Value = NOTHING, *, training: bool = False
    ) -> Iterator[Attempt]:
        """Two new processes, of which one builds the class when the first call needs it."""
        folder = self.folder / f"attempt{self.attempts}"
        self.attempts += 1
        folder.mkdir()
        pipes = _make_pair(folder / "judge")
        attempt = Attempt(self, folder, pipes, init)
        orders = {
            "kind": "start", "pipes": str(folder / "judge"), "folder": str(folder),
            "modules": str(self.built.modules), "module": self.built.submission.module,
            "libraries": [str(path) for path in self.built.libraries],
            "model": str(model), "entry": entry, "seed": seed, "training": training,
            "stubs": self.stubs, "seconds": self.limits.seconds,
        }  # fmt: skip
        try:
            with contextlib.suppress(_Gone):
                frames.send(self.control[1], orders, wait=self.wait)
            yield attempt
        finally:
            attempt.close()


class Attempt:
    """One pair of processes."""

    def __init__(
        self, candidate: Candidate, folder: Path, pipes: tuple[int, int], init: Value
    ) -> None:
        self.candidate = candidate
        self.folder = folder
        self.pipes = pipes
        self.init = init
        self.codes: list[int] | None = None
        self.ready = False
        self._told = 0  # findings of the report that were given before
        self._inside: list[Launch] = []

    def call(self, value: Value, drawn: Mapping[str, Array] | None = None) -> Answer:
        """Have the class called with these arguments; `drawn`: values of its parameters first."""
        first = len(self.candidate.launcher.launches)
        self._inside = []
        answer = Answer()
        try:
            head = None if self.ready else self._exchange(None, ())
            if head is None:
                self.ready = True
                head = self._exchange(*_order(value, drawn or {}))
            else:
                answer.over = True
            self._take(answer, head)
        except _Gone:
            answer.over = not self.ready
            answer.error = self._ended()
        except ValueError as error:
            answer.error = _crash(f"the candidate's process broke its protocol: {error}")
        answer.launches = self.candidate.launcher.launches[first:] + self._inside
        self._report(answer)
        return answer

    def _exchange(self, head: frames.Head | None, blobs: Sequence[Any]) -> Any:
        """Send a message and serve launches until the model answers; None: it is ready."""
        if head is not None:
            self._send(head, blobs)
        while True:
            found, data = self._receive()
            kind = found.get("kind")
            if kind == "launch":
                self._send(*self.candidate.launcher.answer(found, data))
            elif kind == "called":
                self._inside.append(_inside(found, data))
                self._send({"kind": "heard"}, ())
            elif kind == "init":
                self._send({"args": self.init.tree}, self.init.blobs())
            elif kind == "ready" and head is None:
                return None
            elif kind in ("outputs", "failed"):
                return found, data
            else:
                raise ValueError("an unknown message")

    def _take(self, answer: Answer, found: tuple[frames.Head, list[bytearray]]) -> None:
        head, blobs = found
        if head["kind"] == "failed":
            answer.error = _error(head.get("error"))
            return
        tree = head.get("result")
        answer.outputs = arrays.read_all(tree, blobs)
        answer.tree, answer.alias, answer.writes = tree, head.get("alias"), head.get("writes")
        fixed = head.get("fixed")
        answer.fixed = tuple(map(str, fixed))[:20] if isinstance(fixed, list) else ()

    # --- pipes

    def _send(self, head: frames.Head, blobs: Sequence[Any]) -> None:
        frames.send(self.pipes[1], head, blobs, self._wait)

    def _receive(self) -> tuple[frames.Head, list[bytearray]]:
        return frames.receive(self.pipes[0], self._wait)

    def _wait(self, fd: int, write: bool) -> None:
        if self.codes is not None:  # they have ended: what is in the pipe is all there is
            ready = select.select([] if write else [fd], [], [], 0)[0]
            if not ready:
                raise _Gone
        elif not self.candidate.ready(fd, write, self.candidate.control[0]):
            self._end()
            self._wait(fd, write)

    def _end(self) -> None:
        head, _ = frames.receive(self.candidate.control[0], self.candidate.wait)
        codes = head.get("codes")
        self.codes = [int(code) for code in codes] if isinstance(codes, list) else []

    def close(self) -> None:
        """End the two processes, whatever they are doing."""
        for fd in self.pipes:
            os.close(fd)
        with contextlib.suppress(_Gone):
            if self.codes is None:
                frames.send(self.candidate.control[1], {"kind": "end"}, wait=self.candidate.wait)
            while self.codes is None:
                self.candidate.wait(self.candidate.control[0], False)
                self._end()

    # --- how it went

    def _ended(self) -> Finding:
        boxed, codes = self.candidate.boxed, self.codes or []
        seconds = self.candidate.limits.seconds
        log = read_plain(self.folder / WORDS, 1 << 20).decode(errors="replace")
        seen = log.strip()[-_LOG_CHARS:]
        code = next((item for item in codes if item), 0)
        if boxed is not None and boxed.timed_out:
            message = f"the candidate had not ended after {seconds:g} s"
            return Finding(code="kernel-hang", message=message, seen=seen)
        starved = boxed.out_of_memory if boxed is not None else code == -9
        if starved or "not enough memory" in seen or "MemoryError" in seen:
            message = "the candidate used more memory than it may"
            return Finding(code="kernel-memory", message=message, seen=seen)
        ended = boxed.returncode if boxed is not None and not code else code
        return _crash(f"the candidate's process ended ({ended})", seen)

    def _report(self, answer: Answer) -> None:
        """Findings and APIs of this call's launches."""
        for launch in answer.launches:
            answer.findings += findings_of(launch)
            answer.apis += launch.run.apis if launch.run is not None else ()
        if not self.candidate.inside:
            return
        row = _parse(read_plain(self.folder / REPORT, _REPORT_BYTES))
        if not row and answer.launches and answer.error is None:
            answer.error = _crash("the report of the launches is missing")
        found = _findings(row)
        answer.findings += found[self._told :]
        self._told = len(found)
        answer.apis += [str(name) for name in row.get("apis", [])]


# ------------------------------------------------------------------------------------------ pieces


def _order(value: Value, drawn: Mapping[str, Array]) -> tuple[frames.Head, list[Any]]:
    """The message for one call."""
    first = len(value.tensors)
    rows = [[name, arrays.leaf(at, array)] for at, (name, array) in enumerate(drawn.items(), first)]
    head = {"kind": "run", "args": {"dict": [["args", value.tree], ["drawn", {"dict": rows}]]}}
    return head, [*value.blobs(), *map(arrays.raw, drawn.values())]


def _projects(built: ModuleBuild) -> dict[str, Project]:
    return read_projects(built.root)


def _make_pair(base: Path) -> tuple[int, int]:
    """The pipes `base`.in and `base`.out, open at our end: one to read from, one to write to."""
    for ending in ("in", "out"):
        os.mkfifo(f"{base}.{ending}", 0o600)
    # Open for both: neither opening nor reading depends on whether the other side is there.
    flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC
    return os.open(f"{base}.out", flags), os.open(f"{base}.in", flags)


def _inside(head: frames.Head, blobs: list[bytearray]) -> Launch:
    """A call of the compiled module, kernels and all, as one launch."""
    given, changed = head.get("given"), head.get("changed")
    if type(given) is not int or not isinstance(changed, list) or not 0 <= given <= len(blobs):
        raise ValueError("a call that is none")
    took = arrays.read_all(head.get("args"), blobs[:given])
    after: dict[int, bytearray] = dict(zip(changed, blobs[given:], strict=False))
    now = [after.get(at, blob) for at, blob in enumerate(blobs[:given])]
    fresh = blobs[given + len(changed) :]
    wrote = arrays.read_all(head.get("result"), [*now, *fresh])
    for item in arrays.leaves(head.get("args")):
        if item["tensor"] in after:
            wrote.append(arrays.read(item, now))
    words = tuple(arrays.scalars(head.get("args")))
    return Launch(str(head.get("name")), tuple(took), tuple(wrote), None, None, words)


def _error(row: Any) -> Finding:
    """An error that the model's process tells."""
    if isinstance(row, dict) and row.get("code") in CODES:
        with contextlib.suppress(ValidationError):
            return Finding(
                code=row["code"], message=str(row.get("message"))[:2000],
                file=str(row.get("file")), line=row.get("line", 0),
                seen=str(row.get("seen"))[:2000],
            )  # fmt: skip
    return _crash("the candidate's process ended without a word that is one")


def _crash(message: str, seen: str = "") -> Finding:
    return Finding(code="kernel-crash", message=message, seen=seen)


def read_plain(path: Path, most: int) -> bytes:
    """The beginning of a plain file; empty for anything else that may have been left there."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(handle, "rb") as file:
        return file.read(most) if stat.S_ISREG(os.fstat(handle).st_mode) else b""


def _parse(text: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError, RecursionError):
        row = json.loads(text)
        if isinstance(row, dict):
            return row
    return {}


def _findings(row: Mapping[str, Any]) -> list[Finding]:
    with contextlib.suppress(ValidationError, TypeError):
        found = [Finding.model_validate(item) for item in row.get("findings", [])]
        return [item for item in found if item.code in CODES]
    return []
