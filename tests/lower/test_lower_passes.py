"""Each pass: what it changes, and that the interpreter's answer stays what it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from npusmith.errors import LangError, LowerError
from npusmith.ir.branches import branches
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Alloc,
    Barrier,
    Combine,
    Const,
    Deque,
    Enque,
    Event,
    For,
    Free,
    Load,
    Op,
    Program,
    Role,
    Stage,
    Stmt,
    Store,
    SyncCores,
)
from npusmith.ir.text import show
from npusmith.ir.walk import bodies, statements
from npusmith.lang import check, interpret, parse
from npusmith.lower import PIPELINE, lower
from npusmith.target.chips import Chip

Text = Callable[..., str]


def after(text: str, chip: Chip, last: str) -> Program:
    """The program as the pass of that name leaves it."""
    program = parse(text)
    for step in PIPELINE:
        program = step(program, chip)
        if step.__name__ == last:
            return program
    raise AssertionError(last)


def flat(program: Program, *kinds: type[Stmt]) -> list[Stmt]:
    everything = (stmt for kernel in program.kernels for stmt in statements(kernel.body))
    return [stmt for stmt in everything if isinstance(stmt, kinds)]


# ------------------------------------------------------------------------- the whole pipeline


def test_watch_sees_every_pass_in_order(samples: Any, chip: Chip) -> None:
    seen: list[str] = []
    lower(samples.program("add"), chip, lambda name, program: seen.append(name))
    assert seen == [
        "normalize",
        "split_combine",
        "place_buffers",
        "share_queues",
        "insert_queues",
        "pad_copies",
        "double_buffer",
        "spread_banks",
        "insert_sync",
    ]


def test_every_pass_keeps_the_interpreters_answer(
    kernel_name: str, samples: Any, chip: Chip
) -> None:
    program = samples.program(kernel_name)
    for shapes, out_shapes in samples.shapes(kernel_name):
        inputs = samples.inputs(program, shapes)
        outputs = [
            (shape, tensor.dtype) for shape, tensor in zip(out_shapes, program.outputs, strict=True)
        ]
        expected = [item.tobytes() for item in interpret(program, chip, inputs, outputs)]
        changed: list[str] = []

        def compare(
            name: str, lowered: Program, inputs: Any = inputs, outputs: Any = outputs,
            expected: Any = expected, changed: list[str] = changed,
        ) -> None:  # fmt: skip
            got = [item.tobytes() for item in interpret(lowered, chip, inputs, outputs)]
            if got != expected:
                changed.append(name)

        lower(program, chip, compare)
        assert changed == []


def test_lowering_is_deterministic(kernel_name: str, samples: Any, chip: Chip) -> None:
    first = show(lower(samples.program(kernel_name), chip))
    assert first == show(lower(samples.program(kernel_name), chip))


def test_lowered_programs_hold_no_combine(kernel_name: str, samples: Any, chip: Chip) -> None:
    assert flat(lower(samples.program(kernel_name), chip), Combine) == []


# ------------------------------------------------------------------------------------- passes


def test_normalize_makes_lengths_literal_and_folds_ints(kernel_text: Text, chip: Chip) -> None:
    body = """
with copy_in:
    load(xt, x[n * 1 + 0], 4 * 8)
with compute:
    exp(yt, xt, min(32, 64))
with copy_out:
    store(y, yt, 32)
"""
    text = kernel_text(body).replace("xt = ub(64,", "xt = ub(TILE * 2,")
    program = after(text, chip, "normalize")
    load = flat(program, Load)[0]
    assert isinstance(load, Load) and load.count == Const(32)
    assert str(load.src.offset) == "Name(id='n')"
    assert program.kernel.buffer("xt").length == Const(128)


def test_buffers_get_their_role_from_their_use(kernel_text: Text, chip: Chip) -> None:
    body = """
with copy_in:
    load(xt, x, 8)
    load(tt, x, 8)
