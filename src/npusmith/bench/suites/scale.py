"""The rule for smaller shapes: `reduce_sizes(tree, text, most, measure)`.

Sizes that may change are the whole numbers of a task's file, at least 8, that get_inputs() reads
and get_init_inputs() does not: module-level names (numbers, or products and tuples of them, one by
one in `h, w = 32, 48`), and numbers written in get_inputs() itself. The largest of them is made
smaller until the inputs fit, and at last until a call is no more than WORK; where the reference
does not take the new shapes, numbers that are equal shrink together, and what it still does not
take stays as it is. Bounds of drawn indices (randint) shrink with the numbers that they are equal
to, and only so: no shape says that an index is too large. Of a task with groups of inputs the
smallest groups are kept.

Weights of more than WEIGHTS bytes fit no small machine beside their float64 copy. The numbers that
make the model shrink then, too, the largest first, where weights become much less by that. So they
do where inputs are still too large (a model that is given its batch size).

A kernel takes other ways for rows that fit on chip than for longer ones, and other copies for rows
that end on a block of 32 bytes. So a number keeps its rest modulo 64, and what lies behind a
dimension stays on its side of the tile and of UB, as long as that can be had: STAGES lists what is
given up, one thing after another.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

_SMALLEST = 8  # numbers below this are no sizes
_STEPS = 400
_OPERATIONS = 100_000  # on meta tensors, in all steps together: ten seconds or so
_INPUTS, _INIT = "get_inputs", "get_init_inputs"
_ANY_ERROR = (Exception,)
_DRAWN = ("randint", "randint_like", "random_", "randperm")  # numbers below their arguments
WEIGHTS = 300_000_000  # bytes: a layer of 8192 x 8192 stays
WORK = 3 << 30  # elements (task/work.py): 26 GFLOP of products, some seconds of one core
_MUCH = 0.9  # of the weights: a number that leaves more of them stays
_TILE, _UB = 8192, 49152  # float32 elements of a tile, and of UB (192 KB)
_CUTS = ((1, 2), (3, 4), (7, 8))  # what is left of a number, the least first

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """The inputs of a text: bytes, and the shapes of the tensors; bytes of the model's weights.

    `work`: elements of a call, which has so many operations.
    """

    bytes: int
    shapes: tuple[Shape, ...] = ()
    weights: int = 0
    work: int = 0
    operations: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """What a smaller shape has to keep."""

    floor: int
    step: int  # numbers keep their rest modulo this
    bounds: tuple[int, ...]  # lengths that rows, planes, ... stay above where they are above
    first_only: bool = False  # only the first number, which is the outermost dimension


STAGES = (
    Stage(64, 64, (_TILE, _UB)),
    Stage(6, 2, (_TILE, _UB), first_only=True),
    Stage(32, 8, (_TILE,)),
    Stage(8, 8, ()),
    Stage(2, 1, ()),
)


@dataclass(slots=True)
class _Size:
    """A number in the text that may shrink."""

    name: str
    line: int
    start: int
    end: int
    value: int
    first: int
    is_bound: bool = False  # of values that are drawn


def reduce_sizes(
    tree: ast.Module, text: str, most: int, measure: Callable[[str], Measure]
) -> tuple[str, list[str], int]:
    """The text with smaller numbers, what was changed, and the bytes of its inputs.

    `measure(text)` raises for shapes that the reference does not take.
    """
    search = _Search(text, _sizes(tree), measure)
    for stage in STAGES:
        search.shrink(stage, lambda found: found.bytes <= most)
    of_inputs = search.free
    search.add(_sizes_of_model(tree))
    for stage in (item for item in STAGES if not item.first_only):
        search.shrink(stage, lambda found: found.weights <= WEIGHTS, much=_MUCH)
    for stage in STAGES:
        search.shrink(stage, lambda found: found.bytes <= most)
    search.free = of_inputs
    for stage in STAGES:
        search.shrink(stage, lambda found: found.work <= WORK)
    changed = [item for item in search.sizes if item.value != item.first]
    words = [f"{item.name} {item.first} -> {item.value}" for item in changed]
    return search.best, list(dict.fromkeys(words)), search.found.bytes


class _Search:
    """The numbers as they are now, and what they give."""

    def __init__(
        self, text: str, sizes: Iterable[_Size], measure: Callable[[str], Measure]
    ) -> None:
        self.text, self.measure = text, measure
        self.sizes = self.free = _in_order(sizes)
        self.best = text
        self.first = self.found = measure(text)
        self.left, self.operations = _STEPS, _OPERATIONS

    def add(self, sizes: Iterable[_Size]) -> None:
        """From now on these shrink, and the others where they are equal to one of them."""
        self.free = _in_order(sizes)
        self.sizes = _in_order((*self.sizes, *self.free))

    def shrink(self, stage: Stage, fits: Callable[[Measure], bool], much: float = 1.0) -> None:
        """Make the largest number smaller, again and again, as far as the stage goes.

        `much`: what of the weights may be left after a step.
        """
        fixed: set[int] = set()
        free = self.free[:1] if stage.first_only else self.free
        while not fits(self.found) and self.left > 0 and self.operations > 0:
            open_ones = [
                item for item in free if id(item) not in fixed and item.value > stage.floor
            ]
            if not open_ones:
                return
            largest = max(open_ones, key=lambda item: item.value)
            equal = [item for item in self.sizes if item.value == largest.value]
            bounds = [item for item in equal if item.is_bound]
            groups = [equal] if bounds else [[largest], equal]
            if len(bounds) == len(equal) or not any(
                self._cut(group, stage, cut, much) for cut in _CUTS for group in groups
            ):
                fixed.add(id(largest))

    def _cut(
        self, chosen: Sequence[_Size], stage: Stage, cut: tuple[int, int], much: float
    ) -> bool:
        """Try one smaller value for these numbers."""
        before = chosen[0].value
        value = _smaller(before, stage, cut)
        if value >= before:
            return False
        self.left -= 1
        for item in chosen:
            item.value = value
        fresh = _write(self.text, self.sizes)
        try:
            found = self.measure(fresh)
            self.operations -= found.operations
            less = found.weights <= much * self.found.weights
            if less and _keeps(self.first, found, stage.bounds):
                self.best, self.found = fresh, found
                return True
        except _ANY_ERROR:
            pass
        for item in chosen:
            item.value = before
        return False


def _in_order(sizes: Iterable[_Size]) -> list[_Size]:
    """As they stand in the text."""
    return sorted(sizes, key=lambda item: (item.line, item.start))


def _smaller(value: int, stage: Stage, cut: tuple[int, int]) -> int:
    """About that part of a number, with the same rest and not below the floor."""
    least = max(-(-value * cut[0] // cut[1]), stage.floor)
    return least + (value - least) % stage.step


def _keeps(first: Measure, found: Measure, bounds: Sequence[int]) -> bool:
    """Whether every length that was above a bound still is."""
    return all(
        _levels(old, bounds) == _levels(new, bounds)
        for old, new in zip(first.shapes, found.shapes, strict=True)
    )


def _levels(shape: Shape, bounds: Sequence[int]) -> list[int]:
    """How many bounds each run of last dimensions is above; the first one is left free."""
    lengths = [math.prod(shape[at:]) for at in range(1, len(shape))]
    return [sum(length > bound for bound in bounds) for length in lengths]


def keep_groups(sizes: Sequence[int], most: int) -> list[int]:
    """Positions of the groups that fit together, the smallest first, in their own order."""
    kept, total = [], 0
    for at in sorted(range(len(sizes)), key=lambda at: sizes[at]):
        total += sizes[at]
        if total > most:
            break
        kept.append(at)
    return sorted(kept)


def _sizes(tree: ast.Module) -> Iterator[_Size]:
    held, made = _named(tree)
    if _INPUTS not in made:
        return
    fixed = _reads(made.get(_INIT), held, made) | _reads(_model(tree), held, made)
    for name in sorted(_reads(made[_INPUTS], held, made) - fixed):
        if name in held:
            yield from _numbers(held[name], name)
    own = [node for node in made[_INPUTS].body if not _is_text(node)]
    for node in own:
        yield from _numbers(node, "a number of get_inputs()")


def _sizes_of_model(tree: ast.Module) -> Iterator[_Size]:
    """Numbers that get_init_inputs() reads, whether get_inputs() does or not."""
    held, made = _named(tree)
    for name in sorted(_reads(made.get(_INIT), held, made) - _reads(_model(tree), held, made)):
        yield from _numbers(held[name], name)


def _named(tree: ast.Module) -> tuple[dict[str, ast.expr], dict[str, ast.FunctionDef]]:
    """What a file calls values and functions."""
    held = dict(pair for node in tree.body for pair in _assigned(node))
    return held, {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Names and what they stand for; `height, width = 32, 48` gives each its own."""
    pairs: list[tuple[ast.expr, ast.expr | None]] = []
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign):
        pairs = [(node.target, node.value)]
    for target, value in pairs:
        if isinstance(target, ast.Name) and value is not None:
            yield target.id, value
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, part in zip(target.elts, value.elts, strict=False):
                if isinstance(one, ast.Name):
                    yield one.id, part


