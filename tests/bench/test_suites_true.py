"""The check at the true shapes: which slices of a model stand alone, and what it sees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from npusmith.bench.model import Candidate, Limits, Record
from npusmith.bench.suites import trueshape
from npusmith.bench.suites.sliced import Ends
from npusmith.bench.suites.sliced_reference import Sections
from npusmith.bench.suites.trials import Order, make_ends
from npusmith.errors import TaskError
from npusmith.task import rules
from npusmith.task.trials import make_orders

COPY = Path(__file__).parents[1] / "kernels" / "copy.tile.py"
TASK = """import torch
import torch.nn.functional as F
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(6)
        torch.nn.init.normal_(self.norm.weight)
    def forward(self, x, y):
        return FORWARD
def get_inputs():
    return [torch.rand(SHAPE), torch.rand(SHAPE)]
def get_init_inputs():
    return []
"""


def look(folder: Path, forward: str, shape: str = "4096, 6, 9", dtype: str = "") -> Ends:
    """What sliced_reference.py finds of a model, in this process."""
    text = TASK.replace("FORWARD", forward).replace("SHAPE", shape)
    if dtype:
        text = text.replace(f"rand({shape}", f"rand({shape}, dtype=torch.{dtype}")
    order = Order(path=str(folder / "task.py"), text=text, seed=3, seeds=(), training=True)
    orders = make_orders(order.task, folder, model_seed=3, calling=order.calling)
    return Sections(orders, folder).find()


@pytest.mark.parametrize(
    ("forward", "way", "dim", "shape"),
    [
        ("x.softmax(-1) + y", "apart", 0, [4096, 6, 9]),
        ("(x + y).amax(1)", "apart", 0, [4096, 9]),
        ("self.norm(x)", "apart", 1, [4096, 6, 9]),
        ("x / torch.norm(x) + y", "zeros", 0, [4096, 6, 9]),
        ("(x - y).square().sum()", "zeros", 0, []),
        ("F.mse_loss(x, y)", "mean", 0, []),
        ("x.exp().mean()", "mean", 0, []),
    ],
)
def test_the_way_in_which_slices_stand_alone_is_found(
    tmp_path: Path, forward: str, way: str, dim: int, shape: list[int]
) -> None:
    found = look(tmp_path, forward)
    assert (found.way, found.dim) == (way, dim)
    (output,) = found.outputs
    assert list(output.shape) == shape
    # the last slices lie at the end of every tensor that has them
    piece = found.inputs[0].pieces[-1]
    assert piece.starts[-1] + piece.file.shape[-1] == 4096 * 6 * 9


@pytest.mark.parametrize(
    ("forward", "why"),
    [
        ("x - x.mean() + y.mean((0, 1))", "slices depend on each other"),
        ("x.softmax(0).softmax(1)", "slices depend on each other"),
        ("torch.log(x).mean()", "the ends are not seen"),
    ],
)
def test_what_cannot_be_looked_at_says_so(tmp_path: Path, forward: str, why: str) -> None:
    with pytest.raises(TaskError, match=why):
        look(tmp_path, forward)


def test_of_two_values_for_one_place_the_last_stays() -> None:
    forward = "x.index_copy(0, torch.arange(2048) % 2, torch.arange(4096.0 * 64).view(2048, 128))"
    text = TASK.replace("FORWARD", f"{forward} + 0 * y").replace("SHAPE", "4096, 128")
    order = Order(path="task.py", text=text, seed=3, seeds=(), training=True)
    folder, found = make_ends(order, seconds=60, memory_mb=4096)
    first = np.fromfile(folder / found.outputs[0].pieces[0].file.file, np.float32)
    assert (found.way, first[::128].tolist()) == ("zeros", [2046 * 128.0, 2047 * 128.0])


def test_halves_have_their_float64_results_beside_them(tmp_path: Path) -> None:
    found = look(tmp_path, "(x + y).exp()", dtype="float16")
    assert [piece.dtype for piece in found.goldens] == ["float64", "float64"]


def test_long_sums_of_signed_terms_have_their_bounds_beside_them(tmp_path: Path) -> None:
    found = look(tmp_path, "torch.einsum('nij,nkj->nik', x, y)", "32, 9, 3000")
    assert [piece.dtype for piece in (*found.goldens, *found.bounds)] == ["float64"] * 2 + [
        "float32"
    ] * 2


def test_what_breaks_the_rule_is_right_within_its_bound() -> None:
    wanted, wide = torch.zeros(4), torch.zeros(4, dtype=torch.float64)
    bounds = [torch.full((4,), 1e-4)]
    said = [
        trueshape._joined(
            rules.multikernelbench, [wanted], [wanted + gap], [wide], bounds if given else None
        )
        for gap, given in ((2e-4, True), (2e-4, False), (2e-3, True))
    ]
    assert [bool(words) for words in said] == [False, True, True]


def record() -> Record:
    return Record(
        key="", suite="s", item="i", category="c", writer="w", sample=0, candidate="",
        official=True, strict=True, precise=True,
    )  # fmt: skip


def check(forward: str, most_bytes: int = 1 << 30, **changes: str) -> Record:
    """The record of the copying kernel with these changes, where the model is `forward`."""
    text = TASK.replace("FORWARD", forward).replace("SHAPE", "400000, 4")
    text = text.replace("(self, x, y)", "(self, x)").replace(", torch.rand(400000, 4)]", "]")
    kernel = COPY.read_text()
    for old, new in changes.items():
        assert old in kernel
        kernel = kernel.replace(old, new)
    candidate = Candidate(format="program", files={"copy.tile.py": kernel}, writer="test")
    order = Order(path="task.py", text=text, seed=3, seeds=(), training=True)
    found = record()
    limits = Limits(seconds=60, memory_mb=4096)
    shape = trueshape.Shape(order, rules.multikernelbench, most_bytes)
    trueshape.add_check(found, shape, candidate, limits)
    return found


def test_a_right_kernel_is_right_at_both_ends_by_a_few_cores() -> None:
    found = check("x * 1")
    assert found.true_shape.startswith("right: first and last 2 of 400000 slices"), found
    assert "4 of 48 cores" in found.true_shape and found.official and found.strict


def test_a_kernel_that_leaves_the_end_out_is_wrong_whoever_it_is() -> None:
    found = check(
        "x * 1", **{"min(first + per_core, size), TILE)": "min(first + per_core, 99), TILE)"}
    )
    assert found.true_shape.startswith("wrong: off by"), found
    assert "48 of 48 cores" in found.true_shape  # all were asked before it was said
    assert not found.official and not found.strict and found.error.startswith("at the true shape")


def test_what_would_touch_too_much_is_not_run_and_changes_nothing() -> None:
    found = check("x * 1", most_bytes=1000)
    assert found.true_shape.startswith("not run: 4 cores would touch more") and found.official


def test_more_workspace_than_this_machine_gives_is_no_fault_of_the_kernel() -> None:
    """6.4 GB, of the 64 that a device has."""
    found = check(
        "x * 1",
        **{
            "y: output(float32), size": "y: output(float32), work: scratch(float32), size",
            "ceil_div(x.size, cores))": "ceil_div(x.size, cores), work=1000 * x.size)",
            "store(y[at], xt, n)": "store(work[at], xt, n)\n            store(y[at], xt, n)",
        },
    )
    assert found.true_shape.startswith("not run: tiling asks for 64"), found
    assert found.official and found.strict
