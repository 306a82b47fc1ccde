"""What stands behind a matrix product, of one block after another, on vector cores beside it.

The two vector cores of a block wait until their cube core has stored a block of the product, take
half of its rows each, compute with them what any kernel over tiles would (lanes.py), and say that
the block has been read. The block after it is computed meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from math import ceil

from npusmith.errors import PlanError
from npusmith.ir.launches import BLOCK_VECTOR_CORES
from npusmith.ir.nodes import (
    Assign,
    Await,
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
    For,
    Host,
    Kernel,
    Launch,
    Name,
    Post,
    Program,
    Scalar,
    ScalarFn,
    Stmt,
)
from npusmith.ir.rebuild import map_children, map_operands, map_statements, renamed, with_names
from npusmith.ir.spec import OpSpec
from npusmith.ir.walk import Block as Statements
from npusmith.ir.walk import mentioned, names, names_read, subexpressions
from npusmith.lang.extents import extent
from npusmith.plan.accesses import accessed
from npusmith.plan.axes import Atom, leaves
from npusmith.plan.axis_sizes import sized
from npusmith.plan.block import Block, Path, choice
from npusmith.plan.dag import Value, reachable
from npusmith.plan.host import TILE, closure, in_order
from npusmith.plan.index import poly, replaced
from npusmith.plan.lane_program import tensors_of
from npusmith.plan.lane_reads import captured
from npusmith.plan.lane_space import LANE, OUTSIDE, Axis, Lanes, Tiling
from npusmith.plan.lanes import packed_of, prepare
from npusmith.plan.matrix_products import PLACES, READ, STORED, Blocks
from npusmith.plan.pack import Packed
from npusmith.plan.product_blocks import ProductBlock, Span, column_axis, refuse, spans_of
from npusmith.plan.provable_conditions import live
from npusmith.plan.read import Meaning
from npusmith.plan.scalars import (
    ONE,
    ZERO,
    all_of,
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
from npusmith.plan.stores import Target, ports
from npusmith.plan.tile_loops import Along, over_tiles
from npusmith.plan.tile_stores import store_tile
from npusmith.plan.views import atoms_of
from npusmith.target.chips import Chip
from npusmith.task.graph import GraphInput

MARK = "product_"  # begins the names of what is known of the product's blocks
_OWN = f"{MARK}own_rows"  # of a block, of one of its vector cores
_ROW, _COLUMN = f"{MARK}own_row_at", f"{MARK}col_at"  # the first
_COLUMNS, _PLACE = f"{MARK}n", f"{MARK}own_at"

Written = tuple[Program, OpSpec, tuple[str, ...]]
Tests = list[Expr]  # of sizes: where they do not hold, the program is not right


def write_epilogue(
    meaning: Meaning, name: str, chip: Chip, blocks: Blocks, crossing: GraphInput
) -> tuple[Written, Tests]:
    """The program of a graph that reads a product, `crossing`, by its blocks alone.

    Raises PlanError for others. Scalars that begin with `product_` are the host's variables of the
    product's kernel; the launch of both has to give them (paired_kernels.py).
    """
    refused: list[PlanError] = []
    for form in Form:
        w, targets = prepare(meaning, chip, Lanes)
        if any(item.name.startswith(MARK) for item in w.space.inputs):
            raise refuse("an input is called as what is known of its blocks")
        writer = _Writer(w, targets, blocks, crossing, name, form)
        try:
            return writer.written(packed_of(w, writer.body(), targets))
        except PlanError as error:
            refused.append(error.with_traceback(None))
    raise refused.pop(0)


class Form(Enum):
    """What serves columns that are no whole blocks of 32 bytes, besides a form for those."""

    FILLED = "rows on chip that are filled up"
    ROWS = "one row after another"
    EVEN = "nothing"


@dataclass(slots=True)
class _Writer:
    w: Lanes
    targets: Sequence[Target]
    blocks: Blocks
    crossing: GraphInput
    name: str
    form: Form
    legal: list[Expr] = field(default_factory=list)  # what has to hold of all sizes

    # ------------------------------------------------------------------------- where a block stands

    def _runs(self) -> list[tuple[int, int]]:
        """Captured sizes of the product's batch, rows and columns, and steps in the result."""
        found = self.blocks.found
        shapes = {item.name: item.item.shape for item in found.space.inputs}
        runs = (*found.batch, found.rows, found.cols)
        return [(run.captured, extent(run.out, shapes)) for run in runs]

    def _handed(self, row: Expr, column: Expr) -> ProductBlock:
        """The block, for an element at this row and column of what a core takes of it."""
        w, blocks = self.w, self.blocks
        dims = w.layouts.get(self.crossing.name)
        if dims is None:
            raise refuse("it reads nothing of it")
        spans = spans_of(atoms_of(dims), self._runs())
        renames = self._called()
        sizes = tuple(renamed(size, renames) for size in blocks.sizes)
        batch = [Name(_index(i)) for i, _ in enumerate(blocks.indices)]
        first = ZERO if blocks.whole else Name(_COLUMN)
        indices = (*batch, plus(Name(_ROW), row), plus(first, column))
        return ProductBlock(
            self.crossing.name, spans, sizes, indices, row, column, blocks.whole, Name(_PLACE),
            self._pitch(spans),
        )  # fmt: skip

    def _pitch(self, spans: Sequence[Span]) -> Expr:
        """Elements between the rows of a block as it is handed over."""
        if not self.blocks.whole:
            return Const(self.blocks.tiles.cols)
        return self._columns(spans)

    def _columns(self, spans: Sequence[Span]) -> Expr:
        """Columns of a block: of a whole one as what is behind the product calls them."""
        if not self.blocks.whole:
            return Name(_COLUMNS)
        own = column_axis(spans, len(self.blocks.sizes) - 1)
        if own is None:
            raise refuse("its rows are several axes")
        return self.w.known[own]

    def _called(self) -> dict[str, str]:
        found = {name: f"{MARK}{name}" for name in self.blocks.names}
        found |= {
            stmt.target: f"{MARK}{stmt.target}"
            for stmt in self.blocks.statements
            if isinstance(stmt, Assign)
        }
        return {**found, "unit": f"{MARK}unit", "turn": f"{MARK}turn"}

    # ------------------------------------------------------------------------------------ the tiles

    def body(self) -> Block:
        """What a vector core does with its rows of a block."""
        w = self.w
        tiles = self.blocks.tiles
        local = {
            _OWN: ceil(min(tiles.rows, self.blocks.found.rows.captured) / BLOCK_VECTOR_CORES),
            _ROW: 0, _COLUMN: 0, _PLACE: 0,
            _COLUMNS: tiles.cols,
        }  # fmt: skip
        local |= {_index(i): 0 for i, _ in enumerate(self.blocks.indices)}
        for name, size in local.items():  # stands for it as captured; the kernel works it out
            w.sizes.define(name, Const(size))
        found = self.blocks.found
        sizes = (*found.batch, found.rows, found.cols)
        for called, run in zip(self.blocks.sizes, sizes, strict=True):
            if isinstance(called, Name):
                w.sizes.define(f"{MARK}{called.id}", Const(run.captured))
        for name in self.blocks.names:
            w.sizes.define(f"{MARK}{name}", Const(1))
        self._check()
        root, even, other = Block(), Block(), Block()
        w.alone = True
        needs = self._tiled(even, "")
        w.alone = False
        if self.form is Form.EVEN:
            self.legal = needs
            root.items += even.items
            return root
        if self.form is Form.FILLED:
            w.filled = True
            more = self._tiled(other, "r")
            self.legal = more
            w.filled = False
        elif self._reduces():
            raise refuse("rows that are reduced are whole in a tile")
        else:
            self._rows(other)
        root.items.append(choice(all_of(needs), even, other))
        return root

    def _reduces(self) -> bool:
        return any(value.op == "reduce" for value in reachable(self._roots()))

    def _roots(self) -> list[Value]:
        return [target.output.value for target in self.targets]

    def _tiled(self, block: Block, mark: str) -> list[Expr]:
        """Tiles of several rows; returns what has to hold for them."""
        w, needs = self.w, list[Expr]()
        for number, same in enumerate(self._loops()):
            row = w.rows[self.targets.index(same[0])]
            handed = self._handed(plus(Name("b_from"), Name(f"{LANE}0")), Name(f"{LANE}1"))
            has_columns = self._column_leaf(handed.spans) in row
            w.handed = handed
            start, pitch = self._place(same[0], row, handed.spans)
            size, columns = Name(_OWN), self._columns(handed.spans)
            own = w.sizes.defined[_OWN]
            assert isinstance(own, Const)
            cut = Axis(size, int(own.value), f"{LANE}0")
            apart = pitch if poly(pitch) != poly(columns) else None
            whole, tiles = self.blocks.whole, self.blocks.tiles
            wide = self.blocks.found.cols.captured if whole else tiles.cols
            inner = (Axis(columns, wide, f"{LANE}1", whole=apart),) if has_columns else ()
            indices = tuple(handed.index(leaf) for leaf in row)
            w.apart = not w.filled
            tiling = Tiling((), cut, inner, indices=indices)
            place = plus(start, times(Name("b_from"), pitch))
            self._tiles(block, same, row, tiling, f"_{number}{mark}", place)
            w.apart = False
            needs += [Binary(BinOp.LE, w.area(w.frame), TILE), *w.needs]
        return list(dict.fromkeys(needs))

    def _rows(self, block: Block) -> None:
        """Parts of one row, for columns that are no whole blocks of 32 bytes."""
        w = self.w
        w.part = True
        for number, same in enumerate(self._loops()):
            row = w.rows[self.targets.index(same[0])]
            at = plus(Name("b_from"), Name(f"{LANE}0"))
            handed = self._handed(Name(f"{OUTSIDE}0"), at)
            w.handed = handed
            start, pitch = self._place(same[0], row, handed.spans)
            known = [w.sizes.defined[name] for name in (_OWN, _COLUMNS)]
            counts = [int(item.value) for item in known if isinstance(item, Const)]
            outer = Axis(Name(_OWN), counts[0], f"{OUTSIDE}0")
            cut = Axis(self._columns(handed.spans), counts[1], f"{LANE}0")
            indices = tuple(handed.index(leaf) for leaf in row)
            tiling = Tiling((outer,), cut, (), indices=indices)
            place = plus(plus(start, times(Name(f"{OUTSIDE}0"), pitch)), Name("b_from"))
            self._tiles(block, same, row, tiling, f"_{number}x", place)
        w.part = False

    def _tiles(
        self, block: Block, same: Sequence[Target], row: Sequence[Atom], tiling: Tiling, mark: str,
        place: Expr,
    ) -> None:  # fmt: skip
        """The loop over the tiles of outputs along the same axes."""
        w = self.w

        def store(path: Path, values: Sequence[Value]) -> None:
            for target, value in zip(same, values, strict=True):
                done = replace(target, output=replace(target.output, value=value, groups=(0,)))
                store_tile(w, path, done, place, len(same) == 1)

        values = [target.output.value for target in same]
        over_tiles(w, block, Along(values, row), tiling, mark, store)

    def _loops(self) -> list[list[Target]]:
        """Outputs by their axes."""
        found: dict[tuple[Atom, ...], list[Target]] = {}
        for target, row in zip(self.targets, self.w.rows, strict=False):
            found.setdefault(row, []).append(target)
        return list(found.values())

    def _place(
        self, target: Target, row: Sequence[Atom], spans: Sequence[Span]
    ) -> tuple[Expr, Expr]:
        """Where a block begins in an output, and elements from a row to the next.

        Raises plan-cube where its columns do not lie together there.
        """
        base = self._handed(ZERO, ZERO)
        step: Expr = ONE
        start: Expr = ZERO
        steps: dict[Atom, Expr] = {}
        for leaf in reversed(row):
            steps[leaf] = step
            start = plus(times(base.index(leaf), step), start)
            step = times(step, self.w.known[leaf])
        runs = len(self.blocks.sizes)
        pitch, across = (self._step(run, spans, steps, base.sizes) for run in (runs - 2, runs - 1))
        if pitch is None or across not in (None, ONE):
            raise refuse("its columns do not lie together in an output")
        if across is None and not self.blocks.whole:
            raise refuse("an output does not have its columns")
        return start, pitch

    def _step(
        self, run: int, spans: Sequence[Span], steps: Mapping[Atom, Expr], sizes: Sequence[Expr]
    ) -> Expr | None:
        """Elements of an output for a step along a run; None where it does not have it."""
        for span in spans:
            if run in span.runs and span.axes[-1] in steps:
                inner = span.runs[span.runs.index(run) + 1 :]
                return product((steps[span.axes[-1]], *(sizes[item] for item in inner)))
        return None

    def _column_leaf(self, spans: Sequence[Span]) -> Atom | None:
        last = len(self.blocks.sizes) - 1
        return next((span.axes[-1] for span in spans if last in span.runs), None)

    # ------------------------------------------------------------------------------------ what fits

    def _check(self) -> None:
        """Refuses outputs along other axes, and what does not go over merged axes as over one."""
        w = self.w
        spans = self._handed(ZERO, ZERO).spans
        known = {leaf for span in spans for leaf in span.axes}
        optional = {self._column_leaf(spans)} if self.blocks.whole else set[Atom | None]()
        for row in w.rows:
            long = {leaf for leaf in row if leaf.size > 1}
            if long - known or known - long - optional:
                raise refuse("an output has other axes")
        merged = [span for span in spans if len(span.axes) > 1]
        if not merged:
            return
        meaning = accessed(w.meaning)
        inside = {leaf for span in merged for leaf in span.axes}
        for value in reachable(meaning.roots):
            if value.op == "load":
                self._check_steps(self._steps(meaning, value), merged)
            elif set(leaves(value.axes)) & inside:
                raise refuse("it tells apart what are rows of the product")
        for row in w.rows:
            self._check_steps(self._dense(row), merged)

    def _steps(self, meaning: Meaning, value: Value) -> Mapping[Atom, Expr]:
        """Elements for a step along each axis of what is read."""
        if not value.index:
            return self._dense(atoms_of(self.w.layouts[value.text]))
        found = [sized(meaning, self.w.shapes, expr) for expr in value.index[1:]]
        if len(set(value.axes)) < len(value.axes) or any(expr is None for expr in found):
            raise refuse("it reads an input along one axis twice")
        return {leaf: expr for leaf, expr in zip(value.axes, found, strict=True) if expr}

    def _dense(self, row: Sequence[Atom]) -> dict[Atom, Expr]:
        found: dict[Atom, Expr] = {}
        step: Expr = ONE
        for leaf in reversed(row):
            found[leaf] = step
            step = times(step, self.w.shapes[leaf])
        return found

    def _check_steps(self, steps: Mapping[Atom, Expr], merged: Sequence[Span]) -> None:
        for span in merged:
            there = [leaf in steps for leaf in span.axes]
            if not any(there):
                continue
            if not all(there):
                raise refuse("it tells apart what are rows of the product")
            for one, two in zip(span.axes, span.axes[1:], strict=False):
                if poly(steps[one]) != poly(times(steps[two], self.w.shapes[two])):
                    raise refuse("it tells apart what are rows of the product")

    # ----------------------------------------------------------------------------------- the result

    def written(self, packed: Packed) -> tuple[Written, Tests]:
        """The program around what is done with each block."""
        w, blocks = self.w, self.blocks
        if w.sizes.scratch:
            raise refuse("it needs workspace of its own")
        legal = self._served(packed.tile)
        body = live(packed.body, packed.tile)
        body = map_statements(body, lambda stmt: map_operands(stmt, _alone))
        defined = {name: _alone(value) for name, value in w.sizes.defined.items()}
        outside = {name for name in defined if name.startswith(MARK)}
        local = _follow(outside, defined)
        needed = closure([name for name in defined if name in names_read(body)], defined)
        own = in_order({name: defined[name] for name in defined if name in needed & local})
        whole = self._of_each_block(own, body)
        read = names_read(whole)
        given = [name for name in defined if name in read and name not in local | outside]
        product_ = [f"{MARK}{name}" for name in blocks.names if f"{MARK}{name}" in read]
        tensors = tensors_of(w, self.targets)
        hosted = closure(given, defined)
        host = Host(
            "host", tuple(item.name for item in tensors),
            in_order({"cores": ONE, **{name: defined[name] for name in defined if name in hosted}}),
            (Launch(self.name, Name("cores"), tuple((name, Name(name)) for name in given)),),
        )  # fmt: skip
        used = {*mentioned(body)}
        buffers = tuple(item for item in packed.buffers if item.name in used)
        scalars = tuple(Scalar(name) for name in (*given, *product_))
        kernel = Kernel(self.name, tensors, scalars, buffers, whole)
        everywhere = read | names_read(host.body)
        everywhere |= {name for item in buffers for name in names(item.length)}
        consts = (("TILE", packed.tile), *blocks.consts)
        kept = tuple(pair for pair in consts if pair[0] in everywhere)
        stored = ", ".join(target.name for target in self.targets)
        doc = f"{self.name}: {stored}, of each block of a product"
        spec = OpSpec(self.name, *ports(w.space, self.targets), legal=w.space.legal)
        notes = (*w.space.notes, f"a tile is {packed.tile} elements at most")
        return (Program(kept, host, (kernel,), doc), spec, notes), legal

    def _served(self, tile: int) -> list[Expr]:
        """The sizes that tiles of several rows serve, where nothing else serves others.

        Of blocks the largest: what smaller ones need is less.
        """
        tiles = self.blocks.tiles
        known = {n: e for n, e in self.w.sizes.defined.items() if not n.startswith(MARK)}
        known |= {TILE.id: Const(tile), _COLUMNS: Const(tiles.cols), _OWN: Const(tiles.rows)}
        found: list[Expr] = []
        for test in self.legal:
            while set(names(test)) & set(known):
                test = replaced(test, known.get)
            unknown = any(True for _ in names(test))  # sizes of the product, which may be any
            if unknown or not captured(self.w, Choice(test, ONE, ZERO)):
                raise PlanError("plan-ub", "rows of a block do not fit in a tile")
            if any(isinstance(item, Dim) for item in subexpressions(test)):
                found.append(test)
        return found

    def _of_each_block(self, own: Sequence[Stmt], body: Statements) -> Statements:
        """The blocks of this core's cube core, one after another.

        `own`: what follows from where a block stands.
        """
        blocks, called = self.blocks, self._called()
        turn, half, first = (Name(f"{MARK}{name}") for name in ("turn", "half", "first"))
        rows, pitch = Name(called["m"]), self._pitch(self._handed(ZERO, ZERO).spans)
        both = Const(BLOCK_VECTOR_CORES)
        place = plus(times(quotient(CoreId(), both), Const(PLACES)), remainder(turn, Const(PLACES)))
        stand: dict[str, Expr] = {
            stmt.target: stmt.value
            for stmt in (with_names(stmt, called) for stmt in blocks.statements)
            if isinstance(stmt, Assign)
        }
        stand |= {_index(i): renamed(at, called) for i, at in enumerate(blocks.indices)}
        stand |= {
            half.id: shares(rows, both),
            first.id: times(remainder(CoreId(), both), half),
            _OWN: largest(least(half, minus(rows, first)), ZERO),
            _ROW: plus(Name(called["row_at"]), first),
            _PLACE: plus(times(place, times(Const(blocks.tiles.rows), pitch)), times(first, pitch)),
        }
        needed = closure([*names_read((*own, *body))], stand)
        inside: list[Stmt] = [Assign(name, stand[name]) for name in stand if name in needed]
        inside += [*own, Await(STORED), *body, Post(READ), Assign(turn.id, plus(turn, ONE))]
        units, count = renamed(blocks.units, called), quotient(CoreCount(), both)
        begin = quotient(CoreId(), both)
        return Assign(turn.id, ZERO), For(called["unit"], begin, units, count, tuple(inside))


def _index(number: int) -> str:
    """The name of where along an axis of the batch a block stands."""
    return f"{MARK}index{number}"


def _alone(expr: Expr) -> Expr:
    """What all cores share is one core's here: its rows of the block."""
    match expr:
        case CoreId():
            return ZERO
        case CoreCount() | ChipFact("vector_cores") | Name("cores"):
            return ONE
        case Binary(BinOp.MUL, left, right):
            return times(_alone(left), _alone(right))
        case Binary(BinOp.ADD, left, right):
            return plus(_alone(left), _alone(right))
        case Call(ScalarFn.CEIL_DIV, (size, by)):
            return shares(_alone(size), _alone(by))
        case _:
            return map_children(expr, _alone)


def _follow(given: set[str], defined: Mapping[str, Expr]) -> set[str]:
    """The names that cannot be worked out without these."""
    found: set[str] = set()
    while True:
        more = {
            name
            for name, value in defined.items()
            if name not in found | given and (found | given) & {*names(value)}
        }
        if not more:
            return found
        found |= more
