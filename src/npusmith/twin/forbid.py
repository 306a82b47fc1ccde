"""C++ that AI cores do not have, found in the text and in the compiler's call graph.

Documented as missing on the device: run-time recursion, new and malloc, virtual functions, RTTI,
exceptions, the standard library's containers, files. The host compiler accepts them all; host code
of the same file may use them, so only what a kernel reaches counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from npusmith.errors import Place, TwinError
from npusmith.twin import scan
from npusmith.twin.toolchain import INCLUDE

_LINE = re.compile(r"^(node|edge): \{ (.*)\}$", re.M)
_WORD = re.compile(r'(\w+): "((?:[^"\\]|\\.)*)"')
_SPOT = re.compile(r"(?:^|\\n)((?:[^\\]|\\[^n])+?):(\d+):\d+(?:\\n|$)")
_DEVICE = re.compile(r"__aicore__|__global__|\baicore\b")
# What a C library computes in software; the scalar unit has a root, not these.
_MATH = (
    "(?:exp|exp2|expm1|log|log2|log10|log1p|pow|cbrt|hypot|sin|cos|tan|asin|acos|atan|atan2|sinh|"
    "cosh|tanh|asinh|acosh|atanh|erf|erfc|tgamma|lgamma)[fl]?"
)
_FORBIDDEN = re.compile(
    r"\b(?:new|delete|throw|try|typeid|dynamic_cast|malloc|calloc|realloc|free|fopen)\b"
    r"|\b(?:v?fork|exec[lv]p?e?|system|popen|open|socket|connect|_?exit|_Exit|abort)\s*\("
    r"|\bstd\s*::\s*(?:vector|string|map|set|list|deque|function|shared_ptr|unique_ptr|un\w+)\b"
    rf"|\b(?:__builtin_)?(?:{_MATH})\s*\("
)
_NAMED = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_OPENING = re.compile(r"\s*(?:const|noexcept|override|final|\s){0,4}(?::[^{};]{0,4000})?\{")
_CALLED = re.compile(r"(?<![\w.:>])(\w+)\s*(?:<[^;(){}]{0,200}>)?\s*\(")
_THIS = re.compile(r"\bthis\s*->\s*")
_VIRTUAL = re.compile(r"[^;{}\n]{0,200}\bvirtual\b[^;{}]{0,400}")
_GLOBAL = re.compile(
    r"^[ \t]*static\s+(?:volatile\s+)?__gm__\s+[\w:]+\s+(\w+)\s*"
    r"(?:\[[^;=\]]{0,60}\]\s*)?(?:=|;|\{)",
    re.M,
)
_KEYWORDS = ("if", "for", "while", "switch", "return", "catch", "sizeof", "decltype", "alignas")
_MOST_FUNCTIONS = 20000  # looked at in one file
_MOST_PARAMETERS = 1 << 14  # characters
_LAUNCHED = "N4twin6Direct"  # the closure that runs a launched kernel
_CALLS = (
    (re.compile(r"^_Zn[wa]|^(?:malloc|calloc|realloc|aligned_alloc)$"), "allocates memory"),
    (re.compile(r"^_Zd[la]|^free$"), "frees memory"),
    (re.compile(r"^__cxa_(?:throw|rethrow|allocate_exception)|^_ZSt\d+__throw_"), "throws"),
    (re.compile(r"^__dynamic_cast$|^__cxa_bad_typeid$"), "asks for a type at run time"),
    (re.compile(r"^(?:fopen|open|open64|read|write|fread|fwrite)$"), "does file IO"),
    (re.compile(r"^(?:v?fork|exec[lv]p?e?|system|popen)$"), "starts a process"),
    (re.compile(r"^(?:socket|connect)$"), "opens a connection"),
    (re.compile(r"^(?:_?exit|_Exit|abort)$"), "ends the process"),
    (re.compile(rf"^(?:__builtin_)?{_MATH}$"), "calls the C library's mathematics"),
)


@dataclass(slots=True)
class Graph:
    """Who calls whom, by linker name, and where each function and each call stands."""

    spots: dict[str, Place] = field(default_factory=dict)
    calls: dict[str, list[tuple[str, Place]]] = field(default_factory=dict)


def check_text(texts: Mapping[Path, str]) -> None:
    """TwinError device-cpp for what the text alone shows: virtual functions of the device."""
    for file, text in texts.items():
        if "virtual" in text:
            _check_virtual(file, text)


def global_variables(texts: Mapping[Path, str]) -> frozenset[str]:
    """Names of variables that are declared to lie in global memory, as counters of cores do."""
    return frozenset(name for text in texts.values() for name in _GLOBAL.findall(scan.blank(text)))


def suspicious(texts: Mapping[Path, str]) -> bool:
    """Is a call graph worth its price? True whenever device code may break a rule."""
    calls: dict[str, set[str]] = {}
    for text in texts.values():
        for head, name, body in _functions(scan.blank(text)):
            if not _DEVICE.search(head):
                continue
            if _FORBIDDEN.search(body):
                return True
            calls.setdefault(name, set()).update(_CALLED.findall(_THIS.sub("", body)))
    graph = {name: [other for other in named if other in calls] for name, named in calls.items()}
    return next(_cycles(graph), "") != ""


def check_graph(file: Path, entries: Iterable[str]) -> None:
    """TwinError device-cpp for what kernels reach in a call graph that g++ wrote.

    `entries`: names of the functions through which kernels are entered.
    """
    graph = _read(file.read_text(errors="replace"))
    reached = _reach(graph, _is_entry(tuple(entries)))
    _check_calls(graph, reached)
    known = {name: [target for target, _ in graph.calls[name]] for name in reached}
    for name in _cycles(known):
        if _is_users(graph.spots.get(name, Place())):
            raise _error("a device function calls itself", graph.spots[name])


def _functions(code: str) -> Iterator[tuple[str, str, str]]:
    """Definitions in blanked text: what stands before the name, the name, the body."""
    for match in islice(_NAMED.finditer(code), _MOST_FUNCTIONS):
        if match.group(1) in _KEYWORDS:
            continue
        end = scan.closing(code, match.end() - 1, _MOST_PARAMETERS)
        after = _OPENING.match(code, end + 1) if end >= 0 else None
        if after is None:
            continue
        close = scan.closing(code, after.end() - 1)
        last = max(code.rfind(letter, 0, match.start()) for letter in ";}{")
        body = code[after.end() : close if close > 0 else len(code)]
        yield code[max(last, 0) : match.start()], match.group(1), body


def _read(text: str) -> Graph:
    graph = Graph()
    for kind, body in _LINE.findall(text):
        words = dict(_WORD.findall(body))
        spot = _spot(words.get("label", ""))
        if kind == "node":
            graph.spots[_name(words["title"])] = spot
        else:
            source, target = _name(words["sourcename"]), _name(words["targetname"])
            graph.calls.setdefault(source, []).append((target, spot))
            graph.calls.setdefault(target, [])
    return graph


def _name(title: str) -> str:
    """Local functions have their file in front; a complete constructor is its base one."""
    return re.sub(r"([CD])1(?=E)", r"\g<1>2", title.rpartition(":")[2])


def _spot(label: str) -> Place:
    found = _SPOT.search(label)
    return Place(found.group(1), int(found.group(2))) if found else Place()


def _is_entry(names: tuple[str, ...]) -> Callable[[str], bool]:
    marks = tuple(f"{len(name)}{name}" for name in names)

    def is_entry(name: str) -> bool:
        launched = _LAUNCHED in name and "_FUN" in name
        return name in names or launched or any(mark in name for mark in marks)

    return is_entry


def _reach(graph: Graph, is_entry: Callable[[str], bool]) -> dict[str, Place]:
    """Functions that kernels reach, not by way of ours; each with a place in the user's text."""
    reached = {name: graph.spots.get(name, Place()) for name in graph.calls if is_entry(name)}
    queue = list(reached)
    while queue:
        name = queue.pop()
        for target, spot in graph.calls[name]:
            place = graph.spots.get(target, Place())
            if target in reached or str(INCLUDE) in place.file:
                continue
            known = (place, spot, reached[name])
            reached[target] = next((item for item in known if _is_users(item)), reached[name])
            queue.append(target)
    return reached


