"""Statements: from Python's tree to nodes."""

from __future__ import annotations

import ast
from collections.abc import Callable

from npusmith.ir.nodes import (
    Assign,
    Atomic,
    Await,
    Binary,
    BinOp,
    Combine,
    Const,
    Expr,
    For,
    If,
    Load,
    Mmad,
    Name,
    Note,
    Op,
    Post,
    Split,
    Stage,
    StageKind,
    Stmt,
    Store,
    SyncCores,
    View,
)
from npusmith.lang import habits
from npusmith.lang.expr import foreign, read_expr, read_span, read_view, unknown_call
from npusmith.lang.source import Source, short
from npusmith.lang.words import (
    CALLS,
    LOWERED,
    MEMORIES,
    OPERATIONS,
    SPLIT,
    STAGES,
    mean,
    signature,
)
from npusmith.target.intrinsics import INTRINSICS, Intrinsic, Operand

_AUGMENTED: dict[type[ast.AST], BinOp] = {
    ast.Add: BinOp.ADD,
    ast.Sub: BinOp.SUB,
    ast.Mult: BinOp.MUL,
    ast.Div: BinOp.DIV,
    ast.FloorDiv: BinOp.FLOORDIV,
    ast.Mod: BinOp.MOD,
}


def read_block(nodes: list[ast.stmt], source: Source) -> tuple[Stmt, ...]:
    """The statements of a list; `pass` is none."""
    return tuple(read_stmt(node, source) for node in nodes if not isinstance(node, ast.Pass))


def read_stmt(node: ast.stmt, source: Source) -> Stmt:
    """One statement."""
    match node:
        case ast.Expr(ast.Constant(str() as text)):
            return Note(read_text(text, node, source), node.lineno)
        case ast.Assign() | ast.AugAssign():
            return read_assign(node, source)
        case ast.For():
            return _for(node, source)
        case ast.If(test, body, orelse):
            cond = read_expr(test, source)
            return If(cond, read_block(body, source), read_block(orelse, source), node.lineno)
        case ast.With():
            return _stage(node, source)
        case ast.Expr(ast.Call() as call):
            return _action(call, source)
        case ast.Expr():
            raise source.error("lang-statement", "an expression does nothing by itself", node)
        case _:
            name, hint = habits.STATEMENTS.get(type(node), (type(node).__name__.lower(), ""))
            raise source.error(
                "lang-statement", f"{name} is not a statement of the language", node, hint=hint
            )


