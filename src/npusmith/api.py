"""npusmith from Python: `import npusmith as ns`, then `ns.generate(...)`, `ns.judge(...)`.

Everything here is a thin layer on `pipeline`: the command line says the same of the same task.
"""

from __future__ import annotations

import functools
import html
import inspect
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from npusmith import pipeline
from npusmith.errors import LangError, Level, NpusmithError, TaskError, TwinError
from npusmith.ir.dtypes import DType
from npusmith.ir.returned import arranged, plain
from npusmith.ir.spec import OpSpec, Port, Source
from npusmith.ir.text import show_expr
from npusmith.lang.extents import extent, unmet
from npusmith.lower import bindings_of, read_bindings
from npusmith.lower.model import forward_signature
from npusmith.sandbox.folder import temporary_folder
from npusmith.store.record import code_digest
from npusmith.target.chips import DEFAULT_CHIP, find_chip
from npusmith.task.composition import read_composition
from npusmith.task.graph import Graph
from npusmith.task.load import open_task, stem_of
from npusmith.task.module_forward import read_forward
from npusmith.task.references import open_references
from npusmith.task.trials import Sets, seeds_for
from npusmith.task.verdict import Verdict
from npusmith.twin import Project, build, cache, read_project, run
from npusmith.twin.project import read_projects

if TYPE_CHECKING:
    from npusmith.bench.metrics import Summary
    from npusmith.bench.model import Writer
    from npusmith.profiling import Profiled

_REFUSALS = ("inputs-mismatch", "tiling-failed")
_KEPT_TASKS = 200  # of modules and functions of programs
Array = np.ndarray[Any, Any]
Shapes = dict[str, tuple[int, ...]]


class Options(TypedDict, total=False):
    """What `generate` may be told; names and defaults are those of `npusmith generate`.

    out: folder of the results, by default out/ and the task's name. chip: a name of
    docs/chips.md, or a .toml file. search: schedules tried on the timing model (0: none).
    schedule: a file with one to replay. whole: refuse a module of which a part cannot be written,
    instead of leaving that part to PyTorch. writer: somebody else than the deterministic one.
    progress: told of each step.
    """

    out: str | Path
    chip: str
    tolerance: str
    seed: int
    search: int
    schedule: str | Path
    whole: bool
    timed: bool
    writer: Writer
    progress: pipeline.Progress


class Quiet:
    """A progress that says nothing."""

    def step(self, name: str, detail: str = "") -> None: ...


