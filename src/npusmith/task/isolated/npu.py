"""`import torch_npu` does nothing on a machine without one, and `.npu()` stays where it is."""

from __future__ import annotations

import importlib.util
import sys
import types

import torch


def install() -> None:
    """Put the stand-ins into sys.modules where the real ones are missing."""
    if importlib.util.find_spec("torch_npu") is not None:
        return
    stub = types.ModuleType("torch_npu")
    stub.npu = types.SimpleNamespace(  # type: ignore[attr-defined]
        synchronize=lambda *_: None, set_device=lambda *_: None, is_available=lambda: False
    )
    sys.modules["torch_npu"] = stub
    contrib = types.ModuleType("torch_npu.contrib")
    sys.modules["torch_npu.contrib"] = contrib
    sys.modules["torch_npu.contrib.transfer_to_npu"] = types.ModuleType("transfer_to_npu")
    torch.Tensor.npu = lambda self, *_, **__: self
