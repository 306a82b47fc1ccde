"""What an operator asks of sizes can be asked in order, whatever the sizes are."""

from __future__ import annotations

from npusmith.ir.conditions import conditions
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Const, Dim, Expr
from npusmith.ir.spec import OpSpec, Port
from npusmith.ir.text import show_expr
from npusmith.lang.extents import serves, unmet

ROWS, COLUMNS = Dim("x", 0), Dim("x", 1)


def _of(op: BinOp, left: Expr, right: Expr) -> Expr:
    return Binary(op, left, right)


def _operator(legal: tuple[Expr, ...] | None, dims: tuple[Expr, ...]) -> OpSpec:
    inputs = (Port("x", DType.FLOAT32, (4, 8)),)
    return OpSpec("o", inputs, (Port("y", DType.FLOAT32, (6, 4), dims=dims),), legal=legal)


def test_what_is_divided_by_comes_first_and_divisors_of_divisors_before() -> None:
    inner = _of(BinOp.FLOORDIV, Const(6), _of(BinOp.SUB, ROWS, Const(1)))
    whole = _of(BinOp.EQ, _of(BinOp.MOD, COLUMNS, inner), Const(0))
    spec = _operator((whole, _of(BinOp.LE, ROWS, Const(4))), (inner, Const(4)))
    assert [show_expr(expr) for expr in conditions(spec)] == [
        "x.shape[0] - 1 >= 1",
        "6 // (x.shape[0] - 1) >= 1",
        "x.shape[1] % (6 // (x.shape[0] - 1)) == 0",
        "x.shape[0] <= 4",
    ]


def test_no_size_divides_by_zero_when_it_is_asked() -> None:
    quotient = _of(BinOp.FLOORDIV, Const(6), _of(BinOp.SUB, ROWS, Const(1)))
    spec = _operator((_of(BinOp.EQ, _of(BinOp.MOD, COLUMNS, quotient), Const(0)),), ())
    served = {rows: serves(spec, {"x": (rows, 8)}) for rows in range(10)}
    assert served == {0: False, 1: False, 2: False, 3: False} | {
        4: True, 5: True, 6: True, 7: True, 8: False, 9: False
    }  # fmt: skip
    assert show_expr(unmet(spec, {"x": (1, 8)}) or ROWS) == "x.shape[0] - 1 >= 1"


def test_of_an_operator_of_which_nothing_is_known_nothing_is_asked() -> None:
    assert not [*conditions(_operator(None, (_of(BinOp.FLOORDIV, ROWS, COLUMNS),)))]