@dataclass(frozen=True)
class Operator:
    """What `generate` left, callable: an Ascend C project with its verdict.

    Called with tensors (PyTorch or NumPy), it runs on the twin and gives what forward gives. No
    NPU is used; `npusmith build` and `npusmith device` do that.
    """

    folder: Path  # the project
    verdict: Verdict
    task: Path
    source: Any = field(default=None, repr=False)  # the module or function, of the calling program

    @property
    def passed(self) -> bool:
        """By the judge, for the files as they are: not where somebody changed them since."""
        return self.verdict.verdict == "pass" and not self.changed

    @functools.cached_property
    def changed(self) -> bool:
        """Kernels, host code or bindings are others than those that were judged."""
        judged = self.verdict.provenance.get("code")
        return judged is not None and judged != code_digest(self.folder)

    @functools.cached_property
    def spec(self) -> OpSpec:
        """Ports and conditions, from the project's bindings.json."""
        found = read_bindings(self.folder)
        if found is None:
            raise NpusmithError(
                "binding-unknown", f"{self.folder} has no bindings.json", seen=str(self.folder)
            )
        return found

    @property
    def program(self) -> str:
        """The tile program; empty where the writer wrote Ascend C at once."""
        return self.verdict.program and Path(self.verdict.program).read_text(encoding="utf-8")

    @property
    def kernel(self) -> str:
        """The Ascend C of the kernel."""
        files = sorted((self.folder / "op_kernel").glob("*.cpp"))
        return "\n".join(file.read_text(encoding="utf-8") for file in files)

    @property
    def schedule(self) -> Mapping[str, Any]:
        """As `npusmith generate --schedule FILE` takes it; empty for other writers."""
        found = self.verdict.provenance.get("schedule")
        return found if isinstance(found, Mapping) else {}

    @property
    def report(self) -> Path:
        return self.folder / "report.html"

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Run on the twin, and give what forward gives, tuples, lists and dicts as it nests them.

        Arguments as of forward; those with defaults may be left out. TwinError for inputs that the
        operator does not serve, and where a hardware rule is broken.
        """
        tensors, numbers = _take_apart(_whole(self._signature, inputs, named))
        if self.composition is not None:
            return self._composed(self.composition, tensors, numbers)
        spec = self.spec
        if spec.literals is not None and [*spec.literals] != numbers:
            raise _mismatch("numbers among the arguments", numbers, [*spec.literals])
        given = {port.name: self._given(port, tensors) for port in spec.inputs}
        done = _launch(read_project(self.folder), spec, given, self.verdict.chip)
        results = [_tensor(value) if _has_tensor(tensors) else value for value in done]
        return arranged(spec.returns, results)

    @functools.cached_property
    def composition(self) -> Graph | None:
        """How operators and PyTorch make up the module; None where it is one operator."""
        return read_composition(self.folder)

    def _composed(self, graph: Graph, tensors: Sequence[Any], numbers: list[Any]) -> Any:
        """Operators on the twin, and PyTorch's part by PyTorch."""
        import torch

        if graph.literals is not None and [*graph.literals] != numbers:
            raise _mismatch("numbers among the arguments", numbers, [*graph.literals])
        held = {
            item.target: _tensor(self._held(item.target).copy())
            for item in graph.inputs
            if item.kind != "user"
        }
        given = [
            item if isinstance(item, torch.Tensor) else _tensor(_array(item)) for item in tensors
        ]
        library = _Library(self.folder, self.verdict.chip)
        forward = read_forward(graph, {"torch": torch, "custom_ops_lib": library})
        try:
            with torch.no_grad():
                results = forward(given, held)
        except ValueError as error:
            raise _mismatch("arguments", error, "what it was written for") from error
        made = results if _has_tensor(tensors) else [*map(_array, results)]
        return arranged(graph.returns or plain(len(made)), made)

    @functools.cached_property
    def _signature(self) -> inspect.Signature | None:
        if self.source is not None:
            return _signature_of(self.source)
        try:
            return forward_signature(open_task(self.task).text)
        except TaskError:
            return None

    def _given(self, port: Port, tensors: Sequence[Any]) -> Array:
        if port.source is not Source.USER:
            return self._held(port.target)
        if port.position >= len(tensors):
            raise _mismatch("the number of tensors", len(tensors), f"{port.position + 1} or more")
        return _array(tensors[port.position])

    @functools.cached_property
    def _constants(self) -> dict[str, Array]:
        graph = self.composition
        found = self.spec.constants if graph is None else graph.constants
        return {item.target: item.array for item in found}

    def _held(self, target: str) -> Array:
        """A parameter or buffer: the module's as it is now, or the one that the task builds."""
        if hasattr(self.source, "named_buffers"):
            from npusmith.pickled import PREFIX

            rows = dict([*self.source.named_parameters(), *self.source.named_buffers()])
            if (name := target.removeprefix(PREFIX)) in rows:
                return _array(rows[name])
        return self._constants[target] if target in self._constants else self._built[target]

    @functools.cached_property
    def _built(self) -> dict[str, Array]:
        prepared = open_references(
            open_task(self.task),
            self.folder,
            sets=Sets(seeds=seeds_for(int(self.verdict.provenance["seed"]))),
        )
        return {name: np.array(value) for name, value in prepared.parameters.items()}

    def _repr_html_(self) -> str:
        """The report, in a notebook."""
        text = html.escape(self.report.read_text(encoding="utf-8"))
        return f'<iframe srcdoc="{text}" width="100%" height="640" style="border:0"></iframe>'


