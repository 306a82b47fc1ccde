"""The header of an operator's aclnn functions, as the operator's build makes it, for bindings."""

from __future__ import annotations

from npusmith.twin.opdef import OpText, PortText


def aclnn_header(op: OpText) -> str:
    """`aclnn<Op>GetWorkspaceSize(...)` and `aclnn<Op>(...)` over include/bind/aclnn.hpp.

    Tensors have the type that the definition fixes; an attribute may be any value.
    """
    own = [port for port in op.outputs if not op.is_ref(port)]
    kinds = "".join(f"typename T{at}, " for at in range(len(op.attrs))).removesuffix(", ")
    given = [
        *(_parameter(port) for port in op.inputs),
        *(f"T{at} {_name(name)}" for at, name in enumerate(op.attrs)),
        *(_parameter(port) for port in own),
    ]
    names = [_name(item) for item in (*_names(op.inputs), *op.attrs, *_names(own))]
    parameters = ", ".join([*given, "uint64_t *workspaceSize", "aclOpExecutor **executor"])
    function = f"aclnn{op.type}"
    return f"""#pragma once
#include "pytorch_npu_helper.hpp"

{f"template <{kinds}>" if kinds else "inline"}
aclnnStatus {function}GetWorkspaceSize({parameters}) {{
  return npusmith::Prepare({", ".join(["workspaceSize", "executor", *names])});
}}

inline aclnnStatus {function}(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                              aclrtStream) {{
  return npusmith::Launch(&npusmith::kHere, "{function}", workspace, workspaceSize, executor);
}}
"""


def _names(ports: tuple[PortText, ...] | list[PortText]) -> list[str]:
    return [port.name for port in ports]


def _name(name: str) -> str:
    """An identifier that no macro and no word of C++ is."""
    return f"{name}_given"


def _parameter(port: PortText) -> str:
    handle = "aclTensorList" if port.kind == "DYNAMIC" else "aclTensor"
    return f"const {handle} *{_name(port.name)}"
