"""Ray as an engine: the same jobs and records on a cluster. Needs the extra npusmith[ray].

The suite's checkout and npusmith must be at the same paths on every node. Only the process that
began the run writes to its store. Address: "local" (a cluster of this machine that ends with the
run), "auto" (the running one), or what `ray start --head` prints.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from npusmith.bench.model import Candidate, Record
from npusmith.bench.plan import Plan
from npusmith.bench.pool import Away, Event, Judged, Lost, Proposed
from npusmith.bench.work import Bench, Job, WriterAway
from npusmith.errors import NpusmithError

_PASSED = ("NPUSMITH_CACHE", "PYTHONPATH", "PATH", "HOME")  # of the environment, to the workers
_START = 300.0  # seconds for all workers to begin


class RayPool:
    """Actors, one job each."""

    name = "ray"

    def __init__(self, address: str, workers: int = 0) -> None:
        self.workers = workers
        self._address = address
        self._ray: Any = None
        self._make: Any = None
        self._idle: list[Any] = []
        self._busy: dict[Any, tuple[Any, Job, Candidate | None]] = {}  # promise -> actor, ...

    def start(self, plan: Plan) -> None:
        self._ray = ray = _import()
        try:
            ray.init(**self._options())
            self.workers = self.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
            actor = ray.remote(num_cpus=1, max_restarts=0, max_concurrency=1)(_Actor)
            self._make = lambda: actor.remote(plan.model_dump_json())
            self._idle = [self._make() for _ in range(self.workers)]
            ray.get([actor.ready.remote() for actor in self._idle], timeout=_START)
        except (
            ray.exceptions.RayError,
            ConnectionError,
            RuntimeError,
            ValueError,
            OSError,
        ) as error:
            self.close()
            message = f"Ray at {self._address}: {error}"
            raise NpusmithError("ray-failed", message[:2000]) from error

    @property
    def free(self) -> int:
        return len(self._idle)

    @property
    def running(self) -> int:
        return len(self._busy)

    def submit(self, job: Job) -> None:
        actor = self._idle.pop()
        if job.candidate is None:
            promise = actor.propose.remote(job.model_dump_json())
            self._busy[promise] = (actor, job, None)
        else:
            self._judge(actor, job, job.candidate)

    def poll(self, seconds: float) -> list[Event]:
        if not self._busy:
            return []
        ready, _ = self._ray.wait(list(self._busy), num_returns=1, timeout=seconds)
        return [self._settle(promise) for promise in ready]

    def close(self) -> None:
        self._busy, self._idle = {}, []
        if self._ray is not None and self._ray.is_initialized():
            self._ray.shutdown()

    def _settle(self, promise: Any) -> Event:
        actor, job, candidate = self._busy.pop(promise)
        try:
            answer = self._ray.get(promise)
        except self._ray.exceptions.RayError as error:
            self._idle.append(self._make())
            return Lost(job, f"the worker was lost: {error}"[:2000])
        if isinstance(answer, dict):
            self._idle.append(actor)
            return Away(job, WriterAway(**answer))
        if candidate is None:
            proposed = Candidate.model_validate_json(answer)
            self._judge(actor, job, proposed)
            return Proposed(job, proposed)
        self._idle.append(actor)
        return Judged(job, candidate, Record.model_validate_json(answer))

    def _judge(self, actor: Any, job: Job, candidate: Candidate) -> None:
        promise = actor.judge.remote(job.model_dump_json(), candidate.model_dump_json())
        self._busy[promise] = (actor, job, candidate)

    def _options(self) -> dict[str, Any]:
        paths = [path for path in sys.path if path]
        passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
        common: dict[str, Any] = {
            "log_to_driver": False,
            "configure_logging": False,
            "runtime_env": {"env_vars": passed | {"PYTHONPATH": os.pathsep.join(paths)}},
        }
        if self._address != "local":
            return {**common, "address": self._address}
        cpus = self.workers or len(os.sched_getaffinity(0))
        return {**common, "num_cpus": cpus, "include_dashboard": False}


class _Actor:
    """A worker; texts go in and out, so that nodes agree on nothing but JSON."""

    def __init__(self, plan: str) -> None:
        self._bench = Bench(Plan.model_validate_json(plan))

    def ready(self) -> None:
        """Returns once suite and writer are open."""

    def propose(self, job: str) -> str | dict[str, str]:
        try:
            return self._bench.propose(Job.model_validate_json(job)).model_dump_json()
        except WriterAway as away:
            return away.note()

    def judge(self, job: str, candidate: str) -> str:
        found = Candidate.model_validate_json(candidate)
        return self._bench.judge(Job.model_validate_json(job), found).model_dump_json()


def _import() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    try:
        import ray
    except ImportError as error:
        message = "Ray is not installed: pip install 'npusmith[ray]'"
        raise NpusmithError("extra-missing", message) from error
    return ray
