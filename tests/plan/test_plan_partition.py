"""Where a graph that one kernel cannot hold is cut."""

from __future__ import annotations

import importlib

import pytest
import torch
import torch.nn.functional as F
from modules import CHIP, agrees, capture, plan

from npusmith.errors import PlanError
from npusmith.plan.estimate import time_of
from npusmith.plan.partition import Kernels, Part, partition
from npusmith.plan.pytorch_fallback import with_fallback
from npusmith.plan.structural_key import structural_key
from npusmith.plan.structures import DEEPEST
from npusmith.plan.write import write
from npusmith.plan.write_kernel import write_kernel
from npusmith.target.chips import find_chip
from npusmith.task.graph import Graph, is_free


def expanded(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.exp(x.sum(-1, keepdim=True)) * w).sum(-1)


def us(part: Part) -> float:
    return time_of(part.plan.program, part.plan.spec, part.graph, CHIP)


def _parts(graph: Graph, most: int) -> list[list[str]]:
    """The operations of each part, where a kernel holds `most` of them."""

    def make(part: Graph, _: Kernels):
        if sum(not is_free(node) for node in part.nodes) > most:
            raise PlanError("plan-ub", "too much for one kernel")
        return write_kernel(part, "op", CHIP)

    found = partition(graph, Kernels(make, CHIP))
    return [[node.op.split(".")[1] for node in part.graph.nodes] for part in found]


def test_a_graph_is_cut_where_little_passes_on():
    """A column of sums passes on, not the matrix that it is multiplied up to."""
    graph = capture(expanded, torch.ones(64, 256), torch.ones(64, 4096))
    assert _parts(graph, 3) == [["sum", "exp"], ["mul", "relu", "sum"]]


def test_a_wait_of_all_cores_is_worth_some_bytes():
    """Two kernels rather than three, where what passes on is small."""
    graph = capture(expanded, torch.ones(64, 256), torch.ones(64, 300))
    assert len(_parts(graph, 4)) == 2


