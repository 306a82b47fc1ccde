"""`decompose(program, table)`: an exported program in core ATen, as `run_decompositions` gives it.

That call sets up its rules for all composite operations of PyTorch's registry, and reads the whole
registry once for each namespace: four fifths of a capture's time, whatever the graph. Here the
registry is read once, and an operation that is not in the graph and whose rule is the one it has
anyway is left alone. A PyTorch without these functions takes its time.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import torch

# Composite operations with a kernel of their own, as PyTorch's registry has them.
_WITH_KERNELS = (torch.ops.aten.silu_backward.default,)


def decompose(program: Any, table: Any) -> Any:
    """The program with its operations taken apart as the table says."""
    targets = {node.target for node in program.graph_module.graph.nodes}
    with _replaced("torch._export.utils", "_materialize_cpp_cia_ops", _once), _replaced(
        "torch.export.exported_program", "_override_composite_implicit_decomp",
        functools.partial(_fewer, targets),
    ), _replaced(
        "torch.export.exported_program", "_split_decomp_table_to_cia_and_python_decomp", _reached,
    ):  # fmt: skip
        return program.run_decompositions(table)


@contextlib.contextmanager
def _replaced(module: str, name: str, change: Callable[[Any], Any]) -> Iterator[None]:
    """What the module has under that name is `change` of it meanwhile, where there is one."""
    home = importlib.import_module(module)
    real = getattr(home, name, None)
    with patch.object(home, name, change(real)) if real else contextlib.nullcontext():
        yield


def _once(read: Callable[[], None]) -> Callable[[], None]:
    return functools.cache(read)


def _fewer(targets: set[Any], override: Callable[..., Any]) -> Callable[..., Any]:
    """The rules of operations in the graph, and those that are not the operation's own."""

    def wrapped(rules: dict[Any, Any], *rest: Any, **named: Any) -> Any:
        kept = {op: rule for op, rule in rules.items() if op in targets or not _own(op, rule)}
        return override(kept, *rest, **named)

    return wrapped


def _reached(split: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Rules that would replace a composite kernel which is never called: there is another."""

    def wrapped(rules: dict[Any, Any]) -> Any:
        composite, others = split(rules)
        others |= {op: composite.pop(op) for op in _WITH_KERNELS if op in composite}
        return composite, others

    return wrapped


def _own(op: Any, rule: Any) -> bool:
    return isinstance(rule, functools.partial) and rule.keywords.get("kernel") is op
