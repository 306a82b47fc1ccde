"""The tiling struct: the one record that host and kernel share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from npusmith.ir.launches import bound_numbers
from npusmith.ir.nodes import Const, Expr, Name, Program, TensorRole
from npusmith.ir.spec import OpSpec
from npusmith.ir.text import show_expr
from npusmith.lower.names import Scope, camel
from npusmith.lower.render import render


@dataclass(frozen=True, slots=True)
class Field:
    """One member: `key` is `<kernel>:<parameter>`, `<tensor>:size`, `<scratch>:offset`, or the text
    of a number that loops and parts of tensors need.

    `count`: of a kernel that is launched several times, a value for each launch; else 0.
    """

    key: str
    type: str
    name: str
    about: str
    count: int = 0

    @property
    def declared(self) -> str:
        """As the struct has it."""
        return f"{self.type} {self.name}{f'[{self.count}]' if self.count else ''}"


@dataclass(frozen=True, slots=True)
class Tiling:
    """The struct of one operator. 8-byte fields come first, so that there are no gaps."""

    struct: str
    header: str  # file name
    fields: tuple[Field, ...]

    def field(self, key: str) -> str:
        return next(item.name for item in self.fields if item.key == key)

    def scalar(self, kernel: str, name: str, launch: int | str) -> str:
        """The member that holds a parameter of a kernel, for one of its launches."""
        key = f"{kernel}:{name}"
        several = next(item.count for item in self.fields if item.key == key)
        return f"{self.field(key)}[{launch}]" if several else self.field(key)

    def number(self, expr: Expr) -> str:
        """One that loops or parts of tensors need, behind what stands before a member."""
        return (
            str(expr.value)
            if isinstance(expr, Const)
            else f"{{tiling}}.{self.field(show_expr(expr))}"
        )

    @property
    def padding(self) -> bool:
        """Does a float need a partner to fill 8 bytes?"""
        return sum(item.count or 1 for item in self.fields if item.type == "float") % 2 == 1


def plan_tiling(program: Program, spec: OpSpec) -> Tiling:
    """Fields for the kernel's parameters and for the size of every tensor."""
    scope = Scope()
    fields = []
    named = Counter(item.name for kernel in program.kernels for item in kernel.scalars)
    launches = Counter(item.kernel for item in program.host.launches)
    for kernel in program.kernels:
        count = launches[kernel.name] if launches[kernel.name] > 1 else 0
        for item in kernel.scalars:
            key = f"{kernel.name}:{item.name}"
            name = item.name if named[item.name] == 1 else f"{kernel.name}_{item.name}"
            type_ = "float" if item.is_float else "int64_t"
            fields.append(Field(key, type_, scope.add(key, camel(name)), "", count))
    for tensor in program.tensors:
        key = f"{tensor.name}:size"
        about = f"elements of {tensor.name}"
        fields.append(Field(key, "int64_t", scope.add(key, f"{camel(tensor.name)}Size"), about))
    for tensor in program.tensors:
        if tensor.role is TensorRole.SCRATCH:
            key = f"{tensor.name}:offset"
            about = f"bytes from the start of the workspace to {tensor.name}"
            name = scope.add(key, f"{camel(tensor.name)}Offset")
            fields.append(Field(key, "int64_t", name, about))
    for name, expr in bound_numbers(program):
        key = show_expr(expr)
        text = scope.add(key, camel(key if isinstance(expr, Name) else name))
        fields.append(Field(key, "int64_t", text, "" if isinstance(expr, Name) else key))
    fields.sort(key=lambda item: item.type == "float")
    return Tiling(f"{spec.op_type}TilingData", f"{spec.name}_tiling.h", tuple(fields))


def tiling_file(spec: OpSpec, tiling: Tiling) -> str:
    """The text of op_kernel/<op>_tiling.h."""
    return render("tiling.h.j2", op=spec, tiling=tiling)
