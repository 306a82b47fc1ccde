"""What a kernel is, as data: frozen, typed nodes.

A Program is one host function, which decides cores and tile counts from shapes and chip facts, and
one kernel, which every core runs. The first half of the statements is the tile language; the second
half (Alloc ... Barrier) appears only while a program is being lowered. Both halves have one
meaning, given by lang/interp.py. `line` is the line in the text and takes no part in equality.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from enum import Enum

from npusmith.ir.dtypes import DType

# ------------------------------------------------------------------------------------ expressions


class BinOp(str, Enum):
    """Scalar operators. Ints are 64-bit, floats are float32; `/` is for floats, `//` for ints."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    FLOORDIV = "//"
    MOD = "%"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ = "=="
    NE = "!="
    AND = "and"
    OR = "or"


class ScalarFn(str, Enum):
    """Scalar functions of one or two arguments. Those from WRAP_ADD on are for ints: sums and
    products modulo 2**64, bits, shifts by 0 to 63."""

    MIN = "min"
    MAX = "max"
    CEIL_DIV = "ceil_div"
    ALIGN_UP = "align_up"
    FLOAT = "float"
    INT = "int"
    WRAP_ADD = "wrap_add"
    WRAP_SUB = "wrap_sub"
    WRAP_MUL = "wrap_mul"
    BITWISE_AND = "bitwise_and"
    BITWISE_OR = "bitwise_or"
    BITWISE_XOR = "bitwise_xor"
    LEFT_SHIFT = "left_shift"
    RIGHT_SHIFT = "right_shift"


# Functions of two ints; those that wrap do so modulo 2**64.
INT_FNS = (
    ScalarFn.WRAP_ADD, ScalarFn.WRAP_SUB, ScalarFn.WRAP_MUL, ScalarFn.BITWISE_AND,
    ScalarFn.BITWISE_OR, ScalarFn.BITWISE_XOR, ScalarFn.LEFT_SHIFT, ScalarFn.RIGHT_SHIFT,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Const:
    """A number. `inf` is written inf; a bool is written True or False."""

    value: int | float | bool


@dataclass(frozen=True, slots=True)
class Name:
    """A scalar variable, tiling parameter, loop variable or module-level constant."""

    id: str


class Hashed:
    """Nodes that keep their hash: what is inside of them is not walked again at every look-up.

    Nor are two of them that differ compared part by part. walk.py keeps what it finds inside.
    """

    __slots__ = ("_elements", "_hash", "_names")
    _hash: int
    _names: tuple[str, ...]
    _elements: tuple[View, ...]
    _inside: Callable[[], Hashable]  # what tells it from others of its class

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Hashed)
        return hash(self) == hash(other) and self._inside() == other._inside()

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            found = hash(self._inside())
            object.__setattr__(self, "_hash", found)
            return found


@dataclass(frozen=True, slots=True)
class Binary(Hashed):
    op: BinOp
    left: Expr
    right: Expr
    __eq__ = Hashed.__eq__
    __hash__ = Hashed.__hash__

    def _inside(self) -> Hashable:
        return self.op, self.left, self.right


@dataclass(frozen=True, slots=True)
class Negate(Hashed):
    value: Expr
    __eq__ = Hashed.__eq__
    __hash__ = Hashed.__hash__

    def _inside(self) -> Hashable:
        return self.value


@dataclass(frozen=True, slots=True)
class Call(Hashed):
    fn: ScalarFn
    args: tuple[Expr, ...]
    __eq__ = Hashed.__eq__
    __hash__ = Hashed.__hash__

    def _inside(self) -> Hashable:
        return self.fn, self.args


@dataclass(frozen=True, slots=True)
class Choice(Hashed):
    """`then if cond else other`"""

    cond: Expr
    then: Expr
    other: Expr
    __eq__ = Hashed.__eq__
    __hash__ = Hashed.__hash__

    def _inside(self) -> Hashable:
        return self.cond, self.then, self.other