with compute:
    exp(et, xt, 8)
    exp(yt, et, 8)
with copy_out:
    store(y, yt, 8)
    store(y[8], tt, 8)
"""
    program = after(kernel_text(body, buffers="xt yt et tt"), chip, "place_buffers")
    roles = {item.name: item.role for item in program.kernel.buffers}
    assert roles == {
        "xt": Role.VECIN,
        "yt": Role.VECOUT,
        "et": Role.VECCALC,
        "tt": Role.THROUGH,
    }


def test_queue_calls_stand_inside_the_stages_that_use_a_buffer(
    kernel_text: Text, chip: Chip
) -> None:
    body = """
with copy_in:
    load(xt, x, 8)
with compute:
    exp(yt, xt, 8)
with copy_out:
    store(y, yt, 8)
"""
    program = after(kernel_text(body, buffers="xt yt"), chip, "insert_queues")
    stages = [list(stmt.body) for stmt in program.kernel.body if isinstance(stmt, Stage)]
    assert [type(item) for item in stages[0]] == [Alloc, Load, Enque]
    assert [type(item) for item in stages[1]] == [Deque, Alloc, Op, Enque, Free]
    assert [type(item) for item in stages[2]] == [Deque, Store, Free]


def test_a_buffer_loaded_before_a_loop_stays_dequeued_until_after_it(
    kernel_text: Text, chip: Chip
) -> None:
    body = """
with copy_in:
    load(wt, x, 8)
for i in range(n):
    with copy_in:
        load(xt, x[i * 8], 8)
    with compute:
        mul(yt, xt, wt, 8)
    with copy_out:
        store(y[i * 8], yt, 8)
"""
    program = after(kernel_text(body, buffers="wt xt yt"), chip, "insert_queues")
    outer = [stmt for stmt in program.kernel.body if not isinstance(stmt, Stage)]
    assert [type(item) for item in outer] == [Deque, For, Free]
    assert outer[0] == Deque("wt") and outer[2] == Free("wt")


def test_an_accumulator_is_allocated_before_its_first_write(kernel_text: Text, chip: Chip) -> None:
    body = """
with compute:
    duplicate(yt, 0.0, 8)
for i in range(n):
    with copy_in:
        load(xt, x[i * 8], 8)
    with compute:
        accumulate_sum(yt, xt, 8)
with copy_out:
    store(y, yt, 8)
"""
    program = after(kernel_text(body, buffers="xt yt"), chip, "insert_queues")
    kinds = [type(item) for item in program.kernel.body]
    assert kinds == [Alloc, Stage, For, Enque, Stage]


def test_plain_copies_only_where_whole_blocks_are_proved(kernel_text: Text, chip: Chip) -> None:
    body = """
m = align_up(n, 8)
with copy_in:
    load(xt, x, 64)
    load(wt, x, m)
    load(vt, x, n)
    load(rt, x, 8, rows=2, pitch=8)
with compute:
    add(yt, xt, wt, 8)
    add(et, vt, rt, 8)
    add(yt, yt, et, 8)
with copy_out:
    store(y, yt, 8)
"""
    program = after(kernel_text(body, buffers="xt wt vt rt yt et"), chip, "pad_copies")
    padded = [stmt.padded for stmt in flat(program, Load, Store)]  # type: ignore[union-attr]
    assert padded == [False, False, True, True, False]


def test_more_than_4095_rows_are_copied_in_turns(chip: Chip) -> None:
    text = """
@host
def host(x, y):
    launch(k, 1, n=x.shape[0])
@kernel
def k(x: input(uint8), y: output(uint8), n: int):
    xt = ub(163840, uint8)
    with copy_in:
        load(xt, x, 1, rows=n, pitch=1)
    with copy_out:
        store(y, xt, 1, rows=n, pitch=1)
