"""The route straight to Ascend C: one direct-launch source, or host and kernel of a project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path

from npusmith.agent import prompt
from npusmith.agent.assessment import Assessment, Note, Step, failed
from npusmith.agent.extract import blocks, find_files, find_source
from npusmith.agent.judging import judged
from npusmith.agent.ports import find_ports
from npusmith.agent.route import Draft
from npusmith.agent.shots import Shot, features, pick
from npusmith.agent.signatures import BASIC, Signatures
from npusmith.agent.talk import Answer, Usage
from npusmith.errors import NpusmithError
from npusmith.ir.nodes import Program
from npusmith.ir.opname import operator_type
from npusmith.ir.spec import OpSpec
from npusmith.lang import parse, parse_condition
from npusmith.lower import lower, plain_spec, project_files
from npusmith.target.chips import Chip
from npusmith.task.judge import judge
from npusmith.task.judge_options import JudgeOptions
from npusmith.task.prepared import Prepared
from npusmith.task.recording import Recording
from npusmith.task.source import judge_source
from npusmith.task.verdict import Verdict

_MOST_PROGRAM = 6500  # characters of an example, which are some four times as many lowered


class DirectRoute:
    """`rules`: "kernel" for one .asc source, "project" for op_host and op_kernel."""

    name = "direct"
    kind = "cpp"

    def __init__(
        self,
        prepared: Prepared,
        chip: Chip,
        tolerance: str,
        signatures: Signatures,
        shots: list[Shot],
        timed: bool,
        rules: str = "kernel",
        operator: str = "",
    ) -> None:
        self.rules = rules
        self.features = features(prepared.graph)
        self.chip = chip.name
        self.ports = find_ports(prepared, operator)
        self._prepared, self._row, self._tolerance, self._timed = prepared, chip, tolerance, timed
        self._signatures = signatures
        short = [shot for shot in shots if len(shot.program) <= _MOST_PROGRAM]
        self._shots = pick(self.features, short, 1)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of a candidate."""
        name = self.ports.operator
        if self.rules == "kernel":
            return (f"{name}.asc",)
        return (f"op_host/{name}.cpp", f"op_kernel/{name}.cpp")

    @property
    def extra(self) -> tuple[str, ...]:
        """Files that a candidate may have besides: the tiling data in a header of its own."""
        name = self.ports.operator
        headers = (f"op_host/{name}_tiling.h", f"op_kernel/{name}_tiling.h")
        return () if self.rules == "kernel" else headers

    def task(self) -> str:
        head = prompt.task_part(self.ports.source, self.ports.lines(), self._row)
        files = ", ".join(self.paths)
        files += f"; if you like, {' or '.join(self.extra)}" if self.extra else ""
        name = self.ports.operator
        called = f"{name}, its type {operator_type(name)}" if self.rules == "project" else name
        return f"{head}\n\nThe operator is called {called}. Files: {files}"

    def help(self, draft: Draft | None, assessment: Assessment | None) -> str:
        """An example for a first draft; and signatures: of what the findings name, then of what
        the text uses, then the basic ones."""
        said = " ".join(note.message for note in assessment.notes) if assessment else ""
        used = self._signatures.used_in(draft.text) if draft else []
        likely = self._signatures.for_ops(self.features.ops) if draft is None else []
        named = [name for name in used if name in said]
        lines = self._signatures.lines([*named, *used, *BASIC, *likely])
        parts = (self._example() if draft is None else "", prompt.signatures_part(lines))
        return "\n\n".join(part for part in parts if part)

    def _example(self) -> str:
        """For a source the one of the package; for a project what lowering makes of an example."""
        if self.rules == "kernel":
            return f"## Example: softsign of 6,400 elements\n\n{prompt.fence(example(), 'cpp')}"
        texts = [f"## Example: {shot.summary}\n\n{self._lowered(shot)}" for shot in self._shots]
        return "\n\n".join(texts)

    def _lowered(self, shot: Shot) -> str:
        program = parse(shot.program)
        files = project_files(lower(program, self._row), self._row, _spec(shot, program))
        wanted = {
            name: text for name, text in files.items()
            if name.startswith(("op_host/", "op_kernel/")) and name.endswith((".cpp", ".h"))
        }  # fmt: skip
        return _joined(wanted).text

    def read(self, answer: Answer) -> Draft:
        if self.rules == "kernel":
            source = find_source(answer)
            return Draft({self.paths[0]: source}, source)
        return _joined(find_files(answer, self.paths, self.extra))

    def edit(self, text: str) -> Draft:
        """A text that an item of knowledge changed: the source, or all files in their fences."""
        if self.rules == "kernel":
            return Draft({self.paths[0]: text}, text)
        answer = Answer(text=text, usage=Usage(prompt=0, completion=0))
        return _joined(find_files(answer, self.paths, self.extra))

    def names(self, text: str) -> tuple[str, ...]:
        plain = "\n".join(block.text for block in blocks(text)) or text
        return tuple(self._signatures.used_in(plain))

    def assess(self, draft: Draft, folder: Path) -> Assessment:
        for name, text in draft.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        try:
            found = judged(
                lambda recording: self._judge(folder, recording),
                self._prepared, self._row, folder, Step.READ, self._timed,
            )  # fmt: skip
        except NpusmithError as error:  # inputs that cannot be matched with the task's
            found = failed(Step.READ, error, folder)
        return found.model_copy(update={"notes": tuple(map(self._hinted, found.notes))})

    def _hinted(self, note: Note) -> Note:
        """Of launchers, what this task's is to be: the table's words are for people with a main."""
        if not note.code.startswith("launcher-"):
            return note
        ports = (*self.ports.inputs, *self.ports.outputs)
        tensors = ", ".join(f"uint8_t *{port.name}" for port in ports)
        name = f"{self.ports.operator}_do(uint32_t blockDim, void *stream, {tensors})"
        return note.model_copy(update={"hint": f'declare extern "C" void {name}'})

    def _judge(self, folder: Path, recording: Recording | None) -> Verdict:
        if self.rules == "kernel":
            return judge_source(
                folder / self.paths[0],
                self._prepared,
                self._row,
                self._tolerance,
                options=JudgeOptions(recording=recording),
            )
        return judge(
            folder,
            self._prepared,
            self._row,
            self._tolerance,
            options=JudgeOptions(dynamic=self.ports.dynamic, recording=recording),
        )


def _spec(shot: Shot, program: Program) -> OpSpec:
    """The operator of an example, with the shapes of its outputs."""
    spec = plain_spec(program)
    outputs = tuple(
        replace(port, dims=tuple(map(parse_condition, dims)))
        for port, dims in zip(spec.outputs, shot.dims, strict=True)
    )
    return replace(spec, outputs=outputs)


@cache
def example() -> str:
    """A whole source that is right, with tiles and a short last one."""
    folder = resources.files("npusmith.agent") / "texts"
    return (folder / "example.asc").read_text(encoding="utf-8")


def _joined(files: Mapping[str, str]) -> Draft:
    """The files in one text, in the form of a reply."""
    text = "\n".join(f"```cpp {name}\n{body.rstrip()}\n```" for name, body in files.items())
    return Draft(dict(files), text)
