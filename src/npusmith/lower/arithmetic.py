"""The host function's arithmetic as C++, for whichever file needs it.

A Site says how the surrounding code reaches shapes and the tiling struct, and how it gives up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from npusmith.errors import LowerError, Place
from npusmith.ir.conditions import divisors
from npusmith.ir.launches import bound_numbers, each_kernel
from npusmith.ir.nodes import (
    Assign,
    Binary,
    ChipFact,
    Const,
    Dim,
    Expr,
    Kernel,
    Launch,
    Name,
    Note,
    Program,
    Size,
    Stmt,
    TensorRole,
)
from npusmith.ir.spec import OpSpec, Port, dims_of
from npusmith.ir.text import show_expr
from npusmith.ir.walk import names, operands
from npusmith.lower.cpp import Dialect, real, show, show_as
from npusmith.lower.facts import Fact, host_facts, prove
from npusmith.lower.flow import variables
from npusmith.lower.kinds import Kind, host_kinds, infer
from npusmith.lower.lines import STEP, code, comment
from npusmith.lower.names import Scope, camel, safe
from npusmith.lower.tiling import Tiling
from npusmith.lower.usage import waits
from npusmith.target.chips import Chip

INFINITY = "std::numeric_limits<float>::infinity()"
_HELPERS = ("FloorDiv", "FloorMod", "CeilDiv", "AlignUp", "FloatMin", "FloatMax")
_NEEDED_BY = {"AlignUp": ("CeilDiv",), "FloorMod": ("FloorDiv",)}
_CHIP_FACTS = {"vector_cores": "vectorCores", "cube_cores": "cubeCores", "ub_bytes": "ubBytes"}
_SCRATCH_ALIGN = 512  # bytes: full-speed accesses of global memory start there (doc: data move)


@dataclass(frozen=True, slots=True)
class Site:
    """One kind of host code."""

    tensor: str  # what holds a tensor's shape, e.g. "{}Shape"
    dim: Callable[[str, int], str]
    size: Callable[[str], str]
    rank: Callable[[str], str]
    tiling: str  # what stands before a member of the tiling struct
    give_up: Callable[[str], list[str]]  # when this condition holds


@dataclass(frozen=True, slots=True)
class HostText:
    """Pieces of host code, indented by one step."""

    constants: list[str]
    helpers: list[str]
    body: list[str]
    fill: list[str]  # assignments to the members of the tiling struct
    cores: str
    scratch: list[str]  # assignments for workspace tensors; they add to userBytes
    most_cores: str  # what holds how many cores, or blocks, the chip has
    reads_cores: bool
    reads_cubes: bool
    reads_ub: bool
    reserved_bytes: int
    syncs: bool
    tensors: dict[str, str]  # tensors whose shape is read, and what holds it


def write_host(program: Program, tiling: Tiling, chip: Chip, site: Site) -> HostText:
    """The host function of a program, for one site."""
    writer = _Writer(program, tiling, site)
    body = [line for stmt in program.host.body for line in writer.statement(stmt)]
    launches = program.host.launches
    syncs = waits(program)
    values = [value for launch in launches for _, value in launch.args]
    values += [expr for _, expr in bound_numbers(program)]
    fill = writer.fill()
    scratch = writer.scratch({name: value for launch in launches for name, value in launch.args})
    guards = writer.guards((launches[0].cores, *values))
    cores = show_as(launches[0].cores, Kind.INT, writer.dialect)
    text = "\n".join([*body, *fill, *scratch, cores])
    cube = any(kernel.is_cube for kernel in program.kernels)
    most = _CHIP_FACTS["cube_cores" if cube else "vector_cores"]
    return HostText(
        constants=writer.constants(),
        helpers=helpers_of(text),
        body=[*body, *guards],
        fill=fill,
        cores=cores,
        scratch=scratch,
        most_cores=most,
        reads_cores="vectorCores" in text or (syncs and most == "vectorCores"),
        reads_cubes="cubeCores" in text or (syncs and most == "cubeCores"),
        reads_ub="ubBytes" in text,
        reserved_bytes=chip.ub_reserved_bytes,
        syncs=syncs,
        tensors={
            tensor.name: writer.scope[tensor.name]
            for tensor in program.tensors
            if tensor.role is not TensorRole.SCRATCH
        },
    )


def helpers_of(text: str) -> list[str]:
    """The int functions that `text` calls, with those that they call."""
    used = {name for name in _HELPERS if f"{name}(" in text}
    used |= {more for name in used for more in _NEEDED_BY.get(name, ())}
    return [name for name in _HELPERS if name in used]


class _Writer:
    def __init__(self, program: Program, tiling: Tiling, site: Site) -> None:
        self.program, self.tiling, self.site = program, tiling, site
        self.kinds, self.facts = host_kinds(program), host_facts(program)
        self.scope = Scope()
        for tensor in program.tensors:
            self.scope.add(tensor.name, site.tensor.format(camel(tensor.name)))
        for name, _ in program.consts:
            self.scope.add(name)
        for name in sorted(variables(program.host.body)):
            self.scope.add(name)
        self.declared: set[str] = set()
        self.dialect = host_dialect(self._leaf, self._kind, self._fact)

    def _kind(self, expr: Expr) -> Kind:
        return infer(expr, self.kinds, frozenset())

    def _fact(self, expr: Expr) -> Fact:
        return prove(expr, self.facts)

    def _leaf(self, expr: Expr) -> str:
        match expr:
            case Name(name):
                return self.scope[name]
            case ChipFact(name):
                return _CHIP_FACTS[name]
            case _:
                return shape_leaf(expr, self.site, lambda name: self.scope[name])

    def statement(self, stmt: Stmt) -> list[str]:
        if isinstance(stmt, Note):
            return comment(stmt.text, 1)
        if not isinstance(stmt, Assign):
            raise LowerError(
                "lower-host",
                f"{type(stmt).__name__} has no place in a host function",
                Place(line=getattr(stmt, "line", 0)),
            )
        kind = self.kinds[stmt.target]
        text = f"{self.scope[stmt.target]} = {show_as(stmt.value, kind, self.dialect)};"
        if stmt.target not in self.declared:
            self.declared.add(stmt.target)
            text = f"{'const ' if self._once(stmt.target) else ''}{kind.value} {text}"
        return [*self.guards((stmt.value,)), *code(text, 1)]

    def _once(self, name: str) -> bool:
        body = self.program.host.body
        return sum(isinstance(stmt, Assign) and stmt.target == name for stmt in body) == 1

    def guards(self, exprs: tuple[Expr, ...]) -> list[str]:
        """The tile language refuses a division by zero; C++ would take the process down."""
        seen = dict.fromkeys(
            show(Binary(op, divisor, Const(bound)), self.dialect)
            for expr in exprs
            for divisor, op, bound in divisors(expr)
            if self._fact(divisor).low != 1 and not isinstance(divisor, Const)
        )
        return [STEP + line for text in seen for line in self.site.give_up(text)]

    def fill(self) -> list[str]:
        lines: list[str] = []
        for part in each_kernel(self.program):
            for number, launch in enumerate(part.host.launches):
                lines += self._scalars(part.kernel, launch, number)
        for tensor in self.program.tensors:
            if tensor.role is not TensorRole.SCRATCH:
                lines += self._member(
                    f"{tensor.name}:size", self.site.size(self.scope[tensor.name])
                )
        for _, expr in bound_numbers(self.program):
            lines += self._member(show_expr(expr), show_as(expr, Kind.INT, self.dialect))
        if self.tiling.padding:
            lines += code(f"{self.site.tiling}padding = 0.0f;", 1)
        return lines

    def _scalars(self, kernel: Kernel, launch: Launch, number: int) -> list[str]:
        """The parameters of one launch of a kernel."""
        lines: list[str] = []
        given = dict(launch.args)
        for scalar in kernel.scalars:
            if scalar.name not in given:
                raise LowerError("lower-name", f"launch gives no value for {scalar.name!r}")
            kind = Kind.FLOAT if scalar.is_float else Kind.INT
            value = show_as(given[scalar.name], kind, self.dialect)
            lines += self._set(self.tiling.scalar(kernel.name, scalar.name, number), value)
        return lines

    def scratch(self, given: dict[str, Expr]) -> list[str]:
        lines: list[str] = []
        for tensor in self.program.tensors:
            if tensor.role is TensorRole.SCRATCH:
                size = self.site.tiling + self.tiling.field(f"{tensor.name}:size")
                lines += self._member(
                    f"{tensor.name}:size", show_as(given[tensor.name], Kind.INT, self.dialect)
                )
                lines += self._member(f"{tensor.name}:offset", "userBytes")
                add = f"({size} * {tensor.dtype.bytes} + {_SCRATCH_ALIGN - 1})"
                whole = f"{add} / {_SCRATCH_ALIGN} * {_SCRATCH_ALIGN}"
                lines += code(f"userBytes += {whole};", 1)
        return lines

    def _member(self, key: str, value: str) -> list[str]:
        return self._set(self.tiling.field(key), value)

    def _set(self, member: str, value: str) -> list[str]:
        return code(f"{self.site.tiling}{member} = {value};", 1)

    def constants(self) -> list[str]:
        """Module constants that the host function reads."""
        host = self.program.host
        exprs = [host.launches[0].cores]
        exprs += [value for launch in host.launches for _, value in launch.args]
        exprs += [expr for _, expr in bound_numbers(self.program)]
        exprs += [expr for stmt in host.body for expr in operands(stmt)]
        read = {name for expr in exprs for name in names(expr)}
        return [
            f"constexpr int64_t {self.scope[name]} = {value};"
            if isinstance(value, int)
            else f"constexpr float {self.scope[name]} = {real(value, INFINITY)};"
            for name, value in self.program.consts
            if name in read
        ]


def host_dialect(
    leaf: Callable[[Expr], str], kind: Callable[[Expr], Kind], fact: Callable[[Expr], Fact]
) -> Dialect:
    """How host code spells what all host code spells alike."""
    return Dialect(leaf, kind, fact, "std::min<int64_t>", "std::max<int64_t>", INFINITY)


def shape_leaf(expr: Expr, site: Site, holder: Callable[[str], str]) -> str:
    """A Dim or Size."""
    match expr:
        case Dim(tensor, index):
            return site.dim(holder(tensor), index)
        case Size(tensor):
            return site.size(holder(tensor))
        case _:
            raise LowerError(
                "lower-host", f"{type(expr).__name__} is not known on the host", seen=str(expr)
            )


def show_dims(port: Port, spec: OpSpec, site: Site) -> list[str]:
    """The dimensions of an output over the shapes of the inputs."""
    dialect = shapes_dialect(spec, site)
    return [show(dim, dialect) for dim in dims_of(port)]


def shapes_dialect(spec: OpSpec, site: Site) -> Dialect:
    """For expressions over nothing but input shapes."""
    holders = {item.name: safe(site.tensor.format(camel(item.name))) for item in spec.inputs}
    return host_dialect(
        lambda expr: shape_leaf(expr, site, holders.__getitem__),
        lambda expr: infer(expr, {}, frozenset()),
        lambda expr: prove(expr, {}),
    )
