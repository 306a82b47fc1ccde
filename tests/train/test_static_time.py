"""Times by the text: what would look fast without being so."""

from __future__ import annotations

import pytest

from npusmith.lang import parse
from npusmith.target.chips import find_chip
from npusmith.train.static_time import static_us

CHIP = find_chip("910B2")
PROGRAM = """@host
def host(x, y):
    launch(k, 8, n=x.size)

@kernel
def k(x: input(float32), y: output(float32), n: int):
    xt = ub(4096, float32)
    yt = ub(4096, float32)
    for t in range(core_id() * 64, core_id() * 64 + 64):
        with copy_in:
            load(xt, x[t * 4096], 4096)
        with compute:
            exp(yt, xt, 4096)
            {more}
        with copy_out:
            store(y[t * 4096], yt, 4096)
"""
SHAPES = {"x": (8 * 64 * 4096,), "y": (8 * 64 * 4096,)}


def us(more: str) -> float | None:
    return static_us(parse(PROGRAM.format(more=more)), SHAPES, CHIP)


def test_work_of_a_branch_that_the_middle_step_does_not_take_counts() -> None:
    more = "; ".join(["exp(yt, yt, 4096)"] * 9)
    plain, whole = us("pass"), us(more)
    assert plain is not None
    assert whole is not None
    assert whole > 1.3 * plain
    branch = f"if t % 64 != 31:\n                {more}"
    assert us(branch) == pytest.approx(whole, rel=0.05)
    named = f"skip = t % 64\n            if skip != 31:\n                {more}"
    assert us(named) == pytest.approx(whole, rel=0.05)


@pytest.mark.parametrize(
    "more",
    [
        "count = int(value(xt[0]))\n            exp(yt, yt, count)",
        "for i in range(int(value(xt[0]))):\n                exp(yt, yt, 4096)",
        "if value(xt[0]) > 0.0:\n                exp(yt, yt, 4096)",
        "exp(yt, yt, 8 if t == 31 else 4096)",
    ],
)
def test_what_follows_from_values_or_picks_a_step_has_no_time(more: str) -> None:
    assert us(more) is None


def test_a_value_that_is_computed_with_has_a_time() -> None:
    assert us("top = value(xt[0])\n            adds(yt, yt, -top, 4096)") is not None
