"""The state of reading a graph: what every node means so far, and how a node is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NoReturn

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Call, Const, Expr, Name, ScalarFn
from npusmith.ir.walk import names
from npusmith.plan.axes import Atom, AxisError, Dim, Dims, align, extent, leaves
from npusmith.plan.dag import Dag, Kind, Value, held
from npusmith.plan.index import bounds, poly, simple
from npusmith.plan.integers import constant
from npusmith.plan.refusals import refusal
from npusmith.plan.scalars import ONE, ZERO, minus, plus, product, times
from npusmith.plan.symbolic_numbers import SYMBOLIC, SymbolicFloat, SymbolicInt, symbolic
from npusmith.plan.symbolic_sizes import SizeExpressions
from npusmith.plan.window_axes import Windowed
from npusmith.task.compare import SIZES
from npusmith.task.graph import (
    Argument,
    Graph,
    GraphInput,
    Literals,
    Node,
    Ref,
    Slot,
    SymbolicSize,
    replaced,
)

WORTH = 16  # elements of a row that are worth a copy of their own
INDEX, SIZE, ELEMENT = "#", "|", "@"  # first letters of the names in index expressions


class Move(str, Enum):
    """What a node does to one dimension that no loop over axes can say."""

    FLIP = "runs backwards"
    FRONT = "has one neutral element before the others"
    CUT = "lacks its last elements"


@dataclass(frozen=True, slots=True)
class Moved:
    """A move that a scan can do without (scans.py)."""

    node: Node
    at: int  # the dimension
    move: Move
    source: Tensor  # before the move
    missing: int = 0  # elements that a cut takes off
    number: float = 0.0  # the element in front


@dataclass(frozen=True, slots=True)
class Tensor:
    """The meaning of one node: an expression, the axes of each dimension, PyTorch's dtype.

    bool tensors are held as 1.0 and 0.0, integers in whatever is exact for the values that they can
    have (integers.py).
    """

    value: Value
    dims: Dims
    dtype: DType
    moved: Moved | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """What a value is joined of along one dimension: pieces, and where each starts."""

    dims: Dims
    at: int
    pieces: tuple[tuple[Tensor, Expr], ...]


@dataclass(frozen=True, slots=True)
class Scattered:
    """Rows that are stored, or added, where an index tensor says, one after another."""

    x: Tensor  # what is there before
    at: int  # the dimension that is indexed
    index: Tensor
    values: Tensor  # over the dimensions of x, those of the index in place of the one indexed
    adds: bool
    wraps: bool  # whether an index may be negative


@dataclass(frozen=True, slots=True)
class Combined:
    """Elements that are combined with those before them where a place says, one after another.

    `at`, `count`: the dimensions of x that a place runs along, as if they were one. In place of
    these `place` and `values` have `row`; their other dimensions are those of x. A place that x
    does not have takes nothing in.
    """

    x: Tensor  # what is there before
    at: int
    count: int
    row: Dims
    place: Tensor
    values: Tensor
    word: str  # store, add, mul, max, min or mean
    own: bool  # whether what is there before is one of the elements that are combined
    wraps: bool  # whether a negative place counts from the end


Result = Tensor | tuple[Tensor | None, ...]
Measure = tuple[int, Expr]  # a size or a place along an axis: as captured, and at all sizes

_ARITHMETIC: dict[BinOp, Callable[[Dag, Value, Value], Value]] = {
    BinOp.ADD: lambda dag, a, b: dag.add(a, b),
    BinOp.SUB: lambda dag, a, b: dag.sub(a, b),
    BinOp.MUL: lambda dag, a, b: dag.mul(a, b),
    BinOp.FLOORDIV: lambda dag, a, b: dag.make("floordiv", a, b),
    BinOp.MOD: lambda dag, a, b: dag.make("mod", a, b),
}


@dataclass(slots=True)
class Reader:
    """Meanings by node name, and the node that is being read.

    Numbers of the graph that follow from sizes come out of `argument` with their formula: a
    rule that takes them by `measures` or as a tensor serves other sizes; where one takes the number
    alone, the sizes that it follows from are fixed.
    """

    graph: Graph
    dag: Dag = field(default_factory=Dag)
    known: dict[str, Result] = field(default_factory=dict)
    node: Node | None = None
    origin: dict[Value, Node] = field(default_factory=dict)  # the node that made a value
    atoms: list[Atom] = field(default_factory=list)  # that index expressions name
    sized: list[tuple[Dim, Expr]] = field(default_factory=list)  # sizes that follow from others
    positive: list[Expr] = field(default_factory=list)  # over sizes: at least 0 where served
    fixed: dict[Value, list[Dim]] = field(default_factory=dict)  # by what is read at other places
    to_fix: list[Dim] = field(default_factory=list)
    elements: list[Tensor] = field(default_factory=list)  # of index tensors, likewise
    scattered: dict[Value, Scattered] = field(default_factory=dict)  # by the result
    combined: dict[Value, Combined] = field(default_factory=dict)  # likewise
    joined: dict[Value, Joined] = field(default_factory=dict)  # by the value that is joined
    windows: dict[Value, Windowed] = field(default_factory=dict)  # by their reduction
    moved: dict[Dims, None] = field(default_factory=dict)  # by the node: of what it reads elsewhere
    inputs: dict[str, Dims] = field(default_factory=dict)
    symbolic: dict[str, dict[Slot, SymbolicSize]] = field(default_factory=dict)  # by node
    followed: set[Slot] = field(default_factory=set)  # of the node: whose formulas were taken
    held: set[Atom] = field(default_factory=set)  # axes whose sizes are numbers of the graph

    def __post_init__(self) -> None:
        self.symbolic = self.graph.symbolic_slots()

    def read_input(self, item: GraphInput) -> Dims:
        """The axes of an input, and its elements under its name."""
        varied = self.graph.varied
        dims = tuple(
            (Atom(size, varied=(item.name, i) in varied),) for i, size in enumerate(item.shape)
        )
        self.known[item.name] = Tensor(self.dag.load(item.name, item.dtype), dims, item.dtype)
        self.inputs[item.name] = dims
        return dims

    def hold_unvaried(self) -> None:
        """Any number of the graph may follow from a size that never varied: others are refused."""
        users = [item for item in self.graph.inputs if item.kind == "user"]
        for item in users if self.graph.classes else ():
            for dim, size in zip(self.inputs[item.name], item.shape, strict=True):
                known = len(leaves(dim)) != 1 or leaves(dim)[0].fixed or leaves(dim)[0].model
                if not (known or dim[0].varied):
                    self.sized.append((dim, Const(size)))

    def read_node(self, node: Node, find: Callable[[Reader, Node], Rule]) -> None:
        """What the node gives, by the rule that is found for it."""
        self.node = node
        self.followed.clear()
        self.known[node.name] = found = find(self, node)(self)
        if isinstance(found, Tensor) and found.dtype is DType.FLOAT32 and node.dtype:
            self.known[node.name] = replace(found, dtype=node.dtype)  # a product in more bits
        for slot, item in self.symbolic.get(node.name, {}).items():
            if slot not in self.followed and item.argument not in SIZES.get(node.op, ()):
                for axis in self._sizes().axes(item):
                    self.fix(axis, now=True)
                    self.held |= set(leaves(axis))

    # ----------------------------------------------------------------------------------- refusal

    def refuse(self, code: str, why: str, *, legal: str = "", hint: str = "") -> NoReturn:
        """Say which node cannot be written, why, and what to do."""
        raise refusal(self.graph, self.node, code, why, legal=legal, hint=hint)

    # --------------------------------------------------------------------------------- arguments

    def argument(self, index: int, name: str = "", default: Argument = None) -> Argument:
        """A positional argument, or the keyword of that name, or the default."""
        assert self.node is not None
        if index < len(self.node.args):
            return self._symbols(index, self.node.args[index])
        return self._symbols(name, self.node.kwargs.get(name, default)) if name else default

    def _symbols(self, at: int | str, arg: Argument) -> Argument:
        """The argument with a formula for each number that follows from sizes."""
        assert self.node is not None
        found = self.symbolic.get(self.node.name, {})
        return replaced(at, arg, lambda slot, item: symbolic(found.get(slot), item))

    def tensor(self, arg: Argument) -> Tensor:
        """The meaning of a Ref, or a number as a tensor without dimensions."""
        if isinstance(arg, Ref):
            return self.seen(arg)
        if isinstance(arg, SYMBOLIC):
            return self._scalar(arg)
        if isinstance(arg, bool):
            return Tensor(self.dag.const(arg), (), DType.BOOL)
        if isinstance(arg, int):
            return Tensor(constant(self.dag, arg, DType.INT64), (), DType.INT64)
        if not isinstance(arg, float):
            self.refuse("plan-unsupported-op", f"a tensor or number was expected, not {arg!r}")
        return Tensor(self.dag.const(arg), (), DType.FLOAT32)

    def seen(self, ref: Ref) -> Tensor:
        """The meaning of a Ref, whose elements may have moved."""
        found = self.known.get(ref.ref)
        if not isinstance(found, Tensor):
            self.refuse("plan-unsupported-op", f"{ref.ref} is not a tensor that can be read")
        return found

    def optional(self, arg: Argument) -> Tensor | None:
        return None if arg is None else self.tensor(arg)

    def number(self, arg: Argument) -> float:
        """A literal number; a tensor or a string is refused."""
        if isinstance(arg, (int, float)):
            return float(arg)
        found = self.tensor(arg)
        if found.value.op != "const":
            self.refuse("plan-unsupported-op", f"a number was expected, not {arg!r}")
        return float(found.value.number)

    def integers(self, arg: Argument) -> tuple[int, ...]:
        items: Sequence[Ref | Literals] = arg if isinstance(arg, tuple) else (arg,)
        if not all(isinstance(item, int) for item in items):
            self.refuse("plan-unsupported-op", f"a list of integers was expected, not {arg!r}")
        return tuple(int(item) for item in items if isinstance(item, int))

    def measures(self, arg: Argument) -> tuple[Measure, ...]:
        """Sizes or places along an axis."""
        items = arg if isinstance(arg, tuple) else (arg,)
        numbers = zip(items, self.integers(arg), strict=True)
        return tuple(
            (int(number), self.formula(item) if isinstance(item, SymbolicInt) else Const(number))
            for item, number in numbers
        )

    def formula(self, symbol: SymbolicInt | SymbolicFloat) -> Expr:
        """A whole number of the graph as an expression over sizes."""
        return self._sizes().expression(self._follow(symbol))

    def _scalar(self, symbol: SymbolicInt | SymbolicFloat) -> Tensor:
        """Likewise as a tensor without dimensions."""
        if symbol.size.factor is None:
            dtype = DType.INT64 if isinstance(symbol, SymbolicInt) else DType.FLOAT32
            return Tensor(self.position(self.formula(symbol)), (), dtype)
        item, dag = self._follow(symbol), self.dag
        axes = [self._axis(at) for at in item.classes]
        if item.plus:  # a root of it, or 1 over it, asks for one more than 0
            self.require(plus(product(map(self.size, axes)), Const(item.plus)), ONE)
        count = dag.count(tuple(leaf for dim in axes for leaf in leaves(dim)), less=-item.plus)
        power = dag.unary("sqrt", count) if abs(item.power) == 0.5 else count
        power = dag.inverse(power) if item.power < 0 else power
        assert item.factor is not None
        return Tensor(dag.scaled(power, item.factor), (), DType.FLOAT32)

    def _follow(self, symbol: SymbolicInt | SymbolicFloat) -> SymbolicSize:
        self.followed.add(symbol.size.slot)
        return symbol.size

    def _axis(self, at: int) -> Dim:
        """An axis of an input whose size is that of a class; those of others are the same."""
        axes = self.graph.classes[at].axes
        found = [self.inputs[name][axis] for name, axis in axes if name in self.inputs]
        if not found:
            whose = " or ".join(dict.fromkeys(name for name, _ in axes))
            self.refuse("plan-fixed-size", f"it takes a size of {whose}, which is not read")
        for other in found[1:]:
            self.sized.append((other, self.size(found[0])))
        return found[0]

    def _sizes(self) -> SizeExpressions:
        return SizeExpressions(self.graph, self.inputs, self._dims, self._axis, self.size)

    def _dims(self, name: str) -> Dims | None:
        return item.dims if isinstance(item := self.known.get(name), Tensor) else None

    def dim(self, arg: Argument, rank: int) -> int:
        index = self.integers(arg)[0]
        return index + rank if index < 0 else index

    @property
    def dtype(self) -> DType:
        """The dtype of the node's result."""
        assert self.node is not None
        if self.node.dtype is None:
            kind = self.node.kwargs.get("dtype")
            self.refuse(
                "plan-dtype",
                f"the result is {kind or 'of an element type'}, which vector cores do not have",
                hint="use float32, float16 or bfloat16 there, or leave this to PyTorch",
            )  # fmt: skip
        return self.node.dtype

    # ------------------------------------------------------------------------ index expressions

    def index(self, dim: Dim) -> Expr:
        """The index along a dimension, as a name that stands for it."""
        result: Expr = ZERO
        for atom in leaves(dim):
            result = plus(times(result, self.size((atom,))), Name(f"{INDEX}{self._number(atom)}"))
        return result

    def size(self, dim: Dim) -> Expr:
        """The size of a dimension, likewise."""
        return product(Name(f"{SIZE}{self._number(atom)}") for atom in leaves(dim))

    def axes_of(self, expr: Expr) -> set[Atom]:
        """The axes that an expression over sizes names."""
        rows = (self.atoms[int(name.removeprefix(SIZE))] for name in names(expr))
        return {leaf for atom in rows for leaf in leaves((atom,))}

    def value_range(self, expr: Expr) -> tuple[Expr, Expr] | None:
        """The least and largest value of an index expression, sums and products of sizes, and the
        smaller or larger of two."""
        ranges = {
            name: (ZERO, minus(self.size((self.atoms[int(name.removeprefix(INDEX))],)), ONE))
            for name in names(expr)
            if name.startswith(INDEX)
        }
        found = bounds(expr, ranges)
        if found is None:
            return None
        return found if all(map(_is_plain, found)) else None

    def position(self, expr: Expr) -> Value:
        """An index expression as a number."""
        dag = self.dag
        match expr:
            case Const(value):
                return dag.const(float(value))
            case Name(name) if name.startswith(INDEX):
                return dag.make("index", axes=(self.atoms[int(name[1:])],))
            case Name(name) if name.startswith(SIZE):
                return dag.count((self.atoms[int(name[1:])],))
            case Name(name):
                return self.floating(self.elements[int(name[1:])])
            case Binary(op, left, right):
                one, two = self.position(left), self.position(right)
                return _ARITHMETIC[op](dag, one, two)
            case Call(ScalarFn.MIN | ScalarFn.MAX, (left, right)):
                one, two = self.position(left), self.position(right)
                return dag.min(one, two) if expr.fn is ScalarFn.MIN else dag.max(one, two)
            case _:
                raise AssertionError(expr)

    def element(self, tensor: Tensor) -> Expr:
        """An element of an index tensor, likewise."""
        if tensor.value.kind is Kind.LONG:
            tensor = Tensor(self.floating(tensor), tensor.dims, tensor.dtype)
        self.elements.append(tensor)
        return Name(f"{ELEMENT}{len(self.elements) - 1}")

    def reads_element(self, expr: Expr) -> bool:
        return any(name.startswith(ELEMENT) for name in names(expr))

    def _number(self, atom: Atom) -> int:
        known = next((i for i, item in enumerate(self.atoms) if item is atom), None)
        if known is None:
            self.atoms.append(atom)
            return len(self.atoms) - 1
        return known

    # -------------------------------------------------------------------------------- conversion

    def floating(self, tensor: Tensor) -> Value:
        """As a float32; integers of 2**24 and more are rounded, as PyTorch does."""
        value = tensor.value
        found = held(self.dag, value, Kind.FLOAT)
        if value in self.fixed:
            self.fixed.setdefault(found, self.fixed[value])
        return found

    def unrounded(self, value: Value, dtype: DType) -> Value:
        """What is stored to memory of this type, which rounds: the value before it was rounded.

        Scatters may add in memory, which has to be of the type that the model adds in.
        """
        rounded = value.op == "narrow" and value.dtype is dtype
        return value.args[0] if rounded and value.args[0] not in self.scattered else value

    def aligned(self, *tensors: Tensor) -> tuple[list[Tensor], Dims]:
        """Operands of one elementwise operation, and the axes of its result."""
        apart = self.apart(tensors)
        return apart, self.broadcast(*apart)

    def apart(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The same tensors, of which none runs along an axis that another has elsewhere.

        `x + x.t()` reads x twice, along two pairs of axes: the second gets axes of its own. So does
        a dimension of two axes that another has in the other order.
        """
        places: dict[Atom, tuple[int, int]] = {}
        result: list[Tensor] = []
        for tensor in tensors:
            own = [
                (leaf, (i, behind))
                for i, dim in enumerate(tensor.dims[::-1])
                for leaf, behind in _depths(dim)
            ]
            shared = {-1 - at[0] for leaf, at in own if places.setdefault(leaf, at) != at}
            shared = {at for at in shared if extent(tensor.dims[at]) != 1}
            result.append(self.with_own_axes(tensor, sorted(shared)) if shared else tensor)
        return result

    def with_own_axes(self, x: Tensor, which: Iterable[int]) -> Tensor:
        """The same along new axes in these dimensions."""
        dims, which = list(x.dims), [at % len(x.dims) for at in which]
        for i in which:
            dims[i] = self.axis(extent(dims[i]), self.size(dims[i]))
        return self.placed(x, tuple(dims), {i: self.index(dims[i]) for i in which})

    def axis(self, size: int, formula: Expr | None = None) -> Dim:
        """A new dimension: of a size that follows from others, or of a number of the model's.

        A formula that is a number is one for sure: with what this dimension meets has that size.
        """
        if isinstance(formula, Const):
            return (Atom(size, model=True, certain=True),)
        varied = formula is not None and all(leaf.varied for leaf in self.axes_of(formula))
        atom = Atom(size, model=formula is None, varied=varied)
        if formula is not None:
            self.sized.append(((atom,), simple(formula)))
        return (atom,)

    def fix(self, dim: Dim, now: bool = False) -> None:
        """The next map has the size as a number: other sizes are refused where it is used."""
        self.to_fix.append(dim)
        if now:
            for atom in self.to_fix.pop():
                atom.fix()

    def limit(self, axes: Dim, most: int) -> None:
        """The operator serves no more elements than these along some axes."""
        self.require(Const(most), self.size(axes))

    def hold(self, dim: Dim, *places: Expr) -> None:
        """A number on an axis that no other capture varied may follow from its size: that is fixed.

        Of a graph that was captured once, nothing is known.
        """
        numbers = any(isinstance(place, Const) and place != ZERO for place in places)
        if numbers and self.graph.symbolic is not None:
            self.fix(tuple(leaf for leaf in leaves(dim) if not leaf.varied), now=True)

    def require(self, more: Expr, less: Expr) -> None:
        """The operator serves sizes only at which `less` is at most `more`."""
        self.positive.append(simple(minus(more, less)))

    def placed(self, x: Tensor, dims: Dims, maps: Mapping[int, Expr], mode: str = "") -> Tensor:
        """`x` read at other places: dimension i at the expression maps[i], over axes of `dims`.

        mode "kept": rows of x are worth holding on chip, where they are read more than once.
        """
        axes: list[Atom] = []
        index: list[Expr] = []
        parts: list[int] = []
        for i, expr in maps.items():
            if x.dims[i]:
                axes += x.dims[i]
                parts.append(len(x.dims[i]))
                index.append(simple(expr))
        if not axes:
            return Tensor(x.value, dims, x.dtype)
        self.moved[x.dims] = None
        value = self.dag.make(
            "at", x.value, axes=tuple(axes), index=tuple(index), parts=tuple(parts),
            kind=x.value.kind, mode=mode,
        )  # fmt: skip
        if self.to_fix:
            self.fixed.setdefault(value, []).extend(self.to_fix)
            self.to_fix = []
        return Tensor(value, dims, x.dtype)

    def broadcast(self, *tensors: Tensor) -> Dims:
        try:
            return align([tensor.dims for tensor in tensors])
        except AxisError as problem:
            self.refuse(problem.code, problem.message)


Rule = Callable[[Reader], Result]


def _is_plain(expr: Expr) -> bool:
    """Whether it is made of names, sums, products and the smaller or larger of two."""

    def is_plain(factor: Expr) -> bool:
        match factor:
            case Name():
                return True
            case Call(ScalarFn.MIN | ScalarFn.MAX, args):
                return all(map(_is_plain, args))
        return False

    return all(is_plain(factor) for factors, _ in poly(expr).terms for factor in factors)


def _depths(dim: Dim) -> list[tuple[Atom, int]]:
    """The axes of a dimension, each with the elements that are behind one of its steps."""
    found, behind = [], 1
    for leaf in leaves(dim)[::-1]:
        found.append((leaf, behind))
        behind *= leaf.size
    return found
