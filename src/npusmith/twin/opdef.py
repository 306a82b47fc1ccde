"""What host code declares about its operator, read from the text: enough to compile the kernel.

The truth is what the compiled host code registers, and the runner checks against that; this reading
names the ports for the DTYPE_ macros before anything has been compiled.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from npusmith.ir.opname import entry_name
from npusmith.twin import scan, typelists

_CALL = re.compile(r"\b(?:this\s*->\s*)?(Input|Output|Attr)\s*\(\s*\"([^\"]+)\"\s*\)")
_HELPER = re.compile(
    r"\b(\w+)\s*\(\s*(?:const\s+)?(?:char|std::string)\s*(?:const\s*)?[*&]?\s*(\w+)\s*[,)][^;{}]*\{"
)
_MOST_HELPERS = 500
_MOST_PORTS = 1000  # inputs, outputs and attributes
_MOST_CHAIN = 1 << 14  # characters of one port's declaration
_OVERRIDE = re.compile(r"\"(opFile|opInterface)\.value\"\s*,\s*\"(\w+)\"")
_OP_ADD = re.compile(r"\bOP_ADD\s*\(\s*([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class PortText:
    """A declared input or output; `kind` is REQUIRED, OPTIONAL or DYNAMIC."""

    name: str
    kind: str
    types: tuple[str, ...]  # "DT_FLOAT16", ...; empty when they are not written out here
    contiguous: bool = False  # AutoContiguous: strided tensors are copied before the call


@dataclass(frozen=True, slots=True)
class OpText:
    """A declared operator."""

    type: str
    inputs: tuple[PortText, ...]
    outputs: tuple[PortText, ...]
    attrs: tuple[str, ...]
    files: tuple[str, ...] = ()  # of the kernel, as the build looks for them: without ending
    entries: tuple[str, ...] = ()  # names that the build may look for in them

    @property
    def ports(self) -> tuple[PortText, ...]:
        return (*self.inputs, *self.outputs)

    def is_ref(self, output: PortText) -> bool:
        """An output called like an input shares its memory."""
        return any(port.name == output.name for port in self.inputs)


def find_ops(code: str) -> list[str]:
    """The operator types that blanked host text registers."""
    return _OP_ADD.findall(code)


def read_op(text: str, type_name: str, shared: str = "") -> OpText:
    """The declaration of one operator out of host text (comments may still be in).

    `shared`: text with functions that declare a port by its name, for a library's operators.
    """
    code = scan.blank(text, strings=False)
    body = _with_helpers(
        _class_body(code, type_name), scan.blank(f"{shared}\n{text}", strings=False)
    )
    inputs: dict[str, PortText] = {}
    outputs: dict[str, PortText] = {}
    attrs: dict[str, None] = {}
    lists = typelists.find_lists(code)
    for match in islice(_CALL.finditer(body), _MOST_PORTS):
        if _is_config(body, match.start()):
            continue
        chain = body[match.end() : _statement_end(body, match.end())]
        role, name = match.groups()
        if role == "Attr":
            attrs[name] = None
        else:
            ports = inputs if role == "Input" else outputs
            auto = "AutoContiguous" in chain
            ports.setdefault(name, PortText(name, _kind(chain), _types(chain, lists), auto))
    return OpText(
        type_name, tuple(inputs.values()), tuple(outputs.values()), tuple(attrs),
        _named(body, "opFile", type_name), _named(body, "opInterface", type_name),
    )  # fmt: skip


def _with_helpers(body: str, code: str) -> str:
    """The class with calls of such functions replaced by what they declare: `Add("x")` becomes
    `Input("x")...;` where Add is `void Add(const char *name) { Input(name)...; }`."""
    for helper in islice(_HELPER.finditer(code), _MOST_HELPERS):
        name, parameter = helper.groups()
        end = scan.closing(code, helper.end() - 1, _MOST_CHAIN)
        inside = code[helper.end() : end]
        declared = re.search(rf"\b(?:Input|Output|Attr)\s*\(\s*{parameter}\s*\)", inside)
        if end < 0 or declared is None:
            continue
        chain = inside[declared.start() : _statement_end(inside, declared.start())]
        head = re.compile(rf'(?<![\w.]){name}\s*\(\s*("[^"]+")[^;()]*\)')
        body = head.sub(functools.partial(_declared, chain, parameter), body)
    return body


def _declared(chain: str, parameter: str, call: re.Match[str]) -> str:
    """`Input(name).DataType(...)` with the name that a call gives."""
    return re.sub(rf"\(\s*{parameter}\s*\)", f"({call[1]})", chain, count=1)


def _named(body: str, key: str, type_name: str) -> tuple[str, ...]:
    """What the type gives, and what the configurations of chips say instead (ExtendCfgInfo)."""
    found = [name for other, name in _OVERRIDE.findall(body) if other == key]
    return tuple(dict.fromkeys([entry_name(type_name), *found]))


def _class_body(code: str, name: str) -> str:
    found = re.search(rf"\bclass\s+{name}\b[^;{{]{{0,2000}}\{{", code)
    if found is None:
        return code
    end = scan.closing(code, found.end() - 1)
    return code[found.end() : end if end > 0 else len(code)]


def _is_config(body: str, at: int) -> bool:
    """`config.Input("x")` describes a chip's variant, not the operator."""
    return re.search(r"(?<!this->)[\w\])]\s*\.\s*$", body[max(at - 200, 0) : at]) is not None


def _statement_end(body: str, start: int) -> int:
    end = body.find(";", start, start + _MOST_CHAIN)
    return min(len(body), start + _MOST_CHAIN) if end < 0 else end


def _kind(chain: str) -> str:
    found = re.search(r"\bParamType\s*\(\s*(?:ops::)?(?:Option::)?(\w+)", chain)
    return found.group(1) if found else "REQUIRED"


def _types(chain: str, lists: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    found = re.search(r"\bDataType(?:List)?\s*\(\s*(?:\{([^}]*)\}|(\w+)\s*\))", chain)
    if found is None:
        return ()
    if found.group(2):
        return lists.get(found.group(2), ())
    return tuple(re.findall(r"\bDT_\w+", found.group(1)))
