"""CANN-bench: tasks/level<N>/<operator> with golden.py, cases.csv and proto.yaml.

An item is one case of one operator. Its reference is a module made around the golden function,
with the case's shapes, types, ranges and attributes written into it.
"""

from __future__ import annotations

import ast
import csv
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npusmith.bench.model import Candidate, Entry, Item, Limits, Record
from npusmith.bench.suites import judging, sizes
from npusmith.bench.suites.torchsuite import TorchSuite, read_text, refuse_root
from npusmith.bench.suites.trials import Order
from npusmith.errors import NpusmithError, Place
from npusmith.target.chips import find_chip
from npusmith.task import rules
from npusmith.task.isolated.arrays import width

_HARDWARE = "910b2.json"  # of the suite's published times
_MEASURED_ON = "910B2"


@dataclass(slots=True)
class Proto:
    """What is used of proto.yaml."""

    name: str = ""
    category: str = ""
    function: str = ""  # of golden.py, as the schema calls it
    inputs: list[str] = field(default_factory=list)
    outputs: list[dict[str, str]] = field(default_factory=list)
    thresholds: dict[str, float] = field(default_factory=dict)


class CannBench(TorchSuite):
    """Each case drawn under its seed; mean and largest relative error against float64."""

    name = "cann-bench"
    rule_name = rules.CANNBENCH
    seed = 0
    official = 2  # the suite draws a case twice, so that nothing can be remembered

    def check(self) -> None:
        if not (self.root / "tasks").is_dir() or next(self._folders(), None) is None:
            raise refuse_root(
                self.root,
                "CANN-bench",
                ["tasks/level1/<operator>/{golden.py, cases.csv, proto.yaml}"],
            )

    def entries(self) -> Iterator[Entry]:
        for folder in self._folders():
            proto = read_proto(folder / "proto.yaml")
            level = folder.parent.name.removeprefix("level")
            for case in _case_ids(folder)[: self.options.cases or None]:
                name = f"{folder.parent.name}/{folder.name}/{case}"
                yield Entry(name, proto.category, level, folder / "golden.py")

    def text_of(self, path: Path, name: str) -> str:
        case = read_case(path.parent, name.rpartition("/")[2])
        return write_module(read_text(path), read_proto(path.parent / "proto.yaml"), case)

    def beside(self, path: Path) -> bytes:
        return b""

    def description_of(self, item: Item) -> str:
        path = (self.root / item.source).with_name("desc.md")
        return read_text(path) if path.is_file() else ""

    def plan_of(self, item: Item, order: Order) -> judging.Plan:
        folder = (self.root / item.source).parent
        proto = read_proto(folder / "proto.yaml")
        case = read_case(folder, item.name.rpartition("/")[2])
        options = {
            "thresholds": proto.thresholds, "outputs": proto.outputs, "inputs": proto.inputs,
            "attrs": case["attrs"],
        }  # fmt: skip
        rule = rules.Named(name="cann-bench", options=options)
        return judging.Plan(
            order, rule, self.rule_name, self.official, "cann-bench", eager=self.options.eager
        )

    def evaluate(self, item: Item, candidate: Candidate, limits: Limits) -> Record:
        record = super().evaluate(item, candidate, limits)
        level, operator, case = item.name.split("/")
        times = self._times(level, operator, case)
        if not times or find_chip(limits.chip) != find_chip(_MEASURED_ON):
            return record
        record.provenance["published_hardware"] = _HARDWARE.removesuffix(".json")
        record.roof_us = times.get("t_hw_us", record.roof_us)
        if "baseline_perf_us" in times:
            record.provenance["published_baseline_us"] = str(times["baseline_perf_us"])
            record.eager_us, record.eager_basis = times["baseline_perf_us"], "measured"
        return record

    def measured(self, tasks: Sequence[sizes.Sized], entries: Sequence[Entry]) -> list[sizes.Size]:
        """The cases say how large their inputs are."""
        found = []
        for entry in entries:
            case = read_case(entry.path.parent, entry.name.rpartition("/")[2])
            names = list(dict.fromkeys(_flat_names(case["dtype"])))
            pairs = zip(case["input_shape"], _types(case), strict=True)
            total = sum(_bytes(shape, kind) for shape, kind in pairs)
            unscaled = "its cases are not scaled" if self.options.scale_mb else ""
            found.append(sizes.Size(bytes=total, dtypes=names, unscaled=unscaled))
        return found

    def trial_seeds(self, base: int, count: int) -> tuple[int, ...]:
        return tuple(base + at for at in range(max(count, self.official)))

    def _folders(self) -> Iterator[Path]:
        wanted = ("golden.py", "cases.csv", "proto.yaml")
        for folder in sorted((self.root / "tasks").glob("level*/*")):
            if all((folder / name).is_file() for name in wanted):
                yield folder

    def _times(self, level: str, operator: str, case: str) -> dict[str, float]:
        path = self.root / "tasks" / "metadata" / _HARDWARE
        if not path.is_file():
            return {}
        found = json.loads(path.read_text(encoding="utf-8"))
        row = found.get(level, {}).get(operator, {}).get(case, {})
        return {name: value for name, value in row.items() if isinstance(value, (int, float))}


