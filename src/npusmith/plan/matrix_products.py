"""Matrix products on the cube cores: a contraction -> the program of a kernel.

Blocks of the result go to cores in turns. A block stays in L0C while the depth goes by: panels of
both operands are loaded into L1, parts of panels into L0A and L0B. Blocks that are computed at the
same time share panels in L2: they are taken in groups of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import ceil, prod

from npusmith.errors import PlanError
from npusmith.ir.nodes import (
    Assign,
    Await,
    Binary,
    BinOp,
    Buffer,
    ChipFact,
    Choice,
    Const,
    CoreCount,
    CoreId,
    Dim,
    Expr,
    For,
    Host,
    If,
    Kernel,
    Launch,
    Load,
    Memory,
    Mmad,
    Name,
    Post,
    Program,
    Scalar,
    Span,
    Split,
    Stage,
    StageKind,
    Stmt,
    Store,
    Tensor,
    TensorRole,
    View,
)
from npusmith.ir.spec import OpSpec
from npusmith.ir.walk import names, names_read, subexpressions
from npusmith.plan.decisions import Decisions
from npusmith.plan.host import closure, in_order
from npusmith.plan.matrix_layout import Contraction, Operand, Run, find_contraction
from npusmith.plan.matrix_tiles import MatrixTiles, cycles, ranked, sizes_of
from npusmith.plan.read import Meaning
from npusmith.plan.scalars import (
    ONE,
    ZERO,
    largest,
    least,
    minus,
    plus,
    product,
    quotient,
    remainder,
    shares,
    times,
)
from npusmith.plan.stores import ports
from npusmith.plan.subgraphs import crossing_name
from npusmith.target.chips import Chip
from npusmith.target.cube import PRODUCTS, grid

_GROUP = 8  # rows of blocks that are taken together
_LARGE = 4096  # rows or columns
_AS_LONG, _AS_GOOD = 1.02, 1.1  # times as long as with the best blocks: as captured, and larger
# Parts of a block's sides that there are for smaller matrices.
_SMALLER = ((2, 1), (2, 2), (4, 2), (4, 4), (8, 4))

Written = tuple[Program, OpSpec, tuple[str, ...]]
Stretch = tuple[Expr, Expr]  # where it begins, and where it ends

ROWS, COLS, DEPTH = Name("BLOCK_ROWS"), Name("BLOCK_COLS"), Name("PANEL")
PART = Name("PART")
PLACES = 2  # for blocks that are handed over: one is stored while another is read
STORED, READ = "product", "taken"  # flags of blocks that are handed over


@dataclass(frozen=True, slots=True)
class Blocks:
    """Which block of a product a core computes when, for kernels that take it over.

    `whole`: a core goes through all columns of its rows, and hands them over together. `names`: of
    the host's variables that the others read.
    """

    found: Contraction
    tiles: MatrixTiles
    whole: bool
    names: tuple[str, ...]
    consts: tuple[tuple[str, int], ...]
    statements: tuple[Stmt, ...]  # where the block of `unit` stands
    indices: tuple[Expr, ...]  # along each axis of the batch
    sizes: tuple[Expr, ...]  # of each axis of the batch, of rows and of columns
    length: Expr  # of all that is handed over, for one core
    units: Expr


def write_matrix_product(meaning: Meaning, name: str, chip: Chip, d: Decisions) -> Written:
    """The program of a graph that is one matrix product. Raises plan-cube for others."""
    found, tiles_of = _quickest(meaning, chip)
    return _written(_writer(found, tiles_of, chip, d), name)


def write_handed_over(
    meaning: Meaning, name: str, chip: Chip, d: Decisions, whole: bool
) -> tuple[Written, Blocks]:
    """The same with its blocks handed over to the vector cores beside, one after another.

    `whole`: rows with all of their columns. Raises plan-cube for other graphs.
    """
    found, tiles_of = _quickest(meaning, chip)
    if not whole:
        w = _writer(found, tiles_of, chip, d)
    else:
        tiles = min(tiles_of, key=lambda tiles: _cycles_of_rows(found, tiles, chip))
        w = _Writer(found, tiles, min(_count_of_rows(found, tiles), chip.cube_cores))
    w = replace(w, hands_over=True, whole=whole)
    return _written(w, name), w.blocks()


def _writer(
    found: Contraction, tiles_of: Sequence[MatrixTiles], chip: Chip, d: Decisions
) -> _Writer:
    blocks = {(tiles.rows, tiles.cols): tiles for tiles in tiles_of}
    tiles = blocks[d.block(list(blocks))]
    large = _for_larger(found, tiles, chip) if tiles is tiles_of[0] else None
    enough = _count(found, tiles) if large is None else chip.cube_cores
    return _Writer(found, large or tiles, enough)


def _cycles_of_rows(found: Contraction, tiles: MatrixTiles, chip: Chip) -> float:
    """Of the busiest core where each goes through all columns of its rows."""
    rows, blocks = _count_of_rows(found, tiles), _count(found, tiles)
    turns = ceil(rows / chip.cube_cores) * ceil(blocks / rows)
    return cycles(sizes_of(found), tiles, chip) * turns / ceil(blocks / chip.cube_cores)


def _count_of_rows(found: Contraction, tiles: MatrixTiles) -> int:
    """Rows of blocks of the result at the captured sizes."""
    count = prod(run.captured for run in found.batch)
    return max(count * ceil(found.rows.captured / tiles.rows), 1)


def _written(w: _Writer, name: str) -> Written:
    found = w.found
    body = w.body()
    program = _program(w, name, body)
    inputs, outputs = ports(found.space, [found.target])
    deep = (test for run in (found.depth, *found.around) for test in _not_empty(run.size))
    legal = tuple(dict.fromkeys((*found.space.legal, *deep)))
    spec = OpSpec(name, inputs, outputs, legal=legal)
    tiles = w.tiles
    note = f"blocks of {tiles.rows} x {tiles.cols}, {tiles.part} deep in L0, {tiles.panel} in L1"
    if found.part is not None:
        note += f"; the depth in {found.batch[0].captured} parts"
    return program, spec, (*found.space.notes, note)


def _quickest(meaning: Meaning, chip: Chip) -> tuple[Contraction, tuple[MatrixTiles, ...]]:
    """The product with its likeliest tiles, the best first.

    Places of a window's row and channels are one depth, whose rows overlap in memory; where places
    are gone through one after another, panels are more, and each is one stretch of memory. Rows of
    few channels that overlap begin inside of blocks, and take longer than the estimate knows.
    """
    found = find_contraction(meaning)
    sizes = sizes_of(found)
    best = found, ranked(sizes, chip)
    try:
        other = find_contraction(meaning, merged=False)
    except PlanError:
        return best
    if other.depth.captured == found.depth.captured:
        return best
    apart = other, ranked(sizes_of(other), chip)
    overlap = any(
        deep and pitch < sizes.depth for deep, pitch in zip(sizes.deep, sizes.pitches, strict=True)
    )
    if overlap and other.depth.captured * sizes.dtype.bytes < chip.block_bytes:
        return apart
    return min(best, apart, key=lambda way: cycles(sizes_of(way[0]), way[1][0], chip))


def _count(found: Contraction, tiles: MatrixTiles) -> int:
    """Blocks of the result at the captured sizes."""
    count = prod(run.captured for run in found.batch)
    rows, cols = found.rows.captured, found.cols.captured
    return count * ceil(rows / tiles.rows) * ceil(cols / tiles.cols)


def _for_larger(found: Contraction, tiles: MatrixTiles, chip: Chip) -> MatrixTiles | None:
    """What is best for larger matrices, where its parts take about as long at the captured sizes.

    None where sizes are the model's, or where captured matrices are large.
    """
    sizes = sizes_of(found)
    users = {
        item.name
        for item in found.space.inputs
        if item.item.kind == "user" or crossing_name(item.item)
    }
    rows, cols = (
        max(run.captured, _LARGE) if _names_of(run.size) & users else run.captured
        for run in (found.rows, found.cols)
    )
    if (rows, cols) == (sizes.rows, sizes.cols):
        return None
    scaled = replace(sizes, rows=rows, cols=cols)
    likely = ranked(scaled, chip)
    most, own = _AS_GOOD * cycles(scaled, likely[0], chip), cycles(sizes, tiles, chip)
    for large in takewhile(lambda way: cycles(scaled, way, chip) <= most, likely):
        if large.rows * large.cols <= tiles.rows * tiles.cols:
            continue
        if cycles(sizes, _part_of(large, found, chip), chip) <= _AS_LONG * own:
            return large
    return None


def _part_of(tiles: MatrixTiles, found: Contraction, chip: Chip) -> MatrixTiles:
    """With the part of a block that a kernel takes at the captured sizes."""
    parts = [replace(tiles, rows=high, cols=wide) for high, wide in _sides_of(tiles, found)]
    enough = (part for part in parts if _count(found, part) >= chip.cube_cores)
    return next(enough, parts[-1])


def _sides_of(tiles: MatrixTiles, found: Contraction) -> list[tuple[int, int]]:
    """Of a block, and of its parts for smaller matrices, which are whole units."""
    unit = grid(found.left.dtype)

    def cut(side: int, by: int) -> int:
        return max(ceil(side / by / unit) * unit, unit) if side > unit else side

    parts = [(cut(tiles.rows, rows), cut(tiles.cols, cols)) for rows, cols in _SMALLER]
    return [(tiles.rows, tiles.cols), *parts]


def _names_of(size: Expr) -> set[str]:
    return {item.tensor for item in subexpressions(size) if isinstance(item, Dim)}


def _not_empty(size: Expr) -> Iterator[Expr]:
    """Tests for a size to be 1 or more: each of its factors is."""
    match size:
        case Binary(BinOp.MUL, left, right):
            yield from (*_not_empty(left), *_not_empty(right))
        case Const():
            pass
        case _:
            yield Binary(BinOp.GE, size, ONE)


@dataclass(slots=True)
class _Writer:
    found: Contraction
    tiles: MatrixTiles
    enough: int  # blocks, for the largest that there are
    hands_over: bool = False  # blocks, to the vector cores beside
    whole: bool = False  # ... rows with all of their columns
    sides: tuple[Expr, Expr] = (ROWS, COLS)  # of a block
    defined: dict[str, Expr] = field(default_factory=dict)

    def size(self, name: str, value: Expr) -> Expr:
        """A host variable, where the value is more than a number."""
        if isinstance(value, Const):
            return value
        self.defined.setdefault(name, value)
        return Name(name)

    def body(self) -> tuple[Stmt, ...]:
        found = self.found
        rows, cols = self.size("rows", found.rows.size), self.size("cols", found.cols.size)
        batch = [self.size(f"batch{i}", run.size) for i, run in enumerate(found.batch)]
        self.sides = self._sides(rows, cols, batch)
        row_blocks = self.size("row_blocks", shares(rows, self.sides[0]))
        col_blocks = self.size("col_blocks", shares(cols, self.sides[1]))
        blocks = self.size("blocks", product((row_blocks, ONE if self.whole else col_blocks)))
        units = self.size("units", product((*batch, blocks)))
        self.defined["cores"] = largest(least(units, ChipFact("cube_cores")), ONE)
        block = self._block(batch, blocks, row_blocks, col_blocks, rows, cols)
        if not self.hands_over:
            return (For("unit", CoreId(), units, CoreCount(), block),)
        turn, counted = Name("turn"), Assign("turn", plus(Name("turn"), ONE))
        return (
            Assign("turn", ZERO),
            For("unit", CoreId(), units, CoreCount(), (*block, counted)),
            For("left", ZERO, least(turn, Const(PLACES)), ONE, (Await(READ),)),
        )

    def blocks(self) -> Blocks:
        """Where each block stands, for who takes it over; behind `body`."""
        found = self.found
        rows, cols = self.size("rows", found.rows.size), self.size("cols", found.cols.size)
        batch = [self.size(f"batch{i}", run.size) for i, run in enumerate(found.batch)]
        row_blocks = self.size("row_blocks", shares(rows, self.sides[0]))
        col_blocks = self.size("col_blocks", shares(cols, self.sides[1]))
        blocks = self.size("blocks", product((row_blocks, ONE if self.whole else col_blocks)))
        units = self.size("units", product((*batch, blocks)))
        statements = self._stand(batch, blocks, row_blocks, col_blocks, rows, cols)
        if self.whole:
            statements += [Assign("col_at", ZERO), Assign("n", cols)]
        indices = self._indices(batch, blocks, statements)
        read = {*names_read(tuple(statements)), *names(units)}
        read |= {name for index in indices for name in names(index)}
        return Blocks(
            found, self.tiles, self.whole, tuple(name for name in self.defined if name in read),
            (("BLOCK_ROWS", self.tiles.rows), ("BLOCK_COLS", self.tiles.cols)), tuple(statements),
            tuple(indices), (*batch, rows, cols), times(Const(PLACES), self._area()), units,
        )  # fmt: skip

    def pitch(self) -> Expr:
        """Elements between the rows of a block that is handed over."""
        if self.whole:
            return self.size("cols", self.found.cols.size)
        return Const(self.tiles.cols)

    def _area(self) -> Expr:
        """Elements of one block that is handed over, at most."""
        return times(Const(self.tiles.rows), self.pitch())

    def _sides(self, rows: Expr, cols: Expr, batch: list[Expr]) -> tuple[Expr, Expr]:
        """Of a block: smaller ones than captured where there are too few for all cores.

        At the captured sizes, and wherever there are as many blocks, they are as chosen.
        """
        enough = least(Const(self.enough), ChipFact("cube_cores"))
        if isinstance(rows, Const) and isinstance(cols, Const) and not batch:
            return ROWS, COLS
        smaller = _sides_of(self.tiles, self.found)[1:]
        if self.whole:
            smaller = [(high, self.tiles.cols) for high in dict.fromkeys(h for h, _ in smaller)]
        ways: list[tuple[Expr, Expr]] = [(ROWS, COLS)]
        ways += [(Const(high), Const(wide)) for high, wide in smaller]
        high, wide = ways[-1]
        for way in reversed(ways[:-1]):
            units = product((*batch, shares(rows, way[0])))
            units = units if self.whole else times(units, shares(cols, way[1]))
            fits = Binary(BinOp.GE, units, enough)
            high = way[0] if way[0] == high else Choice(fits, way[0], high)
            wide = way[1] if way[1] == wide else Choice(fits, way[1], wide)
        return self.size("block_rows", high), self.size("block_cols", wide)

    def _block(
        self, batch: list[Expr], blocks: Expr, row_blocks: Expr, col_blocks: Expr, rows: Expr,
        cols: Expr,
    ) -> tuple[Stmt, ...]:  # fmt: skip
        found = self._stand(batch, blocks, row_blocks, col_blocks, rows, cols)
        indices = self._indices(batch, blocks, found)
        if not self.whole:
            return (*found, *self._computed(indices))
        at = self._columns(Name("col_at"), cols)
        inside = (*at, *self._computed(indices))
        columns = For("col_at", ZERO, cols, self.sides[1], inside)
        return (*found, self._wait(), columns, Post(STORED))

    def _stand(
        self, batch: list[Expr], blocks: Expr, row_blocks: Expr, col_blocks: Expr, rows: Expr,
        cols: Expr,
    ) -> list[Stmt]:  # fmt: skip
        """Where the block of a unit begins, and how large it is; of all columns, the rows alone."""
        unit, at, group = Name("unit"), Name("block"), Name("group")
        found: list[Stmt] = [Assign("block", remainder(unit, blocks) if batch else unit)]
        if self.whole:
            return [
                *found,
                Assign("row_at", times(at, self.sides[0])),
                Assign("m", least(self.sides[0], minus(rows, Name("row_at")))),
            ]
        together = product((Const(_GROUP), col_blocks))
        height = Name("height")
        inside = Name("inside")
        return [
            *found,
            Assign("group", times(quotient(at, together), Const(_GROUP))),
            Assign("height", largest(least(Const(_GROUP), minus(row_blocks, group)), ONE)),
            Assign("inside", remainder(at, together)),
            Assign("row_at", times(plus(group, remainder(inside, height)), self.sides[0])),
            Assign("col_at", times(quotient(inside, height), self.sides[1])),
            Assign("m", least(self.sides[0], minus(rows, Name("row_at")))),
            *self._columns(Name("col_at"), cols),
        ]

    def _columns(self, at: Expr, cols: Expr) -> list[Stmt]:
        return [Assign("n", least(self.sides[1], minus(cols, at)))]

    def _wait(self) -> Stmt:
        """Until the place of a block has been read that is handed over."""
        late = Binary(BinOp.GE, Name("turn"), Const(PLACES))
        return If(late, (Await(READ),), ())

    def _computed(self, indices: list[Expr]) -> list[Stmt]:
        """What a core does for a block."""
        found: list[Stmt] = []
        starts = self._starts(indices, found)
        depth = self.size("depth", self.found.depth.size)
        stretch = self._part(indices[0], depth, found) if self.found.part else (ZERO, depth)
        panels = self._around(depth, stretch, starts) if self.found.around else (
            self._panels(stretch, starts)
        )  # fmt: skip
        handed = self.hands_over and not self.whole
        before, after = ([self._wait()], [Post(STORED)]) if handed else ([], [])
        return [*found, *self._bias(), panels, *before, self._out(starts[2]), *after]

    def _part(self, index: Expr, depth: Expr, found: list[Stmt]) -> Stretch:
        """The stretch of the depth, and of all that is around it, that a unit goes through."""
        assert self.found.part is not None
        each = self.size("part_depth", self.found.part.size)
        whole = depth
        if self.found.around:
            whole = self.size("whole_depth", product((depth, self._arounds()[1])))
        first, last = Name("first"), Name("last")
        found.append(Assign("first", times(index, each)))
        found.append(Assign("last", least(plus(first, each), whole)))
        return first, last

    def _arounds(self) -> tuple[list[Expr], Expr]:
        """Sizes of the axes around the depth, and how often it is gone through."""
        runs = self.found.around
        sizes = [self.size(f"around{i}", run.size) for i, run in enumerate(runs)]
        return sizes, self.size("arounds", product(sizes))

    def _around(
        self, depth: Expr, stretch: Stretch, starts: tuple[Expr, Expr, Expr]
    ) -> Stmt:  # fmt: skip
        """The panels of every row of a window, one after another."""
        runs = self.found.around
        sizes, count = self._arounds()
        steps: list[Stmt] = []
        indices = self._apart(Name("tap"), sizes)
        for name in ("left", "right"):
            start: Expr = Name(f"{name}_at")
            for run, index in zip(runs, indices, strict=True):
                start = plus(start, times(index, self._step(name, run)))
            steps.append(Assign(f"{name}_tap_at", start))
        if not self.found.part:
            return For("tap", ZERO, count, ONE, (*steps, self._panels(stretch, starts)))
        first, last = stretch
        before = times(Name("tap"), depth)
        steps.append(Assign("begin", largest(minus(first, before), ZERO)))
        steps.append(Assign("end", least(minus(last, before), depth)))
        panels = self._panels((Name("begin"), Name("end")), starts)
        return For("tap", quotient(first, depth), shares(last, depth), ONE, (*steps, panels))

    def _apart(self, index: Expr, sizes: list[Expr]) -> list[Expr]:
        """An index of all of these axes as one along each."""
        indices: list[Expr] = []
        for size in reversed(sizes[1:]):
            indices.append(remainder(index, size))
            index = quotient(index, size)
        return [index, *reversed(indices)]

    def _indices(self, batch: list[Expr], blocks: Expr, found: list[Stmt]) -> list[Expr]:
        """Where along each axis of the batch a unit stands."""
        if not batch:
            return []
        rest: Expr = quotient(Name("unit"), blocks)
        if len(batch) > 1:
            found.append(Assign("matrix", rest))
            rest = Name("matrix")
        return self._apart(rest, batch)

    def _starts(self, indices: list[Expr], found: list[Stmt]) -> tuple[Expr, Expr, Expr]:
        """The first elements of the block's rows of the left operand, columns of the right, and
        of the block."""
        c = self.found
        parts: dict[str, list[Expr]] = {"left": [], "right": [], "out": []}
        runs = [*zip(c.batch, indices, strict=True)]
        runs += [(c.rows, Name("row_at")), (c.cols, Name("col_at"))]
        for run, index in runs:
            for name, terms in parts.items():
                step = ZERO if name == "out" and self.hands_over else self._step(name, run)
                if step != ZERO:
                    terms.append(times(index, step))
        result: list[Expr] = []
        for operand, (name, terms) in zip((c.left, c.right, c.out), parts.items(), strict=True):
            if name == "out" and self.hands_over:
                result.append(ZERO)
                continue
            start = self.size(f"{name}_start", operand.start)
            for term in terms:
                start = plus(start, term)
            found.append(Assign(f"{name}_at", start))
            result.append(Name(f"{name}_at"))
        return result[0], result[1], result[2]

    def _step(self, name: str, run: Run) -> Expr:
        """Elements of an operand for a step along a run, as a name where it is more than 1."""
        value: Expr = getattr(run, name)
        if isinstance(value, Const):
            return value
        known = next((key for key, given in self.defined.items() if given == value), None)
        return Name(known) if known else self.size(f"step{len(self.defined)}", value)

    def _panels(self, stretch: Stretch, starts: tuple[Expr, Expr, Expr]) -> Stmt:
        """All panels of a block along a stretch of the depth, one after another."""
        c = self.found
        begin, end = stretch
        deep = least(DEPTH, minus(end, Name("panel_at")))
        left, right = starts[:2]
        if c.around:
            left, right = Name("left_tap_at"), Name("right_tap_at")
        loads = (
            self._panel("a_l1", c.left, "left", c.rows, c.depth, left, Name("m")),
            self._panel("b_l1", c.right, "right", c.depth, c.cols, right, Name("n")),
        )
        parts = self._parts()
        body = (Assign("deep", deep), Stage(StageKind.COPY_IN, loads), parts)
        return For("panel_at", begin, end, DEPTH, body)

    def _panel(
        self, buffer: str, operand: Operand, name: str, rows: Run, cols: Run, start: Expr,
        side: Expr,
    ) -> Stmt:  # fmt: skip
        """A panel as it lies in memory: transposed, its columns are rows of the operand."""
        depth = cols if name == "left" else rows
        at = plus(start, times(Name("panel_at"), self._step(name, depth)))
        sizes = (side, Name("deep")) if name == "left" else (Name("deep"), side)
        runs = (rows, cols)
        if operand.transposed:
            sizes, runs = sizes[::-1], runs[::-1]
        pitch = self._step(name, runs[0])
        if pitch == ZERO:  # there is one row
            pitch = sizes[1]
        return Load(View(buffer, ZERO, ZERO), Span(operand.tensor, at), sizes[1], sizes[0], pitch)

    def _parts(self) -> Stmt:
        """All parts of a panel: into L0, and multiplied."""
        c, at, kk = self.found, Name("part_at"), Name("part")
        left, right = View("a_l1", ZERO, at), View("b_l1", at, ZERO)
        if c.left.transposed:
            left = View("a_l1", at, ZERO)
        if c.right.transposed:
            right = View("b_l1", ZERO, at)
        left_part, right_part, block = (View(name, ZERO, ZERO) for name in ("a_l0", "b_l0", "c_l0"))
        split = (
            Split(left_part, left, Name("m"), kk, c.left.transposed),
            Split(right_part, right, kk, Name("n"), c.right.transposed),
        )
        done: Expr = Name("panel_at")
        if c.around:
            before = times(Name("tap"), self.size("depth", c.depth.size)) if c.part else Name("tap")
            done = plus(before, done)
        more = Binary(BinOp.GT, plus(done, at), Name("first") if c.part else ZERO)
        bias = View("bias_row", ZERO, ZERO) if c.bias else None
        mmad = Mmad(block, left_part, right_part, Name("m"), Name("n"), kk, more, bias)
        body = (
            Assign("part", least(PART, minus(Name("deep"), at))),
            Stage(StageKind.SPLIT, split),
            Stage(StageKind.COMPUTE, (mmad,)),
        )
        return For("part_at", ZERO, Name("deep"), PART, body)

    def _bias(self) -> list[Stmt]:
        """The bias of the block's columns, in the table from which products begin."""
        bias = self.found.bias
        if bias is None:
            return []
        at = plus(self.size("bias_start", bias.start), Name("col_at"))
        row, table = View("bias_l1", ZERO, ZERO), View("bias_row", ZERO, ZERO)
        return [
            Stage(StageKind.COPY_IN, (Load(row, Span(bias.tensor, at), Name("n")),)),
            Stage(StageKind.SPLIT, (Split(table, row, ONE, Name("n")),)),
        ]

    def _out(self, start: Expr) -> Stmt:
        c = self.found
        if self.hands_over:
            place = plus(times(CoreId(), Const(PLACES)), remainder(Name("turn"), Const(PLACES)))
            start, pitch = times(place, self._area()), self.pitch()
            start = plus(start, Name("col_at")) if self.whole else start
        else:
            pitch = self._step("out", c.rows)
            pitch = Name("n") if pitch == ZERO else pitch
        block = View("c_l0", ZERO, ZERO)
        store = Store(Span(c.out.tensor, start), block, Name("n"), Name("m"), pitch, relu=c.relu)
        return Stage(StageKind.COPY_OUT, (store,))


