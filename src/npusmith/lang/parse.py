"""From the text of a tile program to a Program. The text is read with `ast` and never executed."""

from __future__ import annotations

import ast
from dataclasses import replace

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Assign,
    Buffer,
    Const,
    Expr,
    Host,
    Kernel,
    Launch,
    Loop,
    Memory,
    Name,
    Note,
    Part,
    Program,
    Scalar,
    Stmt,
    Tensor,
    TensorRole,
)
from npusmith.ir.walk import target
from npusmith.lang import habits
from npusmith.lang.bounds import fold_const
from npusmith.lang.expr import read_expr
from npusmith.lang.source import Source, read_tree, short
from npusmith.lang.stmt import read_stmt, read_text
from npusmith.lang.words import DTYPES, MEMORIES, mean

MOST_COPIES = 3  # of a buffer: one is filled, one computed on, one given back
_ROLES = tuple(role.value for role in TensorRole)


def parse(text: str, file: str = "") -> Program:
    """The program that the text describes; raises LangError for anything that is not one.

    Names, types and lifetimes are not looked at here: see lang.check.
    """
    source, tree = read_tree(text, file)
    doc, body = _docstring(tree.body, source)
    consts: dict[str, int | float] = {}
    functions: dict[str, list[ast.FunctionDef]] = {"host": [], "kernel": []}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            _add_function(functions, node, source)
        elif isinstance(node, ast.Assign):
            _add_const(consts, node, source)
        elif not _ignored(node):
            raise _not_module(node, source)
    for role, found in functions.items():
        if not found:
            raise source.error("lang-functions", f"there is no @{role} function", 0)
    kernels = [_kernel(node, replace(source, function=node.name)) for node in functions["kernel"]]
    (first,) = functions["host"]
    host = _host(first, replace(source, function=first.name))
    bound = {kernel.name: {item.name for item in kernel.tensors} for kernel in kernels}
    numbers = {*consts, *map(target, host.body)}
    launches = tuple(_bound(item, bound.get(item.kernel, set()), numbers) for item in host.launches)
    return Program(tuple(consts.items()), replace(host, launches=launches), tuple(kernels), doc)


def parse_condition(text: str, file: str = "") -> Expr:
    """A scalar expression alone, as `show_expr` writes it; LangError for anything else."""
    source, tree = read_tree(text, file)
    match tree.body:
        case [ast.Expr(found)]:
            return read_expr(found, source)
    raise source.error("lang-expression", "one expression was expected", 0)


# ----------------------------------------------------------------------------------- module level


def _docstring(body: list[ast.stmt], source: Source) -> tuple[str, list[ast.stmt]]:
    match body:
        case [ast.Expr(ast.Constant(str() as text)) as first, *rest]:
            return read_text(text, first, source), rest
        case _:
            return "", body


def _ignored(node: ast.stmt) -> bool:
    """Imports of npusmith make editors happy and mean nothing."""
    if isinstance(node, ast.Import):
        return all(item.name.split(".")[0] == "npusmith" for item in node.names)
    if isinstance(node, ast.ImportFrom):
        own = (node.module or "").split(".")[0] in ("npusmith", "__future__")
        return own and node.level == 0
    return isinstance(node, ast.Pass)


def _not_module(node: ast.stmt, source: Source) -> Exception:
    name, hint = habits.STATEMENTS.get(type(node), (type(node).__name__.lower(), ""))
    if isinstance(node, ast.If):
        name, hint = "if", "leave it out: nothing of the text is ever executed"
    if isinstance(node, ast.Expr):
        name, hint = "an expression", "move it into a function, or make it a comment"
    return source.error("lang-module", f"{name} does not belong at module level", node, hint=hint)


def _add_const(consts: dict[str, int | float], node: ast.Assign, source: Source) -> None:
    target = node.targets[0]
    if len(node.targets) > 1 or not isinstance(target, ast.Name):
        raise source.error("lang-const", "a constant is one name and one number", node)
    if target.id in consts:
        raise source.error("lang-const", f"{short(target.id)} is defined twice", node)
    value = fold_const(read_expr(node.value, source), consts)
    if value is None:
        raise source.error("lang-const", f"{short(target.id)} is not a number", node)
    consts[target.id] = value


def _add_function(
    functions: dict[str, list[ast.FunctionDef]], node: ast.FunctionDef, source: Source
) -> None:
    marks = [item.id if isinstance(item, ast.Name) else "" for item in node.decorator_list]
    if len(marks) != 1 or marks[0] not in ("host", "kernel"):
        raise source.error(
            "lang-functions", f"{short(node.name)} is neither @host nor @kernel", node,
            hint="put @host or @kernel, without parentheses, on the line above",
        )  # fmt: skip
    if marks[0] == "host" and functions["host"]:
        raise source.error("lang-functions", "there is a second @host function", node)
    if any(other.name == node.name for other in functions["kernel"]):
        raise source.error("lang-functions", f"there is a second {short(node.name)}()", node)
    functions[marks[0]].append(node)


