"""What a README and a verdict say first of the sizes that an operator serves."""

from __future__ import annotations

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Const, Dim, Expr
from npusmith.ir.spec import OpSpec, Port
from npusmith.ir.text import show_expr
from npusmith.lower.fold import fold
from npusmith.lower.kinds import Kind
from npusmith.lower.served import equal_sizes, restrictions, with_own_weights


def test_numbers_come_first_and_what_follows_from_them_or_from_equal_sizes_is_left_out() -> None:
    x0, x1, y0, y1 = (Dim(name, axis) for name in "xy" for axis in range(2))
    legal: tuple[Expr, ...] = (
        Binary(BinOp.EQ, x0, y0),
        Binary(BinOp.LE, x0, Const(64)),
        Binary(BinOp.LE, y0, Const(64)),
        Binary(BinOp.EQ, y1, x1),
        Binary(BinOp.GE, y1, Const(9)),
        Binary(BinOp.EQ, Binary(BinOp.MOD, x0, Const(4)), Const(0)),
        Binary(BinOp.EQ, x1, Const(12)),
    )
    ports = tuple(Port(name, DType.FLOAT32, (8, 12)) for name in "xy")
    spec = OpSpec("op", ports, (), legal=legal)
    assert [show_expr(expr) for expr in restrictions(spec)] == [
        "x.shape[0] % 4 == 0", "x.shape[1] == 12", "x.shape[0] <= 64",
    ]  # fmt: skip
    assert [show_expr(expr) for expr in equal_sizes(spec)] == [
        "x.shape[0] == y.shape[0]", "y.shape[1] == x.shape[1]",
    ]  # fmt: skip


def test_a_multiple_is_divided_by_its_factors_whatever_the_sizes_are() -> None:
    x0, x1 = Dim("x", 0), Dim("x", 1)
    even = Binary(BinOp.MUL, x0, Const(6))
    rests = {
        Binary(BinOp.MOD, even, Const(2)): "0",
        Binary(BinOp.MOD, Binary(BinOp.ADD, even, Const(9)), Const(3)): "0",
        Binary(BinOp.MOD, Binary(BinOp.MUL, x1, even), Const(-3)): "0",
        Binary(BinOp.MOD, x0, Const(1)): "0",
        Binary(BinOp.MOD, even, Const(4)): "x.shape[0] * 6 % 4",
        Binary(BinOp.MOD, Binary(BinOp.ADD, even, x1), Const(2)): (
            "(x.shape[0] * 6 + x.shape[1]) % 2"
        ),
        Binary(BinOp.MOD, even, Const(0)): "x.shape[0] * 6 % 0",
    }
    assert {rest: show_expr(fold(rest, lambda _: Kind.INT)) for rest in rests} == rests
    legal = tuple(Binary(BinOp.EQ, rest, Const(0)) for rest in rests)[:4]
    spec = OpSpec("op", (Port("x", DType.FLOAT32, (8, 12)),), (), legal=legal)
    assert restrictions(with_own_weights(spec, {})) == []


def test_a_factor_of_both_sides_is_left_out() -> None:
    x0, y0 = Dim("x", 0), Dim("y", 0)
    sides = (Binary(BinOp.MUL, item, Const(3)) for item in (x0, y0))
    assert show_expr(fold(Binary(BinOp.EQ, *sides), lambda _: Kind.INT)) == (
        "x.shape[0] == y.shape[0]"
    )
    nothing = (Binary(BinOp.MUL, item, Const(0)) for item in (x0, y0))
    assert fold(Binary(BinOp.EQ, *nothing), lambda _: Kind.INT) == Const(True)
