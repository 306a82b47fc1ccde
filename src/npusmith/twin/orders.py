"""What one run hands to the runner: the tensors as files, and the orders file that names them.

The words of the orders are described in runtime/host/request.h.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from npusmith.errors import TwinError
from npusmith.ir.dtypes import DType
from npusmith.twin import wrapper

Array = np.ndarray[Any, Any]
Output = tuple[tuple[int, ...], DType]
Attr = int | float | bool | str | Sequence[int] | Sequence[float] | Sequence[bool]


_PADDING = b"\xff\x7f" * 64  # behind each tensor's bytes: the runner maps it too; NaN as any float
_PAGE = 4096  # memory.cpp maps whole ones


@dataclass(frozen=True, slots=True)
class Virtual:
    """An input without values, for a dry run: its file takes no room on the disk."""

    shape: tuple[int, ...]
    dtype: DType

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.bytes


@dataclass(frozen=True, slots=True)
class Sparse:
    """A tensor of zeros with some runs of other values, each with the element where it begins.

    Its file has holes: it may be larger than memory and disk, where a run touches little of it.
    """

    shape: tuple[int, ...]
    dtype: DType
    runs: tuple[tuple[int, Array], ...] = ()

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.bytes


@dataclass(frozen=True, slots=True)
class Slot:
    """The file of an output, open since before the run: the name may be anything afterwards."""

    handle: int
    bytes: int
    shape: tuple[int, ...]
    dtype: DType

    def array(self) -> Array | None:
        """The output as an array that outlives the file; None when the run cut the file short."""
        if self.bytes == 0:
            return np.empty(self.shape, self.dtype.numpy)
        if os.fstat(self.handle).st_size < self.bytes:
            return None
        data = mmap.mmap(self.handle, self.bytes, access=mmap.ACCESS_COPY)
        return np.frombuffer(data, self.dtype.numpy).reshape(self.shape)


@dataclass(slots=True)
class Orders:
    """The orders of one run while they are written; files go into `folder`."""

    folder: Path
    dry: bool = False  # outputs are nowhere kept
    lines: list[str] = field(default_factory=list)
    inputs: list[Path] = field(default_factory=list)
    outputs: int = 0
    slots: list[Slot] = field(default_factory=list)
    changed: list[Slot] = field(default_factory=list)  # of inputs that the run may write
    ports: list[int] = field(default_factory=list)  # of each input tensor
    arrays: list[tuple[tuple[int, ...], DType]] = field(default_factory=list)  # its shape and type

    def say(self, word: str, *parts: object) -> None:
        """One line; strings cross as hexadecimal."""
        texts = [_hex(part) if isinstance(part, (str, bytes)) else str(part) for part in parts]
        self.lines.append(" ".join([word, *texts]))

    def input(self, port: int, array: Array | Virtual | Sparse) -> int:
        """Write a tensor; its position among all of them."""
        path = self.folder / f"in{len(self.inputs)}"
        if isinstance(array, Virtual):
            dtype, size = array.dtype, self._virtual(path, array)
        elif isinstance(array, Sparse):
            dtype, size = array.dtype, _write_runs(path, array)
        else:
            dtype, size = _dtype_of(array), _write(path, array)
        self._tensor("in", port, dtype, size, path, array.shape)
        self.inputs.append(path)
        self.ports.append(port)
        self.arrays.append((tuple(array.shape), dtype))
        return len(self.inputs) - 1

    def _virtual(self, path: Path, tensor: Virtual) -> int:
        if not self.dry:
            raise TwinError(
                "inputs-mismatch", "a tensor without values was given to a run that computes",
                seen=f"shape {tensor.shape}", legal="arrays, or a dry run",
            )  # fmt: skip
        _spare(path, tensor.bytes)
        return tensor.bytes

    def allow(self, positions: Sequence[int]) -> None:
        """The kernel may write these input tensors, and what it leaves there is read back."""
        for position in positions:
            self.say("write", position)
            path, (shape, dtype) = self.inputs[position], self.arrays[position]
            size = int(np.prod(shape, dtype=np.int64)) * dtype.bytes
            self.changed.append(Slot(os.open(path, os.O_RDWR | os.O_CLOEXEC), size, shape, dtype))

    def output(
        self, port: int, output: Output, ref: int = -1, initial: Array | Sparse | None = None
    ) -> None:
        """Room for an output, or the file of the input whose memory it shares."""
        shape, dtype = tuple(output[0]), output[1]
        path = self.inputs[ref] if ref >= 0 else self.folder / f"out{self.outputs}"
        size = int(np.prod(shape, dtype=np.int64)) * dtype.bytes
        if ref < 0 and self.dry:
            _spare(path, size)
        elif ref < 0 and initial is None:
            _reserve(path, size)
        elif ref < 0 and isinstance(initial, Sparse):
            _write_runs(path, initial)
            self.say("filled", self.outputs)
        elif ref < 0 and initial is not None:
            flat = np.ascontiguousarray(initial).reshape(-1).view(np.uint8)
            path.write_bytes(flat.tobytes() + _PADDING)
            os.truncate(path, _whole(size))
            self.say("filled", self.outputs)
        self._tensor("out", port, dtype, size, path, shape, ref)
        self.outputs += 1
        if self.dry:
            return
        self.slots.append(Slot(os.open(path, os.O_RDWR | os.O_CLOEXEC), size, shape, dtype))

    def close(self) -> None:
        """Close the outputs' files; arrays made of them stay."""
        for slot in (*self.slots, *self.changed):
            os.close(slot.handle)
        self.slots.clear()
        self.changed.clear()

    def record(self, log: Path | None, most_steps: int, dry: bool) -> None:
        """The launches leave logs for the timing model; `dry`: they do not compute."""
        if log is not None or dry:
            self.say("record", "" if log is None else str(log), most_steps, int(dry))

    def attr(self, name: str, value: Attr) -> None:
        if isinstance(value, str) or not isinstance(value, Sequence):
            self.lines.append(f"attr {_hex(name)} scalar {_value(value)}")
        else:
            self.lines.append(" ".join([f"attr {_hex(name)} list", *map(_value, value)]))

    def _tensor(
        self,
        word: str,
        port: int,
        dtype: DType,
        size: int,
        path: Path,
        shape: Sequence[int],
        ref: int | None = None,
    ) -> None:
        refs = () if ref is None else (ref,)
        number = wrapper.type_number(dtype)
        self.say(word, port, number, size, str(path), *refs, len(shape), *shape)

    def write(self) -> int:
        """Write the orders file; the bytes of all files."""
        (self.folder / "orders").write_text("\n".join(self.lines) + "\n")
        return sum(path.stat().st_size for path in self.folder.iterdir())