def read_case(folder: Path, case: str) -> dict[str, Any]:
    """A row of cases.csv, its cells read as JSON."""
    with (folder / "cases.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["case_id"] == case:
                return _read_cells(folder, row)
    raise NpusmithError("file-missing", f"{folder.name} has no case {case}", Place(str(folder)))


def _read_cells(folder: Path, row: dict[str, str]) -> dict[str, Any]:
    try:
        names = ("input_shape", "dtype", "attrs", "value_range")
        found = {name: json.loads(row[name] or "null") for name in names}
    except (KeyError, ValueError) as error:
        raise NpusmithError(
            "file-unusable", f"cases.csv of {folder.name} cannot be read",
            Place(str(folder / "cases.csv")), seen=str(error)[:200],
        ) from error  # fmt: skip
    shapes = found["input_shape"]
    if shapes and not isinstance(shapes[0], list):
        found["input_shape"] = [shapes]
    found["attrs"] = found["attrs"] or {}
    return found


def _case_ids(folder: Path) -> list[str]:
    with (folder / "cases.csv").open(newline="", encoding="utf-8") as file:
        return [row["case_id"] for row in csv.DictReader(file) if row.get("case_id")]


def _types(case: dict[str, Any]) -> list[Any]:
    """The type of each input: the last one stands for those that are not named."""
    given, count = case["dtype"], len(case["input_shape"])
    types: list[Any] = [given] if isinstance(given, str) else list(given)
    return (types + [types[-1]] * count)[:count]


def _spans(case: dict[str, Any]) -> list[Any]:
    """The range of each input: one range is that of all inputs."""
    spans: list[Any] = case["value_range"] or []
    count = len(case["input_shape"])
    if not spans:
        return [None] * count
    if not isinstance(spans[0], list):
        return [spans] * count
    return (spans + [spans[-1]] * count)[:count]


def _flat_names(types: Any) -> list[str]:
    if isinstance(types, list):
        return [name for item in types for name in _flat_names(item)]
    return [types] if types else []


def _bytes(shape: Any, kind: Any) -> int:
    if not shape or None in shape:
        return 0
    if isinstance(shape[0], list):
        return sum(_bytes(part, kind) for part in shape)
    name = kind[0] if isinstance(kind, list) else kind
    return int(math.prod(shape)) * width(str(name))


# ------------------------------------------------------------------------------ the module's text

_MODULE = """

import torch as _torch
from npusmith.bench.suites.cannvalues import draw as _draw
from npusmith.task.isolated.arrays import width


class Model(_torch.nn.Module):
    def forward(self, {names}):
        return {function}({arguments})


def get_inputs():
    made = [
{rows}
    ]
{hook}    return made


def get_init_inputs():
    return []
"""
_HOOK = """    made = list(get_input(**dict(zip({inputs}, made)), **{attrs}))
    made = dict(zip({tensors}, made))
    made = [made.get(name) for name in {names}]
"""


def write_module(golden: str, proto: Proto, case: dict[str, Any]) -> str:
    """The golden function and one case as a task in KernelBench's format."""
    tree = ast.parse(golden)
    made = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    function = made.get(proto.function) or made.get(proto.name.lower())
    if function is None:
        raise NpusmithError("file-unusable", f"golden.py has no function {proto.function}")
    parameters = [*function.args.args, *function.args.kwonlyargs]
    tensors = [item.arg for item in parameters if "Tensor" in ast.unparse(item.annotation or item)]
    known = [item.arg for item in parameters]
    names = proto.inputs if set(proto.inputs) <= set(known) else tensors
    names = names[: len(case["input_shape"])]
    attrs = {name: _plain(value) for name, value in case["attrs"].items() if name in known}
    rows = zip(case["input_shape"], _types(case), _spans(case), strict=True)
    hook = ""
    if "get_input" in made:
        hook = _HOOK.format(
            inputs=proto.inputs[: len(names)],
            attrs=_source(case["attrs"]),
            tensors=tensors,
            names=names,
        )
    return golden.rstrip() + _MODULE.format(
        function=function.name,
        names=", ".join(names),
        arguments=", ".join(
            [f"{name}={name}" for name in names]
            + [f"{name}={_source(value)}" for name, value in attrs.items() if name not in names]
        ),
        rows="\n".join(f"        _draw({s!r}, {t!r}, {v!r})," for s, t, v in rows),
        hook=hook,
    )


def _plain(value: Any) -> Any:
    special = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
    return special.get(value, value) if isinstance(value, str) else value


def _source(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


# -------------------------------------------------------------------------------------- proto.yaml


def read_proto(path: Path) -> Proto:
    """What we use of proto.yaml: block style, two spaces a level, as the suite writes it."""
    found = Proto()
    section = ""
    row: dict[str, str] = {}
    for line in read_text(path).splitlines():
        depth = len(line) - len(line.lstrip())
        text = re.sub(r"\s+#.*$", "", line).strip()
        name, _, value = text.removeprefix("- ").partition(":")
        value = value.strip().strip("\"'")
        if not text or text.startswith("#"):
            continue
        if depth == 2 and not text.startswith("- "):
            section = name
            _set_top(found, name, value)
        elif section in ("inputs", "outputs") and depth == 2:
            row = {name: value}
            if section == "inputs":
                found.inputs.append(value)
            else:
                found.outputs.append(row)
        elif section == "outputs" and depth in (4, 6):
            row[name] = value
        elif section == "precision_thresholds" and depth == 4:
            found.thresholds[name] = _number(path, value)
    if not found.inputs or not found.function:
        raise NpusmithError(
            "file-unusable", "proto.yaml has no inputs or no schema", Place(str(path))
        )
    return found


def _set_top(proto: Proto, name: str, value: str) -> None:
    if name == "name":
        proto.name = value
    elif name == "category":
        proto.category = value
    elif name == "schema":
        proto.function = value.partition("(")[0].strip()


def _number(path: Path, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise NpusmithError(
            "file-unusable",
            "proto.yaml has a threshold that is no number",
            Place(str(path)),
            seen=text,
        ) from error
