"""No function takes more than eight parameters: more of them stand in a record of options."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import npusmith

ROOT = Path(npusmith.__file__).parent
MOST = 8


def functions(node: ast.AST, path: str, inside: str = "") -> Iterator[tuple[str, int]]:
    """Each function with the number of its parameters, self and cls not counted."""
    for item in ast.iter_child_nodes(node):
        if isinstance(item, ast.ClassDef):
            yield from functions(item, path, f"{item.name}.")
        elif isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            given = item.args
            names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            yield f"{path} {inside}{item.name}", len(names) - (names[:1] in (["self"], ["cls"]))
            yield from functions(item, path, inside)
        else:
            yield from functions(item, path, inside)


def test_functions_take_at_most_eight_parameters() -> None:
    found = {
        name: count
        for path in ROOT.rglob("*.py")
        for name, count in functions(
            ast.parse(path.read_text(encoding="utf-8")), path.relative_to(ROOT).as_posix()
        )
        if count > MOST
    }
    assert found == {}
