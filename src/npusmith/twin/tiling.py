"""Tiling structs read from text: their layout, the kernel-side definition, and how two differ.

Two styles exist. In the older one the host declares a class with BEGIN_TILING_DATA_DEF and the
kernel's struct is generated from it; in the newer one host and kernel share a plain struct.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from npusmith.errors import Place, TwinError
from npusmith.twin import conditions, scan

_BYTES: dict[str, int] = {
    **dict.fromkeys(("bool", "char", "int8_t", "uint8_t", "signed char", "unsigned char"), 1),
    **dict.fromkeys(("short", "int16_t", "uint16_t", "half", "bfloat16_t", "float16_t"), 2),
    **dict.fromkeys(("int", "unsigned", "unsigned int", "int32_t", "uint32_t", "float"), 4),
    **dict.fromkeys(("float32_t",), 4),
    **dict.fromkeys(("long", "unsigned long", "long long", "unsigned long long"), 8),
    **dict.fromkeys(("int64_t", "uint64_t", "double", "size_t"), 8),
}
_MACRO = re.compile(r"\bBEGIN_TILING_DATA_DEF\s*\(\s*(\w+)\s*\)")
_MOST_STRUCTS = 2000  # of each kind, in one file
_MOST_NESTED = 50
_MOST_BODY = 1 << 16  # characters of a plain struct
_FIELD = re.compile(r"\bTILING_DATA_FIELD_DEF(_ARR|_STRUCT)?\s*\(")
_PLAIN = re.compile(r"\b(?:struct|class)\s+(?:alignas\s*\([^)]*\)\s*)?(\w+)\s*(?:final\s*)?\{")
_CONSTANT = re.compile(
    r"\b(?:constexpr|const)\s+[\w:\s]{0,200}?\b(\w+)\s*=\s*([^;]{1,2000});"
    r"|^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(.+)$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Field:
    """A member: `count` is 0 for a scalar, else the length of the array."""

    name: str
    type: str
    count: int
    offset: int
    bytes: int

    def __str__(self) -> str:
        length = f"[{self.count}]" if self.count else ""
        return f"{self.type} {self.name}{length} at byte {self.offset}"


@dataclass(frozen=True, slots=True)
class Struct:
    """A tiling struct. `bytes` is 0 when the text does not tell the whole layout."""

    name: str
    fields: tuple[Field, ...]
    bytes: int
    align: int
    file: Path
    line: int
    macro: bool


Sources = Mapping[Path, str]


def find_structs(sources: Sources, macros: conditions.Macros | None = None) -> dict[str, Struct]:
    """Every tiling class and plain struct of these texts, by name; `macros` as of `active`."""
    codes = {file: conditions.active(scan.blank(text), macros) for file, text in sources.items()}
    constants = _constants(codes.values())
    read: dict[str, _Read] = {}
    for file, code in codes.items():
        heads = (_MACRO.finditer(code), _PLAIN.finditer(code))
        known = {**constants, **_constants([code])}  # two headers may give one name two values
        some = [match for found_by in heads for match in islice(found_by, _MOST_STRUCTS)]
        for match in sorted(some, key=lambda match: match.start()):
            place = Place(str(file), scan.line_of(code, match.start()))
            if match.re is _MACRO:
                rows: list[_Row] | None = list(_macro_rows(code, match.end(), known, place))
            else:
                rows = _plain_rows(code, match.end() - 1, known)
            read.setdefault(match.group(1), _Read(rows, match.re is _MACRO, file, place.line))
    found: dict[str, Struct] = {}
    for name in read:
        _place(name, read, found, frozenset())
    return found


@dataclass(frozen=True, slots=True)
class _Read:
    """A struct before it is laid out; `rows` None: not all of its text is understood."""

    rows: list[_Row] | None
    macro: bool
    file: Path
    line: int


def _place(
    name: str, read: Mapping[str, _Read], found: dict[str, Struct], users: frozenset[str]
) -> None:
    """Lay out a struct, behind those that are its members, wherever they stand."""
    if name in found or name in users:
        return
    struct = read[name]
    if len(users) < _MOST_NESTED:
        for inner, _, _ in struct.rows or []:
            if inner in read:
                _place(inner, read, found, users | {name})
    found[name] = _lay_out(name, struct.rows, found, struct.macro, struct.file, struct.line)


def emit_struct(struct: Struct) -> str:
    """The kernel-side definition of a macro-declared class: same offsets, same size."""
    lines = [f"struct alignas(8) {struct.name} {{"]
    for field in struct.fields:
        length = f"[{field.count}]" if field.count else ""
        lines.append(f"  {field.type} {field.name}{length};")
    return "\n".join([*lines, "};"])


def differences(host: Struct, kernel: Struct) -> list[str]:
    """What a kernel would read wrongly, in words; empty when the layouts agree or are unknown."""
    if not host.bytes or not kernel.bytes:
        return []
    said = []
    if host.bytes != kernel.bytes:
        said.append(f"host {host.name} has {host.bytes} bytes, kernel {kernel.name} {kernel.bytes}")
    same_names = {f.name for f in host.fields} == {f.name for f in kernel.fields}
    for at in range(max(len(host.fields), len(kernel.fields))):
        ours = host.fields[at] if at < len(host.fields) else None
        theirs = kernel.fields[at] if at < len(kernel.fields) else None
        if ours and theirs and _agree(ours, theirs, same_names):
            continue
        said.append(f"host: {ours or 'nothing'}; kernel: {theirs or 'nothing'}")
    return said


def default_class(code: str, op: str) -> str:
    """The class that REGISTER_TILING_DATA_CLASS names for an operator; "" when there is none."""
    found = re.search(rf"\bREGISTER_TILING_DATA_CLASS\s*\(\s*{op}\s*,\s*(?:\w+::)*(\w+)\s*\)", code)
    return found.group(1) if found else ""


def host_type(code: str) -> str:
    """T of `GetTilingData<T>()` in blanked host text; "" when that is not used."""
    found = re.search(r"\bGetTilingData\s*<\s*(?:\w+::)*(\w+)\s*>", code)
    return found.group(1) if found else ""


def kernel_type(code: str) -> str:
    """The struct as which blanked kernel text reads its tiling; "" for the registered class."""
    patterns = (
        r"\bREGISTER_TILING_DEFAULT\s*\(\s*(?:\w+::)*(\w+)\s*\)",
        r"\bGET_TILING_DATA_WITH_STRUCT\s*\(\s*(?:\w+::)*(\w+)\s*,",
        r"\(\s*(?:const\s+)?__gm__\s+(?:\w+::)*(\w+)\s*\*\s*\)\s*\(?\s*tiling",
        r"<\s*(?:const\s+)?__gm__\s+(?:\w+::)*(\w+)\s*\*\s*>\s*\(\s*tiling",
    )
    for pattern in patterns:
        found = re.search(pattern, code)
        if found and found.group(1) not in _BYTES:
            return found.group(1)
    return ""


# ---- rows: (type, name, count) with count 0 for a scalar and -1 for an unknown length

_Row = tuple[str, str, int]


def _macro_rows(
    code: str, start: int, constants: Mapping[str, str], place: Place
) -> Iterable[_Row]:
    end = code.find("END_TILING_DATA_DEF", start)
    for match in _FIELD.finditer(code, start, end if end > 0 else len(code)):
        args = scan.split_args(code[match.end() : scan.closing(code, match.end() - 1)])
        form = match.group(1) or ""
        if form == "_ARR" and len(args) == 3:
            count = evaluate(args[1], constants)
            if count is None:
                raise TwinError(
                    "tiling-array",
                    f"the length of tiling array {args[2]} is not a constant of this project",
                    Place(place.file, scan.line_of(code, match.start())),
                    seen=args[1],
                )
            yield args[0], args[2], count
        elif len(args) == 2:
            yield args[0], args[1], 0


def _plain_rows(code: str, opening: int, constants: Mapping[str, str]) -> list[_Row] | None:
    """None when the body holds more than data members (then its layout is not told here)."""
    end = scan.closing(code, opening, _MOST_BODY)
    if end < 0:
        return None
    rows: list[_Row] = []
    body = re.sub(r"\b(?:public|private|protected)\s*:", "", code[opening + 1 : end])
    for statement in filter(None, (part.strip() for part in body.split(";"))):
        if re.search(r"[(){}#]|\b(?:static|using|virtual|enum|union|typedef)\b", statement):
            return None
        found = re.match(r"((?:const\s+)?[\w:\s]*[\w:])\s+(\w.*)$", statement, re.DOTALL)
        if found is None:
            return None
        for name in scan.split_args(found.group(2)):
            row = _declarator(found.group(1), name.split("=")[0].strip(), constants)
            if row is None:
                return None
            rows.append(row)
    return rows


def _declarator(type_name: str, text: str, constants: Mapping[str, str]) -> _Row | None:
    found = re.fullmatch(r"(\w+)((?:\s*\[[^\]]*\])*)", text)
    if found is None:
        return None
    count = 0
    for length in re.findall(r"\[([^\]]*)\]", found.group(2)):
        value = evaluate(length, constants)
        if value is None:
            return None
        count = max(count, 1) * value
    return _bare(type_name), found.group(1), count


def _bare(type_name: str) -> str:
    words = re.sub(r"\b(?:const|std|struct)\b|::", " ", type_name).split()
    return " ".join(words)


def _lay_out(
    name: str,
    rows: list[_Row] | None,
    known: Mapping[str, Struct],
    macro: bool,
    file: Path,
    line: int,
) -> Struct:
    fields: list[Field] = []
    offset, align, whole = 0, 8 if macro else 1, rows is not None
    for type_name, field, count in rows or []:
        nested = known.get(type_name)
        size = _BYTES.get(_bare(type_name), nested.bytes if nested else 0)
        unit = nested.align if nested else size
        whole = whole and size > 0
        offset = -(-offset // max(unit, 1)) * max(unit, 1)
        fields.append(Field(field, type_name, count, offset, size * max(count, 1)))
        offset += size * max(count, 1)
        align = max(align, unit)
    total = -(-offset // align) * align
    return Struct(name, tuple(fields), total if whole else 0, align, file, line, macro)


def _agree(host: Field, kernel: Field, same_names: bool) -> bool:
    if (host.offset, host.bytes, max(host.count, 1)) != (
        kernel.offset,
        kernel.bytes,
        max(kernel.count, 1),
    ):
        return False
    if same_names and host.name != kernel.name:
        return False
    floats = ("float", "float32_t", "double")
    return (_bare(host.type) in floats) == (_bare(kernel.type) in floats)


# ---- constant expressions

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


def find_constants(codes: Iterable[str]) -> dict[str, str]:
    """Names with a constant value (constexpr, #define) and the text of it, for `evaluate`."""
    return _constants(codes)


def _constants(codes: Iterable[str]) -> dict[str, str]:
    table: dict[str, str] = {}
    for code in codes:
        for match in _CONSTANT.finditer(code):
            name, value = match.group(1) or match.group(3), match.group(2) or match.group(4)
            table.setdefault(name, value.strip())
    return table


def evaluate(text: str, constants: Mapping[str, str], depth: int = 0) -> int | None:
    """The value of an integer constant expression; None when it uses something unknown."""
    text = re.sub(r"\b(\d[\da-fA-FxX]*)[uUlL]+\b", r"\1", text.replace("'", "")).strip()
    text = re.sub(r"\b(?:static_cast\s*<[^>]*>|\w+_t)\s*\(", "(", text)
    text = re.sub(r"\b\w+::", "", text)
    try:
        return _value(ast.parse(text, mode="eval").body, constants, depth)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None


def _value(node: ast.expr, constants: Mapping[str, str], depth: int) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name) and node.id in constants and depth < 20:
        return evaluate(constants[node.id], constants, depth + 1)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _value(node.left, constants, depth), _value(node.right, constants, depth)
        if left is not None and right is not None and abs(left) < 1 << 40 and abs(right) < 1 << 40:
            if isinstance(node.op, ast.LShift) and right > 62:
                return None
            return _OPERATORS[type(node.op)](left, right)
    return None
