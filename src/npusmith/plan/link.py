"""Kernels of the parts of a graph -> one program: names made one, values between them in scratch.

Every part was written for itself: its host function computes sizes from the shapes of its own
inputs. What an earlier part stores is a scratch tensor here, and its sizes are those that the
earlier part gave its output.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from npusmith.ir import nodes as ir
from npusmith.ir.launches import BLOCK_VECTOR_CORES
from npusmith.ir.nodes import (
    Assign,
    Buffer,
    Const,
    Dim,
    Expr,
    Host,
    Kernel,
    Launch,
    Load,
    Loop,
    Name,
    Program,
    Size,
    Tensor,
    TensorRole,
)
from npusmith.ir.rebuild import map_children, map_statements, renamed, with_names
from npusmith.ir.spec import OpSpec, Port, Source
from npusmith.ir.walk import statements
from npusmith.plan.estimate import origin
from npusmith.plan.host import in_order
from npusmith.plan.names import tensor_name
from npusmith.plan.partition import Part
from npusmith.plan.provable_conditions import always
from npusmith.plan.scalars import ONE, ZERO, largest, plus, product, settled, shares, times
from npusmith.plan.structures import Plan, Steps
from npusmith.plan.subgraphs import crossing_name
from npusmith.plan.versions import ROLES
from npusmith.task.graph import Graph, GraphInput

_CORES = "cores"
_BLOCKS = "core_blocks"  # a cube core and its vector cores


def link(parts: Sequence[Part], graph: Graph, name: str) -> Plan:
    """One operator whose kernels are those of the parts, in their order."""
    linker = _Linker(graph, name)
    for part in parts:
        if part.plan.steps is not None:
            linker.add_steps(part.graph, part.plan.steps)
        else:
            linker.add(part)
    own = tuple((part.graph, part.plan) for part in parts)
    return replace(linker.plan(), parts=own)


def link_steps(graph: Graph, steps: Steps, name: str) -> Plan:
    """One operator for a graph of one scan."""
    linker = _Linker(graph, name)
    linker.add_steps(graph, steps)
    return replace(linker.plan(), steps=steps)


@dataclass(frozen=True, slots=True)
class _Slice:
    """Where a part of a tensor begins, the tensor's length, and the dimensions of the part."""

    tensor: str
    start: Expr
    whole: Expr
    dims: tuple[Expr, ...]
    is_scratch: bool

    @property
    def part(self) -> ir.Part:
        return ir.Part(self.tensor, self.start, product(self.dims))


_Store = Callable[[tuple[Expr, ...], Port], _Slice]


def _known(item: _Slice, dims: tuple[Expr, ...], port: Port) -> _Slice:
    return item


@dataclass(frozen=True, slots=True)
class _Slices:
    """Parts that a graph of a scan reads, and how those are made that it stores."""

    loop: Loop | None
    read: Mapping[str, _Slice]
    stored: Mapping[str, _Store]  # given the dimensions


