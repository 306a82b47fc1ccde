"""C++ that the vendor's compiler takes and g++ before 14 refuses, in a form that both take.

- Explicit specialisations of a member template inside its class: each becomes a template that
  exists for its value only, and the general one exists for the other values.

    template <int32_t CORE = g_coreType> void Run(P p);          // stays for other values
    template <> void Run<AscendC::AIC>(P p) { ... }              // becomes
    template <int32_t TwinChoice = g_coreType,
              ::std::enable_if_t<(TwinChoice == (AscendC::AIC)), int> = 0> void Run(P p) { ... }

- Explicit specialisations of a member class template: partial ones, by one more parameter.
- A static member whose value names a type that is called like it: `static constexpr bool X = X::A`
  takes the type by another name.
- Partial specialisations for `Sequence<T, Ns...>` whose pack is declared as `size_t... Ns`: as
  `T... Ns`.
- A constant that is read from the bits of another one, `const float X = *(float *)(&BITS)`: by
  `twin::Bits`, which a compiler computes.
- An array member of a class with constexpr constructors that do not name it: it starts at zero.

Lines stay lines. Anything that does not look like this is left as it is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass

from npusmith.twin import scan

_MARK = re.compile(r"\btemplate\s*<\s*>")
_NAME = re.compile(r"(\boperator\s*\(\s*\)|\b[A-Za-z_]\w*)\s*<([^<>;{}()]*)>\s*\(")
_CLASS_NAME = re.compile(r"\s*(?:class|struct)\s+(\w+)\s*<([^<>;{}()]*)>")
_PRIMARY = (
    r"\btemplate\s*<([^<>;{{}}]*)>([^;{{}}<>]*?){name}\s*\([^;{{}}]*?\)[^;{{}}()]*(?P<end>[;{{])"
)
_PARAMETER = re.compile(r"\s*([\w:\s]+?)\s+(\w+)\s*=\s*([^,]+?)\s*$")
_CLASS = re.compile(r".*\b(?:class|struct)\s+(?:\w+\s*::\s*)*(\w+)[^;{}()]*$", re.DOTALL)
_ARRAY = re.compile(r"(?<=[;{}:])\s*[\w:]+(?:\s+[\w:]+)*\s+\w+\s*\[[^\];{}]+\](?=\s*;)")
_MEANING = re.compile(
    r"\bstatic\s+constexpr\s+[\w:]+\s+(\w+)\s*=[^;=]{0,400}(?:==[^;=]{0,400})?"
    r"(?<![\w:.>])\1\s*::[^;]*;"
)
_PACK = re.compile(
    r"\btemplate\s*<[^<>;{}]*?\btypename\s+(\w+)\b[^<>;{}]*?((?:\bstd\s*::\s*)?\bsize_t)\s*\.\.\."
    r"\s*(\w+)\s*>\s*(?:struct|class)\s+\w+\s*<[^;{}]*?\w\s*<\s*\1\s*,[^<>;{}]*?\b\3\s*\.\.\.\s*>"
)
_BITS = re.compile(
    r"\b(?:const|constexpr)\s+(float|double|half|u?int\d+_t)\s+\w+\s*="
    r"\s*(\*\s*\(\s*(?:const\s+)?\1\s*\*\s*\)\s*(?:\(\s*&\s*(\w+)\s*\)|&\s*(\w+)))\s*;"
)
_MOST = 400  # of each kind in one file

Edit = tuple[int, int, str]


def rewrite(text: str) -> str:
    """The text in C++ that every C++17 compiler takes."""
    code = scan.blank(text)
    if not any(sign in code for sign in ("template", "constexpr", "*(", "* (")):
        return text
    blocks = _Blocks(code)
    edits = {
        *_functions(code, blocks),
        *_classes(code, blocks),
        *_arrays(code, blocks),
        *_meanings(code, blocks),
        *_packs(code),
        *_bits(code),
    }
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + "\n" * text.count("\n", start, end) + text[end:]
    return text


class _Blocks:
    """Which pair of braces encloses an offset."""

    def __init__(self, code: str) -> None:
        self.starts: list[int] = []
        self.ends: dict[int, int] = {}
        open_: list[int] = []
        for match in re.finditer(r"[{}]", code):
            if match.group() == "{":
                self.starts.append(match.start())
                open_.append(match.start())
            elif open_:
                self.ends[open_.pop()] = match.start()

    def around(self, offset: int) -> tuple[int, int] | None:
        for start in reversed(self.starts[: bisect_right(self.starts, offset)]):
            end = self.ends.get(start, -1)
            if end > offset:
                return start, end
        return None

    def inner(self, scope: tuple[int, int]) -> list[tuple[int, int]]:
        """The blocks that stand directly in this one."""
        found, last = [], scope[0]
        for start in self.starts[bisect_right(self.starts, scope[0]) :]:
            if start > scope[1]:
                break
            if start > last:
                last = self.ends.get(start, start)
                found.append((start, last))
        return found


def _class_of(code: str, brace: int) -> str:
    """The name of the class whose body opens here; "" for any other block."""
    before = max(code.rfind(sign, 0, brace) for sign in ";{}")
    found = _CLASS.match(code[before + 1 : brace])
    return found.group(1) if found else ""


# ---- member functions


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A specialisation: where its head and its arguments stand, and its value."""

    mark: tuple[int, int]
    arguments: tuple[int, int]
    value: str


