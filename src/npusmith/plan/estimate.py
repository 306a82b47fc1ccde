"""Time of a tile program from its text alone: `estimate(program, shapes, chip)` in microseconds.

What decides between ways to write a graph when there are many of them (partition.py): a walk
through one core's work, each loop taken once, in its middle, and counted as often as it turns. The
costs are those of the timing model (target/costs.py); what it leaves out are queues that wait for
each other, conflicts of banks, and what is still in L2. A search times the best few on the twin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil, gcd, prod

import numpy as np

from npusmith.errors import LangError
from npusmith.ir.dtypes import DType
from npusmith.ir.launches import each_launch, side_by_side
from npusmith.ir.nodes import (
    Assign,
    Combine,
    CoreCount,
    CoreId,
    Expr,
    For,
    If,
    Load,
    Memory,
    Mmad,
    Op,
    Post,
    Program,
    Split,
    Stage,
    Stmt,
    Store,
    SyncCores,
)
from npusmith.ir.spec import OpSpec, Port
from npusmith.ir.walk import Block, children, subexpressions, values
from npusmith.lang.interp import Launched, run_host
from npusmith.lang.scalars import Scalar, Scalars
from npusmith.target.chips import Chip
from npusmith.target.costs import values as cost_table
from npusmith.target.cube import MOST_PITCH, fractals
from npusmith.target.intrinsics import INTRINSICS, Form
from npusmith.target.meaning import row_pitch
from npusmith.task.graph import Graph, GraphInput

WAIT = 1.3  # microseconds: all cores for each other
Shape = tuple[int, ...]
_QUEUE = ("alloc", "enque", "deque", "free")  # what a buffer that is copied costs the scalar unit
# Forms of several instructions that wait for each other: how many of them for each repeat.
_STEPS = {Form.LANES: 8, Form.RUNNING: 40, Form.SORT_ROWS: 60}
_LINE = 512  # bytes of L2: the most that a request is for
SECTOR = 128  # bytes of L2: a row of other lengths is served as whole lines
LAUNCH = 4.0  # microseconds
AGAIN = 3.0  # times as fast as HBM what was read before comes out of L2


def estimate(
    program: Program, shapes: Mapping[str, Shape], chip: Chip, near: bool = False
) -> float:
    """Microseconds of all kernels, one after another, for tensors of these shapes.

    `near`: what passes from one to the next is in L2 still.
    """
    us = LAUNCH - WAIT
    groups = side_by_side(each_launch(program))
    read = [{item.name for part in group for item in part.kernel.tensors} for group in groups]
    uses = Counter(name for names in read for name in names)
    between = {name for name, count in uses.items() if count > 1}
    if near:
        between = {name for name in between if name in shapes}
    for group in groups:
        cores = [_walked(part, shapes, chip, between) for part in group]
        us += cores[0].launched.rounds * (_together(cores) + WAIT)
    return us


def _together(cores: Sequence[_Core]) -> float:
    """Microseconds of kernels that run side by side: the longest, and what one waits for at first.

    What passes between them stays in L2; all that they copy shares its way there.
    """
    if len(cores) == 1:
        return cores[0].time()
    times = [core.time() for core in cores]
    first = min(time / max(core.posts, 1.0) for time, core in zip(times, cores, strict=True))
    moved = sum(core.moved() for core in cores)
    return max(*times, moved) + first


def time_of(program: Program, spec: OpSpec, graph: Graph, chip: Chip) -> float:
    """The same at the captured sizes of what the program was written for."""
    return estimate(program, shapes_of(graph, spec), chip)


def shapes_of(graph: Graph, spec: OpSpec) -> dict[str, Shape]:
    """Of the operator's tensors as they were captured."""
    shapes = {port.name: origin(graph, port).shape for port in spec.inputs}
    outputs = zip(spec.outputs, graph.outputs, strict=True)
    return shapes | {port.name: graph.spec(name).shape for port, name in outputs}


def core_time(program: Program, shapes: Mapping[str, Shape], chip: Chip) -> tuple[float, int]:
    """Microseconds of one core of a kernel whose pipes take turns, and how many cores there are.

    They do where little work is left for a core: it loads, computes and stores one tile.
    """
    core = _walked(program, shapes, chip)
    return core.in_turn(), core.launched.cores


