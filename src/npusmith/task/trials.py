"""`prepare(task, folder)`: one sandboxed run of the task's code, then its graph and trials as data.

The parent's side: it starts the child, turns what went wrong into a TaskError, and validates every
record and file size before anything is believed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from npusmith.errors import CODES, Place, TaskError
from npusmith.sandbox.box import Boxed, Policy, run_boxed
from npusmith.sandbox.folder import remove_tree
from npusmith.sandbox.server import PythonModule
from npusmith.task import wire
from npusmith.task.files import read_plain
from npusmith.task.graph import Graph
from npusmith.task.isolated import arrays
from npusmith.task.load import Task
from npusmith.task.prepared import Prepared, TrialData

DATA = "data"  # the folder beneath the caller's that holds manifest and tensors
SEEDS = (11, 23, 37, 41, 59)
MODEL_SEED = 7
SHAPE_ELEMENTS = 4 << 20
VALUE_ELEMENTS = 8 << 20
OnGraph = Callable[[Graph], None]

_SMALL = 1 << 16  # bytes of a message
PRELOAD = "npusmith.task.preload"
# what the child imports
_NEEDED = ("torch", "numpy", "pydantic", "ml_dtypes", "cloudpickle", "npusmith")
_ABSENT = re.compile(r"No such file or directory: b?'([^'\0]+)'")


def _most_memory() -> int:
    """Three quarters of this machine's memory, so that a greedy task hurts nobody else."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4


@dataclass(frozen=True, slots=True)
class Limits:
    """What the task's code may use."""

    seconds: float = 300.0
    memory_bytes: int = field(default_factory=_most_memory)
    file_bytes: int = 8 << 30


def seeds_for(seed: int) -> tuple[int, ...]:
    """Of the random sets: a user's seed shifts the five documented ones, 0 leaves them."""
    return tuple(base + seed * len(SEEDS) for base in SEEDS)


def reopen(task: Task, data: Path) -> Prepared | None:
    """What `prepare` left in that folder earlier; None where it is not whole any more."""
    if not data.is_dir():
        return None
    try:
        manifest = read_manifest(task, data)
        check_files(task, data, manifest)
    except (TaskError, OSError):
        return None
    trials = tuple(TrialData(record, data) for record in manifest.trials)
    return Prepared(task=task, folder=data, manifest=manifest, trials=trials)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """For which sets of inputs the reference runs, on what the model is called, and how.

    seeds: of the random sets; without them the graph alone is captured.
    given: shapes of the sets, instead of all others.
    calling: as a suite calls its models, without a graph.
    intermediates: nodes of the graph whose values count as outputs, behind the model's own;
        longer: of the graph with longer axes of 1, on inputs that have them so.
    bounds: whether sets get error bounds at once, but those for which that takes long.
    bounded: names of sets that get error bounds in any case.
    """

    seeds: tuple[int, ...] = SEEDS
    edges: bool = True
    shapes: bool = True
    given: Sequence[Sequence[tuple[int, ...]]] = ()
    model_seed: int = MODEL_SEED
    calling: wire.Calling | None = None
    intermediates: Sequence[str] = ()
    longer: bool = False
    bounds: bool = True
    bounded: Sequence[str] = ()

    def orders(self) -> dict[str, Any]:
        """As wire.Orders names them."""
        named = {item.name: getattr(self, item.name) for item in fields(self)}
        given = tuple(map(tuple, self.given))
        named |= {"given": given, "intermediates": tuple(self.intermediates)}
        return named | {"bounded": tuple(self.bounded)}


EVERY_SET = Sets()