@dataclass(slots=True)
class _Linker:
    graph: Graph
    name: str
    taken: set[str] = field(default_factory=set)
    inputs: dict[str, Port] = field(default_factory=dict)  # by the graph's name
    outputs: dict[int, Port] = field(default_factory=dict)  # by position
    crossing: dict[str, tuple[str, tuple[Expr, ...]]] = field(default_factory=dict)
    host: dict[str, Expr] = field(default_factory=dict)
    consts: dict[str, int | float] = field(default_factory=dict)
    cores: list[str] = field(default_factory=list)  # of parts
    in_blocks: list[bool] = field(default_factory=list)  # whether these are blocks of cores
    launches: list[Launch] = field(default_factory=list)  # on how many cores is seen at the end
    docs: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    legal: list[Expr] = field(default_factory=list)

    def __post_init__(self) -> None:
        several = len(self.graph.outputs) > 1
        for i, _ in enumerate(self.graph.outputs):
            tensor_name(f"y{i}" if several else "y", self.taken)

    def add(self, part: Part, slices: _Slices | None = None) -> None:
        """The kernel of a part; `slices`: what it reads and stores of the tensors of a loop."""
        kernel_name = f"{self.name}_{len(self.kernels) + 1}"
        spec, program = part.plan.spec, part.plan.program
        called: dict[str, str] = {}  # the part's names of tensors, here
        shapes: dict[str, tuple[Expr, ...]] = {}  # dimensions of what an earlier part stores
        bound: dict[str, _Slice] = {}  # by the kernel's name for them
        for port in spec.inputs:
            item = origin(part.graph, port)
            if slices is not None and item.name in slices.read:
                called[port.name] = tensor_name(port.name, self.taken)
                bound[called[port.name]] = slices.read[item.name]
                shapes[port.name] = slices.read[item.name].dims
                continue
            called[port.name] = self._input(item, port)
            if earlier := self._earlier(item):
                shapes[port.name] = self.crossing[earlier][1]
        inner = _Shapes(called, shapes)
        added = self._outputs(part, called, inner, slices, bound)
        for own in [t.name for t in program.tensors if t.role is TensorRole.SCRATCH]:
            called[own] = tensor_name(f"{own}_of_{kernel_name}", self.taken)
        constants = {key: self._constant(key, value) for key, value in program.consts}
        variables = self._variables(program.host, inner, constants)

        def moved(expr: Expr) -> Expr:
            return renamed(inner.rewrite(expr), {**constants, **variables})

        loop = None if slices is None else slices.loop
        number, within = len(self.kernels) + 1, "in each step, " if loop is not None else ""
        kernels = {kernel.name: kernel for kernel in program.kernels}
        for launch in program.host.launches:  # more than one run side by side
            kernel = _without_counted(kernels[launch.kernel])
            name = f"{self.name}_{len(self.kernels) + 1}"
            takes = {called[item.name] for item in kernel.tensors}
            args = [(called.get(key, key), moved(value)) for key, value in launch.args]
            lengths = dict(self._lengths(kernel, called))
            lengths |= {key: length for key, length in added if key in takes}
            lengths |= {
                item.tensor: item.whole
                for key, item in bound.items()
                if item.is_scratch and key in takes
            }
            parts = tuple((key, item.part) for key, item in bound.items() if key in takes)
            given = (*args, *lengths.items())
            new = Launch(name, ONE, given, parts=parts, loop=loop, beside=launch.beside)
            self.launches.append(new)
            self.kernels.append(self._kernel(kernel, name, called, constants, added))
        several = f" and {len(self.kernels)}" if len(self.kernels) > number else ""
        self.docs.append(f"{number}{several}. {within}{program.doc}")
        self.notes += [f"kernel {number}{several}: {note}" for note in part.plan.notes]
        self.in_blocks.append(program.is_mixed or program.kernels[0].is_cube)
        self.legal += [inner.rewrite(expr) for expr in spec.legal or ()]

    # -------------------------------------------------------------------------------- tensors

    def _earlier(self, item: GraphInput) -> str:
        """What a part before stores; "" for an input, of a graph that is itself a part too."""
        name = crossing_name(item)
        return name if name in self.crossing else ""

    def _input(self, item: GraphInput, port: Port) -> str:
        if earlier := self._earlier(item):
            return self.crossing[earlier][0]
        if item.name not in self.inputs:
            self.inputs[item.name] = replace(port, name=tensor_name(item.name, self.taken))
        return self.inputs[item.name].name

    def _outputs(
        self,
        part: Part,
        called: dict[str, str],
        inner: _Shapes,
        slices: _Slices | None,
        bound: dict[str, _Slice],
    ) -> tuple[tuple[str, Expr], ...]:
        """Names for what a part stores; returns scratch tensors with their lengths."""
        made: list[tuple[str, Expr]] = []
        for name, port in zip(part.graph.outputs, part.plan.spec.outputs, strict=True):
            dims = tuple(settled(inner.rewrite(dim)) for dim in port.dims)
            if slices is not None and name in slices.stored:
                called[port.name] = tensor_name(name, self.taken)
                bound[called[port.name]] = slices.stored[name](dims, port)
                continue
            called[port.name], is_scratch = self._target(name, replace(port, dims=dims))
            if is_scratch:
                made.append((called[port.name], product(dims)))
        return tuple(made)

    def _target(self, name: str, port: Port) -> tuple[str, bool]:
        """The tensor for a value that is stored, and whether it is scratch: no output is left."""
        waiting = (i for i, output in enumerate(self.graph.outputs) if output == name)
        at = next((i for i in waiting if i not in self.outputs), None)
        if at is not None:
            called = f"y{at}" if len(self.graph.outputs) > 1 else "y"
            self.outputs[at] = replace(port, name=called)
            return called, False
        called = tensor_name(name, self.taken)
        self.crossing[name] = (called, port.dims)
        return called, True

    # ------------------------------------------------------------------------------------ scans

    def add_steps(self, graph: Graph, steps: Steps) -> None:
        """The kernels of a scan: copies of the first states, a loop, copies of the last ones."""
        scan = steps.scan
        rows = [self._operand(graph, name) for name in scan.rows]
        count = rows[0][1][0]
        var = tensor_name("time", self.taken | set(self.host))
        self.taken.add(var)
        loop, at = Loop(var, ZERO, count), Name(var)
        firsts: list[_Slice] = []
        for name, (own, plan) in zip(scan.news, steps.before, strict=True):
            made = partial(self._state, tensor_name(name, self.taken), count, firsts)
            self.add(Part(own, plan), _Slices(None, {}, {own.outputs[0]: made}))
        read = {
            name: _Slice(tensor, times(at, product(dims[1:])), product(dims), dims[1:], is_scratch)
            for name, (tensor, dims, is_scratch) in zip(scan.slices, rows, strict=True)
        }
        stored: dict[str, _Store] = {}
        for old, new, item in zip(scan.olds, scan.news, firsts, strict=True):
            size = product(item.dims)
            read[old] = replace(item, start=times(at, size))
            stored[new] = partial(_known, replace(item, start=times(plus(at, ONE), size)))
        outer = {
            result: (name, graph.spec(name).shape)
            for result, name in zip(scan.results, graph.outputs, strict=True)
        }
        for result in outer.keys() & set(scan.step.outputs):
            stored[result] = partial(self._row, *outer[result], count, at)
        for own, plan in steps.step:
            self.add(Part(own, plan), _Slices(loop, read, stored))
        for (last, which), (own, plan) in zip(scan.lasts, steps.after, strict=True):
            item = firsts[which]
            end = replace(item, start=times(count, product(item.dims)))
            made = partial(self._whole, outer[own.outputs[0]][0])
            self.add(Part(own, plan), _Slices(None, {last: end}, {own.outputs[0]: made}))

    def _state(
        self, tensor: str, count: Expr, made: list[_Slice], dims: tuple[Expr, ...], port: Port
    ) -> _Slice:
        """The state before the first step: as many more stand behind it as there are steps."""
        length = product((plus(count, ONE), *dims))
        made.append(_Slice(tensor, ZERO, length, dims, is_scratch=True))
        return made[-1]

    def _row(
        self, name: str, shape: tuple[int, ...], count: Expr, at: Expr, dims: tuple[Expr, ...],
        port: Port,
    ) -> _Slice:  # fmt: skip
        """What a step gives, in a tensor for all steps."""
        every = (count, *dims)
        tensor, is_scratch = self._target(name, replace(port, dims=every, shape=shape))
        return _Slice(tensor, times(at, product(dims)), product(every), dims, is_scratch)

    def _whole(self, name: str, dims: tuple[Expr, ...], port: Port) -> _Slice:
        tensor, is_scratch = self._target(name, replace(port, dims=dims))
        return _Slice(tensor, ZERO, product(dims), dims, is_scratch)

    def _operand(self, graph: Graph, name: str) -> tuple[str, tuple[Expr, ...], bool]:
        """A tensor that a scan reads row by row, its dimensions, and whether it is scratch."""
        item = next(item for item in graph.inputs if item.name == name)
        if earlier := self._earlier(item):
            return (*self.crossing[earlier], True)
        port = Port(
            name=name, dtype=item.dtype, shape=item.shape, source=Source(item.kind),
            position=item.position, target=item.target,
        )  # fmt: skip
        called = self._input(item, port)
        return called, tuple(Dim(called, i) for i, _ in enumerate(item.shape)), False

    def _crossing_names(self) -> set[str]:
        """Scratch tensors that earlier parts store."""
        return {name for name, _ in self.crossing.values()}

    def _lengths(self, kernel: Kernel, called: Mapping[str, str]) -> list[tuple[str, Expr]]:
        """Lengths of the scratch tensors that the part reads."""
        known = dict(self.crossing.values())
        read = [called[item.name] for item in kernel.tensors if item.role is TensorRole.INPUT]
        return [(name, product(known[name])) for name in read if name in known]

    # ------------------------------------------------------------------------------------ names

    def _constant(self, name: str, value: float) -> str:
        for candidate in _candidates(name):
            if self.consts.setdefault(candidate, value) == value:
                return candidate
        raise AssertionError

    def _variables(
        self, host: Host, inner: _Shapes, constants: Mapping[str, str]
    ) -> dict[str, str]:
        """The part's host variables here: those that are equal are shared."""
        found: dict[str, str] = {}
        for stmt in host.body:
            if not isinstance(stmt, Assign):
                continue
            if stmt.target == _CORES:
                found[_CORES] = _CORES
                own = f"{_CORES}_{len(self.kernels) + 1}"
                self.host[own] = renamed(inner.rewrite(stmt.value), {**constants, **found})
                self.cores.append(own)
                continue
            value = renamed(inner.rewrite(stmt.value), {**constants, **found})
            for candidate in _candidates(stmt.target):
                if candidate in self.consts or candidate in self.taken:
                    continue
                if self.host.setdefault(candidate, value) == value:
                    found[stmt.target] = candidate
                    break
        return found

    def _kernel(
        self,
        kernel: Kernel,
        name: str,
        called: Mapping[str, str],
        constants: Mapping[str, str],
        added: Sequence[tuple[str, Expr]],
    ) -> Kernel:
        scratch = {item for item, _ in added} | self._crossing_names()
        tensors = [_tensor(item, called, scratch) for item in kernel.tensors]
        tensors.sort(key=lambda item: ROLES.index(item.role))
        new = {**called, **constants}
        body = map_statements(kernel.body, lambda stmt: with_names(stmt, new))
        buffers = tuple(_resized(item, constants) for item in kernel.buffers)
        return replace(kernel, name=name, tensors=tuple(tensors), body=body, buffers=buffers)

    # ------------------------------------------------------------------------------------- result

    def plan(self) -> Plan:
        values = dict(self.host)
        cubes = {kernel.name for kernel in self.kernels if kernel.is_cube}
        mixed = 0 < len(cubes) < len(self.kernels)
        most: Expr = Const(1)
        for number, (item, in_blocks) in enumerate(zip(self.cores, self.in_blocks, strict=True), 1):
            blocks: Expr = Name(item)
            if mixed and not in_blocks:  # a block has two vector cores
                blocks = shares(blocks, Const(BLOCK_VECTOR_CORES))
            if number == 1:
                most = blocks
                continue
            values[f"{_CORES}_to_{number}"] = largest(most, blocks)
            most = Name(f"{_CORES}_to_{number}")
        if mixed:
            values[_BLOCKS] = most
            most = product((Name(_BLOCKS), Const(BLOCK_VECTOR_CORES)))
        values[_CORES] = most
        count = Name(_BLOCKS if mixed else _CORES)
        launches = tuple(replace(item, cores=count) for item in self.launches)
        outputs = tuple(self.outputs[i] for i in range(len(self.graph.outputs)))
        order = {item.name: i for i, item in enumerate(self.graph.inputs)}
        inputs = tuple(self.inputs[key] for key in sorted(self.inputs, key=order.__getitem__))
        shared = tuple(port.name for port in (*inputs, *outputs))
        host = Host("host", shared, in_order(values), launches)
        paired = ", pairs of them side by side" if any(item.beside for item in launches) else ""
        head = f"{self.name}: {len(self.kernels)} kernels, one after another{paired}"
        doc = "\n".join([head, *self.docs])
        kernels = self._with_all(inputs)
        program = Program(tuple(self.consts.items()), host, kernels, doc)
        legal = tuple(dict.fromkeys(expr for expr in self.legal if not always(expr)))
        spec = OpSpec(self.name, inputs, outputs, legal=legal)
        passed = ", ".join(name for name, _ in self.crossing.values())
        first = f"{len(self.kernels)} kernels; through global memory: {passed or 'nothing'}"
        return Plan(program, spec, (first, *self.notes))

    def _with_all(self, inputs: Sequence[Port]) -> tuple[Kernel, ...]:
        """The kernels, of which the first takes what only the host function knows."""
        taken = {item.name for kernel in self.kernels for item in kernel.tensors}
        taken |= {part.tensor for launch in self.launches for _, part in launch.parts}
        lost = [port for port in inputs if port.name not in taken]
        first, *others = self.kernels
        added = (Tensor(port.name, port.dtype, TensorRole.INPUT) for port in lost)
        return (replace(first, tensors=(*added, *first.tensors)), *others)


