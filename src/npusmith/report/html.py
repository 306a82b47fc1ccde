"""report.html: one self-contained page about one verdict.

Everything on it that came from a stranger (task, kernel, messages) is escaped by the template; its
policy allows nothing but its own style sheet and the script that zooms timelines.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from npusmith.errors import CODES
from npusmith.ir.launches import each_kernel, each_launch
from npusmith.ir.nodes import Program
from npusmith.report.fusion import fusion, step
from npusmith.report.ladder import ladder, reached, served
from npusmith.report.memory import Memory, versions
from npusmith.report.schedule import Box, boxes
from npusmith.report.sources import Source, find_line, make_source, read_sources
from npusmith.report.split import Split, split
from npusmith.report.text import REPORT, plain, size
from npusmith.report.webpage import assets, environment, script
from npusmith.target.chips import Chip, find_chip
from npusmith.task.verdict import Verdict
from npusmith.timing.profile import Profile
from npusmith.twin.finding import Finding, printed_by_core

_HERE = Path(__file__).parent
_MOST_LAUNCHES = 24  # whose cores and schedule are shown


def write_report(
    folder: Path,
    verdict: Verdict,
    program: Program | None = None,
    *,
    task_source: str = "",
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    chip: Chip | None = None,
    timed: Timed | None = None,
    sources: Path | None = None,
) -> Path:
    """Writes report.html into the result folder and returns its path.

    `program` is the tile program as written; the pictures show what lowering makes of it. `shapes`:
    of its tensors, at the task's first set of inputs, for the picture of the cores. `chip`:
    the verdict's, needed where it is not one of the table. `sources`: the folder whose files are
    shown, when it is not the result folder.
    """
    path = folder / REPORT
    row = chip or find_chip(verdict.chip)
    page = make_page(
        verdict,
        read_sources(sources or folder),
        pictures(program, row, shapes, verdict.provenance.get("schedule")),
        notes=verdict.provenance.get("notes", ()),
        task_source=task_source,
        chip=row,
        timed=timed,
    )
    path.write_text(page, encoding="utf-8")
    return path


@dataclass(frozen=True, slots=True)
class Timed:
    """What the section on time shows; the pictures are SVG elements of ours (report/svg.py)."""

    profile: Profile
    timeline: str
    roofline: str
    steps: str = ""  # what timeline.js zooms into
    cores: Sequence[tuple[str, str]] = ()  # words and picture, for each kind of core


@dataclass(frozen=True, slots=True)
class Kernelled:
    """One launch, and what it runs at the task's first shapes."""

    split: Split
    boxes: tuple[Box, ...]
    decisions: str = ""  # of the schedule, for this kernel


@dataclass(frozen=True, slots=True)
class Pictures:
    """What the pictures of a tile program show; nothing where there is none, or no shapes."""

    memories: tuple[Memory, ...] = ()  # one for each kernel of the program
    launches: tuple[Kernelled, ...] = ()
    fusion: str = ""
    more: int = 0  # launches that are left out


def pictures(
    program: Program | None,
    chip: Chip,
    shapes: Mapping[str, tuple[int, ...]] | None,
    schedule: object = None,
) -> Pictures:
    """Lowers the program for its buffers, and runs its host function on the first shapes.

    `schedule`: the search's, as the verdict keeps it.
    """
    if program is None:
        return Pictures()
    from npusmith.lower import lower

    parts = each_kernel(lower(program, chip))
    memories = tuple(
        replace(item, kernel=item.kernel or (part.kernel.name if len(parts) > 1 else ""))
        for part in parts
        for item in versions(part, chip)
    )
    if shapes is None:
        return Pictures(memories)
    return _launches(program, chip, shapes, Pictures(memories), decisions(schedule))


