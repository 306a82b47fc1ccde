"""Expressions and operands: from Python's tree to nodes."""

from __future__ import annotations

import ast
import math
from itertools import pairwise

from npusmith.errors import LangError
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Call,
    ChipFact,
    Choice,
    Const,
    CoreCount,
    CoreId,
    Dim,
    Expr,
    Name,
    Negate,
    ScalarFn,
    Size,
    Span,
    Value,
    View,
)
from npusmith.lang import habits
from npusmith.lang.source import Source, short
from npusmith.lang.words import CHIP_FACTS, EXPRESSIONS, OPERATIONS, SCALAR_ARGS, mean
from npusmith.target.intrinsics import INTRINSICS

INT64_MAX = 2**63 - 1

_BINARY: dict[type[ast.AST], BinOp] = {
    ast.Add: BinOp.ADD,
    ast.Sub: BinOp.SUB,
    ast.Mult: BinOp.MUL,
    ast.Div: BinOp.DIV,
    ast.FloorDiv: BinOp.FLOORDIV,
    ast.Mod: BinOp.MOD,
}
_COMPARE: dict[type[ast.AST], BinOp] = {
    ast.Lt: BinOp.LT,
    ast.LtE: BinOp.LE,
    ast.Gt: BinOp.GT,
    ast.GtE: BinOp.GE,
    ast.Eq: BinOp.EQ,
    ast.NotEq: BinOp.NE,
}


def read_expr(node: ast.expr, source: Source) -> Expr:
    """A scalar expression."""
    match node:
        case ast.Constant(value):
            return Const(_number(value, node, source))
        case ast.Name("inf"):
            return Const(math.inf)
        case ast.Name("nan"):
            raise _bad_number("nan has no literal", node, source)
        case ast.Name(name):
            return Name(name)
        case ast.BinOp(left, op, right):
            sign = _operator(op, node, source)
            return Binary(sign, read_expr(left, source), read_expr(right, source))
        case ast.UnaryOp(op, operand):
            return _unary(op, operand, node, source)
        case ast.BoolOp(op, values):
            sign = BinOp.AND if isinstance(op, ast.And) else BinOp.OR
            return _fold(sign, [read_expr(value, source) for value in values])
        case ast.Compare():
            return _compare(node, source)
        case ast.IfExp(test, body, orelse):
            return Choice(*(read_expr(item, source) for item in (test, body, orelse)))
        case ast.Call():
            return _call(node, source)
        case ast.Attribute():
            return _attribute(node, source)
        case ast.Subscript():
            return _dimension(node, source)
        case _:
            raise _not_expression(node, source)


def _not_expression(node: ast.AST, source: Source) -> LangError:
    name, hint = habits.EXPRESSIONS.get(type(node), (type(node).__name__, ""))
    return source.error("lang-expression", f"{name} is not an expression here", node, hint=hint)


def _bad_number(message: str, node: ast.AST, source: Source, hint: str = "") -> LangError:
    return source.error("lang-number", message, node, hint=hint)


def _number(value: object, node: ast.AST, source: Source) -> int | float | bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if value > INT64_MAX:
            raise _bad_number(f"an int of {value.bit_length()} bits", node, source)
        return value
    if isinstance(value, float):
        if math.isinf(value):
            raise _bad_number("the number is too large for a float", node, source, "write inf")
        return value
    kind = "a complex number" if isinstance(value, complex) else f"a {type(value).__name__}"
    raise source.error(
        "lang-expression", f"{kind} is not a scalar", node, hint="use an int, a float or a bool"
    )


def _operator(op: ast.operator, node: ast.AST, source: Source) -> BinOp:
    if type(op) not in _BINARY:
        name, hint = habits.OPERATORS[type(op)]
        raise source.error("lang-expression", f"there is no operator {name}", node, hint=hint)
    return _BINARY[type(op)]