@dataclass(frozen=True, slots=True)
class _Shapes:
    """Sizes in a part's host function as sizes in the whole's."""

    called: Mapping[str, str]
    dims: Mapping[str, tuple[Expr, ...]]

    def rewrite(self, expr: Expr) -> Expr:
        match expr:
            case Dim(tensor, index) if tensor in self.dims:
                return self.dims[tensor][index]
            case Dim(tensor, index):
                return Dim(self.called.get(tensor, tensor), index)
            case Size(tensor) if tensor in self.dims:
                return product(self.dims[tensor])
            case Size(tensor):
                return Size(self.called.get(tensor, tensor))
            case _:
                return map_children(expr, self.rewrite)


def _candidates(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in itertools.count(2))


def _without_counted(kernel: Kernel) -> Kernel:
    """The kernel without inputs that it takes the sizes of alone."""
    loaded = {stmt.src.tensor for stmt in statements(kernel.body) if isinstance(stmt, Load)}
    kept = [t for t in kernel.tensors if t.role is not TensorRole.INPUT or t.name in loaded]
    return replace(kernel, tensors=tuple(kept))


def _tensor(item: Tensor, called: Mapping[str, str], scratch: set[str]) -> Tensor:
    name = called[item.name]
    return Tensor(name, item.dtype, TensorRole.SCRATCH if name in scratch else item.role)


def _resized(item: Buffer, constants: Mapping[str, str]) -> Buffer:
    cols = None if item.cols is None else renamed(item.cols, constants)
    return replace(item, length=renamed(item.length, constants), cols=cols)
