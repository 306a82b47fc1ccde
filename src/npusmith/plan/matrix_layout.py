"""A product of matrices as loops: where rows, columns and depth lie in two inputs and the output.

`out[b, m, n] = sum over k of left[b, m, k] * right[b, k, n]`, whatever the axes are called and in
whatever order memory holds them. Neighbouring axes that all tensors step through as if they were
one are one. What is left of rows and columns counts as a batch, in which the other operand stands
still: so an operand may be broadcast, permuted, or a slice, without a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, prod

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Expr
from npusmith.plan.accesses import accessed
from npusmith.plan.axes import Atom, Dims, leaves
from npusmith.plan.axis_sizes import leaf_sizes, legal_sizes, size_notes, sized
from npusmith.plan.dag import Dag, Value, reachable
from npusmith.plan.index import poly
from npusmith.plan.names import tensor_name
from npusmith.plan.products import PARTS, PRODUCT
from npusmith.plan.read import Meaning, Piece
from npusmith.plan.refusals import refusal
from npusmith.plan.scalars import ONE, ZERO, product, shares, times
from npusmith.plan.space import Input, Output, Space
from npusmith.plan.split_k_parts import depth_of_part
from npusmith.plan.stores import Target
from npusmith.plan.used_inputs import inputs_of
from npusmith.plan.views import atoms_of
from npusmith.target.cube import PRODUCTS
from npusmith.task.graph import GraphInput, Node


@dataclass(frozen=True, slots=True)
class Run:
    """Axes that are stepped through as if they were one: its size, and elements per step.

    `captured`: its size in the captured shapes.
    """

    size: Expr = ONE
    captured: int = 1
    left: Expr = ZERO
    right: Expr = ZERO
    out: Expr = ZERO


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor of the program: where its first element stands, and how its matrix lies.

    `transposed`: its rows are columns of the product's operand.
    """

    tensor: str
    dtype: DType
    start: Expr
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class Contraction:
    """A product with everything that a program of it needs."""

    left: Operand
    right: Operand
    out: Operand
    rows: Run
    cols: Run
    depth: Run
    around: tuple[Run, ...]  # what else is added up, outermost first: rows of a window
    batch: tuple[Run, ...]  # outermost first; first of all the parts of a depth that is cut
    part: Run | None  # what is added up in one part, along the depth and all that is around it
    bias: Operand | None  # a row that is added to each row of the result
    relu: bool  # ... and then nothing is below 0
    space: Space  # inputs, sizes that are served, notes
    target: Target


def products_of(meaning: Meaning) -> list[Value]:
    """The matrix products that a graph is made of."""
    return [value for value in reachable(meaning.roots) if value.op == PRODUCT]


def find_contraction(meaning: Meaning, merged: bool = True) -> Contraction:
    """The one product that a graph is. Raises plan-cube for anything else.

    `merged`: axes that are added up and lie side by side are one.
    """
    reader = meaning.reader
    (value, *others) = products_of(meaning)
    node = reader.origin.get(value)
    if others or len(meaning.outputs) != 1 or _epilogue(meaning.outputs[0].value) is None:
        raise refusal(
            reader.graph, node, "plan-cube",
            "a matrix product is a kernel of its own, with a bias and a relu behind it at most",
            hint="the compiler cuts the graph around it",
        )  # fmt: skip
    meaning = accessed(meaning)
    (piece,) = meaning.stored
    found = Finder(meaning, piece, node, merged)
    return found.contraction()


def is_forward(step: Expr) -> bool:
    """Whether a step goes to a later element, as its terms show: no pitch may be 0 or less."""
    terms = dict(poly(step).terms)
    return bool(terms) and all(number > 0 for number in terms.values())


def _epilogue(value: Value) -> tuple[Value, Value | None, bool] | None:
    """A product, what is added to it, and whether a relu follows; None for anything else."""
    relu = False
    match value:
        case Value(op="max", args=(inner, Value(op="const", number=number))) if number == 0:
            value, relu = inner, True
    if value.op == PRODUCT:
        return value, None, relu
    if value.op == "add":
        for one, other in (value.args, value.args[::-1]):
            if one.op == PRODUCT and one.mode != PARTS and other.op == "load":
                return one, other, relu
    return None


Steps = Mapping[Atom, Expr]  # elements of a tensor for a step along each of its axes


