"""`bindings.json` in a project: where the operator's inputs come from when forward runs, what it
serves, and what comes out.

`constants.json` beside it holds those that forward makes of its own numbers.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from npusmith.errors import LangError, NpusmithError, Place
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Expr, Program
from npusmith.ir.returned import check, plain
from npusmith.ir.spec import Constant, OpSpec, Port, Source, dims_of
from npusmith.ir.text import show_expr
from npusmith.lang import parse_condition

BINDINGS, CONSTANTS = "bindings.json", "constants.json"
_MOST_BYTES = {CONSTANTS: 16 << 20}  # else a megabyte


class _Row(BaseModel):
    """One input of the operator."""

    model_config = ConfigDict(strict=True, extra="forbid")

    name: str
    dtype: DType
    source: Source
    position: int
    target: str


class _Result(BaseModel):
    """One output of the operator; each dimension is an expression over the inputs' sizes."""

    model_config = ConfigDict(strict=True, extra="forbid")

    name: str
    dtype: DType
    dims: list[str]


class _Bindings(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    operator: str
    inputs: list[_Row]
    serves: list[str] | None = None  # OpSpec.legal, as expressions of the tile language
    outputs: list[_Result] = []
    returns: str = ""
    single_output: bool = True  # of projects before 0.2
    literals: list[int | float | bool | str | None] | None = None


def bindings_text(spec: OpSpec) -> str:
    """What the file says of that operator."""
    rows = [
        {
            "name": port.name,
            "dtype": port.dtype.value,
            "source": port.source.value,
            "position": port.position,
            "target": port.target,
        }
        for port in spec.inputs
    ]
    said: dict[str, object] = {"operator": spec.name, "inputs": rows}
    if spec.legal is not None:
        said["serves"] = [show_expr(expr) for expr in spec.legal]
    said["outputs"] = [
        {"name": port.name, "dtype": port.dtype.value, "dims": [*map(show_expr, dims_of(port))]}
        for port in spec.outputs
    ]
    said["returns"] = spec.returns or plain(len(spec.outputs))
    if spec.literals is not None:
        said["literals"] = [*spec.literals]
    return json.dumps(said, indent=2) + "\n"


def constants_text(constants: tuple[Constant, ...]) -> str:
    """What constants.json says."""
    rows = TypeAdapter(tuple[Constant, ...]).dump_python(constants, mode="json")
    return json.dumps(rows, indent=2) + "\n"


def bindings_of(name: str) -> str:
    """The file of one among several operators."""
    return f"{name}.{BINDINGS}"


def read_bindings(project: Path, file: str = BINDINGS) -> OpSpec | None:
    """The operator's inputs as the project's file names them; None when it has none.

    `file`: that of one among several operators.
    Raises file-unusable and binding-unknown: the file may have come with the project from anywhere.
    """
    path = project / file
    if not path.is_file():
        return None
    try:
        read = _Bindings.model_validate_json(_text(path))
    except ValidationError as error:
        raise _unreadable(path, "bindings", error) from error
    ports = (
        Port(row.name, row.dtype, (), row.source, row.position, row.target) for row in read.inputs
    )
    results = (
        Port(item.name, item.dtype, (), dims=_conditions(path, item.dims) or ())
        for item in read.outputs
    )
    return OpSpec(
        read.operator, tuple(ports), tuple(results), legal=_conditions(path, read.serves),
        returns=_returns(path, read),
        literals=None if read.literals is None else tuple(read.literals),
        constants=_constants(project / CONSTANTS),
    )  # fmt: skip


def _returns(path: Path, read: _Bindings) -> str:
    count = len(read.outputs)
    if not read.returns:
        return plain(count) if read.single_output or count > 1 else "(0,)"
    try:
        check(read.returns, count)
    except ValueError as error:
        raise NpusmithError(
            "binding-unknown", f"{path} has outputs that cannot be read", seen=str(error)
        ) from error
    return read.returns


def _constants(path: Path) -> tuple[Constant, ...]:
    if not path.is_file():
        return ()
    try:
        return TypeAdapter(tuple[Constant, ...]).validate_json(_text(path))
    except ValidationError as error:
        raise _unreadable(path, "constants", error) from error


def _unreadable(path: Path, kind: str, error: ValidationError) -> NpusmithError:
    first = error.errors()[0]
    seen = ": ".join([*map(str, first["loc"]), first["msg"]])[:300]
    return NpusmithError("binding-unknown", f"{path} cannot be read as {kind}", seen=seen)


def _conditions(path: Path, texts: list[str] | None) -> tuple[Expr, ...] | None:
    try:
        return None if texts is None else tuple(parse_condition(text) for text in texts)
    except LangError as error:
        raise NpusmithError(
            "binding-unknown", f"{path} has a condition that cannot be read", seen=error.message
        ) from error


def plain_spec(program: Program) -> OpSpec:
    """Ports for a program without a task: outputs take the shape of the first input."""
    first = program.inputs[0].name if program.inputs else ""
    return OpSpec(
        name=_operator(program),
        inputs=tuple(
            Port(item.name, item.dtype, (), position=index)
            for index, item in enumerate(program.inputs)
        ),
        outputs=tuple(Port(item.name, item.dtype, (), target=first) for item in program.outputs),
    )


def _operator(program: Program) -> str:
    """Kernels of one operator are called by its name and a number: `gelu_1`, `gelu_2`."""
    first = program.kernels[0].name
    return first if len(program.kernels) == 1 else re.sub(r"_\d+$", "", first)


def _text(path: Path) -> str:
    size = path.stat().st_size
    if size > _MOST_BYTES.get(path.name, 1 << 20):
        raise NpusmithError(
            "file-unusable", f"{path} is too large", Place(str(path)), seen=f"{size:,} bytes"
        )
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise NpusmithError(
            "file-unusable", f"{path} is not UTF-8 text", Place(str(path)), seen=str(error)
        ) from error