"""
    program = after(text, chip, "pad_copies")
    loops = flat(program, For)
    assert [loop.step for loop in loops] == [Const(4095)] * 2  # type: ignore[union-attr]
    x = np.arange(5000, dtype=np.uint8).reshape(5000, 1)
    lowered = lower(parse(text), chip)
    (y,) = interpret(lowered, chip, [x], [((5000, 1), program.outputs[0].dtype)])
    assert np.array_equal(x, y)


def test_queues_in_loops_are_doubled_while_ub_has_room(samples: Any, chip: Chip) -> None:
    program = lower(samples.program("layer_norm"), chip)
    assert {item.name: item.depth for item in program.kernel.buffers} == {
        "wt": 1,  # loaded once: nothing to overlap
        "bt": 1,
        "xt": 2,
        "yt": 2,
        "square": 1,
        "tmp": 1,
        "part": 1,
    }


def test_too_many_inputs_of_a_loop_share_queues_by_who_reads_them(
    kernel_text: Text, chip: Chip
) -> None:
    names = ["at", "bt", "ct", "dt", "et"]
    loads = "\n".join(f"        load({name}, x[i * 8], 8)" for name in names)
    body = f"""
for i in range(n):
    with copy_in:
{loads}
    with compute:
        add(yt, at, bt, 8)
        add(yt, yt, ct, 8)
        mul(zt, dt, et, 8)
        adds(zt, zt, value(ct[3]), 8)
        add(yt, yt, zt, 8)
    with copy_out:
        store(y[i * 8], yt, 8)
"""
    program = lower(parse(kernel_text(body, buffers="yt zt " + " ".join(names))), chip)
    loaded = [item for item in program.kernel.buffers if item.role is Role.VECIN]
    assert [item.depth for item in loaded] == [2, 2, 2, 2]
    assert sorted(item.length.value for item in loaded if isinstance(item.length, Const)) == [
        64, 64, 64, 128,
    ]  # fmt: skip
    (shared,) = (item.name for item in loaded if item.length == Const(128))
    for op in flat(program, Op):
        assert isinstance(op, Op) and [view.buffer for view in op.views].count(shared) < 2


def test_doubling_stops_where_ub_ends(kernel_text: Text, chip: Chip) -> None:
    body = """
for i in range(n):
    with copy_in:
        load(xt, x, 8)
    with compute:
        exp(yt, xt, 8)
    with copy_out:
        store(y, yt, 8)
"""
    text = kernel_text(body, buffers="xt yt")
    text = text.replace("xt = ub(64,", "xt = ub(13000,").replace("yt = ub(64,", "yt = ub(14000,")
    buffers = lower(parse(text), chip).kernel.buffers
    assert [item.depth for item in buffers] == [1, 2]  # the larger one first, and only that


def test_a_library_function_keeps_16_kb_free(kernel_text: Text, chip: Chip) -> None:
    body = """
for i in range(n):
    with copy_in:
        load(xt, x, 8)
    with compute:
        OP(yt, xt, 8)
    with copy_out:
        store(y, yt, 8)
"""
    text = kernel_text(body, buffers="xt yt")
    text = text.replace("ub(64,", "ub(11264,")  # 4 x 45056 B = 176 KB, of 183.75 KB
    plain = lower(parse(text.replace("OP", "exp")), chip)
    library = lower(parse(text.replace("OP", "tanh")), chip)
    assert [item.depth for item in plain.kernel.buffers] == [2, 2]
    assert [item.depth for item in library.kernel.buffers] == [2, 1]


def test_a_program_may_say_how_many_copies_of_a_buffer_there_are(
    kernel_text: Text, chip: Chip
) -> None:
    body = """
for i in range(n):
    with copy_in:
        load(xt, x, 8)
    with compute:
        exp(et, xt, 8)
        exp(yt, et, 8)
    with copy_out:
        store(y, yt, 8)