def _buffers(found: Contraction) -> tuple[Buffer, ...]:
    """Matrices as they lie in global memory in L1, as the cube unit takes them in L0."""
    kind = found.left.dtype
    sums = PRODUCTS[kind, found.right.dtype]

    def matrix(name: str, memory: Memory, rows: Expr, cols: Expr, turned: bool = False) -> Buffer:
        sides = (cols, rows) if turned else (rows, cols)
        dtype = sums if memory is Memory.L0C else kind
        copies = 0 if memory is Memory.L0C else 2
        return Buffer(name, dtype, sides[0], memory=memory, cols=sides[1], copies=copies)

    def row(name: str, memory: Memory) -> Buffer:
        return Buffer(name, sums, ONE, memory=memory, cols=COLS, copies=1)

    return (
        matrix("a_l1", Memory.L1, ROWS, DEPTH, found.left.transposed),
        matrix("b_l1", Memory.L1, DEPTH, COLS, found.right.transposed),
        matrix("a_l0", Memory.L0A, ROWS, PART),
        matrix("b_l0", Memory.L0B, PART, COLS),
        matrix("c_l0", Memory.L0C, ROWS, COLS),
        *((row("bias_l1", Memory.L1), row("bias_row", Memory.BIAS_TABLE)) if found.bias else ()),
    )


