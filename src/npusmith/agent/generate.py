"""`generate(...)`: a task, a model, and a folder with the best operator that came of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from npusmith import __version__
from npusmith.agent.budget import Budget
from npusmith.agent.direct import DirectRoute
from npusmith.agent.models import Choice, open_model
from npusmith.agent.policy import Terms, Tried
from npusmith.agent.route import Route
from npusmith.agent.session import Ending, Session
from npusmith.agent.shots import read_shots
from npusmith.agent.signatures import open_signatures
from npusmith.agent.talk import Model
from npusmith.agent.tile import TileRoute
from npusmith.bench.plan import judge_digest
from npusmith.errors import NpusmithError, Place
from npusmith.knowledge.seam import Knowledge
from npusmith.lang import parse
from npusmith.pipeline import Progress
from npusmith.report.html import write_report
from npusmith.sandbox.folder import temporary_folder
from npusmith.store.folder import new_folder
from npusmith.store.record import write_result
from npusmith.store.turns import Journal, open_journal
from npusmith.target.chips import Chip
from npusmith.task.load import open_task
from npusmith.task.prepared import Prepared
from npusmith.task.tolerance import check_profile
from npusmith.task.trials import SEEDS, prepare
from npusmith.task.verdict import Rung, Verdict

ROUTES = ("tile", "kernel", "project")
SUITE = "suite"  # the route of a bench: agent/suite.py
SESSION = "main"  # of a journal with one task


class Setting(BaseModel):
    """How a task is written by a model: what a resumed run must share, and the budget."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    choice: Choice
    route: str = "tile"
    terms: Terms = Terms()
    budget: Budget = Budget()
    knowledge: str = ""  # the store's path; "" for none
    timed: bool = False  # estimate times also where no speed is asked for

    @property
    def frozen(self) -> dict[str, Any]:
        """What turns depend on. Budgets may grow, addresses may change; prices may not."""
        return {
            "model": self.choice.model,
            "route": self.route,
            "terms": self.terms.model_dump(mode="json"),
            "prices": self.budget.prices.model_dump(mode="json"),
            "knowledge": bool(self.knowledge),
            "agent": agent_digest(),
            "judge": judge_digest(),
        }