def prepare(
    task: Task,
    folder: Path,
    sets: Sets = EVERY_SET,
    *,
    limits: Limits | None = None,
    on_graph: OnGraph | None = None,
) -> Prepared:
    """Run the task's code in the sandbox; graph and trials are then in `folder`/data.

    `on_graph`: told of the graph once, before references are there; what it raises ends the run.
    Raises TaskError; nothing half-written is left then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".data-", dir=folder.resolve()))
    try:
        orders = make_orders(task, fresh, **sets.orders())
        early = None if on_graph is None else _Early(task, fresh, on_graph)
        boxed = run_child(
            task, fresh, orders, limits or Limits(), tick=None if early is None else early.look
        )
        manifest = read_manifest(task, fresh)
        check_files(task, fresh, manifest)
        if early is not None:
            early.settle(manifest)
        _prune(fresh, manifest)
        data = folder.resolve() / DATA
        if data.exists():
            remove_tree(data)
        fresh.rename(data)
    except BaseException:
        remove_tree(fresh)
        raise
    return Prepared(
        task=task,
        folder=data,
        manifest=manifest,
        trials=tuple(TrialData(record, data) for record in manifest.trials),
        missing=boxed.missing,
        seconds=boxed.seconds,
        peak_bytes=boxed.peak_bytes,
        sets=sets,
    )


@dataclass
class _Early:
    """The graph of a run that goes on: told once, and the same at the end."""

    task: Task
    folder: Path
    tell: OnGraph
    seen: Graph | None = None

    def look(self) -> None:
        """Tell of the graph if the child has left it."""
        if self.seen is not None or not (self.folder / wire.GRAPH).exists():
            return
        data = read_plain(self.folder / wire.GRAPH, wire.MANIFEST_BYTES)
        try:
            self.seen = Graph.model_validate_json(bytes(data))
        except ValidationError as error:
            raise _broken(self.task, f"{wire.GRAPH}: {error.errors()[0]['msg']}") from error
        self.tell(self.seen)

    def settle(self, manifest: wire.Manifest) -> None:
        if manifest.graph is None:
            return
        if self.seen is None:
            self.tell(manifest.graph)
        elif self.seen.model_dump_json() != manifest.graph.model_dump_json():  # NaN is in it, too
            raise _broken(self.task, "the graph at the end is not the one before")


def python_places() -> tuple[Path, ...]:
    """What a boxed Python reads to import what we need; TaskError when torch is not installed."""
    return tuple(map(Path, (sys.prefix, sys.base_prefix, *package_paths())))


def package_paths() -> list[str]:
    """Folders on which the child's packages stand; TaskError when torch is not installed."""
    found: list[str] = []
    for name in _NEEDED:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            raise TaskError("torch-missing", f"the package {name} is not installed")
        home = str(Path(next(iter(spec.submodule_search_locations))).resolve().parent)
        if home not in found:
            found.append(home)
    return found


def make_orders(task: Task, fresh: Path, **chosen: Any) -> wire.Orders:
    """What the child is asked for; with nothing chosen, the graph alone."""
    usual = {
        "path": str(task.path), "text": task.text, "folder": str(fresh),
        "has_inputs": task.has_inputs, "has_groups": task.has_groups, "model_seed": MODEL_SEED,
        "seeds": (), "edges": False, "shapes": False, "shape_elements": SHAPE_ELEMENTS,
        "value_elements": VALUE_ELEMENTS,
    }  # fmt: skip
    return wire.Orders.model_validate(usual | chosen)


def run_python(
    module: str,
    orders: str | bytes,
    policy: Policy,
    folder: Path,
    tick: Callable[[], None] | None = None,
    preload: str = PRELOAD,
) -> Boxed:
    """`module`.main() in the box, with orders on its standard input; `tick` as of run_boxed.

    Where the policy names what may be read, our own packages are read besides. `preload`: what the
    server of such boxes has imported before.
    """
    paths = package_paths()
    if policy.read is not None:
        policy = replace(policy, read=(*python_places(), *policy.read))
    work = PythonModule(module, preload, tuple(paths))
    stdin = orders.encode() if isinstance(orders, str) else orders
    return run_boxed(work, policy, stdin=stdin, cwd=folder, tick=tick)


