"""What the things of one tile program are called in its kernel's C++."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Call,
    Const,
    CoreId,
    Expr,
    For,
    Memory,
    Name,
    Program,
    Role,
    ScalarFn,
    Span,
    Split,
    Value,
    View,
)
from npusmith.ir.walk import statements
from npusmith.lower.cpp import Dialect, real, show, show_as, show_factor
from npusmith.lower.facts import Fact, kernel_facts, prove
from npusmith.lower.flow import assigned
from npusmith.lower.fold import fold
from npusmith.lower.kinds import Kind, float_buffers, infer, kernel_kinds
from npusmith.lower.names import Scope
from npusmith.lower.usage import is_shared
from npusmith.target.cube import split_path


class Spelling:
    """Identifiers and expression texts of one kernel.

    `paths`: how matrices in L0 are filled, of those with one way the same for all loads. `flags`:
    their ids in the operator.
    """

    def __init__(self, program: Program, flags: Mapping[str, int]) -> None:
        self.program, self.flags = program, flags
        self.kinds = kernel_kinds(program)
        self._facts = kernel_facts(program)
        self._floats = float_buffers(program)
        self._infinite = {name: float(value) for name, value in program.consts if isinf(value)}
        self._scope = Scope()
        buffers = {item.name: item for item in program.kernel.buffers}
        self.paths = {
            item.dst.buffer: split_path(into.memory, into.dtype, item.transposed)
            for item in statements(program.kernel.body)
            if isinstance(item, Split)
            for into in (buffers[item.dst.buffer],)
            if into.memory is not Memory.BIAS_TABLE
        }
        self._name_all()
        self.dialect = Dialect(
            self._leaf, self.kind, self.fact, "ScalarMin", "ScalarMax", "Infinity()"
        )

    def _name_all(self) -> None:
        kernel, scope = self.program.kernel, self._scope
        for name, _ in self.program.consts:
            scope.add(name)
        for tensor in kernel.tensors:
            scope.add(tensor.name)
            scope.add(f"{tensor.name}:gm", f"{scope[tensor.name]}Gm")
            if is_shared(self.program):
                scope.add(f"{tensor.name}:size", f"{scope[tensor.name]}Size")
        for scalar in kernel.scalars:
            scope.add(scalar.name)
        for name in sorted(assigned(kernel.body)):
            scope.add(name)
        for stmt in statements(kernel.body):
            if isinstance(stmt, For):
                scope.add(f"{stmt.var}:end", f"{scope[stmt.var]}End")
                scope.add(f"{stmt.var}:step", f"{scope[stmt.var]}Step")
        for buffer in kernel.buffers:
            kind = "Buf" if buffer.role is Role.VECCALC else "Queue"
            base = scope.add(buffer.name)
            scope.add(f"{buffer.name}:queue", f"{base}{kind}")
            scope.add(f"{buffer.name}:local", f"{base}Local")
            if buffer.role is Role.CO1:
                scope.add(f"{buffer.name}:height", f"{base}Height")

    # ------------------------------------------------------------------------------ identifiers

    def name(self, name: str) -> str:
        """A constant, tiling parameter, variable or tensor parameter."""
        return self._scope[name]

    def size(self, tensor: str) -> str:
        """The parameter with the elements of a tensor; see is_shared."""
        return self._scope[f"{tensor}:size"]

    def queue(self, buffer: str) -> str:
        """The TQue, TQueBind or TBuf member."""
        return self._scope[f"{buffer}:queue"]

    def local(self, buffer: str) -> str:
        """The LocalTensor."""
        return self._scope[f"{buffer}:local"]

    def height(self, buffer: str) -> str:
        """What holds the rows of the product in a matrix of L0C."""
        return self._scope[f"{buffer}:height"]

    def end(self, variable: str) -> str:
        """What holds the bound of the loop over `variable`."""
        return self._scope[f"{variable}:end"]

    def step(self, variable: str) -> str:
        """What holds its step."""
        return self._scope[f"{variable}:step"]

    def tensor(self, tensor: str) -> str:
        """The GlobalTensor member."""
        return self._scope[f"{tensor}:gm"]

    def type(self, buffer: str) -> str:
        """The element type of a buffer."""
        return self.program.kernel.buffer(buffer).dtype.cpp

    # ------------------------------------------------------------------------------ expressions

    def kind(self, expr: Expr) -> Kind:
        return infer(expr, self.kinds, self._floats)

    def fact(self, expr: Expr) -> Fact:
        return prove(expr, self._facts)

    def show(self, expr: Expr) -> str:
        return show(expr, self.dialect)

    def show_as(self, expr: Expr, kind: Kind) -> str:
        return show_as(expr, kind, self.dialect)

    def factor(self, expr: Expr) -> str:
        """`expr` ready to be multiplied."""
        return show_factor(fold(expr, self.kind), self.dialect)

    def view(self, view: View) -> str:
        return self._from(self.local(view.buffer), view.offset)

    def span(self, span: Span) -> str:
        return self._from(self.tensor(span.tensor), span.offset)

    def _from(self, name: str, offset: Expr) -> str:
        return name if offset == Const(0) else f"{name}[{self.show(offset)}]"

    def scalar(self, expr: Expr, dtype: DType) -> str:
        """`expr` as the element type that a vector instruction's scalar operand has to have."""
        if dtype is DType.FLOAT32:
            return show_as(expr, Kind.FLOAT, self.dialect)
        if dtype is DType.FLOAT16:
            return f"static_cast<half>({show_as(expr, Kind.FLOAT, self.dialect)})"
        if dtype is DType.BFLOAT16:
            return f"ToBfloat16({show_as(expr, Kind.FLOAT, self.dialect)})"
        return f"static_cast<{dtype.cpp}>({self.show(expr)})"

    def rounded(self, count: Expr, lanes: int) -> str:
        """`count` up to whole repeats of `lanes` elements."""
        if self.fact(count).step % lanes == 0:
            return self.show(count)
        return self.show(Call(ScalarFn.ALIGN_UP, (count, Const(lanes))))

    def blocks(self, count: Expr, unit: int) -> str:
        """How many units `count` takes."""
        return self.show(fold(Call(ScalarFn.CEIL_DIV, (count, Const(unit))), self.kind))

    def _leaf(self, expr: Expr) -> str:
        match expr:
            case Name(name) if name in self._infinite:
                # device code may not work out a global before it starts
                return real(self._infinite[name], self.dialect.infinity)
            case Name(name):
                return self.name(name)
            case Value(source):
                return self._value(source)
            case CoreId():
                return "GetBlockIdx()"
            case _:  # CoreCount: Dim, Size and ChipFact are for the host
                each = self.program.kernel.block_cores
                return "GetBlockNum()" if each == 1 else f"({each} * GetBlockNum())"

    def _value(self, source: View) -> str:
        text = f"{self.local(source.buffer)}.GetValue({self.show(source.offset)})"
        dtype = self.program.kernel.buffer(source.buffer).dtype
        if dtype is DType.FLOAT32:
            return text
        if dtype is DType.BFLOAT16:
            return f"ToFloat({text})"
        return f"static_cast<{'float' if dtype.is_float else 'int64_t'}>({text})"