@lru_cache(maxsize=1)
def agent_digest() -> str:
    """Of what the agent says and decides: its sources and texts."""
    root, whole = Path(__file__).parent, hashlib.sha256()
    for file in sorted(root.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            whole.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return whole.hexdigest()


@dataclass(frozen=True, slots=True)
class Desk:
    """The route to a task."""

    route: Route
    task: str  # its digest
    judge: str  # what verdicts depend on, besides the candidate


def generate(
    task: Path,
    out: Path,
    chip: Chip,
    tolerance: str,
    progress: Progress,
    setting: Setting,
    *,
    journal: Path,
    resume: bool = False,
    seed: int = 0,
    knowledge: Knowledge | None = None,
    model: Model | None = None,
) -> Verdict:
    """The best candidate's verdict, with its files in `out` and everything else in the journal.

    Raises what opening the model raises, agent-none, run-exists and run-changed; what the endpoint
    refuses for good ends the run, and the journal keeps what was there.
    """
    setting.budget.checked()
    profile = check_profile(tolerance)
    model = model or open_model(setting.choice)
    with temporary_folder("npusmith-") as work, open_journal(journal) as store:
        progress.step("read", str(task))
        opened = open_task(task)
        progress.step("reference", "capture the graph and run PyTorch on every set of inputs")
        seeds = tuple(base + seed * len(SEEDS) for base in SEEDS)
        prepared = prepare(opened, Path(work), seeds=seeds)
        desk = sit_down(prepared, chip, profile, setting)
        ending = attend(desk, setting, model, store, SESSION, resume, knowledge, _told(progress))
        progress.step("report", f"ended by {ending.why}: {out}")
        return _deliver(ending, prepared, desk, store, setting, out, chip, profile)


def _told(progress: Progress) -> Callable[[str], None]:
    return lambda text: progress.step("agent", text)


def sit_down(
    prepared: Prepared, chip: Chip, profile: str, setting: Setting, operator: str = ""
) -> Desk:
    """The route to a prepared task; raises usage for one that does not exist."""
    timed = setting.terms.optimise or setting.timed
    if setting.route == "tile":
        route: Route = TileRoute(prepared, chip, profile, read_shots(), timed, operator)
    elif setting.route in ROUTES:
        signatures = open_signatures(chip)
        route = DirectRoute(
            prepared, chip, profile, signatures, read_shots(), timed, setting.route, operator
        )
    else:
        words = "is for a bench" if setting.route == SUITE else "is not there"
        raise NpusmithError(
            "usage", f"the route {setting.route} {words}", seen=setting.route[:80],
            legal=", ".join(ROUTES),
        )  # fmt: skip
    seeds = [trial.seed for trial in prepared.trials]
    rest = [profile, timed, setting.route, operator, seeds, judge_digest()]
    terms = [prepared.task.digest, chip.name, *rest]
    return Desk(route, prepared.task.digest, json.dumps(terms))


def attend(
    desk: Desk,
    setting: Setting,
    model: Model,
    store: Journal,
    name: str,
    resume: bool,
    knowledge: Knowledge | None = None,
    watch: Callable[[str], None] = lambda text: None,
) -> Ending:
    """Runs the session of that name to its end."""
    frozen = {**setting.frozen, "task": desk.task, "desk": desk.judge}
    begun = dict(store.sessions())
    if name in begun and not resume:
        raise NpusmithError("run-exists", f"{store.path} holds a run", Place(str(store.path)))
    held = json.loads(store.begin(name, json.dumps(frozen)))
    differ = [key for key in frozen if held.get(key) != frozen[key]]
    if differ:
        message = f"{store.path} was begun with another {', '.join(differ)}"
        raise NpusmithError("run-changed", message, Place(str(store.path)))
    session = Session(
        name, desk.route, model, store, setting.terms, setting.budget, judge=desk.judge,
        knowledge=knowledge, concurrency=setting.choice.concurrency, watch=watch,
    )  # fmt: skip
    with store.alone(name):
        return session.run()


def files_of(best: Tried, desk: Desk, folder: Path, chip: Chip) -> None:
    """The files of a candidate in a folder: of a tile program, the project around it too."""
    route = desk.route
    if isinstance(route, TileRoute):
        program = parse(best.text, route.file)
        route.write(program, route.ports.spec(program), best.text, folder)
        return
    for name, text in route.edit(best.text).files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _deliver(
    ending: Ending,
    prepared: Prepared,
    desk: Desk,
    store: Journal,
    setting: Setting,
    out: Path,
    chip: Chip,
    profile: str,
) -> Verdict:
    """Writes the result folder; raises agent-none when no reply held code."""
    best = ending.best
    if best is None or not best.text:
        if ending.why == "budget" and best is None:
            raise NpusmithError("budget-spent", "the budget does not pay for the first call")
        codes = ", ".join(best.weighed.codes) if best else ""
        raise NpusmithError("agent-none", "no reply held a candidate", seen=codes or ending.why)
    with new_folder(out) as folder:
        verdict = _verdict(best, prepared, chip, profile)
        built = best.weighed.verdict is not None
        if built:
            files_of(best, desk, folder, chip)
        else:
            _plain_files(best, desk, folder)
        verdict.project = str(out)
        tile = isinstance(desk.route, TileRoute)
        verdict.program = str(out / desk.route.file) if isinstance(desk.route, TileRoute) else ""
        verdict.provenance |= _provenance(ending, store, setting)
        write_result(folder, verdict.model_dump(mode="json"))
        program = parse(best.text) if tile and built else None
        write_report(folder, verdict, program, task_source=prepared.task.text, chip=chip)
    return verdict


def _plain_files(best: Tried, desk: Desk, folder: Path) -> None:
    """A candidate that cannot be lowered or built: its text alone."""
    for name, text in desk.route.edit(best.text).files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _verdict(best: Tried, prepared: Prepared, chip: Chip, profile: str) -> Verdict:
    """The judge's, or one that says which earlier stage failed."""
    if best.weighed.verdict is not None:
        return Verdict.model_validate(best.weighed.verdict)
    note = best.weighed.errors[0] if best.weighed.errors else None
    error = None if note is None else note.model_dump(mode="json", exclude={"level"})
    rung = {2: Rung.PARSED, 3: Rung.LEGAL}.get(int(best.weighed.step), Rung.NONE)
    return Verdict(
        verdict="fail", rung=rung, compiled=False, correct=False, task=prepared.name,
        tolerance=profile, chip=chip.name, error=error,
        provenance={"npusmith": __version__, **prepared.provenance},
    )  # fmt: skip


def _provenance(ending: Ending, store: Journal, setting: Setting) -> dict[str, Any]:
    spent = store.spent()
    return {
        "writer": "agent",
        "model": setting.choice.model,
        "route": setting.route,
        "ended": ending.why,
        "turns": len(ending.tried),
        "tokens": spent.tokens,
        "usd": round(spent.usd, 6),
        "journal": str(store.path),
    }