def read_text(text: str, node: ast.AST, source: Source) -> str:
    """A note or docstring; it has to survive being written to a file."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise source.error("lang-text", "half of a surrogate pair is not text", node) from None
    return text


def read_assign(node: ast.Assign | ast.AugAssign, source: Source) -> Assign:
    """`name = expr` and `name += expr`."""
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    if isinstance(node, ast.Assign) and len(node.targets) > 1:
        raise source.error("lang-assign", "one name is assigned at a time", node)
    if isinstance(target, ast.Subscript):
        raise source.error(
            "lang-assign", "an element cannot be assigned", node,
            hint="store(y[offset], buf, count) for a tensor, set(buf[i], s) for a buffer",
        )  # fmt: skip
    if not isinstance(target, ast.Name):
        raise source.error("lang-assign", "only a name can be assigned", node)
    if isinstance(node, ast.Assign):
        return Assign(target.id, read_expr(node.value, source), node.lineno)
    if type(node.op) not in _AUGMENTED:
        name, hint = habits.OPERATORS[type(node.op)]
        raise source.error("lang-expression", f"there is no operator {name}", node, hint=hint)
    value = Binary(_AUGMENTED[type(node.op)], Name(target.id), read_expr(node.value, source))
    return Assign(target.id, value, node.lineno)


def _for(node: ast.For, source: Source) -> For:
    ranges = isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name)
    if not (ranges and isinstance(node.iter, ast.Call) and _name(node.iter) == "range"):
        raise source.error("lang-statement", "a for loop runs over range()", node)
    if not isinstance(node.target, ast.Name):
        raise source.error("lang-statement", "a for loop has one variable", node)
    if node.orelse:
        raise source.error("lang-statement", "a for loop has no else", node)
    args = node.iter.args
    if node.iter.keywords or not 1 <= len(args) <= 3:
        raise source.error("lang-operands", "range() takes one to three ints", node)
    parts = [read_expr(arg, source) for arg in args]
    start = parts[0] if len(parts) > 1 else Const(0)
    stop = parts[1] if len(parts) > 1 else parts[0]
    step = parts[2] if len(parts) > 2 else Const(1)
    return For(node.target.id, start, stop, step, read_block(node.body, source), node.lineno)


def _name(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _stage(node: ast.With, source: Source) -> Stage:
    what = node.items[0].context_expr
    hint = ""
    if isinstance(what, ast.Call) and _name(what) in STAGES:
        hint = f"without parentheses: with {_name(what)}:"
    elif isinstance(what, ast.Name):
        hint = mean(what.id, STAGES)
    plain = len(node.items) == 1 and node.items[0].optional_vars is None
    if not plain or not isinstance(what, ast.Name) or what.id not in STAGES:
        raise source.error(
            "lang-statement", "with opens a stage", node, legal=", ".join(STAGES), hint=hint
        )
    return Stage(StageKind(what.id), read_block(node.body, source), node.lineno)


# --------------------------------------------------------------------------------------- actions


def _action(node: ast.Call, source: Source) -> Stmt:
    if not isinstance(node.func, ast.Name):
        raise foreign(node.func, node, source)
    name = node.func.id
    if name in INTRINSICS:
        return _op(INTRINSICS[name], node, source)
    if name in _READERS:
        return _READERS[name](node, source)
    if name.startswith("combine_") and name in CALLS:
        return _combine(name, node, source)
    if name in LOWERED:
        raise source.error("lang-lowered", f"{name}() is written by the lowering", node)
    if name == "launch":
        raise source.error("lang-launch", "launch() ends the host function", node)
    if name in MEMORIES:
        raise source.error("lang-buffer-place", "a buffer needs a name", node)
    raise unknown_call(name, node, source, OPERATIONS)


def _plain_args(node: ast.Call, usage: str, source: Source) -> list[ast.expr]:
    if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
        raise source.error("lang-operands", "operands are given by position", node, legal=usage)
    return node.args


def _op(row: Intrinsic, node: ast.Call, source: Source) -> Op:
    usage = signature(row)
    args = _plain_args(node, usage, source)
    if len(args) != len(row.operands):
        raise source.error(
            "lang-operands",
            f"{row.name} takes {len(row.operands)} operands, not {len(args)}",
            node,
            legal=usage,
            hint=_missing(row, len(args)),
        )
    views: list[View] = []
    scalars: list[Expr] = []
    mode = ""
    count: Expr = Const(1)
    for kind, arg in zip(row.operands, args, strict=True):
        if kind is Operand.MODE:
            mode = _mode(row, arg, source)
        elif kind is Operand.SCALAR:
            scalars.append(read_expr(arg, source))
        elif kind is Operand.COUNT:
            count = read_expr(arg, source)
        else:
            views.append(read_view(arg, source))
    return Op(row.name, tuple(views), tuple(scalars), mode, count, node.lineno)


def _missing(row: Intrinsic, given: int) -> str:
    if given == len(row.operands) - 1:
        return f"the last operand is the number of elements: {signature(row)}"
    return f"write {signature(row)}"


def _mode(row: Intrinsic, node: ast.expr, source: Source) -> str:
    modes = ", ".join(f'"{mode}"' for mode in row.modes)
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        raise source.error("lang-mode", f"{row.name} takes a mode in quotes", node, legal=modes)
    if node.value not in row.modes:
        raise source.error(
            "lang-mode",
            f"{row.name} has no mode {short(node.value)!r}",
            node,
            legal=modes,
            hint=_near_mode(row, node.value.removeprefix("CAST_").lower()),
        )
    return node.value


def _near_mode(row: Intrinsic, text: str) -> str:
    known = habits.MODE_NAMES.get(text, "")
    return f"write '{known}'" if known in row.modes else mean(text, row.modes)


def _keywords(node: ast.Call, legal: tuple[str, ...], source: Source) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for item in node.keywords:
        if item.arg not in legal:
            raise source.error(
                "lang-operands",
                f"there is no keyword {short(str(item.arg))!r} here",
                node,
                legal=CALLS[_name(node)],
                hint=mean(str(item.arg), legal),
            )
        found[item.arg] = item.value
    return found


def _copy_args(node: ast.Call, source: Source) -> tuple[Expr, Expr | None, Expr | None]:
    """Count, rows and pitch of a load or store."""
    name = _name(node)
    legal = ("rows", "pitch", "atomic", "relu") if name == "store" else ("rows", "pitch")
    given = _keywords(node, legal, source)
    if len(node.args) != 3 or any(isinstance(arg, ast.Starred) for arg in node.args):
        raise source.error(
            "lang-operands",
            f"{name} takes 3 operands, not {len(node.args)}",
            node,
            legal=CALLS[name],
            hint=f"write {CALLS[name]}",
        )
    if ("rows" in given) != ("pitch" in given):
        raise source.error(
            "lang-operands", "rows and pitch are given together", node, legal=CALLS[name]
        )
    rows = read_expr(given["rows"], source) if "rows" in given else None
    pitch = read_expr(given["pitch"], source) if "pitch" in given else None
    return read_expr(node.args[2], source), rows, pitch


def _load(node: ast.Call, source: Source) -> Load | Split:
    if len(node.args) == 4:
        return _split(node, source)
    count, rows, pitch = _copy_args(node, source)
    dst, src = read_view(node.args[0], source), read_span(node.args[1], source)
    return Load(dst, src, count, rows, pitch, line=node.lineno)


def _split(node: ast.Call, source: Source) -> Split:
    given = _keywords(node, ("transposed",), source)
    if any(isinstance(arg, ast.Starred) for arg in node.args):
        raise source.error("lang-operands", "operands are given by position", node, legal=SPLIT)
    transposed = "transposed" in given and _flag(given["transposed"], node, source)
    views = read_view(node.args[0], source), read_view(node.args[1], source)
    sizes = read_expr(node.args[2], source), read_expr(node.args[3], source)
    return Split(*views, *sizes, transposed, node.lineno)


def _flag(value: ast.expr, node: ast.Call, source: Source) -> bool:
    if isinstance(value, ast.Constant) and isinstance(value.value, bool):
        return value.value
    raise source.error("lang-mode", "a keyword here is True or False", node)


def _mmad(node: ast.Call, source: Source) -> Mmad:
    given, args = _keywords(node, ("bias",), source), node.args
    if len(args) != 7 or any(isinstance(arg, ast.Starred) for arg in args):
        raise source.error(
            "lang-operands", f"mmad takes 7 operands, not {len(args)}", node, legal=CALLS["mmad"]
        )
    dst, left, right = (read_view(arg, source) for arg in args[:3])
    m, n, k, accumulate = (read_expr(arg, source) for arg in args[3:])
    bias = read_view(given["bias"], source) if "bias" in given else None
    return Mmad(dst, left, right, m, n, k, accumulate, bias, node.lineno)


def _store(node: ast.Call, source: Source) -> Store:
    count, rows, pitch = _copy_args(node, source)
    dst, src = read_span(node.args[0], source), read_view(node.args[1], source)
    atomic = next((item.value for item in node.keywords if item.arg == "atomic"), None)
    kind = None if atomic is None else _atomic(atomic, source)
    flag = next((item.value for item in node.keywords if item.arg == "relu"), None)
    relu = flag is not None and _flag(flag, node, source)
    return Store(dst, src, count, rows, pitch, kind, relu=relu, line=node.lineno)


def _atomic(node: ast.expr, source: Source) -> Atomic:
    legal = tuple(kind.value for kind in Atomic)
    value = node.value if isinstance(node, ast.Constant) else None
    if value not in legal:
        raise source.error(
            "lang-mode", "there is no such atomic", node, legal=", ".join(map(repr, legal)),
            hint=mean(str(value)[:40], legal) or 'atomic="add"',
        )  # fmt: skip
    return Atomic(value)


def _sync(node: ast.Call, source: Source) -> SyncCores:
    if _plain_args(node, CALLS["sync_cores"], source):
        raise source.error("lang-operands", "sync_cores() takes no operands", node)
    return SyncCores(node.lineno)


def _post(node: ast.Call, source: Source) -> Post:
    return Post(_flag_name(node, source), node.lineno)


def _await(node: ast.Call, source: Source) -> Await:
    return Await(_flag_name(node, source), node.lineno)


def _flag_name(node: ast.Call, source: Source) -> str:
    usage = CALLS[_name(node)]
    match _plain_args(node, usage, source):
        case [ast.Constant(str(flag))] if flag.isascii() and flag.isidentifier():
            return flag
        case _:
            message = f"{_name(node)} takes the name of a flag, in quotes"
            raise source.error("lang-operands", message, node, legal=usage)


def _combine(name: str, node: ast.Call, source: Source) -> Combine:
    args = _plain_args(node, CALLS[name], source)
    if len(args) != 4:
        raise source.error(
            "lang-operands", f"{name} takes 4 operands, not {len(args)}", node, legal=CALLS[name],
            hint=f"write {CALLS[name]}",
        )  # fmt: skip
    if not isinstance(args[2], ast.Name):
        raise source.error(
            "lang-operands", "the third operand is a scratch tensor without an offset", node,
            legal=CALLS[name],
        )  # fmt: skip
    views = read_view(args[0], source), read_view(args[1], source)
    count = read_expr(args[3], source)
    return Combine(name.removeprefix("combine_"), *views, args[2].id, count, node.lineno)


_READERS: dict[str, Callable[[ast.Call, Source], Stmt]] = {
    "load": _load,
    "store": _store,
    "mmad": _mmad,
    "sync_cores": _sync,
    "post": _post,
    "wait": _await,
}
