"""Matrix products on the cube cores, alone, between other kernels, and as convolutions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import CHIP, agrees, capture, capture_free, plan, plan_graph
from torch import Tensor, nn

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Mmad, TensorRole
from npusmith.ir.text import show_expr
from npusmith.ir.walk import statements
from npusmith.lower.served import restrictions, with_own_weights
from npusmith.plan import Plan, write
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.matrix_layout import find_contraction
from npusmith.plan.matrix_tiles import choose, cycles, sizes_of
from npusmith.plan.read import read
from npusmith.plan.schedule import Schedule, Structure
from npusmith.plan.shrink import Shrunk
from npusmith.target.chips import find_chip
from npusmith.task.convolutions import convolution

torch.manual_seed(5)
R = torch.randn
Case = tuple[Callable[..., Any], tuple[Tensor, ...], tuple[Tensor, ...]]


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v


def heads(x: Tensor) -> Tensor:
    batch, length, width = x.shape
    own = x.view(batch, length, 2, width // 2).transpose(1, 2)
    return (own @ own.mT).softmax(-1) @ own


def layers(x: Tensor, w: Tensor, b: Tensor, v: Tensor) -> Tensor:
    return F.linear(F.relu(F.linear(x, w, b)), v)


def scaled(c: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.addmm(c, a, b, beta=0.5, alpha=2.0)


def int8(*shape: int) -> Tensor:
    return torch.randint(-128, 128, shape, dtype=torch.int8)


def quantised(x: Tensor, weight: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    own = (x * 20).round().clamp(-128, 127).to(torch.int8)
    return torch._int_mm(own, weight.t()).float() * scale + bias


CASES: dict[str, Case] = {
    "product": (torch.mm, (R(70, 90), R(90, 50)), (R(19, 33), R(33, 161))),
    "of halves": (
        torch.mm, (R(70, 90).half(), R(90, 50).half()), (R(33, 7).half(), R(7, 40).half())),
    "of bfloat16, both transposed": (
        lambda a, b: a.t() @ b.t(), (R(90, 70).bfloat16(), R(50, 90).bfloat16()),
        (R(33, 40).bfloat16(), R(19, 33).bfloat16()),
    ),
    "of int8": (torch._int_mm, (int8(70, 90), int8(90, 50)), (int8(1, 5), int8(5, 1))),
    "of int8, both transposed": (
        lambda a, b: torch._int_mm(a.t(), b.t()), (int8(64, 32), int8(33, 64)),
        (int8(40, 20), int8(1, 40)),
    ),
    "quantised": (
        quantised, (R(33, 64), int8(48, 64), torch.rand(48), R(48)),
        (R(3, 65), int8(47, 65), torch.rand(47), R(47)),
    ),
    "result transposed": (
        lambda a, b: (a @ b).t(), (R(90, 70), R(70, 50)), (R(33, 40), R(40, 20))),
    "batches": (torch.bmm, (R(3, 30, 40), R(3, 40, 29)), (R(2, 19, 77), R(2, 77, 33))),
    "one matrix for all batches": (
        torch.matmul, (R(5, 30, 40), R(40, 33)), (R(2, 20, 50), R(50, 19))),
    "one for all on the left": (
        torch.matmul, (R(30, 40), R(5, 40, 33)), (R(20, 50), R(2, 50, 19))),
    "axes in another order": (
        lambda q, k: torch.einsum("bhid,bjhd->bhij", q, k),
        (R(2, 3, 20, 32), R(2, 21, 3, 32)), (R(1, 2, 33, 40), R(1, 19, 2, 40)),
    ),
    "depth of one": (torch.mm, (R(40, 1), R(1, 33)), (R(70, 1), R(1, 20))),
    "with itself": (lambda x: x @ x, (R(40, 40),), (R(23, 23),)),
    "with itself, transposed": (lambda x: x @ x.t(), (R(40, 90),), (R(23, 7),)),
    "beside an operand": (lambda x, w: x @ w + x, (R(40, 40), R(40, 40)), (R(23, 23), R(23, 23))),
    "of slices": (
        lambda x, w: x[:, 10:] @ w[:-3], (R(40, 60), R(53, 33)), (R(20, 60), R(53, 19))),
    "gelu of a linear layer": (
        lambda x, w, b: F.gelu(F.linear(x, w, b)), (R(3, 17, 40), R(33, 40), R(33)),
        (R(2, 5, 70), R(20, 70), R(20)),
    ),
    "two layers": (
        layers, (R(40, 30), R(64, 30), R(64), R(20, 64)), (R(19, 77), R(50, 77), R(50), R(33, 50))),
    "addmm": (scaled, (R(33), R(40, 50), R(50, 33)), (R(19), R(20, 70), R(70, 19))),
    "relu before, softmax behind": (
        lambda x, w: (x.relu() @ w).softmax(-1), (R(40, 80), R(80, 33)), (R(20, 30), R(30, 50))),
    "attention": (
        attention, (R(2, 3, 40, 32), R(2, 3, 50, 32), R(2, 3, 50, 32)),
        (R(1, 2, 19, 40), R(1, 2, 33, 40), R(1, 2, 33, 40)),
    ),
    "heads of one tensor": (heads, (R(2, 33, 48),), (R(1, 20, 80),) ),
    "pointwise convolution": (
        lambda x, w: F.conv2d(x, w).relu(), (R(2, 20, 6, 7), R(24, 20, 1, 1)),
        (R(3, 33, 5, 4), R(19, 33, 1, 1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_products_are_right_at_two_shapes(name: str) -> None:
    fn, *cases = CASES[name]
    made = plan_graph(capture_free(fn, *cases[0]))
    assert any(kernel.is_cube for kernel in made.program.kernels)
    for case in cases:
        agrees(made, fn, *case, loose=10)


class Convolved(nn.Module):
    """A convolution of any kind with a relu behind it."""

    def __init__(self, kind: type[nn.Module], *args: int, **options: object) -> None:
        super().__init__()
        self.layer = kind(*args, **options)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.layer(x))


CONVOLUTIONS: dict[str, tuple[nn.Module, Tensor, Tensor]] = {
    "padded": (Convolved(nn.Conv2d, 20, 24, 3, padding=1), R(2, 20, 9, 8), R(1, 20, 7, 19)),
    "padded, more channels than a line holds": (
        Convolved(nn.Conv2d, 36, 24, 3, padding=1), R(2, 36, 9, 8), R(1, 36, 7, 19)),
    "stride, more channels than a line holds": (
        Convolved(nn.Conv2d, 33, 18, (3, 5), stride=2), R(1, 33, 10, 9), R(2, 33, 7, 12)),
    "many places of few channels": (
        Convolved(nn.Conv2d, 2, 18, 11, padding=5), R(1, 2, 12, 9), R(2, 2, 7, 12)),
    "stride": (
        Convolved(nn.Conv2d, 3, 18, 7, stride=2, padding=3), R(1, 3, 30, 29), R(3, 3, 27, 40)),
    "stride of 4, without padding": (
        Convolved(nn.Conv2d, 3, 18, 6, stride=4), R(1, 3, 30, 29), R(2, 3, 25, 43)),
    "dilation": (Convolved(nn.Conv2d, 17, 24, 3, dilation=2), R(2, 17, 9, 9), R(1, 17, 8, 11)),
    "groups": (
        Convolved(nn.Conv2d, 40, 36, 3, padding=1, groups=2), R(2, 40, 6, 7), R(1, 40, 5, 9)),
    "depthwise": (Convolved(nn.Conv2d, 12, 24, 3, groups=12), R(2, 12, 6, 7), R(1, 12, 9, 5)),
    "of sequences": (Convolved(nn.Conv1d, 20, 24, 5, padding=2), R(2, 20, 33), R(1, 20, 50)),
    "of sequences of more channels": (
        Convolved(nn.Conv1d, 34, 24, 5, padding=2), R(2, 34, 33), R(1, 34, 50)),
    "of volumes of more channels": (
        Convolved(nn.Conv3d, 33, 20, 3), R(1, 33, 5, 4, 5), R(2, 33, 4, 5, 3)),
    "of volumes": (Convolved(nn.Conv3d, 17, 20, 3), R(1, 17, 5, 6, 7), R(2, 17, 4, 5, 6)),
    "transposed": (
        Convolved(nn.ConvTranspose2d, 20, 18, 3, stride=2, padding=1, output_padding=1),
        R(2, 20, 5, 6), R(1, 20, 4, 7),
    ),
    "transposed, more channels": (
        Convolved(nn.ConvTranspose2d, 35, 18, 3, stride=2, padding=1, output_padding=1),
        R(2, 35, 5, 6), R(1, 35, 4, 7),
    ),
    "transposed in groups": (
        Convolved(nn.ConvTranspose2d, 20, 40, (3, 5), stride=(2, 3), padding=1, groups=2),
        R(2, 20, 5, 6), R(1, 20, 4, 7),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_are_right_at_two_shapes(name: str) -> None:
    model, captured, other = CONVOLUTIONS[name]
    made = plan_graph(capture_free(model, captured))
    agrees(made, model, captured, loose=10)
    agrees(made, model, other, loose=10)


def test_convolutions_are_taken_apart_as_torch_computes_them() -> None:
    """Every combination of options, in PyTorch itself."""
    options = [
        (stride, padding, dilation, groups, transposed)
        for stride in (1, 2, 3, 4) for padding in (0, 1) for dilation in (1, 2, 3)
        for groups in (1, 2, 4) for transposed in (False, True)
    ]  # fmt: skip
    for stride, padding, dilation, groups, transposed in options:
        for spatial, channels in ((1, 4), (1, 64), (2, 4), (2, 64)):  # few, and a line of 128 B
            ends = [stride - 1] if transposed else [0]
            shape = (channels, 8 // groups) if transposed else (8, channels // groups)
            x, w = R(2, channels, *(9,) * spatial).double(), R(*shape, *(3, 2)[:spatial]).double()
            args = ([stride], [padding], [dilation], transposed, ends, groups)
            bias = R(8).double()
            wanted = torch.ops.aten.convolution(x, w, bias, *args)
            torch.testing.assert_close(convolution(x, w, bias, *args), wanted)


@pytest.mark.parametrize("stride", [1, 2])
def test_a_row_of_a_window_is_one_panel_though_windows_overlap(stride: int) -> None:
    def windows(x: Tensor, w: Tensor) -> Tensor:
        return x.unfold(0, 5, stride).transpose(1, 2).flatten(1) @ w

    x, w = R(40, 16), R(80, 24)
    found = find_contraction(read(capture(windows, x, w)))
    assert found.depth.captured == 80 and not found.around
    agrees(plan(windows, x, w), windows, x, w, loose=10)


def test_what_stands_behind_a_product_of_halves_is_rounded_once() -> None:
    """The product passes on in float32, as the cube unit adds it up."""
    made = plan(lambda x, w, b: F.linear(x, w, b), R(70, 90).half(), R(50, 90).half(), R(50).half())
    scratch = [t for t in made.program.tensors if t.role is TensorRole.SCRATCH]
    assert [t.dtype for t in scratch] == [DType.FLOAT32]


def test_a_product_of_a_product_stays_in_its_type() -> None:
    x, w, v = R(40, 50).half(), R(50, 33).half(), R(33, 20).half()
    made = plan(lambda x, w, v: x @ w @ v, x, w, v)
    scratch = [t for t in made.program.tensors if t.role is TensorRole.SCRATCH]
    assert [t.dtype for t in scratch] == [DType.FLOAT16]
    agrees(made, lambda x, w, v: x @ w @ v, x, w, v, loose=10)


def test_a_product_is_a_structure_of_its_own() -> None:
    made = plan(torch.mm, R(70, 90), R(90, 50))
    assert made.schedule.structure is Structure.MATRIX_PRODUCT


def _copies(made: Plan) -> int:
    return sum(isinstance(stmt, Mmad) for kernel in made.program.kernels
               for stmt in statements(kernel.body))  # fmt: skip


def test_kernels_of_equal_products_have_one_multiplication_each() -> None:
    made = plan(layers, R(40, 30), R(64, 30), R(64), R(20, 64))
    assert _copies(made) == 2


def test_blocks_fit_the_memories_and_are_no_larger_than_the_matrix() -> None:
    for sides in ((17, 17, 17), (500, 700, 900), (4000, 20, 3000), (20, 4000, 30)):
        rows, depth, cols = sides[0], sides[2], sides[1]
        for dtype in (torch.float16, torch.float32):
            graph = capture(torch.mm, R(rows, depth).to(dtype), R(depth, cols).to(dtype))
            found = find_contraction(read(graph))
            sizes = sizes_of(found)
            tiles = choose(sizes, CHIP)
            size = found.left.dtype.bytes
            assert tiles.rows * tiles.cols * 4 <= CHIP.l0c_bytes
            assert 2 * tiles.rows * tiles.part * size <= CHIP.l0a_bytes
            assert 2 * tiles.cols * tiles.part * size <= CHIP.l0b_bytes
            assert 2 * (tiles.rows + tiles.cols) * tiles.panel * size <= CHIP.l1_bytes
            assert tiles.rows < rows + 16 and tiles.cols < cols + 16
            assert tiles.panel % tiles.part == 0 and cycles(sizes, tiles, CHIP) > 0


def test_transposed_convolutions_multiply_no_zeros_with_infinities() -> None:
    """Kernels, strides, dilations and paddings of all kinds: PyTorch's values, also beside inf."""
    draw = random.Random(3)
    tried = 0
    while tried < 80:
        dims, groups = draw.choice((1, 2, 2, 3)), draw.choice((1, 2, 3))
        kernel, stride, padding, dilation = (
            [draw.randint(low, high) for _ in range(dims)]
            for low, high in ((1, 5), (1, 4), (0, 2), (1, 4))
        )
        ends = [draw.randint(0, max(pair) - 1) for pair in zip(stride, dilation, strict=True)]
        channels = groups * draw.choice((1, 2))
        sizes = [draw.randint(1, 6) for _ in range(dims)]
        x = R(2, channels, *sizes, dtype=torch.float64)
        w = R(channels, draw.choice((1, 2, 3)), *kernel, dtype=torch.float64)
        given = (stride, padding, ends, groups, dilation)
        try:
            wanted = getattr(F, f"conv_transpose{dims}d")(x, w, None, *given)
        except RuntimeError:  # PyTorch refuses the sizes
            continue
        tried += 1
        rest = (stride, padding, dilation, True, ends, groups)
        torch.testing.assert_close(convolution(x, w, None, *rest), wanted)
        x.view(-1)[draw.randrange(x.numel())] = torch.inf
        wanted = getattr(F, f"conv_transpose{dims}d")(x, w, None, *given)
        torch.testing.assert_close(convolution(x, w, None, *rest), wanted)