"""
    text = kernel_text(body, buffers="xt yt et")

    def depths(x: str, e: str = "") -> list[int]:
        said = text.replace("xt = ub(64, float32", f"xt = ub(64, float32{x}")
        said = said.replace("et = ub(64, float32", f"et = ub(64, float32{e}")
        found = lower(parse(said), chip).kernel
        return [found.buffer(name).depth for name in ("xt", "yt", "et")]

    assert depths("") == [2, 2, 1]
    assert depths(", copies=1") == [1, 2, 1]
    assert depths(", copies=3") == [3, 2, 1]
    with pytest.raises(LowerError, match="2 copies of 'et', which is scratch"):
        depths("", ", copies=2")
    with pytest.raises(LangError, match="copies"):
        depths(", copies=4")


BINARY = """
for i in range(n):
    with copy_in:
        load(xt, x, 64)
        load(wt, x, 64)
    with compute:
        add(et, xt, wt, 64)
        mul(yt, et, xt, 64)
    with copy_out:
        store(y, yt, 64)
"""


def starts(program: Program) -> dict[str, int]:
    """Where the first copy of each buffer begins in UB."""
    found, at = {}, 0
    for item in program.kernel.buffers:
        assert isinstance(item.length, Const)
        at += item.gap
        found[item.name] = at
        at += int(item.length.value) * item.dtype.bytes * item.depth
    return found


def test_sources_of_one_instruction_start_in_different_bank_groups(
    kernel_text: Text, chip: Chip
) -> None:
    text = kernel_text(BINARY, buffers="xt wt yt et").replace("ub(64,", "ub(2048,")
    at = starts(after(text, chip, "spread_banks"))
    assert (at["xt"] - at["wt"]) % 512 == 256
    assert (at["et"] - at["xt"]) % 512 == 256
    plain = starts(after(text, chip, "double_buffer"))
    assert all(start % 512 == 0 for start in plain.values())


def test_rows_of_one_length_start_in_different_bank_groups_too(
    kernel_text: Text, chip: Chip
) -> None:
    body = BINARY.replace("add(et, xt, wt, 64)", "add(et, xt[2 * n], wt[n], n)")
    body = body.replace("mul(yt, et, xt, 64)", "abs(yt, et, 64)")
    text = kernel_text(body, buffers="xt wt yt et").replace("ub(64,", "ub(2048,")
    at = starts(after(text, chip, "spread_banks"))
    assert (at["xt"] - at["wt"]) % 512 == 256


def test_buffers_stay_where_ub_has_no_room_for_a_gap(kernel_text: Text, chip: Chip) -> None:
    text = kernel_text(BINARY, buffers="xt wt yt et").replace("ub(64,", "ub(11760,")
    program = after(text, chip, "spread_banks")
    assert [item.name for item in program.kernel.buffers] == ["xt", "wt", "yt", "et"]


def test_buffers_stay_where_no_instruction_reads_two(kernel_text: Text, chip: Chip) -> None:
    body = BINARY.replace("add(et, xt, wt, 64)", "exp(et, xt, 64)")
    body = body.replace("mul(yt, et, xt, 64)", "abs(yt, et, 64)")
    text = kernel_text(body, buffers="xt wt yt et").replace("ub(64,", "ub(2048,")
    placed = after(text, chip, "spread_banks").kernel.buffers
    assert placed == after(text, chip, "double_buffer").kernel.buffers


# --------------------------------------------------------------------------------------- sync


def test_a_scalar_read_waits_for_the_vector_unit_and_a_write_for_the_scalar_read(
    kernel_text: Text, chip: Chip
) -> None:
    body = """
with copy_in:
    load(xt, x, 8)
with compute:
    reduce_max(et, xt, tmp, 8)
    top = value(et)
    duplicate(et, top, 8)
    muls(yt, et, 1.0, 8)
with copy_out:
    store(y, yt, 8)
