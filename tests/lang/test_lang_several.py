"""Programs of several kernels: what they share, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from npusmith.errors import LangError
from npusmith.ir.dtypes import DType
from npusmith.ir.launches import each_kernel, each_launch
from npusmith.ir.nodes import TensorRole
from npusmith.ir.text import show
from npusmith.lang import legal, parse
from npusmith.lang.interp import interpret
from npusmith.lower.facts import kernel_facts
from npusmith.lower.pipeline import lower
from npusmith.plan.estimate import WAIT, estimate
from npusmith.target.chips import find_chip

CHIP = find_chip("910B2")
TEXT = """
@host
def host(x, y):
    n = min(64, x.size)
    cores = 1
    launch(first, cores, n=n, t=64)
    launch(second, cores, n=n, t=64)

@kernel
def first(x: input(float32), t: scratch(float32), n: int):
    xt = ub(64, float32)
    with copy_in:
        load(xt, x[0], n)
    with copy_out:
        store(t[0], xt, n)

@kernel
def second(y: output(float32), t: scratch(float32), n: int):
    xt = ub(64, float32)
    with copy_in:
        load(xt, t[0], n)
    with copy_out:
        store(y[0], xt, n)
"""


def refused(old: str, new: str) -> LangError:
    assert TEXT.count(old) >= 1
    with pytest.raises(LangError) as caught:
        legal(TEXT.replace(old, new, 1), "two.tile.py", CHIP)
    return caught.value


def test_a_program_of_two_kernels_is_legal_and_prints_as_it_reads() -> None:
    program = legal(TEXT, "two.tile.py", CHIP)
    assert [kernel.name for kernel in program.kernels] == ["first", "second"]
    assert parse(show(program)) == program
    assert [item.name for item in program.tensors] == ["x", "y", "t"]


def test_kernels_start_on_equally_many_cores() -> None:
    error = refused("launch(second, cores,", "launch(second, 2,")
    assert error.code == "lang-launch" and "cores" in error.message


def test_a_scratch_tensor_has_one_length() -> None:
    error = refused("launch(second, cores, n=n, t=64)", "launch(second, cores, n=n, t=65)")
    assert error.code == "lang-launch" and "two lengths" in error.message


def test_a_shared_tensor_has_one_element_type() -> None:
    error = refused("def second(y: output(float32), t: scratch(float32)",
                    "def second(y: output(float32), t: scratch(float16)")  # fmt: skip
    assert error.code == "lang-tensor" and "'t'" in error.message


def test_every_kernel_is_launched() -> None:
    missing = refused("    launch(second, cores, n=n, t=64)\n", "")
    assert missing.code == "lang-launch" and "not launched" in missing.message
    other = refused("launch(second,", "launch(first,")
    assert other.code == "lang-launch" and "not launched" in other.message


SHARED = """
@host
def host(x, y):
    n = min(64, x.size)
    launch(doubled, 1, b=t, n=n, t=64)
    launch(doubled, 1, x=t, b=u, n=n, t=64, u=n)
    launch(doubled, 1, x=u, b=y, n=n // 2, u=n)

@kernel
def doubled(x: input(float32), b: output(float32), n: int):
    xt = ub(64, float32)
    bt = ub(64, float32)
    with copy_in:
        load(xt, x[0], n)
    with compute:
        add(bt, xt, xt, n)
    with copy_out:
        store(b[0], bt, n)
"""


def test_a_kernel_is_launched_with_other_tensors_and_numbers() -> None:
    program = legal(SHARED, "shared.tile.py", CHIP)
    assert parse(show(program)) == program
    roles = {item.name: item.role for item in program.tensors}
    assert roles == {
        "x": TensorRole.INPUT, "y": TensorRole.OUTPUT,
        "t": TensorRole.SCRATCH, "u": TensorRole.SCRATCH,
    }  # fmt: skip
    x = np.arange(64, dtype=np.float32)
    (y,) = interpret(program, CHIP, [x], [((32,), DType.FLOAT32)])
    assert (y == 8 * x[:32]).all()
    assert [part.kernel.tensors[1].name for part in each_launch(program)] == ["t", "u", "y"]
    assert [len(part.host.launches) for part in each_kernel(program)] == [3]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("x=t, b=u", "x=q, b=u", "'q' is no variable"),
        ("x=t, b=u", "x=t, b=t", "two tensors"),
        ("x=t, b=u", "x=t, x=u, b=u", "given twice"),
        ("x=t, b=u, n=n, t=64, u=n", "x=t, b=bt, n=n, t=64, bt=n", "is called 'bt'"),
        ("n=n, t=64, u=n", "n=n, t=64, u=9", "two lengths"),
        ("x=u, b=y, n=n // 2, u=n", "x=u, b=y, u=n", "'n' has no value"),
    ],
)
def test_what_a_launch_binds_is_checked(old: str, new: str, said: str) -> None:
    assert SHARED.count(old) >= 1
    with pytest.raises(LangError) as caught:
        legal(SHARED.replace(old, new, 1), "shared.tile.py", CHIP)
    assert caught.value.code == "lang-launch" and said in caught.value.message


def test_what_is_loaded_before_a_launch_stores_it_is_refused() -> None:
    with pytest.raises(LangError) as caught:
        legal(SHARED.replace("x=t, b=u", "x=y, b=u"), "shared.tile.py", CHIP)
    assert caught.value.code == "lang-unwritten" or "y" in caught.value.message


def test_what_is_known_of_a_number_holds_for_every_launch() -> None:
    text = SHARED.replace("n=n, t=64)", "n=64, t=64)", 1).replace(
        "n=n, t=64, u=n", "n=8, t=64, u=n"
    )
    program = parse(text)
    assert kernel_facts(each_kernel(program)[0])["n"].step == 1
    assert [kernel_facts(part)["n"].step for part in each_launch(program)] == [64, 8, 1]
    assert len(lower(program, CHIP).kernels) == 1


def test_two_kernels_of_one_name_are_refused() -> None:
    assert refused("def second(", "def first(").code == "lang-functions"


def test_what_no_kernel_has_stored_before_is_not_loaded() -> None:
    swapped = refused(
        "    launch(first, cores, n=n, t=64)\n    launch(second, cores, n=n, t=64)",
        "    launch(second, cores, n=n, t=64)\n    launch(first, cores, n=n, t=64)",
    )
    assert swapped.code == "lang-unwritten"


LOOP = """
@host
def host(x, y):
    steps = x.shape[0]
    n = x.shape[1]
    launch(doubled, 1, a=part(x, 0, n), b=part(t, 0, n), n=n, t=steps * n)
    for i in range(1, steps):
        launch(summed, 1, a=part(x, i * n, n), s=part(t, (i - 1) * n, n), b=part(t, n * i, n),
               n=n, t=steps * n)
    launch(doubled, 1, a=part(t, (steps - 1) * n, n), b=y, n=n, t=steps * n)

@kernel
def doubled(a: input(float32), b: output(float32), n: int):
    at = ub(64, float32)
    bt = ub(64, float32)
    with copy_in:
        load(at, a[0], n)
    with compute:
        add(bt, at, at, n)
    with copy_out:
        store(b[0], bt, n)

@kernel
def summed(a: input(float32), s: input(float32), b: output(float32), n: int):
    at = ub(64, float32)
    st = ub(64, float32)
    bt = ub(64, float32)
    with copy_in:
        load(at, a[0], n)
        load(st, s[0], n)
    with compute:
        add(bt, at, st, n)
    with copy_out:
        store(b[0], bt, n)
"""


def test_launches_in_a_loop_run_on_parts_of_tensors() -> None:
    program = legal(LOOP, "loop.tile.py", CHIP)
    assert parse(show(program)) == program
    assert [item.name for item in program.tensors] == ["x", "y", "t"]
    x = np.arange(70, dtype=np.float32).reshape(7, 10)
    (y,) = interpret(program, CHIP, [x], [((10,), DType.FLOAT32)])
    assert (y == 2 * (2 * x[0] + x[1:].sum(0))).all()
    (once,) = interpret(program, CHIP, [x[:1]], [((10,), DType.FLOAT32)])  # the loop never runs
    assert (once == 4 * x[0]).all()
    shapes = {"x": x.shape, "y": (10,)}
    longer = estimate(program, {**shapes, "x": (13, 10)}, CHIP) - estimate(program, shapes, CHIP)
    assert longer > 6 * WAIT


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        ("part(x, i * n, n)", "part(x, i * i, n)", "lang-launch", "where 'a' begins"),
        ("part(x, i * n, n)", "part(x, i * n)", "lang-launch", "part() takes"),
        ("part(x, i * n, n)", "part(q, i * n, n)", "lang-launch", "'q' is no variable"),
        ("a=part(x, i * n, n)", "c=part(x, i * n, n)", "lang-launch", "no tensor 'c'"),
        ("part(x, i * n, n)", "part(x, i * n, 0.5)", "lang-type", "the length of 'a'"),
        ("for i in range(1, steps):", "for n in range(1, steps):", "lang-name", "'n' is a loop's"),
        ("for i in range(1, steps):", "for i in range(1, steps, 2):", "lang-launch", "head"),
        ("               n=n, t=steps * n)", "               n=i, t=steps * n)",
         "lang-unknown-name", "'i'"),
        ("    for i", "    for j in range(2):\n        k = 1\n    for i", "lang-launch",
         "nothing but launch()"),
    ],
)  # fmt: skip
def test_what_a_loop_of_launches_may_not_hold(old: str, new: str, code: str, said: str) -> None:
    assert LOOP.count(old) == 1
    with pytest.raises(LangError) as caught:
        legal(LOOP.replace(old, new, 1), "loop.tile.py", CHIP)
    assert caught.value.code == code and said in caught.value.message


def test_a_part_outside_of_its_tensor_is_an_error_when_it_runs() -> None:
    program = legal(LOOP.replace("part(x, i * n, n)", "part(x, (i + 1) * n, n)"), "l", CHIP)
    with pytest.raises(LangError) as caught:
        interpret(program, CHIP, [np.zeros((3, 8), np.float32)], [((8,), DType.FLOAT32)])
    assert caught.value.code == "lang-gm-range" and "'x'" in caught.value.message