def _unary(op: ast.unaryop, operand: ast.expr, node: ast.UnaryOp, source: Source) -> Expr:
    if isinstance(op, ast.Invert):
        name, hint = habits.OPERATORS[ast.Invert]
        raise source.error("lang-expression", f"there is no operator {name}", node, hint=hint)
    if isinstance(op, ast.USub) and _is_lowest(operand):
        return Const(-(2**63))
    value = read_expr(operand, source)
    if isinstance(op, ast.UAdd):
        return value
    if isinstance(op, ast.Not):
        return Choice(value, Const(False), Const(True))
    literal = isinstance(operand, ast.Constant) or value == Const(math.inf)
    if literal and _glued(node, operand) and isinstance(value, Const):
        if isinstance(value.value, bool):
            raise source.error("lang-expression", "a bool cannot be negated with -", node)
        return Const(-value.value)
    return Negate(value)


def _is_lowest(node: ast.expr) -> bool:
    """2**63 is an int64 only with a minus sign in front of it."""
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 2**63


def _glued(node: ast.UnaryOp, operand: ast.expr) -> bool:
    """-3 is a number; -(3) negates one. The two differ only in where they stand."""
    return node.lineno == operand.lineno and operand.col_offset == node.col_offset + 1


def _fold(op: BinOp, values: list[Expr]) -> Expr:
    result = values[0]
    for value in values[1:]:
        result = Binary(op, result, value)
    return result


def _compare(node: ast.Compare, source: Source) -> Expr:
    """`a < b < c` is `a < b and b < c`."""
    for op in node.ops:
        if type(op) not in _COMPARE:
            name, hint = habits.OPERATORS[type(op)]
            raise source.error("lang-expression", f"there is no operator {name!r}", node, hint=hint)
    items = [read_expr(item, source) for item in (node.left, *node.comparators)]
    pairs = zip(node.ops, pairwise(items), strict=True)
    return _fold(BinOp.AND, [Binary(_COMPARE[type(op)], a, b) for op, (a, b) in pairs])


# ----------------------------------------------------------------------------------------- calls


def _call(node: ast.Call, source: Source) -> Expr:
    if not isinstance(node.func, ast.Name):
        raise foreign(node.func, node, source)
    name = node.func.id
    if name not in EXPRESSIONS:
        raise _not_function(name, node, source)
    if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
        raise source.error("lang-operands", f"{name}() takes plain arguments", node)
    if name in ("core_id", "core_count"):
        _expect(name, 0, node, source)
        return CoreId() if name == "core_id" else CoreCount()
    if name == "value":
        _expect(name, 1, node, source)
        return Value(read_view(node.args[0], source))
    return _scalar_call(ScalarFn(name), node, source)


def _scalar_call(fn: ScalarFn, node: ast.Call, source: Source) -> Expr:
    if fn is ScalarFn.FLOAT and node.args and _is_text(node.args[0]):
        raise _bad_number("float() of a string", node, source, "write inf or -inf")
    if fn in (ScalarFn.MIN, ScalarFn.MAX) and len(node.args) > 2:
        first, *rest = (read_expr(arg, source) for arg in node.args)
        for item in rest:  # min(a, b, c) is min(min(a, b), c)
            first = Call(fn, (first, item))
        return first
    _expect(fn.value, SCALAR_ARGS[fn], node, source)
    return Call(fn, tuple(read_expr(arg, source) for arg in node.args))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _expect(name: str, count: int, node: ast.Call, source: Source) -> None:
    if len(node.args) != count:
        raise source.error(
            "lang-operands",
            f"{name}() takes {count} argument{'s' * (count != 1)}, not {len(node.args)}",
            node,
        )


def _not_function(name: str, node: ast.AST, source: Source) -> LangError:
    if name in OPERATIONS:
        return source.error(
            "lang-op-value",
            f"{name} is an operation on buffers and has no value",
            node,
            hint=f"a statement of its own: {habits.instead(name)}",
        )
    return unknown_call(name, node, source, EXPRESSIONS)


