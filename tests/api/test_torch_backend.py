"""torch.compile with the twin as its backend, against PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import npusmith as ns
from npusmith import api
from npusmith.errors import PlanError


class Mixed(torch.nn.Module):
    """Two parts with a Fourier transform between; the outputs lie in memory column by column."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(24))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        spectrum = torch.fft.rfft(torch.nn.functional.silu(x) * self.weight)
        size = spectrum.abs().t() + 1
        return size, size.t() * 2


def same(found: Any, wanted: Any) -> bool:
    near = torch.allclose(found, wanted, rtol=1e-4, atol=1e-4)
    return near and found.dtype == wanted.dtype and found.stride() == wanted.stride()


@pytest.fixture
def fresh() -> Any:
    torch._dynamo.reset()
    before = len(ns.coverage())
    yield lambda: ns.coverage()[before:]
    torch._dynamo.reset()


def test_what_the_table_has_runs_on_the_twin_and_the_rest_in_pytorch(
    tmp_path: Path, fresh: Any
) -> None:
    module = Mixed()
    compiled = torch.compile(module, backend="npusmith", options={"out": tmp_path})
    x = torch.randn(7, 24, requires_grad=True)
    found = compiled(x)
    assert [*map(same, found, module(x))] == [True, True]
    found[0].sum().backward()
    given, x.grad = x.grad, None
    module(x)[0].sum().backward()
    assert torch.allclose(given, x.grad, rtol=1e-4, atol=1e-4)
    rest, *parts = sorted(fresh(), key=lambda part: part.on_twin)
    assert "aten._fft_r2c.default" in rest.operations and rest.folder is None
    assert [part.calls for part in parts] == [1] * len(parts)
    assert {"aten.mul.Tensor"} <= {name for part in parts for name in part.operations}
    assert all((part.folder / "0" / "report.html").is_file() for part in parts)


def test_other_sizes_are_compiled_again_and_right(tmp_path: Path, fresh: Any) -> None:
    def gate(x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x) * x.flatten().view(x.shape[0], -1) * x.shape[0]

    compiled = torch.compile(gate, backend="npusmith", options={"out": tmp_path})
    for rows in (5, 3, 8):
        x = torch.randn(rows, 19)
        assert same(compiled(x), gate(x))
    assert any(part.on_twin and part.calls for part in fresh())


def test_a_part_that_turns_out_to_be_unsupported_is_left_and_said(
    tmp_path: Path, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PlanError("plan-dtype", "twice is not supported")

    monkeypatch.setattr(api, "generate", refuse)
    compiled = torch.compile(lambda x: x * 2, backend=ns.backend, options={"out": tmp_path})
    x = torch.randn(3, 5)
    for _ in range(2):
        assert same(compiled(x), x * 2)
    (part,) = fresh()
    assert (part.on_twin, part.calls) == (False, 2) and part.why.startswith("plan-dtype: twice")
