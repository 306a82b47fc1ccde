"""What a README and a verdict say first of the sizes that an operator serves."""

from __future__ import annotations

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Const, Dim, Expr
from npusmith.ir.spec import OpSpec, Port
from npusmith.ir.text import show_expr
from npusmith.lower.served import equal_sizes, restrictions


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
