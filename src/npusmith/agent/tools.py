"""check, try, run, profile, search-knowledge, generate and language, as coding agents call them.

Each tool takes paths or text and gives the document that the command of the same name prints with
--json. mcp_server.py serves them. Raises NpusmithError.
"""

from __future__ import annotations

import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, Any
from weakref import finalize

from pydantic import Field

from npusmith import pipeline, profiling
from npusmith.agent.assessment import NO_FILES, Step, assess_verdict, render
from npusmith.agent.direct import DirectRoute
from npusmith.agent.library import open_library
from npusmith.agent.options import settle, split_options
from npusmith.agent.prompt import rules, tile_reference
from npusmith.agent.route import Draft, Route
from npusmith.agent.shots import read_shots
from npusmith.agent.signatures import open_signatures
from npusmith.agent.task_session import Setting
from npusmith.agent.tile import TileRoute
from npusmith.agent.writer import AgentWriter
from npusmith.errors import CODES, NpusmithError
from npusmith.knowledge.item import OWN_CODES
from npusmith.knowledge.seam import Query
from npusmith.knowledge.tokens import ROUTES
from npusmith.sandbox.folder import remove_tree, temporary_folder
from npusmith.store.folder import new_folder
from npusmith.store.record import write_result
from npusmith.target.chips import Chip, find_chip
from npusmith.task.load import open_task, split_class
from npusmith.task.prepared import Prepared
from npusmith.task.references import open_references
from npusmith.task.tolerance import check_profile
from npusmith.task.verdict import Verdict
from npusmith.twin.project import beside

Answer = dict[str, Any]
Tell = Callable[[str, str], None]
_MOST_TEXT = 1 << 20
_MOST_WORDS = 20_000  # of a question to the store
_MOST_FILES = 64
_ROUTES = 4  # tasks that stay prepared
_KERNEL = "__global__"  # what every Ascend C source has and no tile program

Place = Annotated[str, Field(description="A path on the server's machine, inside of its root.")]
TaskFile = Annotated[
    str,
    Field(
        description="Path of a Python file with class Model(nn.Module), get_inputs() and "
        "get_init_inputs(); FILE:CLASS names another class."
    ),
]
Text = Annotated[
    str,
    Field(
        description="The text itself: a tile program, or one Ascend C source with kernel and "
        "launcher (NAME_do(uint32_t blockDim, void *stream, uint8_t *...))."
    ),
]
Files = Annotated[
    dict[str, str] | None,
    Field(description="An operator project as texts by path: op_host/x.cpp, op_kernel/x.cpp."),
]
Out = Annotated[str, Field(description="A new folder for what is made; empty: nothing is kept.")]


