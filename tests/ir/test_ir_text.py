"""Print then parse is identity, types included."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusmith.errors import LangError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Alloc,
    Assign,
    Atomic,
    Barrier,
    Binary,
    BinOp,
    Buffer,
    Call,
    ChipFact,
    Choice,
    Combine,
    Const,
    CoreCount,
    CoreId,
    Deque,
    Dim,
    Enque,
    Event,
    Expr,
    For,
    Free,
    Host,
    If,
    Kernel,
    Launch,
    Load,
    Name,
    Negate,
    Note,
    Op,
    Program,
    Role,
    Scalar,
    ScalarFn,
    Size,
    Span,
    Stage,
    StageKind,
    Store,
    SyncCores,
    Tensor,
    TensorRole,
    Value,
    View,
)
from npusmith.ir.text import show, show_expr, show_stmt
from npusmith.lang import parse
from npusmith.target.intrinsics import COMBINES, INTRINSICS, Operand

CORPUS = sorted((Path(__file__).parents[1] / "kernels").glob("*.tile.py"))


def exact(program: Program) -> str:
    """Everything of a program but its lines; tells 1 from 1.0 and 0.0 from -0.0."""
    return re.sub(r"line=\d+", "", repr(program))


def program_of(*body: object, consts: tuple[tuple[str, int | float], ...] = ()) -> Program:
    """A program around some statements."""
    tensors = (
        Tensor("x", DType.FLOAT32, TensorRole.INPUT),
        Tensor("y", DType.FLOAT32, TensorRole.OUTPUT),
    )
    kernel = Kernel("k", tensors, (Scalar("n"),), (), tuple(body))  # type: ignore[arg-type]
    return Program(consts, Host("host", ("x", "y"), (), (Launch("k", Const(1), ()),)), (kernel,))


def assert_same(program: Program) -> None:
    again = parse(show(program))
    assert again == program
    assert exact(again) == exact(program)


# ------------------------------------------------------------------------------------ strategies

NAMES = st.sampled_from(["a", "b", "row", "n", "TILE", "x_1", "max_", "total"])
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
INTS = st.one_of(st.integers(-9, 9), st.integers(-(2**63), 2**63 - 1))
FLOATS = st.floats(allow_nan=False)
CONSTS = st.one_of(INTS, FLOATS, st.booleans()).map(Const)
LEAVES = st.one_of(
    CONSTS,
    NAMES.map(Name),
    st.just(CoreId()),
    st.just(CoreCount()),
    st.builds(Dim, NAMES, st.integers(-63, 63)),
    st.builds(Size, NAMES),
    st.sampled_from(["vector_cores", "ub_bytes"]).map(ChipFact),
)
ONE, TWO = (
    (ScalarFn.FLOAT, ScalarFn.INT),
    tuple(fn for fn in ScalarFn if fn.value not in "float int"),
)


def _grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(Binary, st.sampled_from(BinOp), inner, inner),
        st.builds(Negate, inner),
        st.builds(Choice, inner, inner, inner),
        st.builds(Call, st.sampled_from(TWO), st.tuples(inner, inner)),
        st.builds(Call, st.sampled_from(ONE), st.tuples(inner)),
        st.builds(Value, st.builds(View, NAMES, inner)),
    )


EXPRS: st.SearchStrategy[Expr] = st.recursive(LEAVES, _grow, max_leaves=12)
VIEWS = st.builds(View, NAMES, EXPRS)
SPANS = st.builds(Span, NAMES, EXPRS)


@st.composite
def ops(draw: st.DrawFn) -> Op:
    row = INTRINSICS[draw(st.sampled_from(sorted(INTRINSICS)))]
    views = tuple(draw(VIEWS) for _ in row.views)
    scalars = tuple(draw(EXPRS) for _ in range(row.operands.count(Operand.SCALAR)))
    mode = draw(st.sampled_from(row.modes)) if row.modes else ""
    count = draw(EXPRS) if Operand.COUNT in row.operands else Const(1)
    return Op(row.name, views, scalars, mode, count)


@st.composite
def copies(draw: st.DrawFn) -> Load | Store:
    both = draw(st.booleans())
    rows, pitch = (draw(EXPRS), draw(EXPRS)) if both else (None, None)
    if draw(st.booleans()):
        return Load(draw(VIEWS), draw(SPANS), draw(EXPRS), rows, pitch)
    atomic = draw(st.sampled_from([None, *Atomic]))
    return Store(draw(SPANS), draw(VIEWS), draw(EXPRS), rows, pitch, atomic)


SIMPLE = st.one_of(
    TEXTS.map(Note),
    st.builds(Assign, NAMES, EXPRS),
    ops(),
    copies(),
    st.builds(Combine, st.sampled_from(sorted(COMBINES)), VIEWS, VIEWS, NAMES, EXPRS),
    st.just(SyncCores()),
)


def _nest(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    blocks = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        st.builds(For, NAMES, EXPRS, EXPRS, EXPRS, blocks),
        st.builds(If, EXPRS, blocks, blocks),
        st.builds(Stage, st.sampled_from(StageKind), blocks),
    )


STMTS = st.recursive(SIMPLE, _nest, max_leaves=5)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    names = st.lists(NAMES, max_size=3, unique=True).map(tuple)
    dtypes = st.sampled_from([dtype for dtype in DType if dtype.is_computed])
    roles = st.sampled_from(TensorRole)
    kernel = Kernel(
        draw(NAMES),
        tuple(Tensor(name, draw(dtypes), draw(roles)) for name in draw(names)),
        tuple(Scalar(name, draw(st.booleans())) for name in draw(names)),
        tuple(Buffer(name, draw(dtypes), draw(EXPRS)) for name in draw(names)),
        tuple(draw(st.lists(STMTS, max_size=4))),
        draw(TEXTS),
    )
    host = Host(
        draw(NAMES),
        draw(names),
        tuple(
            draw(st.lists(st.one_of(TEXTS.map(Note), st.builds(Assign, NAMES, EXPRS)), max_size=3))
        ),
        (Launch(draw(NAMES), draw(EXPRS), tuple((name, draw(EXPRS)) for name in draw(names))),),
        draw(TEXTS),
    )
    consts = tuple((name, draw(st.one_of(INTS, FLOATS))) for name in draw(names))
    return Program(consts, host, (kernel,), draw(TEXTS))


# ----------------------------------------------------------------------------------------- tests


@settings(max_examples=120, deadline=None)
@given(EXPRS)
def test_an_expression_survives_print_and_parse(expr: Expr) -> None:
    assert_same(program_of(Assign("a", expr)))


@settings(max_examples=50, deadline=None)
@given(programs())
def test_a_program_survives_print_and_parse(program: Program) -> None:
    assert_same(program)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_a_program_of_the_corpus_survives_parse_print_and_parse(path: Path) -> None:
    program = parse(path.read_text())
    assert_same(program)
    assert show(parse(show(program))) == show(program)


A, B, C = Name("a"), Name("b"), Name("c")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Const(1), "1"),
        (Const(1.0), "1.0"),
        (Const(-1), "-1"),
        (Const(-0.0), "-0.0"),
        (Const(True), "True"),
        (Const(-(2**63)), "-9223372036854775808"),
        (Const(0.1), "0.1"),
        (Const(1e-45), "1e-45"),
        (Const(math.inf), "inf"),
        (Const(-math.inf), "-inf"),
        (Negate(Const(1)), "-(1)"),
        (Negate(Const(-1)), "--1"),
        (Negate(Const(math.inf)), "-(inf)"),
        (Negate(A), "-a"),
        (Negate(Binary(BinOp.ADD, A, B)), "-(a + b)"),
        (Binary(BinOp.SUB, Binary(BinOp.SUB, A, B), C), "a - b - c"),
        (Binary(BinOp.SUB, A, Binary(BinOp.SUB, B, C)), "a - (b - c)"),
        (Binary(BinOp.MUL, Binary(BinOp.ADD, A, B), C), "(a + b) * c"),
        (Binary(BinOp.ADD, A, Binary(BinOp.MUL, B, C)), "a + b * c"),
        (Binary(BinOp.MUL, Negate(A), B), "-a * b"),
        (Negate(Binary(BinOp.MUL, A, B)), "-(a * b)"),
        (Binary(BinOp.LT, Binary(BinOp.LT, A, B), C), "(a < b) < c"),
        (Binary(BinOp.OR, Binary(BinOp.AND, A, B), C), "a and b or c"),
        (Binary(BinOp.AND, Binary(BinOp.OR, A, B), C), "(a or b) and c"),
        (Choice(A, B, Choice(B, A, C)), "b if a else a if b else c"),
        (Choice(A, Choice(B, A, C), C), "(a if b else c) if a else c"),
        (Binary(BinOp.ADD, Choice(A, B, C), A), "(b if a else c) + a"),
        (Call(ScalarFn.MIN, (A, Binary(BinOp.ADD, B, C))), "min(a, b + c)"),
        (Dim("x", -1), "x.shape[-1]"),
        (Value(View("xt", A)), "value(xt[a])"),
        (Value(View("xt")), "value(xt)"),
    ],
)
def test_an_expression_is_printed_with_the_parentheses_it_needs(expr: Expr, text: str) -> None:
    assert show_expr(expr) == text
    assert_same(program_of(Assign("a", expr)))


@pytest.mark.parametrize(
    ("text", "expr"),
    [
        ("a += b", Binary(BinOp.ADD, A, B)),
        ("a //= b", Binary(BinOp.FLOORDIV, A, B)),
        ("a = +b", B),
        ("a = not b", Choice(B, Const(False), Const(True))),
        ("a = b < c < 3", Binary(BinOp.AND, Binary(BinOp.LT, B, C), Binary(BinOp.LT, C, Const(3)))),
        ("a = min(a, b, c)", Call(ScalarFn.MIN, (Call(ScalarFn.MIN, (A, B)), C))),
        ("a = - 3", Negate(Const(3))),
        ("a = -3", Const(-3)),
        ("a = 0x10", Const(16)),
    ],
)
def test_a_shorthand_means_its_long_form(text: str, expr: Expr) -> None:
    program = parse(show(program_of(Assign("a", Const(1)))).replace("a = 1", text))
    assert program.kernel.body == (Assign("a", expr),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        'with "quotes"',
        "back\\slash",
        "two\nlines",
        "tab\t",
        "ü 中",
        "\x00",
        '"""',
        "'",
    ],
)
def test_notes_and_docstrings_keep_their_text(text: str) -> None:
    program = program_of(Note(text), Note(text))
    assert_same(program)
    assert_same(Program((), program.host, program.kernels, text))


