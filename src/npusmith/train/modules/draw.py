"""A random module from a seed and a number: Python source, and how to draw inputs of any shape.

`draw(seed, number)` looks at nothing else. It writes one line after another from the table of
ops.py and runs each on sample values as it comes: a line that PyTorch refuses, or
whose values leave the range in which an answer means something, is dropped and another is tried.

A variable is `exact` when nothing that led to it rounds: moves, casts, comparisons, minima, and all
that has integers. What jumps (a comparison, a sort, a cast to integers) takes exact operands only,
since two right answers may lie on two sides of the jump. Numbers in the text are sums of eighths.
"""

from __future__ import annotations

import math
import random
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import SimpleNamespace
from typing import Any, TypeAlias, TypeVar

import torch
import torch.nn.functional as F
from torch.utils import _pytree as pytree

from npusmith.task.casts import Casts
from npusmith.task.user import Inputs

Tensor = Any  # torch is untyped here
Shape = tuple[int, ...]
Real: TypeAlias = float  # State has methods of these names
Truth: TypeAlias = bool
Choice = TypeVar("Choice")

MOST_INPUTS = 4
MOST_ELEMENTS = 20_000  # of any tensor: the interpreter is slow
MOST_RANK = 6
TRIES = 60  # lines that are tried for one that is kept
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int32, torch.int64, torch.int16, torch.int8, torch.uint8)
LARGEST = {torch.float32: 1e4, torch.bfloat16: 1e4, torch.float16: 500.0}
SPECIAL = 0.05  # share of modules whose floats hold NaN and infinities
_OUTER = (1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 11, 13, 16)
_INNER = (1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 24, 31, 32, 33, 48, 61, 64, 67, 96, 97, 100)


class Rule(Enum):
    """Which operands a line takes, and what it makes of exact ones."""

    EXACT = "exact of exact operands"
    ROUNDS = "floats are rounded"
    SHARP = "takes exact operands only, and is exact"
    CUTS = "takes exact operands only, and rounds"


@dataclass(frozen=True, slots=True)
class Op:
    """A row of the table: `write` gives the right side of a line, with operands of the state."""

    family: str
    rule: Rule
    write: Callable[[State], str]
    results: int = 1


INDEX = "torch.randint(0, "  # how the draw of an index tensor begins; others name their type


@dataclass(frozen=True, slots=True)
class Input:
    """An argument of forward, or a parameter: `make` is its draw, with {shape} left open."""

    name: str
    shape: Shape
    make: str

    @property
    def is_index(self) -> bool:
        return self.make.startswith(INDEX)

    def text(self, shape: Shape) -> str:
        return self.make.format(shape=shape)

    def value(self, shape: Shape, seed: int) -> Tensor:
        """The same values for the same seed, whatever other inputs there are."""
        torch.manual_seed(zlib.crc32(f"{seed} {self.name}".encode()))
        made: Tensor = eval(self.text(shape), {"torch": torch})
        return made


@dataclass(frozen=True, slots=True)
class Line:
    """`targets = text`."""

    targets: tuple[str, ...]
    text: str
    family: str

    @property
    def reads(self) -> set[str]:
        return set(re.findall(r"(?:self\.)?\b[a-z]\d*\b", self.text))


@dataclass(frozen=True, slots=True)
class Module:
    """One module; its text is a task file."""

    seed: int
    number: int
    families: tuple[str, ...]  # that lines were drawn from
    inputs: tuple[Input, ...]
    parameters: tuple[Input, ...]
    lines: tuple[Line, ...]
    outputs: tuple[str, ...]
    exact: frozenset[str]  # variables

    @property
    def id(self) -> str:
        return f"{self.seed}:{self.number}"

    def source(self) -> str:
        """A file of its own, as `npusmith generate` takes it."""
        names = ", ".join(item.name for item in self.inputs)
        makes = "".join(
            f"        self.{item.name} = nn.Parameter({item.text(item.shape)})\n"
            for item in self.parameters
        )
        init = f"    def __init__(self):\n        super().__init__()\n{makes}\n" if makes else ""
        body = "".join(f"        {', '.join(line.targets)} = {line.text}\n" for line in self.lines)
        given = "".join(
            f"        {item.text(item.shape)},  # {item.name}: {_kind(item)}\n"
            for item in self.inputs
        )
        return (
            f"import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
            f"class Model(nn.Module):\n{init}    def forward(self, {names}):\n{body}"
            f"        return {', '.join(self.outputs)}\n\n\n"
            f"def get_inputs():\n    return [\n{given}    ]\n\n\n"
            f"def get_init_inputs():\n    return []\n"
        )

    def draw_inputs(self, shapes: Sequence[Shape] | None = None) -> Inputs:
        """Arguments of these shapes, or of its own.

        At other shapes an index is below every size: PyTorch does not refuse each that is not.
        """
        own = [item.shape for item in self.inputs]
        rows = zip(self.inputs, shapes or own, strict=True)
        values = [item.value(shape, self.number) for item, shape in rows]
        if shapes and list(shapes) != own:
            least = max(min((size for shape in shapes for size in shape), default=1), 1)
            pairs = zip(self.inputs, values, strict=True)
            values = [value % least if item.is_index else value for item, value in pairs]
        leaves, tree = pytree.tree_flatten(values)
        return Inputs(tuple(leaves), tree)

    def only(self, outputs: tuple[str, ...]) -> Module:
        """The module that returns these variables and computes nothing else."""
        wanted, kept = set(outputs), []
        for line in reversed(self.lines):
            if wanted & set(line.targets):
                wanted |= line.reads
                kept.append(line)
        inputs = tuple(item for item in self.inputs if item.name in wanted)
        parameters = tuple(item for item in self.parameters if f"self.{item.name}" in wanted)
        return replace(
            self,
            inputs=inputs,
            parameters=parameters,
            lines=tuple(reversed(kept)),
            outputs=outputs,
        )