@dataclass(slots=True)
class Finder:
    """Where the axes of a graph's one product lie in memory. `merged`: see find_contraction."""

    meaning: Meaning
    piece: Piece
    node: Node | None
    merged: bool
    known: dict[Atom, Expr] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)
    used: list[tuple[GraphInput, Dims]] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)  # names

    def refuse(self, why: str) -> PlanError:
        return refusal(self.meaning.reader.graph, self.node, "plan-cube", why)

    def contraction(self) -> Contraction:
        meaning, stored = self.meaning, self.piece.tensor.value
        out = meaning.outputs[0]
        found = _epilogue(stored)
        if found is None or (found[2] and found[0].mode == PARTS):
            raise self.refuse("something stands between it and what is stored")
        value, added, relu = found
        row = atoms_of(self.piece.tensor.dims)
        parts = row[0] if value.mode == PARTS else None
        row = row[1:] if parts else row
        self.measure(value, row)
        steps = [self.steps(arg) for arg in value.args]
        made = self.dense(row)
        shared = [leaf for leaf in row if leaf in steps[0][1] and leaf in steps[1][1]]
        rows = [leaf for leaf in row if leaf in steps[0][1] and leaf not in shared]
        cols = [leaf for leaf in row if leaf in steps[1][1] and leaf not in shared]
        if len(shared) + len(rows) + len(cols) < len(row):
            raise self.refuse("its result is broadcast")
        order = [leaf for leaf in steps[0][1] if leaf in set(leaves(value.axes))]
        if set(order) != set(leaves(value.axes)) or not set(order) <= set(steps[1][1]):
            raise self.refuse("the sum goes along an axis that an operand does not have")
        layout = (steps[0][1], steps[1][1], made)
        if cols and rows and made[rows[-1]] == ONE:  # the transposed product has rows of ones
            value = replace(value, args=(value.args[1], value.args[0]))
            steps, rows, cols = steps[::-1], cols, rows
            layout = (steps[0][1], steps[1][1], made)
        around, depth = self._depth(order, rows, cols, layout)
        inner_rows, inner_cols = self._innermost(rows, layout), self._innermost(cols, layout)
        kept = {*inner_rows, *inner_cols}
        batch = self._runs([leaf for leaf in row if leaf not in kept], layout)
        size = [self._run(part, layout) for part in (inner_rows, inner_cols, depth)]
        left = self._operand(value.args[0], steps[0][0], size[2].left, size[0].left)
        right = self._operand(value.args[1], steps[1][0], size[1].right, size[2].right)
        if inner_cols and size[1].out != ONE:
            raise self.refuse("neither rows nor columns of the result lie together")
        bias = None if added is None else self._bias(added, inner_cols, left.dtype)
        part = None
        if parts is not None:
            part, cut = self._cut(parts, out.dims[1:], order)
            batch = (cut, *batch)
        if left.dtype is not right.dtype:
            raise self.refuse(f"it multiplies {left.dtype.value} by {right.dtype.value}")
        if relu and not PRODUCTS[left.dtype, left.dtype].is_float:
            raise self.refuse("a relu of integers on the way out is not documented")
        target, space = self.ends(stored)
        result = Operand(target.name, out.dtype, ZERO)
        return Contraction(
            left, right, result, size[0], size[1], size[2],
            tuple(self._run(row, layout) for row in around), batch, part, bias, relu, space, target,
        )  # fmt: skip

    def measure(self, value: Value, row: Sequence[Atom]) -> None:
        """Names for the inputs, and sizes of the result's axes and of those that are added up."""
        meaning = self.meaning
        loads = {v.text for v in reachable([self.piece.tensor.value]) if v.op == "load"}
        self.used = inputs_of(meaning, loads)
        self.called = {item.name: tensor_name(item.name, self.taken) for item, _ in self.used}
        wanted = [leaf for _, dims in self.used for leaf in atoms_of(dims)]
        wanted += [*row, *leaves(value.axes)]
        wanted += [leaf for atom in meaning.reader.atoms for leaf in leaves((atom,))]
        self.known = leaf_sizes(meaning, self.used, self.called, wanted)

    def ends(self, stored: Value) -> tuple[Target, Space]:
        """The output, and the inputs with the sizes that are served."""
        meaning, out = self.meaning, self.meaning.outputs[0]
        measures = tuple(product(self.known[leaf] for leaf in leaves(dim)) for dim in out.dims)
        graph = meaning.reader.graph
        shape = graph.spec(graph.outputs[0]).shape
        inputs = tuple(Input(item, self.called[item.name], ()) for item, _ in self.used)
        space = Space((), inputs, (), -1, Dag(), graph)
        space.legal = tuple(legal_sizes(meaning, self.used, self.called, self.known))
        space.notes = tuple(size_notes(self.used, self.known))
        name = tensor_name("y", self.taken)
        return Target(Output(stored, (), measures, shape, out.dtype, None), name), space

    def _bias(self, value: Value, cols: Sequence[Atom], dtype: DType) -> Operand:
        """What is added: the bias table has one row for all rows, of the type of the sums."""
        start, steps = self.steps(value)
        wanted = self.dense(cols)
        moving = {leaf: step for leaf, step in steps.items() if step != ZERO}
        if set(moving) != set(wanted) or any(
            poly(step) != poly(moving[leaf]) for leaf, step in wanted.items()
        ):
            raise self.refuse("what is added to it is not one row for all of its rows")
        if value.dtype is not PRODUCTS[dtype, dtype]:
            raise self.refuse("what is added to it has another type than its sums")
        return Operand(self.called[value.text], value.dtype, start)

    def _cut(self, parts: Atom, dims: Dims, order: Sequence[Atom]) -> tuple[Run, Run]:
        """A part of what is added up, and all parts: one result each."""
        result = [product(self.known[leaf] for leaf in leaves(dim)) for dim in dims]
        depth = product(self.known[leaf] for leaf in order)
        each = depth_of_part(result, depth)
        self.known[parts] = shares(depth, each)
        captured = ceil(prod(leaf.size for leaf in order) / parts.size)
        return Run(each, captured), Run(self.known[parts], parts.size, out=product(result))

    def steps(self, value: Value) -> tuple[Expr, Steps]:
        """Where an operand begins, and the step along each of its axes, outermost first."""
        if value.op != "load":
            raise self.refuse("an operand of a matrix product is no tensor in memory")
        if value.index:
            found = [sized(self.meaning, self.known, expr) for expr in value.index]
            if any(expr is None for expr in found):
                raise self.refuse("an operand is read at places that are no start and steps")
            start, *by = (expr for expr in found if expr is not None)
            if len(set(value.axes)) < len(value.axes):
                raise self.refuse("an operand runs along one axis twice")
            return start, dict(zip(value.axes, by, strict=True))
        dims = next(d for item, d in self.meaning.inputs if item.name == value.text)
        row = atoms_of(dims)
        if len(set(row)) < len(row):
            raise self.refuse("an operand runs along one axis twice")
        return ZERO, self.dense(row)

    def dense(self, row: Sequence[Atom]) -> Steps:
        """Steps of a tensor whose elements lie side by side."""
        found: dict[Atom, Expr] = {}
        step: Expr = ONE
        for leaf in reversed(row):
            found[leaf] = step
            step = times(step, self.known[leaf])
        return dict(reversed(found.items()))

    def _merges(self, one: Atom, two: Atom, layout: Sequence[Steps]) -> bool:
        """Whether all tensors that have two axes step through them as through one."""
        for steps in layout:
            if (one in steps) != (two in steps):
                return False
            if one in steps and poly(steps[one]) != poly(times(steps[two], self.known[two])):
                return False
        return True

    def _depth(
        self, order: Sequence[Atom], rows: Sequence[Atom], cols: Sequence[Atom],
        layout: Sequence[Steps],
    ) -> tuple[list[tuple[Atom, ...]], tuple[Atom, ...]]:  # fmt: skip
        """Loops around, and the longest run of what is added up whose panels can be copied.

        Panels are rows of memory: elements of one side lie together. Rows may overlap, as those of
        windows do that are taken with all of their places.
        """
        sides = (self._innermost(rows, layout), self._innermost(cols, layout))
        if not order:
            return [], ()
        alone = [(leaf,) for leaf in order]
        for runs in (self.groups(order, layout), alone) if self.merged else (alone,):
            legal = [
                run
                for run in runs
                if all(
                    self._copied(run, side, steps)
                    for side, steps in zip(sides, layout, strict=False)
                )
            ]
            if legal:
                depth = max(legal, key=lambda run: prod(leaf.size for leaf in run))
                return [run for run in runs if run is not depth], depth
        raise self.refuse("neither rows nor columns of an operand lie together")

    def _copied(self, one: tuple[Atom, ...], two: tuple[Atom, ...], steps: Steps) -> bool:
        for inner, outer in ((one, two), (two, one)):
            if not inner or steps[inner[-1]] == ONE:
                return not outer or is_forward(steps[outer[-1]])
        return False

    def _innermost(self, row: Sequence[Atom], layout: Sequence[Steps]) -> tuple[Atom, ...]:
        runs = self.groups(row, layout)
        return runs[-1] if runs else ()

    def groups(self, row: Iterable[Atom], layout: Sequence[Steps]) -> list[tuple[Atom, ...]]:
        runs: list[tuple[Atom, ...]] = []
        for leaf in row:
            if runs and self._merges(runs[-1][-1], leaf, layout):
                runs[-1] = (*runs[-1], leaf)
            else:
                runs.append((leaf,))
        return runs

    def _runs(self, row: Iterable[Atom], layout: Sequence[Steps]) -> tuple[Run, ...]:
        return tuple(self._run(part, layout) for part in self.groups(row, layout))

    def _run(self, row: tuple[Atom, ...], layout: Sequence[Steps]) -> Run:
        if not row:
            return Run()
        size, captured = product(self.known[leaf] for leaf in row), 1
        for leaf in row:
            captured *= leaf.size
        return Run(size, captured, *(steps.get(row[-1], ZERO) for steps in layout))

    def _operand(self, value: Value, start: Expr, inner: Expr, outer: Expr) -> Operand:
        """`inner`, `outer`: the steps along the second and first axis of the operand's matrix."""
        assert value.dtype is not None
        name = self.called[value.text]
        for step in (ONE, ZERO):  # one row or column may lie anywhere
            if inner == step:
                return Operand(name, value.dtype, start)
            if outer == step:
                return Operand(name, value.dtype, start, transposed=True)
        raise self.refuse(f"neither rows nor columns of {value.text} lie together")
