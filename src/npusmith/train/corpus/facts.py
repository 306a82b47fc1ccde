"""Numbers of a tile program at given shapes: `facts(program, shapes, chip)`.

Bytes of buffers as the checker's budget counts them, cores, what the host computes, bytes that the
tensors hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from npusmith.ir import nodes as ir
from npusmith.ir.branches import branches
from npusmith.ir.launches import each_launch
from npusmith.ir.nodes import Program
from npusmith.lang.budget import Consts, bytes_of, length_of
from npusmith.lang.interp import run_host
from npusmith.target.chips import Chip

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Buffer:
    """One buffer in the unified buffer."""

    name: str
    length: int
    dtype: str
    copies: int
    bytes: int  # of all copies, each padded to whole blocks

    @property
    def words(self) -> str:
        times = f" x {self.copies} copies" if self.copies > 1 else ""
        return f"{self.name}: {self.length:,} x {self.dtype}{times} = {self.bytes:,} B"


@dataclass(frozen=True, slots=True)
class Facts:
    """What can be said of a program before it runs."""

    versions: tuple[tuple[Buffer, ...], ...]  # that have the unified buffer to themselves
    cores: tuple[int, ...]  # of each launch
    host: tuple[tuple[str, int | float], ...]  # arguments of the first launch
    tensors: tuple[tuple[str, int], ...]  # inputs and outputs, in bytes

    @property
    def ub(self) -> int:
        """Bytes of the version that takes the most."""
        return max((sum(item.bytes for item in row) for row in self.versions), default=0)

    @property
    def moved(self) -> int:
        """Bytes that pass at least once: each input in, each output out."""
        return sum(size for _, size in self.tensors)


def facts(program: Program, shapes: Mapping[str, Shape], chip: Chip) -> Facts:
    """`shapes`: of the inputs and outputs by name. Raises LangError where the host does."""
    consts = dict(program.consts)
    parts = list(each_launch(program))
    versions: dict[tuple[Buffer, ...], None] = {}
    for part in parts:
        for path in branches(part).paths():
            versions[tuple(_buffers(path, consts, chip))] = None
    launches = [run_host(part, chip, shapes) for part in parts]
    tensors = [
        (item.name, prod(shapes[item.name]) * item.dtype.bytes)
        for item in (*program.inputs, *program.outputs)
    ]
    host = tuple((name, _plain(value)) for name, value in launches[0].args.items())
    return Facts(tuple(versions), tuple(item.cores for item in launches), host, tuple(tensors))


def _buffers(path: Sequence[ir.Buffer], consts: Consts, chip: Chip) -> Iterator[Buffer]:
    for item in path:
        if item.memory is ir.Memory.UB:
            length, copies = length_of(item, consts) or 0, max(item.copies, 1)
            size = bytes_of(item, consts, chip)
            yield Buffer(item.name, length, item.dtype.value, copies, size)


def _plain(value: Any) -> int | float:
    return value if isinstance(value, int) else float(value)