# ------------------------------------------------------------------------------------- functions


def _parameters(node: ast.FunctionDef, source: Source) -> list[ast.arg]:
    args = node.args
    if args.posonlyargs or args.kwonlyargs or args.vararg or args.kwarg or args.defaults:
        raise source.error(
            "lang-param", "parameters are plain names, without defaults or stars", node
        )
    return args.args


def _host(node: ast.FunctionDef, source: Source) -> Host:
    tensors = tuple(item.arg for item in _parameters(node, source))
    annotated = next((item for item in node.args.args if item.annotation is not None), None)
    if annotated is not None:
        raise source.error(
            "lang-param", f"{short(annotated.arg)} has an annotation", annotated,
            legal="@host def host(x, y): the kernel's inputs and outputs, as plain names",
        )  # fmt: skip
    doc, nodes = _docstring(node.body, source)
    if not nodes or not _launches(nodes[-1]):
        raise source.error("lang-launch", "the host function does not end with launch()", node)
    count = next((i for i, item in enumerate(reversed(nodes)) if not _launches(item)), len(nodes))
    head, tail = nodes[: len(nodes) - count], nodes[len(nodes) - count :]
    body = tuple(_host_stmt(item, source) for item in head if not isinstance(item, ast.Pass))
    launches: list[Launch] = []
    for item in tail:
        launches += _loop(item, source) if isinstance(item, ast.For) else [_launch(item, source)]
    return Host(node.name, tensors, body, tuple(launches), doc, node.lineno)


def _host_stmt(node: ast.stmt, source: Source) -> Stmt:
    if _launches(node):
        raise source.error("lang-launch", "nothing but launch() stands after a launch()", node)
    stmt = read_stmt(node, source)
    if not isinstance(stmt, Assign | Note):
        raise source.error(
            "lang-host", "a host function is a straight line of assignments", node,
            hint="`a if cond else b` chooses a value; loops but those around launches, and stages, "
            "belong to the kernel",
        )  # fmt: skip
    return stmt


def _is_launch(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "launch"
    )


def _launches(node: ast.stmt) -> bool:
    """A launch, or a loop of some."""
    return _is_launch(node) or (
        isinstance(node, ast.For) and any(_launches(item) for item in node.body)
    )


def _loop(node: ast.For, source: Source) -> list[Launch]:
    """The launches of a loop over steps of 1."""
    match node.target, node.iter:
        case ast.Name(var), ast.Call(ast.Name("range"), [*ends], []) if 1 <= len(ends) <= 2:
            *first, stop = ends
        case _:
            raise source.error(
                "lang-launch", "a loop around launches has another head", node,
                legal="for t in range(steps): or for t in range(start, stop):",
            )  # fmt: skip
    if node.orelse or not all(map(_is_launch, node.body)):
        raise source.error("lang-launch", "a loop of the host holds launches alone", node)
    start = read_expr(first[0], source) if first else Const(0)
    loop = Loop(var, start, read_expr(stop, source), node.lineno)
    return [replace(_launch(item, source), loop=loop) for item in node.body]


def _launch(node: ast.stmt, source: Source) -> Launch:
    assert isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    call = node.value
    if len(call.args) != 2 or not isinstance(call.args[0], ast.Name):
        raise source.error("lang-launch", "launch() takes the kernel and the number of cores", node)
    args: list[tuple[str, Expr]] = []
    parts: list[tuple[str, Part]] = []
    beside = False
    for item in call.keywords:
        if item.arg is None:
            raise source.error("lang-launch", "arguments of launch() are given by name", node)
        match item.value:
            case ast.Call(ast.Name("part"), given, []):
                parts.append((item.arg, _part(given, node, source)))
            case ast.Constant(bool(value)) if item.arg == "beside":
                beside = value
            case value:
                args.append((item.arg, read_expr(value, source)))
    cores = read_expr(call.args[1], source)
    return Launch(
        call.args[0].id, cores, tuple(args), node.lineno, parts=tuple(parts), beside=beside
    )


def _part(given: list[ast.expr], node: ast.stmt, source: Source) -> Part:
    if len(given) != 3 or not isinstance(given[0], ast.Name):
        raise source.error(
            "lang-launch", "part() takes a tensor, where the part begins and its length", node,
            legal="x=part(states, t * n, n), in elements",
        )  # fmt: skip
    return Part(given[0].id, read_expr(given[1], source), read_expr(given[2], source))


