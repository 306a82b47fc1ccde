"""The host file, op_host/<op>.cpp: tiling function, shape inference, operator definition."""

from __future__ import annotations

from dataclasses import dataclass

from npusmith.errors import LowerError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Program
from npusmith.ir.spec import OpSpec, Port
from npusmith.lower.arithmetic import Site, helpers_of, show_dims, write_host
from npusmith.lower.lines import quoted
from npusmith.lower.names import camel, safe
from npusmith.lower.render import render
from npusmith.lower.served import Condition, input_conditions, output_conditions
from npusmith.lower.tiling import Tiling
from npusmith.target.chips import Chip


def _dim(shape: str, index: int) -> str:
    place = str(index) if index >= 0 else f"{shape}.GetDimNum() - {-index}"
    return f"{shape}.GetDim({place})"


TILING = Site(
    "{}Shape",
    _dim,
    lambda shape: f"{shape}.GetShapeSize()",
    lambda shape: f"{shape}.GetDimNum()",
    "tiling->",
    lambda condition: [f"if ({condition}) {{", "    return ge::GRAPH_FAILED;", "}"],
)


@dataclass(frozen=True, slots=True)
class _PortText:
    """A port in the operator definition and in shape inference."""

    name: str  # in OpDef
    shape: str  # the variable that holds its shape
    ge: str  # DT_FLOAT ...
    code: str  # of a log: float32 ...
    dims: list[str]  # what SetDim gets


def host_file(program: Program, spec: OpSpec, tiling: Tiling, chip: Chip) -> str:
    """The text of op_host/<op>.cpp for a lowered program."""
    check_ports(program, spec)
    host = write_host(program, tiling, chip, TILING)
    inputs = [_port(port, []) for port in spec.inputs]
    outputs = [_port(port, show_dims(port, spec, TILING)) for port in spec.outputs]
    served, given = input_conditions(spec, TILING), output_conditions(spec, TILING)
    dims = "\n".join(dim for port in outputs for dim in port.dims)
    sizes = "\n".join([dims, *(item.holds for item in (*served, *given))])
    helpers = dict.fromkeys([*host.helpers, *helpers_of(sizes)])
    return render(
        "host.cpp.j2",
        op=spec,
        tiling=tiling,
        host=host,
        inputs=inputs,
        outputs=outputs,
        helpers=helpers,
        served=[_test(item) for item in served],
        tests=_tests(inputs, served, given),
        shapes=lambda lead="", tail=", ": tail.join(f"{lead}{port.shape}" for port in inputs),
        unknown="unknown" in dims,
    )


def _test(item: Condition) -> str:
    return f"IsLegal({item.holds}, {quoted(item.name)}, {item.holder}, {quoted(item.legal)})"


def _tests(inputs: list[_PortText], served: list[Condition], given: list[Condition]) -> list[str]:
    """What the tiling function asks before it computes anything."""
    shapes = ", ".join(port.shape for port in inputs)
    types = [
        f"IsType({quoted(port.name)}, context->GetInputDesc({at})->GetDataType(), ge::{port.ge}, "
        f"{quoted(port.code)})"
        for at, port in enumerate(inputs)
    ]
    whole = [f"Serves({shapes})"] if served else []
    return [*whole, *map(_test, given), *types] if served or given else []


def _port(port: Port, dims: list[str]) -> _PortText:
    shape = f"{camel(port.name)}Shape"
    # a dimension that is not known yet is -1, a rank that is not known one dimension of -2
    known = [dim if dim.isdecimal() else f"unknown ? -1 : {dim}" for dim in dims]
    return _PortText(safe(port.name), shape, port.dtype.ge, port.dtype.value, known)


def check_ports(program: Program, spec: OpSpec) -> None:
    """Raise lower-port unless ports and kernel tensors are the same."""
    for ports, tensors in ((spec.inputs, program.inputs), (spec.outputs, program.outputs)):
        wanted = [(port.name, port.dtype) for port in ports]
        seen = [(tensor.name, tensor.dtype) for tensor in tensors]
        if wanted != seen:
            raise LowerError(
                "lower-port",
                f"operator {spec.name!r} and kernel {program.kernels[0].name!r} differ",
                seen=f"ports {_listed(wanted)}; tensors {_listed(seen)}",
            )


def _listed(items: list[tuple[str, DType]]) -> str:
    return ", ".join(f"{name} {dtype.value}" for name, dtype in items) or "none"
