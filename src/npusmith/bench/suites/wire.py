"""Values on their way between processes: tensors as raw files, all around them as JSON.

A tree is {"tensor": file, "shape": [...], "dtype": name}, {"list": [...]}, {"tuple": [...]},
{"dict": {...}}, {"plain": value} or {"other": words}. Nothing is ever unpickled.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Tree = dict[str, Any]

WIDTHS = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "complex64": 8, "complex128": 16,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "uint16": 2, "uint32": 4, "bool": 1,
    "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip
_DEEP = 32


def put(value: Any, folder: Path, stem: str) -> Tree:
    """Write a value's tensors into `folder` and give its tree; needs torch."""
    import torch

    if isinstance(value, torch.Tensor):
        plain = value.detach().to("cpu").resolve_conj().resolve_neg().contiguous()
        (folder / f"{stem}.bin").write_bytes(plain.reshape(-1).view(torch.uint8).numpy().data)
        name = str(plain.dtype).removeprefix("torch.")
        return {"tensor": f"{stem}.bin", "shape": list(plain.shape), "dtype": name}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [put(item, folder, f"{stem}_{at}") for at, item in enumerate(value)]}
    if isinstance(value, dict):
        rows = enumerate(value.items())
        return {"dict": {str(key): put(item, folder, f"{stem}_{at}") for at, (key, item) in rows}}
    if isinstance(value, np.generic):  # a number of NumPy's is a number
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"plain": value}
    if isinstance(value, (torch.dtype, torch.device)):
        return {"torch": str(value)}
    return {"other": f"{type(value).__name__} {value!r}"[:200]}


def get(tree: Any, folder: Path, depth: int = 0) -> Any:
    """The value of a tree that anybody may have written; ValueError for what is none."""
    import torch

    if not isinstance(tree, dict) or depth > _DEEP:
        raise ValueError("a record that is no value")
    if "tensor" in tree:
        name, shape = str(tree.get("dtype")), tree.get("shape")
        if name not in WIDTHS or not isinstance(shape, list):
            raise ValueError(f"a tensor of {name[:20]}")
        if not all(isinstance(size, int) and size >= 0 for size in shape):
            raise ValueError("a tensor without a shape")
        kind = getattr(torch, name)
        count = math.prod(shape)
        data = read_plain(folder / Path(str(tree["tensor"])).name, count * WIDTHS[name] + 1)
        if len(data) != count * WIDTHS[name]:
            raise ValueError(f"a tensor of {len(data)} bytes where {count * WIDTHS[name]} belong")
        return (
            torch.frombuffer(data, dtype=kind).reshape(shape)
            if count
            else torch.empty(shape, dtype=kind)
        )
    for key, made in (("list", list), ("tuple", tuple)):
        if isinstance(tree.get(key), list):
            return made(get(item, folder, depth + 1) for item in tree[key])
    if isinstance(tree.get("dict"), dict):
        return {key: get(item, folder, depth + 1) for key, item in tree["dict"].items()}
    if "torch" in tree:
        return getattr(torch, str(tree["torch"]).removeprefix("torch."), None)
    return tree.get("plain", tree.get("other"))


def leaves(tree: Tree) -> Iterator[Tree]:
    """The tensors of a tree, in order."""
    if "tensor" in tree:
        yield tree
    for key in ("list", "tuple"):
        for item in tree.get(key, ()):
            yield from leaves(item)
    for item in tree.get("dict", {}).values():
        yield from leaves(item)


def size_of(tree: Tree) -> int:
    """Bytes of all tensors."""
    return sum(math.prod(leaf["shape"]) * WIDTHS.get(leaf["dtype"], 4) for leaf in leaves(tree))


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
