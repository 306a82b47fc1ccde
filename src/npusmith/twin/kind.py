"""On which cores a kernel runs: as its text declares it, else as the vendor's compiler deduces it.

Declared: `KERNEL_TASK_TYPE_DEFAULT(type)`, `KERNEL_TASK_TYPE(key, type)` for one tiling key, and
`__vector__`, `__cube__`, `__mix__(cubes, vectors)` at the entry. Deduced: only vector instructions
-> AIV_ONLY, only cube instructions -> AIC_ONLY, both -> MIX_AIC_1_2.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from pathlib import Path

from npusmith.sandbox.folder import files_beneath
from npusmith.target import apis
from npusmith.twin import scan, tiling


class Kind(IntEnum):
    """The kernel types of dav-2201; the numbers are those of KernelType in twin/launch.h."""

    AIV_ONLY = 0
    AIC_ONLY = 1
    MIX_AIV_1_0 = 2
    MIX_AIC_1_0 = 3
    MIX_AIC_1_1 = 4
    MIX_AIC_1_2 = 5

    @property
    def cube(self) -> bool:
        """Does it run on cube cores?"""
        return self not in (Kind.AIV_ONLY, Kind.MIX_AIV_1_0)

    @property
    def vector(self) -> bool:
        """Does it run on vector cores?"""
        return self not in (Kind.AIC_ONLY, Kind.MIX_AIC_1_0)


@dataclass(frozen=True, slots=True)
class Kinds:
    """The type of a kernel, and of the tiling keys that have their own."""

    default: Kind
    by_key: Mapping[int, Kind] = field(default_factory=dict)
    declared: bool = False

    @property
    def cube(self) -> bool:
        """Is there a launch that needs the kernel compiled for cube cores?"""
        return any(kind.cube for kind in (self.default, *self.by_key.values()))

    @property
    def vector(self) -> bool:
        """The same for vector cores."""
        return any(kind.vector for kind in (self.default, *self.by_key.values()))

    def of(self, key: int) -> Kind:
        """The type of a launch with this tiling key."""
        return self.by_key.get(key, self.default)


VECTOR = Kinds(Kind.AIV_ONLY)

_DEFAULT = re.compile(r"\bKERNEL_TASK_TYPE_DEFAULT\s*\(\s*KERNEL_TYPE_(\w+)\s*\)")
_BY_KEY = re.compile(r"\bKERNEL_TASK_TYPE\s*\(([^;{}]*?),\s*KERNEL_TYPE_(\w+)\s*\)")
_MIX = {(0, 1): Kind.MIX_AIV_1_0, (1, 0): Kind.MIX_AIC_1_0}
_MIX |= {(1, 1): Kind.MIX_AIC_1_1, (1, 2): Kind.MIX_AIC_1_2}
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_MOST_FILES = 200

# Names of the API table by their groups. What kernels of cube cores call as well says nothing.
_CUBE_GROUPS = ("cube",)
_VECTOR_GROUPS = (
    *("vector", "reduce", "compare", "layout", "sort", "math", "activation", "normalisation"),
    *("quant", "transform"),
)
_VECTOR_ONLY = (
    "SetVectorMask",
    "DataCopyPad",
)  # the latter moves between global memory and UB only
_EITHER = frozenset((
    *("Ceil", "Round", "Fill", "MakeLayout", "MakeShape", "MakeStride", "SetDeqScale"),
    *("SetMMColumnMajor", "SetMMRowMajor", "SetHF32TransMode"),
))  # fmt: skip


def _names(groups: tuple[str, ...]) -> list[str]:
    rows = (row for row in apis.ALL if row.group in groups)
    found = (name for row in rows for name in (row.name, *row.aka))
    return [name for name in found if name.isidentifier() and name not in _EITHER]


_OBJECT = re.compile(r"\bREGIST(?:ER)?_MATMUL_OBJ\s*\(")
_RAW_CUBE = re.compile(r"\b(?:mad|load_cbuf_to_c[ab]|copy_matrix_cc_to_gm)\s*\(")
_RAW_VECTOR = re.compile(
    r"(?<![\w.])(?:v(?:add|sub|mul|div|max|min|exp|conv|adds|muls|cadd)\w*)\s*\("
)


def _calls(names: Sequence[str], *, qualified: bool) -> re.Pattern[str]:
    """Calls of these functions: with AscendC:: in front, or as statements of their own."""
    head = r"\bAscendC\s*::\s*" if qualified else r"(?:[;{})]|\belse|\bdo)\s*"
    return re.compile(head + "(?:" + "|".join(names) + r")\s*(?:<[^;{}()]*>)?\s*\(")


@cache
def _cube_calls() -> tuple[re.Pattern[str], re.Pattern[str]]:
    names = _names(_CUBE_GROUPS)
    return _calls(names, qualified=True), _calls(names, qualified=False)


@cache
def _vector_calls() -> tuple[re.Pattern[str], re.Pattern[str]]:
    names = [*_names(_VECTOR_GROUPS), *_VECTOR_ONLY]
    return _calls(names, qualified=True), _calls(names, qualified=False)


def read_kinds(texts: Mapping[Path, str], kernel: Path) -> Kinds:
    """The types of the kernel in this file; its local includes are looked up in `texts`."""
    code = "\n".join(scan.blank(text) for text in _reached(texts, kernel))
    constants = tiling.find_constants([code])
    by_key = {
        key: Kind[name]
        for expression, name in _BY_KEY.findall(code)
        if name in Kind.__members__
        and (key := tiling.evaluate(expression.strip(), constants)) is not None
    }
    found = _declared(code)
    return Kinds(_deduced(code) if found is None else found, by_key, found is not None)


def file_kinds(path: Path, text: str, headers: Iterable[Path] = ()) -> Kinds:
    """The same for a source file by itself, with what lies beside it and these headers."""
    texts = {path: text}
    beside = [item for item in files_beneath(path.parent) if item.suffix == ".h"][:_MOST_FILES]
    for file in (*beside, *headers):
        with contextlib.suppress(OSError, UnicodeError):
            texts[file.resolve()] = file.read_text()
    return read_kinds(texts, path)


def _reached(texts: Mapping[Path, str], kernel: Path) -> Iterator[str]:
    """The kernel's text and, once each, those that it includes by a name in quotes."""
    todo, seen = [kernel], {kernel}
    while todo and len(seen) < _MOST_FILES:
        file = todo.pop(0)
        text = texts[file]
        yield text
        code = scan.blank(text, strings=False)
        for name in _INCLUDE.findall(code):
            near = _beside(texts, file.parent, name)
            if near is not None and near not in seen:
                seen.add(near)
                todo.append(near)


