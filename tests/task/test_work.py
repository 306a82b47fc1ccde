"""The work of a call is counted, not timed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from npusmith.task.work import count_work

ROWS = torch.ones(64, 256)


@pytest.mark.parametrize(
    ("call", "least", "most"),
    [
        (lambda: ROWS + ROWS, 3 * ROWS.numel(), 4 * ROWS.numel()),
        (lambda: ROWS @ ROWS.T, 2 * 64 * 64 * 32, 3 * 64 * 64 * 32),
        (lambda: torch.nn.LSTM(256, 256)(ROWS), 64 * 256 * 256, 100 * 256 * 256),
        (
            lambda: torch.nn.functional.scaled_dot_product_attention(*[ROWS[None, None]] * 3),
            2 * 64 * 64 * 32, 4 * 64 * 64 * 32,
        ),
    ],
)  # fmt: skip
def test_work_is_what_is_multiplied_read_and_written(call: Any, least: int, most: int) -> None:
    with torch.no_grad():
        assert least <= count_work(call).elements <= most


def test_many_small_operations_are_work_too() -> None:
    def call() -> None:
        for _ in range(100):
            torch.ones(1) + 1

    assert count_work(call).elements >= 2_000_000
