"""`npusmith mcp`: check, run, profile, search-knowledge and generate for coding agents, over stdio.

Each tool takes paths or text and gives the document that the command of the same name prints with
--json. What fails is an answer too: `{"verdict": "error", "error": {code, message, seen, ...}}`.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from npusmith import __version__, pipeline, profiling
from npusmith.agent.library import open_library
from npusmith.agent.prompt import rules, tile_reference
from npusmith.agent.weighed import Step, render, weigh_verdict
from npusmith.errors import NpusmithError
from npusmith.knowledge.seam import Query
from npusmith.target.chips import find_chip
from npusmith.task.verdict import Verdict

Answer = dict[str, Any]
_ABOUT = (
    "Writes and judges Ascend C operators without an NPU. Write a tile program (ask `language` for "
    "its rules), `check` it, lower and judge it with `run`, see what limits it with `profile`. "
    "Every time is an estimate of a model, not a measurement."
)
_MOST_TEXT = 1 << 20


class _Quiet:
    """Nobody watches: stdout and stderr belong to the protocol."""

    def step(self, name: str, detail: str = "") -> None:
        return None


def serve(chip: str, knowledge: str) -> None:
    """Until the client closes the pipe; raises extra-missing without the mcp package."""
    make_server(chip, knowledge).run("stdio")


def make_server(chip: str, knowledge: str) -> Any:
    """The server with its tools."""
    try:
        from mcp.server import MCPServer
    except ImportError as error:
        raise NpusmithError(
            "extra-missing", "the package mcp is not installed", hint='pip install "npusmith[mcp]"'
        ) from error
    server = MCPServer("npusmith", version=__version__, instructions=_ABOUT, log_level="ERROR")
    tools = Tools(chip, knowledge)
    for name, tool in tools.named().items():
        server.add_tool(_answering(tool), name=name, description=tool.__doc__)
    return server


class Tools:
    """The tools as plain functions."""

    def __init__(self, chip: str, knowledge: str) -> None:
        self._chip, self._knowledge = find_chip(chip), knowledge

    def named(self) -> dict[str, Callable[..., Answer]]:
        return {
            "check": self.check,
            "run": self.run,
            "profile": self.profile,
            "search-knowledge": self.search,
            "generate": self.generate,
            "language": self.language,
        }

    def language(self) -> Answer:
        """The rules of the tile language, and its operations."""
        return {"rules": rules("tile"), "reference": tile_reference()}

    def check(self, path: str = "", text: str = "") -> Answer:
        """Parse, check the rules, and compile; run nothing. `text`: a tile program, or `path`: a
        tile program, an Ascend C source or a project folder."""
        if bool(path) is bool(text):
            raise NpusmithError("usage", "check takes either a path or a text")
        if path:
            return _document(pipeline.check(Path(path), self._chip))
        if len(text) > _MOST_TEXT:
            raise NpusmithError("lang-too-large", f"the text has {len(text):,} characters")
        with tempfile.TemporaryDirectory(prefix="npusmith-check-") as name:
            file = Path(name, "program.tile.py")
            file.write_text(text, encoding="utf-8", errors="replace")
            return _document(pipeline.check(file, self._chip), file.parent)

    def run(self, project: str, task: str = "", tolerance: str = "default") -> Answer:
        """Judge a project folder, a direct-launch source or a submission against a task file
        (Model, get_inputs, get_init_inputs), on the CPU twin."""
        given = Path(task) if task else None
        found = pipeline.run(Path(project), given, self._chip, tolerance, _Quiet())
        return _document(found, Path(project))

    def profile(self, project: str, task: str = "", out: str = "") -> Answer:
        """Estimate the time of a project on the chip: pipes, stalls, roofs, advice. Leaves
        trace.json and report.html in `out` when that is given."""
        with tempfile.TemporaryDirectory(prefix="npusmith-profile-") as name:
            folder = Path(out) if out else Path(name, "profile")
            found = profiling.profile(
                Path(project), Path(task) if task else None, self._chip, "default", _Quiet(),
                profiling.Options(out=folder),
            )  # fmt: skip
        answer = _document(found.verdict, Path(project))
        if found.profile is not None:
            made = found.profile.model_dump(mode="json", exclude={"vector", "hinges"})
            answer["profile"] = made
        return answer

    def search(
        self,
        words: str = "",
        codes: list[str] | None = None,
        apis: list[str] | None = None,
        category: str = "",
        route: str = "tile",
        most: int = 6,
    ) -> Answer:
        """Verified items of the knowledge store for a situation: finding codes, operations or API
        names, an operator's category, a text. `route`: tile or direct."""
        base = open_library(self._knowledge)
        if base is None:
            raise NpusmithError(
                "usage", "no knowledge store is open", hint="start: npusmith mcp --knowledge FILE"
            )
        asked = Query(
            route=route, aim="repair", text=words, codes=tuple(codes or ()),
            apis=tuple(apis or ()), category=category, chip=self._chip.name,
        )  # fmt: skip
        return {"items": [asdict(item) for item in base.search(asked, max(1, min(most, 50)))]}

    def generate(self, task: str, out: str, options: str = "") -> Answer:
        """Write an operator for a task file into the folder `out`. Without options the
        deterministic writer; with options a model: "model=NAME,base-url=URL,samples=4"."""
        if not options:
            found = pipeline.generate(Path(task), Path(out), self._chip, "default", _Quiet())
            return _document(found, Path(out))
        from npusmith.agent.generate import generate
        from npusmith.agent.options import read_options

        setting, journal = read_options(options)
        place = journal or Path(out).with_name(f"{Path(out).name}-journal")
        found = generate(
            Path(task), Path(out), self._chip, "default", _Quiet(), setting, journal=place,
            resume=True, knowledge=open_library(setting.knowledge or self._knowledge),
        )  # fmt: skip
        return _document(found, Path(out))


def _document(verdict: Verdict, folder: Path | None = None) -> Answer:
    """The verdict as data, and its findings as text in the form that prompts use."""
    data = verdict.model_dump(mode="json")
    data["findings_text"] = render(weigh_verdict(verdict, Step.NOTHING, folder).notes)
    return data


def _answering(tool: Callable[..., Answer]) -> Callable[..., Answer]:
    """The same tool, with errors as answers."""

    @functools.wraps(tool)
    def call(*args: Any, **more: Any) -> Answer:
        try:
            return tool(*args, **more)
        except NpusmithError as error:
            return {"verdict": "error", "error": error.record()}

    return call