def _functions(code: str, blocks: _Blocks) -> list[Edit]:
    groups: dict[tuple[tuple[int, int], str], list[_Chosen]] = defaultdict(list)
    for mark in list(_MARK.finditer(code))[:_MOST]:
        scope = blocks.around(mark.start())
        stop = re.compile(r"[;{]").search(code, mark.end())
        if scope is None or stop is None or not _class_of(code, scope[0]):
            continue
        name = _NAME.search(code, mark.end(), stop.start())
        if name is None or _CLASS_NAME.match(code, mark.end()):
            continue
        spelled = re.sub(r"\s+", "", name.group(1))
        arguments = code.index("<", name.end(1)), code.index(">", name.end(1)) + 1
        groups[scope, spelled].append(_Chosen(mark.span(), arguments, name.group(2).strip()))
    return [edit for key, chosen in groups.items() for edit in _choose(code, *key, chosen)]


def _choose(code: str, scope: tuple[int, int], name: str, chosen: list[_Chosen]) -> list[Edit]:
    wanted = r"\boperator\s*\(\s*\)" if name == "operator()" else rf"\b{re.escape(name)}"
    primary = re.compile(_PRIMARY.format(name=wanted)).search(code, scope[0], scope[1])
    parameter = _PARAMETER.match(primary.group(1)) if primary else None
    if primary is None or parameter is None:
        return []
    kind, own, default = parameter.groups()
    others = " && ".join(f"({own} != ({item.value}))" for item in chosen)
    rest = f", ::std::enable_if_t<{others}, int> = 0"
    edits: list[Edit] = [(primary.end(1), primary.end(1), rest)]
    for item in chosen:
        test = f"(TwinChoice == ({item.value}))"
        head = f"template <{kind} TwinChoice = {default}, ::std::enable_if_t<{test}, int> = 0>"
        edits += [(*item.mark, head), (*item.arguments, "")]
    return edits


# ---- member classes


def _classes(code: str, blocks: _Blocks) -> list[Edit]:
    edits: list[Edit] = []
    for mark in list(_MARK.finditer(code))[:_MOST]:
        scope = blocks.around(mark.start())
        name = _CLASS_NAME.match(code, mark.end())
        if scope is None or name is None or not _class_of(code, scope[0]):
            continue
        general = rf"\btemplate\s*<([^<>;{{}}]+)>\s*(?:class|struct)\s+{name.group(1)}\s*[;{{]"
        primary = re.compile(general).search(code, scope[0], mark.start())
        if primary is None:
            continue
        edits.append((primary.end(1), primary.end(1), ", class TwinAlways = void"))
        edits.append((*mark.span(), "template <class TwinAlways>"))
        edits.append((name.end(2), name.end(2), ", TwinAlways"))
    return edits


# ---- constexpr constructors


def _arrays(code: str, blocks: _Blocks) -> list[Edit]:
    edits: list[Edit] = []
    for start in blocks.starts[: _MOST * 20]:
        name, end = _class_of(code, start), blocks.ends.get(start, -1)
        if not name or end < 0:
            continue
        members = _own(code, blocks, (start, end))
        if not re.search(rf"\bconstexpr\b[\w\s\[\]]*\b{name}\s*\(", members):
            continue
        for array in _ARRAY.finditer(members):
            if not re.search(r"\b(?:static|using|return|typedef|constexpr)\b", array.group()):
                edits.append((start + array.end(), start + array.end(), "{}"))
    return edits


def _own(code: str, blocks: _Blocks, scope: tuple[int, int]) -> str:
    """A class's body with the insides of its blocks blanked."""
    text = code[scope[0] : scope[1]]
    for start, end in blocks.inner(scope):
        inside = re.sub(r"[^\n]", " ", code[start + 1 : end])
        text = text[: start + 1 - scope[0]] + inside + text[end - scope[0] :]
    return text


# ---- members that are called like the type of their value


def _meanings(code: str, blocks: _Blocks) -> list[Edit]:
    edits: list[Edit] = []
    for member in list(_MEANING.finditer(code))[:_MOST]:
        scope = blocks.around(member.start())
        if scope is None or not _class_of(code, scope[0]):
            continue
        name = member.group(1)
        head = max(code.rfind(sign, 0, scope[0]) for sign in ";{}") + 1
        edits.append((head, head, f" using TwinMeant_{name} = {name};"))
        for use in re.compile(rf"(?<![\w:.>]){name}(?=\s*::)").finditer(code, *scope):
            edits.append((*use.span(), f"TwinMeant_{name}"))
    return edits


def _packs(code: str) -> list[Edit]:
    return [(*found.span(2), found.group(1)) for found in list(_PACK.finditer(code))[:_MOST]]


# ---- constants


def _bits(code: str) -> list[Edit]:
    return [
        (*found.span(2), f"::twin::Bits<{found[1]}>({found[3] or found[4]})")
        for found in list(_BITS.finditer(code))[:_MOST]
    ]