def stacked_sums(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([(x * (i + 1)).sum(-1) for i in range(20)])


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("shape", [(4, 6), (4, 600)])
def test_more_tensors_are_joined_than_a_kernel_loads(dim: int, shape: tuple[int, ...]) -> None:
    """The chip has eight queues for what is loaded."""
    tensors = tuple(torch.randn(*shape) for _ in range(9))
    for fn in (
        lambda *given: torch.cat([item.relu() for item in given], dim),
        lambda *given: torch.stack(given, dim),
    ):
        agrees(plan(fn, *tensors), fn, *tensors)


def test_many_reductions_are_stacked() -> None:
    x = torch.rand(4, 60)  # of one sign: sums that cancel have no digits to compare
    agrees(plan(stacked_sums, x), stacked_sums, x)


def test_a_chain_that_is_too_long_for_one_kernel_is_cut() -> None:
    def chain(x: torch.Tensor) -> torch.Tensor:
        for i in range(DEEPEST):
            x = torch.sin(x) + 0.01 * i
        return x

    x = torch.randn(4, 6)
    made = plan(chain, x)
    assert len(made.program.kernels) == 3
    agrees(made, chain, x)


def test_a_program_of_many_kernels_is_short_enough() -> None:
    """A text of all versions of each would be longer than the language takes."""

    def chain(x: torch.Tensor) -> torch.Tensor:
        for _ in range(12):
            x = x / (x.abs().sum(-1, keepdim=True) + 1) + x.mean(0, keepdim=True)
        return x

    x = torch.randn(7, 60)
    made = plan(chain, x)
    assert len(made.program.host.launches) > 10
    agrees(made, chain, x)


APART = {
    "a mean of another tensor": lambda x, y: y > x.mean(),
    "its mean and spread": lambda x, y: y * x.mean() + x.std(),
    "two losses": lambda x, y: (y * y).mean() + 0.1 * x.abs().mean(),
    "the norm of both": lambda x, y: (x / ((x * x).sum() + (y * y).sum()).sqrt(), y * 2),
    "columns of another tensor": lambda x, y: y - x[:, : y.shape[1]].mean(0),
    "sums of rows along columns": lambda x, y: y * x[: y.shape[1]].sum(1),
}


@pytest.mark.parametrize("name", APART)
def test_what_one_kernel_would_repeat_or_read_one_by_one_is_another_kernel(name: str) -> None:
    """No vector runs along it in the kernel that makes the rows, or every row makes it again."""
    fn = APART[name]
    generator = torch.Generator().manual_seed(11)  # where no element is as large as the mean
    x, y = (torch.rand(shape, generator=generator) for shape in ((200, 160), (300, 150)))
    graph = capture(fn, x, y)
    made = plan(fn, x, y)
    assert len(made.parts) > 1
    alone = us(Part(graph, write_kernel(graph, "op_custom", CHIP)))
    assert sum(us(Part(*part)) for part in made.parts) < alone / 2
    agrees(made, fn, x, y)


def test_a_permutation_behind_a_product_is_a_kernel_of_its_own_where_that_is_quicker() -> None:
    """Taken in, it would have the product store two elements at a time."""

    def shuffled(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (w @ x).view(2, 64, -1).permute(1, 2, 0).contiguous()

    graph = capture(shuffled, torch.empty(128, 256), torch.empty(256, 8000))
    found = partition(graph, Kernels(lambda part, _: write_kernel(part, "op", CHIP), CHIP))
    assert [part.graph.nodes[-1].op.split(".")[1] for part in found] == ["mm", "clone"]


def test_normalised_by_turns_is_not_computed_anew_in_every_turn() -> None:
    """Each turn reads the turn before twice: three turns in one kernel are eight times the work."""

    def fn(x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = x / x.sum(-1, keepdim=True)
            x = x / x.sum(-2, keepdim=True)
        return x

    x = torch.rand(3, 50, 60) + 0.1
    made = plan(fn, x)
    assert len(made.parts) > 3
    agrees(made, fn, x)


def test_one_quick_kernel_stays_one() -> None:
    for fn in (
        lambda x: torch.softmax(x, -1),
        lambda x: (x - x.mean()) / x.std(),
        lambda x: x / x.norm(dim=0, keepdim=True),
    ):
        assert not plan(fn, torch.rand(200, 300)).parts


def test_equal_steps_of_an_unrolled_loop_are_written_once() -> None:
    """They differ in names alone: once to compare them, and those that are taken once more."""

    def steps(count: int) -> int:
        def fn(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            for _ in range(count):
                x = torch.tanh(x * w) / (x.abs().sum(-1, keepdim=True) + 1)
            return x

        asked: list[Graph] = []

        def make(part: Graph, _: Kernels):
            asked.append(part)
            if sum(not is_free(node) for node in part.nodes) > 4:
                raise PlanError("plan-ub", "too much for one kernel")
            return write_kernel(part, "op", CHIP)

        found = partition(capture(fn, torch.ones(4, 6), torch.ones(4, 6)), Kernels(make, CHIP))
        return len(asked) - len(found)

    assert steps(12) <= steps(6)


def test_a_structural_key_tells_numbers_types_and_operands_apart() -> None:
    def of(fn) -> str:
        return structural_key(capture(fn, torch.ones(4, 6), torch.ones(4, 6)))

    given = [
        lambda x, y: x + y * 2, lambda x, y: x + y * 2.0, lambda x, y: x + y * 3,
        lambda x, y: y + x * 2, lambda x, y: x + x * 2, lambda x, y: (x + y * 2, x),
    ]  # fmt: skip
    assert len({of(fn) for fn in given}) == len(given)


NORMS = {
    "stored": (lambda x: F.layer_norm(x, (128,)).permute(1, 2, 0), (64, 2, 128), (1024, 2, 128)),
    "read": (lambda x: F.layer_norm(x.permute(2, 0, 1), (128,)) * 2, (2, 128, 64), (2, 128, 1024)),
}


@pytest.mark.parametrize("name", NORMS)
def test_rows_of_a_norm_that_lie_as_columns_are_copied_in_a_kernel_of_their_own(name: str) -> None:
    """Stored or read so by the norm itself, every element would be worked out from its row."""
    model, few, many = NORMS[name]
    x = torch.randn(few)
    agrees(plan(model, x), model, x)
    graph, chip = capture(model, torch.empty(many)), find_chip("910B2")
    made = write(graph, "op", chip)
    assert time_of(made.program, made.spec, graph, chip) < 20


def test_an_operator_has_no_more_numbers_than_tiling_data_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fn(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ w).sum(1)

    args = torch.ones(40, 64), torch.ones(64, 48)
    assert len(plan(fn, *args).program.kernels) > 1
    monkeypatch.setattr(importlib.import_module(write_kernel.__module__), "_MOST_NUMBERS", 5)
    with pytest.raises(PlanError, match=r"tiling data of \d kernels has \d+ numbers") as caught:
        plan(fn, *args)
    assert caught.value.code == "plan-length"


@pytest.mark.parametrize(
    ("limit", "what"), [("MOST_OPERATIONS", "operations"), ("_MOST_PRODUCTS", "matrix")]
)
def test_a_loop_of_thousands_of_steps_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, limit: str, what: str
) -> None:
    def fn(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.relu(x[i : i + 1] @ w).sum(1) for i in range(x.shape[0])])

    module = importlib.import_module(write_kernel.__module__)
    monkeypatch.setattr(module, limit, 5)
    graph, chip = capture(fn, torch.ones(8, 64), torch.ones(64, 48)), find_chip("910B2")
    with pytest.raises(PlanError, match=rf"the graph has \d+ {what}") as caught:
        write(graph, "op", chip)
    assert caught.value.code == "plan-length"
    with pytest.raises(PlanError, match=r"the graph has \d+ "):  # several operators neither
        with_fallback(graph, "op", chip, caught.value)