def _bound(launch: Launch, tensors: set[str], numbers: set[str]) -> Launch:
    """`x=other` binds a tensor of the kernel where `other` is not a number of the host."""
    found: list[tuple[str, str]] = []
    args: list[tuple[str, Expr]] = []
    for name, value in launch.args:
        match value:
            case Name(other) if name in tensors and other not in numbers:
                found += [(name, other)] if name != other else []
            case _:
                args.append((name, value))
    return replace(launch, args=tuple(args), tensors=tuple(found))


def _kernel(node: ast.FunctionDef, source: Source) -> Kernel:
    tensors: list[Tensor] = []
    scalars: list[Scalar] = []
    for arg in _parameters(node, source):
        item = _parameter(arg, source)
        if isinstance(item, Tensor):
            tensors.append(item)
        else:
            scalars.append(item)
    doc, nodes = _docstring(node.body, source)
    buffers: list[Buffer] = []
    body: list[Stmt] = []
    for stmt in nodes:
        if _is_buffer(stmt):
            if any(not isinstance(item, Note) for item in body):
                raise source.error("lang-buffer-place", "a buffer after the first statement", stmt)
            buffers.append(_buffer(stmt, source))
        elif not isinstance(stmt, ast.Pass):
            _refuse_buffers(stmt, source)
            body.append(read_stmt(stmt, source))
    return Kernel(
        node.name, tuple(tensors), tuple(scalars), tuple(buffers), tuple(body), doc, node.lineno
    )


def _parameter(arg: ast.arg, source: Source) -> Tensor | Scalar:
    match arg.annotation:
        case ast.Name("int"):
            return Scalar(arg.arg)
        case ast.Name("float"):
            return Scalar(arg.arg, is_float=True)
        case ast.Call(ast.Name(role), [dtype], []) if role in _ROLES:
            return Tensor(arg.arg, _dtype(dtype, source), TensorRole(role))
        case None:
            message = f"{short(arg.arg)} has no annotation"
        case _:
            message = f"the annotation of {short(arg.arg)} is not one of the language"
    raise source.error("lang-param", message, arg)


def _dtype(node: ast.expr, source: Source) -> DType:
    parts = habits.dotted(node)
    text = parts[-1] if parts else ""
    if len(parts) == 1 and text in DTYPES:
        return DTYPES[text]
    names = tuple(DTYPES)
    known = text if text in DTYPES else habits.DTYPE_NAMES.get(text, "")
    raise source.error(
        "lang-dtype",
        f"{short('.'.join(parts)) or 'this'} is not an element type",
        node,
        legal=", ".join(names),
        hint=f"write {known}" if known else mean(text, names),
    )


# --------------------------------------------------------------------------------------- buffers


def _is_buffer(node: ast.AST) -> bool:
    match node:
        case ast.Assign(_, ast.Call(ast.Name(name))):
            return name in MEMORIES
        case _:
            return False


def _refuse_buffers(node: ast.stmt, source: Source) -> None:
    for item in ast.walk(node):
        if _is_buffer(item):
            raise source.error("lang-buffer-place", "a buffer inside a loop, branch or stage", item)


def _buffer(node: ast.stmt, source: Source) -> Buffer:
    assert isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    target, call = node.targets[0], node.value
    if len(node.targets) > 1 or not isinstance(target, ast.Name):
        raise source.error("lang-buffer-place", "a buffer has one name", node)
    assert isinstance(call.func, ast.Name)
    memory = Memory(call.func.id)
    if len(call.args) != (2 if memory is Memory.UB else 3):
        raise source.error("lang-operands", f"{memory.value}() takes {_sides(memory)}", node)
    dtype = _dtype(call.args[-1], source)
    length, *cols = (read_expr(arg, source) for arg in call.args[:-1])
    return Buffer(
        target.id, dtype, length, copies=_copies(call, memory, source), line=node.lineno,
        memory=memory, cols=cols[0] if cols else None,
    )  # fmt: skip


def _sides(memory: Memory) -> str:
    sides = "a length" if memory is Memory.UB else "rows, columns"
    return f"{sides} and an element type"


def _copies(call: ast.Call, memory: Memory, source: Source) -> int:
    """`copies=2`: how often a buffer exists; 0 when nothing is said."""
    match call.keywords:
        case []:
            return 0
        case [ast.keyword("copies", ast.Constant(int(count)))] if 1 <= count <= MOST_COPIES:
            return count
        case _:
            raise source.error(
                "lang-operands", f"{memory.value}() takes {_sides(memory)}, and copies", call,
                legal=f"copies=1 to copies={MOST_COPIES}",
            )  # fmt: skip