def generate(
    what: Any, inputs: Sequence[Any] | None = None, **options: Unpack[Options]
) -> Operator:
    """Write an operator for a task file, a torch.nn.Module or a function, and judge it on the twin.

    `inputs`: an example of each argument of a module or function; other values like them are drawn.
    Raises TaskError and PlanError for what is not supported; a wrong candidate is an Operator whose
    verdict says so.
    """
    from npusmith.writers.plan import DEFAULT_SEARCH, PlanWriter, read_schedule

    path = _task(what, inputs)
    chip = find_chip(options.get("chip", DEFAULT_CHIP))
    out = Path(options.get("out") or Path("out", stem_of(path))).absolute()
    progress = options.get("progress") or Quiet()
    schedule = options.get("schedule")
    writer = options.get("writer") or PlanWriter(
        chip, search=options.get("search", DEFAULT_SEARCH), step=progress.step,
        schedule=None if schedule is None else read_schedule(Path(schedule)),
        whole=options.get("whole", False),
    )  # fmt: skip
    verdict = pipeline.generate(
        path, out, chip, options.get("tolerance", "default"), progress, writer=writer,
        seed=options.get("seed", 0), timed=options.get("timed", False),
    )  # fmt: skip
    pickled = not isinstance(what, (str, Path))
    if pickled:  # model_new.py holds the task's text
        shutil.copy(path.with_suffix(".pkl"), out)
    return Operator(out, verdict, path, what if pickled else None)


def load(folder: str | Path) -> Operator:
    """The operator that an earlier `generate` left in that folder; parameters are the task's."""
    place = Path(folder).absolute()
    path = place / "result.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        verdict = Verdict.model_validate({name: data[name] for name in Verdict.model_fields})
        task = Path(str(verdict.provenance["task_file"]))
    except FileNotFoundError as error:
        raise NpusmithError(
            "file-missing", f"{path} does not exist", seen=str(path),
            hint="give the folder that `generate` made",
        ) from error  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NpusmithError(
            "file-unusable", f"{path} is not what `generate` leaves", seen=str(error)[:200]
        ) from error
    return Operator(place, verdict, task)


def judge(
    kernel: str | Path, task: Any, inputs: Sequence[Any] | None = None, **options: Any
) -> Verdict:
    """Judge an existing project, source or submission on the twin, as `npusmith run` does.

    `task` and `inputs` as of `generate`; `options`: those of `pipeline.RunOptions`, and chip,
    tolerance.
    """
    chip = find_chip(options.pop("chip", DEFAULT_CHIP))
    tolerance = options.pop("tolerance", "default")
    progress = options.pop("progress", None) or Quiet()
    chosen = pipeline.RunOptions(**options)
    return pipeline.run(Path(kernel), _task(task, inputs), chip, tolerance, progress, chosen)


def profile(
    kernel: str | Path, task: Any = None, inputs: Sequence[Any] | None = None, **options: Any
) -> Profiled:
    """Estimate the time of a project, as `npusmith profile` does; `options` as of profiling."""
    from npusmith import profiling

    project = Path(kernel)
    chip = find_chip(options.pop("chip", DEFAULT_CHIP))
    tolerance = options.pop("tolerance", "default")
    progress = options.pop("progress", None) or Quiet()
    out = Path(options.pop("out", None) or Path("out", f"{project.stem}.profile"))
    chosen = profiling.Options(out, **options)
    path = None if task is None else _task(task, inputs)
    return profiling.profile(project, path, chip, tolerance, progress, chosen)


