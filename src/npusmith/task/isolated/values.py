"""Values on their way between processes: tensors as raw memory, all around them as JSON.

`pack(value)` gives a tree and the memory that its tensors lie in, each piece once; `unpack` makes
the value again in other memory. A tree is {"tensor": number of the piece, "at": byte, "shape",
"stride", "dtype"}, {"list": [...]}, {"tuple": [...]}, {"dict": [[key, tree], ...]},
{"sparse": [places, values], "size", "coalesced"}, {"plain": value}, {"complex": [re, im]},
{"torch": name} or {"other": words}. Nothing is unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from npusmith.task.isolated import sparse
from npusmith.task.isolated.arrays import PARTS, Tree, leaf
from npusmith.task.isolated.containers import named_items

_DEEP = 32
_ALIGN = 16


@dataclass(slots=True)
class Piece:
    """Bytes `low` to `high` of a storage."""

    storage: Any
    low: int
    high: int

    def view(self) -> Any:
        """The bytes themselves, not a copy."""
        raw = torch.empty(0, dtype=torch.uint8)
        raw.set_(self.storage, self.low, (self.high - self.low,), (1,))
        return raw.numpy().data

    def write(self, data: bytes | bytearray) -> None:
        """Other bytes in the same place."""
        if len(data) != self.high - self.low:
            raise ValueError("another size")
        if data:
            raw = torch.empty(0, dtype=torch.uint8)
            raw.set_(self.storage, self.low, (self.high - self.low,), (1,))
            raw.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))


@dataclass(slots=True)
class Packed:
    tree: Tree
    pieces: list[Piece]

    def blobs(self, first: int = 0) -> list[Any]:
        return [piece.view() for piece in self.pieces[first:]]


@dataclass(slots=True)
class _Packer:
    """`pieces`: those of the other side that are known already come first."""

    pieces: list[Piece] = field(default_factory=list)
    known: dict[int, int] = field(default_factory=dict)  # storage's address -> piece

    def piece(self, tensor: torch.Tensor) -> int:
        storage = tensor.untyped_storage()
        low = tensor.storage_offset() * tensor.element_size()
        spans = zip(tensor.shape, tensor.stride(), strict=True)
        high = low + (1 + sum((n - 1) * step for n, step in spans)) * tensor.element_size()
        low, high = (low, high) if tensor.numel() else (0, 0)
        address = storage.data_ptr()
        if not tensor.numel() or address not in self.known:
            self.pieces.append(Piece(storage, low, high))
            if tensor.numel():
                self.known[address] = len(self.pieces) - 1
            return len(self.pieces) - 1
        at = self.known[address]
        self.widen(at, low, high)
        return at

    def widen(self, at: int, low: int, high: int) -> None:
        piece = self.pieces[at]
        if low < piece.low:  # of another element type, perhaps: keep both aligned
            piece.low = min(piece.low, low) // _ALIGN * _ALIGN
        piece.high = max(piece.high, high)

    def tree(self, value: Any, depth: int = 0) -> Tree:
        if sparse.is_sparse(value):
            held = [self._tensor(item) for item in sparse.parts(value)]
            return {"sparse": held, "size": list(value.shape), "coalesced": value.is_coalesced()}
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if depth > _DEEP:
            raise ValueError("a value nested too deeply")
        if isinstance(value, (list, tuple)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {kind: [self.tree(item, depth + 1) for item in value]}
        if (named := named_items(value)) is not None:
            return {"dict": [[self._key(key), self.tree(item, depth + 1)]
                             for key, item in named.items()]}  # fmt: skip
        if isinstance(value, np.generic):  # a number of NumPy's is a number
            value = value.item()
        if value is None or isinstance(value, (bool, int, float, str)):
            return {"plain": value}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
            return {"torch": str(value)}
        return {"other": f"{type(value).__name__} {value!r}"[:200]}

    def _key(self, key: Any) -> Any:
        return key if isinstance(key, (bool, int, float, str)) else str(key)

    def _tensor(self, value: torch.Tensor) -> Tree:
        if value.device.type != "cpu" or value.layout != torch.strided or value.is_quantized:
            return {"other": f"{value.layout} tensor on {value.device}"}
        plain = value.detach().resolve_conj().resolve_neg()
        at = self.piece(plain)
        return {
            "tensor": at,
            "at": plain.storage_offset() * plain.element_size() if plain.numel() else 0,
            "shape": list(plain.shape),
            "stride": list(plain.stride()),
            "dtype": str(plain.dtype).removeprefix("torch."),
        }


@dataclass(slots=True)
class _Lister(_Packer):
    """Each tensor is a piece of its own, whole and contiguous."""

    tensors: list[torch.Tensor] = field(default_factory=list)

    def _tensor(self, value: torch.Tensor) -> Tree:
        plain = value.detach().to("cpu").resolve_conj().resolve_neg()
        if plain.layout != torch.strided or plain.is_quantized:
            return {"other": f"{value.layout} tensor"}
        self.tensors.append(plain.contiguous())
        return leaf(len(self.tensors) - 1, plain, str(plain.dtype).removeprefix("torch."))


def take_apart(value: Any) -> tuple[Tree, list[torch.Tensor]]:
    """The tree of a value, and its tensors in order."""
    lister = _Lister()
    return lister.tree(value), lister.tensors


def put_together(tree: Tree, tensors: Sequence[torch.Tensor]) -> Any:
    """The value of a tree with these tensors in order, and with the words of what is no value."""
    rest = iter(tensors)
    return _value(tree, lambda item: next(rest), words=True)


def pack(value: Any, known: Sequence[Piece] = ()) -> Packed:
    """The tree of a value, and its memory: that of `known` pieces first, whether used or not."""
    packer = _Packer(list(known))
    packer.known = {piece.storage.data_ptr(): at for at, piece in enumerate(known) if piece.high}
    spans = [(piece.low, piece.high) for piece in known]
    tree = packer.tree(value)
    for piece, (low, high) in zip(packer.pieces, spans, strict=False):
        piece.low, piece.high = low, high  # the other side has these bytes and no more
    _rebase(tree, [piece.low for piece in packer.pieces])
    return Packed(tree, packer.pieces)


def _rebase(tree: Tree, lows: list[int]) -> None:
    """Bytes counted from the beginning of the piece."""
    if "tensor" in tree:
        tree["at"] -= lows[tree["tensor"]] if tree["at"] else 0
    for key in PARTS:
        for item in tree.get(key, ()):
            _rebase(item, lows)
    for _, item in tree.get("dict", ()):
        _rebase(item, lows)


def hold(blobs: Sequence[bytearray], *, copy: bool) -> list[Piece]:
    """Memory with these bytes; `copy`: in memory that PyTorch's allocator gives."""
    pieces = []
    for blob in blobs:
        if blob:
            raw = torch.frombuffer(blob, dtype=torch.uint8)
            raw = torch.empty(len(blob), dtype=torch.uint8).copy_(raw) if copy else raw
        else:
            raw = torch.empty(0, dtype=torch.uint8)
        pieces.append(Piece(raw.untyped_storage(), 0, len(blob)))
    return pieces