"""
    program = lower(parse(kernel_text(body, buffers="xt yt et tmp")), chip)
    stage = program.kernel.body[1]
    kinds = [item for item in bodies(stage)[0] if isinstance(item, Event | Barrier | Op)]
    names = [item.name if isinstance(item, Op) else item for item in kinds]
    assert names == [
        "reduce_max",
        Event("V", "S"),
        Event("S", "V"),
        "duplicate",
        Barrier("V"),
        "muls",
    ]


def test_an_element_written_by_the_scalar_unit_waits_for_the_vector_unit_and_it_for_the_element(
    kernel_text: Text, chip: Chip
) -> None:
    body = """
with copy_in:
    load(xt, x, 8)
with compute:
    muls(et, xt, 2.0, 8)
    muls(yt, et, 3.0, 8)
    set(et[3], 1.0)
    set(et[4], 2.0)
    adds(tmp, et, 1.0, 8)
    muls(yt, tmp, 1.0, 8)
    set(yt[0], 7.0)
with copy_out:
    store(y, yt, 8)
"""
    program = lower(parse(kernel_text(body, buffers="xt yt et tmp")), chip)
    stage = program.kernel.body[1]
    kinds = [item for item in bodies(stage)[0] if isinstance(item, Event | Barrier | Op | Enque)]
    names = [item.name if isinstance(item, Op) else item for item in kinds]
    assert names == [
        "muls", Barrier("V"), "muls",
        Event("V", "S"), "set", "set", Event("S", "V"),
        "adds", Barrier("V"), "muls",
        Event("V", "S"), "set", Event("S", "V"), Enque("yt"),
    ]  # fmt: skip


def test_independent_vector_instructions_have_no_barrier_between_them(
    kernel_text: Text, chip: Chip
) -> None:
    body = """
with copy_in:
    load(xt, x, 8)
with compute:
    exp(et, xt, 8)
    abs(yt, xt, 8)
with copy_out:
    store(y, yt, 8)
"""
    program = lower(parse(kernel_text(body)), chip)
    assert flat(program, Barrier) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("tanh(et, xt, 8)", "erf(yt, xt, 8)"),  # both take what is left of UB
        ("sign(et, xt, 8)", "selects(yt, mt, xt, 0.0, 8)"),  # both use the reserved 8 KB
    ],
)
def test_scratch_that_no_operand_names_is_shared_in_turns(
    first: str, second: str, kernel_text: Text, chip: Chip
) -> None:
    body = f"""
with copy_in:
    load(xt, x, 8)
with compute:
    compares(mt, xt, 0.0, "gt", 8)
    exp(et, xt, 8)
    abs(et, et, 8)
    {first}
    {second}
with copy_out:
    store(y, yt, 8)
"""
    text = kernel_text(body).replace("    xt = ub", "    mt = ub(32, uint8)\n    xt = ub")
    steps = flat(lower(parse(text), chip), Op, Barrier)
    assert [item == Barrier("V") for item in steps[-2:]] == [True, False]


def test_a_loop_over_rows_needs_no_barrier_per_row(kernel_text: Text, chip: Chip) -> None:
    body = """
with copy_in:
    load(xt, x, 64)
with compute:
    for i in range(8):
        adds(yt[i * 8], xt[i * 8], 1.0, 8)
    adds(yt, yt, 1.0, 64)
with copy_out:
    store(y, yt, 64)
"""
    program = lower(parse(kernel_text(body, buffers="xt yt")), chip)
    loop = flat(program, For)[0]
    assert [type(item) for item in bodies(loop)[0]] == [Op]
    assert flat(program, Barrier) == [Barrier("V")]  # before the whole is touched


def test_scalars_read_in_a_loop_wait_once_before_it(kernel_text: Text, chip: Chip) -> None:
    body = """
with copy_in:
    load(xt, x, 64)
with compute:
    for i in range(8):
        duplicate(yt[i * 8], value(xt[i]), 8)
