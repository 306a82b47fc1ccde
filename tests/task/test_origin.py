"""Moving what launches wrote is fair, whatever the way; computing is not, whatever the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np
import pytest

from npusmith.task.isolated.origin import Array, Call, trace
from npusmith.twin.remote import Launch

SHAPE = (6, 20)
Forward = Callable[..., Array]


def launch(given: Sequence[Array], wrote: Array, scalars: tuple[object, ...] = ()) -> Launch:
    return Launch("Op", tuple(given), (wrote,), None, None, scalars)


def codes(
    forward: Forward,
    *,
    before: Forward = lambda x: x,
    count: int = 3,
    scalars: Callable[[Array], tuple[object, ...]] = lambda x: (),
    kernel: Forward = np.exp,
) -> list[str]:
    """What is found when `before(x)` goes into a launch and `forward(y, x)` is returned."""
    draw = np.random.default_rng(1)
    calls = []
    for _ in range(count):
        x = draw.normal(size=SHAPE).astype(np.float32)
        given = before(x)
        y = kernel(given)
        calls.append(Call((x,), [launch([given], y, scalars(x))], [forward(y, x)]))
    return [finding.code for finding in trace(calls)]


@pytest.mark.parametrize(
    "forward",
    [
        lambda y, x: y,
        lambda y, x: y.reshape(-1, 5),
        lambda y, x: y.T,
        lambda y, x: y[1:3, ::2],
        lambda y, x: y.reshape(2, 3, 20).transpose(2, 0, 1),
        lambda y, x: np.concatenate([y[:, 10:], y[:, :10]], 1),
        lambda y, x: np.broadcast_to(y[:1], SHAPE),
        lambda y, x: np.pad(y, 2),
        lambda y, x: y.astype(np.float16),
        lambda y, x: y.T.astype(np.float16),
        lambda y, x: y.T.astype(np.float16).astype(np.float32),
        lambda y, x: y.T.astype(ml_dtypes.bfloat16),
        lambda y, x: y.T.astype(np.float64),
        lambda y, x: y.astype(bool),
    ],
)
def test_moving_and_casting_is_fair(forward: Forward) -> None:
    assert codes(forward) == []


@pytest.mark.parametrize(
    "forward",
    [
        lambda y, x: y + 1,
        lambda y, x: np.exp(x) * np.float32(1.0000001),
        lambda y, x: -y,
        lambda y, x: x,
        lambda y, x: np.sort(y, -1),
        lambda y, x: y.max(-1),
        lambda y, x: np.maximum(y, 1.0).astype(np.float32),
        lambda y, x: np.where(x > 0, y, 0).astype(np.float32),
        lambda y, x: y.sum(-1),
        lambda y, x: np.argmax(y, -1).astype(np.int32),
        lambda y, x: x > 0,
        lambda y, x: np.zeros_like(y),
        lambda y, x: np.concatenate([y[:3], y[3:] * 2]),
    ],
)
def test_computing_after_a_launch_is_an_error(forward: Forward) -> None:
    assert codes(forward) == ["cheat-origin"]


@pytest.mark.parametrize(
    "before",
    [
        lambda x: x,
        lambda x: np.ascontiguousarray(x.T),
        lambda x: x.astype(np.float16),
        lambda x: np.pad(x, 1),
        lambda x: np.arange(12, dtype=np.float32),
    ],
)
def test_inputs_and_constants_may_go_into_a_launch(before: Forward) -> None:
    found = codes(lambda y, x: y, before=before)
    assert found == []


@pytest.mark.parametrize(
    "before",
    [
        lambda x: x * 2,
        lambda x: np.abs(x),
        lambda x: np.sort(x, -1),
        lambda x: np.maximum(x, 0),
        lambda x: x - x.max(-1, keepdims=True),
        lambda x: x.sum(-1),
    ],
)
def test_computing_before_a_launch_is_an_error(before: Forward) -> None:
    assert "cheat-input" in codes(lambda y, x: y, before=before)


def test_a_number_computed_for_a_launch_is_an_error() -> None:
    assert codes(lambda y, x: y, scalars=lambda x: (float(x.max()),)) == ["cheat-input"]
    assert codes(lambda y, x: y, scalars=lambda x: (1.5, "mean")) == []


def test_an_input_joined_to_a_result_is_a_warning() -> None:
    assert codes(lambda y, x: np.concatenate([x, y])) == ["cheat-moved"]


def test_an_output_of_few_bits_keeps_a_launch_s_order() -> None:
    positive: Forward = lambda x: x > 0  # noqa: E731
    assert codes(lambda y, x: y.T, kernel=positive) == []
    assert codes(lambda y, x: y[:3, :7], kernel=positive) == []
    assert codes(lambda y, x: x > 0.1, kernel=positive) == ["cheat-origin"]


def test_a_single_call_is_compared_by_its_bits() -> None:
    assert codes(lambda y, x: y.T, count=1) == []
    assert codes(lambda y, x: y + 1, count=1) == ["cheat-origin"]
    assert codes(lambda y, x: y, before=lambda x: x * 2, count=1) == ["cheat-input"]


def test_no_launch_at_all_is_an_error() -> None:
    x = np.ones(SHAPE, np.float32)
    (found,) = trace([Call((x,), [], [x + 1])])
    assert (found.code, "there was none" in found.message) == ("cheat-origin", True)


def test_a_weight_may_differ_from_call_to_call_when_the_judge_draws_it() -> None:
    draw = np.random.default_rng(2)
    calls = []
    for _ in range(3):
        x, w = (draw.normal(size=SHAPE).astype(np.float32) for _ in range(2))
        calls.append(Call((x, w), [launch([x, w.T.copy()], x * w)], [x * w]))
    assert trace(calls) == []
    bare = [Call(call.inputs[:1], call.launches, call.outputs) for call in calls]
    assert [finding.code for finding in trace(bare)] == ["cheat-input"]
