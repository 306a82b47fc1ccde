"""One unit of work, from an item to a record: what every engine's workers do.

`propose` asks the writer; `judge` asks the suite. Neither raises for what a writer or a candidate
does: a writer that fails has refused, a suite that fails leaves a record without a verdict. A
writer that lacks what every unit needs says so with `WriterAway`, and the unit stays open.
"""

from __future__ import annotations

import traceback
from time import perf_counter
from typing import Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from npusmith.bench.model import Candidate, Item, Limits, Record, Sourced, Suite, Writer, unit_key
from npusmith.bench.plan import Plan
from npusmith.errors import NpusmithError

_OF_WRITER = ("search_policy",)  # of what a writer says, what a record keeps
REFUSED = "refused"  # the rung of a record without a candidate
DETAILS = ("trials", "messages", "timeline")  # of a record; kept apart from its figures


class WriterAway(NpusmithError):
    """What a writer needs for any unit is not there: its endpoint, its budget, its journal."""

    def note(self) -> dict[str, str]:
        """All of it, for another process: `WriterAway(**note)` is the same again."""
        return {"code": self.code, "message": self.message, "seen": self.seen, "hint": self.hint}


@runtime_checkable
class Rehearsing(Protocol):
    """A writer that asks the suite itself, before it proposes."""

    def meet(self, suite: Suite, limits: Limits) -> None: ...


class Job(BaseModel):
    """What goes to a worker."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    unit: int
    item: Item
    sample: int
    trial: int
    candidate: Candidate | None = None  # None: the writer is to be asked


class Bench:
    """A suite and a writer, opened once in each worker."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._suite = plan.open_suite()
        self._writer = plan.open_writer()
        if isinstance(self._writer, Rehearsing):
            self._writer.meet(self._suite, plan.limits)

    def propose(self, job: Job) -> Candidate:
        """The writer's candidate for the job's sample; raises WriterAway."""
        return propose(self._plan, self._suite, self._writer, job.item, job.sample)

    def judge(self, job: Job, candidate: Candidate) -> Record:
        """The record of the job, with its key."""
        limits = self._plan.limits
        limits = limits.model_copy(update={"seed": limits.seed + job.trial})
        clock = perf_counter()
        if candidate.refusal:
            record = blank(self._plan, job, candidate, candidate.refusal, verdict=False)
            record = record.model_copy(update={"rung": REFUSED})
        else:
            try:
                record = self._suite.evaluate(job.item, candidate, limits)
            except Exception as error:
                traceback.print_exception(error)
                message = f"judge-failed: {_words(error)}"
                record = blank(self._plan, job, candidate, message)
        seconds = {**record.seconds, "unit": perf_counter() - clock}
        return signed(self._plan, job, candidate, record, seconds)


def propose(plan: Plan, suite: Suite, writer: Writer, item: Item, sample: int) -> Candidate:
    """What the writer gives for a sample; one that fails has refused. Raises WriterAway."""
    seed = plan.limits.seed + sample
    clock = perf_counter()
    source = writer.source(item, sample) if isinstance(writer, Sourced) else ""
    try:
        found = writer.write(suite.brief(item), sample, seed)
    except WriterAway:
        raise
    except NpusmithError as error:
        found = refused(writer.name, f"{error.code}: {error.message}"[:500])
    except Exception as error:
        found = refused(writer.name, f"writer-failed: {_words(error)}")
    seconds = found.seconds or perf_counter() - clock
    return found.model_copy(
        update={"sample": sample, "seed": seed, "seconds": seconds, "source": source}
    )


def refused(writer: str, why: str) -> Candidate:
    """What stands for a candidate that never came."""
    return Candidate(format="project", files={}, writer=writer, refusal=why)


def blank(
    plan: Plan, job: Job, candidate: Candidate, error: str, *, verdict: bool | None = None
) -> Record:
    """A record of a unit that was not judged; `verdict` False: it failed all the same."""
    item = job.item
    return Record(
        key="", suite=item.suite, item=item.name, category=item.category, level=item.level,
        dtype=item.dtype, writer=plan.writer_name, sample=job.sample, candidate=candidate.digest,
        trial=job.trial, compiled=verdict, official=verdict, strict=verdict, clean=verdict,
        error=error,
    )  # fmt: skip


def signed(
    plan: Plan, job: Job, candidate: Candidate, record: Record, seconds: dict[str, float]
) -> Record:
    """The record with what the suite does not know of: key, place in the run, versions, search."""
    origin = {name: str(candidate.origin[name]) for name in _OF_WRITER if name in candidate.origin}
    return record.model_copy(
        update={
            "key": key_of(plan, job.item, candidate, job.trial),
            "writer": candidate.writer,
            "sample": job.sample,
            "trial": job.trial,
            "candidate": candidate.digest,
            "seconds": seconds,
            "provenance": {**record.provenance, **origin, "trials": str(plan.trials)},
        }
    )


def key_of(plan: Plan, item: Item, candidate: Candidate, trial: int) -> str:
    """The unit's key under the plan's terms."""
    return unit_key(item, candidate, trial, plan.limits, plan.judge)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:2000]
