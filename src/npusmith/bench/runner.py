"""Runs a plan: units of work to an engine, candidates and records to the store.

The runner alone writes to the store, and may be killed at any moment. Whoever starts it again, or
beside it, goes on with the units that have no record. Items are read one at a time, while the
first of them already run. A writer that has nobody to ask ends the session, not its units: what
runs is awaited and kept, and the rest stays open.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from npusmith.bench.model import Candidate, Item, Record, Sourced
from npusmith.bench.plan import Plan, freeze
from npusmith.bench.pool import Away, Engine, Event, Judged, Lost, Proposed
from npusmith.bench.work import DETAILS, Job, WriterAway, blank, propose, refused, signed
from npusmith.errors import NpusmithError, Place
from npusmith.store.database import LEASE, Store, Unit, myself, open_store, whole

ATTEMPTS = 2  # of a unit whose worker dies
_TICK = 0.5  # seconds to wait for an event
_PLAN = "plan"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    done: int
    total: int  # of the items that were read so far
    whole: bool  # all items were read
    running: int
    passed: int  # units of this session, right and computed in the kernel
    rate: float  # units a second in this session
    left: float | None  # seconds, None: not known yet
    last: str = ""


Watch = Callable[[Progress], None]


def run(
    plan: Plan, folder: Path, engine: Engine, watch: Watch = lambda _: None, *, resume: bool = False
) -> Plan:
    """Runs what has no record yet; gives the plan as it was frozen in the store.

    Raises run-exists, run-changed, run-empty, and what the suite, writer, engine or store raise;
    WriterAway when the writer has nobody to ask, with all that was done in the store.
    """
    plan = freeze(plan)
    plan.open_suite()  # what cannot be opened leaves no store behind
    with open_store(folder, create=True) as store:
        _settle(store, plan, folder, resume)
        try:
            engine.start(plan)
            _Run(plan, store, engine, watch).work()
        finally:
            engine.close()
            with suppress(NpusmithError):  # a full disk: the leases end with this process
                store.release(myself())
    return plan


def read_plan(store: Store) -> Plan:
    """The plan that a store was begun with."""
    text = store.setting(_PLAN)
    if not text:
        raise NpusmithError("run-missing", f"{store.path} has no plan yet", Place(str(store.path)))
    return _plan(store, text)


def _plan(store: Store, text: str) -> Plan:
    with whole(store.path, "the plan"):
        return Plan.model_validate_json(text)


def _settle(store: Store, plan: Plan, folder: Path, resume: bool) -> None:
    """Freezes the plan in a new store, or compares it with the one that is there."""
    if store.setting(_PLAN) and not resume:
        if not _is_empty(store):
            raise NpusmithError("run-exists", f"{folder} holds a run", Place(str(folder)))
        store.replace(_PLAN, plan.model_dump_json())
    text = store.settle(_PLAN, plan.model_dump_json())
    old = _plan(store, text)
    differ = [name for name, value in plan.terms.items() if old.terms[name] != value]
    if differ:
        raise NpusmithError(
            "run-changed", f"{folder} was begun with another {', '.join(differ)}",
            Place(str(folder)), seen=json.dumps({name: plan.terms[name] for name in differ})[:400],
            legal=json.dumps({name: old.terms[name] for name in differ})[:400],
        )  # fmt: skip


def _is_empty(store: Store) -> bool:
    """Nothing was ever selected: the plan of such a run binds nobody."""
    return next(iter(store.items()), None) is None


class _Run:
    """The state of one session."""

    def __init__(self, plan: Plan, store: Store, engine: Engine, watch: Watch) -> None:
        self._plan, self._store, self._engine, self._watch = plan, store, engine, watch
        self._suite, self._writer = plan.open_suite(), plan.open_writer()
        self._owner = myself()
        self._began = self._beaten = time.monotonic()
        self._finished = self._passed = 0
        self._last = ""
        self._away: WriterAway | None = None

    def work(self) -> None:
        """Until every unit of the plan has a record, here or through another runner."""
        reading = self._read()
        whole, idle = False, False
        while True:
            whole = whole or next(reading, None) is None
            idle = self._away is not None or self._hand_out()
            self._beat()
            for event in self._engine.poll(_TICK if whole else 0):
                self._take(event)
            self._tell(whole)
            if self._away is not None and not self._engine.running:
                raise self._away
            if whole and idle and not self._engine.running and self._store.counts()[1] == 0:
                break
        if _is_empty(self._store):
            raise NpusmithError("run-empty", f"nothing of {self._plan.suite} is selected")

    def _read(self) -> Iterator[Item]:
        """Adds the items of the suite that are selected, one at each step."""
        for item in self._suite.items():
            digest = self._store.add_item(
                item.name, item.digest, item.model_dump_json(), item.skipped,
                self._plan.samples, self._plan.trials,
            )  # fmt: skip
            if digest != item.digest:
                message = f"{item.name} is not the task that the run was begun with"
                raise NpusmithError("run-changed", message, Place(item.source))
            self._check_sources(item)
            yield item

    def _check_sources(self, item: Item) -> None:
        """What was judged must be what the writer would give now, where that can change."""
        if not isinstance(self._writer, Sourced):
            return
        for sample, digest, data in self._store.proposals(item.name):
            with whole(self._store.path, f"a response of {item.name}"):
                source = json.loads(data).get("source", "")
            if source == self._writer.source(item, sample):
                continue
            now = propose(self._plan, self._suite, self._writer, item, sample)
            if now.digest != digest:
                message = f"the response {sample} of {item.name} changed since it was judged"
                raise NpusmithError("run-changed", message, seen=now.source or now.refusal)

    def _hand_out(self) -> bool:
        """Gives free workers a unit each; True when there was none to give."""
        free = self._engine.free
        units = self._store.claim(self._owner, free) if free else []
        for unit in units:
            self._give(unit)
        return len(units) < free

    def _give(self, unit: Unit) -> None:
        text = self._store.item(unit.item)
        with whole(self._store.path, f"item {unit.item}"):
            item = Item.model_validate_json(text)
        candidate = read_candidate(self._store, unit.item, unit.sample)
        job = Job(
            unit=unit.id, item=item, sample=unit.sample, trial=unit.trial, candidate=candidate
        )
        if unit.attempts < ATTEMPTS:
            self._engine.submit(job)
            return
        why = f"worker-lost: {ATTEMPTS} workers died with this unit"
        if candidate is None:
            candidate = refused(self._plan.writer_name, why)
            candidate = candidate.model_copy(update={"sample": unit.sample})
            self._keep(job, candidate)
        record = signed(self._plan, job, candidate, blank(self._plan, job, candidate, why), {})
        self._finish(job, candidate, record)

    def _take(self, event: Event) -> None:
        if isinstance(event, Proposed):
            self._keep(event.job, event.candidate)
        elif isinstance(event, Judged):
            self._finish(event.job, event.candidate, event.record)
        elif isinstance(event, Lost):
            self._last = f"{event.job.item.name}: {event.why}"
            self._store.fail(event.job.unit, self._owner)
        elif isinstance(event, Away):  # no attempt of the unit; it is open again when we leave
            self._away = event.why

    def _keep(self, job: Job, candidate: Candidate) -> None:
        body = json.dumps([candidate.format, candidate.files])
        rest = candidate.model_dump_json(exclude={"format", "files"})
        self._store.propose(job.item.name, job.sample, candidate.digest, rest, body)

    def _finish(self, job: Job, candidate: Candidate, record: Record) -> None:
        kept = self._store.finish(
            job.unit, record.key, candidate.digest,
            record.model_dump_json(exclude=set(DETAILS), exclude_defaults=True),
            record.model_dump_json(include=set(DETAILS)),
        )  # fmt: skip
        self._finished += kept
        self._passed += bool(kept and record.official and not record.cheating)
        self._last = f"{record.item} sample {record.sample}: {_word(record)}"

    def _beat(self) -> None:
        if time.monotonic() - self._beaten > LEASE / 4:
            self._store.beat(self._owner)
            self._beaten = time.monotonic()

    def _tell(self, whole: bool) -> None:
        total, left = self._store.counts()
        rate = self._finished / max(time.monotonic() - self._began, 1e-9)
        self._watch(
            Progress(
                done=total - left, total=total, whole=whole, running=self._engine.running,
                passed=self._passed, rate=rate, left=left / rate if self._finished else None,
                last=self._last,
            )
        )  # fmt: skip


def read_candidate(store: Store, item: str, sample: int) -> Candidate | None:
    """A candidate as the writer proposed it."""
    row = store.proposal(item, sample)
    if row is None:
        return None
    digest, rest = row
    body = store.candidate(digest)
    with whole(store.path, f"a response of {item}"):
        form, files = json.loads(body)
        return Candidate.model_validate(json.loads(rest) | {"format": form, "files": files})


def _word(record: Record) -> str:
    if record.error and record.compiled is None:
        return record.error.partition("\n")[0][:120]
    if not record.compiled:
        return "not compiled"
    if record.cheating:
        return "computes outside the kernel"
    return "pass" if record.official else "wrong"
