"""`npusmith mcp`: check, run, profile, search-knowledge and generate for coding agents, over stdio.

Each tool takes paths or text and gives the document that the command of the same name prints with
--json. What fails is an answer too: `{"verdict": "error", "error": {code, message, seen, ...}}`.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from npusmith import pipeline, profiling
from npusmith.agent.assessment import NO_FILES, Step, assess_verdict, render
from npusmith.agent.library import open_library
from npusmith.agent.options import settle, split_options
from npusmith.agent.prompt import rules, tile_reference
from npusmith.agent.shots import read_shots
from npusmith.agent.task_session import Setting
from npusmith.agent.tile import TileRoute
from npusmith.agent.writer import AgentWriter
from npusmith.errors import CODES, NpusmithError
from npusmith.knowledge.item import OWN_CODES
from npusmith.knowledge.seam import Query
from npusmith.knowledge.tokens import ROUTES
from npusmith.sandbox.folder import temporary_folder
from npusmith.store.folder import new_folder
from npusmith.store.record import write_result
from npusmith.target.chips import find_chip
from npusmith.task.load import open_task, split_class
from npusmith.task.references import open_references
from npusmith.task.tolerance import check_profile
from npusmith.task.trials import readable_beside
from npusmith.task.verdict import Verdict
from npusmith.twin.project import beside
from npusmith.version import __version__

Answer = dict[str, Any]
_ABOUT = (
    "Writes and judges Ascend C operators without an NPU. Write a tile program (ask `language` for "
    "its rules), `check` it, `try` it on the task, see what limits a project with `profile`. "
    "Every time is an estimate of a model, not a measurement."
)
_MOST_TEXT = 1 << 20
_MOST_WORDS = 20_000  # of a question to the store


class _Quiet:
    """Nobody watches: stdout and stderr belong to the protocol."""

    def step(self, name: str, detail: str = "") -> None:
        return None


def serve(chip: str, knowledge: str, root: Path | None = None, options: str = "") -> None:
    """Until the client closes the pipe; raises extra-missing without the mcp package."""
    make_server(chip, knowledge, root, options).run("stdio")


def make_server(chip: str, knowledge: str, root: Path | None = None, options: str = "") -> Any:
    """The server with its tools. `options`: the writer's, of every call."""
    try:
        from mcp.server import MCPServer
    except ImportError as error:
        raise NpusmithError(
            "extra-missing", "the package mcp is not installed", hint='pip install "npusmith[mcp]"'
        ) from error
    server = MCPServer("npusmith", version=__version__, instructions=_ABOUT, log_level="ERROR")
    tools = Tools(chip, knowledge, root, options)
    for name, tool in tools.named().items():
        server.add_tool(_answering(tool), name=name, description=tool.__doc__)
    return server


