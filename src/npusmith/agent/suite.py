"""The route of a benchmark's own: its prompt, its form of answer, its binding and its rule.

For items that only their suite can judge (NPUKernelBench's kernel-only answers), and for any other
with `route=suite`. The suite judges on inputs of other seeds than those that the record is made on,
so that what is fed back says nothing about them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from npusmith import pipeline
from npusmith.agent import prompt
from npusmith.agent.assessment import Assessment, Note, Step, assess_verdict, failed, step_of
from npusmith.agent.extract import after_thoughts, blocks
from npusmith.agent.route import Draft
from npusmith.agent.shots import Features
from npusmith.agent.signatures import Signatures
from npusmith.agent.talk import Answer, Usage
from npusmith.bench.model import Brief, Candidate, Item, Limits, Record
from npusmith.bench.suites.options import SEEDS
from npusmith.errors import CODES, NpusmithError
from npusmith.target.chips import Chip
from npusmith.task.verdict import Rung, Trial
from npusmith.writers.folder import format_of

_OTHER = 7919  # seeds away from those of the record
_TRIALS = 2
_SAID = re.compile(
    r"(?:[\w ]+: )*?(?P<code>[a-z]+-[a-z0-9-]+): (?P<words>.*?)"
    r"(?: \((?:[\w./]*/)?(?P<file>[\w.]+):(?P<line>\d+)\))?"
)
_OWN = re.compile(r"/\S*?npusmith-unit-\w+/")
_KERNEL = re.compile(r"<kernel_impl>.*</kernel_impl>", re.DOTALL)


class Home(Protocol):
    """What this route needs of a suite."""

    def evaluate(self, item: Item, candidate: Candidate, limits: Limits) -> Record: ...

    def export(self, item: Item, candidate: Candidate, folder: Path, chip: str) -> None: ...


class SuiteRoute:
    """Answers to a suite's prompt, judged by the suite."""

    name = "direct"
    rules = "suite"
    kind = ""

    def __init__(
        self, brief: Brief, home: Home, limits: Limits, chip: Chip, signatures: Signatures,
        timed: bool,
    ) -> None:  # fmt: skip
        if not brief.prompt:
            raise NpusmithError("usage", f"{brief.item.name} has no prompt of its suite")
        self._brief, self._home, self._row, self._signatures = brief, home, chip, signatures
        self._limits = limits.model_copy(
            update={
                "seed": (limits.seed + _OTHER) % SEEDS, "timing": timed, "stop": False,
                "trials": min(limits.trials, _TRIALS),
            }
        )  # fmt: skip
        self.chip = chip.name
        item = brief.item
        self.features = Features(
            category=item.category.lower(), axis="none", rank=0, row=0, ops=(),
            dtypes=(item.dtype,) if item.dtype else (),
        )  # fmt: skip

    @property
    def judge(self) -> str:
        """What a verdict depends on besides the candidate."""
        return f"{self._brief.item.digest} {self._limits.model_dump_json()}"

    def task(self) -> str:
        return self._brief.prompt.strip()

    def help(self, draft: Draft | None, assessment: Assessment | None) -> str:
        """Nothing to the suite's own prompt; signatures of what a candidate calls."""
        if draft is None:
            return ""
        said = " ".join(note.message for note in assessment.notes) if assessment else ""
        used = self._signatures.used_in(draft.text)
        named = [name for name in used if name in said]
        return prompt.signatures_part(self._signatures.lines([*named, *used]))

    def read(self, answer: Answer) -> Draft:
        """The answer without what stands before it; raises reply-no-code."""
        text = after_thoughts(answer.text)
        kernel = _KERNEL.search(text)
        text = kernel.group() if kernel else text.strip()
        if not blocks(text) and kernel is None:
            code = "reply-cut" if answer.finish == "length" else "reply-no-code"
            seen = f"{len(answer.text):,} characters of text"
            raise NpusmithError(
                code, "the reply is not in the form that is asked for", seen=seen,
                legal="the form of answer that the task shows", hint="copy its tags and fences",
            )  # fmt: skip
        return Draft({"response.txt": text + "\n"}, text + "\n")

    def edit(self, text: str) -> Draft:
        return self.read(Answer(text=text, usage=Usage(prompt=0, completion=0)))

    def names(self, text: str) -> tuple[str, ...]:
        return tuple(self._signatures.used_in(text))

    def candidate(self, text: str, writer: str = "") -> Candidate:
        """An answer as the suite takes it."""
        kind = format_of(text, self._brief)
        return Candidate(format=kind, files={"response.txt": text}, writer=writer)

    def assess(self, draft: Draft, folder: Path) -> Assessment:
        """What does not compile is found with its lines first; then the suite's word."""
        candidate = self.candidate(draft.text)
        try:
            self._home.export(self._brief.item, candidate, folder / "project", self.chip)
            built = pipeline.check(folder / "project", self._row)
            if not built.compiled:
                return _lined(assess_verdict(built, Step.READ, folder), folder / "project")
            record = self._home.evaluate(self._brief.item, candidate, self._limits)
        except NpusmithError as error:
            return failed(Step.READ, error, folder)
        return _lined(assess_record(record), folder / "project")