def _model(tree: ast.Module) -> ast.ClassDef | None:
    found = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"]
    return found[-1] if found else None


def _reads(
    node: ast.AST | None, held: dict[str, ast.expr], made: dict[str, ast.FunctionDef]
) -> set[str]:
    """Module-level names that a piece of the file depends on, through other names and functions."""
    found: set[str] = set()
    queue = [node] if node is not None else []
    while queue:
        for name in _free_names(queue.pop(), frozenset()):
            if name not in found:
                found.add(name)
                queue += [item[name] for item in (held, made) if name in item]
    return found & set(held)


def _free_names(node: ast.AST, bound: frozenset[str]) -> Iterator[str]:
    """Names that are read and that no function around them has as a parameter or sets."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        inner = list(ast.walk(node))
        bound |= {item.arg for item in inner if isinstance(item, ast.arg)}
        bound |= {
            item.id for item in inner
            if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)
        }  # fmt: skip
        for default in (*node.args.defaults, *(item for item in node.args.kw_defaults if item)):
            yield from _free_names(default, frozenset())
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in bound:
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _free_names(child, bound)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _bounds(node: ast.AST) -> Iterator[ast.AST]:
    """What says below which number others are drawn; sizes stand in a tuple of their own."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") in _DRAWN:
            for item in (*call.args, *(word.value for word in call.keywords)):
                if not isinstance(item, ast.Tuple | ast.List):
                    yield from ast.walk(item)


def _numbers(node: ast.AST, name: str) -> Iterator[_Size]:
    drawn = {id(item) for item in _bounds(node)}
    for inner in ast.walk(node):
        value = inner.value if isinstance(inner, ast.Constant) else None
        if type(value) is int and value >= _SMALLEST:
            assert isinstance(inner, ast.Constant)
            line, start, end = inner.lineno, inner.col_offset, inner.end_col_offset or 0
            yield _Size(name, line, start, end, value, value, id(inner) in drawn)


def _write(text: str, sizes: Sequence[_Size]) -> str:
    """The text with the present values, from its end to its beginning."""
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for item in sorted(sizes, key=lambda item: (item.line, item.start), reverse=True):
        line = lines[item.line - 1]
        lines[item.line - 1] = line[: item.start] + str(item.value).encode() + line[item.end :]
    return b"".join(lines).decode()
