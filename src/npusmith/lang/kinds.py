"""Names and types: every name has a value where it is read; ints, floats and bools stay apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Call,
    ChipFact,
    Choice,
    Combine,
    Const,
    CoreCount,
    CoreId,
    Dim,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Mmad,
    Name,
    Negate,
    Op,
    Program,
    ScalarFn,
    Size,
    Split,
    Stage,
    Stmt,
    Store,
    Value,
    View,
)
from npusmith.ir.text import show_expr
from npusmith.lang.log import Log
from npusmith.lang.operands import scalar_is_float, well_formed
from npusmith.lang.words import CALLS, CHIP_FACTS, mean


class Kind(str, Enum):
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"


Visible = dict[str, Kind | None]
_COMPARE = (BinOp.LT, BinOp.LE, BinOp.GT, BinOp.GE)
_INT_ONLY = (BinOp.FLOORDIV, BinOp.MOD)
_VALUE_KINDS = {
    DType.FLOAT32: Kind.FLOAT,
    DType.FLOAT16: Kind.FLOAT,
    **dict.fromkeys((DType.INT32, DType.INT64, DType.INT16, DType.INT8, DType.UINT8), Kind.INT),
}


@dataclass(slots=True)
class Typist:
    """Walks one function; `None` as a kind means that the error has been reported."""

    log: Log
    in_kernel: bool
    consts: dict[str, Kind]
    params: dict[str, Kind]
    tensors: dict[str, DType]
    buffers: dict[str, DType]
    kinds: dict[str, Kind | None] = field(default_factory=dict)  # of every variable ever assigned
    loops: list[str] = field(default_factory=list)

    # ---- statements

    def block(self, block: tuple[Stmt, ...], visible: Visible) -> None:
        for stmt in block:
            self.stmt(stmt, visible)

    def stmt(self, stmt: Stmt, visible: Visible) -> None:
        match stmt:
            case Assign(target, value):
                self._assign(stmt, target, self.kind(value, visible, stmt), visible)
            case For():
                self._for(stmt, visible)
            case If(cond, then, orelse):
                self.expect(cond, Kind.BOOL, visible, stmt, "a condition")
                self.block(then, dict(visible))
                self.block(orelse, dict(visible))
            case Stage(_, body):
                self.block(body, visible)
            case Load() | Store():
                self._copy(stmt, visible)
            case Split(_, src) if src.buffer in self.tensors:
                message = "load() from a tensor takes 3 operands, rows and pitch by name"
                self.log.add("lang-operands", message, stmt, legal=CALLS["load"])
            case Split(dst, src, rows, cols):
                self._matrices((dst, src), (rows, cols), visible, stmt)
            case Mmad(dst, _, _, m, n, k):
                self._matrices((dst, *stmt.sources), (m, n, k), visible, stmt)
                self.expect(stmt.accumulate, Kind.BOOL, visible, stmt, "whether to accumulate")
            case Op():
                self._op(stmt, visible)
            case Combine(_, dst, src, scratch, count):
                self.view(dst, visible, stmt)
                self.view(src, visible, stmt)
                self.tensor(scratch, stmt)
                self.expect(count, Kind.INT, visible, stmt, "a count")
            case _:
                pass

    def _assign(self, stmt: Stmt, target: str, kind: Kind | None, visible: Visible) -> None:
        taken = self._taken(target)
        if taken:
            self.log.add("lang-assign", f"{target!r} is {taken} and cannot be assigned", stmt)
            return
        before = self.kinds.get(target)
        if before is not None and kind is not None and before is not kind:
            self.log.add(
                "lang-type", f"{target!r} is {_a(before)} elsewhere and {_a(kind)} here", stmt,
                legal="a variable keeps one type throughout a function",
            )  # fmt: skip
        else:
            self.kinds[target] = before or kind
        visible[target] = self.kinds[target]

    def _taken(self, name: str) -> str:
        for what, names in (
            ("a constant", self.consts),
            ("a parameter", self.params),
            ("a tensor", self.tensors),
            ("a buffer", self.buffers),
            ("the variable of a loop around here", self.loops),
        ):
            if name in names:
                return what
        return ""

    def _for(self, stmt: For, visible: Visible) -> None:
        for part in (stmt.start, stmt.stop, stmt.step):
            self.expect(part, Kind.INT, visible, stmt, "a bound of range()")
        if isinstance(stmt.step, Const) and stmt.step.value < 1:
            self.log.add("lang-divide", "a loop's step is at least 1", stmt)
        if stmt.var in visible:
            message = f"{stmt.var!r} has a value already and cannot be a loop's variable"
            self.log.add("lang-assign", message, stmt)
            return
        inner = dict(visible)
        self._assign(stmt, stmt.var, Kind.INT, inner)
        self.loops.append(stmt.var)
        self.block(stmt.body, inner)
        self.loops.pop()

    def _copy(self, stmt: Load | Store, visible: Visible) -> None:
        load = isinstance(stmt, Load)
        span, view = (stmt.src, stmt.dst) if isinstance(stmt, Load) else (stmt.dst, stmt.src)
        if span.tensor in self.buffers and view.buffer in self.tensors:
            usage = "load(buf, x[offset], count)" if load else "store(y[offset], buf, count)"
            self.log.add("lang-operands", "tensor and buffer are swapped", stmt, legal=usage)
            return
        self.view(view, visible, stmt)
        self.tensor(span.tensor, stmt)
        self.expect(span.offset, Kind.INT, visible, stmt, "an offset")
        for what, part in (("a count", stmt.count), ("rows", stmt.rows), ("pitch", stmt.pitch)):
            if part is not None:
                self.expect(part, Kind.INT, visible, stmt, what)

    def _op(self, stmt: Op, visible: Visible) -> None:
        known = [self.view(view, visible, stmt) for view in stmt.views]
        self.expect(stmt.count, Kind.INT, visible, stmt, "a count")
        wrong = well_formed(stmt)
        if wrong:
            self.log.add("lang-operands", wrong, stmt)
            return
        if not all(known):
            return
        dtypes = [self.buffers[view.buffer] for view in stmt.views]
        want = Kind.FLOAT if scalar_is_float(stmt, dtypes) else Kind.INT
        for scalar in stmt.scalars:
            self.expect(
                scalar, want, visible, stmt, f"the scalar of {stmt.name} on {dtypes[-1].value}"
            )

    # ---- operands

    def _matrices(
        self, views: Iterable[View], sizes: Iterable[Expr], visible: Visible, stmt: Stmt
    ) -> None:
        for view in views:
            self.view(view, visible, stmt)
        for size in sizes:
            self.expect(size, Kind.INT, visible, stmt, "a size")

    def view(self, view: View, visible: Visible, stmt: Stmt) -> bool:
        """Check a buffer operand; True when it is a buffer."""
        for part in (view.offset, view.col or Const(0)):
            self.expect(part, Kind.INT, visible, stmt, "an offset")
        if view.buffer in self.buffers:
            return True
        if view.buffer in self.tensors:
            message = f"{view.buffer!r} is a tensor in global memory, not a buffer"
            self.log.add("lang-buffer", message, stmt)
        elif view.buffer in visible or view.buffer in self.params or view.buffer in self.consts:
            self.log.add("lang-buffer", f"{view.buffer!r} is a number, not a buffer", stmt)
        else:
            self.log.add(
                "lang-buffer", f"no buffer is called {view.buffer!r}", stmt,
                hint=mean(view.buffer, [*self.buffers, *self.tensors]),
            )  # fmt: skip
        return False

    def tensor(self, name: str, stmt: Stmt) -> None:
        if name not in self.tensors:
            what = f"{name!r} is a buffer" if name in self.buffers else f"{name!r} is unknown"
            hint = mean(name, list(self.tensors))
            self.log.add("lang-tensor", f"a tensor is expected, and {what}", stmt, hint=hint)

    # ---- expressions

    def expect(self, expr: Expr, kind: Kind, visible: Visible, stmt: Stmt | int, what: str) -> None:
        """Report an expression of another kind."""
        found = self.kind(expr, visible, stmt)
        if found is not None and found is not kind:
            self.log.add(
                "lang-type", f"{what} is {_a(kind)}, and {show_expr(expr)} is {_a(found)}", stmt,
                hint=_convert(expr, kind, found),
            )  # fmt: skip

    def kind(self, expr: Expr, visible: Visible, stmt: Stmt | int) -> Kind | None:
        """The kind of an expression."""
        match expr:
            case Const(value):
                return _kind_of(value)
            case Name(name):
                return self._name(name, visible, stmt)
            case Binary():
                return self._binary(expr, visible, stmt)
            case Negate(value):
                found = self.kind(value, visible, stmt)
                if found is Kind.BOOL:
                    self.log.add("lang-type", "a bool cannot be negated with -", stmt, hint="not")
                    return None
                return found
            case Call(fn, args):
                return self._call(fn, args, visible, stmt)
            case Choice(cond, then, other):
                self.expect(cond, Kind.BOOL, visible, stmt, "a condition")
                return self._same((then, other), "the two sides of a choice", visible, stmt)
            case Dim(tensor, _) | Size(tensor):
                return self._host_only(expr, tensor, stmt)
            case ChipFact(fact):
                if fact not in CHIP_FACTS:
                    legal = ", ".join(CHIP_FACTS)
                    self.log.add("lang-unknown-name", f"no chip fact {fact!r}", stmt, legal=legal)
                return self._host_only(expr, "", stmt)
            case CoreId() | CoreCount():
                return self._kernel_only(expr, stmt)
            case Value(source):
                return self._value(source, visible, stmt)

    def _name(self, name: str, visible: Visible, stmt: Stmt | int) -> Kind | None:
        if name in visible:
            return visible[name]
        for known in (self.consts, self.params):
            if name in known:
                return known[name]
        if name in self.tensors:
            self.log.add("lang-type", f"{name!r} is a tensor, not a number", stmt)
        elif name in self.buffers:
            hint = f"value({name}[0]) reads one element"
            self.log.add("lang-type", f"{name!r} is a buffer, not a number", stmt, hint=hint)
        elif name in self.kinds:
            self.log.add(
                "lang-unknown-name", f"{name!r} has no value here: the loop or branch that "
                "assigns it is over, or need not have run", stmt,
            )  # fmt: skip
        else:
            near = mean(name, [*visible, *self.params, *self.consts])
            self.log.add("lang-unknown-name", f"{name!r} is not known here", stmt, hint=near)
        return None

    def _binary(self, expr: Binary, visible: Visible, stmt: Stmt | int) -> Kind | None:
        sides = (expr.left, expr.right)
        op = expr.op
        if op in (BinOp.AND, BinOp.OR):
            for side in sides:
                self.expect(side, Kind.BOOL, visible, stmt, f"a side of `{op.value}`")
            return Kind.BOOL
        kind = self._same(sides, f"the two sides of {op.value}", visible, stmt)
        if op in (BinOp.EQ, BinOp.NE):
            return Kind.BOOL
        if op in _COMPARE:
            return None if self._number(kind, op.value, stmt) is None else Kind.BOOL
        if op is BinOp.DIV and kind is Kind.INT:
            hint = "// for ints, or float(a) / float(b)"
            self.log.add("lang-type", "/ is for floats", stmt, hint=hint)
            return None
        if op in _INT_ONLY and kind is Kind.FLOAT:
            self.log.add("lang-type", f"{op.value} is for ints", stmt, hint="/ for floats")
            return None
        return self._number(kind, op.value, stmt)

    def _number(self, kind: Kind | None, what: str, stmt: Stmt | int) -> Kind | None:
        if kind is Kind.BOOL:
            self.log.add("lang-type", f"{what} is for numbers, not for bools", stmt)
            return None
        return kind

    def _same(
        self, parts: tuple[Expr, ...], what: str, visible: Visible, stmt: Stmt | int
    ) -> Kind | None:
        first, second = (self.kind(part, visible, stmt) for part in parts)
        if first is None or second is None:
            return first or second
        if first is second:
            return first
        texts = [show_expr(part) for part in parts]
        wrong = 0 if second is Kind.FLOAT else 1
        self.log.add(
            "lang-type",
            f"{what} differ: {texts[0]} is {_a(first)}, {texts[1]} is {_a(second)}",
            stmt,
            hint=_convert(parts[wrong], Kind.FLOAT, Kind.INT),
        )
        return None

    def _call(
        self, fn: ScalarFn, args: tuple[Expr, ...], visible: Visible, stmt: Stmt | int
    ) -> Kind | None:
        match fn:
            case ScalarFn.FLOAT | ScalarFn.INT:
                kind = self._number(self.kind(args[0], visible, stmt), f"{fn.value}()", stmt)
                target = Kind.FLOAT if fn is ScalarFn.FLOAT else Kind.INT
                return None if kind is None else target
            case ScalarFn.MIN | ScalarFn.MAX:
                kind = self._same(args, f"the arguments of {fn.value}()", visible, stmt)
                return self._number(kind, f"{fn.value}()", stmt)
            case _:
                for arg in args:
                    self.expect(arg, Kind.INT, visible, stmt, f"an argument of {fn.value}()")
                return Kind.INT

    def _host_only(self, expr: Expr, tensor: str, stmt: Stmt | int) -> Kind | None:
        if self.in_kernel:
            self.log.add(
                "lang-host", f"{show_expr(expr)} is known on the host only", stmt,
                hint="compute it on the host and pass it as a parameter through launch()",
            )  # fmt: skip
        elif tensor and tensor not in self.tensors:
            hint = mean(tensor, list(self.tensors))
            self.log.add("lang-unknown-name", f"no tensor is called {tensor!r}", stmt, hint=hint)
        return Kind.INT

    def _kernel_only(self, expr: Expr, stmt: Stmt | int) -> Kind | None:
        if not self.in_kernel:
            message = f"{show_expr(expr)} has no meaning on the host"
            self.log.add("lang-host", message, stmt, hint="use it in the kernel")
        return Kind.INT

    def _value(self, source: View, visible: Visible, stmt: Stmt | int) -> Kind | None:
        if not self.in_kernel:
            self.log.add("lang-host", "value() has no meaning on the host", stmt)
            return None
        if isinstance(stmt, int) or not self.view(source, visible, stmt):
            return None
        dtype = self.buffers[source.buffer]
        if dtype not in _VALUE_KINDS:
            self.log.add(
                "lang-op-dtype", f"value() cannot read {dtype.value}", stmt,
                legal=", ".join(item.value for item in _VALUE_KINDS),
            )  # fmt: skip
            return None
        return _VALUE_KINDS[dtype]


def _a(kind: Kind) -> str:
    return "an int" if kind is Kind.INT else f"a {kind.value}"


def _kind_of(value: float) -> Kind:
    if isinstance(value, bool):
        return Kind.BOOL
    return Kind.INT if isinstance(value, int) else Kind.FLOAT


def _convert(expr: Expr, want: Kind, found: Kind) -> str:
    """How to write `expr` so that it has the wanted kind; "" when no conversion does it."""
    if want is Kind.BOOL:
        return f"{show_expr(expr)} != 0" if found is Kind.INT else ""
    if found is Kind.BOOL:
        return f"{'1.0 if c else 0.0' if want is Kind.FLOAT else '1 if c else 0'}"
    if isinstance(expr, Const) and want is Kind.FLOAT:
        return f"write {show_expr(Const(float(expr.value)))}"
    return f"{want.value}({show_expr(expr)})"


# ------------------------------------------------------------------------------------- functions


def check_kinds(program: Program, file: str) -> Log:
    """Names and types of the kernels; see launches.py for the host function."""
    log = Log(file, program.kernels[0].name)
    for kernel in program.kernels:
        own = Log(file, kernel.name)
        _kernel_typist(program, kernel, own).block(kernel.body, {})
        log.errors += own.errors
    return log


def host_typist(program: Program, log: Log) -> Typist:
    """For the host function, which knows the sizes of inputs and outputs."""
    own = {item.name: item.dtype for item in program.tensors if item.name in program.host.tensors}
    return Typist(log, False, _const_kinds(program), {}, own, {})


def _const_kinds(program: Program) -> dict[str, Kind]:
    return {name: _kind_of(value) for name, value in program.consts}


def _kernel_typist(program: Program, kernel: Kernel, log: Log) -> Typist:
    params = {item.name: Kind.FLOAT if item.is_float else Kind.INT for item in kernel.scalars}
    tensors = {item.name: item.dtype for item in kernel.tensors}
    buffers = {item.name: item.dtype for item in kernel.buffers}
    return Typist(log, True, _const_kinds(program), params, tensors, buffers)
