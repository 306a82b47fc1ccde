"""How programs look: what is fused, what stays on chip, how work is dealt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from modules import CHIP, agrees, capture, plan
from torch import nn

from npusmith.ir.nodes import Combine, For, If, Load, Op, Program, Stmt, Store, SyncCores
from npusmith.ir.walk import statements
from npusmith.lang.words import why_reserved
from npusmith.plan import write
from npusmith.plan.schedule import Lines, Schedule
from npusmith.target.intrinsics import INTRINSICS

torch.manual_seed(1)
R = torch.randn


def body(program: Program) -> Iterator[Stmt]:
    return statements(program.kernel.body)


def of_whole_lines(model: Any, x: torch.Tensor) -> Program:
    """The version of a kernel that cuts no lines into chunks."""
    whole = Schedule(lines=(Lines.DEALT,))
    return write(capture(model, x), "op_custom", CHIP, whole, everywhere=True).program


def test_a_chain_of_maps_is_one_pass_with_one_load_and_one_store() -> None:
    program = plan(lambda x: torch.exp(x * 2 + 1).sqrt() - 3, R(5, 7)).program
    assert sum(isinstance(stmt, Load) for stmt in body(program)) == 1
    assert sum(isinstance(stmt, Store) for stmt in body(program)) == 1
    assert sum(isinstance(stmt, For) for stmt in body(program)) == 1


def test_what_is_taken_from_a_number_in_a_buffer_is_one_difference() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = 1 / (x + 1)
        return x * (1 - y)

    made = plan(fn, R(5, 7).exp())
    assert [stmt.name for stmt in body(made.program) if isinstance(stmt, Op)] == [
        "duplicate", "adds", "div", "sub", "mul",
    ]  # fmt: skip
    agrees(made, fn, R(5, 7).exp())


def test_a_row_that_fits_in_a_tile_is_loaded_once() -> None:
    program = of_whole_lines(lambda x: x.softmax(-1), R(5, 7))
    forms = [stmt for stmt in program.kernel.body if isinstance(stmt, If)]
    assert len(forms) == 1
    short = [stmt for stmt in statements(forms[0].then) if isinstance(stmt, Load)]
    assert len(short) == 1


def test_weights_of_short_rows_are_loaded_before_the_rows() -> None:
    program = of_whole_lines(nn.LayerNorm(7), R(5, 7))
    form = next(stmt for stmt in program.kernel.body if isinstance(stmt, If))
    rows = next(stmt for stmt in form.then if isinstance(stmt, For))
    inside = [stmt for stmt in statements(rows.body) if isinstance(stmt, Load)]
    assert len(inside) == 1


def test_a_reduction_of_everything_is_combined_across_cores() -> None:
    program = plan(lambda x: (x - 1).square().mean(), R(5, 7)).program
    assert [stmt.op for stmt in body(program) if isinstance(stmt, Combine)] == ["sum"]


def test_numbers_of_one_pass_are_exchanged_between_cores_with_one_wait() -> None:
    for fn in (
        lambda x: (x.sum(), x.amax()),
        lambda x: (x - x.mean()).square().mean(),
        lambda x: x.flatten().softmax(0),
    ):
        stmts = list(body(plan(fn, R(5, 7)).program))
        assert sum(isinstance(stmt, Combine | SyncCores) for stmt in stmts) == 1


def test_a_middle_axis_is_reduced_by_accumulating_rows() -> None:
    program = plan(lambda x: x.amax(1), R(4, 5, 6)).program
    names = {stmt.name for stmt in body(program) if isinstance(stmt, Op)}
    assert "accumulate_max" in names and "reduce_max" not in names


def test_names_of_buffers_are_no_words_of_the_language() -> None:
    """The copy of a scan's result that is padded in a kernel of its own is called copy."""

    def fn(x: torch.Tensor) -> torch.Tensor:
        return F.pad(x.flip(1).cumsum(1).flip(1).cumsum(-1), (2, 2), mode="circular")

    names = {item.name for kernel in plan(fn, R(4, 32)).program.kernels for item in kernel.buffers}
    assert not {name for name in names if why_reserved(name)}


def test_unused_inputs_are_no_inputs_of_the_operator() -> None:
    made = plan(lambda a, b, c: a * c, R(5), R(3), R(5))
    assert [port.position for port in made.spec.inputs] == [0, 2]


def test_library_functions_leave_ub_for_their_scratch() -> None:
    made = plan(lambda x: torch.tanh(x) * torch.erf(x) + torch.sin(x), R(5))
    assert any(INTRINSICS[stmt.name].library for stmt in body(made.program) if isinstance(stmt, Op))
    tile = dict(made.program.consts)["TILE"]
    wide = [item for item in made.program.kernel.buffers if "TILE" in repr(item.length)]
    names = {stmt.dst.buffer for stmt in body(made.program) if isinstance(stmt, Load)}
    names |= {stmt.src.buffer for stmt in body(made.program) if isinstance(stmt, Store)}
    used = sum(int(tile) * item.dtype.bytes * (2 if item.name in names else 1) for item in wide)
    assert used + 16 * 1024 <= CHIP.ub_bytes


def test_a_tile_goes_where_its_first_source_was() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        root = x.sqrt()
        return (root.exp() * root).log().exp()

    ops = [stmt for stmt in body(plan(fn, R(5)).program) if isinstance(stmt, Op)]
    (product,) = (stmt for stmt in ops if stmt.name == "mul")
    assert product.views[0] == product.views[1]


def test_notes_say_what_a_dimension_was_split_by() -> None:
    made = plan(nn.GroupNorm(3, 6), R(2, 6, 5))
    assert any(
        "x.shape[1] is split by 3" in note or "input.shape[1]" in note for note in made.notes
    )