def _kind(item: Input) -> str:
    made = item.value(item.shape, 0)
    return f"{str(made.dtype).removeprefix('torch.')}{list(item.shape)}"


class Refused(Exception):
    """No line comes of this draw: nothing fits, or its values say nothing."""


class State:
    """What is known while a module is drawn: variables with sample values, and the random state."""

    def __init__(self, seed: int, number: int) -> None:
        self.random = random.Random(f"{seed}:{number}")
        self.seed = number
        self.special = self.random.random() < SPECIAL
        self.inputs: list[Input] = []
        self.parameters: list[Input] = []
        self.lines: list[Line] = []
        self.values: dict[str, Tensor] = {}
        self.exact: set[str] = set()
        self.sharp = False
        self.used: set[str] = set()

    # --- operands --------------------------------------------------------------------------------

    def pick(
        self, wanted: Callable[[Tensor], bool] = lambda _: True, *, latest: bool = True
    ) -> str:
        """A variable, the latest ones most often."""
        names = [
            name
            for name, value in self.values.items()
            if wanted(value) and not (self.sharp and name not in self.exact)
        ]
        if not names:
            raise Refused
        weights = [1.0 + 2.0 * i if latest else 1.0 for i in range(len(names))]
        name = self.random.choices(names, weights)[0]
        self.used.add(name)
        return name

    def any(self, rank: int = 0) -> str:
        return self.pick(lambda v: v.dim() >= rank)

    def float(self, rank: int = 0) -> str:
        return self.pick(lambda v: v.dtype in FLOATS and v.dim() >= rank)

    def integer(self, rank: int = 0) -> str:
        try:
            return self.pick(lambda v: v.dtype in INTEGERS and v.dim() >= rank)
        except Refused:
            return self.input(self.shape(rank), self.integers())

    def bool(self) -> str:
        return self.pick(lambda v: v.dtype == torch.bool)

    def number(self, rank: int = 0) -> str:
        return self.pick(lambda v: v.dtype != torch.bool and v.dim() >= rank)

    def other(self, name: str, kinds: Sequence[torch.dtype] = ()) -> str:
        """An operand that broadcasts with `name`: a variable, a new input or a parameter."""
        kinds = kinds or (self.values[name].dtype,)
        shape = tuple(self.values[name].shape)
        chance = self.random.random()
        if chance < 0.5:
            try:
                return self.pick(lambda v: v.dtype in kinds and fits(v.shape, shape), latest=False)
            except Refused:
                pass
        dtype = self.random.choice(kinds)
        small = self.broadcast(shape)
        if chance > 0.85 and dtype in FLOATS and small:
            return self.parameter(small, dtype)
        return self.input(small, self.draw_of(dtype))

    def broadcast(self, shape: Shape) -> Shape:
        """A shape that broadcasts to this one: some dimensions missing, some 1."""
        chance = self.random.random()
        if chance < 0.4:
            return shape
        start = self.random.randint(0, len(shape))
        return tuple(1 if self.random.random() < 0.3 else size for size in shape[start:])

    # --- inputs ----------------------------------------------------------------------------------

    def input(self, shape: Shape, make: str) -> str:
        """A new argument of forward."""
        if len(self.inputs) >= MOST_INPUTS:
            raise Refused
        item = Input("abcd"[len(self.inputs)], shape, make)
        value = item.value(shape, self.seed)
        if value.numel() > MOST_ELEMENTS:
            raise Refused
        self.inputs.append(item)
        self.values[item.name] = value
        self.exact.add(item.name)
        self.used.add(item.name)
        return item.name

    def parameter(self, shape: Shape, dtype: torch.dtype) -> str:
        item = Input(f"p{len(self.parameters)}", shape, f"torch.randn({{shape}}, dtype={dtype})")
        if math.prod(shape) > MOST_ELEMENTS:
            raise Refused
        self.parameters.append(item)
        self.values[f"self.{item.name}"] = item.value(shape, self.seed)
        self.exact.add(f"self.{item.name}")
        self.used.add(f"self.{item.name}")
        return f"self.{item.name}"

    def index(self, below: int, shape: Shape) -> str:
        """A new input of places in a dimension of that size."""
        if below < 1:
            raise Refused
        return self.input(shape, f"{INDEX}{below}, {{shape}})")

    def order(self, shape: Shape, dim: int) -> str:
        """A new input of places along `dim`, none twice in one row."""
        return self.input(shape, f"torch.rand({{shape}}).argsort({dim})")

    def draw_of(self, dtype: torch.dtype) -> str:
        if dtype == torch.bool:
            return "torch.rand({shape}) < 0.5"
        if dtype in INTEGERS:
            return self.integers(dtype)
        return self.floats(dtype)

    def floats(self, dtype: torch.dtype | None = None) -> str:
        kind = dtype or self.random.choices(FLOATS, (6, 2, 2))[0]
        cast = "" if kind == torch.float32 else f".to({kind})"
        if self.special:
            value = self.random.choice(("inf", "-inf", "nan"))
            few = f'torch.rand({{shape}}) < 0.05, float("{value}")'
            return f"torch.where({few}, torch.randn({{shape}})){cast}"
        make = self.random.choice(("torch.randn", "torch.randn", "torch.rand"))
        return f"{make}({{shape}}){cast}"

    def integers(self, dtype: torch.dtype | None = None) -> str:
        kind = dtype or self.random.choices(INTEGERS, (5, 4, 2, 2, 2))[0]
        low, high = self.random.choice(((0, 10), (-9, 10), (-100, 100)))
        if kind in (torch.int32, torch.int64) and self.random.random() < 0.1:
            low, high = -(2**30), 2**30
        if kind == torch.uint8:
            low, high = 0, self.random.choice((7, 256))
        return f"torch.randint(low={low}, high={high}, size={{shape}}, dtype={kind})"

    def shape(self, least: int = 0) -> Shape:
        """Any shape of at least that rank."""
        rank = max(least, self.random.choices(range(6), (3, 14, 34, 27, 15, 7))[0])
        if rank == 0:
            return ()
        inner = self.random.choice(_INNER)
        if self.random.random() < 0.12:
            inner = self.random.randint(300, 5000)
        sizes = [self.random.choice(_OUTER) for _ in range(rank - 1)] + [inner]
        while math.prod(sizes) > MOST_ELEMENTS // 3:
            largest = max(range(rank), key=lambda i: (sizes[i], i) if i < rank - 1 else (2, 0))
            sizes[largest] = max(1, sizes[largest] // 2)
        if self.random.random() < 0.02:
            sizes[self.random.randrange(rank)] = 0
        return tuple(sizes)

    # --- numbers ---------------------------------------------------------------------------------

    def size(self, name: str, dim: int) -> int:
        return int(self.values[name].shape[dim])

    def rank(self, name: str) -> int:
        return int(self.values[name].dim())

    def dim(self, name: str) -> int:
        """A dimension, counted from either end."""
        rank = self.rank(name)
        if rank == 0:
            raise Refused
        return self.random.randrange(-rank, rank)

    def dims(self, name: str) -> str:
        """One dimension or several."""
        rank = self.rank(name)
        if rank == 0:
            raise Refused
        count = self.random.choice((1, 1, 1, 2, rank))
        chosen = tuple(sorted(self.random.sample(range(rank), min(count, rank))))
        if len(chosen) == 1:
            return str(self.random.choice((chosen[0], chosen[0] - rank)))
        return str(chosen)

    def of(self, *choices: Choice) -> Choice:
        return self.random.choice(choices)

    def between(self, low: int, high: int) -> int:
        if low > high:
            raise Refused
        return self.random.randint(low, high)

    def scalar(self) -> Real:
        return self.random.choice((-2.0, -1.5, -0.5, -0.25, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0))

    def keep(self) -> str:
        return self.random.choice(("", ", keepdim=True"))

    # --- lines -----------------------------------------------------------------------------------

    def add(self, op: Op) -> None:
        """One line of this row; Refused leaves everything as it was."""
        before = (len(self.inputs), len(self.parameters), dict(self.values), set(self.exact))
        self.used, self.sharp = set(), op.rule in (Rule.SHARP, Rule.CUTS)
        try:
            text = op.write(self)
            made = self._run(text, op.results)
        except (Refused, RuntimeError, IndexError, ValueError, ZeroDivisionError, TypeError):
            self.inputs, self.parameters = self.inputs[: before[0]], self.parameters[: before[1]]
            self.values, self.exact = before[2], before[3]
            raise Refused from None
        start = sum(len(line.targets) for line in self.lines)
        names = tuple(f"v{start + i}" for i in range(len(made)))
        clean = self.used <= self.exact
        for name, value in zip(names, made, strict=True):
            self.values[name] = value
            rounded = op.rule in (Rule.ROUNDS, Rule.CUTS) and value.is_floating_point()
            if clean and not rounded:
                self.exact.add(name)
        self.lines.append(Line(names, text, op.family))

    def _run(self, text: str, results: int) -> list[Tensor]:
        own = {name[5:]: value for name, value in self.values.items() if name.startswith("self.")}
        scope = {**self.values, "self": SimpleNamespace(**own), "torch": torch, "F": F}
        with torch.no_grad(), Casts() as casts:
            made = eval(text, scope)
        rows = [made] if isinstance(made, torch.Tensor) else list(made)
        if len(rows) != results or casts.undefined:
            raise Refused
        for value in rows:
            self._check(value)
        return rows

    def _check(self, value: Tensor) -> None:
        if value.dtype not in (*FLOATS, *INTEGERS, torch.bool) or value.dim() > MOST_RANK:
            raise Refused
        if value.numel() > MOST_ELEMENTS or (value.numel() == 0 and not self._is_empty()):
            raise Refused
        if value.dtype in FLOATS and not self.special and value.numel():
            worst = float(value.float().abs().max())
            if not worst <= LARGEST[value.dtype]:
                raise Refused

    def _is_empty(self) -> Truth:
        return any(not self.values[item.name].numel() for item in self.inputs)


def fits(shape: Sequence[int], to: Sequence[int]) -> bool:
    """Does a tensor of this shape broadcast to the other?"""
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(a in (1, b) for a, b in pairs)


def families_of(seed: int, number: int, table: Sequence[Op]) -> tuple[str, ...]:
    """The families that the lines of that module are drawn from."""
    return _begun(seed, number, table)[1]


def _begun(seed: int, number: int, table: Sequence[Op]) -> tuple[State, tuple[str, ...]]:
    state = State(seed, number)
    every = sorted({op.family for op in table})
    count = state.random.choices((1, 2, 3, len(every)), (4, 4, 2, 2))[0]
    return state, tuple(sorted(state.random.sample(every, count)))


def draw(seed: int, number: int, table: Sequence[Op]) -> Module:
    """The module of that number."""
    state, families = _begun(seed, number, table)
    rows = {family: [op for op in table if op.family == family] for family in families}
    _first_input(state, families)
    wanted = state.random.choices(range(2, 13), (6, 6, 5, 4, 3, 2, 2, 1, 1, 1, 1))[0]
    for _ in range(wanted * TRIES):
        if len(state.lines) == wanted:
            break
        try:
            state.add(state.random.choice(rows[state.random.choice(families)]))
        except Refused:
            continue
    return _returned(state, seed, number, families)


def _first_input(state: State, families: Sequence[str]) -> None:
    shares = (1, 6) if families == ("integers",) else (6, 1)
    make = state.random.choices((state.floats(), state.integers()), shares)[0]
    state.input(state.shape(), make)


def _returned(state: State, seed: int, number: int, families: tuple[str, ...]) -> Module:
    """One to three outputs: what no line reads, and others by chance."""
    read = set().union(*(line.reads for line in state.lines)) if state.lines else set()
    results = [name for line in state.lines for name in line.targets]
    ends = [name for name in results if name not in read] or [state.inputs[0].name]
    outputs = ends[-1:] + state.random.sample(
        ends[:-1], min(len(ends) - 1, state.random.choice((0, 0, 1, 1, 2)))
    )
    if len(outputs) < 3 and state.random.random() < 0.25:
        outputs.append(state.random.choice([*results, *(item.name for item in state.inputs)]))
    whole = Module(
        seed, number, families, tuple(state.inputs), tuple(state.parameters), tuple(state.lines),
        (), frozenset(state.exact),
    )  # fmt: skip
    return whole.only(tuple(dict.fromkeys(outputs)))
