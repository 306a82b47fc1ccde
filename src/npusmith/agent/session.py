"""One attempt at one task: asks, judges and decides until the policy stops it.

Everything that happens is in the journal before the next thing happens. A session that is run again
reads what is there and does what is missing, so a killed one goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from npusmith.agent.assessment import Assessment, Note, Step, failed
from npusmith.agent.budget import Budget
from npusmith.agent.past_attempts import failed_changes_part, given_up_part
from npusmith.agent.policy import Ask, Attempt, Stop, Terms, decide, rank
from npusmith.agent.route import Draft, Goal, Route, first_prompt, fitting, next_prompt, query
from npusmith.agent.talk import Answer, Message, Model, Request, Usage
from npusmith.errors import NpusmithError
from npusmith.knowledge.seam import Knowledge, Query, Served, Use
from npusmith.sandbox.folder import temporary_folder
from npusmith.store.turns import Journal, Turn

_SEEDS = 1000  # turns of a session that have seeds of their own
# Failures of one call; every other failure is the endpoint's, and ends the run for now.
_ANSWERS = {"model-cut", "model-garbled", "model-empty", "model-long", "model-context"}


class Plan(BaseModel):
    """What a turn is, as the journal keeps it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    goal: Goal
    parent: int | None = None
    items: tuple[str, ...] = ()  # of the knowledge store, that were shown
    edit: bool = False  # the candidate is an item's own edit; no model was asked
    query: dict[str, str | int | float | list[str] | list[int] | list[float]] = {}


class Reply(BaseModel):
    """What came back: an answer, or why there is none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    answer: Answer | None = None
    code: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a session ended; `best` is None when nothing was judged."""

    why: str
    best: Attempt | None
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """What a session may be told besides its terms.

    judge: what a verdict depends on besides the candidate. concurrency: of calls of the model.
    """

    judge: str = ""
    knowledge: Knowledge | None = None
    concurrency: int = 4
    watch: Callable[[str], None] = lambda text: None


_OPTIONS = SessionOptions()