@dataclass(frozen=True, slots=True)
class Dim:
    """`x.shape[i]`, host only; i may be negative."""

    tensor: str
    index: int


@dataclass(frozen=True, slots=True)
class Size:
    """`x.size`: number of elements, host only."""

    tensor: str


@dataclass(frozen=True, slots=True)
class ChipFact:
    """`chip.vector_cores`, `chip.cube_cores` or `chip.ub_bytes`, host only."""

    name: str


@dataclass(frozen=True, slots=True)
class CoreId:
    """`core_id()`: 0 .. cores-1, kernel only."""


@dataclass(frozen=True, slots=True)
class CoreCount:
    """`core_count()`: cores launched, kernel only."""


@dataclass(frozen=True, slots=True)
class Value:
    """`value(buf[i])`: one element of an on-chip buffer as a scalar, kernel only.

    float32 and float16 give a float, int32 gives an int. Waits for the vector unit.
    """

    source: View


Expr = (
    Const
    | Name
    | Binary
    | Negate
    | Call
    | Choice
    | Dim
    | Size
    | ChipFact
    | CoreId
    | CoreCount
    | Value
)


# -------------------------------------------------------------------------------------- operands


@dataclass(frozen=True, slots=True)
class View:
    """`buf` or `buf[offset]`: an on-chip buffer from an element offset on.

    `buf[row, col]` of a matrix: `offset` is the row.
    """

    buffer: str
    offset: Expr = Const(0)
    col: Expr | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """`x[offset]`: a tensor in global memory from an element offset on."""

    tensor: str
    offset: Expr = Const(0)


class TensorRole(str, Enum):
    INPUT = "input"
    OUTPUT = "output"
    SCRATCH = "scratch"  # workspace in global memory; its length is given by launch()


@dataclass(frozen=True, slots=True)
class Tensor:
    """A parameter of the kernel that lives in global memory."""

    name: str
    dtype: DType
    role: TensorRole


@dataclass(frozen=True, slots=True)
class Scalar:
    """A tiling parameter: `int` is 64-bit, `float` is float32."""

    name: str
    is_float: bool = False


class Memory(str, Enum):
    """On-chip memories; all but UB belong to a cube core, and their buffers are matrices."""

    UB = "ub"
    L1 = "l1"
    L0A = "l0a"  # left operands of products
    L0B = "l0b"  # right operands
    L0C = "l0c"  # products
    BIAS_TABLE = "bias_table"  # a row that products begin with


class Role(str, Enum):
    """Where a buffer sits in the pipeline (Ascend C's TPosition); set by lower/place_buffers."""

    VECIN = "VECIN"  # loaded, then read by vector operations
    VECOUT = "VECOUT"  # written by vector operations, then stored
    VECCALC = "VECCALC"  # scratch of vector operations
    THROUGH = "THROUGH"  # loaded and stored again unchanged: one TQueBind
    A1 = "A1"  # L1
    B1 = "B1"  # L1, for right operands
    A2 = "A2"  # L0A
    B2 = "B2"  # L0B
    CO1 = "CO1"  # L0C
    C1 = "C1"  # L1, for rows of the bias table
    C2 = "C2"  # bias table


@dataclass(frozen=True, slots=True)
class Buffer:
    """`name = ub(length, dtype)`: a named piece of the unified buffer, length in elements.

    `name = l1(length, cols, dtype)`, and l0a, l0b, l0c: a matrix of `length` rows.

    `length` uses literals and module-level constants only, so that UB is known before any run.
    `copies`: of a loaded or stored buffer, how many there are, so that copies overlap with
    computing; 0 leaves it to the lowering, which sets `depth`. `gap`: bytes that it
    leaves free in front of the buffer. `named`: the length as the program has it, `2 * TILE`, where
    the lowering has put a number in its place.
    """

    name: str
    dtype: DType
    length: Expr
    role: Role | None = None
    depth: int = 1
    copies: int = 0
    gap: int = 0
    line: int = field(default=0, compare=False)
    named: Expr | None = field(default=None, compare=False)
    memory: Memory = Memory.UB
    cols: Expr | None = None
    named_cols: Expr | None = field(default=None, compare=False)


