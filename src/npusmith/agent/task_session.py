"""A task and the route to it, the settings it is written under, and the session about it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from npusmith.agent.budget import Budget
from npusmith.agent.direct import DirectRoute
from npusmith.agent.models import Choice
from npusmith.agent.policy import Attempt, Terms
from npusmith.agent.route import Route
from npusmith.agent.session import Ending, Session, SessionOptions
from npusmith.agent.shots import read_shots
from npusmith.agent.signatures import open_signatures
from npusmith.agent.talk import Model
from npusmith.agent.tile import TileRoute
from npusmith.bench.plan import judge_digest
from npusmith.errors import NpusmithError, Place
from npusmith.knowledge.seam import Knowledge
from npusmith.store.turns import Journal, open_journal
from npusmith.target.chips import Chip
from npusmith.task.prepared import Prepared

_ENDS = {"rounds", "patience", "optimise", "target"}  # terms that say when a session ends
ROUTES = ("tile", "kernel", "project")
SUITE = "suite"  # the route of a bench: agent/suite.py


class Setting(BaseModel):
    """How a task is written by a model: what a resumed run must share, and the budget."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    choice: Choice
    route: str = "tile"
    terms: Terms = Terms()
    budget: Budget = Budget()
    knowledge: str = ""  # the store's path; "" for none
    timed: bool = False  # estimate times also where no speed is asked for
    start: Literal["parts", "whole", "none"] = "parts"  # of the writer's programs, in first prompts

    @property
    def frozen(self) -> dict[str, Any]:
        """What turns depend on. Budgets may grow, addresses may change; prices may not.

        When to stop may change as well: a finished session goes on with more rounds, or for speed.
        """
        return {
            "model": self.choice.model,
            "route": self.route,
            "terms": self.terms.model_dump(mode="json", exclude=_ENDS),
            "prices": self.budget.prices.model_dump(mode="json"),
            "knowledge": bool(self.knowledge),
            "start": self.start,
            "agent": agent_digest(),
            "judge": judge_digest(),
        }


def check_new(journal: Path) -> None:
    """Raises run-exists for a journal that holds sessions, before anything is computed for it."""
    if not journal.is_dir() or not any(journal.iterdir()):
        return
    with open_journal(journal) as store:
        if store.sessions():
            raise _exists(store)


def _exists(store: Journal) -> NpusmithError:
    return NpusmithError("run-exists", f"{store.path} holds a run", Place(str(store.path)))


def _check_same(store: Journal, name: str, frozen: Mapping[str, Any]) -> None:
    """That a session was begun on these terms, or begins on them now."""
    held = json.loads(store.begin(name, json.dumps(frozen)))
    differ = [key for key in frozen if held.get(key) != frozen[key]]
    if differ:
        message = f"{store.path} was begun with another {', '.join(differ)}"
        raise NpusmithError("run-changed", message, Place(str(store.path)))


@lru_cache(maxsize=1)
def agent_digest() -> str:
    """Of what the agent says and decides: its sources and texts."""
    root, whole = Path(__file__).parent, hashlib.sha256()
    for file in sorted(root.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            whole.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return whole.hexdigest()


@dataclass(frozen=True, slots=True)
class RoutedTask:
    """The route to a task."""

    route: Route
    task: str  # its digest
    judge: str  # what verdicts depend on, besides the candidate


def route_task(
    prepared: Prepared, chip: Chip, profile: str, setting: Setting, operator: str = ""
) -> RoutedTask:
    """The route to a prepared task; raises usage for one that does not exist."""
    timed = setting.terms.optimise or setting.timed
    if setting.route == "tile":
        shots = read_shots()
        route: Route = TileRoute(prepared, chip, profile, shots, timed, operator, setting.start)
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
    return RoutedTask(route, prepared.task.digest, json.dumps(terms))


def run_session(
    routed: RoutedTask,
    setting: Setting,
    model: Model,
    store: Journal,
    name: str,
    resume: bool,
    knowledge: Knowledge | None = None,
    watch: Callable[[str], None] = lambda text: None,
) -> Ending:
    """Runs the session of that name to its end."""
    frozen = {**setting.frozen, "task": routed.task, "verdicts": routed.judge}
    begun = dict(store.sessions())
    if name in begun and not resume:
        raise _exists(store)
    _check_same(store, name, frozen)
    session = Session(
        name,
        routed.route,
        model,
        store,
        setting.terms,
        setting.budget,
        options=SessionOptions(
            judge=routed.judge,
            knowledge=knowledge,
            concurrency=setting.choice.concurrency,
            watch=watch,
        ),
    )
    with store.alone(name):
        return session.run()


def files_of(best: Attempt, routed: RoutedTask) -> dict[str, str]:
    """The files of a candidate: of a tile program, the project around it where there can be one."""
    route = routed.route
    if isinstance(route, TileRoute):
        return route.files(best.text)
    return dict(route.edit(best.text).files)


def serves(best: Attempt, routed: RoutedTask) -> bool:
    """Whether a candidate means to serve other shapes than the task's own."""
    route = routed.route
    if isinstance(route, DirectRoute):
        return route.ports.dynamic
    return isinstance(route, TileRoute) and route.serves(best.text)
