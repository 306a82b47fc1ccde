"""The kernel of rows in order that no tile holds: pieces of them, sorted together.

Pieces of a row lie in workspace, and neighbours are sorted together, the even pairs and the odd
ones by turns (odd-even transposition of blocks). The few elements that topk keeps stay on chip: a
row is gone through in pieces, each sorted behind the best so far, so that of equal ones these come
first. A row lies on chip as float32 keys; integers that these do not hold as words of 32 bits,
which are sorted by their digits of 16 bits, the lowest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Buffer,
    Call,
    ChipFact,
    Choice,
    Const,
    CoreId,
    Dim,
    Expr,
    For,
    Host,
    Kernel,
    Launch,
    Load,
    Name,
    Op,
    Scalar,
    ScalarFn,
    Span,
    Stage,
    StageKind,
    Stmt,
    Store,
    Tensor,
    TensorRole,
    Value,
    View,
)  # fmt: skip
from npusmith.plan.emit import buffer_dtype
from npusmith.plan.scalars import (
    ONE,
    ZERO,
    largest,
    least,
    minus,
    plus,
    product,
    remainder,
    shares,
    times,
)  # fmt: skip
from npusmith.plan.sorts import DIGIT
from npusmith.plan.writer import op
from npusmith.task.graph import GraphInput, Node

_WORDS = {DType.INT32: 1, DType.INT64: 2}  # of 32 bits, in integers that float32 does not hold
_LOW = Const((1 << 32) - 1)

ROW, PIECE, BEST = Name("ROW"), Name("PIECE"), Name("BEST")
ROWS, COLS, SHARE = Name("rows"), Name("cols"), Name("rows_per_core")
AT, N, LINE = Name("at"), Name("n"), Name("row")


@dataclass(frozen=True, slots=True)
class Order:
    """The first `kept` elements (all: None) in an order."""

    node: Node
    x: GraphInput
    name: str  # of the input, in the program
    mode: str
    kept: int | None
    outputs: tuple[tuple[str, int], ...]  # names, and which of the results they are

    @property
    def dims(self) -> tuple[Expr, ...]:
        return tuple(Dim(self.name, i) for i in range(len(self.x.shape)))

    @property
    def words(self) -> int:
        """Words of integers that float32 does not hold; 0 for others."""
        return _WORDS.get(self.x.dtype, 0)


@dataclass(frozen=True)
class PiecesKernel:
    """The kernel for an order; `room`: elements that the best ones so far take, where they stay."""

    order: Order
    room: int

    @property
    def planes(self) -> dict[str, DType]:
        """What an element is on chip and in workspace: a key or words, and where it stands."""
        words = {f"word{i}": DType.INT32 for i in range(self.order.words)}
        return {**(words or {"keys": DType.FLOAT32}), "ids": DType.INT32}

    @cached_property
    def buffers(self) -> tuple[Buffer, ...]:
        own, taken = self.order.x.dtype, PIECE if self.room else ROW
        kept = BEST if self.room else ROW
        found = [Buffer("x_in", buffer_dtype(own), taken)]
        found += [Buffer(name, dtype, ROW) for name, dtype in self.planes.items()]
        found += [Buffer(f"best_{name}", dtype, kept) for name, dtype in self.planes.items()]
        found += [
            Buffer("tmp", DType.FLOAT32, times(ROW, Const(4))),
            Buffer("order", DType.INT32, ROW),
            Buffer("offsets", DType.INT32, ROW),
        ]
        if self.order.words:
            found += [Buffer(name, DType.INT32, ROW) for name in ("high", "low")]
            found += [Buffer(name, DType.FLOAT32, ROW) for name in ("digit", "key")]
        if own.bytes == 1:
            found.append(Buffer("small", DType.FLOAT16, ROW))
        if self._wanted(0):
            found.append(Buffer("y_out", buffer_dtype(own), kept))
        if self._wanted(1):
            found.append(Buffer("places", DType.INT64, kept))
        return tuple(found)

    def _wanted(self, which: int) -> bool:
        return any(number == which for _, number in self.order.outputs)

    @property
    def work(self) -> dict[str, DType]:
        """Workspace tensors."""
        return {} if self.room else {f"row_{name}": dtype for name, dtype in self.planes.items()}

    def host(self, name: str) -> Host:
        dims = self.order.dims
        some = Binary(BinOp.GT, dims[-1], ZERO)
        length = times(Name("cores"), COLS)
        body = (
            Assign("cols", largest(ONE, dims[-1])),
            Assign("rows", Choice(some, product(dims[:-1]), ZERO)),
            Assign("cores", largest(ONE, least(ROWS, ChipFact("vector_cores")))),
            Assign("rows_per_core", shares(ROWS, Name("cores"))),
        )
        args = (
            *((item.id, item) for item in (ROWS, SHARE, COLS)),
            *((k, length) for k in self.work),
        )
        tensors = (self.order.name, *(called for called, _ in self.order.outputs))
        return Host("host", tensors, body, (Launch(name, Name("cores"), args),))

    def kernel(self, name: str) -> Kernel:
        x, outputs = self.order.x.dtype, self.order.outputs
        tensors = (
            Tensor(self.order.name, x, TensorRole.INPUT),
            *(Tensor(o, DType.INT64 if at else x, TensorRole.OUTPUT) for o, at in outputs),
            *(Tensor(key, dtype, TensorRole.SCRATCH) for key, dtype in self.work.items()),
        )
        first = times(CoreId(), SHARE)
        body = self._best() if self.room else self._whole()
        loop = For("row", Name("first"), least(plus(Name("first"), SHARE), ROWS), ONE, body)
        scalars = tuple(Scalar(item.id) for item in (ROWS, SHARE, COLS))
        return Kernel(name, tensors, scalars, self.buffers, (Assign("first", first), loop))

    # ---- all of a row

    def _whole(self) -> tuple[Stmt, ...]:
        """The row to workspace, sorts of two neighbouring pieces by turns, and out."""
        kept: Expr = COLS if self.order.kept is None else Const(self.order.kept)
        turns = Choice(Binary(BinOp.GT, COLS, ROW), plus(shares(COLS, PIECE), ONE), ONE)
        start = times(remainder(Name("turn"), Const(2)), PIECE)
        made = _compute(self._made("best_"))
        moved = self._pieces(ZERO, COLS, [self._load(), made, self._keep()])
        together = _compute([*self._argsort("", N), *self._sorted(N)])
        pair = self._pieces(start, COLS, [self._load_pair(), together, self._keep()])
        stored = _compute(self._finished("", N)), self._stores(times(LINE, kept), N)
        out = self._pieces(ZERO, kept, [self._load_pair(), *stored])
        own = Assign("own", times(CoreId(), COLS))
        return own, moved, For("turn", ZERO, turns, ONE, (pair,)), out

    def _pieces(self, start: Expr, stop: Expr, body: Sequence[Stmt]) -> For:
        count = Assign("n", least(ROW, minus(stop, AT)))
        return For("at", start, stop, ROW, (count, *body))

    def _load(self) -> Stage:
        span = Span(self.order.name, plus(times(LINE, COLS), AT))
        return Stage(StageKind.COPY_IN, (Load(View("x_in"), span, N),))

    def _load_pair(self) -> Stage:
        at = plus(Name("own"), AT)
        loads = tuple(Load(View(name), Span(f"row_{name}", at), N) for name in self.planes)
        return Stage(StageKind.COPY_IN, loads)

    def _keep(self) -> Stage:
        at = plus(Name("own"), AT)
        stores = (Store(Span(f"row_{name}", at), View(f"best_{name}"), N) for name in self.planes)
        return Stage(StageKind.COPY_OUT, tuple(stores))

    def _stores(self, start: Expr, count: Expr) -> Stage:
        at = start if self.room else plus(start, AT)
        stores = (
            Store(Span(name, at), View("places" if which else "y_out"), count)
            for name, which in self.order.outputs
        )
        return Stage(StageKind.COPY_OUT, tuple(stores))

    # ---- the best of a row

    def _best(self) -> tuple[Stmt, ...]:
        """Pieces of a row, each behind the best elements so far."""
        assert self.order.kept is not None
        kept, total = Const(self.order.kept), Name("total")
        back = [
            op("muls", (name, f"best_{name}"), (_one(dtype),), Name("kept"))
            for name, dtype in self.planes.items()
        ]
        turn: list[Stmt] = [
            Assign("n", least(PIECE, minus(COLS, AT))),
            Assign("base", Choice(Binary(BinOp.EQ, AT, ZERO), BEST, ZERO)),
            Assign("total", minus(plus(N, BEST), Name("base"))),
            Assign("kept", least(BEST, total)),
            self._load(),
            _compute([
                *self._made("", BEST), *self._argsort("", total, Name("base")),
                *self._sorted(Name("kept"), Name("base")), *back,
            ]),
        ]  # fmt: skip
        return (
            For("at", ZERO, COLS, PIECE, tuple(turn)),
            _compute(self._finished("best_", kept)),
            self._stores(times(LINE, kept), kept),
        )

    # ---- elements

    def _made(self, front: str, at: Expr = ZERO) -> list[Stmt]:
        """The elements that were loaded, as they are sorted."""
        dtype = self.order.x.dtype
        ids = op("create_index", (View(f"{front}ids", at),), (AT,), N)
        if not self.order.words:
            return [*_cast_to(View(f"{front}keys", at), dtype), ids]
        words = [View(f"{front}word{i}", at) for i in range(self.order.words)]
        if len(words) == 1:
            return [op("muls", (words[0], "x_in"), (ONE,), N), ids]
        element = Name("i")
        read = Value(View("x_in", element))
        parts: tuple[Expr, ...] = (read, Call(ScalarFn.RIGHT_SHIFT, (read, Const(32))))
        sets = tuple(
            Op("set", (View(word.buffer, plus(at, element)),), (part,), "", ONE)
            for word, part in zip(words, parts, strict=True)
        )
        return [For("i", ZERO, N, ONE, sets), ids]

    def _argsort(self, front: str, count: Expr, base: Expr = ZERO) -> list[Stmt]:
        """Where the elements from `base` on come from, in their order."""
        if not self.order.words:
            views = View("order"), View(f"{front}keys", base), View("tmp")
            return [Op("argsort_rows", views, (count,), self.order.mode, ONE)]
        found: list[Stmt] = []
        for at in range(self.order.words):
            word = View(f"{front}word{at}", base)
            high, low = View("high"), View("low")
            found += [
                op("shift_right", (high, word), (Const(DIGIT),), count),
                op("shift_left", (low, high), (Const(DIGIT),), count),
                op("sub", (low, word, low), (), count),
                op("cast", ("digit", low), (), count, "rint"),
                *self._by_digit(count, first=at == 0),
            ]
            if at < self.order.words - 1:  # its sign is a bit as any other
                found += [
                    op("shift_right", (low, high), (Const(DIGIT - 1),), count),
                    op("shift_left", (low, low), (Const(DIGIT),), count),
                    op("sub", (high, high, low), (), count),
                ]
            found += [
                op("cast", ("digit", high), (), count, "rint"),
                *self._by_digit(count, first=False),
            ]
        return found

    def _by_digit(self, count: Expr, first: bool) -> list[Stmt]:
        """The order so far, and among equal digits as it was."""
        four = (Const(4),)
        if first:
            return [op("argsort_rows", ("order", "digit", "tmp"), (count,), ONE, self.order.mode)]
        return [
            op("muls", ("offsets", "order"), four, count),
            op("gather", ("key", "digit", "offsets"), (ZERO,), count),
            op("argsort_rows", ("low", "key", "tmp"), (count,), ONE, self.order.mode),
            op("muls", ("offsets", "low"), four, count),
            op("gather", ("low", "order", "offsets"), (ZERO,), count),
            op("muls", ("order", "low"), (ONE,), count),
        ]

    def _sorted(self, count: Expr, base: Expr = ZERO) -> list[Stmt]:
        """Elements in their order."""
        return [
            op("muls", ("offsets", "order"), (Const(4),), count),
            *(
                op("gather", (f"best_{name}", View(name, base), "offsets"), (ZERO,), count)
                for name in self.planes
            ),
        ]

    def _finished(self, front: str, count: Expr) -> list[Stmt]:
        """Elements as they are stored."""
        found: list[Stmt] = []
        if self._wanted(0):
            found += self._values(front, count)
        if self._wanted(1):
            found.append(op("cast", ("places", f"{front}ids"), (), count, "none"))
        return found

    def _values(self, front: str, count: Expr) -> list[Stmt]:
        dtype = self.order.x.dtype
        match self.order.words:
            case 0 if dtype is DType.FLOAT32:
                return [op("muls", ("y_out", f"{front}keys"), (Const(1.0),), count)]
            case 0 if dtype.bytes == 1:
                return [
                    op("cast", ("small", f"{front}keys"), (), count, "rint"),
                    op("cast", ("y_out", "small"), (), count, "rint"),
                ]
            case 0:
                return [op("cast", ("y_out", f"{front}keys"), (), count, "rint")]
            case 1:
                return [op("muls", ("y_out", f"{front}word0"), (ONE,), count)]
        element = Name("i")
        low, high = (Value(View(f"{front}word{i}", element)) for i in range(2))
        rest = Call(ScalarFn.BITWISE_AND, (low, _LOW))
        both = plus(Call(ScalarFn.LEFT_SHIFT, (high, Const(32))), rest)
        return [
            For("i", ZERO, count, ONE, (Op("set", (View("y_out", element),), (both,), "", ONE),))
        ]


def _compute(body: Sequence[Stmt]) -> Stage:
    return Stage(StageKind.COMPUTE, tuple(body))


def _one(dtype: DType) -> Const:
    return Const(1.0) if dtype is DType.FLOAT32 else ONE


def _cast_to(keys: View, dtype: DType) -> list[Stmt]:
    """What was loaded as float32."""
    if dtype is DType.FLOAT32:
        return [op("muls", (keys, "x_in"), (Const(1.0),), N)]
    if dtype.bytes == 2:
        return [op("cast", (keys, "x_in"), (), N, "none")]
    return [
        op("cast", ("small", "x_in"), (), N, "none"),
        op("cast", (keys, "small"), (), N, "none"),
    ]