def run_child(
    task: Task,
    fresh: Path,
    orders: wire.Orders,
    limits: Limits,
    module: str = "npusmith.task.child",
    result: str = wire.MANIFEST,
    tick: Callable[[], None] | None = None,
) -> Boxed:
    """Run the task in the box, by the main of `module`; TaskError unless it leaves `result`."""
    policy = Policy(
        write=(fresh,), read=tuple(readable_beside(task.path)), seconds=limits.seconds,
        memory_bytes=limits.memory_bytes, file_bytes=limits.file_bytes,
    )  # fmt: skip
    boxed = run_python(module, orders.model_dump_json(), policy, fresh, tick)
    _raise_failure(task, fresh, boxed, limits, result)
    return boxed


def readable_beside(path: Path) -> list[Path]:
    """The task file, and data files of the same name: get_input_groups() often reads one.

    A link is none: it leads wherever whoever made the folder likes.
    """
    found = (item for item in path.parent.glob(f"{path.stem}.*") if item.is_file())
    return sorted(item for item in found if item == path or not item.is_symlink())


def _raise_failure(task: Task, fresh: Path, boxed: Boxed, limits: Limits, result: str) -> None:
    """TaskError for a child that did not finish: by its own account, or by how it ended."""
    if boxed.ok and (fresh / result).exists():
        return
    place = Place(str(task.path))
    stage = read_plain(fresh / wire.STAGE, _SMALL).decode(errors="replace")[:100] or "starting"
    if boxed.timed_out:
        message = f"the task was still running after {limits.seconds:g} s"
        raise TaskError("task-timeout", message, place, seen=f"while {stage}")
    if failure := _read_failure(fresh):
        place = Place(str(task.path), failure.line, failure.function)
        code = "task-denied" if _is_hidden(failure) else failure.code
        raise TaskError(code, failure.message, place, seen=failure.seen, hint=failure.hint)
    said = boxed.stderr[-300:].decode(errors="replace").strip().rpartition("\n")[2]
    seen = f"while {stage}; stderr ends: {said}" if said else f"while {stage}"
    if boxed.out_of_memory:
        message = f"the task ran out of memory ({limits.memory_bytes >> 20} MiB)"
        raise TaskError("task-memory", message, place, seen=seen)
    if boxed.signal:
        message = f"the task's process was ended by signal {boxed.signal}"
        raise TaskError("task-crashed", message, place, seen=seen)
    message = f"the task ended its process with exit code {boxed.returncode}"
    raise TaskError("task-exited", message, place, seen=seen)


def _is_hidden(failure: wire.Failure) -> bool:
    """Was a file asked for that exists, but not in the box?"""
    named = _ABSENT.search(failure.message)
    with contextlib.suppress(OSError, ValueError):
        return named is not None and Path(named[1]).is_absolute() and Path(named[1]).exists()
    return False


def _read_failure(fresh: Path) -> wire.Failure | None:
    try:
        failure = wire.Failure.model_validate_json(bytes(read_plain(fresh / wire.ERROR, _SMALL)))
    except ValidationError:
        return None
    return failure if failure.code in CODES else None


def read_manifest(task: Task, folder: Path) -> wire.Manifest:
    """The manifest, validated; TaskError when it is missing, too large or not what it should be."""
    data = read_plain(folder / wire.MANIFEST, wire.MANIFEST_BYTES + 1)
    if not data or len(data) > wire.MANIFEST_BYTES:
        raise _broken(task, f"{wire.MANIFEST} is missing, not a file, or too large")
    try:
        return wire.Manifest.model_validate_json(bytes(data))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _broken(task, f"{wire.MANIFEST}: {where}: {first['msg']}") from error


def _broken(task: Task, seen: str) -> TaskError:
    message = "the sandboxed run left records that cannot be used"
    return TaskError("task-result", message, Place(str(task.path)), seen=seen[:300])