with copy_out:
    store(y, yt, 64)
"""
    program = lower(parse(kernel_text(body, buffers="xt yt")), chip)
    loop = flat(program, For)[0]
    assert [type(item) for item in bodies(loop)[0]] == [Op]
    assert flat(program, Event)[:1] == [Event("MTE2", "S")]
    assert flat(program, Event).count(Event("V", "S")) == 0  # nothing else has filled it
    assert flat(program, Event).count(Event("MTE2", "S")) == 1


def test_a_scalar_of_what_the_vector_unit_has_changed_waits_for_it(
    kernel_text: Text, chip: Chip
) -> None:
    body = """
with copy_in:
    load(xt, x, 64)
with compute:
    exp(et, xt, 64)
    duplicate(yt, value(et), 64)
with copy_out:
    store(y, yt, 64)
"""
    program = lower(parse(kernel_text(body, buffers="xt et yt")), chip)
    assert flat(program, Event)[:1] == [Event("V", "S")]


@pytest.mark.parametrize(
    ("first", "second", "needed"),
    [
        ("yt", "yt[n]", False),
        ("yt[n]", "yt[2 * n]", False),
        ("yt[n]", "yt[n]", True),
        ("yt[n]", "yt[3]", True),
    ],
)
def test_only_operations_on_one_row_of_a_buffer_depend_on_each_other(
    first: str, second: str, needed: bool, kernel_text: Text, chip: Chip
) -> None:
    body = f"""
with copy_in:
    load(xt, x, 8)
with compute:
    exp(et, xt, 8)
    muls({first}, xt, 2.0, n)
    muls({second}, xt, 3.0, n)
with copy_out:
    store(y, yt, 8)
"""
    program = lower(parse(kernel_text(body, buffers="xt et yt")), chip)
    assert (Barrier("V") in flat(program, Barrier)) is needed


def test_rows_are_anywhere_once_their_length_is_another(kernel_text: Text, chip: Chip) -> None:
    body = """
k = n
with copy_in:
    load(xt, x, 8)
for i in range(2):
    with compute:
        muls(yt[k], xt, 2.0, k)
    k = k + 1
with copy_out:
    store(y, yt, 8)
"""
    program = lower(parse(kernel_text(body, buffers="xt yt")), chip)
    assert Barrier("V") in flat(program, Barrier)


def test_a_count_of_at_most_a_row_stays_within_it(kernel_text: Text, chip: Chip) -> None:
    body = """
with copy_in:
    load(xt, x, 64)
with compute:
    for i in range(7):
        adds(yt[i * 8], xt, 1.0, min(n, 8))
with copy_out:
    store(y, yt, 64)
"""
    program = lower(parse(kernel_text(body, buffers="xt yt")), chip)
    assert [type(item) for item in bodies(flat(program, For)[0])[0]] == [Op]


def test_rows_that_overlap_keep_their_barrier(kernel_text: Text, chip: Chip) -> None:
    body = """
with copy_in:
    load(xt, x, 64)
with compute:
    for i in range(7):
        adds(yt[i * 8], xt[i * 8], 1.0, 16)
with copy_out:
    store(y, yt, 64)
"""
    program = lower(parse(kernel_text(body, buffers="xt yt")), chip)
    assert [type(item) for item in bodies(flat(program, For)[0])[0]] == [Barrier, Op]


def test_a_dependence_carried_by_a_loop_gets_its_barrier(kernel_text: Text, chip: Chip) -> None:
    body = """
with copy_in:
    load(xt, x, 8)
with compute:
    duplicate(yt, 0.0, 8)
    for i in range(n):
        add(yt, yt, xt, 8)
with copy_out:
    store(y, yt, 8)
"""
    program = lower(parse(kernel_text(body, buffers="xt yt")), chip)
    assert [type(item) for item in bodies(flat(program, For)[0])[0]] == [Barrier, Op]


def test_stores_to_one_place_in_a_loop_are_ordered(kernel_text: Text, chip: Chip) -> None:
    body = """
