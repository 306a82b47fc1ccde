"""The reward: `reward(task, completion) -> (float, details)`, from running what a model wrote.

    from npusmith.train import reward
    value, details = reward(Path("task.py"), completion)         # or the task's text
    reward.batch(tasks, completions)                             # several at a time
    await reward.ask(task, completion)
    GRPOTrainer(..., reward_funcs=[reward.trl])                  # the data has a column `task`

`Reward(route=Route.TWIN, ...)` makes another one. See docs/reward.md for levels and routes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from npusmith.bench.plan import judge_digest
from npusmith.errors import NpusmithError
from npusmith.sandbox.folder import temporary_folder
from npusmith.store.turns import Journal, open_journal
from npusmith.target.chips import DEFAULT_CHIP, find_chip
from npusmith.task.tolerance import check_profile
from npusmith.train.interpreted import interpret_all
from npusmith.train.levels import Level, score
from npusmith.train.on_twin import judge_on_twin
from npusmith.train.opened import Opened, Tasks
from npusmith.twin.cache import cache_root

MOST_CHARS = 1 << 20  # of a completion
_IN_A_BOX = 8  # completions that share one
_ROOT = Path(__file__).parents[1]
_OWN = ("train", "agent", "plan")  # what the judge's digest leaves out and a reward depends on


class Route(str, Enum):
    """How a completion is judged."""

    INTERPRETER = "interpreter"  # tile programs, in NumPy; times by the program's text
    TWIN = "twin"  # tile programs and Ascend C, compiled and run; times by the timing model


class Details(BaseModel):
    """Why a completion has its reward. Times are estimates, in microseconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reward: float
    level: str  # nothing, parsed, legal, ran or right
    share: float = 0.0  # of the sets of inputs that are right
    sets: int = 0
    us: float | None = None
    reference_us: float | None = None
    reference: str = ""  # whose time that is: the compiler's program, or eager PyTorch
    codes: tuple[str, ...] = ()
    reason: str = ""  # the first finding in words
    weak_task: tuple[str, ...] = ()  # do-nothing kernels that would pass this task
    route: Route = Route.INTERPRETER
    audit: str = ""  # what the twin said of a right one, where it was asked too


Task = Path | str


