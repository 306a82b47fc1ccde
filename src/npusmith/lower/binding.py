"""PyTorch bindings: pybind.cpp calls the installed operator, direct/ launches the kernel itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Program
from npusmith.ir.spec import OpSpec, Port
from npusmith.lower.arithmetic import Site, helpers_of, show_dims, write_host
from npusmith.lower.kernel import KernelText
from npusmith.lower.model import MOST_ARGUMENTS
from npusmith.lower.names import Scope, safe
from npusmith.lower.render import render
from npusmith.lower.served import Condition, input_conditions
from npusmith.lower.tiling import Tiling
from npusmith.target.chips import Chip

# A tensor of that name would make a division of every `#include <torch/extension.h>`.
_SPACES = ("torch", "at", "c10")
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

_ACL_TYPES = {  # aclDataType
    DType.FLOAT32: "ACL_FLOAT",
    DType.FLOAT16: "ACL_FLOAT16",
    DType.BFLOAT16: "ACL_BF16",
    DType.INT8: "ACL_INT8",
    DType.UINT8: "ACL_UINT8",
    DType.INT16: "ACL_INT16",
    DType.UINT16: "ACL_UINT16",
    DType.INT32: "ACL_INT32",
    DType.UINT32: "ACL_UINT32",
    DType.INT64: "ACL_INT64",
    DType.BOOL: "ACL_BOOL",
}

BINDING = Site(
    "{}",
    lambda tensor, index: f"{tensor}.size({index})",
    lambda tensor: f"{tensor}.numel()",
    lambda tensor: f"{tensor}.dim()",
    "tiling.",
    lambda condition: [f'TORCH_CHECK(!({condition}), "no tiling for this shape: {condition}");'],
)


@dataclass(frozen=True, slots=True)
class _Argument:
    """A tensor of the operator, in C++."""

    port: str  # in PyTorch's schema and in messages
    name: str
    dense: str  # the same, contiguous
    argument: str  # the same, as aclnn takes it
    dims: str  # of an output, as a list for braces
    type: str
    acl: str


@dataclass(frozen=True, slots=True)
class _Binding:
    """What both bindings say of an operator."""

    name: str
    type: str
    scope: str  # the namespace of its functions, with ::, where there are several operators
    about: str
    schema: str
    returned: str
    inputs: list[_Argument]
    outputs: list[_Argument]
    served: list[Condition]
    helpers: list[str]
    listed: str  # the list that has all inputs, where a schema has no room for so many


def binding_file(specs: Sequence[OpSpec]) -> str:
    """pybind.cpp: each registered operator through its aclnn function."""
    bindings = [_binding(spec, scoped=len(specs) > 1) for spec in specs]
    helpers = list(dict.fromkeys(name for item in bindings for name in item.helpers))
    return render("pybind.cpp.j2", bindings=bindings, helpers=helpers)


def direct_binding(program: Program, spec: OpSpec, tiling: Tiling, chip: Chip) -> str:
    """direct/pybind.cpp: the host function's arithmetic, then a launch on PyTorch's stream."""
    host = write_host(program, tiling, chip, BINDING)
    b = _binding(spec, host.helpers)
    inputs = [f"Address({item.dense})" for item in b.inputs]
    return render(
        "direct.cpp.j2",
        op=spec,
        b=b,
        tiling=tiling,
        host=host,
        addresses=[*inputs, *(f"Address({item.name})" for item in b.outputs)],
        launcher=_launcher(spec, tiling),
    )


def direct_kernel(spec: OpSpec, tiling: Tiling, kernel: KernelText) -> str:
    """direct/<op>.asc: an entry that takes the tiling by value, and what launches it."""
    inputs, outputs, _ = _arguments(spec)
    return render(
        "direct.asc.j2",
        op=spec,
        tensors=[*inputs, *outputs],
        tiling=tiling,
        launcher=_launcher(spec, tiling),
        kernel=kernel,
    )


def _launcher(spec: OpSpec, tiling: Tiling) -> str:
    """The head of the host function that launches the kernel."""
    inputs, outputs, _ = _arguments(spec)
    pointers = [f"uint8_t *{item.name}" for item in (*inputs, *outputs)]
    rest = [*pointers, "uint8_t *workspace", f"{tiling.struct} tiling"]
    return f'extern "C" void {spec.name}_do(uint32_t blockDim, void *stream, {", ".join(rest)})'


def _binding(spec: OpSpec, helpers: Iterable[str] = (), *, scoped: bool = False) -> _Binding:
    inputs, outputs, listed = _arguments(spec)
    served = input_conditions(spec, BINDING)
    text = "\n".join([*(item.dims for item in outputs), *(item.holds for item in served)])
    several, results = len(outputs) > 1, ", ".join(["at::Tensor"] * len(outputs))
    given = ", ".join(f"Tensor {item.port}" for item in inputs)
    if listed:
        given = f"Tensor[] {listed}"
    made = ", ".join(["Tensor"] * len(outputs))
    return _Binding(
        name=spec.name,
        type=spec.op_type,
        scope=f"{spec.name}::" if scoped else "",
        about=spec.summary or spec.op_type,
        schema=f"{spec.name}({given}) -> {f'({made})' if several else made}",
        returned=f"std::tuple<{results}>" if several else results,
        inputs=inputs,
        outputs=outputs,
        served=served,
        helpers=list(dict.fromkeys([*helpers, *helpers_of(text)])),
        listed=listed,
    )


def _arguments(spec: OpSpec) -> tuple[list[_Argument], list[_Argument], str]:
    """Inputs, outputs and the name of _Binding.listed, none of which hides another."""
    scope = Scope()
    for space in _SPACES:
        scope.add(f"{space}::", space)
    for port in (*spec.inputs, *spec.outputs):
        scope.add(port.name)
    return (
        [_argument(port, scope, "") for port in spec.inputs],
        [
            _argument(port, scope, ", ".join(show_dims(port, spec, BINDING)))
            for port in spec.outputs
        ],
        scope.add("listed", "tensors") if len(spec.inputs) > MOST_ARGUMENTS else "",
    )


def _argument(port: Port, scope: Scope, dims: str) -> _Argument:
    name = scope[port.name]
    return _Argument(
        port=safe(port.name),
        name=name,
        dense=scope.add(f"{port.name}:dense", f"{name}Dense"),
        argument=scope.add(f"{port.name}:argument", f"{name}Argument"),
        dims=dims,
        type=_SCALAR_TYPES[port.dtype],
        acl=_ACL_TYPES[port.dtype],
    )
