"""The cases of the replay: which graphs are frozen, and how they are captured.

A case is `category/name@shapes` or `category/name@shapes.dtype`. Where the sizes of a graph are
more than the interpreter can go through, `check` names the case of the same module at small ones:
a program is generic in sizes, so it is judged there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import few_rows
import short_rows
from operators import CATEGORIES
from replay_frozen import Case

from npusmith.bench.suites import sizes
from npusmith.bench.suites.multikernelbench import MultiKernelBench
from npusmith.bench.suites.options import SuiteOptions
from npusmith.errors import NpusmithError
from npusmith.ir.dtypes import DType
from npusmith.sandbox.box import Policy, run_boxed
from npusmith.sandbox.folder import temporary_folder
from npusmith.task.compare import difference
from npusmith.task.graph import Graph
from npusmith.task.trials import package_paths, python_places

RUNS = Path(__file__).parent
EXAMPLES = RUNS.parent / "examples"
MORE = ("broadcast", "index", "resize")
HALVES = ("float16", "bfloat16")
REDUCED_MB, SMALL_MB = 40.0, (0.5, 5.0, 40.0)
_SECONDS_EACH = 60.0
_BATCH = 24
_START = "import sys; sys.path += sys.argv[1:]; import replay_capture; replay_capture.main()"

FEW = ((1, 16_384), (1, 1_000_000), (4, 65_536), (4, 4_194_304), (12, 16_384))
FEW_SMALL, SHORT_SMALL = (3, 20_011), (601, 37)
# batch, tokens, streams, width, dtype; then the convention of the model
MHC = {
    "1024x4x5120": "(1, 1024, 4, 5120, torch.bfloat16), True",
    "2048x4x384": "(1, 2048, 4, 384, torch.bfloat16), True",
    "1024x8x2560": "(1, 1024, 8, 2560, torch.bfloat16), True",
    "1024x4x5120.plain": "(1, 1024, 4, 5120, torch.float16), False",
}
MHC_SMALL = {"4": "(1, 6, 4, 200, {})", "8": "(1, 6, 8, 200, {})"}  # one batch, as above


@dataclass(frozen=True, slots=True)
class Text:
    """A task's text that is to be captured."""

    name: str
    path: Path
    text: str
    training: bool = True
    small: bool = False


# --------------------------------------------------------------------------------------- capture


def capture(root: Path, known: Mapping[str, Case], jobs: int) -> Iterator[dict[str, Case]]:
    """All cases so far, after each batch, each with the one that it is judged at.

    Those that are `known` are not captured again. What cannot be captured is printed.
    """
    cases = dict(known)
    cases |= {case.name: case for case in _rows(known)}
    yield _checked(cases)
    texts = sorted([*_suite(root), *_examples(), *_mhc()], key=_order)
    for found in _captured([text for text in texts if text.name not in cases], jobs):
        cases |= found
        yield _checked(cases)
    whole = _checked(cases)
    lost = {name for name, case in whole.items() if _is_lost(case, whole)}
    before = [item for item in texts if item.name in lost and item.name.endswith("@original")]
    again = list(_smaller(before, "small.original"))
    for found in _captured([text for text in again if text.name not in cases], jobs):
        cases |= found
        yield _checked(cases)


def _order(text: Text) -> tuple[int, str]:
    """What matters most comes first."""
    mark = text.name.partition("@")[2]
    first = ("small", "true", "reduced.float16", "small.float16")
    return (first.index(mark) if mark in first else len(first), mark)


def _checked(cases: Mapping[str, Case]) -> dict[str, Case]:
    """Each case with the name of the one at small sizes that it is judged at."""
    small: dict[str, list[Case]] = {}
    for case in cases.values():
        if case.draws:
            small.setdefault(case.name.partition("@")[0], []).append(case)

    def check(case: Case) -> str:
        near = [item for item in small.get(case.name.partition("@")[0], []) if not case.draws]
        own = [item for item in near if not difference(case.graph, item.graph)]
        typed = [item for item in near if _dtypes(item) == _dtypes(case)]
        return next((item.name for item in (*own, *typed)), case.name if case.draws else "")

    return {name: case.model_copy(update={"check": check(case)}) for name, case in cases.items()}


def _is_lost(case: Case, cases: Mapping[str, Case]) -> bool:
    """Whether the case at small sizes is another program than this one."""
    small = cases.get(case.check)
    return small is None or bool(difference(case.graph, small.graph))


def _dtypes(case: Case) -> list[DType]:
    return [item.dtype for item in case.graph.inputs]


def _suite(root: Path) -> Iterator[Text]:
    """MultiKernelBench's tasks at four sets of shapes, the smaller two in halves as well."""
    chosen = (*CATEGORIES, *MORE)
    kinds = {
        "true": SuiteOptions(categories=chosen, shapes="full"),
        "original": SuiteOptions(categories=chosen, shapes="original"),
        **{name: SuiteOptions(categories=chosen, dtype=name) for name in HALVES},
    }
    for kind, options in kinds.items():
        suite = MultiKernelBench(root, options)
        texts = []
        for entry in suite.entries():
            if entry.category not in chosen:
                continue
            try:
                text = suite.text_of(entry.path, entry.name)
            except NpusmithError as error:
                print(f"{entry.name}@{kind}: {error.code}")
                continue
            texts.append(Text(f"{entry.name}@{kind}", entry.path, text))
        if kind in ("true", "original"):
            yield from texts
        if kind != "original":
            mark = f".{kind}" if kind in HALVES else ""
            yield from _sized(texts, REDUCED_MB, f"reduced{mark}")
            yield from _smaller(texts, f"small{mark}")