class Reward:
    """A reward with its workers, its tasks and what it judged before.

    `folder`: where these are kept; default: in npusmith's cache. `seconds`: of a processor, for a
    completion. `audit`: the share of right tile programs that the twin judges besides; one that it
    refuses counts as one that ran. `workers`: candidates at a time; 0: one for each processor.
    """

    def __init__(
        self,
        *,
        route: Route = Route.INTERPRETER,
        chip: str = DEFAULT_CHIP,
        tolerance: str = "default",
        folder: Path | None = None,
        workers: int = 0,
        seconds: float = 10.0,
        audit: float = 0.0,
    ) -> None:
        self.route, self.seconds, self.audit = route, seconds, audit
        self.chip, self.profile = find_chip(chip), check_profile(tolerance)
        self.folder = folder or cache_root() / "reward"
        self.workers = workers or len(os.sched_getaffinity(0))
        self.seen: Counter[str] = Counter()  # levels and audits of what was judged anew
        self._tasks = Tasks(self.folder, self.chip, self.profile)
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="reward")
        self._local, self._lock = threading.local(), threading.Lock()
        self._references: dict[str, tuple[float | None, str]] = {}

    # ---- asking

    def __call__(self, task: Task, completion: str) -> tuple[float, Details]:
        """Reward and details of one completion. Raises TaskError for an unusable task."""
        (found,) = self.batch([task], [completion])
        return found

    def batch(
        self, tasks: Sequence[Task], completions: Sequence[str]
    ) -> list[tuple[float, Details]]:
        """The same of several, in their order; those of one task are judged together."""
        futures = self._submit(list(zip(tasks, completions, strict=True)))
        found = [future.result()[at] for future, at in futures]
        return [(item.reward, item) for item in found]

    async def ask(self, task: Task, completion: str) -> tuple[float, Details]:
        """The same of one, without holding up the event loop."""
        ((future, at),) = self._submit([(task, completion)])
        found = (await asyncio.wrap_future(future))[at]
        return found.reward, found

    # ---- forms of other libraries

    def trl(
        self, prompts: Sequence[Any], completions: Sequence[Any], task: Sequence[Task], **_: Any
    ) -> list[float]:
        """A reward function of TRL's trainers; the data set's column `task` has the tasks."""
        return [value for value, _ in self.batch(task, [text_of(item) for item in completions])]

    def verl(
        self, data_source: str, solution_str: str, ground_truth: Task, extra_info: Any = None
    ) -> dict[str, Any]:
        """verl's compute_score; `ground_truth` is the task."""
        value, details = self(ground_truth, solution_str)
        return {"score": value, "level": details.level, "share": details.share}

    # ---- judging

    def _submit(self, asked: list[tuple[Task, str]]) -> list[tuple[Future[list[Details]], int]]:
        """For each what will hold its details, and where in it."""
        places: dict[tuple[Task, str], tuple[Future[list[Details]], int]] = {}
        groups: dict[Task, list[str]] = {}
        for task, text in dict.fromkeys(asked):
            groups.setdefault(task, []).append(text)
        for task, texts in groups.items():
            size = max(1, min(_IN_A_BOX, -(-len(texts) // self.workers)))
            for start in range(0, len(texts), size):
                part = texts[start : start + size]
                future = self._pool.submit(self._judge, task, part)
                places |= {(task, text): (future, at) for at, text in enumerate(part)}
        return [places[item] for item in asked]

    def _judge(self, task: Task, texts: list[str]) -> list[Details]:
        """In a worker: from what was judged before, or anew."""
        with self._tasks.use(task) as opened:
            keys = [self._key(opened, text) for text in texts]
            known = [self._journal.known(key) for key in keys]
            fresh = [text for text, old in zip(texts, known, strict=True) if not old]
            made = iter(self._judge_fresh(fresh, opened) if fresh else [])
            found = []
            for key, old in zip(keys, known, strict=True):
                details = Details.model_validate_json(old) if old else next(made)
                if not old and "internal" not in details.codes:
                    self._journal.learn(key, details.model_dump_json())
                found.append(details)
            return found

    def _judge_fresh(self, texts: list[str], opened: Opened) -> list[Details]:
        usable = [text for text in texts if not unusable(text)]
        rows = iter(self._run(usable, opened) if usable else [])
        found = [
            _refused(why, self.route) if (why := unusable(text)) else
            self._details(next(rows), text, opened) for text in texts
        ]  # fmt: skip
        with self._lock:
            self.seen.update(item.level for item in found)
            self.seen.update(f"audit {item.audit}" for item in found if item.audit)
        return found

    def _run(self, texts: list[str], opened: Opened) -> list[dict[str, Any]]:
        if self.route is Route.INTERPRETER:
            if not opened.sets:
                raise NpusmithError(
                    "reward-task", "every set of inputs is too large for the interpreter",
                    hint="use the route twin, or a task of smaller shapes",
                )  # fmt: skip
            return interpret_all(texts, opened, self.seconds)
        return [self._on_twin(text, opened) for text in texts]

    def _on_twin(self, text: str, opened: Opened) -> dict[str, Any]:
        with temporary_folder("npusmith-reward-") as work:
            return judge_on_twin(text, opened, work)

    def _details(self, found: dict[str, Any], text: str, opened: Opened) -> Details:
        level, audit = Level(found["level"]), ""
        notes = found["notes"]
        if level is Level.RIGHT and self.route is Route.INTERPRETER and self._is_audited(text):
            second = self._on_twin(text, opened)
            audit = "agrees" if second["level"] == Level.RIGHT else "refuses"
            if audit == "refuses":
                level, notes = Level.RAN, second["notes"]
        us = found["us"] if level is Level.RIGHT else None
        reference_us, reference = self._reference(opened) if us is not None else (None, "")
        first = notes[0] if notes else {"message": "", "line": 0}
        where = f"line {first['line']}: " if first["line"] else ""
        return Details(
            reward=round(score(level, found["share"], us, reference_us), 6),
            level=level.name.lower(), share=found["share"], sets=found.get("sets", 0), us=us,
            reference_us=reference_us, reference=reference,
            codes=tuple(dict.fromkeys(note["code"] for note in notes)),
            reason=f"{where}{first['message']}"[:400], weak_task=opened.weak, route=self.route,
            audit=audit,
        )  # fmt: skip

    def _is_audited(self, text: str) -> bool:
        """By the text: the same ones every time."""
        place = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32
        return place < self.audit

    def _reference(self, opened: Opened) -> tuple[float | None, str]:
        """The time to beat, found once for a task."""
        with self._lock:
            known = self._references.get(opened.digest)
        if known is None:
            known = (
                opened.static_reference()
                if self.route is Route.INTERPRETER
                else self._twin_reference(opened)
            )
            with self._lock:
                self._references[opened.digest] = known
        return known

    def _twin_reference(self, opened: Opened) -> tuple[float | None, str]:
        text = opened.teacher_text()
        if text is None:
            return opened.eager_reference()
        key = self._key(opened, f"reference {text}")
        if not (kept := self._journal.known(key)):
            kept = json.dumps(self._on_twin(text, opened)["us"])
            self._journal.learn(key, kept)
        us = json.loads(kept)
        return (us, "compiler") if us is not None else opened.eager_reference()

    def _key(self, opened: Opened, text: str) -> str:
        """Of everything that the details depend on."""
        parts = [
            opened.digest, self.chip.record(), self.profile, self.route.value, self.seconds,
            self.audit, code_digest(),
            hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def _journal(self) -> Journal:
        """A connection of this thread's own."""
        if not hasattr(self._local, "journal"):
            self._local.journal = open_journal(self.folder)
        journal: Journal = self._local.journal
        return journal

    def close(self) -> None:
        """Ends the workers, once what they are at is done."""
        self._pool.shutdown(cancel_futures=True)
        self._tasks.close()

    def __enter__(self) -> Reward:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def text_of(completion: Any) -> str:
    """The text of a completion, which may be a list of messages: the last one's."""
    if isinstance(completion, str):
        return completion
    return str(completion[-1]["content"]) if completion else ""


def unusable(text: str) -> str:
    """Why nothing in the text is looked at; "" where it is."""
    if len(text) > MOST_CHARS:
        return f"the completion has {len(text):,} characters, and {MOST_CHARS:,} are read"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "the completion is not UTF-8 text"
    return ""


def _refused(why: str, route: Route) -> Details:
    return Details(
        reward=0.0, level=Level.NOTHING.name.lower(), codes=("reply-no-code",), reason=why,
        route=route,
    )  # fmt: skip


@cache
def code_digest() -> str:
    """Of what judges, and of what the reward adds to it."""
    whole = hashlib.sha256(judge_digest().encode())
    for part in _OWN:
        for path in sorted((_ROOT / part).rglob("*.py")):
            whole.update(path.read_bytes())
    return whole.hexdigest()


@cache
def _default() -> Reward:
    return Reward()


class _Shared:
    """The reward with default options, made when it is asked for the first time."""

    def __call__(self, task: Task, completion: str) -> tuple[float, Details]:
        return _default()(task, completion)

    def __getattr__(self, name: str) -> Any:
        return getattr(_default(), name)

    __name__ = "reward"  # TRL calls what it logs by it


reward = _Shared()
