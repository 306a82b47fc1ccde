"""The agent as a writer of a bench: `agent:model=NAME,base-url=URL,samples=4,...`.

Every sample of every task is a session of one journal, which the workers share. Verdicts of the
writer are on its own inputs; the suite judges what it proposes. With `route=suite`, and for items
that only their suite can judge, the suite judges the writer's candidates too, on other seeds.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from npusmith.agent.library import open_library
from npusmith.agent.models import open_model
from npusmith.agent.options import read_options
from npusmith.agent.page import told, write_page
from npusmith.agent.session import Ending
from npusmith.agent.signatures import open_signatures
from npusmith.agent.suite import Home, SuiteRoute
from npusmith.agent.task_session import (
    SUITE,
    RoutedTask,
    Setting,
    check_new,
    files_of,
    route_task,
    run_session,
    serves,
)
from npusmith.agent.tasks import open_prepared
from npusmith.agent.tile import TileRoute
from npusmith.bench.model import Brief, Candidate, Item, Limits, Suite
from npusmith.bench.plan import judge_digest
from npusmith.bench.work import WriterAway
from npusmith.errors import NpusmithError
from npusmith.knowledge.seam import Knowledge
from npusmith.store.turns import Journal, open_journal
from npusmith.target.chips import Chip, find_chip
from npusmith.task.tolerance import check_profile

# What is wrong with the run and not with a task: no unit is refused for it.
_AWAY = {
    "model-spec", "model-key", "model-down", "model-slow", "model-busy", "model-refused",
    "replay-missing", "budget-spent", "run-changed", "store-busy", "store-damaged", "disk-full",
}  # fmt: skip


class AgentWriter:
    """Proposes the best candidate of a session; refuses where none came of it.

    `journal`: where prompts, replies and verdicts are kept; by default a folder that the setting
    names. `resume`: go on with a session that the journal holds; False refuses it (run-exists).
    `step` is told of every turn.
    """

    def __init__(
        self,
        setting: Setting,
        chip: Chip,
        journal: Path | None = None,
        *,
        knowledge: Knowledge | None = None,
        tolerance: str = "default",
        resume: bool = True,
        step: Callable[[str, str], None] = lambda name, detail: None,
    ) -> None:
        self.setting, self._chip, self._knowledge = setting, chip, knowledge
        self._profile, self._resume, self._step = check_profile(tolerance), resume, step
        self._model = open_model(setting.choice)
        digest = hashlib.sha256(json.dumps(setting.frozen).encode()).hexdigest()
        self.name = f"agent:{setting.choice.model or 'replay'}"
        self.version = digest
        self._journal = journal or Path("out", f"agent-{digest[:12]}")
        self._home: Home | None = None
        self._limits = Limits()
        if not resume:
            check_new(self._journal)

    def meet(self, suite: Suite, limits: Limits) -> None:
        """The suite that its candidates are for."""
        self._home, self._limits = cast(Home, suite), limits

    def write(self, brief: Brief, sample: int, seed: int) -> Candidate:
        """Raises WriterAway for what no brief can help; agent-none without a candidate."""
        start = time.monotonic()
        try:
            with open_journal(self._journal) as store:
                found = self._candidate(brief, sample, store)
        except NpusmithError as error:
            if error.code in _AWAY:
                raise WriterAway(
                    error.code, error.message, error.place, seen=error.seen, hint=error.hint
                ) from error
            raise
        return found.model_copy(
            update={"sample": sample, "seed": seed, "seconds": round(time.monotonic() - start, 3)}
        )

    def source(self, item: Item, sample: int) -> str:
        """Nothing on disk: a sample that was proposed stays what it is."""
        return ""

    def _candidate(self, brief: Brief, sample: int, store: Journal) -> Candidate:
        terms = self.setting.terms
        # each sample draws other drafts
        setting = self.setting.model_copy(
            update={"terms": terms.model_copy(update={"seed": terms.seed + sample})}
        )
        with self._routed(brief, setting) as routed:
            name = f"{brief.item.name}/{sample}"
            try:
                ending = run_session(
                    routed, setting, self._model, store, name, self._resume, self._knowledge,
                    lambda text: self._step("agent", text),
                )  # fmt: skip
            finally:
                page = write_page(store, name)
            used = f"{told(store.turns(name))}{self._dollars(store)}"
            self._step("agent", f"{ending.why}: {used}; prompts and replies: {page}")
            if ending.why == "budget":  # which all sessions share: what it ended is not done
                raise NpusmithError(
                    "budget-spent", f"the budget does not pay for turn {len(ending.attempts) + 1}"
                )
            tokens = sum(_tokens(turn.reply) for turn in store.turns(name))
            made = self._made(ending, routed)
            return made.model_copy(update={"tokens": tokens, "origin": self._origin(ending, store)})

    def _dollars(self, store: Journal) -> str:
        known = self.setting.budget.prices.answer is not None
        return f", ${store.spent().usd:.4f} of the whole journal" if known else ""

    def _origin(self, ending: Ending, store: Journal) -> dict[str, Any]:
        return {
            "model": self.setting.choice.model,
            "route": self.setting.route,
            "ended": ending.why,
            "turns": len(ending.attempts),
            "tokens": store.spent().tokens,
            "usd": round(store.spent().usd, 6),
            "journal": str(store.path),
        }

    @contextmanager
    def _routed(self, brief: Brief, setting: Setting) -> Iterator[RoutedTask]:
        if setting.route == SUITE or brief.path is None or "project" not in brief.formats:
            yield self._routed_suite(brief, setting)
            return
        with open_prepared(brief.path, self._journal / "tasks") as prepared:
            yield route_task(prepared, self._chip, self._profile, setting, brief.operator)

    def _routed_suite(self, brief: Brief, setting: Setting) -> RoutedTask:
        if self._home is None:
            raise NpusmithError("usage", "the item has no task file, and its suite is not known")
        timed = setting.terms.optimise or setting.timed
        route = SuiteRoute(
            brief, self._home, self._limits, self._chip, open_signatures(self._chip), timed
        )
        return RoutedTask(route, brief.item.digest, f"{route.judge} {judge_digest()}")

    def _made(self, ending: Ending, routed: RoutedTask) -> Candidate:
        best = ending.best
        if best is None or not best.text:
            codes = ", ".join(best.assessment.codes) if best else ""
            raise NpusmithError(
                "agent-none", f"no reply held a candidate ({ending.why})", seen=codes
            )
        if isinstance(routed.route, SuiteRoute):
            return routed.route.candidate(best.text, self.name)
        files = files_of(best, routed)
        program = isinstance(routed.route, TileRoute) and len(files) == 1
        return Candidate(
            format="program" if program else "project", files=files, writer=self.name,
            dynamic=serves(best, routed),
        )  # fmt: skip


def _tokens(reply: str) -> int:
    answer = json.loads(reply).get("answer") if reply else None
    usage = answer["usage"] if answer else {"prompt": 0, "completion": 0}
    return int(usage["prompt"]) + int(usage["completion"])


def open_writer(spec: str, chip: str) -> AgentWriter:
    """What a bench's workers call; opens the knowledge store that the options name."""
    setting, journal = read_options(spec)
    return AgentWriter(setting, find_chip(chip), journal, knowledge=open_library(setting.knowledge))
