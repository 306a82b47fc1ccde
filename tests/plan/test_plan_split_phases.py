"""Few long lines cut into chunks for all cores: chosen by sizes on the host, right for all."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from modules import CHIP, agrees, capture, plan

from npusmith.ir.nodes import SyncCores
from npusmith.lang import check, run_host
from npusmith.lower import lower, write_project
from npusmith.plan import Plan, write
from npusmith.plan.schedule import Lines, Schedule
from npusmith.plan.write_kernel import write_kernel
from npusmith.target.chips import find_chip
from npusmith.twin import build, read_project, run
from npusmith.twin.launch import LaunchOptions

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

LONG = 1 << 20
ROW, PLANE = (1, LONG), (1, LONG, 8)
# One chunk, chunks that are short or missing, more lines than cores, nothing at all.
ROWS = [(1, 1), (2, 701), (1, 5003), (7, 300), (0, 5), (5, 0)]
PLANES = [(1, 1, 1), (2, 131, 17), (1, 40, 1301), (3, 0, 4), (0, 3, 4)]
Fn = Callable[..., Any]


def draw(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(7)
    return torch.rand(shape, generator=generator) * 2 + 0.1


def near_one(x: torch.Tensor) -> torch.Tensor:
    return 0.99 + x / 100


def behind(x: torch.Tensor) -> torch.Tensor:
    return x.flip(1).cumsum(1).flip(1)


def before(x: torch.Tensor) -> torch.Tensor:
    zeros = torch.zeros_like(x[:, :1])
    return torch.cat((zeros, x.narrow(1, 0, x.size(1) - 1).cumsum(1)), 1)


def deviation(x: torch.Tensor) -> torch.Tensor:
    return (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True, correction=0) + 1e-5).sqrt()


def cut(model: Fn, *shapes: tuple[int, ...], chip: Any = CHIP, dtype: Any = torch.float32) -> Plan:
    """The plan for tensors of these shapes, which take no memory, in chunks at all sizes."""
    graph = capture(model, *(torch.empty(shape, device="meta", dtype=dtype) for shape in shapes))
    own = write_kernel(graph, "op_custom", chip).schedule.lines
    assert own and set(own) <= {Lines.CHUNKED, Lines.BY_SIZES}
    chunks = Schedule(lines=(Lines.CHUNKED,) * len(own))
    made = write(graph, "op_custom", chip, chunks, everywhere=True)
    check(made.program, chip)
    assert any(isinstance(stmt, SyncCores) for stmt in made.program.kernel.body)
    assert "chunk_size" in dict(made.program.host.launch.args)
    return made


LINES: dict[str, tuple[Fn, tuple[int, ...]]] = {
    "cumsum": (lambda x: x.cumsum(1), ROW),
    "reverse cumsum": (behind, ROW),
    "exclusive cumsum": (before, ROW),
    "several scans": (lambda x: (near_one(x).cumprod(1), x.cumsum(1), near_one(x).prod(1)), ROW),
    "scan of a softmax": (lambda x: x.softmax(1).cumsum(1) + x, ROW),
    "scan of a scan": (lambda x: (x.cumsum(1) * 1e-3).cumsum(1), ROW),
    "sum of a scan": (lambda x: x.cumsum(1).sum(1), ROW),
    "deviation": (deviation, ROW),
    "cumsum in the middle": (lambda x: x.cumsum(1), PLANE),
    "exclusive cumsum in the middle": (lambda x: (before(x), near_one(x).cumprod(1)), PLANE),
    "reverse cumsum of rows": (lambda x: x.flip(0).cumsum(0).flip(0), (LONG, 8)),
    "softmax in the middle": (lambda x: x.softmax(1), PLANE),
    "largest and mean": (lambda x: (x.amax(1), x.mean(1)), PLANE),
    "sum of rows": (lambda x: x.sum(0), (LONG, 8)),
}
NEED_ONE = ("exclusive", "largest", "deviation")  # PyTorch refuses an axis of no elements, or NaN


@pytest.mark.parametrize("name", LINES)
def test_a_cut_line_gives_pytorchs_values_at_every_size(name: str) -> None:
    model, captured = LINES[name]
    made = cut(model, captured)
    for shape in ROWS if len(captured) == 2 else PLANES:
        if shape[1] or not name.startswith(NEED_ONE):
            agrees(made, model, draw(*shape), loose=10.0)


def test_a_vector_and_numbers_of_all_of_it_are_cut() -> None:
    def both(x: torch.Tensor) -> Any:
        scanned = x.cumsum(0)
        return scanned / scanned.sum(), (x / x.sum()).cumsum(0), x.amax()

    made = cut(both, (LONG,))
    for length in (1, 255, 5003):
        agrees(made, both, draw(length), loose=10.0)


def test_a_number_of_another_tensor_does_not_move_the_work_of_a_core() -> None:
    def scaled(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return x * b.sum()

    agrees(plan(scaled, draw(40, 30), draw(300)), scaled, draw(40, 30), draw(300), loose=10.0)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_a_scan_behind_a_neutral_element_is_cut(name: str) -> None:
    def fronted(x: torch.Tensor) -> torch.Tensor:
        head = torch.zeros_like(x[:, :1]) if name == "cumsum" else torch.ones_like(x[:, :1])
        return getattr(torch.cat([head, x], 1), name)(1)

    made = cut(fronted, ROW)
    for shape in ROWS[:5]:  # an empty row has no element that a zero could be made of
        agrees(made, fronted, near_one(draw(*shape)), loose=10.0)


def test_a_mask_of_bools_is_scanned() -> None:
    def masked(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        return (x * m).cumsum(1)

    args = (torch.empty(ROW, device="meta"), torch.empty(ROW, device="meta", dtype=torch.bool))
    made = write(capture(masked, *args), "op_custom", CHIP)
    assert "chunk_size" in dict(made.program.host.launch.args)
    x = draw(2, 2503)
    agrees(made, masked, x, x > 1, loose=10.0)


SPECIAL = {
    "infinity": {100: math.inf},
    "infinity behind all": {3900: -math.inf},
    "both infinities": {100: math.inf, 3000: -math.inf},
    "nan": {2000: math.nan},
    "zero before infinity": {100: 0.0, 3000: math.inf},
    "infinity before zero": {100: math.inf, 3000: -0.0},
}


def test_special_values_of_one_chunk_reach_the_others_as_in_pytorch() -> None:
    def scans(x: torch.Tensor) -> Any:
        return x.cumsum(1), x.cumprod(1), x.amax(1)

    made = cut(scans, ROW)
    for places in SPECIAL.values():
        x = near_one(draw(1, 4003))
        for at, value in places.items():
            x[:, at] = value
        agrees(made, scans, x, loose=10.0)


@pytest.mark.parametrize("cores", [1, 3, 48])
def test_any_number_of_cores_is_right(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, captured = LINES["several scans"]
    made = cut(model, captured)
    monkeypatch.setattr("modules.CHIP", replace(CHIP, vector_cores=cores))
    agrees(made, model, draw(1, 5003), loose=10.0)


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (lambda x: x.cumsum(1), (1, 4096)),
        (lambda x: x.cumsum(1), (40, LONG)),
        (lambda x: x.softmax(1), (2, 8000)),
        (lambda x: x.sum(0), (20, 8)),
    ],
    ids=["a short row", "as many rows as cores", "rows that stay on chip", "a few rows"],
)
def test_what_a_wait_costs_is_not_spent_on_little_work(model: Fn, shape: tuple[int, ...]) -> None:
    graph = capture(model, torch.empty(shape, device="meta"))
    made = write(graph, "op_custom", find_chip("910B2"))
    assert not is_chunked(made, shape)


def is_chunked(made: Plan, shape: tuple[int, ...]) -> bool:
    """Whether the host finds that lines of an input of this shape are worth being cut."""
    outputs = {port.name: port.shape for port in made.spec.outputs}
    known = {made.spec.inputs[0].name: shape, **outputs}
    return bool(run_host(made.program, find_chip("910B2"), known).args.get("chunked", 0))


@pytest.mark.parametrize("captured", [(2, LONG), (1024, 8192), (512, 16_384)])
def test_lines_are_cut_where_they_are_few_whatever_was_captured(captured: tuple[int, int]) -> None:
    graph = capture(lambda x: x.cumsum(1), torch.empty(captured, device="meta"))
    made = write(graph, "op_custom", find_chip("910B2"))
    assert made.schedule.lines == (Lines.BY_SIZES,)
    found = [is_chunked(made, shape) for shape in ((8, 65_536), (1, 262_144), (512, 65_536))]
    assert found == [True, True, False]
    for shape in ((2, 9000), (5, 300), (0, 5), (5, 0)):
        agrees(made, lambda x: x.cumsum(1), draw(*shape), loose=10.0)


def test_the_twin_sees_no_race_and_the_same_bytes_every_time(tmp_path: Path) -> None:
    def both(x: torch.Tensor) -> Any:
        return x.cumsum(1), x.softmax(1)

    chip = find_chip("910B2")
    made = cut(both, (2, LONG), chip=chip, dtype=torch.bfloat16)
    write_project(lower(made.program, chip), chip, tmp_path, made.spec)
    dtypes = tuple(port.dtype for port in (*made.spec.inputs, *made.spec.outputs))
    built = build(read_project(tmp_path), chip, dtypes)
    x = draw(3, 40_001).bfloat16()
    wanted = [(tuple(x.shape), port.dtype) for port in made.spec.outputs]
    array = x.view(torch.uint16).numpy().view(made.spec.inputs[0].dtype.numpy)
    runs = [run(built, [array], wanted, options=LaunchOptions(seconds=60.0)) for _ in range(2)]
    assert all(done.completed and not done.findings for done in runs)
    for first, second, right in zip(runs[0].outputs, runs[1].outputs, both(x), strict=True):
        assert np.ascontiguousarray(first).tobytes() == np.ascontiguousarray(second).tobytes()
        np.testing.assert_allclose(first.astype(np.float64), right.double().numpy(), rtol=2e-2)
