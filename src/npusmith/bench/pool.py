"""The local engine: worker processes, one job each, any of which may die.

An engine takes jobs (`submit`, while `free` is above 0) and gives back events (`poll`): the
candidate that a writer proposed, the record of a job, that its worker was lost, or that its writer
has nobody to ask. A worker that dies or outlasts `patience` takes one job with it and is replaced;
workers never outlive the process that began them.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

from npusmith.bench.model import Candidate, Record
from npusmith.bench.plan import Plan
from npusmith.bench.work import Bench, Job, WriterAway
from npusmith.errors import NpusmithError

_DEATH = 1  # PR_SET_PDEATHSIG of prctl(2)
_GRACE = 5.0  # seconds for a worker to end by itself
_STILLBORN = 2  # for each worker
_READY = "ready"
_SPENT = "spent"  # its next answer is its last
_MEMORY = 2 << 30  # bytes: writing a deep network takes more, and they are not given back


@dataclass(frozen=True, slots=True)
class Proposed:
    """The writer of a job has answered."""

    job: Job
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Judged:
    """A job has its record."""

    job: Job
    candidate: Candidate
    record: Record


@dataclass(frozen=True, slots=True)
class Lost:
    """The worker of a job is gone."""

    job: Job
    why: str


@dataclass(frozen=True, slots=True)
class Away:
    """The writer of a job lacks what every job needs; the worker is well."""

    job: Job
    why: WriterAway


Event = Proposed | Judged | Lost | Away


class Engine(Protocol):
    """Where jobs run."""

    name: str
    workers: int

    def start(self, plan: Plan) -> None: ...

    @property
    def free(self) -> int:
        """Jobs that may be submitted now."""

    @property
    def running(self) -> int: ...

    def submit(self, job: Job) -> None: ...

    def poll(self, seconds: float) -> list[Event]:
        """What happened; waits at most that long for the first event."""

    def close(self) -> None:
        """Ends all workers, and what they are doing."""


class LocalPool:
    """Processes of this machine."""

    name = "local"

    def __init__(self, workers: int = 0, patience: float = 0, memory: int = _MEMORY) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self._patience = patience  # seconds for one job; 0: twenty times its limit
        self._memory = memory  # bytes of a worker: one that took more is replaced after its job
        self._hands: list[_Hand] = []
        self._plan: Plan | None = None
        self._stillborn = 0  # workers in a row that never began

    def start(self, plan: Plan) -> None:
        self._plan = plan
        self._patience = self._patience or 20 * plan.limits.seconds
        self._hands = [_Hand(plan, self._memory) for _ in range(self.workers)]

    @property
    def free(self) -> int:
        return sum(hand.job is None for hand in self._hands)

    @property
    def running(self) -> int:
        return len(self._hands) - self.free

    def submit(self, job: Job) -> None:
        next(hand for hand in self._hands if hand.job is None).give(job)

    def poll(self, seconds: float) -> list[Event]:
        ready = wait([hand.pipe for hand in self._hands], seconds)
        late = time.monotonic() - self._patience
        events: list[Event] = []
        for place, hand in enumerate(self._hands):
            event = hand.take() if hand.pipe in ready else None
            if event is None and hand.job is not None and hand.since < late:
                event = hand.lose(f"no answer in {self._patience:.0f} s")
            if event is not None:
                events.append(event)
            if hand.dead:
                self._replace(place, hand)
        return events

    def _replace(self, place: int, hand: _Hand) -> None:
        """A new worker for a dead one; raises what a worker cannot even begin with."""
        assert self._plan is not None
        hand.close()
        self._stillborn = 0 if hand.ready else self._stillborn + 1
        if self._stillborn > _STILLBORN * self.workers:
            raise NpusmithError("internal", f"workers end before they begin: {hand.why}")
        self._hands[place] = _Hand(self._plan, self._memory)

    def close(self) -> None:
        for hand in self._hands:
            hand.close()
        self._hands = []


class _Hand:
    """One worker, seen from the runner."""

    def __init__(self, plan: Plan, memory: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.job: Job | None = None
        self.since = 0.0
        self.dead = False
        self.ready = False  # it has opened suite and writer
        self._spent = False
        self.why = ""
        self._candidate: Candidate | None = None
        self._process: BaseProcess = context.Process(
            target=_work, args=(theirs, plan, os.getpid(), memory), daemon=True
        )
        self._process.start()
        theirs.close()

    def give(self, job: Job) -> None:
        self.job, self.since, self._candidate = job, time.monotonic(), job.candidate
        try:
            self.pipe.send(job)
        except OSError:  # it died while idle; take() will say so
            return

    def take(self) -> Event | None:
        """What the worker says; None: nothing about a job."""
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError):
            self._process.join(_GRACE)
            return self.lose(f"the worker ended with {_ending(self._process.exitcode)}")
        except Exception as error:  # what cannot be unpickled was not written by us
            return self.lose(f"the worker's answer cannot be read: {error}")
        if isinstance(answer, str):
            if answer == _SPENT:
                self._spent = True
                return None
            self.ready = answer == _READY
            return None if self.ready else self.lose(answer)
        job = self.job
        assert job is not None
        if isinstance(answer, Candidate):
            self._candidate = answer
            return Proposed(job, answer)
        self.job, self.dead = None, self._spent
        if isinstance(answer, dict):
            return Away(job, WriterAway(**answer))
        assert self._candidate is not None
        return Judged(job, self._candidate, answer)

    def lose(self, why: str) -> Event | None:
        self.dead, self.why = True, why
        job, self.job = self.job, None
        return None if job is None else Lost(job, why)

    def close(self) -> None:
        self._process.kill()
        self.pipe.close()
        self._process.join(_GRACE)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"


def _work(pipe: Connection, plan: Plan, parent: int, memory: int) -> None:
    """The life of a worker: jobs come in, candidates and records go out."""
    stay_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the runner's
    os.dup2(2, 1)  # stdout carries the answer of the command
    try:
        bench = Bench(plan)
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
        return
    pipe.send(_READY)
    while True:
        try:
            job = pipe.recv()
        except (EOFError, OSError):  # the runner is gone
            return
        candidate = job.candidate
        try:
            if candidate is None:
                candidate = bench.propose(job)
                pipe.send(candidate)
        except WriterAway as away:
            pipe.send(away.note())
            continue
        record = bench.judge(job, candidate)
        if _resident() > memory:
            pipe.send(_SPENT)
        pipe.send(record)


def _resident() -> int:
    """Bytes of memory of this process; not its most, which begins with that of its parent."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def stay_with(parent: int) -> None:
    """Lets the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(_DEATH, signal.SIGKILL)
    if os.getppid() != parent:  # it ended between the two calls
        os._exit(1)