def unknown_call(name: str, node: ast.AST, source: Source, among: tuple[str, ...]) -> LangError:
    """Something is called that the language does not have."""
    if habits.is_foreign(name):
        return source.error(
            "lang-foreign",
            f"{short(name)} is not of this language",
            node,
            hint=habits.instead(name),
        )
    hint = mean(name, among) or mean(name, (*OPERATIONS, *EXPRESSIONS))
    return source.error("lang-unknown-op", f"nothing is called {short(name)!r}", node, hint=hint)


def foreign(func: ast.expr, node: ast.AST, source: Source) -> LangError:
    """Something with a dot, or stranger, is called."""
    parts = habits.dotted(func)
    if not parts:
        return source.error("lang-expression", "only a name can be called", node)
    system = habits.system_of(parts)
    owner = f"{system}'s" if system else "not of this language"
    text = short(".".join(parts))
    message = f"{text} is {owner}" if system else f"{text}(...) is {owner}"
    return source.error("lang-foreign", message, node, hint=habits.instead(parts[-1]))


# ------------------------------------------------------------------------- attributes and shapes


def _attribute(node: ast.Attribute, source: Source) -> Expr:
    match node:
        case ast.Attribute(ast.Name("chip"), fact):
            if fact not in CHIP_FACTS:
                raise source.error(
                    "lang-unknown-name",
                    f"chip has no fact {short(fact)!r}",
                    node,
                    legal="chip.vector_cores, chip.ub_bytes",
                    hint=mean(fact, CHIP_FACTS),
                )
            return ChipFact(fact)
        case ast.Attribute(ast.Name(tensor), "size"):
            return Size(tensor)
        case ast.Attribute(ast.Name(_), "shape"):
            raise source.error(
                "lang-expression", "a shape is read one dimension at a time", node,
                hint="x.shape[0], or x.shape[-1] for the last one",
            )  # fmt: skip
        case _:
            raise foreign(node, node, source)


def _dimension(node: ast.Subscript, source: Source) -> Expr:
    match node.value:
        case ast.Attribute(ast.Name(tensor), "shape"):
            index = node.slice
            sign = 1
            if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
                sign, index = -1, index.operand
            if isinstance(index, ast.Constant) and type(index.value) is int and index.value < 64:
                return Dim(tensor, sign * index.value)
            raise source.error(
                "lang-expression", "a dimension's index is a literal int", node,
                hint="x.shape[0], or x.shape[-1] for the last one",
            )  # fmt: skip
        case ast.Name():
            raise source.error(
                "lang-expression", "an element of a buffer or tensor is not a scalar", node,
                hint="value(buf[i]) reads one element of a buffer; load() brings a tensor's here",
            )  # fmt: skip
        case _:
            raise source.error("lang-expression", "only x.shape has an index here", node)


# -------------------------------------------------------------------------------------- operands


def _located(node: ast.expr, source: Source) -> tuple[str, Expr]:
    """`name` or `name[offset]`."""
    match node:
        case ast.Name(name):
            return name, Const(0)
        case ast.Subscript(ast.Name(name), index):
            return name, read_expr(index, source)
        case ast.Subscript() | ast.Attribute():
            raise source.error(
                "lang-operands", "an operand is a name, or a name with an offset", node
            )
        case ast.Call(ast.Name(name)) if name in INTRINSICS:
            raise _not_function(name, node, source)
        case _:
            raise source.error("lang-operands", "a buffer or tensor is expected here", node)


def read_view(node: ast.expr, source: Source) -> View:
    """`buf`, `buf[offset]` or `buf[row, col]`."""
    match node:
        case ast.Subscript(ast.Name(name), ast.Tuple([row, col])):
            return View(name, read_expr(row, source), read_expr(col, source))
    return View(*_located(node, source))


def read_span(node: ast.expr, source: Source) -> Span:
    """`x` or `x[offset]`."""
    return Span(*_located(node, source))