for i in range(n):
    with compute:
        duplicate(yt, 1.0, 8)
    with copy_out:
        store(y[OFFSET], yt, 8)
"""
    same = lower(parse(kernel_text(body.replace("OFFSET", "0"), buffers="yt")), chip)
    moving = lower(parse(kernel_text(body.replace("OFFSET", "i * 8"), buffers="yt")), chip)
    assert Barrier("MTE3") in flat(same, Barrier)
    assert Barrier("MTE3") not in flat(moving, Barrier)


def test_stores_of_a_loop_wait_once_for_those_before_it(kernel_text: Text, chip: Chip) -> None:
    turn = """
for i in range(n):
    with compute:
        duplicate(yt, 1.0, 8)
    with copy_out:
        store(y[i * 8], yt, 8)
"""
    program = lower(parse(kernel_text(turn + turn, buffers="yt")), chip)
    assert flat(program, Barrier).count(Barrier("MTE3")) == 1
    assert not any(Barrier("MTE3") in statements(bodies(loop)[0]) for loop in flat(program, For))


def test_workspace_read_back_by_one_core_waits_for_its_store(kernel_text: Text, chip: Chip) -> None:
    body = """
with copy_in:
    load(xt, x, 8)
with compute:
    exp(et, xt, 8)
with copy_out:
    store(ws, et, 8)
with copy_in:
    load(wt, ws, 8)
with compute:
    exp(yt, wt, 8)
with copy_out:
    store(y, yt, 8)
"""
    text = kernel_text(
        body,
        buffers="xt yt et wt",
        params="ws: scratch(float32), n: int",
        launch="n=x.size, ws=8",
    )
    assert flat(lower(parse(text), chip), Event) == [Event("MTE3", "MTE2")]


def test_everything_is_done_before_a_core_waits_for_the_others(samples: Any, chip: Chip) -> None:
    program = lower(samples.program("neighbour_scratch"), chip)
    order = [stmt for stmt in program.kernel.body if isinstance(stmt, Barrier | SyncCores)]
    assert [type(item) for item in order] == [Barrier, SyncCores]
    assert order[0] == Barrier("ALL")


def test_a_second_combine_waits_until_the_workspace_is_free(samples: Any, chip: Chip) -> None:
    text = show(samples.program("mean_all"))
    line = "    combine_sum(total, total, parts, 1)\n"
    once = lower(parse(text), chip)
    twice = lower(parse(text.replace(line, line * 2)), chip)
    assert len(flat(once, SyncCores)) == 1
    assert len(flat(twice, SyncCores)) == 4


# ------------------------------------------------------------------------------------- errors


def failure(text: str, chip: Chip) -> LowerError:
    with pytest.raises(LowerError) as caught:
        lower(parse(text), chip)
    return caught.value


STORE = """
with compute:
    duplicate(yt, 0.0, 8)
with copy_out:
    store(y, yt, 8)
"""


def test_a_length_that_is_no_constant_is_refused(kernel_text: Text, chip: Chip) -> None:
    text = kernel_text(STORE, buffers="yt").replace("yt = ub(64,", "yt = ub(TILE - 64,")
    assert failure(text, chip).code == "lower-length"


def test_a_buffer_loaded_and_computed_into_is_refused(kernel_text: Text, chip: Chip) -> None:
    body = "with copy_in:\n    load(yt, x, 8)" + STORE
    error = failure(kernel_text(body, buffers="yt"), chip)
    assert error.code == "lower-buffer-role" and "'yt'" in error.message


def test_a_store_outside_of_the_list_that_writes_is_refused(kernel_text: Text, chip: Chip) -> None:
    body = """
with compute:
    duplicate(yt, 0.0, 8)
if n > 1:
    with copy_out:
        store(y, yt, 8)