def _program(w: _Writer, name: str, body: tuple[Stmt, ...]) -> Program:
    c, tiles = w.found, w.tiles
    read = names_read(body)
    given = [item for item in w.defined if item in read]
    needed = closure([*given, "cores"], w.defined)
    inputs = tuple(Tensor(i.name, i.item.dtype, TensorRole.INPUT) for i in c.space.inputs)
    tensors = (*inputs, Tensor(c.out.tensor, c.out.dtype, TensorRole.OUTPUT))
    args = tuple((item, Name(item)) for item in given)
    host = Host(
        "host", tuple(item.name for item in tensors),
        in_order({item: value for item, value in w.defined.items() if item in needed}),
        (Launch(name, Name("cores"), args),),
    )  # fmt: skip
    scalars = tuple(Scalar(item) for item in given)
    kernel = Kernel(name, tensors, scalars, _buffers(c), body)
    consts = (
        ("BLOCK_ROWS", tiles.rows), ("BLOCK_COLS", tiles.cols),
        ("PANEL", tiles.panel), ("PART", tiles.part),
    )  # fmt: skip
    doc = f"{name}: {c.out.tensor}, the product of {c.left.tensor} and {c.right.tensor}"
    doc += f" plus {c.bias.tensor}" if c.bias else ""
    doc += ", or 0 where that is less" if c.relu else ""
    doc += ", block by block" if w.hands_over else ""
    return Program(consts, host, (kernel,), doc)