def traffic(graph: Graph, chip: Chip) -> float:
    """Microseconds that inputs and outputs take to and from HBM, with the launch."""
    specs = (*graph.inputs, *(graph.spec(name) for name in graph.outputs))
    return LAUNCH + hbm_us(sum(item.size * item.dtype.bytes for item in specs), chip)


def requests(row: int, pitch: int) -> float:
    """To L2, for a row of so many bytes, on the average of rows at that pitch."""
    if row == pitch and (row % SECTOR == 0 or SECTOR % row == 0):  # one after the other, as one
        return row / _LINE
    return max(row - gcd(_LINE, row, pitch), 0) / _LINE + 1


def pieces(row: int, pitch: int) -> float:
    """Parts of lines at the ends of a row of so many bytes: the chip serves them one by one."""
    whole = row % SECTOR == 0 and pitch % SECTOR == 0
    return 0.0 if whole else min(requests(row, pitch), 2.0)


def hbm_us(count: float, chip: Chip) -> float:
    """Microseconds that this many bytes take to or from HBM."""
    return count / (chip.hbm_gbps * 1000)


def origin(graph: Graph, port: Port) -> GraphInput:
    """The input of the graph that a port stands for."""
    user = port.source.value == "user"
    return next(
        item
        for item in graph.inputs
        if item.kind == port.source.value
        and (item.position == port.position if user else item.target == port.target)
    )


def _walked(
    part: Program, shapes: Mapping[str, Shape], chip: Chip, between: Collection[str] = ()
) -> _Core:
    """`between`: scratch tensors that pass from one kernel to another, as inputs and outputs do."""
    launched = run_host(part, chip, shapes)
    whole = 0
    for item in part.kernel.tensors:
        if item.name in shapes:
            whole += item.dtype.bytes * prod(shapes[item.name])
        elif item.name in between and item.name in launched.args:  # no part of it, of a loop's
            whole += item.dtype.bytes * int(launched.args[item.name])
    core = _Core(part, launched, chip, whole)
    core.run(part.kernel.body, 1.0)
    return core


def _leaf(cores: int, expr: Expr) -> Scalar:
    match expr:
        case CoreId():
            return 0
        case CoreCount():
            return cores
        case _:  # a value of data
            return 1