"""
    assert failure(kernel_text(body, buffers="yt"), chip).code == "lower-lifetime"


def test_buffers_larger_than_ub_are_refused_with_their_sizes(kernel_text: Text, chip: Chip) -> None:
    text = kernel_text(STORE, buffers="yt").replace("yt = ub(64,", "yt = ub(49152,")
    error = failure(text, chip)
    assert error.code == "lower-ub"
    assert "yt 196608 B" in error.render() and str(chip.ub_bytes) in error.render()


def test_nine_loaded_buffers_are_refused(kernel_text: Text, chip: Chip) -> None:
    names = [f"b{at}" for at in range(9)]
    loads = "\n".join(f"    load({name}, x, 8)" for name in names)
    adds = "\n".join(f"    accumulate_sum(yt, {name}, 8)" for name in names)
    body = f"with copy_in:\n{loads}\nwith compute:\n    duplicate(yt, 0.0, 8)\n{adds}\n"
    body += "with copy_out:\n    store(y, yt, 8)"
    error = failure(kernel_text(body, buffers=" ".join(["yt", *names])), chip)
    assert error.code == "lower-queues" and "VECIN" in error.render()


def test_more_buffers_than_a_pipe_holds_are_refused(kernel_text: Text, chip: Chip) -> None:
    names = " ".join(["yt", *(f"b{at}" for at in range(64))])
    error = failure(kernel_text(STORE, buffers=names), chip)
    assert error.code == "lower-queues" and "at most 64" in error.render()


def test_doubling_stops_where_the_pipe_holds_no_more(kernel_text: Text, chip: Chip) -> None:
    body = "for i in range(n):\n" + "\n".join(f"    {line}" for line in STORE.strip().splitlines())
    names = ["yt", *(f"b{at}" for at in range(63))]
    assert (
        lower(parse(kernel_text(body, buffers=" ".join(names))), chip).kernel.buffers[0].depth == 1
    )
    names.pop()
    assert (
        lower(parse(kernel_text(body, buffers=" ".join(names))), chip).kernel.buffers[0].depth == 2
    )


# ------------------------------------------------------------------------------------- versions

_VERSIONS = """
@kernel
def scale(x: input(float32), y: output(float32), n: int, few: int):
    a = ub({first}, float32)
    b = ub({second}, float32)
    if few == 1:
        {one}
    else:
        {two}


@host
def host(x, y):
    n = x.size
    few = 1 if n <= 64 else 0
    launch(scale, 1, n=n, few=few)
"""
_TURN = """with copy_in:
            load({name}, x[0], n)
        with copy_out:
            store(y[0], {name}, n)"""


def versions_text(first: int, second: int, used: str) -> str:
    turns = [_TURN.format(name=name) for name in ("a", used)]
    return _VERSIONS.format(first=first, second=second, one=turns[0], two=turns[1])


def test_two_versions_have_the_unified_buffer_in_turns(chip: Chip) -> None:
    most = chip.ub_bytes // 4 - 64
    program = parse(versions_text(most, most, "b"))
    check(program, chip)
    lowered = lower(program, chip)
    found = branches(lowered)
    assert [[item.name for item in path] for path in found.paths()] == [["a"], ["b"]]
    for count in (1, 64, 65, 500):
        x = np.arange(count, dtype=np.float32)
        (y,) = interpret(lowered, chip, [x], [((count,), DType.FLOAT32)])
        assert y.tobytes() == x.tobytes()


def test_sides_that_share_a_buffer_are_no_versions(chip: Chip) -> None:
    most = chip.ub_bytes // 4 - 64
    program = parse(versions_text(most, 64, "a"))
    assert [len(path) for path in branches(program).paths()] == [2]  # `b` is used by neither
    with pytest.raises(LangError) as found:
        check(parse(versions_text(most, 128, "a")), chip)
    assert found.value.code == "lang-ub"
