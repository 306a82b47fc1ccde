"""PyTorch bindings: pybind.cpp calls the installed operator, direct/ launches the kernel itself."""

from __future__ import annotations

from dataclasses import dataclass

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Program
from npusmith.ir.spec import OpSpec, Port
from npusmith.lower.arithmetic import Site, helpers_of, show_dims, write_host
from npusmith.lower.kernel import write_kernel
from npusmith.lower.names import camel, safe
from npusmith.lower.render import render
from npusmith.lower.tiling import Tiling
from npusmith.target.chips import Chip

_SCALAR_TYPES = {
    DType.FLOAT32: "at::kFloat",
    DType.FLOAT16: "at::kHalf",
    DType.BFLOAT16: "at::kBFloat16",
    DType.INT8: "at::kChar",
    DType.UINT8: "at::kByte",
    DType.INT16: "at::kShort",
    DType.UINT16: "at::kUInt16",
    DType.INT32: "at::kInt",
    DType.UINT32: "at::kUInt32",
    DType.INT64: "at::kLong",
    DType.BOOL: "at::kBool",
}

BINDING = Site(
    "{}",
    lambda tensor, index: f"{tensor}.size({index})",
    lambda tensor: f"{tensor}.numel()",
    "tiling.",
    lambda condition: [f'TORCH_CHECK(!({condition}), "no tiling for this shape: {condition}");'],
)


@dataclass(frozen=True, slots=True)
class _Argument:
    """A tensor of the Python call."""

    name: str
    dims: str  # of an output, as a braced list
    type: str


def binding_file(spec: OpSpec) -> str:
    """pybind.cpp: the registered operator through its aclnn function."""
    inputs, outputs = _arguments(spec)
    dims = "\n".join(item.dims for item in outputs)
    return render(
        "pybind.cpp.j2",
        op=spec,
        inputs=inputs,
        outputs=outputs,
        given=[f"const at::Tensor &{item.name}" for item in inputs],
        helpers=helpers_of(dims),
    )


def direct_binding(program: Program, spec: OpSpec, tiling: Tiling, chip: Chip) -> str:
    """direct/pybind.cpp: the host function's arithmetic, then a launch on PyTorch's stream."""
    inputs, outputs = _arguments(spec)
    host = write_host(program, tiling, chip, BINDING)
    dims = "\n".join(item.dims for item in outputs)
    return render(
        "direct.cpp.j2",
        op=spec,
        inputs=inputs,
        outputs=outputs,
        tiling=tiling,
        host=host,
        given=[f"const at::Tensor &{item.name}Given" for item in inputs],
        addresses=[f"Address({item.name})" for item in (*inputs, *outputs)],
        launcher=_launcher(spec, tiling),
        helpers=dict.fromkeys([*host.helpers, *helpers_of(dims)]),
    )


def direct_kernel(program: Program, spec: OpSpec, tiling: Tiling) -> str:
    """direct/<op>.asc: an entry that takes the tiling by value, and what launches it."""
    inputs, outputs = _arguments(spec)
    return render(
        "direct.asc.j2",
        op=spec,
        tensors=[*inputs, *outputs],
        tiling=tiling,
        launcher=_launcher(spec, tiling),
        kernel=write_kernel(program, spec, tiling),
    )


def _launcher(spec: OpSpec, tiling: Tiling) -> str:
    """The head of the host function that launches the kernel."""
    inputs, outputs = _arguments(spec)
    pointers = [f"uint8_t *{item.name}" for item in (*inputs, *outputs)]
    rest = [*pointers, "uint8_t *workspace", f"{tiling.struct} tiling"]
    return f'extern "C" void {spec.name}_do(uint32_t blockDim, void *stream, {", ".join(rest)})'


def _arguments(spec: OpSpec) -> tuple[list[_Argument], list[_Argument]]:
    return (
        [_Argument(_name(port), "", _SCALAR_TYPES[port.dtype]) for port in spec.inputs],
        [
            _Argument(_name(port), ", ".join(show_dims(port, spec, BINDING)), _type(port))
            for port in spec.outputs
        ],
    )


def _name(port: Port) -> str:
    return safe(camel(port.name))


def _type(port: Port) -> str:
    return _SCALAR_TYPES[port.dtype]
