"""What the text of a reference says before anything runs: what it imports, what only an NPU has.

References of NPU suites import torch_npu for side effects that a CPU does not need; those imports
are taken out. A call of one of its functions is another thing: the item is listed as skipped.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass

STUBBED = ("torch_npu", "kernel_gen_ops", "custom_ops_lib", "framework")
_NPU = ("torch_npu.", "torch.ops.npu.", "torch.npu_")


@dataclass(frozen=True, slots=True)
class Facts:
    """`why` is empty for a text that can run here."""

    why: str
    stubbed: bool  # it imports something that is taken out


def read_facts(text: str, name: str) -> Facts:
    """Look at a reference's text without running it."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return Facts(f"{name} is not Python: {error}"[:200], False)
    npu = sorted(set(_npu_calls(tree)))
    if npu:
        return Facts(f"needs {', '.join(npu)}, which only an NPU has", False)
    roots = {root for _, root in _imports(tree)}
    missing = sorted(root for root in roots if not _is_here(root))
    if missing:
        return Facts(f"imports {', '.join(missing)}, which is not installed", False)
    return Facts("", bool(roots & set(STUBBED)))


def strip_imports(text: str) -> str:
    """The text with imports of what is stubbed replaced by `pass`; lines keep their numbers."""
    lines = text.splitlines(keepends=True)
    for node, root in _imports(ast.parse(text)):
        if root not in STUBBED:
            continue
        first = lines[node.lineno - 1]
        indent = first[: len(first) - len(first.lstrip())]
        last = node.end_lineno or node.lineno
        blank = ["\n"] * (last - node.lineno)
        lines[node.lineno - 1 : last] = [f"{indent}pass\n", *blank]
    return "".join(lines)


def input_dtype(names: list[str]) -> str:
    """The type that an item is filed under: of its floats, or of its first tensor, or mixed."""
    floats = sorted({name for name in names if "float" in name})
    if len(floats) > 1:
        return "mixed"
    return floats[0] if floats else (names[0] if names else "")


def _imports(tree: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """Import statements with the package that each names; those under `try` are optional."""
    optional = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        else:
            continue
        for name in names:
            root = name.partition(".")[0]
            if id(node) not in optional or root in STUBBED:
                yield node, root


def _npu_calls(tree: ast.AST) -> Iterator[str]:
    """Dotted names of calls of functions that an NPU's PyTorch adds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            rest = name.removeprefix("torch_npu.")
            if name.startswith(_NPU) and not rest.startswith(("npu.", "contrib.")):
                yield name


@functools.cache
def _is_here(root: str) -> bool:
    if root in STUBBED or root in sys.stdlib_module_names:
        return True
    try:
        return importlib.util.find_spec(root) is not None
    except (ImportError, ValueError):
        return False
