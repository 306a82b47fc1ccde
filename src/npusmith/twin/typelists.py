"""Lists of element types that host code keeps in variables, read from its text.

Host code writes `.DataType({ge::DT_FLOAT16, ge::DT_FLOAT})`, or names a vector that was defined
before: by its elements, by one element as often as another vector has any, or by putting another
vector's elements through a function with a switch.
"""

from __future__ import annotations

import re
from itertools import islice

from npusmith.twin import scan

Types = tuple[str, ...]  # "DT_FLOAT16", ...

_LIST = re.compile(
    r"\bvector\s*<\s*(?:ge\s*::\s*)?DataType\s*>\s*(\w+)\s*(?:=\s*)?[({]?\s*\{([^}]{0,4000})\}"
)
_FILLED = re.compile(
    r"\bvector\s*<\s*(?:ge\s*::\s*)?DataType\s*>\s*(\w+)\s*\(\s*(?:(\d{1,3})|(\w+)\s*\.\s*size\s*\(\s*\))"
    r"\s*,\s*(?:ge\s*::\s*)?(DT_\w+)\s*\)"
)
_MAPPED = re.compile(
    r"\b(\w+)\s*\.\s*c?begin\s*\(\s*\)[^;]{0,300}?\b(\w+)\s*\.\s*push_back\s*\(\s*(\w+)\s*\("
)
_CASE = re.compile(r"\bcase\s+(?:ge\s*::\s*)?(DT_\w+)\s*:|\breturn\s+(?:ge\s*::\s*)?(DT_\w+)\s*;")
_MOST = 500


def find_lists(code: str) -> dict[str, Types]:
    """Every vector of element types whose contents the blanked text tells, by name."""
    found = {
        match.group(1): tuple(re.findall(r"\bDT_\w+", match.group(2)))
        for match in islice(_LIST.finditer(code), _MOST)
    }
    for match in islice(_FILLED.finditer(code), _MOST):
        target, number, source, type_ = match.groups()
        found[target] = (type_,) * (int(number) if number else len(found.get(source, ())))
    for match in islice(_MAPPED.finditer(code), _MOST):
        source, target, function = match.groups()
        table = _switch(code, function)
        types = found.get(source)
        if types and table and all(name in table for name in types):
            found[target] = tuple(table[name] for name in types)
    return found


def _switch(code: str, function: str) -> dict[str, str]:
    """What a function of one element type returns for each case of its switch."""
    head = re.search(rf"\bDataType\s+{function}\s*\([^)]{{0,200}}\)\s*\{{", code)
    if head is None:
        return {}
    body = code[head.end() : scan.closing(code, head.end() - 1)]
    table: dict[str, str] = {}
    waiting: list[str] = []
    for case, result in _CASE.findall(body):
        if case:
            waiting.append(case)
            continue
        table.update(dict.fromkeys(waiting, result))
        waiting.clear()
    return table
