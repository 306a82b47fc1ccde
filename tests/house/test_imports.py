"""The arrows between the folders, and no cycle anywhere, read from the text of the modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import npusmith
from npusmith.cli.layout_page import PARTS, read_imports

ROOT = Path(npusmith.__file__).parent

# What a folder may import, besides itself and the package's version: docs/contracts.md as a table.
_BASE = {"errors", "ir", "target", "version"}
_TASK = _BASE | {"lang", "lower", "twin", "sandbox", "task"}
ARROWS: dict[str, set[str]] = {
    "errors": set(),
    "ir": {"errors"},
    "target": {"errors", "ir"},
    "sandbox": {"errors"},
    "store": {"errors", "sandbox", "version"},
    "lang": _BASE,
    "lower": _BASE | {"lang"},
    "twin": _BASE | {"sandbox"},
    "task": _TASK | {"device"},
    "plan": _TASK | {"timing"},
    "report": _TASK | {"timing"},
    "bench": _TASK | {"store", "device", "timing", "report"},
    "writers": _TASK | {"plan", "bench"},
    "timing": _TASK,
    "device": _BASE | {"twin"},
    "pipeline": _TASK | {"report", "store", "timing", "bench", "writers"},
    "backward": _TASK | {"pipeline", "writers"},
    "profiling": _TASK | {"timing", "report", "store", "pipeline"},
    "knowledge": _TASK | {"store", "timing"},
    "agent": _TASK
    | {"plan", "report", "store", "pipeline", "timing", "profiling"}
    | {"bench", "writers", "knowledge"},
    "lm": _TASK | {"bench", "agent"},
    "train": _TASK
    | {"plan", "store", "timing", "device", "pipeline", "bench", "writers", "agent", "lm"},
    "cli": _TASK
    | {"plan", "report", "store", "pipeline", "timing", "profiling"}
    | {"agent", "backward", "bench", "cann", "knowledge", "lm", "open_writer", "train", "writers"},
    "cann": _TASK | {"timing"},
    "pickled": {"errors", "task"},
    "api": _TASK
    | {"pipeline", "profiling", "writers", "pickled", "device", "bench", "open_writer", "store"},
    "open_writer": {"errors", "target", "bench", "writers", "agent", "lm"},
    "torch_backend": {"api", "errors", "plan", "task"},
    "version": set(),
    "__main__": {"cli"},
    "__init__": {"version", "api", "torch_backend"},
}


def modules() -> dict[str, Path]:
    """Dotted name to file."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = ("npusmith", *path.relative_to(ROOT).with_suffix("").parts)
        found[".".join(part for part in parts if part != "__init__") or "npusmith"] = path
    return found


MODULES = modules()


def imports(tree: ast.AST) -> Iterator[str]:
    """Modules of the package that the text imports, also inside functions, not for types only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("npusmith"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("npusmith"):
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in MODULES else str(node.module)
        else:
            yield from imports(node)


GRAPH = {
    name: set(imports(ast.parse(path.read_text(encoding="utf-8"))))
    for name, path in MODULES.items()
}


def part(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def test_every_folder_stands_in_the_table_of_arrows() -> None:
    assert {part(name) for name in MODULES} <= set(ARROWS)


@pytest.mark.parametrize("folder", sorted({part(name) for name in MODULES}))
def test_a_folder_imports_only_what_its_arrows_allow(folder: str) -> None:
    allowed = ARROWS[folder] | {folder}
    wrong = [
        f"{name} imports {target}"
        for name, targets in GRAPH.items()
        if part(name) == folder
        for target in sorted(targets)
        if part(target) not in allowed
    ]
    assert not wrong


def test_no_relative_import_hides_from_this_test() -> None:
    relative = [
        name
        for name, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not relative


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert find_cycle(GRAPH) == []


def test_no_folders_import_each_other_in_a_circle() -> None:
    folders: dict[str, set[str]] = {}
    for name, targets in GRAPH.items():
        folders.setdefault(part(name), set()).update(map(part, targets))
    assert find_cycle(folders) == []


def test_a_circle_is_found_where_there_is_one() -> None:
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """The first circle found, as the path around it; empty when there is none."""
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for target in sorted(graph.get(name, ())):
            if target != name and (cycle := visit(target, [*path, name])):
                return cycle
        done.add(name)
        return []

    for name in sorted(graph):
        if cycle := visit(name, []):
            return cycle
    return []


def test_the_page_of_the_layout_names_folders_in_the_order_of_their_imports() -> None:
    arrows, taken = read_imports()
    order = list(PARTS)
    later = {
        part: [name for name in arrows[part] if name in order[order.index(part) :]]
        for part in order
    }
    assert {part: names for part, names in later.items() if names} == {}
    folders = {path.name for path in ROOT.iterdir() if (path / "__init__.py").is_file()}
    assert folders <= set(PARTS)
    assert {item.module for item in taken} >= {"errors", "ir.nodes", "target.chips"}
