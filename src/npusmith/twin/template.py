"""Template tiling: which instances of a kernel ASCENDC_TPL_ARGS_DECL and _SEL ask for.

Read from text: the vendor's tools compile one kernel for each combination, and so does the twin.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from npusmith.errors import TwinError
from npusmith.twin import scan, tiling

_DECL = re.compile(r"\bASCENDC_TPL_ARGS_DECL\s*\(")
_SEL = re.compile(r"\bASCENDC_TPL_SEL\s*\(")
_HEAD = re.compile(r"^\s*ASCENDC_TPL_(\w+?)_(?:DECL|SEL)\s*\((.*)\)\s*$", re.DOTALL)
_GROUP = re.compile(r"^\s*ASCENDC_TPL_ARGS_SEL\s*\((.*)\)\s*$", re.DOTALL)
_VALUED = ("DTYPE", "DATATYPE", "FORMAT", "UINT", "BOOL")
_NAMESPACE = re.compile(r"\bnamespace\s+(\w+(?:\s*::\s*\w+)*)\s*\{")
_MOST = 512  # instances of one kernel; macros in one call
_MOST_TEXT = 1 << 20  # characters of a call with its macros replaced
_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^()\n]*)\)((?:\\\n|[^\n\\])*)", re.MULTILINE
)
_TYPES = {
    "C_DT_FLOAT": "float", "C_DT_FLOAT16": "half", "C_DT_BF16": "bfloat16_t",
    "C_DT_INT8": "int8_t", "C_DT_UINT8": "uint8_t", "C_DT_INT16": "int16_t",
    "C_DT_UINT16": "uint16_t", "C_DT_INT32": "int32_t", "C_DT_UINT32": "uint32_t",
    "C_DT_INT64": "int64_t", "C_DT_UINT64": "uint64_t", "C_DT_DOUBLE": "double",
    "C_DT_BOOL": "bool",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Instance:
    """One combination: the kernel's template arguments, and the values that its key encodes."""

    arguments: tuple[str, ...]
    values: tuple[str, ...]


def is_template(code: str) -> bool:
    """Does blanked kernel text choose its instances by template tiling?"""
    return _DECL.search(code) is not None


def namespaces(code: str) -> list[str]:
    """The namespace in which blanked kernel text declares its template arguments, as ::a::b."""
    found = _DECL.search(code)
    names: list[str] = []
    for head in _NAMESPACE.finditer(code, 0, found.start() if found else 0):
        end = scan.closing(code, head.end() - 1)
        if found and end > found.start():
            names.append(head.group(1))
    return ["::" + "::".join(names)] if names else []


def find_instances(code: str) -> list[Instance]:
    """Every instance that blanked kernel text selects; TwinError tiling-template."""
    macros = _macros(code)
    declared = _call(code, _DECL, macros)
    selected = _call(code, _SEL, macros)
    if not declared or not selected:
        raise TwinError("tiling-template", "ASCENDC_TPL_ARGS_DECL and ASCENDC_TPL_SEL go together")
    kinds = {name: kind for kind, name, _ in map(_split, declared[1:]) if kind in _VALUED}
    constants = tiling.find_constants([code])
    found: dict[Instance, None] = {}
    for group in selected:
        for instance in _instances(group, kinds, constants):
            found[instance] = None
            if len(found) > _MOST:
                raise TwinError("tiling-template", f"more than {_MOST} instances are selected")
    return list(found)


def _instances(
    group: str, kinds: Mapping[str, str], constants: Mapping[str, str]
) -> Iterator[Instance]:
    body = _GROUP.match(group)
    if body is None:
        raise TwinError("tiling-template", "ASCENDC_TPL_SEL takes ASCENDC_TPL_ARGS_SEL", seen=group)
    rows = [_split(part) for part in scan.split_args(body.group(1), angles=False) if part]
    values = {name: _values(kind, list(rest), constants) for kind, name, rest in rows}
    missing = [name for name in kinds if name not in values]
    if missing:
        raise TwinError("tiling-template", f"a selection leaves out {missing[0]}", seen=group[:80])
    for chosen in itertools.product(*(values[name] for name in kinds)):
        arguments = tuple(
            _TYPES.get(value, value) if kind == "DATATYPE" else value
            for value, kind in zip(chosen, kinds.values(), strict=True)
        )
        yield Instance(arguments, chosen)


