"""Explicit specialisations of a member template inside its class, which g++ before 14 refuses.

    template <int32_t CORE = g_coreType> void Run(P p);   // a declaration without a body
    template <> void Run<AscendC::AIC>(P p) { ... }

The declaration goes, and each specialisation becomes a template that exists for its value only:

    template <int32_t TwinChoice = g_coreType, ::std::enable_if_t<(TwinChoice == AscendC::AIC), int> = 0>
    void Run(P p) { ... }

Lines stay lines. Anything that does not look like this is left as it is.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from npusmith.twin import scan

_MARK = re.compile(r"\btemplate\s*<\s*>")
_NAME = re.compile(r"(\boperator\s*\(\s*\)|\b[A-Za-z_]\w*)\s*<([^<>;{}()]*)>\s*\(")
_PRIMARY = r"\btemplate\s*<([^<>;{{}}]*)>([^;{{}}<>]*?){name}\s*\([^;{{}}]*?\)[^;{{}}()]*;"
_PARAMETER = re.compile(r"\s*([\w:\s]+?)\s+\w+\s*=\s*([^,]+?)\s*$")
_CLASS = re.compile(r"\b(?:class|struct)\b[^;{}()]*$")
_MOST = 400  # specialisations in one file


def rewrite(text: str) -> str:
    """The text with such specialisations in a form that every compiler takes."""
    code = scan.blank(text)
    edits: list[tuple[int, int, str]] = []
    blocks = _Blocks(code)
    for mark in list(_MARK.finditer(code))[:_MOST]:
        edits += _edits(code, mark, blocks)
    for start, end, new in sorted(set(edits), reverse=True):
        lost = text.count("\n", start, end)
        text = text[:start] + new + "\n" * lost + text[end:]
    return text


class _Blocks:
    """Which pair of braces encloses an offset."""

    def __init__(self, code: str) -> None:
        self._starts: list[int] = []
        self._ends: dict[int, int] = {}
        open_: list[int] = []
        for match in re.finditer(r"[{}]", code):
            if match.group() == "{":
                self._starts.append(match.start())
                open_.append(match.start())
            elif open_:
                self._ends[open_.pop()] = match.start()

    def around(self, offset: int) -> tuple[int, int] | None:
        for start in reversed(self._starts[: bisect_right(self._starts, offset)]):
            end = self._ends.get(start, -1)
            if end > offset:
                return start, end
        return None


def _edits(code: str, mark: re.Match[str], blocks: _Blocks) -> list[tuple[int, int, str]]:
    scope = blocks.around(mark.start())
    stop = re.compile(r"[;{]").search(code, mark.end())
    if scope is None or stop is None or not _in_class(code, scope[0]):
        return []
    name = _NAME.search(code, mark.end(), stop.start())
    if name is None or re.match(r"\s*(?:class|struct)\b", code[mark.end() :]):
        return []
    spelled = re.sub(r"\s+", "", name.group(1))
    wanted = r"\boperator\s*\(\s*\)" if spelled == "operator()" else rf"\b{re.escape(spelled)}"
    primary = re.compile(_PRIMARY.format(name=wanted)).search(code, scope[0], scope[1])
    parameter = _PARAMETER.match(primary.group(1)) if primary else None
    if primary is None or parameter is None:
        return []
    kind, default = parameter.group(1), parameter.group(2)
    test = f"(TwinChoice == ({name.group(2).strip()}))"
    head = f"template <{kind} TwinChoice = {default}, ::std::enable_if_t<{test}, int> = 0>"
    arguments = code.index("<", name.end(1)), code.index(">", name.end(1)) + 1
    return [
        (primary.start(), primary.end(), ""),
        (mark.start(), mark.end(), head),
        (*arguments, ""),
    ]


def _in_class(code: str, brace: int) -> bool:
    before = max(code.rfind(sign, 0, brace) for sign in ";{}")
    return _CLASS.search(code[before + 1 : brace]) is not None