def _launches(
    program: Program,
    chip: Chip,
    shapes: Mapping[str, tuple[int, ...]],
    made: Pictures,
    schedules: list[str],
) -> Pictures:
    from npusmith.lang import run_host

    parts = each_launch(program)
    launched = [run_host(part, chip, dict(shapes)) for part in parts]
    names = [part.kernel.name if len(parts) > 1 else "" for part in parts]
    if len(schedules) != len(parts):
        schedules = [""] * len(parts)
    # Equal layers share a kernel: each is shown once.
    first = {part.kernel.name: at for at, part in reversed(list(enumerate(parts)))}
    shown = sorted(first.values())[:_MOST_LAUNCHES]
    launches = tuple(
        Kernelled(
            split(parts[at], launched[at], chip, names[at]), boxes(parts[at], launched[at]),
            schedules[at],
        )
        for at in shown
    )  # fmt: skip
    steps = [step(part, item, part.kernel.name) for part, item in zip(parts, launched, strict=True)]
    outputs = [item.name for item in program.outputs]
    return replace(
        made, launches=launches, fusion=fusion(steps, outputs), more=len(parts) - len(shown)
    )


def decisions(schedule: object) -> list[str]:
    """What a schedule decides for each kernel, in words."""
    inner = schedule.get("schedule", schedule) if isinstance(schedule, Mapping) else {}
    rows = inner.get("kernels", [inner]) if isinstance(inner, Mapping) else []
    return [_decided(row) for row in rows if isinstance(row, Mapping)] if type(rows) is list else []


def _decided(row: Mapping[str, object]) -> str:
    return "; ".join(
        f"{name}: {' x '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in row.items()
    )


def make_page(
    verdict: Verdict,
    sources: tuple[Source, ...],
    shown: Pictures,
    *,
    notes: Sequence[str] = (),
    task_source: str = "",
    chip: Chip | None = None,
    timed: Timed | None = None,
) -> str:
    """The page's text."""
    row = chip or find_chip(verdict.chip)
    return (
        environment(_HERE, {})
        .get_template("page.html.j2")
        .render(
            verdict=verdict,
            steps=ladder(verdict),
            reached=reached(verdict),
            served=served(verdict),
            printed=printed_by_core(verdict.prints),
            shown=shown,
            marks=_line_marks(timed.profile, sources) if timed else {},
            sources=sources,
            task=make_source("task", "task.py", task_source) if task_source else None,
            findings=[_Shown.of(item, sources) for item in verdict.findings],
            notes=notes,
            timed=timed,
            provenance=_flat({"chip description": _words(row), **verdict.provenance}),
            assets=assets((), (script("timeline"),)),
        )
    )


@dataclass(frozen=True, slots=True)
class Mark:
    """The time of a line of a source: `level` 1 to 4 is its shade, 0 is none."""

    us: float
    level: int
    words: str


def _line_marks(profile: Profile, sources: tuple[Source, ...]) -> dict[str, Mark]:
    """By the anchor of its line; the time of all pipes, which may work beside each other."""
    most = max((row.us for row in profile.lines), default=0.0) or 1.0
    found = {}
    for row in profile.lines:
        anchor = find_line(sources, row.file, row.line)
        words = f"{row.us:.2f} us on a mean core, mostly {row.unit}; waited {row.waited_us:.2f} us"
        if anchor:
            found[anchor] = Mark(row.us, min(int(4 * row.us / most + 0.8), 4), words)
    return found


@dataclass(frozen=True, slots=True)
class _Shown:
    """A finding with its row's text filled in, and the anchor of its line."""

    finding: Finding
    legal: str
    hint: str
    anchor: str

    @classmethod
    def of(cls, item: Finding, sources: tuple[Source, ...]) -> _Shown:
        row = CODES[item.code]
        anchor = find_line(sources, item.file, item.line)
        return cls(item, item.legal or row.legal, item.hint or row.hint, anchor)


def _words(chip: Chip) -> str:
    """What the twin was told about the chip."""
    return (
        f"{chip.name} ({chip.soc_version}, {chip.arch}): {chip.vector_cores} vector cores, "
        f"{chip.cube_cores} cube cores, {chip.clock_mhz} MHz, UB {size(chip.ub_total_bytes)} of "
        f"which {size(chip.ub_bytes)} for buffers"
    )


def _flat(data: Mapping[str, object]) -> list[tuple[str, str]]:
    """Provenance as rows: name and value in words."""
    rows = []
    for name, value in data.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        rows.append((name, plain(text)))
    return rows
