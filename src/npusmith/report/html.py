"""report.html: one self-contained page about one verdict.

Everything on it that came from a stranger (task, kernel, messages) is escaped by the template; the
page holds no script, and its Content-Security-Policy allows nothing but its own style sheet.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from npusmith.errors import CODES
from npusmith.ir.launches import each_kernel, each_launch
from npusmith.ir.nodes import Program
from npusmith.report.ladder import ladder, reached, served
from npusmith.report.memory import Memory, versions
from npusmith.report.sources import Source, find_line, make_source, read_sources
from npusmith.report.split import Split, split
from npusmith.report.text import REPORT, figure, plain, size
from npusmith.target.chips import Chip, find_chip
from npusmith.task.verdict import Verdict
from npusmith.timing.profile import Profile
from npusmith.twin.finding import Finding, printed_by_core

_HERE = Path(__file__).parent
_STYLES = ("style.css", "picture.css")


def write_report(
    folder: Path,
    verdict: Verdict,
    program: Program | None = None,
    *,
    notes: Sequence[str] = (),
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
        pictures(program, row, shapes),
        notes=notes,
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


@dataclass(frozen=True, slots=True)
class Pictures:
    """What the two pictures show; None where there is no tile program or no shapes."""

    memories: tuple[Memory, ...] = ()  # one for each kernel of the program
    split: Split | None = None


def pictures(
    program: Program | None, chip: Chip, shapes: Mapping[str, tuple[int, ...]] | None
) -> Pictures:
    """Lowers the program for its buffers, and runs its host function on the first shapes."""
    if program is None:
        return Pictures()
    from npusmith.lower import lower

    parts = each_kernel(lower(program, chip))
    memories = tuple(
        replace(item, kernel=item.kernel or (part.kernel.name if len(parts) > 1 else ""))
        for part in parts
        for item in versions(part, chip)
    )
    return Pictures(memories, None if shapes is None else _split(program, chip, shapes))


def _split(program: Program, chip: Chip, shapes: Mapping[str, tuple[int, ...]]) -> Split:
    from npusmith.lang import run_host

    parts = each_launch(program)
    launched = [run_host(part, chip, dict(shapes)) for part in parts]
    values = {
        name: float(value) if isinstance(value, np.floating) else int(value)
        for item in launched
        for name, value in item.args.items()
    }
    if parts[0].kernel.is_cube:
        return split(launched[0].cores, values, chip.cube_cores, "cube")
    return split(launched[0].cores, values, chip.vector_cores)


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
    style = "".join((_HERE / name).read_text(encoding="utf-8") for name in _STYLES)
    row = chip or find_chip(verdict.chip)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            verdict=verdict,
            steps=ladder(verdict),
            reached=reached(verdict),
            served=served(verdict),
            printed=printed_by_core(verdict.prints),
            memories=shown.memories,
            split=shown.split,
            sources=sources,
            task=make_source("task", "task.py", task_source) if task_source else None,
            findings=[_Shown.of(item, sources) for item in verdict.findings],
            notes=notes,
            timed=timed,
            provenance=_flat({"chip description": _words(row), **verdict.provenance}),
            style=style,
            style_hash=_hash(style),
        )
    )


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


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"figure": figure, "plain": plain, "size": size}
    return environment


def _hash(style: str) -> str:
    """What the page's policy names: only this style sheet is used."""
    digest = hashlib.sha256(style.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()


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
