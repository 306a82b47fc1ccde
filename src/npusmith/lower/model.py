"""model_new.py: the task's own text, then ModelNew, which calls the operator and nothing else."""

from __future__ import annotations

import ast
import keyword
import math
from collections.abc import Sequence

from npusmith.ir.spec import Constant, OpSpec, Port, Source
from npusmith.lower.bindings import CONSTANTS
from npusmith.lower.render import render

_WRITTEN_OUT = 16  # elements of a constant whose values stand in model_new.py itself


def model_file(spec: OpSpec) -> str:
    """The text of model_new.py."""
    parameters = _forward_parameters(spec.task_source)
    positions = [port.position for port in spec.inputs if port.source is Source.USER]
    # forward's tensors are its parameters when nothing else can be among them
    plain = parameters is not None and len(parameters) == max([-1, *positions]) + 1
    names = parameters if plain and parameters is not None else []
    call = ", ".join(_argument(port, names) for port in spec.inputs)
    return render(
        "model_new.py.j2",
        op=spec,
        parameters=names,
        call=f"custom_ops_lib.{spec.name}({call})",
        gathers=not plain and bool(positions),
        literals=None if spec.literals is None else _list(spec.literals),
        wraps=len(spec.outputs) == 1 and not spec.single_output,
        several=len(spec.outputs) > 1,
        constants=[(*_attribute(item.target), _value(item)) for item in spec.constants],
        stored=any(not _is_small(item) for item in spec.constants),
        file=CONSTANTS,
    )


def _is_small(constant: Constant) -> bool:
    return math.prod(constant.shape) <= _WRITTEN_OUT


def _value(constant: Constant) -> str:
    """The expression that makes the tensor."""
    if not _is_small(constant):
        return f"_stored({constant.target!r})"
    array, dtype = constant.array, constant.dtype
    values = array if array.dtype.kind in "biu" else array.astype("float64")
    return f"torch.tensor({_literal(values.tolist())}, dtype=torch.{dtype.value})"


def _attribute(target: str) -> tuple[str, str]:
    """The module that an attribute path leads to, as an expression, and the attribute's name."""
    path, _, name = target.rpartition(".")
    parts = path.split(".") if path else []
    if all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        return ".".join(["self", *parts]), name
    return f"self.get_submodule({path!r})", name  # children of nn.Sequential have numbers


def _list(values: Sequence[object]) -> str:
    """As Python text; infinities and NaN have no literal there."""
    return f"[{', '.join(map(_literal, values))}]"


def _literal(value: object) -> str:
    if isinstance(value, list):
        return _list(value)
    whole = not isinstance(value, float) or math.isfinite(value)
    return repr(value) if whole else f'float("{value}")'


def _argument(port: Port, names: list[str]) -> str:
    if port.source is not Source.USER:
        return ".".join(_attribute(port.target))
    return names[port.position] if names else f"tensors[{port.position}]"


def _forward_parameters(source: str) -> list[str] | None:
    """Names of Model.forward's parameters; None when it takes *args, or cannot be found."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for item in tree.body:
        if isinstance(item, ast.ClassDef) and item.name == "Model":
            return _parameters(item)
    return None


def _parameters(model: ast.ClassDef) -> list[str] | None:
    for item in model.body:
        if isinstance(item, ast.FunctionDef) and item.name == "forward":
            args = item.args
            if args.vararg or args.kwarg or args.kwonlyargs or args.defaults:
                return None
            return [arg.arg for arg in (*args.posonlyargs, *args.args)][1:]
    return None
