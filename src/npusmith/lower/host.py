"""The host file, op_host/<op>.cpp: tiling function, shape inference, operator definition."""

from __future__ import annotations

from dataclasses import dataclass

from npusmith.errors import LowerError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Const, Dim, Program
from npusmith.ir.spec import OpSpec, Port
from npusmith.lower.arithmetic import Site, dims_of, helpers_of, show_dims, write_host
from npusmith.lower.names import camel, safe
from npusmith.lower.render import render
from npusmith.lower.tiling import Tiling
from npusmith.target.chips import Chip


def _dim(shape: str, index: int) -> str:
    place = str(index) if index >= 0 else f"{shape}.GetDimNum() - {-index}"
    return f"{shape}.GetDim({place})"


TILING = Site(
    "{}Shape",
    _dim,
    lambda shape: f"{shape}.GetShapeSize()",
    "tiling->",
    lambda condition: [f"if ({condition}) {{", "    return ge::GRAPH_FAILED;", "}"],
)


@dataclass(frozen=True, slots=True)
class _PortText:
    """A port in the operator definition and in shape inference."""

    name: str  # in OpDef
    shape: str  # the variable that holds its shape
    ge: str  # DT_FLOAT ...
    dims: list[str]
    computed: bool  # are dims more than copies of input dimensions?


def host_file(program: Program, spec: OpSpec, tiling: Tiling, chip: Chip) -> str:
    """The text of op_host/<op>.cpp for a lowered program."""
    check_ports(program, spec)
    host = write_host(program, tiling, chip, TILING)
    inputs = [_port(port, []) for port in spec.inputs]
    outputs = [_port(port, show_dims(port, spec, TILING)) for port in spec.outputs]
    dims = "\n".join(dim for port in outputs for dim in port.dims)
    helpers = dict.fromkeys([*host.helpers, *helpers_of(dims)])
    return render(
        "host.cpp.j2",
        op=spec,
        tiling=tiling,
        host=host,
        inputs=inputs,
        outputs=outputs,
        helpers=helpers,
        dims=dims,
        uses_std="std::" in "\n".join([*host.body, *host.fill, host.cores, dims]),
    )


def _port(port: Port, dims: list[str]) -> _PortText:
    computed = any(not isinstance(dim, Const | Dim) for dim in dims_of(port)) if dims else False
    return _PortText(safe(port.name), f"{camel(port.name)}Shape", port.dtype.ge, dims, computed)


def check_ports(program: Program, spec: OpSpec) -> None:
    """Raise lower-port unless ports and kernel tensors are the same."""
    for ports, tensors in ((spec.inputs, program.inputs), (spec.outputs, program.outputs)):
        wanted = [(port.name, port.dtype) for port in ports]
        seen = [(tensor.name, tensor.dtype) for tensor in tensors]
        if wanted != seen:
            raise LowerError(
                "lower-port",
                f"operator {spec.name!r} and kernel {program.kernel.name!r} differ",
                seen=f"ports {_listed(wanted)}; tensors {_listed(seen)}",
            )


def _listed(items: list[tuple[str, DType]]) -> str:
    return ", ".join(f"{name} {dtype.value}" for name, dtype in items) or "none"