def benchmark(
    suite: str, root: str | Path, writer: str = "plan", *, out: str | Path | None = None,
    workers: int = 0, resume: bool = False, watch: Callable[[Any], None] = lambda now: None,
    chip: str = DEFAULT_CHIP, **plan: Any,
) -> Summary:  # fmt: skip
    """Have a writer solve a benchmark, as `npusmith bench` does; gives the figures of the run.

    `writer`: plan, plan:N, folder:PATH, answers:ROOT or agent:OPTIONS. `plan`: more of
    bench.plan.Plan (names, categories, levels, samples, trials, options of the suite; limits is a
    bench.model.Limits). Records stay in `out`, which `npusmith report` shows.
    """
    from npusmith.bench.archive import open_run
    from npusmith.bench.model import Limits
    from npusmith.bench.plan import Plan, folder_of
    from npusmith.bench.pool import LocalPool
    from npusmith.bench.runner import run as run_plan
    from npusmith.open_writer import OPEN_WRITER, whole_spec

    limits = plan.pop("limits", Limits(timing=True)).model_copy(
        update={"chip": find_chip(chip).name}
    )
    asked = Plan(
        suite=suite,
        root=Path(root),
        writer=whole_spec(writer),
        writers=OPEN_WRITER,
        limits=limits,
        **plan,
    )
    folder = Path(out or folder_of(asked))
    run_plan(asked, folder, LocalPool(workers), watch, resume=resume)
    with open_run(folder) as done:
        return done.finish()


def operator(what: Any = None, **options: Unpack[Options]) -> Any:
    """Decorator: a function or module whose calls run as operators on the twin.

    The first call generates one from its inputs. Later calls use it where it serves their types and
    shapes, and generate another one where not. Results lie in numbered folders of `out`.
    """
    if what is None:
        return functools.partial(operator, **options)
    name = getattr(what, "__name__", type(what).__name__)
    base = Path(options.get("out") or Path("out", name))
    made: dict[object, list[Operator]] = {}

    @functools.wraps(what, updated=())
    def call(*inputs: Any) -> Any:
        tensors, numbers = _take_apart(_whole(_signature_of(what), inputs, {}))
        known = made.setdefault(repr([numbers, *((t.dtype, len(t.shape)) for t in tensors)]), [])
        for item in known:
            try:
                return item(*inputs)
            except TwinError as error:
                if error.code not in _REFUSALS:
                    raise
        folder = base / str(sum(map(len, made.values())))
        chosen: Options = {**options, "out": folder}
        found = generate(what, inputs, **chosen)
        if not found.passed:
            raise TwinError(
                "operator-wrong", f"the operator for {name} did not pass; see {found.report}",
                seen=found.verdict.rung.value,
            )  # fmt: skip
        known.append(found)
        return found(*inputs)

    return call


def _task(what: Any, inputs: Sequence[Any] | None) -> Path:
    """The task file of what was given; a module's is made anew and kept in the cache."""
    if isinstance(what, (str, Path)):
        return Path(what)
    if inputs is None:
        raise NpusmithError(
            "usage", "a module or function needs inputs: an example of each argument"
        )
    from npusmith.pickled import save

    with temporary_folder("npusmith-pickled-") as name:
        made = save(what, _with_defaults(what, inputs), name)
        data = made.with_suffix(".pkl").read_bytes()

        def keep(folder: Path) -> None:
            for ending in (".py", ".pkl"):
                shutil.copy(made.with_suffix(ending), folder)

        place = (
            cache.cache_root() / "pickled" / cache.digest([made.read_text(encoding="utf-8"), data])
        )
        cache.fetch(place, keep)
        cache.keep_newest(place.parent, _KEPT_TASKS, place)
    return place / made.name


class _Library:
    """Stands for the binding of a module's operators: their calls run on the twin."""

    def __init__(self, folder: Path, chip: str) -> None:
        self._folder, self._chip = folder, chip
        self._projects = {item.name: item for item in read_projects(folder).values()}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        project = self._projects.get(name)
        spec = read_bindings(self._folder, bindings_of(name))
        if project is None or spec is None:
            raise NpusmithError("binding-unknown", f"{self._folder} has no operator {name}")

        def call(*tensors: Any) -> Any:
            if tensors and isinstance(tensors[0], list):  # more than a schema has arguments
                tensors = tuple(tensors[0])
            pairs = zip(spec.inputs, tensors, strict=True)
            given = {port.name: _array(tensor) for port, tensor in pairs}
            found = tuple(map(_tensor, _launch(project, spec, given, self._chip)))
            return found if len(found) > 1 else found[0]

        return call


