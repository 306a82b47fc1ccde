"""The judge's end of a tree of values (see `values`): NumPy arrays, no torch, nothing believed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npusmith.ir.dtypes import DType

Array = np.ndarray[Any, Any]
Tree = dict[str, Any]
_WIDE: dict[str, np.dtype[Any]] = {
    "float64": np.dtype(np.float64), "complex128": np.dtype(np.complex128),
    "float8_e4m3fn": np.dtype(np.uint8), "float8_e5m2": np.dtype(np.uint8),
}  # fmt: skip
PARTS = ("list", "tuple", "sparse")  # keys of a tree that hold a list of trees
_DEEP = 32


@dataclass(frozen=True, slots=True)
class Value:
    """Nested arguments as data: a tree (see `values`), and the arrays of its tensors in order."""

    tree: Tree
    tensors: Sequence[Array] = ()

    def blobs(self) -> list[Any]:
        return [raw(array) for array in self.tensors]


def numpy_type(name: str) -> np.dtype[Any]:
    """The array type of one of PyTorch's types; ValueError."""
    return _WIDE[name] if name in _WIDE else DType(name).numpy


def width(name: str) -> int:
    """Bytes of an element; 4 for a type that nobody here knows."""
    try:
        return int(numpy_type(name).itemsize)
    except ValueError:
        return 4


def leaf(number: int, array: Any, dtype: str = "") -> Tree:
    """The tree of a contiguous tensor whose bytes are piece `number`; of an array, or PyTorch's."""
    steps = [math.prod(array.shape[at + 1 :]) for at in range(array.ndim)]
    name = dtype or _name(array.dtype)
    return {"tensor": number, "at": 0, "shape": list(array.shape), "stride": steps, "dtype": name}


def _name(dtype: np.dtype[Any]) -> str:
    known = [name for name in ("float64", "complex128") if _WIDE[name] == dtype]
    return known[0] if known else DType.of(dtype).value


def raw(array: Array) -> memoryview:
    """The bytes of an array."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def leaves(tree: Any, depth: int = 0) -> Iterator[Tree]:
    """The tensors of a tree in order; ValueError for what is no tree."""
    if not isinstance(tree, dict) or depth > _DEEP:
        raise ValueError("a record that is no value")
    if "tensor" in tree:
        yield tree
        return
    parts = [tree.get(key, []) for key in PARTS]
    rows = tree.get("dict", [])
    if not all(isinstance(part, list) for part in (*parts, rows)):
        raise ValueError("a record that is no value")
    for part in parts:
        for item in part:
            yield from leaves(item, depth + 1)
    for row in rows:
        if not isinstance(row, list) or len(row) != 2:
            raise ValueError("a record that is no value")
        yield from leaves(row[1], depth + 1)


def scalars(tree: Any, depth: int = 0) -> Iterator[str]:
    """What is no tensor in a tree, as words."""
    if not isinstance(tree, dict) or depth > _DEEP or "tensor" in tree:
        return
    parts = [part for key in PARTS for part in tree.get(key, ())]
    parts += [row[1] for row in tree.get("dict", ())]
    for part in parts:
        yield from scalars(part, depth + 1)
    for key in ("plain", "complex", "torch"):
        if key in tree:
            yield repr(tree[key])


def read(tree: Tree, blobs: Sequence[bytearray | bytes]) -> Array:
    """A tensor of a tree as an array; ValueError when its bytes are not there."""
    try:
        dtype = numpy_type(str(tree["dtype"]))
        shape = [int(size) for size in tree["shape"]]
        stride = [int(step) * dtype.itemsize for step in tree["stride"]]
        start, data = int(tree["at"]), blobs[int(tree["tensor"])]
    except (KeyError, TypeError, IndexError, OverflowError) as error:
        raise ValueError("a tensor that is none") from error
    if len(shape) != len(stride) or len(shape) > 32 or min([start, *shape, *stride, 0]) < 0:
        raise ValueError("a tensor without a shape")
    if 0 in shape:
        return np.empty(shape, dtype)
    spans = sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    if start + spans + dtype.itemsize > len(data):
        raise ValueError("a tensor that ends behind its memory")
    if math.prod(shape) * dtype.itemsize > 16 * len(data) + (1 << 30):
        raise ValueError("a tensor much larger than its memory")
    found: Array = np.ndarray(tuple(shape), dtype, memoryview(data), start, tuple(stride))
    return np.ascontiguousarray(found).reshape(shape)


def read_all(tree: Any, blobs: Sequence[bytearray | bytes]) -> list[Array]:
    """All tensors of a tree."""
    return [read(item, blobs) for item in leaves(tree)]


def fill(tree: Tree, tensors: Sequence[Array]) -> Tree:
    """The tree with other tensors, in order: of other shapes, contiguous, each its own piece."""
    rest = iter(range(len(tensors)))

    def walk(item: Tree) -> Tree:
        if "tensor" in item:
            at = next(rest)
            return leaf(at, tensors[at])
        made: Tree = {key: [walk(part) for part in item[key]] for key in PARTS if key in item}
        if "dict" in item:
            made["dict"] = [[key, walk(part)] for key, part in item["dict"]]
        return item | made

    return walk(tree)