def _beside(texts: Mapping[Path, str], folder: Path, name: str) -> Path | None:
    exact = (folder / name).resolve()
    if exact in texts:
        return exact
    return next((file for file in texts if file.as_posix().endswith(f"/{name}")), None)


def entry_kinds(text: str) -> dict[str, Kind]:
    """The kernels of a source that say by a word at their entry where they run."""
    code = scan.blank(text)
    found = ((entry.name, _word(code, entry.offset)) for entry in scan.find_entries(code))
    return {name: kind for name, kind in found if kind is not None}


def _declared(code: str) -> Kind | None:
    for name in _DEFAULT.findall(code):
        if name in Kind.__members__:
            return Kind[name]
    words = (_word(code, entry.offset) for entry in scan.find_entries(code))
    found = {kind for kind in words if kind is not None}
    if not found:
        return None
    return found.pop() if len(found) == 1 else Kind.MIX_AIC_1_2  # each launch has its own then


def _word(code: str, name: int) -> Kind | None:
    """What stands between `__global__` and the name of a kernel."""
    head = code[max(code.rfind("__global__", 0, name), 0) : name]
    mix = re.search(r"\b__mix__\s*\(\s*(\d)\s*,\s*(\d)\s*\)", head)
    if mix:
        return _MIX.get((int(mix[1]), int(mix[2])))
    if "__cube__" in head:
        return Kind.AIC_ONLY
    return Kind.AIV_ONLY if "__vector__" in head else None


def _deduced(code: str) -> Kind:
    plain = bool(re.search(r"\busing\s+namespace\s+AscendC\b", code))
    cube = _has(code, _cube_calls(), plain) or bool(_RAW_CUBE.search(code))
    vector = _has(code, _vector_calls(), plain) or bool(_RAW_VECTOR.search(code))
    if _OBJECT.search(code):  # its two sides: messages from AIV, work on AIC
        cube = True
        vector = vector or not re.search(r"#\s*define\s+ASCENDC_CUBE_ONLY\b", code)
    if cube:
        return Kind.MIX_AIC_1_2 if vector else Kind.AIC_ONLY
    return Kind.AIV_ONLY


def _has(code: str, calls: tuple[re.Pattern[str], re.Pattern[str]], plain: bool) -> bool:
    return bool(calls[0].search(code) or (plain and calls[1].search(code)))
