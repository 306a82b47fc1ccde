"""What both ways of writing an operator share: `Route`, and the prompts made of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from npusmith.agent import prompt
from npusmith.agent.assessment import Assessment, Note
from npusmith.agent.shots import Features
from npusmith.agent.talk import Answer, Message
from npusmith.knowledge.seam import Query, Served
from npusmith.knowledge.trial import SLOW, WRONG

_TRAPS = 3  # items in the prompt of a first draft


class Goal(str, Enum):
    """What a turn is for."""

    WRITE = "write"
    REPAIR = "repair"
    OPTIMISE = "optimise"


@dataclass(frozen=True, slots=True)
class Draft:
    """A candidate: its files by path, and the one text that prompts show and edits change."""

    files: Mapping[str, str]
    text: str


class Route(Protocol):
    """A language, and how a text of it is judged. Nothing in it depends on the model."""

    name: str  # "tile" or "direct", for the knowledge store
    rules: str  # the file of rules in texts/
    kind: str  # behind the fence of a candidate
    features: Features
    chip: str

    def task(self) -> str:
        """Task, tensors, and the language's reference."""

    def help(self, draft: Draft | None, assessment: Assessment | None) -> str:
        """Examples or signatures that fit the moment."""

    def read(self, answer: Answer) -> Draft:
        """The candidate in a reply; raises reply-*."""

    def edit(self, text: str) -> Draft:
        """A candidate from its text alone."""

    def assess(self, draft: Draft, folder: Path) -> Assessment:
        """Judges the candidate; the folder is empty and its own."""

    def names(self, text: str) -> tuple[str, ...]:
        """Operations or functions that a text uses."""


def query(route: Route, goal: Goal, draft: Draft | None, assessment: Assessment | None) -> Query:
    """The situation, as the knowledge store is asked."""
    text = draft.text if draft else ""
    notes = assessment.notes if assessment else ()
    codes = assessment.codes if assessment else ()
    own: tuple[str, ...] = (WRONG,) if "agent-values" in codes else ()  # what the store calls it
    own += (SLOW,) if goal is Goal.OPTIMISE else ()
    return Query(
        route=route.name, aim=goal.value, text=text,
        codes=(*codes, *own),
        apis=route.names(text) if draft else route.features.ops,
        dtypes=route.features.dtypes, category=route.features.category, chip=route.chip,
        bottleneck=assessment.bottleneck if assessment else (),
        messages=tuple(note.message for note in notes),
        hints=tuple(text for note in notes for text in (note.hint, note.legal) if text),
        lines=_lines(draft, notes),
    )  # fmt: skip


def fitting(served: Sequence[Served], asked: Query) -> tuple[Served, ...]:
    """Items for the findings at hand; to begin with, a few of the likeliest traps."""
    if not asked.codes:
        return tuple(served[:_TRAPS])
    return tuple(item for item in served if not item.codes or set(item.codes) & set(asked.codes))


def _lines(draft: Draft | None, notes: Sequence[Note]) -> tuple[int, ...]:
    """Lines of the draft's text that are spoken of; texts of several files have other ones."""
    files = draft.files if draft and len(draft.files) == 1 else {}
    return tuple(dict.fromkeys(note.line for note in notes if note.line and note.file in files))


def first_prompt(
    route: Route, number: int, served: Sequence[Served], past: str = ""
) -> tuple[Message, ...]:
    """The prompt of a draft. past: of drafts that were given up."""
    parts = (
        route.task(),
        route.help(None, None),
        prompt.known_part(served),
        past,
        prompt.write_part(number),
    )
    return prompt.messages(route.rules, parts)


def next_prompt(
    route: Route,
    goal: Goal,
    draft: Draft | None,
    assessment: Assessment,
    served: Sequence[Served],
    best_us: float | None,
    past: str = "",
    talk: Sequence[Message] = (),
) -> tuple[Message, ...]:
    """The prompt of a repair or of a faster version; a reply without code has no draft.

    past: of earlier changes of the same candidate. talk: what was said until that candidate came;
    without it the prompt says everything once more.
    """
    said = (
        prompt.profile_part(assessment, best_us)
        if goal is Goal.OPTIMISE
        else prompt.findings_part(assessment, draft.files if draft else {})
    )
    known = prompt.known_part(served)
    if talk:
        new = prompt.body((known, past, said))
        return (*talk, Message(role="user", content=new))
    shown = prompt.candidate_part(draft.text, route.kind) if draft else ""
    parts = (route.task(), route.help(draft, assessment), known, shown, past, said)
    return prompt.messages(route.rules, parts)