def _sized(texts: Sequence[Text], mb: float, mark: str) -> Iterator[Text]:
    found: list[sizes.Size] = []
    for at in range(0, len(texts), sizes.BATCH):
        batch = [sizes.Sized(item.path, item.text) for item in texts[at : at + sizes.BATCH]]
        found += sizes.measure(batch, mb)
    for item, size in zip(texts, found, strict=True):
        name = f"{item.name.partition('@')[0]}@{mark}"
        if size.error or size.unscaled:
            print(f"{name}: {size.error or size.unscaled}")
        else:
            yield replace(item, name=name, text=size.text or item.text)


def _smaller(texts: Sequence[Text], mark: str) -> Iterator[Text]:
    """At sizes for the interpreter; a model with large parameters is not so small."""
    left = list(texts)
    for mb in SMALL_MB:
        done = list(_sized(left, mb, mark))
        yield from (replace(item, small=True) for item in done)
        names = {item.name.partition("@")[0] for item in done}
        left = [item for item in left if item.name.partition("@")[0] not in names]


def _examples() -> Iterator[Text]:
    texts = [
        Text(f"examples/{path.stem}@true", path, path.read_text(encoding="utf-8"), training=False)
        for path in sorted(EXAMPLES.glob("*.py"))
    ]
    yield from texts
    yield from _smaller(texts, "small")


def _mhc() -> Iterator[Text]:
    """mHC at published sizes and others, in both conventions."""
    for name in ("mhc_post", "mhc_post_grad"):
        path = EXAMPLES / f"{name}.py"
        for mark, words in MHC.items():
            inputs, _, flag = words.rpartition(", ")
            streams, dtype = inputs.split(", ")[2], inputs.split(", ")[4].rstrip(")")
            tail = (
                "_made = get_inputs\nget_inputs = lambda: _made{}\nget_init_inputs = lambda: [{}]\n"
            )
            small = MHC_SMALL[streams].format(dtype)
            for shapes, chosen in ((mark, inputs), (f"small.{mark}", small)):
                text = path.read_text(encoding="utf-8") + "\n\n"
                text += tail.format(chosen, f"{streams}, {flag}")
                yield Text(
                    f"mhc/{name}@{shapes}", path, text, training=False, small=chosen is small
                )


def _rows(known: Mapping[str, Case]) -> Iterator[Case]:
    """The modules of few_rows.py and short_rows.py: our own code, captured here."""
    for name in few_rows.MODULES:
        for shape in (*FEW, FEW_SMALL):
            case = _row_name(f"few_rows/{name}", shape)
            if case not in known:
                yield _row_case(case, shape, few_rows.graph_of(name, shape))
    for name, (model, make) in short_rows.CASES.items():
        word = name.replace(", ", "_").replace(" ", "_")
        for shape in (*short_rows.SHAPES, SHORT_SMALL):
            case = _row_name(f"short_rows/{word}", shape)
            if case not in known:
                yield _row_case(case, shape, short_rows.graph_of(model, make(*shape)))


def _row_name(module: str, shape: tuple[int, int]) -> str:
    small = shape in (FEW_SMALL, SHORT_SMALL)
    return f"{module}@small" if small else f"{module}@{shape[0]}x{shape[1]}"


def _row_case(name: str, shape: tuple[int, int], graph: Graph) -> Case:
    signed = {"low": -4.0, "high": 4.0, "mean": 0.0, "std": 1.0}
    near = {"low": 0.5, "high": 1.5} if "/cum" in name else signed  # sums that do not cancel
    labels = {"low": 0, "high": shape[1] - 1}
    draws = {item.name: near if item.dtype.is_float else labels for item in graph.inputs}
    return Case(name=name, graph=graph, draws=draws if name.endswith("@small") else {})


def _captured(texts: Sequence[Text], jobs: int) -> Iterator[dict[str, Case]]:
    """Graphs of task files, a batch of them in one boxed process."""
    batches = [texts[at : at + _BATCH] for at in range(0, len(texts), _BATCH)]
    with ThreadPoolExecutor(jobs) as pool:
        for at, (batch, found) in enumerate(zip(batches, pool.map(_run, batches), strict=True)):
            print(f"captured: batch {at + 1} of {len(batches)}", flush=True)
            yield dict(_cases(batch, found))


def _cases(batch: Sequence[Text], found: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Case]]:
    for text, item in zip(batch, found, strict=True):
        if "graph" not in item:
            print(f"{text.name}: {item.get('refused', 'the process ended')}")
            continue
        for node in (*item["graph"]["nodes"], *item["graph"]["eager"]):
            if "device" in node["kwargs"]:  # of the capture, not of the module
                node["kwargs"]["device"] = "cpu"
        graph = Graph.model_validate(item["graph"])
        yield text.name, Case(name=text.name, graph=graph, draws=item.get("draws", {}))


def _run(batch: Sequence[Text]) -> list[dict[str, Any]]:
    with temporary_folder("npusmith-replay-") as name:
        folder = Path(name).resolve()
        tasks = [
            {
                "key": f"{at}", "path": str(text.path), "text": text.text,
                "training": text.training, "values": text.small,
            }
            for at, text in enumerate(batch)
        ]  # fmt: skip
        policy = Policy(
            write=(folder,), read=(*python_places(), RUNS), seconds=_SECONDS_EACH * len(batch)
        )
        argv = [sys.executable, "-I", "-B", "-c", _START, *package_paths(), str(RUNS)]
        orders = json.dumps({"folder": str(folder), "tasks": tasks}).encode()
        boxed = run_boxed(argv, policy, stdin=orders, cwd=folder)
        if boxed.returncode:
            print(boxed.stderr.decode(errors="replace")[-300:])
        files = [folder / f"{at}.json" for at in range(len(batch))]
        return [json.loads(file.read_text()) if file.is_file() else {} for file in files]