class _Steps:
    """The steps of a call, told to whoever watches it; stdout and stderr are the protocol's."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def step(self, name: str, detail: str = "") -> None:
        self._tell(name, detail)


def _unwatched(name: str, detail: str) -> None:
    return None


class Tools:
    """The tools as plain functions. `root`: the folder that all paths must lie in."""

    def __init__(
        self, chip: str, knowledge: str, root: Path | None = None, options: str = ""
    ) -> None:
        self._chip, self._knowledge = find_chip(chip), knowledge
        self._options = split_options(options)
        self._root = root.resolve() if root else None
        self._routes: OrderedDict[str, TaskRoutes] = OrderedDict()
        self._lock = threading.Lock()
        self._watching = threading.local()

    @contextmanager
    def watched(self, tell: Tell) -> Iterator[None]:
        """Calls of this thread tell their steps."""
        self._watching.tell = tell
        try:
            yield
        finally:
            self._watching.tell = _unwatched

    @property
    def _steps(self) -> _Steps:
        return _Steps(getattr(self._watching, "tell", _unwatched))

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
        """The place of a task, whose file lies in the root, and so what its code may read beside
        it (no links: `task.trials.readable_beside`)."""
        place = self._place(path)
        named, _ = split_class(place)
        self._place(named)
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

    def language(self, task: TaskFile = "") -> Answer:
        """The rules of the tile language, and its operations. With a task file also its tensors,
        what the kernel is to be called, and the nearest examples."""
        if not task:
            return {"rules": rules("tile"), "reference": tile_reference()}
        route = self._routed(task).tile
        return {
            "rules": rules("tile"), "reference": tile_reference(route.features.cards),
            "operator": route.ports.operator, "tensors": route.ports.lines(),
            "examples": route.help(None, None),
        }  # fmt: skip

    def attempt(
        self, task: TaskFile, text: Text = "", files: Files = None, out: Out = ""
    ) -> Answer:
        """Judge a candidate for a task, given as text: a tile program (rules, values in NumPy
        against PyTorch, lowering, the twin), one Ascend C source, or the files of an operator
        project; with estimated time. Leaves the project in the folder `out` when that is given."""
        given = _given(text, files)
        route = self._routed(task).of(given)
        with temporary_folder("npusmith-try-") as name:
            folder = Path(name).resolve() / "unit" / "candidate"
            folder.mkdir(parents=True)
            draft = route.edit(given[""]) if "" in given else Draft(given, "")
            self._steps.step("judge", route.name)
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

    def _routed(self, task: str) -> TaskRoutes:
        """The routes to a task, which is captured once for all calls."""
        source = open_task(self._task(task))
        with self._lock:
            if source.digest not in self._routes:
                self._steps.step("capture", source.name)
                held = Path(mkdtemp(prefix="npusmith-task-"))
                prepared = open_references(source, held / "task")
                routes = TaskRoutes(prepared, self._chip)
                finalize(routes, remove_tree, held)  # other calls may still be at it
                self._routes[source.digest] = routes
                while len(self._routes) > _ROUTES:
                    self._routes.popitem(last=False)
            self._routes.move_to_end(source.digest)
            return self._routes[source.digest]

    def check(self, path: Place = "", text: Text = "", files: Files = None) -> Answer:
        """Parse, check the rules, and compile; run nothing. Takes one of: `path` of a tile
        program, an Ascend C source or a project folder; `text`; `files`."""
        if bool(path) + bool(text) + bool(files) != 1:
            raise NpusmithError("usage", "check takes either a path, a text or files")
        if path:
            return _document(pipeline.check(self._source(path), self._chip))
        with temporary_folder("npusmith-check-") as name:
            place, shown = _written(_given(text, files), Path(name))
            folder = Path(name, "unit", "candidate")
            return _document(pipeline.check(place, self._chip), folder, shown)

    def run(
        self,
        project: Place,
        task: TaskFile = "",
        tolerance: Annotated[
            str, Field(description="A profile of docs/decisions/tolerance.md.")
        ] = "default",
    ) -> Answer:
        """Judge a project folder, a direct-launch source or a submission against a task file, on
        the CPU twin. Candidates that are texts are judged by `try`."""
        place, given = self._source(project), self._task(task) if task else None
        return _document(pipeline.run(place, given, self._chip, tolerance, self._steps), place)

    def profile(self, project: Place, task: TaskFile = "", out: Out = "") -> Answer:
        """Estimate the time of a project on the chip: pipes, stalls, roofs, advice. Leaves
        trace.json and report.html in `out` when that is given."""
        place, given = self._source(project), self._task(task) if task else None
        with temporary_folder("npusmith-profile-") as name:
            folder = self._place(out) if out else Path(name, "profile")
            found = profiling.profile(
                place, given, self._chip, "default", self._steps, profiling.Options(out=folder)
            )
        answer = _document(found.verdict, place)
        if found.profile is not None:
            made = found.profile.model_dump(mode="json", exclude={"vector", "hinges"})
            answer["profile"] = made
        return answer

    def search(
        self,
        words: Annotated[str, Field(description="The kernel's text, or words about it.")] = "",
        codes: Annotated[
            list[str] | None, Field(description="Codes of findings; wrong-values; slow.")
        ] = None,
        apis: Annotated[
            list[str] | None, Field(description="Operations or Ascend C functions in question.")
        ] = None,
        category: Annotated[str, Field(description="Of the operator: softmax, matmul ...")] = "",
        route: Annotated[str, Field(description="tile or direct (Ascend C).")] = "tile",
        most: Annotated[int, Field(description="Items, at most 50.")] = 6,
    ) -> Answer:
        """Verified items of the knowledge store for a situation: finding codes, operations or API
        names, an operator's category, a text."""
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

    def generate(
        self,
        task: TaskFile,
        out: Annotated[str, Field(description="A new folder for the project.")],
        options: Annotated[
            str, Field(description="Empty for the deterministic writer; model=NAME,samples=4 ...")
        ] = "",
    ) -> Answer:
        """Write an operator for a task file into the folder `out`. Without options the
        deterministic writer, with its search of schedules; with options a model. Where it is
        asked, and with which key, the server was told at its start."""
        source, folder = self._task(task), self._place(out)
        if not options:
            found = pipeline.generate(source, folder, self._chip, "default", self._steps)
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
        found = pipeline.generate(source, folder, self._chip, "default", self._steps, writer=writer)
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


class TaskRoutes:
    """The ways to judge a candidate of one task."""

    def __init__(self, prepared: Prepared, chip: Chip) -> None:
        self._prepared, self._chip, self._profile = prepared, chip, check_profile("default")
        self.tile = TileRoute(prepared, chip, self._profile, read_shots(), timed=True)

    def of(self, given: Mapping[str, str]) -> Route:
        """The route of a text, or of files by path."""
        text = given.get("")
        if text is not None and _KERNEL not in text:
            return self.tile
        signatures = open_signatures(self._chip)
        kind = "project" if text is None else "kernel"
        return DirectRoute(
            self._prepared, self._chip, self._profile, signatures, [], timed=True, rules=kind
        )


def _given(text: str, files: Mapping[str, str] | None) -> dict[str, str]:
    """The candidate by path; "" is the path of a text alone. Raises usage and lang-too-large."""
    if bool(text) is bool(files):
        raise NpusmithError("usage", "a candidate is either a text or files")
    given = {"": text} if text else dict(files or {})
    size = sum(map(len, given.values()))
    if size > _MOST_TEXT or len(given) > _MOST_FILES:
        raise NpusmithError(
            "lang-too-large", f"the candidate has {size:,} characters in {len(given)} texts",
            legal=f"{_MOST_TEXT:,} characters in {_MOST_FILES} texts",
        )  # fmt: skip
    for path in given:
        steps = Path(path).parts
        if path and (path.startswith("/") or ".." in steps or "\0" in path or not steps):
            raise NpusmithError(
                "file-denied", f"{path[:200]} is no path inside of a project",
                legal="op_host/x.cpp, op_kernel/x.cpp and headers beside them",
            )  # fmt: skip
    return given


def _written(given: Mapping[str, str], folder: Path) -> tuple[Path, Mapping[str, str]]:
    """What is to be checked, on disk; and the texts that findings quote.

    A compile reads headers of a source's folder and of the one around it: both are the texts' own.
    """
    folder = folder / "unit" / "candidate"
    alone = given.get("")
    name = "kernel.asc" if alone is not None and _KERNEL in alone else "program.tile.py"
    shown = given if alone is None else {name: alone}
    for path, text in shown.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", errors="replace")
    return folder if alone is None else folder / name, shown
