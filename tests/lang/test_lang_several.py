"""Programs of several kernels: what they share, and what is refused."""

from __future__ import annotations

import pytest

from npusmith.errors import LangError
from npusmith.ir.text import show
from npusmith.lang import legal, parse
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


def test_every_kernel_is_launched_once() -> None:
    missing = refused("    launch(second, cores, n=n, t=64)\n", "")
    assert missing.code == "lang-launch" and "not launched" in missing.message
    twice = refused("launch(second,", "launch(first,")
    assert twice.code == "lang-launch" and "twice" in twice.message


def test_two_kernels_of_one_name_are_refused() -> None:
    assert refused("def second(", "def first(").code == "lang-functions"


def test_what_no_kernel_has_stored_before_is_not_loaded() -> None:
    swapped = refused(
        "    launch(first, cores, n=n, t=64)\n    launch(second, cores, n=n, t=64)",
        "    launch(second, cores, n=n, t=64)\n    launch(first, cores, n=n, t=64)",
    )
    assert swapped.code == "lang-unwritten"