def assess_record(record: Record) -> Assessment:
    """What a suite says of a candidate, in the form of this package."""
    right = bool(record.official and record.strict) and not record.cheating
    own = [note for note in record.trials if note.own]
    share = sum(note.passed for note in own) / len(own) if own else 0.0
    notes = [_note(text) for text in record.messages]
    if not right:
        told = {note.code for note in notes}
        notes += [note for note in _unlike(record) if note.code not in told]
    return Assessment(
        step=max(step_of(Rung(record.rung or "none")), Step.READ),
        correct=right,
        share=share if record.accuracy is None else record.accuracy,
        notes=tuple(dict.fromkeys(notes)),
        us=record.time_us if right else None,
        bound_us=record.roof_us if right else None,
        profile=_profile(record) if right else (),
    )


def _unlike(record: Record) -> list[Note]:
    """The sets of inputs that fail; where there are none, the record's own word."""
    failed_sets = [note for note in record.trials if note.message and not note.passed]
    if failed_sets:
        return [_trial(note) for note in failed_sets[:3]]
    return [_note(record.error)] if record.error else []


def _trial(note: Trial) -> Note:
    said = _note(note.message)
    if said.code != "agent-values":
        return said
    seen = f"{note.mismatched:,} of {note.elements:,} elements differ" if note.elements else ""
    return said.model_copy(update={"message": f"{note.name}: {said.message}", "seen": seen})


def _note(text: str) -> Note:
    """`code: words (file:line)`, as suites keep findings; values are wrong where no code is."""
    text = _OWN.sub("", " ".join(text.split()))
    found = _SAID.fullmatch(text)
    if found is None or found["code"] not in CODES:
        return Note(code="agent-values", message=text[:400])
    return Note(
        code=found["code"], level=CODES[found["code"]].level, message=found["words"][:400],
        file=found["file"] or "", line=int(found["line"] or 0),
    )  # fmt: skip


def _profile(record: Record) -> tuple[str, ...]:
    if record.time_us is None:
        return (record.time_note,) if record.time_note else ()
    line = f"kernel {record.time_us:.2f} us"
    if record.roof_us:
        line += f", {record.time_us / record.roof_us:.1f} times the roof of {record.roof_us:.2f} us"
    busy: dict[str, float] = {}
    for span in record.timeline:
        busy[span.unit] = busy.get(span.unit, 0.0) + span.end - span.begin
    whole = max((span.end for span in record.timeline), default=0.0)
    pipes = [f"{unit} {part / whole:.0%}" for unit, part in sorted(busy.items()) if whole]
    return (line, f"busy: {', '.join(pipes)}") if pipes else (line,)


def _lined(assessment: Assessment, project: Path) -> Assessment:
    """With the text of the lines that are named: an answer has no line numbers of its own."""
    notes = tuple(_with_line(note, project) for note in assessment.notes)
    return assessment.model_copy(update={"notes": notes})


def _with_line(note: Note, project: Path) -> Note:
    """Findings without a folder are the kernel's: hosts are not judged by the twin."""
    if not note.file or not note.line:
        return note
    found = sorted(
        project.rglob(Path(note.file).name), key=lambda path: path.parent.name != "op_kernel"
    )
    texts = found[0].read_text(encoding="utf-8", errors="replace").split("\n") if found else []
    if not 0 < note.line <= len(texts):
        return note
    own = f"the line is {' '.join(texts[note.line - 1].split())[:200]}"
    seen = "; ".join(filter(None, [note.seen, own]))
    return note.model_copy(update={"file": found[0].relative_to(project).as_posix(), "seen": seen})