def test_a_note_in_the_place_of_a_docstring_stays_a_note() -> None:
    assert parse(show(program_of(Note("a")))).kernel.doc == ""


def test_an_else_with_one_if_is_printed_as_elif() -> None:
    inner = If(B, (Assign("a", B),), (Assign("a", C),))
    text = show(program_of(If(A, (), (inner,))))
    assert "    if a:\n        pass\n    elif b:\n        a = b\n    else:\n        a = c\n" in text


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        ((Const(0), A, Const(1)), "range(a)"),
        ((B, A, Const(1)), "range(b, a)"),
        ((Const(0), A, Const(2)), "range(0, a, 2)"),
        ((Const(0.0), A, Const(True)), "range(0.0, a, True)"),
    ],
)
def test_a_range_is_as_short_as_it_can_be(stop: tuple[Expr, Expr, Expr], text: str) -> None:
    assert show_stmt(For("i", *stop, ())) == f"for i in {text}:"


def test_nan_cannot_be_printed() -> None:
    with pytest.raises(LangError) as caught:
        show_expr(Const(math.nan))
    assert caught.value.code == "lang-number"


@pytest.mark.parametrize(
    ("stmt", "text"),
    [
        (Alloc("xt"), "alloc(xt)"),
        (Enque("xt"), "enque(xt)"),
        (Deque("xt"), "deque(xt)"),
        (Free("xt"), "free(xt)"),
        (Barrier("V"), 'barrier("V")'),
        (Event("V", "S"), 'event("V", "S")'),
        (Load(View("xt"), Span("x"), A, padded=False), "load(xt, x, a, padded=False)"),
    ],
)
def test_what_passes_write_is_printed_and_not_parsed(stmt: object, text: str) -> None:
    shown = show(program_of(stmt))
    assert text in shown
    with pytest.raises(LangError):
        parse(shown)


def test_the_role_and_depth_of_a_buffer_are_printed() -> None:
    item = Buffer("xt", DType.FLOAT32, Const(8), Role.VECIN, 2)
    kernel = Kernel("k", (), (), (item,), ())
    shown = show(Program((), program_of().host, (kernel,)))
    assert "    xt = ub(8, float32, VECIN, depth=2)\n" in shown


@pytest.mark.parametrize("row", INTRINSICS.values(), ids=lambda row: row.name)
def test_operands_are_buffers_then_scalars_then_mode_then_count(row: object) -> None:
    order = [Operand.SCALAR, Operand.MODE, Operand.COUNT]
    places = [order.index(item) if item in order else -1 for item in row.operands]  # type: ignore[attr-defined]
    assert places == sorted(places)