def unpack(tree: Any, pieces: Sequence[Piece]) -> Any:
    """The value of a tree that anybody may have written; ValueError for what is none."""
    return _value(tree, partial(_tensor, pieces=pieces))


def _value(
    tree: Any, tensor: Callable[[Tree], torch.Tensor], depth: int = 0, *, words: bool = False
) -> Any:
    if not isinstance(tree, dict) or depth > _DEEP:
        raise ValueError("a record that is no value")
    if "tensor" in tree:
        return tensor(tree)
    inner = partial(_value, tensor=tensor, depth=depth + 1, words=words)
    for key, made in (("list", list), ("tuple", tuple)):
        if isinstance(tree.get(key), list):
            return made(inner(item) for item in tree[key])
    if isinstance(tree.get("sparse"), list):
        size = [int(length) for length in tree["size"]]
        return sparse.build([inner(item) for item in tree["sparse"]], size, bool(tree["coalesced"]))
    if isinstance(tree.get("dict"), list):
        return {key: inner(item) for key, item in tree["dict"]}
    if "complex" in tree:
        return complex(*tree["complex"])
    if "torch" in tree:
        return _named(str(tree["torch"]))
    if "other" in tree and not words:
        raise ValueError(f"a value that cannot be handed over: {tree['other']}")
    return tree.get("plain", tree.get("other"))


def _tensor(tree: Tree, pieces: Sequence[Piece]) -> torch.Tensor:
    kind = getattr(torch, str(tree["dtype"]), None)
    if not isinstance(kind, torch.dtype):
        raise ValueError(f"a tensor of {str(tree['dtype'])[:20]}")
    piece, shape = pieces[tree["tensor"]], [int(size) for size in tree["shape"]]
    empty = torch.empty(0, dtype=kind)
    if 0 in shape:
        return torch.empty(shape, dtype=kind)
    start, rest = divmod(piece.low + int(tree["at"]), empty.element_size())
    if rest or int(tree["at"]) < 0:
        raise ValueError("a tensor between elements")
    stride = [int(step) for step in tree["stride"]]
    spans = sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    last = (start + spans + 1) * empty.element_size()
    if min([*shape, *stride, 0]) < 0 or last > piece.storage.nbytes():
        raise ValueError("a tensor that ends behind its memory")
    return empty.set_(piece.storage, start, shape, stride)


def _named(name: str) -> Any:
    if name.startswith("torch."):
        return getattr(torch, name.removeprefix("torch."))
    return torch.device(name)