def _dtype_of(array: Array) -> DType:
    try:
        return DType.of(array.dtype)
    except KeyError as error:
        raise TwinError(
            "inputs-mismatch", f"arrays of {array.dtype} have no element type on the chip"
        ) from error


def _write(path: Path, array: Array) -> int:
    """The array's bytes and what the runner maps behind them; how many the array has."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    with path.open("wb") as file:
        file.write(flat.data)
        file.write(_PADDING)
        file.truncate(_whole(flat.size))
    return int(flat.size)


def _write_runs(path: Path, tensor: Sparse) -> int:
    """The runs where they belong, holes between them; the tensor's bytes."""
    with path.open("wb") as file:
        for start, values in tensor.runs:
            file.seek(start * tensor.dtype.bytes)
            file.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
        file.truncate(_whole(tensor.bytes))
    return tensor.bytes


def _spare(path: Path, size: int) -> None:
    """A file of holes: a dry run touches none of it."""
    with path.open("wb") as file:
        file.truncate(_whole(size))


def _reserve(path: Path, size: int) -> None:
    """The blocks of an output's file are taken now: a full disk must not stop the kernel."""
    with path.open("wb") as file:
        if size:
            os.posix_fallocate(file.fileno(), 0, _whole(size))


def _whole(size: int) -> int:
    """The bytes of a tensor's file: whole pages, since the system clears what it writes back of a
    mapped page behind the file's end, and with it the runner's red zone."""
    return -(-(size + len(_PADDING)) // _PAGE) * _PAGE


def _hex(text: str | bytes) -> str:
    return "x" + (text.encode() if isinstance(text, str) else text).hex()


def _value(value: int | float | bool | str) -> str:
    if isinstance(value, str):
        return f"s:{_hex(value)}"
    if isinstance(value, bool):
        return f"b:{int(value)}"
    return f"i:{value}" if isinstance(value, int) else f"f:{float(value).hex()}"