def test_a_product_whose_elements_move_keeps_its_type() -> None:
    """It is passed on in float32, and rounds to the model's type where it is stored."""

    def fn(a: torch.Tensor, w: torch.Tensor, b: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return F.linear(a, w).scatter_add(1, i, b)

    torch.manual_seed(1)  # of sums that nearly vanish PyTorch itself keeps few digits
    args = (torch.randn(3, 4, 7), torch.randn(5, 7), torch.randn(3, 3, 5))
    given = (*(item.bfloat16() for item in args), torch.randint(0, 4, (3, 3, 5)))
    made = plan(fn, *given)
    assert [port.dtype for port in made.spec.outputs] == [DType.BFLOAT16]
    agrees(made, fn, *given)


def test_other_blocks_are_tried_and_replayed() -> None:
    """The estimate ranks blocks; a search times the likeliest, and a schedule names one."""
    graph = capture(torch.mm, R(70, 90), R(90, 50))
    made = write(graph, "op_custom", CHIP)
    (block,) = (item for item in made.decisions if item.name == "block")
    assert block.others and block.value == block.own
    rows, cols = block.others[0]  # type: ignore[misc]
    other = write(graph, "op_custom", CHIP, Schedule(block=(rows, cols)))
    assert dict(other.program.consts)["BLOCK_ROWS"] == rows
    agrees(other, torch.mm, R(70, 90), R(90, 50), loose=10)
    with pytest.raises(PlanError, match="cannot be 17 x 3"):
        write(graph, "op_custom", CHIP, Schedule(block=(17, 3)))


def test_places_of_a_window_are_one_depth_or_loops_by_their_cost() -> None:
    """Merged, 9 places of 32 channels are rows that overlap; apart, each is one stretch."""

    def windows(x: Tensor, w: Tensor) -> Tensor:
        return x.unfold(0, 9, 1).transpose(1, 2).flatten(1) @ w

    graph = capture(windows, R(520, 32), R(288, 64))
    one, many = (find_contraction(read(graph), merged) for merged in (True, False))
    assert (one.depth.captured, len(one.around)) == (288, 0)
    assert (many.depth.captured, [run.captured for run in many.around]) == (32, [9])
    made = plan_graph(graph)
    agrees(made, windows, R(520, 32), R(288, 64), loose=10)
    agrees(made, windows, R(47, 32), R(288, 33), loose=10)


def test_what_a_convolution_serves_is_said_of_the_input_alone() -> None:
    """The sizes of weights are the model's own, and a border adds nothing to what is served."""
    graph = capture_free(nn.Conv2d(5, 24, (3, 1), padding=(1, 0)), R(2, 5, 9, 11))
    shapes = {item.target: item.shape for item in graph.inputs}
    served = restrictions(with_own_weights(plan_graph(graph).spec, shapes))
    assert [show_expr(expr) for expr in served] == ["input.shape[1] == 5"]


def test_a_convolution_without_groups_has_no_axis_for_them() -> None:
    """An axis of 1 between a kernel's row and the channels kept these apart."""
    graph = capture(nn.Conv2d(32, 40, 3, padding=1, bias=False), R(1, 32, 5, 5))
    stored = [node.shape for node in graph.nodes if "pad" in node.op]
    assert stored == [(1, 7, 7, 32)]


def test_a_product_over_no_elements_is_zero_and_serves_others() -> None:
    w = R(33, 0)
    made = plan(lambda x, w: F.linear(x, w) + 1, R(20, 0), w)
    agrees(made, lambda x, w: F.linear(x, w) + 1, R(20, 0), w)
    agrees(made, lambda x, w: F.linear(x, w) + 1, R(7, 5), R(18, 5))


@pytest.mark.parametrize(("captured", "to"), [((2048, 2048), (304, 304)), ((64, 512), (2048, 512))])
def test_blocks_follow_the_sizes_that_are_run(
    captured: tuple[int, int], to: tuple[int, int]
) -> None:
    """Smaller matrices are cut into parts of blocks, so that all cores have one."""

    chip = find_chip("910B2")

    def made(shape: tuple[int, int]) -> Plan:
        rows, side = shape
        left, right = torch.empty(rows, side, device="meta"), torch.empty(side, side, device="meta")
        return write(capture(torch.matmul, left, right), "op_custom", chip)

    def us(made: Plan, at: Plan) -> float:
        ports = at.spec.inputs, at.spec.outputs
        inputs, outputs = (tuple(port.shape for port in row) for row in ports)
        return Evaluator(made.spec, chip, Shrunk(inputs, outputs)).time(made.program).kernel_us

    there = made(to)
    assert us(made(captured), there) <= 1.1 * us(there, there)