def _values(kind: str, rest: list[str], constants: Mapping[str, str]) -> list[str]:
    rest = [item for item in rest if not item.startswith(("ASCENDC_TPL_INPUT", "ASCENDC_TPL_OUT"))]
    if kind != "UINT":
        return rest
    form = rest[0].removeprefix("ASCENDC_TPL_") if rest else ""
    if form == "UI_LIST":
        return rest[1:]
    count = tiling.evaluate(rest[1], constants) if len(rest) > 1 else None
    bounds = [tiling.evaluate(item, constants) for item in rest[2 : 2 + 2 * (count or 0)]]
    if form not in ("UI_RANGE", "UI_MIX") or count is None or None in bounds or len(bounds) % 2:
        raise TwinError("tiling-template", "values that are not known", seen=", ".join(rest)[:80])
    known = [bound for bound in bounds if bound is not None]
    spans = zip(known[::2], known[1::2], strict=True)
    listed = [str(value) for low, high in spans for value in range(low, min(high, low + _MOST) + 1)]
    return [*listed, *rest[2 + 2 * count :]]


def _split(part: str) -> tuple[str, str, tuple[str, ...]]:
    """`ASCENDC_TPL_UINT_SEL(n, ASCENDC_TPL_UI_LIST, 1)` -> UINT, n, the rest."""
    found = _HEAD.match(part)
    if found is None:
        raise TwinError("tiling-template", "not a template argument", seen=part[:80])
    args = scan.split_args(found.group(2), angles=False)
    rest = args[2:] if found.group(1) == "UINT" and "_DECL" in part.split("(")[0] else args[1:]
    return found.group(1), args[0] if args else "", tuple(item for item in rest if item)


def _call(code: str, head: re.Pattern[str], macros: Mapping[str, _Macro]) -> list[str]:
    found = head.search(code)
    end = scan.closing(code, found.end() - 1, 1 << 18) if found else -1
    if found is None or end < 0:
        return []
    text = _expanded(code[found.end() : end], macros)
    return [part for part in scan.split_args(text, angles=False) if part]


# ---- macros of the file that stand for several arguments


@dataclass(frozen=True, slots=True)
class _Macro:
    parameters: tuple[str, ...]
    body: str


def _macros(code: str) -> dict[str, _Macro]:
    """Those that take arguments."""
    found = {}
    for name, parameters, body in _MACRO.findall(code):
        names = tuple(item.strip().replace("...", "__VA_ARGS__") for item in parameters.split(","))
        found[name] = _Macro(names, body.replace("\\\n", " "))
    return found


def _expanded(text: str, macros: Mapping[str, _Macro]) -> str:
    """The text with calls of these macros replaced; TwinError tiling-template without an end."""
    if not macros:
        return text
    call = re.compile(rf"\b({'|'.join(map(re.escape, macros))})\s*\(")
    for _ in range(_MOST):
        found = call.search(text)
        if found is None:
            return text
        end = scan.closing(text, found.end() - 1, 1 << 16)
        if end < 0 or len(text) > _MOST_TEXT:
            break
        arguments = scan.split_args(text[found.end() : end], angles=False)
        text = text[: found.start()] + _filled(macros[found[1]], arguments) + text[end + 1 :]
    raise TwinError("tiling-template", "macros that never end", seen=text[:80])


def _filled(macro: _Macro, arguments: Sequence[str]) -> str:
    if macro.parameters[-1] == "__VA_ARGS__":
        last = len(macro.parameters) - 1
        arguments = [*arguments[:last], ", ".join(arguments[last:])]
    values = dict(zip(macro.parameters, arguments, strict=False))
    body = re.sub(r"\w+", lambda found: values.get(found[0], found[0]), macro.body)
    return re.sub(r"\s*##\s*", "", body)
