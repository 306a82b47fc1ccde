"""The structure of what a captured forward returns, as the text of ir/returned.py.

Of a dataclass or a kind of dict torch.export has to be told first; types that the task's file
names stand in the text by their names, others as what they are a kind of.
"""

from __future__ import annotations

import keyword
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from torch.export.graph_signature import ConstantArgument, OutputKind
from torch.utils import _pytree as pytree

from npusmith.errors import Place, TaskError
from npusmith.ir.returned import KEYS
from npusmith.task.isolated.containers import named_items
from npusmith.task.user import TASK_MODULE


def is_of_containers(message: str) -> bool:
    """Whether torch.export says that it does not know the type of what forward returns."""
    return "in output, which is not a known type" in message


def register(call: Callable[[], Any]) -> bool:
    """Tell PyTorch of the containers that the call gives; False: it knows all of them."""
    found = {type(item): None for item in _containers(call())}
    for kind in found:
        pytree.register_pytree_node(kind, _taken_apart, _as_dict)
    return bool(found)


def _containers(value: Any) -> Iterator[Any]:
    """Those that are leaves to PyTorch."""
    for leaf in pytree.tree_leaves(value):
        if (held := named_items(leaf)) is not None:
            yield leaf
            yield from _containers(held)


def _taken_apart(value: Any) -> tuple[list[Any], list[Any]]:
    held = named_items(value) or {}
    return [*held.values()], [*held]


def _as_dict(values: Any, names: Any) -> dict[Any, Any]:
    """Whoever runs a captured program wants its tensors alone."""
    return dict(zip(names, values, strict=True))


def is_none(spec: Any) -> bool:
    """Whether an output of an exported program is None."""
    return isinstance(spec.arg, ConstantArgument) and spec.arg.value is None


def structure_of(program: Any, path: str) -> str:
    """Of an exported program. TaskError for keys of dicts that a text cannot hold."""
    outputs = program.graph_signature.output_specs
    given = (is_none(spec) for spec in outputs if spec.kind is OutputKind.USER_OUTPUT)
    task = sys.modules.get(TASK_MODULE)
    structure = _Structure(given, {} if task is None else vars(task), path)
    return structure.text(program.call_spec.out_spec)


class _Structure:
    """nones: of each leaf whether it is None. types: what the task's file names."""

    def __init__(self, nones: Iterator[bool], types: Mapping[str, Any], path: str) -> None:
        self.nones, self.types, self.path = nones, types, path
        self.count = 0

    def text(self, part: Any) -> str:
        if part.is_leaf():
            if next(self.nones):
                return "None"
            self.count += 1
            return str(self.count - 1)
        inside = [self.text(item) for item in part.children()]
        kind, names = _kind_and_names(part)
        if names is not None and self._is_called(kind, names):
            pairs = zip(names, inside, strict=True)
            return f"{kind.__name__}({', '.join(f'{name}={value}' for name, value in pairs)})"
        if names is not None and not issubclass(kind, tuple):
            pairs = zip(names, inside, strict=True)
            return f"{{{', '.join(f'{self._key(key)!r}: {value}' for key, value in pairs)}}}"
        ends = "[]" if issubclass(kind, list) else ("(", ",)")
        return ends[0] + ", ".join(inside) + ends[1]

    def _is_called(self, kind: type, names: Sequence[Any]) -> bool:
        """Whether `kind(name=value, ...)` in the task's file makes one."""
        words = all(isinstance(name, str) and name.isidentifier() for name in names)
        known = self.types.get(kind.__name__) is kind and kind is not OrderedDict
        return known and words and not any(map(keyword.iskeyword, names))

    def _key(self, key: Any) -> Any:
        if type(key) not in KEYS:
            message = f"forward() returns a dict with a key that is a {type(key).__name__}"
            raise TaskError("task-outputs", message, Place(self.path), seen=repr(key)[:200])
        return key


def _kind_and_names(part: Any) -> tuple[type, list[Any] | None]:
    """The type of a node of a tree, and the names of what it holds if it has any."""
    if part.type is pytree.namedtuple:
        return part.context, [*part.context._fields]
    if issubclass(part.type, defaultdict):
        return dict, part.context[1]
    if issubclass(part.type, Mapping) or is_dataclass(part.type):
        return part.type, [*part.context]
    return part.type, None
