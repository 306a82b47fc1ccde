"""Names of the tile program as C++ identifiers."""

from __future__ import annotations

import re

_KEYWORD_LIST = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    class compl const const_cast constexpr continue decltype default delete do double dynamic_cast
    else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual
    void volatile wchar_t while xor xor_eq
"""

# What the emitted files use themselves, and macros of the headers that they include.
_TAKEN_LIST = """
    pipe tiling workspace context platform half bfloat16_t AscendC Init Process Sync event
    Infinity ScalarMin ScalarMax FloatMin FloatMax CeilDiv AlignUp FloorDiv FloorMod
    Running RunningSum RunningProduct RunningFold SumBlocks MaxBlocks MinBlocks
    RowFold FoldRows SpreadRows
    LoadMatrix LoadFractals LoadImage LoadSquares LoadBias Multiply StoreMatrix SyncCubes
    op blockDim stream
    NULL EOF INFINITY NAN M_PI M_E TRUE FALSE main
    made executor guard workspaceBytes
    userBytes workspaces ubTotal vectorCores cubeCores ubBytes block_idx block_num
"""
_RESERVED = frozenset(_KEYWORD_LIST.split()) | frozenset(_TAKEN_LIST.split())
_STAGE = re.compile(r"(CopyIn|Split|Compute|CopyOut)\d+")


def camel(name: str) -> str:
    """`rows_per_core` -> `rowsPerCore`; names in capitals (constants) stay as they are."""
    if name.isupper():
        return name
    head, *rest = [part for part in name.split("_") if part] or ["v"]
    return head[:1].lower() + head[1:] + "".join(part[:1].upper() + part[1:] for part in rest)


def pascal(name: str) -> str:
    """`rows_per_core` -> `RowsPerCore`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_") if part) or "V"


def safe(name: str) -> str:
    """`name` unless C++ or the emitted files mean something else by it."""
    reserved = name in _RESERVED or _STAGE.fullmatch(name)
    return f"{name}_" if reserved else name


class Scope:
    """Gives every name of one C++ scope an identifier of its own."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self._taken: set[str] = set()

    def add(self, name: str, spelling: str = "") -> str:
        """The identifier for `name`: `spelling` if given, else its camel case."""
        if name in self._given:
            return self._given[name]
        text = safe(spelling or camel(name))
        while text in self._taken:
            text += "_"
        self._taken.add(text)
        self._given[name] = text
        return text

    def __getitem__(self, name: str) -> str:
        return self._given[name]