# ------------------------------------------------------------------------------------ statements


class StageKind(str, Enum):
    COPY_IN = "copy_in"
    SPLIT = "split"
    COMPUTE = "compute"
    COPY_OUT = "copy_out"


@dataclass(frozen=True, slots=True)
class Note:
    """A bare string: a comment that survives parsing and reaches the emitted C++."""

    text: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Assign:
    """`name = expr`. A variable keeps one type (int, float or bool) throughout a function."""

    target: str
    value: Expr
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class For:
    """`for var in range(start, stop, step):` with step a positive int."""

    var: str
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[Stmt, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class If:
    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Stage:
    """`with copy_in:` / `with split:` / `with compute:` / `with copy_out:`.

    copy_in holds Load only, split holds Split, compute holds Op or Mmad, copy_out holds Store only;
    Assign, For and If are allowed in all of them.
    """

    kind: StageKind
    body: tuple[Stmt, ...]
    line: int = field(default=0, compare=False)


class Atomic(str, Enum):
    ADD = "add"
    MAX = "max"
    MIN = "min"


@dataclass(frozen=True, slots=True)
class Load:
    """`load(buf, x[offset], count)` or `load(buf, x[offset], count, rows=r, pitch=p)`.

    With rows, r pieces of `count` elements whose starts lie `pitch` elements apart in global memory
    land in UB rows of align_up(count, 32 B) elements. What lies between count and the end of the
    last 32-byte block of a row is padding: undefined to the reader.
    Into a matrix in L1: r rows of `count` columns, and zeros up to whole blocks of 32 bytes.
    `padded` (set by lower/pad_copies): None = undecided, False = plain DataCopy is exact.
    """

    dst: View
    src: Span
    count: Expr
    rows: Expr | None = None
    pitch: Expr | None = None
    padded: bool | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Store:
    """`store(y[offset], buf, count[, rows=r, pitch=p][, atomic="add"])`, the mirror of Load.

    Of a matrix in L0C: its elements in the tensor's type, negative ones as 0 with `relu=True`.
    """

    dst: Span
    src: View
    count: Expr
    rows: Expr | None = None
    pitch: Expr | None = None
    atomic: Atomic | None = None
    padded: bool | None = None
    relu: bool = False
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Split:
    """`load(a0, a1[row, col], rows, cols[, transposed=True])`: a part of L1 into L0A, L0B or the
    bias table.

    `rows` and `cols` are those of the destination; transposed, the source has them the other way.
    """

    dst: View
    src: View
    rows: Expr
    cols: Expr
    transposed: bool = False
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Mmad:
    """`mmad(c0, a0, b0, m, n, k, accumulate[, bias=v0])`: c0 = a0 @ b0, added to what c0 holds.

    Where it does not accumulate, to the row of the bias, or to zeros.
    """

    dst: View
    left: View
    right: View
    m: Expr
    n: Expr
    k: Expr
    accumulate: Expr
    bias: View | None = None
    line: int = field(default=0, compare=False)

    @property
    def sources(self) -> tuple[View, ...]:
        """The operands that it reads, besides the sum."""
        return (self.left, self.right) if self.bias is None else (self.left, self.right, self.bias)


ONE_ELEMENT = "set"  # the operation that has no count


@dataclass(frozen=True, slots=True)
class Op:
    """One row of the intrinsic table applied: `add(dst, a, b, n)`.

    `name` is Intrinsic.name. Operands come in the order of Intrinsic.operands; views holds DST,
    SRC, MASK and TMP in that order, scalars the SCALAR ones, mode the MODE one ("" when none).
    `set(buf[i], s)` writes one element and is written without its count, which is 1.
    """

    name: str
    views: tuple[View, ...]
    scalars: tuple[Expr, ...]
    mode: str
    count: Expr
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Combine:
    """`combine_sum(dst, src, scratch, n)`: reduce across cores; every core gets the result.

    Element i of dst becomes op over cores of element i of their src, in the order of core numbers.
    `scratch` is a SCRATCH tensor of at least core_count() * align_up(n, 32 B) elements. Stands
    outside stages, where every core comes by the same number of times.
    """

    op: str  # "sum", "max", "min" or "prod"
    dst: View
    src: View
    scratch: str
    count: Expr
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class SyncCores:
    """`sync_cores()`: every core waits here for all others; stores before it are seen after it."""

    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Post:
    """`post("scores")`: what this core has loaded and stored so far is done, for who waits for it.

    Cube core and vector cores of a block tell each other, in kernels that run side by side: a post
    of the cube core is for both vector cores; one of the vector cores counts once both have posted.
    """

    flag: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Await:
    """`wait("scores")`: this core goes on when the other side of its block has posted once more
    than this core has waited for so far."""

    flag: str
    line: int = field(default=0, compare=False)


# --- statements that only passes write ---


@dataclass(frozen=True, slots=True)
class Alloc:
    """Take a free buffer of the queue; its contents are undefined."""

    buffer: str


@dataclass(frozen=True, slots=True)
class Enque:
    """Hand a buffer to the next pipe."""

    buffer: str


@dataclass(frozen=True, slots=True)
class Deque:
    """Take a buffer over from the previous pipe."""

    buffer: str


@dataclass(frozen=True, slots=True)
class Free:
    """Give a buffer back to its queue."""

    buffer: str


@dataclass(frozen=True, slots=True)
class Barrier:
    """PipeBarrier: later instructions of one pipe see what earlier ones wrote."""

    pipe: str  # "V", "MTE2", "MTE3", "FIX" or "ALL"


@dataclass(frozen=True, slots=True)
class Event:
    """SetFlag and WaitFlag of one hard event in one step: the second pipe waits for the first."""

    first: str  # "V", "S", "MTE2", "MTE3", "FIX"
    second: str


Stmt = (
    Note
    | Assign
    | For
    | If
    | Stage
    | Load
    | Store
    | Split
    | Mmad
    | Op
    | Combine
    | SyncCores
    | Post
    | Await
    | Alloc
    | Enque
    | Deque
    | Free
    | Barrier
    | Event
)


# --------------------------------------------------------------------------------------- program


@dataclass(frozen=True, slots=True)
class Part:
    """`part(states, start, length)`: elements of a tensor that a kernel takes as one of its own.

    `start` counts elements; in a loop it is a number plus another one times the loop's variable.
    """

    tensor: str
    start: Expr
    length: Expr


@dataclass(frozen=True, slots=True)
class Loop:
    """`for t in range(start, stop):` around launches, which then run again and again, in order."""

    var: str
    start: Expr
    stop: Expr
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Launch:
    """`launch(kernel, cores, name=expr, ...)`: a value per Scalar, a length per SCRATCH.

    `tensors`: `x=other` for each tensor of the kernel that has another name outside of it; `parts`:
    `x=part(...)`. A kernel that is launched several times has each time its own values and its own
    tensors. `loop`: the loop around it; launches of one loop follow each other. `beside`: it runs
    at the same time as the launch before it, one on cube cores and the other on vector cores.
    """

    kernel: str
    cores: Expr
    args: tuple[tuple[str, Expr], ...]
    line: int = field(default=0, compare=False)
    tensors: tuple[tuple[str, str], ...] = ()
    parts: tuple[tuple[str, Part], ...] = ()
    loop: Loop | None = None
    beside: bool = False

    @property
    def numbers(self) -> tuple[Expr, ...]:
        """What the host function computes for it: all but where parts begin in a loop."""
        lengths = (part.length for _, part in self.parts)
        ends = () if self.loop is None else (self.loop.start, self.loop.stop)
        return (self.cores, *(value for _, value in self.args), *lengths, *ends)


@dataclass(frozen=True, slots=True)
class Host:
    """`@host def name(x, y):` straight-line assignments over shapes and chip facts, then launches.

    Kernels run in the order of their launches, on equally many cores; what one has stored, the next
    one loads.
    """

    name: str
    tensors: tuple[str, ...]  # inputs then outputs, as in the kernels
    body: tuple[Stmt, ...]
    launches: tuple[Launch, ...]
    doc: str = ""
    line: int = field(default=0, compare=False)

    @property
    def launch(self) -> Launch:
        """The launch of a program of one kernel."""
        (only,) = self.launches
        return only


@dataclass(frozen=True, slots=True)
class Kernel:
    """`@kernel def name(x: input(float32), y: output(float32), n: int):`

    Tensors come in the order inputs, outputs, scratch. `block_cores`: of a program of both kinds of
    kernels, how many of the cores that this one runs on each block has (see ir/launches.py).
    """

    name: str
    tensors: tuple[Tensor, ...]
    scalars: tuple[Scalar, ...]
    buffers: tuple[Buffer, ...]
    body: tuple[Stmt, ...]
    doc: str = ""
    line: int = field(default=0, compare=False)
    block_cores: int = field(default=1, compare=False)

    @property
    def is_cube(self) -> bool:
        """Does it run on cube cores? Its buffers say so."""
        return any(item.memory is not Memory.UB for item in self.buffers)

    def tensor(self, name: str) -> Tensor:
        return next(item for item in self.tensors if item.name == name)

    def buffer(self, name: str) -> Buffer:
        return next(item for item in self.buffers if item.name == name)


@dataclass(frozen=True, slots=True)
class Program:
    """A whole tile program. `consts` are module-level `NAME = literal` lines, in order.

    Several kernels share tensors by name: inputs, outputs and scratch tensors.
    """

    consts: tuple[tuple[str, int | float], ...]
    host: Host
    kernels: tuple[Kernel, ...]
    doc: str = ""

    @property
    def kernel(self) -> Kernel:
        """The kernel of a program that has one."""
        (only,) = self.kernels
        return only

    @property
    def is_mixed(self) -> bool:
        """Are there kernels of both kinds? A block is then one cube core and two vector cores."""
        return len({kernel.is_cube for kernel in self.kernels}) > 1

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """What kernels are launched with, each once: inputs and outputs in the host's order, then
        scratch."""
        launched = {launch.kernel for launch in self.host.launches}
        kernels = {kernel.name: kernel for kernel in self.kernels}
        found = {
            item.name: item
            for launch in self.host.launches
            if launch.kernel in kernels
            for item in self.bound(kernels[launch.kernel], launch)
        }
        found |= {
            item.name: item
            for kernel in self.kernels
            if kernel.name not in launched
            for item in kernel.tensors
        }
        if len(self.kernels) == 1 and len(self.host.launches) == 1:
            return tuple(found.values())
        order = {name: at for at, name in enumerate(self.host.tensors)}
        return tuple(sorted(found.values(), key=lambda item: order.get(item.name, len(order))))

    def bound(self, kernel: Kernel, launch: Launch) -> tuple[Tensor, ...]:
        """The tensors of a kernel as that launch binds them.

        What a parameter of another name is bound to is scratch where the host does not take it,
        and an output where the kernel stores it.
        """
        names = dict(launch.tensors) | {own: part.tensor for own, part in launch.parts}
        return tuple(
            replace(item, name=names[item.name], role=self._role(item, names[item.name]))
            if item.name in names
            else item
            for item in kernel.tensors
        )

    def _role(self, item: Tensor, name: str) -> TensorRole:
        if name not in self.host.tensors:
            return TensorRole.SCRATCH
        return TensorRole.INPUT if item.role is TensorRole.INPUT else TensorRole.OUTPUT

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return tuple(t for t in self.tensors if t.role is TensorRole.INPUT)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return tuple(t for t in self.tensors if t.role is TensorRole.OUTPUT)
