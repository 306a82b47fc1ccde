"""What surrounds a kernel: the operator's name and ports, and how a module's forward calls it."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Const, Expr
from npusmith.ir.opname import entry_name, operator_type


class Source(str, Enum):
    """Where the value of an operator input comes from when ModelNew.forward runs."""

    USER = "user"  # an argument of forward
    PARAMETER = "parameter"  # self.<target>
    BUFFER = "buffer"  # self.<target>
    CONSTANT = "constant"  # a tensor constant lifted from the module: self.<target>


@dataclass(frozen=True, slots=True)
class Port:
    """One tensor input or output of the operator, with the shape of the task's first input set.

    `name` is the kernel's tensor name. For an input, `position` is the index among forward's
    tensor arguments (USER) and `target` the attribute path (otherwise). For an output, `dims` gives
    each dimension as an expression over input shapes (Dim, Size, Const, Binary ...), so that one
    operator serves many shapes.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    source: Source = Source.USER
    position: int = 0
    target: str = ""
    dims: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant:
    """A tensor that forward makes of its own numbers, so that the module has no attribute for it.

    `target`: the attribute path that capturing gave it. `data`: its elements, as bytes in base64.
    ValueError where these are not as many as the shape says.
    """

    target: str
    dtype: DType
    shape: tuple[int, ...]
    data: str

    def __post_init__(self) -> None:
        wanted = math.prod(self.shape) * self.dtype.numpy.itemsize
        if min(self.shape, default=0) < 0 or len(self._bytes) != wanted:
            raise ValueError(f"{len(self._bytes)} bytes where {wanted} belong")

    @property
    def _bytes(self) -> bytes:
        return base64.b64decode(self.data, validate=True)

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """Read-only."""
        return np.frombuffer(self._bytes, self.dtype.numpy).reshape(self.shape)


def dims_of(port: Port) -> tuple[Expr, ...]:
    """The dimensions of an output: as given, else those of the task's first inputs."""
    if port.dims or not port.shape:
        return port.dims
    return tuple(Const(size) for size in port.shape)


@dataclass(frozen=True, slots=True)
class OpSpec:
    """An operator: `name` of its kernel's file and entry (`softmax_custom`), ports in kernel order.

    Whatever name is given, it is put into the form that CANN's build makes out of `op_type`.
    `type` is given where somebody else's binding has fixed it.
    `task_source` is the text of the task file: model_new.py holds its Model and derives ModelNew.
    `legal`: what holds for every shape that the kernel serves, comparisons over input shapes
    (`y.shape[0] == x.shape[0]`), besides the ranks of the ports' shapes. Host code, bindings and
    the README refuse what breaks one of them. None: nothing is known, and nothing is checked.
    `literals`: the numbers that forward was captured with; ModelNew refuses others. None: the same.
    `constants`: what CONSTANT inputs take that the module does not hold; ModelNew registers them.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    task_source: str = ""
    returns: str = ""  # how forward hands over the outputs (returned.py); "": as `plain` says
    summary: str = ""
    type: str = ""
    legal: tuple[Expr, ...] | None = None
    literals: tuple[int | float | bool | str | None, ...] | None = None
    constants: tuple[Constant, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", entry_name(self.type or operator_type(self.name)))

    @property
    def op_type(self) -> str:
        """`softmax_custom` -> `SoftmaxCustom`, the name in OpDef and the msopgen JSON."""
        return self.type or operator_type(self.name)