class Tools:
    """The tools as plain functions. `root`: the folder that all paths must lie in."""

    def __init__(
        self, chip: str, knowledge: str, root: Path | None = None, options: str = ""
    ) -> None:
        self._chip, self._knowledge = find_chip(chip), knowledge
        self._options = split_options(options)
        self._root = root.resolve() if root else None

    def _place(self, path: str | Path) -> Path:
        """The path, links followed; raises file-denied for one outside of the root."""
        if "\0" in str(path):
            raise NpusmithError("file-missing", "no path holds a zero byte")
        if self._root is None:
            return Path(path)
        place = (self._root / path).resolve()
        if not place.is_relative_to(self._root):
            raise NpusmithError(
                "file-denied", f"{str(path)[:200]} is outside of what this server serves",
                legal=f"paths in {self._root}", hint="copy the file there, or change --root",
            )  # fmt: skip
        return place

    def _task(self, path: str) -> Path:
        """The place of a task; what its code may read beside it lies in the root as well."""
        place = self._place(path)
        named, _ = split_class(place)
        for file in (named, *readable_beside(named)) if self._root else ():
            self._place(file)
        return place

    def _source(self, path: str) -> Path:
        """The place of a project or source; what its compile reads lies in the root as well."""
        place = self._place(path)
        if self._root and place.is_file() and place.suffix != ".py":
            for file in beside(place):
                self._place(file)
        return place

    def _settled(self, text: str) -> tuple[Setting, Path | None]:
        """The server's options and a call's; only the server's say where keys and texts go."""
        given = split_options(text)
        model = given.get("model", "")
        where: dict[str, str] = {
            name: given[name] for name in ("base-url", "key-env") if name in given
        }
        where |= {"model": model} if model.startswith("litellm:") else {}
        for name, value in where.items():
            if value != self._options.get(name):
                raise NpusmithError(
                    "option-denied", f"{name} is not what this server was started with",
                    seen=f"{name}={value}"[:80],
                )  # fmt: skip
        return settle({**self._options, **given})

    def named(self) -> dict[str, Callable[..., Answer]]:
        return {
            "check": self.check,
            "run": self.run,
            "profile": self.profile,
            "search-knowledge": self.search,
            "generate": self.generate,
            "language": self.language,
            "try": self.attempt,
        }

    def language(self, task: str = "") -> Answer:
        """The rules of the tile language, and its operations. With a task file also its tensors,
        what the kernel is to be called, and the nearest two examples."""
        known: Answer = {"rules": rules("tile"), "reference": tile_reference()}
        if task:
            with self._routed(task) as (route, _):
                known |= {
                    "operator": route.ports.operator, "tensors": route.ports.lines(),
                    "examples": route.help(None, None),
                }  # fmt: skip
        return known

    def attempt(self, task: str, text: str, out: str = "") -> Answer:
        """Judge a tile program for a task: rules, values in NumPy against PyTorch, lowering, the
        twin, estimated time. Leaves the project in the folder `out` when that is given."""
        with self._routed(task) as (route, folder):
            draft = route.edit(text)
            found = route.assess(draft, folder)
            if out and any(folder.iterdir()):
                with new_folder(self._place(out)) as made:
                    shutil.copytree(folder, made, dirs_exist_ok=True)
                    write_result(made, found.verdict or {})
        return {
            "verdict": "pass" if found.correct else "fail",
            "reached": found.step.name.lower().replace("_", " "),
            "findings_text": render(found.notes, draft.files),
            "estimate": list(found.profile),
        }

    @contextmanager
    def _routed(self, task: str) -> Iterator[tuple[TileRoute, Path]]:
        """The route to a task, and an empty folder for a candidate."""
        with temporary_folder("npusmith-try-") as name:
            prepared = open_references(open_task(self._task(task)), Path(name, "task"))
            shots, profile = read_shots(), check_profile("default")
            folder = Path(name).resolve() / "unit" / "candidate"
            folder.mkdir(parents=True)
            yield TileRoute(prepared, self._chip, profile, shots, timed=True), folder

    def check(self, path: str = "", text: str = "") -> Answer:
        """Parse, check the rules, and compile; run nothing. `text`: a tile program, or `path`: a
        tile program, an Ascend C source or a project folder."""
        if bool(path) is bool(text):
            raise NpusmithError("usage", "check takes either a path or a text")
        if path:
            return _document(pipeline.check(self._source(path), self._chip))
        if len(text) > _MOST_TEXT:
            raise NpusmithError("lang-too-large", f"the text has {len(text):,} characters")
        with temporary_folder("npusmith-check-") as name:
            file = Path(name, "program.tile.py")
            file.write_text(text, encoding="utf-8", errors="replace")
            return _document(pipeline.check(file, self._chip), file.parent, {file.name: text})

    def run(self, project: str, task: str = "", tolerance: str = "default") -> Answer:
        """Judge a project folder, a direct-launch source or a submission against a task file
        (Model, get_inputs, get_init_inputs), on the CPU twin."""
        place, given = self._source(project), self._task(task) if task else None
        return _document(pipeline.run(place, given, self._chip, tolerance, _Quiet()), place)

    def profile(self, project: str, task: str = "", out: str = "") -> Answer:
        """Estimate the time of a project on the chip: pipes, stalls, roofs, advice. Leaves
        trace.json and report.html in `out` when that is given."""
        place, given = self._source(project), self._task(task) if task else None
        with temporary_folder("npusmith-profile-") as name:
            folder = self._place(out) if out else Path(name, "profile")
            found = profiling.profile(
                place, given, self._chip, "default", _Quiet(), profiling.Options(out=folder)
            )
        answer = _document(found.verdict, place)
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
        unknown = [code for code in codes or () if code not in CODES and code not in OWN_CODES]
        if unknown or route not in ROUTES:
            seen = ", ".join(unknown) or route
            legal = f"codes of findings, {', '.join(OWN_CODES)}; routes {', '.join(ROUTES)}"
            message = "there is no such code or route"
            raise NpusmithError("usage", message, seen=seen[:200], legal=legal)
        base = open_library(self._knowledge)
        if base is None:
            raise NpusmithError(
                "usage", "no knowledge store is open", hint="start: npusmith mcp --knowledge FILE"
            )
        asked = Query(
            route=route, aim="repair", text=words[:_MOST_WORDS], codes=tuple(codes or ()),
            apis=tuple(apis or ()), category=category, chip=self._chip.name,
        )  # fmt: skip
        return {"items": [asdict(item) for item in base.search(asked, max(1, min(most, 50)))]}

    def generate(self, task: str, out: str, options: str = "") -> Answer:
        """Write an operator for a task file into the folder `out`. Without options the
        deterministic writer; with options a model: "model=NAME,samples=4". Where it is asked, and
        with which key, the server was told at its start."""
        source, folder = self._task(task), self._place(out)
        if not options:
            found = pipeline.generate(source, folder, self._chip, "default", _Quiet())
            return _document(found, folder)
        setting, journal = self._settled(options)
        place = journal or folder.with_name(f"{folder.name}-journal")
        script = setting.choice.model.partition("scripted:")[2]
        named = (place, setting.choice.record, setting.choice.replay, setting.knowledge, script)
        own = {*self._options.values(), self._options.get("model", "").partition("scripted:")[2]}
        for path in named:
            if path and str(path) not in own:
                self._place(Path(path).absolute())
        writer = AgentWriter(
            setting, self._chip, place, knowledge=open_library(setting.knowledge or self._knowledge)
        )
        found = pipeline.generate(source, folder, self._chip, "default", _Quiet(), writer=writer)
        return _document(found, folder)


def _document(
    verdict: Verdict, folder: Path | None = None, files: Mapping[str, str] = NO_FILES
) -> Answer:
    """The verdict as data, and its findings as text in the form that prompts use."""
    data = verdict.model_dump(mode="json")
    if files and data["error"]:  # a text that was handed over lies nowhere
        data["error"]["file"] = Path(data["error"]["file"]).name
    data["findings_text"] = render(assess_verdict(verdict, Step.NOTHING, folder).notes, files)
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
