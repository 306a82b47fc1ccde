"""The agent as a writer of a bench: `agent:model=NAME,base-url=URL,samples=4,...`.

Every sample of every task is a session of one journal, which the workers share. Verdicts of the
writer are on its own inputs; the suite judges what it proposes.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from npusmith.agent.extract import blocks
from npusmith.agent.generate import Desk, Setting, attend, files_of, sit_down
from npusmith.agent.models import open_model
from npusmith.agent.options import read_options
from npusmith.agent.session import Ending
from npusmith.agent.talk import Message, Request
from npusmith.agent.tasks import open_prepared
from npusmith.bench.model import Brief, Candidate, Item
from npusmith.bench.writers import read_project_files
from npusmith.errors import NpusmithError
from npusmith.knowledge.seam import Knowledge
from npusmith.store.turns import Journal, open_journal
from npusmith.target.chips import find_chip
from npusmith.task.tolerance import check_profile


class AgentWriter:
    """Proposes the best candidate of a session; a session without one is a refusal."""

    def __init__(self, spec: str, chip: str, knowledge: Knowledge | None = None) -> None:
        self.setting, journal = read_options(spec)
        self._chip = find_chip(chip)
        self._model = open_model(self.setting.choice)
        self._knowledge = knowledge
        digest = hashlib.sha256(json.dumps(self.setting.frozen).encode()).hexdigest()
        self.name = f"agent:{self.setting.choice.model or 'replay'}"
        self.version = digest
        self._journal = journal or Path("out", f"agent-{digest[:12]}")

    def write(self, brief: Brief, sample: int, seed: int) -> Candidate:
        start = time.monotonic()
        try:
            with open_journal(self._journal) as store:
                found = self._candidate(brief, sample, store)
        except NpusmithError as error:
            found = self._refused(f"{error.code}: {error.message}")
        return found.model_copy(
            update={"sample": sample, "seed": seed, "seconds": round(time.monotonic() - start, 3)}
        )

    def source(self, item: Item, sample: int) -> str:
        """Nothing on disk: a sample that was proposed stays what it is."""
        return ""

    def _candidate(self, brief: Brief, sample: int, store: Journal) -> Candidate:
        if brief.path is None or "project" not in brief.formats:
            return self._once(brief, sample)
        terms = self.setting.terms
        # each sample draws other drafts
        setting = self.setting.model_copy(
            update={"terms": terms.model_copy(update={"seed": terms.seed + sample})}
        )
        with self._desk(brief, setting) as desk:
            name = f"{brief.item.name}/{sample}"
            ending = attend(
                desk, setting, self._model, store, name, True, knowledge=self._knowledge
            )
            tokens = sum(_tokens(turn.reply) for turn in store.turns(name))
            return self._made(ending, desk).model_copy(update={"tokens": tokens})

    @contextmanager
    def _desk(self, brief: Brief, setting: Setting) -> Iterator[Desk]:
        assert brief.path is not None
        with open_prepared(brief.path, self._journal / "tasks") as prepared:
            profile = check_profile("default")
            yield sit_down(prepared, self._chip, profile, setting, brief.operator)

    def _made(self, ending: Ending, desk: Desk) -> Candidate:
        best = ending.best
        if best is None or not best.text:
            return self._refused(f"agent-none: no reply held a candidate ({ending.why})")
        with tempfile.TemporaryDirectory(prefix="npusmith-agent-") as name:
            folder = Path(name)
            try:
                files_of(best, desk, folder, self._chip)
                files = read_project_files(folder)
            except NpusmithError as error:  # not even lowered: nothing to judge
                return self._refused(f"{error.code}: {error.message}")
        return Candidate(format="project", files=files, writer=self.name)

    def _once(self, brief: Brief, sample: int) -> Candidate:
        """One answer to the suite's own prompt, for formats that only the suite can judge."""
        kind = next((item for item in brief.formats if item in ("kernel_only", "full")), "")
        if not kind or not brief.prompt:
            raise NpusmithError("usage", "the item has no task file and no prompt of its own")
        terms = self.setting.terms
        answer = self._model.ask(
            Request(
                messages=(Message(role="user", content=brief.prompt),), seed=terms.seed + sample,
                temperature=terms.temperature, max_tokens=terms.max_tokens,
            )
        )  # fmt: skip
        if not blocks(answer.text):
            raise NpusmithError("reply-no-code", "the reply holds no program")
        return Candidate(
            format="kernel_only" if kind == "kernel_only" else "full",
            files={"response.txt": answer.text}, writer=self.name, tokens=answer.usage.total,
        )  # fmt: skip

    def _refused(self, why: str) -> Candidate:
        return Candidate(format="project", files={}, writer=self.name, refusal=why[:500])


def _tokens(reply: str) -> int:
    answer = json.loads(reply).get("answer") if reply else None
    usage = answer["usage"] if answer else {"prompt": 0, "completion": 0}
    return int(usage["prompt"]) + int(usage["completion"])


def open_writer(spec: str, chip: str) -> AgentWriter:
    """What a bench's workers call; opens the knowledge store that the options name."""
    from npusmith.agent.library import open_library

    setting, _ = read_options(spec)
    return AgentWriter(spec, chip, open_library(setting.knowledge))
