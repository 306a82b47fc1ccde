"""MultiKernelBench's tasks at their true shapes, where tensors are larger than memory.

    python runs/multikernelbench.py --root CHECKOUT --out rows.jsonl activation loss math

The writer's kernel is compiled and run on tensors of zeros that take no memory, with random values
in the first and last rows; of the cores, those at both ends do their work, all of them where they
wait for each other. What they leave in these rows is compared with the reference on these rows
alone. Addresses go up to the end of every tensor: past 2^31 elements and 4 GB where it is so large.

Two kinds of tasks can be checked that way, and which a task is of is found by trying: `rows`, whose
rows need nothing of each other, and `mean`, which are a mean over rows. The others say so.
One JSON row per task: task, kind, passed, why, elements and bytes of the largest tensor, cores,
seconds. The reference's code runs in this process: name a checkout that you trust.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from npusmith.device.tensors import array
from npusmith.errors import NpusmithError
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Combine,
    Const,
    CoreCount,
    CoreId,
    If,
    Program,
    SyncCores,
)
from npusmith.ir.walk import statements
from npusmith.lower import lower, write_project
from npusmith.plan import write
from npusmith.plan.write import Plan
from npusmith.target.chips import Chip, find_chip
from npusmith.task.graph import Graph, GraphInput
from npusmith.task.load import open_task
from npusmith.task.outline import outline
from npusmith.task.user import load_file
from npusmith.twin import build, read_project, run
from npusmith.twin.orders import Sparse

_SEED, _LIMIT = 1024, 1e-4
_ANY_ERROR = (Exception,)


@dataclass(frozen=True, slots=True)
class Case:
    """One task: its model, graph, and the rows that hold something."""

    name: str
    model: Any
    given: Sequence[Any]  # by get_inputs(), on tensors without memory
    graph: Graph
    rows: int  # of the first dimension
    filled: int  # of them at either end
    sliced: frozenset[str]  # inputs that have these rows

    def ends(self, item: GraphInput) -> tuple[int, int]:
        """Elements of a row, and where the last filled rows begin."""
        each = math.prod(item.shape[1:])
        return each, (self.rows - self.filled) * each


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", help="a category, or category/task")
    parser.add_argument("--root", type=Path, required=True, help="the checkout")
    parser.add_argument("--out", type=Path, default=Path("rows.jsonl"))
    parser.add_argument("--seconds", type=float, default=300, help="limit for each run")
    options = parser.parse_args()
    chip = find_chip("910B2")
    for path in _tasks(options.root / "reference", options.names):
        clock = time.monotonic()
        try:
            row = _check(path, chip, options.seconds)
        except NpusmithError as error:
            row = {"kind": "", "passed": None, "why": f"{error.code}: {error.message}"[:300]}
        row = {"task": f"{path.parent.name}/{path.stem}", **row}
        row["seconds"] = round(time.monotonic() - clock, 1)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), file=sys.stderr, flush=True)


def _tasks(root: Path, names: Sequence[str]) -> list[Path]:
    found = []
    for name in names:
        found += sorted(root.glob(f"{name}.py" if "/" in name else f"{name}/*.py"))
    if not found:
        raise SystemExit(f"no reference files of {', '.join(names)} below {root}")
    return found


def _check(path: Path, chip: Chip, seconds: float) -> dict[str, Any]:
    task = open_task(path)
    graph = outline(task, training=True)
    plan = write(graph, f"{path.stem}_custom", chip)
    module = load_file(str(path), task.text)
    torch.manual_seed(_SEED)
    model = module.Model(*module.get_init_inputs())
    with torch.device("meta"):
        given = module.get_inputs()
    case, kind = _kind(path.stem, model, given, graph)
    largest = max(math.prod(item.shape) for item in graph.inputs)
    facts = {"elements": largest, "bytes": largest * graph.inputs[0].dtype.bytes}
    if case is None:
        return {"kind": kind, "passed": None, "why": "rows depend on each other", **facts}
    values = _values(case)
    for idle in (0, chip.vector_cores // 2):  # the last cores may have no work
        found, cores, why = _launch(case, plan, values, chip, seconds, idle)
        why = why or _compare(case, kind, values, found)
        if not why.startswith("last rows") or cores == chip.vector_cores:
            break
    return {"kind": kind, "passed": not why, "why": why, **facts, "cores": cores}


# --------------------------------------------------------------------------------- what is checked


def _kind(name: str, model: Any, given: Sequence[Any], graph: Graph) -> tuple[Case | None, str]:
    """How the model treats its rows, by what it does with two and two of them."""
    users = [item for item in graph.inputs if item.kind == "user" and item.shape]
    rows, rank = users[0].shape[0], max(len(item.shape) for item in users)
    whole = [item for item in users if item.shape[0] == rows]
    for chosen in (whole, [item for item in whole if len(item.shape) == rank]):
        filled = max(1, min(2, rows // 2))
        names = frozenset(item.name for item in chosen)
        case = Case(name, model, given, graph, rows, filled, names)
        try:
            values = _values(case)
            parts = [_reference(case, values, at) for at in (0, 1)]
            both = _reference(case, values, None)
        except _ANY_ERROR:
            continue
        if both.dim() and torch.equal(both, torch.cat(parts)):
            return case, "rows"
        if not both.dim() and torch.allclose(both, torch.stack(parts).mean()):
            return case, "mean"
    return None, "neither"


def _values(case: Case) -> dict[str, list[torch.Tensor]]:
    """Random rows for both ends of every input that has rows; other inputs whole."""
    made = torch.Generator().manual_seed(_SEED)
    found: dict[str, list[torch.Tensor]] = {}
    for item in case.graph.inputs:
        if item.kind != "user":
            continue
        sliced = item.name in case.sliced
        shape = (case.filled, *item.shape[1:]) if sliced else item.shape
        found[item.name] = [_random(shape, item, made) for _ in range(2 if sliced else 1)]
    return found


def _random(shape: Sequence[int], item: GraphInput, made: torch.Generator) -> torch.Tensor:
    dtype = getattr(torch, item.dtype.value)
    if not dtype.is_floating_point:
        return torch.randint(0, 2, tuple(shape), generator=made).to(dtype)
    return torch.rand(tuple(shape), generator=made).to(dtype)


def _reference(case: Case, values: dict[str, list[torch.Tensor]], end: int | None) -> torch.Tensor:
    """The model on the first rows, the last ones, or both."""
    held = {
        name: parts[0] if len(parts) == 1 else torch.cat(parts) if end is None else parts[end]
        for name, parts in values.items()
    }
    with torch.no_grad():
        return case.model(*_arguments(case, held))


def _arguments(case: Case, held: dict[str, torch.Tensor]) -> list[Any]:
    """What get_inputs() gives, with these tensors in the place of its own."""
    users = sorted((i for i in case.graph.inputs if i.kind == "user"), key=lambda i: i.position)
    fresh = iter([held[item.name] for item in users])
    return [next(fresh) if isinstance(one, torch.Tensor) else one for one in case.given]


# ----------------------------------------------------------------------------------------- the run


def _launch(
    case: Case,
    plan: Plan,
    values: dict[str, list[torch.Tensor]],
    chip: Chip,
    seconds: float,
    idle: int,
) -> tuple[Any, int, str]:
    """The outputs of the cores at both ends, how many cores that were, and what went wrong."""
    program, cores = _sampled(plan.program, case, chip, idle)
    spec = plan.spec
    with tempfile.TemporaryDirectory(prefix="npusmith-true-") as name:
        write_project(lower(program, chip), chip, Path(name, "project"), spec)
        project = read_project(Path(name, "project"))
        built = build(project, chip, tuple(p.dtype for p in (*spec.inputs, *spec.outputs)))
        held = {item.position: item for item in case.graph.inputs if item.kind == "user"}
        inputs = [
            _tensor(case, held[port.position], values)
            if port.source.value == "user"
            else array(dict(case.model.named_parameters())[port.target].detach())
            for port in spec.inputs
        ]
        blank = [Sparse(port.shape, port.dtype) for port in spec.outputs]
        done = run(
            built, inputs, [(port.shape, port.dtype) for port in spec.outputs], seconds=seconds,
            initial={at: [tensor] for at, tensor in enumerate(blank)},
        )  # fmt: skip
    errors = [item for item in done.findings if item.level.value == "error"]
    why = "; ".join(f"{item.code}: {item.message}" for item in errors)[:300]
    why = why or ("" if done.completed else "the kernel did not run to its end")
    return done.outputs, cores, why


def _tensor(case: Case, item: GraphInput, values: dict[str, list[torch.Tensor]]) -> Any:
    parts = [array(part) for part in values[item.name]]
    if item.name not in case.sliced:
        return parts[0]
    return Sparse(item.shape, item.dtype, ((0, parts[0]), (case.ends(item)[1], parts[1])))


def _sampled(program: Program, case: Case, chip: Chip, idle: int) -> tuple[Program, int]:
    """The same kernel with most cores idle; all of them work where they wait for each other."""
    body = program.kernel.body
    if any(isinstance(item, (Combine, SyncCores)) for item in statements(body)):
        return program, chip.vector_cores
    ends = min(chip.vector_cores, math.ceil(chip.vector_cores * case.filled / case.rows) + 1)
    low = Binary(BinOp.LT, CoreId(), Const(ends))
    high = Binary(BinOp.GE, CoreId(), Binary(BinOp.SUB, CoreCount(), Const(ends + idle)))
    chosen = If(Binary(BinOp.OR, low, high), body, ())
    return replace(program, kernel=replace(program.kernel, body=(chosen,))), 2 * ends + idle


def _compare(case: Case, kind: str, values: dict[str, list[torch.Tensor]], found: Any) -> str:
    """What is wrong with the rows at both ends, or with the mean; "" when nothing."""
    ends = [_reference(case, values, end) for end in (0, 1)]
    if kind == "mean":
        empty = {name: [torch.zeros_like(part) for part in parts] if name in case.sliced else parts
                 for name, parts in values.items()}  # fmt: skip
        rest = _reference(case, empty, 0)
        share = case.filled / case.rows
        wanted = share * (ends[0] + ends[1]) + (1 - 2 * share) * rest
        return _differ(wanted, torch.from_numpy(np.array(found[0])).reshape(()))
    out = found[0]
    for at, wanted in ((slice(0, case.filled), ends[0]), (slice(-case.filled, None), ends[1])):
        said = _differ(wanted, torch.from_numpy(np.array(out[at])))
        if said:
            return f"{'last' if at.stop is None else 'first'} rows: {said}"
    return ""


def _differ(wanted: torch.Tensor, got: torch.Tensor) -> str:
    if torch.allclose(wanted, got, rtol=_LIMIT, atol=_LIMIT, equal_nan=True):
        return ""
    return f"off by up to {float((wanted - got).abs().max()):.3g}"


if __name__ == "__main__":
    main()
