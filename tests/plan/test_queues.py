"""Kernels of many outputs have no more buffers to fill or to send than a chip has queues."""

from __future__ import annotations

import torch
from modules import CHIP, agrees, plan

from npusmith.lower import lower

Tensor = torch.Tensor


def _extremes(x: Tensor) -> tuple[Tensor, ...]:
    rows, columns = x.max(-1), x.min(0)
    return (x.amax(-1), x.amin(0), *rows, *columns, x.argmax(-1), x.argmin(0), x.max(), x.argmax())


def test_numbers_that_cores_combine_take_a_queue_besides() -> None:
    x = torch.randn(5, 17, generator=torch.Generator().manual_seed(1))
    made = plan(_extremes, x)
    lower(made.program, CHIP)
    agrees(made, _extremes, x)