def _launch(
    project: Project, spec: OpSpec, given: Mapping[str, Array], chip: str
) -> Sequence[Array]:
    """One operator on the twin. TwinError where it does not serve these, or breaks a rule."""
    for port in spec.inputs:
        if (seen := DType.of(given[port.name].dtype)) is not port.dtype:
            raise _mismatch(f"elements of {port.name}", seen.value, port.dtype.value)
    outputs = _outputs(spec, {name: value.shape for name, value in given.items()})
    kinds = [
        *(DType.of(value.dtype) for value in given.values()), *(kind for _, kind in outputs),
    ]  # fmt: skip
    done = run(build(project, find_chip(chip), kinds), [*given.values()], outputs)
    for item in done.findings:
        if item.level is Level.ERROR:
            raise TwinError(item.code, item.message, seen=item.seen)
    return done.outputs


def _outputs(spec: OpSpec, shapes: Shapes) -> list[tuple[tuple[int, ...], DType]]:
    try:
        broken = unmet(spec, shapes)
        if broken is not None:
            raise _mismatch("sizes that the operator does not serve", shapes, show_expr(broken))
        return [
            (tuple(extent(dim, shapes) for dim in port.dims), port.dtype) for port in spec.outputs
        ]
    except LangError as error:
        raise _mismatch("ranks that the operator does not serve", shapes, error.message) from error


def _mismatch(what: str, seen: object, legal: object) -> TwinError:
    message = f"the operator was written for other inputs: {what}"
    return TwinError(
        "inputs-mismatch", message, seen=str(seen)[:200], legal=str(legal)[:200],
        hint="generate an operator for these inputs",
    )  # fmt: skip


def _take_apart(inputs: Any) -> tuple[list[Any], list[Any]]:
    """Tensors of the arguments, those in lists and dicts included, and the numbers among them."""
    from torch.utils._pytree import tree_flatten

    leaves = tree_flatten([*inputs])[0]
    tensors = [item for item in leaves if hasattr(item, "shape") and hasattr(item, "dtype")]
    known = {id(item) for item in tensors}
    return tensors, [item for item in leaves if id(item) not in known]


def _signature_of(what: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(getattr(what, "forward", what))
    except (TypeError, ValueError):
        return None


def _whole(
    signature: inspect.Signature | None, inputs: Sequence[Any], named: Mapping[str, Any]
) -> Sequence[Any]:
    """All arguments in the order of the parameters, with defaults for those that were left out."""
    if signature is None:
        return [*inputs, *named.values()]
    try:
        bound = signature.bind(*inputs, **named)
    except TypeError:  # it would not take these
        return [*inputs, *named.values()]
    bound.apply_defaults()
    return [*bound.arguments.values()]


def _with_defaults(what: Any, inputs: Sequence[Any]) -> Sequence[Any]:
    """As a call of forward takes them: what has to be given by name keeps its default."""
    signature = _signature_of(what)
    if signature is None:
        return inputs
    try:
        bound = signature.bind(*inputs)
    except TypeError:
        return inputs
    bound.apply_defaults()
    return inputs if bound.kwargs else bound.args


def _has_tensor(tensors: Sequence[Any]) -> bool:
    return not tensors or any(not isinstance(item, (np.ndarray, np.generic)) for item in tensors)


def _array(value: Any) -> Array:
    if isinstance(value, (np.ndarray, np.generic)):
        return np.ascontiguousarray(value).reshape(value.shape)
    from npusmith.device.tensors import array

    found: Array = array(value.cpu())
    return found


def _tensor(values: Array) -> Any:
    import torch

    from npusmith.device.tensors import write

    found = torch.empty(values.shape, dtype=getattr(torch, DType.of(values.dtype).value))
    write(found, values)
    return found
