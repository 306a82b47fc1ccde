"""The rule for smaller shapes: `reduce_sizes(tree, text, most, size_of)`.

Sizes that may change are the whole numbers of a task's file, at least 8, that get_inputs() reads
and get_init_inputs() does not: module-level names (numbers, or products and tuples of them), and
numbers written in get_inputs() itself. The largest of them is halved, rounded up, down to 2; where
the reference does not take the new shapes, that number stays as it is. This goes on until the
inputs fit. Of a task with groups of inputs the smallest groups are kept.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_SMALLEST = 8  # numbers below this are no sizes
_FLOOR = 2
_STEPS = 400
_INPUTS, _INIT = "get_inputs", "get_init_inputs"
_ANY_ERROR = (Exception,)


@dataclass(slots=True)
class _Size:
    """A number in the text that may shrink."""

    name: str
    line: int
    start: int
    end: int
    value: int
    first: int
    fixed: bool = False


def reduce_sizes(
    tree: ast.Module, text: str, most: int, size_of: Callable[[str], int]
) -> tuple[str, list[str], int]:
    """The text with smaller numbers, what was changed, and the bytes of its inputs.

    `size_of(text)` gives the bytes and raises for shapes that the reference does not take.
    """
    sizes = list(_sizes(tree))
    best, size = text, size_of(text)
    for _ in range(_STEPS):
        free = [item for item in sizes if not item.fixed and item.value > _FLOOR]
        if size <= most or not free:
            break
        largest = max(free, key=lambda item: item.value)
        before, largest.value = largest.value, (largest.value + 1) // 2
        fresh = _write(text, sizes)
        try:
            size = size_of(fresh)
            best = fresh
        except _ANY_ERROR:
            largest.value, largest.fixed = before, True
    changed = [item for item in sizes if item.value != item.first]
    return best, [f"{item.name} {item.first} -> {item.value}" for item in changed], size


def keep_groups(sizes: Sequence[int], most: int) -> list[int]:
    """Positions of the groups that fit together, the smallest first, in their own order."""
    kept, total = [], 0
    for at in sorted(range(len(sizes)), key=lambda at: sizes[at]):
        total += sizes[at]
        if total > most:
            break
        kept.append(at)
    return sorted(kept)


def _sizes(tree: ast.Module) -> Iterator[_Size]:
    held = {
        target: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in _targets(node)
    }
    made = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if _INPUTS not in made:
        return
    fixed = _reads(made.get(_INIT), held, made) | _reads(_model(tree), held, made)
    for name in sorted(_reads(made[_INPUTS], held, made) - fixed):
        if name in held:
            yield from _numbers(held[name], name)
    own = [node for node in made[_INPUTS].body if not _is_text(node)]
    for node in own:
        yield from _numbers(node, "a number of get_inputs()")


def _targets(node: ast.Assign) -> list[str]:
    return [target.id for target in node.targets if isinstance(target, ast.Name)]


def _model(tree: ast.Module) -> ast.ClassDef | None:
    found = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"]
    return found[-1] if found else None


def _reads(
    node: ast.AST | None, held: dict[str, ast.expr], made: dict[str, ast.FunctionDef]
) -> set[str]:
    """Module-level names that a piece of the file depends on, through other names and functions."""
    found: set[str] = set()
    queue = [node] if node is not None else []
    while queue:
        for inner in ast.walk(queue.pop()):
            if isinstance(inner, ast.Name) and inner.id not in found:
                found.add(inner.id)
                queue += [item[inner.id] for item in (held, made) if inner.id in item]
    return found & set(held)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _numbers(node: ast.AST, name: str) -> Iterator[_Size]:
    for inner in ast.walk(node):
        value = inner.value if isinstance(inner, ast.Constant) else None
        if type(value) is int and value >= _SMALLEST:
            assert isinstance(inner, ast.Constant)
            line, start, end = inner.lineno, inner.col_offset, inner.end_col_offset or 0
            yield _Size(name, line, start, end, value, value)


def _write(text: str, sizes: Sequence[_Size]) -> str:
    """The text with the present values, from its end to its beginning."""
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for item in sorted(sizes, key=lambda item: (item.line, item.start), reverse=True):
        line = lines[item.line - 1]
        lines[item.line - 1] = line[: item.start] + str(item.value).encode() + line[item.end :]
    return b"".join(lines).decode()