def _is_users(place: Place) -> bool:
    return bool(place.file) and not place.file.startswith((str(INCLUDE), "/usr/", "npusmith "))


def _check_calls(graph: Graph, reached: Mapping[str, Place]) -> None:
    for name, place in reached.items():
        for target, spot in graph.calls[name]:
            what = next((said for pattern, said in _CALLS if pattern.search(target)), "")
            if what and str(INCLUDE) not in spot.file:
                raise _error(f"device code {what}", spot if _is_users(spot) else place)


def _cycles(calls: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Functions that can come back to themselves: depth first, without recursion of our own."""
    done: set[str] = set()
    for start in calls:
        path: list[str] = []
        on_path: set[str] = set()
        stack: list[tuple[str, bool]] = [(start, False)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                path.pop()
                on_path.discard(name)
                done.add(name)
            elif name in on_path:
                yield from path[path.index(name) :]
            elif name not in done and name in calls:
                path.append(name)
                on_path.add(name)
                stack.append((name, True))
                stack += [(target, False) for target in calls[name]]


def _check_virtual(file: Path, text: str) -> None:
    code = scan.blank(text)
    for match in islice(_VIRTUAL.finditer(code), _MOST_FUNCTIONS):
        if "__aicore__" in match.group():
            line = scan.line_of(text, match.start() + match.group().index("virtual"))
            raise _error("device code has a virtual function", Place(str(file), line))


def _error(message: str, place: Place) -> TwinError:
    return TwinError("device-cpp", message, place)
