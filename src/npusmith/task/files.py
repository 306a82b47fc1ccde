"""Tensors and nested values as files: `put(value, folder, stem)`, and `get(files, folder)`."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npusmith.task.isolated.arrays import Value, leaves, raw
from npusmith.task.wire import TensorFile, ValueFiles

if TYPE_CHECKING:  # the judge reads tensors as arrays, without PyTorch
    import torch


def write(tensor: torch.Tensor, folder: Path, stem: str) -> TensorFile:
    """A tensor as a file of the folder, contiguous in logical order."""
    from npusmith.task.alias import flat_bytes

    # not ndarray.tofile: its error for a full disk has no number
    (folder / f"{stem}.bin").write_bytes(flat_bytes(tensor).numpy().data)
    kind = str(tensor.dtype).removeprefix("torch.")
    return TensorFile.model_validate(
        {"file": f"{stem}.bin", "shape": tuple(tensor.shape), "dtype": kind}
    )


def write_all(tensors: Sequence[torch.Tensor], folder: Path, stem: str) -> tuple[TensorFile, ...]:
    return tuple(write(tensor, folder, f"{stem}_{at}") for at, tensor in enumerate(tensors))


def put(value: Any, folder: Path, stem: str) -> ValueFiles:
    """A nested value with its tensors."""
    from npusmith.task.isolated.values import take_apart

    tree, tensors = take_apart(value)
    return ValueFiles(tree=tree, tensors=write_all(tensors, folder, stem))


def value(held: Value) -> Any:
    """A value as the judge has it, as PyTorch's; ValueError for what is none."""
    from npusmith.task.isolated.values import put_together

    rows = zip(leaves(held.tree), held.tensors, strict=True)
    return put_together(
        held.tree,
        [_tensor(str(leaf["dtype"]), array.shape, bytearray(raw(array))) for leaf, array in rows],
    )


def read(item: TensorFile, folder: Path) -> torch.Tensor:
    """A tensor in memory of its own; ValueError where the file is not what it should be."""
    data = read_plain(folder / item.file, item.bytes + 1)
    if len(data) != item.bytes:
        raise ValueError(f"a tensor of {len(data)} bytes where {item.bytes} belong")
    return _tensor(item.dtype, item.shape, data)


def _tensor(dtype: str, shape: Sequence[int], data: bytearray) -> torch.Tensor:
    import torch

    kind = getattr(torch, dtype)
    if not len(data):
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(data, dtype=kind).reshape(shape)


def get(files: ValueFiles, folder: Path) -> Any:
    """The value again; ValueError for what is none."""
    from npusmith.task.isolated.values import put_together

    return put_together(files.tree, [read(item, folder) for item in files.tensors])


def read_plain(path: Path, most: int) -> bytearray:
    """The beginning of a plain file; empty for anything else that may have been left there."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return bytearray()
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return bytearray()
        return bytearray(file.read(most))
