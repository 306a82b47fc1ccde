"""model_new.py: the task's own text, then ModelNew, which calls the operator and nothing else."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from npusmith.ir.spec import OpSpec, Port, Source
from npusmith.lower.render import render


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
    )


def _list(values: Sequence[object]) -> str:
    """As Python text; infinities and NaN have no literal there."""
    return f"[{', '.join(map(_literal, values))}]"


def _literal(value: object) -> str:
    whole = not isinstance(value, float) or math.isfinite(value)
    return repr(value) if whole else f'float("{value}")'


def _argument(port: Port, names: list[str]) -> str:
    if port.source is not Source.USER:
        return f"self.{port.target}"
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
