"""Packages that the suite's Python files import and a machine without NPU lacks, in their place."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

import torch

from npusmith.task import rules


def install() -> None:
    """Put the stand-ins into sys.modules, and let torch draw integers as an NPU does."""
    npu = _module(
        "torch_npu.npu", synchronize=_nothing, set_device=_nothing, device_count=_one,
        is_available=_no,
    )  # fmt: skip
    contrib = _module("torch_npu.contrib")
    _module("torch_npu", npu=npu, contrib=contrib, __path__=[])
    contrib.transfer_to_npu = _module("torch_npu.contrib.transfer_to_npu")  # type: ignore[attr-defined]
    torch.npu = npu
    for name in ("npu", "cuda"):
        setattr(torch.Tensor, name, lambda self, *args, **kwargs: self)
    utils = _module("framework.utils", check_precision=rules.check_precision)
    _module("framework", utils=utils, __path__=[])
    if importlib.util.find_spec("scipy") is None:
        special = _module("scipy.special", spence=spence)
        _module("scipy", special=special, __path__=[])
    torch.rand = _whole(torch.rand)
    torch.randn = _whole(torch.randn)


def _module(name: str, **members: Any) -> ModuleType:
    module = ModuleType(name)
    for member, value in members.items():
        setattr(module, member, value)
    sys.modules[name] = module
    return module


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def _no(*args: Any, **kwargs: Any) -> bool:
    return False


def _one(*args: Any, **kwargs: Any) -> int:
    return 1


def _whole(draw: Any) -> Any:
    """CPU PyTorch draws no integers; the suite asks for them and an NPU casts what it drew."""

    def drawn(*size: Any, dtype: Any = None, **kwargs: Any) -> Any:
        if dtype is None or dtype.is_floating_point or dtype.is_complex:
            return draw(*size, dtype=dtype, **kwargs)
        return draw(*size, dtype=torch.float32, **kwargs).to(dtype)

    return drawn


def spence(values: Any, out: Any = None) -> Any:
    """Spence's function, the integral of ln t / (1 - t) from 1 to z, for z >= 0 in float64.

    Li2(1 - z) by its series where that converges fast; the rest by the two reflections.
    """
    import numpy as np

    z = np.asarray(values, dtype=np.float64)
    with np.errstate(all="ignore"):
        huge, big, small = z > 2, z > 1.5, z < 0.5
        w = np.where(huge, 1 / z, np.where(big, 1 - 1 / z, np.where(small, z, 1 - z)))
        # sum of w^k / k^2, |w| <= 0.5: 60 terms reach double precision
        series = np.zeros_like(z)
        for k in range(60, 0, -1):
            series = (series + 1.0 / (k * k)) * w
        log = np.log(np.where(z > 0, z, 1.0))
        square = 0.5 * log * log
        far = series - square - np.pi**2 / 6 - log * np.log1p(-np.where(huge, 1 / z, 0.0))
        near = np.pi**2 / 6 - log * np.log1p(-np.where(small, z, 0.0)) - series
        found = np.where(huge, far, np.where(big, -series - square, series))
        found = np.where(z < 0, np.nan, np.where(small, near, found))
    return found[()]
