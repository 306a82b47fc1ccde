"""The route through the tile language: parse, check, interpret, lower, judge, time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from npusmith.agent import prompt
from npusmith.agent.assessment import Assessment, Note, Step, failed, notes_of
from npusmith.agent.extract import find_program
from npusmith.agent.judging import judged
from npusmith.agent.ports import Ports, find_ports
from npusmith.agent.route import Draft
from npusmith.agent.shots import Shot, features, pick
from npusmith.agent.talk import Answer
from npusmith.agent.values import check_values
from npusmith.agent.written import Start, find_start
from npusmith.errors import LangError, NpusmithError
from npusmith.ir.nodes import Program
from npusmith.ir.spec import OpSpec
from npusmith.lang import check_all, parse
from npusmith.lang.words import OPERATIONS
from npusmith.lower import lower, origins, write_project
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.chips import Chip
from npusmith.task.judge import judge
from npusmith.task.judge_options import JudgeOptions
from npusmith.task.prepared import Prepared
from npusmith.task.recording import Recording
from npusmith.task.verdict import Verdict
from npusmith.writers.folder import read_project_files

_WORD = re.compile(r"\b([a-z_]\w*)\s*\(")


class TileRoute:
    """Judges tile programs for one prepared task. `start`: what find_start takes as its choice."""

    name = rules = "tile"
    kind = "python"

    def __init__(
        self,
        prepared: Prepared,
        chip: Chip,
        tolerance: str,
        shots: list[Shot],
        timed: bool,
        operator: str = "",
        start: str = "none",
    ) -> None:
        self.features = features(prepared.graph)
        self.chip = chip.name
        self.ports: Ports = find_ports(prepared, operator)
        self._prepared, self._row, self._tolerance, self._timed = prepared, chip, tolerance, timed
        self._shots, self._wanted = pick(self.features, shots), start

    @property
    def file(self) -> str:
        """The program's path in a project."""
        return f"{self.ports.operator}.tile.py"

    def task(self) -> str:
        head = prompt.task_part(self.ports.source, self.ports.lines(), self._row)
        called = (
            f"Call the kernel {self.ports.operator}, several {self.ports.operator}_1 and so on."
        )
        return f"{head}\n\n{called}\n\n{prompt.tile_reference(self.features.cards)}"

    def help(self, draft: Draft | None, assessment: Assessment | None) -> str:
        """Two examples to begin with, and what the writer has; one example beside a candidate."""
        if draft is not None:
            return prompt.shots_part(self._shots[:1])
        parts = (prompt.shots_part(self._shots), prompt.start_part(self._start))
        return "\n\n".join(filter(None, parts))

    @cached_property
    def _start(self) -> Start | None:
        graph, name = self._prepared.graph, self.ports.operator
        return find_start(graph, name, self._row, self._wanted)

    def read(self, answer: Answer) -> Draft:
        return self.edit(find_program(answer))

    def edit(self, text: str) -> Draft:
        return Draft({self.file: text}, text)

    def names(self, text: str) -> tuple[str, ...]:
        return tuple(name for name in dict.fromkeys(_WORD.findall(text)) if name in OPERATIONS)

    def assess(self, draft: Draft, folder: Path) -> Assessment:
        """The stages in their order; the first that fails says why."""
        found = self._staged(draft, folder)
        notes = (
            note.model_copy(update={"file": self.file}) if note.line and not note.file else note
            for note in found.notes  # interpreter and lowering know the line alone
        )
        return found.model_copy(update={"notes": tuple(notes)})

    def _staged(self, draft: Draft, folder: Path) -> Assessment:
        try:
            program = parse(draft.text, self.file)
        except LangError as error:
            return failed(Step.READ, error)
        if wrong := check_all(program, self._row, self.file):
            notes = tuple(note for error in wrong for note in notes_of(error.record()))
            return Assessment(step=Step.PARSED, notes=notes)
        try:
            spec = self.ports.spec(program)
        except LangError as error:
            return failed(Step.PARSED, error)
        if notes := check_values(draft.text, spec, self._prepared, self._row, self._tolerance):
            return Assessment(step=Step.LEGAL, notes=notes)
        return self.build(program, spec, draft, folder)

    def build(self, program: Program, spec: OpSpec, draft: Draft, folder: Path) -> Assessment:
        """Lowers a legal program, compiles it and has it judged on every set."""
        try:
            lowered = self.write(program, spec, draft.text, folder)
        except NpusmithError as error:
            return failed(Step.MEANT, error, folder)
        dynamic = self.ports.serves(spec)

        def run(recording: Recording | None) -> Verdict:
            options = JudgeOptions(dynamic=dynamic, recording=recording)
            return judge(folder, self._prepared, self._row, self._tolerance, options, spec=spec)

        found = judged(run, self._prepared, self._row, folder, Step.LOWERED, self._timed)
        if all(note.file in ("", self.file) for note in found.notes):
            return found
        home = origins(lowered, spec)
        made = (folder / self._kernel).read_text(encoding="utf-8").split("\n")
        return found.model_copy(
            update={"notes": tuple(self._at_home(note, home, made) for note in found.notes)}
        )

    def write(self, program: Program, spec: OpSpec, text: str, folder: Path) -> Program:
        """The project of a legal program; gives the program as it was lowered."""
        lowered = lower(program, self._row)
        write_project(lowered, self._row, folder, spec)
        (folder / self.file).write_text(text, encoding="utf-8")
        return lowered

    def files(self, text: str) -> dict[str, str]:
        """The project around a program.

        One that cannot be lowered is its text alone; whoever judges it says what is wrong.
        """
        with temporary_folder("npusmith-agent-") as name:
            folder = Path(name)
            try:
                program = parse(text, self.file)
                self.write(program, self.ports.spec(program), text, folder)
            except NpusmithError:
                return {self.file: text}
            return read_project_files(folder)

    def serves(self, text: str) -> bool:
        """Whether a program means to serve other shapes than the task's own."""
        try:
            return self.ports.serves(self.ports.spec(parse(text, self.file)))
        except LangError:
            return False

    @property
    def _kernel(self) -> str:
        return f"op_kernel/{self.ports.operator}.cpp"

    def _at_home(self, note: Note, home: Mapping[int, int], made: Sequence[str]) -> Note:
        """A finding in the generated C++, at the line of the tile program that it was made of."""
        if note.file in ("", self.file):
            return note
        line = home.get(note.line, 0) if note.file == self._kernel else 0
        if not line:
            return note.model_copy(update={"file": f"generated {note.file}"})
        seen = f"{note.seen}; " if note.seen else ""
        seen += f"this line became {made[note.line - 1].strip()}"
        for number, own in home.items():  # the other side of a race
            seen = re.sub(rf"\b{self.ports.operator}\.cpp:{number}\b", f"line {own}", seen)
        return note.model_copy(update={"file": self.file, "line": line, "seen": seen})