def check_files(task: Task, folder: Path, manifest: wire.Manifest) -> None:
    """Every tensor is a regular file of exactly its size, and fits the graph where there is one."""
    if manifest.graph is None:
        _check_called(task, manifest)
    else:
        _check_captured(task, manifest, manifest.graph)
    for trial in (*manifest.trials, *manifest.ranks):
        if not 0 <= trial.draw <= len(manifest.draws):
            raise _broken(task, f"trial {trial.name} has parameters that were not drawn")
    for item in manifest.files:
        _check_file(task, folder, item)


def _check_called(task: Task, manifest: wire.Manifest) -> None:
    try:
        for trial in manifest.trials:
            counts = [len([*arrays.leaves(tree or {})]) for tree in (trial.call, trial.result)]
            _check_trial(task, trial, *counts)
    except (ValueError, TypeError, AttributeError) as error:
        raise _broken(
            task, f"a trial's values are not nested as they should be: {error}"
        ) from error


def _check_captured(task: Task, manifest: wire.Manifest, graph: Graph) -> None:
    users = [item for item in graph.inputs if item.kind == "user"]
    held = {item.target: item for item in graph.inputs if item.kind != "user"}
    if set(held) != set(manifest.parameters):
        raise _broken(task, "parameters and graph inputs do not match")
    if any(item.position >= manifest.arguments for item in users):
        raise _broken(task, "a graph input stands for an argument that forward does not have")
    for name, item in manifest.parameters.items():
        if (item.shape, item.dtype) != (held[name].shape, held[name].dtype.value):
            raise _broken(task, f"parameter {name} is not as the graph says")
    for name, item in (pair for draw in manifest.draws for pair in draw.items()):
        own = manifest.parameters.get(name)
        if own is None or (item.shape, item.dtype) != (own.shape, own.dtype):
            raise _broken(task, f"drawn values of {name} are not as the graph says")
    try:
        outputs = [graph.spec(name) for name in graph.outputs]
    except (KeyError, StopIteration) as error:
        raise _broken(task, "an output of the graph is not one of its nodes") from error
    for trial in (*manifest.trials, *manifest.ranks):
        _check_trial(task, trial, manifest.arguments, len(outputs))


def _prune(folder: Path, manifest: wire.Manifest) -> None:
    """Remove what the task's code left beside the records."""
    wanted = {wire.MANIFEST, *(item.file for item in manifest.files)}
    for path in folder.iterdir():
        if path.name in wanted:
            continue
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink()


def _check_trial(task: Task, trial: wire.TrialRecord, inputs: int, outputs: int) -> None:
    left = trial.references or not trial.skipped
    wanted = (inputs, outputs, outputs) if left else (0, 0, 0)
    if left and not outputs and trial.call is None:
        raise _broken(task, f"trial {trial.name} has no tensors")
    if (len(trial.inputs), len(trial.references), len(trial.goldens)) != wanted:
        raise _broken(task, f"trial {trial.name} has a wrong number of tensors")
    pairs = zip(trial.references, trial.goldens, strict=True)
    if any(reference.shape != golden.shape for reference, golden in pairs):
        raise _broken(task, f"trial {trial.name}: golden and reference differ in shape")
    shapes = [(item.shape, item.dtype) for item in trial.bounds]
    if shapes and shapes != [(item.shape, "float32") for item in trial.references]:
        raise _broken(task, f"trial {trial.name}: bounds are not as the references")


def _check_file(task: Task, folder: Path, item: wire.TensorFile) -> None:
    path = folder / item.file
    try:
        facts = os.lstat(path)
    except OSError as error:
        raise _broken(task, f"{item.file} is missing") from error
    if not stat.S_ISREG(facts.st_mode) or facts.st_size != item.bytes:
        raise _broken(task, f"{item.file} is not a file of {item.bytes} bytes")