class Session:
    """The journal's session of that name."""

    def __init__(
        self,
        name: str,
        route: Route,
        model: Model,
        journal: Journal,
        terms: Terms,
        budget: Budget,
        options: SessionOptions = _OPTIONS,
    ) -> None:
        self.name, self._route, self._model, self._journal = name, route, model, journal
        self._terms, self._budget, self._judge = terms, budget.checked(), options.judge
        self._knowledge, self._watch = options.knowledge, options.watch
        self._concurrency = options.concurrency

    def run(self) -> Ending:
        """To its end, from wherever it stands."""
        while True:
            self._finish()
            attempts = self.attempts()
            action = decide(attempts, self._terms)
            if isinstance(action, tuple) and not self._place(action, attempts):
                action = Stop("budget")
            if isinstance(action, Stop):
                self._journal.end(self.name, action.why)
                return Ending(action.why, rank(attempts)[0] if attempts else None, attempts)

    def attempts(self) -> tuple[Attempt, ...]:
        """Every judged turn, in its order."""
        return tuple(self._attempt(turn) for turn in self._journal.turns(self.name) if turn.outcome)

    # ---- a turn is placed ...

    def _place(self, asks: Sequence[Ask], attempts: Sequence[Attempt]) -> bool:
        """Writes the turns into the journal; False when the budget does not pay for the first."""
        start = len(self._journal.turns(self.name))
        placed = 0
        for offset, ask in enumerate(asks):
            if not self._place_one(ask, start + offset, attempts):
                break
            placed += 1
        return placed > 0

    def _place_one(self, ask: Ask, number: int, attempts: Sequence[Attempt]) -> bool:
        parent = next((item for item in attempts if item.number == ask.parent), None)
        draft = self._route.edit(parent.text) if parent and parent.text else None
        asked = query(self._route, ask.goal, draft, parent.assessment if parent else None)
        served = fitting(self._knowledge.search(asked), asked) if self._knowledge else ()
        if parent and (edit := self._fresh_edit(served, attempts)):
            return self._place_edit(ask, number, asked, edit)
        best = min(
            (item.assessment.us for item in attempts if item.assessment.us is not None),
            default=None,
        )
        if parent:
            past = failed_changes_part(parent, attempts)
            talk = self._talk(parent) if self._terms.conversation else ()
            messages = next_prompt(
                self._route, ask.goal, draft, parent.assessment, served, best, past, talk
            )
        else:
            anew = sum(item.asked for item in attempts) >= self._terms.samples
            past = given_up_part(attempts) if anew else ""
            messages = first_prompt(self._route, number, served, past)
        request = Request(
            messages=messages, seed=self._terms.seed * _SEEDS + number,
            temperature=self._terms.temperature, max_tokens=self._terms.max_tokens,
        )  # fmt: skip
        plan = Plan(
            goal=ask.goal, parent=ask.parent, items=tuple(item.id for item in served),
            query=asdict(asked),
        )  # fmt: skip
        return self._journal.ask(
            self.name, number, plan.model_dump_json(), request.model_dump_json(),
            self._budget.worst(request), (self._budget.tokens, self._budget.usd),
        )  # fmt: skip

    def _talk(self, parent: Attempt) -> tuple[Message, ...]:
        """What was said until the candidate came; nothing where no model wrote it."""
        turn = next(item for item in self._journal.turns(self.name) if item.number == parent.number)
        reply = Reply.model_validate_json(turn.reply)
        if not turn.request or reply.answer is None:
            return ()
        asked = Request.model_validate_json(turn.request).messages
        return (*asked, Message(role="assistant", content=reply.answer.text))

    def _fresh_edit(self, served: Sequence[Served], attempts: Sequence[Attempt]) -> Served | None:
        """An item that changes the candidate by itself, into something not judged yet."""
        seen = {item.text for item in attempts}
        return next((item for item in served if item.edit and item.edit not in seen), None)

    def _place_edit(self, ask: Ask, number: int, asked: Query, item: Served) -> bool:
        plan = Plan(
            goal=ask.goal, parent=ask.parent, items=(item.id,), edit=True, query=asdict(asked)
        )
        self._journal.ask(self.name, number, plan.model_dump_json(), "", (0, 0.0), (None, None))
        answer = Answer(
            text=item.edit or "", usage=Usage(prompt=0, completion=0), model="knowledge"
        )
        reply = Reply(answer=answer).model_dump_json()
        self._journal.reply(self.name, number, reply, (0, 0.0))
        return True

    # ---- ... answered, and judged

    def _finish(self) -> None:
        """Asks what has no answer, all at once; then judges what has no verdict, one by one."""
        self._ask_all([turn for turn in self._journal.turns(self.name) if not turn.reply])
        for turn in self._journal.turns(self.name):
            if not turn.outcome:
                self._judge_one(turn)

    def _ask_all(self, turns: Sequence[Turn]) -> None:
        if not turns:
            return
        self._watch(f"asking {self._model.name}, turn {turns[0].number + 1}")
        failure: NpusmithError | None = None
        with ThreadPoolExecutor(self._concurrency) as pool:
            calls = {pool.submit(self._ask_one, turn): turn for turn in turns}
            for call in as_completed(calls):
                turn = calls[call]
                try:
                    reply, cost = call.result()
                except NpusmithError as error:
                    failure = error
                    continue
                self._journal.reply(self.name, turn.number, reply.model_dump_json(), cost)
        if failure is not None:
            raise failure

    def _ask_one(self, turn: Turn) -> tuple[Reply, tuple[int, float]]:
        """In a thread. A call that failed counts with the most that it may have taken."""
        request = Request.model_validate_json(turn.request)
        try:
            answer = self._model.ask(request)
        except NpusmithError as error:
            if error.code not in _ANSWERS:
                raise
            return Reply(code=error.code, message=error.message), self._budget.worst(request)
        cost = answer.usage.total, self._budget.prices.cost(answer.usage)
        return Reply(answer=answer), cost

    def _judge_one(self, turn: Turn) -> None:
        attempts = self.attempts()
        plan, (text, assessment) = Plan.model_validate_json(turn.data), self._assess(turn, attempts)
        self._watch(f"turn {turn.number + 1}, {plan.goal.value}: {_word(assessment)}")
        parent = next((item for item in attempts if item.number == plan.parent), None)
        if self._knowledge and parent and text:
            # before the verdict is kept: who is killed between the two credits again, and a use
            # with the same key counts once
            key = f"{self._journal.path.parent.name}/{self.name}/{turn.number}"
            use = Use(key, plan.items, _query(plan), parent.text, text)
            self._knowledge.credit(use, parent.assessment.outcome, assessment.outcome)
        outcome = {"text": text, "assessment": assessment.model_dump(mode="json")}
        self._journal.judge(self.name, turn.number, json.dumps(outcome))

    def _assess(self, turn: Turn, attempts: Sequence[Attempt]) -> tuple[str, Assessment]:
        """The candidate's text, "" where there is none, and what was found."""
        reply = Reply.model_validate_json(turn.reply)
        if reply.answer is None:
            return "", failed(Step.NOTHING, NpusmithError(reply.code, reply.message))
        try:
            plan = Plan.model_validate_json(turn.data)
            draft = (
                self._route.edit(reply.answer.text) if plan.edit else self._route.read(reply.answer)
            )
        except NpusmithError as error:
            return "", failed(Step.NOTHING, error)
        before = next((item for item in attempts if item.text == draft.text), None)
        if before is not None:
            return draft.text, _again(before)
        return draft.text, self._judged(draft)

    def _judged(self, draft: Draft) -> Assessment:
        """From the journal, when the same text was judged under the same terms."""
        key = hashlib.sha256(
            json.dumps([self._judge, sorted(draft.files.items())]).encode("utf-8", "replace")
        ).hexdigest()
        if known := self._journal.known(key):
            return Assessment.model_validate_json(known)
        with temporary_folder("npusmith-agent-") as name:
            folder = Path(name).resolve() / "candidate"
            folder.mkdir()
            assessment = self._route.assess(draft, folder)
        self._journal.learn(key, assessment.model_dump_json())
        return assessment

    def _attempt(self, turn: Turn) -> Attempt:
        plan, found = Plan.model_validate_json(turn.data), json.loads(turn.outcome)
        assessment = Assessment.model_validate(found["assessment"])
        asked, text = not plan.edit, found["text"]
        return Attempt(turn.number, plan.parent, plan.goal, assessment, text, asked)


def _again(before: Attempt) -> Assessment:
    """The same text cannot be better; the model is told."""
    note = Note(code="reply-same", message=f"this is the text of turn {before.number + 1} again")
    notes = (note, *(item for item in before.assessment.notes if item.code != note.code))
    return before.assessment.model_copy(update={"notes": notes})


def _query(plan: Plan) -> Query:
    fields = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in plan.query.items()
    }
    return Query(**fields)  # type: ignore[arg-type]


def _word(assessment: Assessment) -> str:
    if assessment.correct:
        return f"right, {assessment.us:.2f} us" if assessment.us is not None else "right"
    codes = ", ".join(assessment.codes[:3]) or "wrong"
    return f"{assessment.step.name.lower().replace('_', ' ')}, {codes}"
