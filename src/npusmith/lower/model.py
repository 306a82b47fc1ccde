"""model_new.py: the task's own text, then ModelNew, which calls the operator and nothing else."""

from __future__ import annotations

import ast
import inspect
import keyword
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from npusmith.ir.returned import plain, spelled
from npusmith.ir.spec import Constant, OpSpec, Source
from npusmith.lower.bindings import CONSTANTS
from npusmith.lower.render import python_literal, render

LIBRARY = "custom_ops_lib"  # the binding's module
MOST_ARGUMENTS = 64  # of a schema: c10's DispatchKeyExtractor keeps them in so many bits
_WRITTEN_OUT = 16  # elements of a constant whose values stand in model_new.py itself


def model_file(spec: OpSpec) -> str:
    """The text of model_new.py around one operator."""
    positions = [port.position for port in spec.inputs if port.source is Source.USER]
    names = tensor_names(spec.task_source, positions)
    arguments = (argument(port.source, port.target, port.position, names) for port in spec.inputs)
    call = call_text(spec.name, [*arguments])
    count = len(spec.outputs)
    if spec.returns in ("", plain(count)):
        lines = [f"return tuple({call})" if count > 1 else f"return {call}"]
    else:
        lines = returned_lines(spec.returns, call, count)
    about = f"replaced by the operator {spec.op_type}"
    forward = Forward(names, positions, spec.literals)
    return module_file(spec.task_source, spec.op_type, about, lines, forward, spec.constants)


def returned_lines(returns: str, found: str, count: int) -> list[str]:
    """Statements that hand over what that expression gives as forward does."""
    if count == 1:
        return [f"return {spelled(returns, lambda _: found, 1)}"]
    whole = spelled(returns, lambda at: f"found[{at}]", count)
    return [f"found = {found}", f"return {whole}"]


def call_text(name: str, arguments: Sequence[str]) -> str:
    """An operator's call in Python; more tensors than a schema has arguments are one list."""
    given = ", ".join(arguments)
    return f"{LIBRARY}.{name}({f'[{given}]' if len(arguments) > MOST_ARGUMENTS else given})"


@dataclass(frozen=True, slots=True)
class Forward:
    """What forward of ModelNew takes.

    names: of its tensors, as of `tensor_names`; positions: of those that its lines use.
    literals: its other arguments, as they were captured.
    """

    names: Sequence[str]
    positions: Sequence[int]
    literals: Sequence[object] | None


def module_file(
    source: str,
    name: str,
    about: str,
    body: Sequence[str],
    forward: Forward,
    constants: Sequence[Constant],
    *,
    check: str = "",
) -> str:
    """ModelNew whose forward consists of these lines; `check`: a function that they use."""
    return render(
        "model_new.py.j2",
        source=source,
        name=name,
        about=about,
        body=body,
        check=check,
        parameters=forward.names,
        gathers=not forward.names and bool(forward.positions),
        literals=None if forward.literals is None else python_literal([*forward.literals]),
        constants=[(*_attribute(item.target), _value(item)) for item in constants],
        stored=any(not _is_small(item) for item in constants),
        file=CONSTANTS,
    )


def tensor_names(source: str, positions: Sequence[int]) -> Sequence[str]:
    """Names of forward's tensors: those of its parameters when nothing else can be among them."""
    parameters = _forward_parameters(source)
    if parameters is None or len(parameters) != max([-1, *positions]) + 1:
        return []
    # what the body calls would be hidden by a parameter of that name
    return parameters if {"torch", LIBRARY}.isdisjoint(parameters) else []


def _is_small(constant: Constant) -> bool:
    return math.prod(constant.shape) <= _WRITTEN_OUT


def _value(constant: Constant) -> str:
    """The expression that makes the tensor."""
    if not _is_small(constant):
        return f"_stored({constant.target!r})"
    array, dtype = constant.array, constant.dtype
    values = array if array.dtype.kind in "biu" else array.astype("float64")
    return f"torch.tensor({python_literal(values.tolist())}, dtype=torch.{dtype.value})"


def _attribute(target: str) -> tuple[str, str]:
    """The module that an attribute path leads to, as an expression, and the attribute's name."""
    path, _, name = target.rpartition(".")
    parts = path.split(".") if path else []
    if all(map(_is_plain, parts)):
        return ".".join(["self", *parts]), name
    return f"self.get_submodule({path!r})", name  # children of nn.Sequential have numbers


def _is_plain(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def argument(source: Source, target: str, position: int, names: Sequence[str]) -> str:
    """The expression of what an operator takes, in the body of ModelNew."""
    if source is not Source.USER:
        module, name = _attribute(target)
        # children of nn.ParameterList have numbers
        return f"{module}.{name}" if _is_plain(name) else f"getattr({module}, {name!r})"
    return names[position] if names else f"tensors[{position}]"


def forward_signature(source: str) -> inspect.Signature | None:
    """That of Model.forward in a task's text, without `self`; None when it cannot be found.

    Defaults that are no literals are ... .
    """
    node = _forward(source)
    if node is None:
        return None
    args, kinds = node.args, inspect.Parameter
    given = [None] * (len(args.posonlyargs) + len(args.args) - len(args.defaults))
    defaults = iter([*given, *args.defaults])
    rows: list[tuple[ast.arg, Any, ast.expr | None]] = [
        *((arg, kinds.POSITIONAL_ONLY, next(defaults)) for arg in args.posonlyargs),
        *((arg, kinds.POSITIONAL_OR_KEYWORD, next(defaults)) for arg in args.args),
    ]
    if args.vararg:
        rows.append((args.vararg, kinds.VAR_POSITIONAL, None))
    named = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    rows += ((arg, kinds.KEYWORD_ONLY, value) for arg, value in named)
    if args.kwarg:
        rows.append((args.kwarg, kinds.VAR_KEYWORD, None))
    try:
        return inspect.Signature(
            [kinds(arg.arg, kind, default=_default(value)) for arg, kind, value in rows[1:]]
        )
    except ValueError:
        return None


def _default(value: ast.expr | None) -> object:
    if value is None:
        return inspect.Parameter.empty
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ...


def _forward_parameters(source: str) -> list[str] | None:
    """Names of Model.forward's parameters; None when it takes *args, or cannot be found."""
    node = _forward(source)
    if node is None:
        return None
    args = node.args
    if args.vararg or args.kwarg or args.kwonlyargs or args.defaults:
        return None
    return [arg.arg for arg in (*args.posonlyargs, *args.args)][1:]


def _forward(source: str) -> ast.FunctionDef | None:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    models = (item for item in tree.body if isinstance(item, ast.ClassDef) and item.name == "Model")
    return next(
        (
            item
            for model in models
            for item in model.body
            if isinstance(item, ast.FunctionDef) and item.name == "forward"
        ),
        None,
    )