@dataclass(slots=True)
class _Core:
    """Cycles of the first core's pipes, and bytes that all cores copy."""

    program: Program
    launched: Launched
    chip: Chip
    whole: int  # bytes of inputs and outputs
    cycles: dict[str, float] = field(default_factory=dict)
    bytes: float = 0.0
    lost: float = 0.0  # more bytes, of lines that rows take in parts
    pieces: float = 0.0  # at the ends of rows of matrices
    waits: float = 0.0
    posts: float = 0.0
    slack: float = 0.0  # cycles in which copies of single rows wait for nothing but their turn
    scalars: Scalars = field(init=False)
    costs: Mapping[str, float] = field(init=False)
    types: dict[str, DType] = field(init=False)
    matrices: dict[str, Memory] = field(init=False)  # buffers of a cube core
    written: set[str] = field(default_factory=set)  # buffers, since the last barrier

    def __post_init__(self) -> None:
        kernel = self.program.kernel
        names = {key: _scalar(value) for key, value in self.program.consts}
        names |= self.launched.args
        self.scalars = Scalars(names, partial(_leaf, self.launched.cores), _fail)
        self.costs = cost_table(self.chip)
        self.types = {item.name: item.dtype for item in kernel.buffers}
        self.types |= {item.name: item.dtype for item in kernel.tensors}
        self.matrices = {
            item.name: item.memory for item in kernel.buffers if item.memory is not Memory.UB
        }

    def time(self) -> float:
        if self.program.kernel.is_cube:  # what L2 does not hold yet comes more slowly
            late = 1 / self.costs["path.gm_l1.miss"] - 1 / self.costs["path.gm_l1.rate"]
            fetched = min(self.bytes, self.whole / self.launched.cores) * late
            self._add("MTE2", max(fetched - self.slack, 0.0))
        longest = max(self.cycles.values(), default=0.0) / self.chip.clock_mhz
        served = self.pieces * self.launched.cores / self.costs["gm.pieces"] / self.chip.clock_mhz
        return max(longest, self.moved(), served) + self.waits * WAIT

    def moved(self) -> float:
        """Microseconds that all copies take on their way to memory and back."""
        copied = self.bytes * self.launched.cores
        once = min(copied, self.whole)
        lost = self.lost * self.launched.cores
        return (once + lost + (copied - once) / AGAIN) / (self.chip.hbm_gbps * 1000)

    def in_turn(self) -> float:
        return sum(self.cycles.values()) / self.chip.clock_mhz

    def _add(self, pipe: str, cycles: float) -> None:
        self.cycles[pipe] = self.cycles.get(pipe, 0.0) + cycles

    def _value(self, expr: Expr) -> float:
        try:
            return float(self.scalars.value(expr))
        except (LangError, OverflowError):
            return 1.0

    # -------------------------------------------------------------------------------- statements

    def run(self, block: Block, times: float) -> None:
        for stmt in block:
            self._run(stmt, times)

    def _run(self, stmt: Stmt, times: float) -> None:
        match stmt:
            case Stage(_, body):
                self.run(body, times)
            case Assign(target, value):
                self._assign(target, value, stmt, times)
            case For():
                self._loop(stmt, times)
            case If(cond, then, orelse):
                self._add("S", times * self.costs["scalar.other"])
                self.run(then if self._value(cond) else orelse, times)
            case Load(dst, src) if dst.buffer in self.matrices:
                sides = (stmt.rows, stmt.count)
                self._matrix("gm_l1", "MTE2", src.tensor, sides, times, stmt.pitch)
            case Split(dst, _, rows, cols):
                memory = self.matrices[dst.buffer]
                short = "bt" if memory is Memory.BIAS_TABLE else memory.value
                self._matrix(f"l1_{short}", "MTE1", dst.buffer, (rows, cols), times)
            case Mmad():
                self._product(stmt, times)
            case Store(dst, src) if src.buffer in self.matrices:
                self._matrix("l0c_gm", "FIX", dst.tensor, (stmt.rows, stmt.count), times)
            case Load(_, src):
                self._copy("gm_ub", "MTE2", self.types[src.tensor], stmt, times)
            case Store(dst):
                self._copy("ub_gm", "MTE3", self.types[dst.tensor], stmt, times)
            case Op():
                self._op(stmt, times)
            case Combine():
                self.waits += times
                self._add("S", times * self.launched.cores * self.costs["scalar.read_use"])
            case SyncCores():
                self.waits += times
            case Post():
                self.posts += times
                self._add("S", times * self.costs["scalar.cross_set"])
            case _:
                pass

    def _assign(self, target: str, value: Expr, stmt: Stmt, times: float) -> None:
        reads = sum(1 for _ in values(stmt))
        each = self.costs["scalar.read_use"] if reads else self.costs["scalar.other"]
        self._add("S", times * each * max(reads, 1))
        try:
            self.scalars.names[target] = self.scalars.value(value)
        except (LangError, OverflowError):
            self.scalars.names[target] = 1

    def _loop(self, stmt: For, times: float) -> None:
        start, stop, step = (int(self._value(e)) for e in (stmt.start, stmt.stop, stmt.step))
        turns = max(0, ceil((stop - start) / max(step, 1)))
        if not turns:
            return
        self.scalars.names[stmt.var] = start + (turns - 1) // 2 * step
        self._add("S", times * turns * self.costs["scalar.issue"])
        self.run(stmt.body, times * turns)

    def _copy(self, path: str, pipe: str, dtype: DType, stmt: Load | Store, times: float) -> None:
        def cost(name: str) -> float:
            key = f"path.{path}.{name}"
            return self.costs.get(key, self.costs[f"path.other.{name}"])

        rows, pitch = stmt.rows, stmt.pitch
        many = 1.0 if rows is None else max(self._value(rows), 1.0)
        one = max(self._value(stmt.count), 1.0) * dtype.bytes
        total = many * max(one, self.chip.block_bytes)
        self.bytes += times * total
        if pitch is not None and self._value(pitch) * dtype.bytes > one > SECTOR and one % SECTOR:
            line = self.costs["gm.piece_bytes"]
            self.lost += times * many * (ceil(one / line) * line - one)
        cycles = cost("issue") + many * (cost("row") if rows is not None else 0.0)
        self._add(pipe, times * max(cycles, total / cost("rate")))
        self._add("S", times * sum(self.costs[f"scalar.{name}"] for name in _QUEUE))

    def _matrix(
        self, path: str, pipe: str, name: str, sides: tuple[Expr | None, Expr], times: float,
        pitch: Expr | None = None,
    ) -> None:  # fmt: skip
        """A part of a matrix from one memory to another, by rows where global memory is one."""
        rows, cols = (1.0 if side is None else max(self._value(side), 1.0) for side in sides)
        size = rows * cols * self.types[name].bytes
        cycles = size / self.costs[f"path.{path}.rate"] + self.costs.get(f"path.{path}.gap", 0.0)
        if "gm" in path:
            self.bytes += times * size
            cycles = max(cycles, rows * self.costs[f"path.{path}.nz_row"])
            each = self.costs.get(f"path.{path}.request", 0.0)
            apart = int(self._value(pitch)) * self.types[name].bytes if pitch is not None else 0
            long = int(cols) * self.types[name].bytes
            cycles += rows * requests(long, apart) * each
            if path == "gm_l1":
                self.pieces += times * rows * pieces(long, apart)
            more = rows - 1 if apart > MOST_PITCH * self.types[name].bytes else 0  # each a copy
            issue = self.costs[f"path.{path}.issue"]
            self.slack += times * max(more * issue - cycles, 0.0)
            cycles = max(cycles, more * issue) + issue
        self._add(pipe, times * cycles)
        self._add("S", times * sum(self.costs[f"scalar.{name}"] for name in _QUEUE))

    def _product(self, stmt: Mmad, times: float) -> None:
        dtype = self.types[stmt.left.buffer]
        m, n, k = (max(self._value(side), 1.0) for side in (stmt.m, stmt.n, stmt.k))
        each = self.costs["cube.tile"]
        each *= self.costs["cube.float"] if dtype is DType.FLOAT32 else 1.0
        self._add("M", times * (fractals(m, n, k, dtype) * each + self.costs["cube.gap"]))
        self._add("S", times * self.costs["scalar.issue"])

    def _op(self, stmt: Op, times: float) -> None:
        row, dtype = INTRINSICS[stmt.name], self.types[stmt.views[0].buffer]
        if row.form is Form.ELEMENT:
            self._add("S", times * self.costs["scalar.write"])
            return
        elements = self._value(stmt.count)
        if row.form is Form.SORT_ROWS:
            elements *= row_pitch(int(self._value(stmt.scalars[0])))
        repeats = max(1.0, ceil(elements * dtype.bytes / self.chip.repeat_bytes))
        if row.library:
            count = self.costs.get(f"library.{stmt.name}", self.costs["library.other"])
            each = self.costs["library.repeat"]
        else:
            count, each = 1.0, self._each(stmt.name, dtype)
        steps = _STEPS.get(row.form, 0)
        each *= max(steps, 1)
        waits = self._waits(stmt)
        head = self.costs["vector.head" if steps or waits else "vector.floor"]
        self._add("V", times * count * (head + repeats * each))
        placed = sum(
            1 for view in stmt.views for part in subexpressions(view.offset) if children(part)
        )
        barrier = self.costs["scalar.barrier"] if waits else 0.0
        issue = count * self.costs["scalar.issue"] + barrier + placed * self.costs["scalar.other"]
        self._add("S", times * issue)

    def _waits(self, stmt: Op) -> bool:
        """Whether an instruction waits for what one before it writes."""
        touched = {view.buffer for view in stmt.views}
        waits = bool(touched & self.written)
        self.written = (set() if waits else self.written) | {stmt.views[0].buffer}
        return waits

    def _each(self, name: str, dtype: DType) -> float:
        """Cycles of a repeat."""
        wide = f"vector.{name}.{32 if dtype.bytes > 2 else 16}"
        return self.costs.get(wide, self.costs.get(f"vector.{name}", self.costs["vector.other"]))


def _scalar(value: float) -> Scalar:
    return np.float32(value) if isinstance(value, float) else value


def _fail(code: str, message: str) -> LangError:
    return LangError(code, message)
