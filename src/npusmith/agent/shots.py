"""Examples for a prompt: programs that the plan writer wrote, picked by what they have in common.

`features(graph)` says what an operator is: its category, the form of its reduced axis, its shape.
The programs lie in texts/shots; `runs/shots.py` writes and judges them again, a test compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources

from pydantic import BaseModel, ConfigDict

from npusmith.task.graph import SCAN, Graph, Node

_MOST_CHARS = 20_000  # of all examples of a prompt
_LONG = 12 << 10  # elements of a row that no longer lies in the unified buffer with its results
# The first category that one of the words fits; words are parts of ATen names.
_CATEGORIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("pooling", ("pool",)),
    ("scan", ("cumsum", "cumprod", "cummax", "cummin")),
    ("matmul", ("mm.", "matmul", "convolution", "linear")),
    ("normalization", ("_norm", "batch_norm", "var", "rsqrt")),
    ("softmax", ("softmax", "logsumexp")),
    ("reduction", ("sum", "mean", "amax", "amin", "max.", "min.", "prod", "norm", "argm", "std")),
    ("movement", ("gather", "index", "scatter", "cat", "flip", "permute", "upsample", "embedding")),
)
_LAYOUTS = {
    "view", "permute", "clone", "expand", "unsqueeze", "squeeze", "getitem", "_to_copy", "alias",
}  # fmt: skip
_PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "_int_mm", "convolution")
_SCAN = SCAN.partition(".")[2]
_REDUCING = ("sum", "mean", "amax", "amin", "max.", "min.", "prod", "var", "std", "cum", "softmax")


class Features(BaseModel):
    """`axis`: "none", "last", "middle" or "all"; `row`: elements along the last axis."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    category: str
    axis: str
    rank: int
    row: int
    dtypes: tuple[str, ...]
    ops: tuple[str, ...]
    outputs: int = 1

    @property
    def cards(self) -> tuple[str, ...]:
        """The parts of the tile language (prompt.CARDS) that operators like this one need."""
        return (*(["cube"] * self.has_products), *(["loops"] * (_SCAN in self.ops)))

    @property
    def has_products(self) -> bool:
        """Whether matrices are multiplied."""
        return any(op in _PRODUCTS for op in self.ops)


class Shot(BaseModel):
    """One example: its name, what it is, its program.

    `dims`: of each output, its dimensions as expressions over the inputs' sizes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    summary: str
    features: Features
    program: str
    dims: tuple[tuple[str, ...], ...] = ()


def features(graph: Graph) -> Features:
    """What a captured graph is."""
    users = [item for item in graph.inputs if item.kind == "user"] or list(graph.inputs)
    shape = max((item.shape for item in users), key=_size, default=())
    ops = tuple(dict.fromkeys(_short(node.op) for node in _all_nodes(graph)))
    reduced = next((node for node in graph.nodes if _is(node.op, _REDUCING)), None)
    category = _category(ops)
    scalar = all(not graph.spec(name).shape for name in graph.outputs)
    if category == "reduction" and scalar and len(users) > 1:
        category = "loss"
    if category == "elementwise" and len(graph.outputs) > 1:
        category = "optimizer"
    return Features(
        category=category,
        axis=_axis(reduced, len(shape)) if reduced else ("last" if "norm" in category else "none"),
        rank=len(shape), row=shape[-1] if shape else 1,
        dtypes=tuple(sorted({item.dtype.value for item in graph.inputs})),
        ops=ops, outputs=len(graph.outputs),
    )  # fmt: skip


def pick(wanted: Features, shots: Sequence[Shot], most: int = 2) -> list[Shot]:
    """The nearest example; then the one that shows most of what is left, where there is room.

    Always the same for the same task.
    """
    picked: list[Shot] = []
    left, room = set(wanted.ops) - _LAYOUTS, _MOST_CHARS
    while len(picked) < most and (left or not picked):
        rest = [shot for shot in shots if shot not in picked and len(shot.program) <= room]
        ranked = sorted(
            rest,
            key=lambda shot: (
                -len(left & set(shot.features.ops)) if picked else 0,
                -likeness(wanted, shot.features),
                shot.name,
            ),
        )
        if not ranked:
            break
        picked.append(ranked[0])
        room -= len(ranked[0].program)
        left -= set(ranked[0].features.ops)
    return picked


def likeness(one: Features, other: Features) -> float:
    """Category and parts of the language count most, then the axis, then what is computed."""
    mine, theirs = (set(item.ops) - _LAYOUTS for item in (one, other))
    shared = len(mine & theirs) / len(mine | theirs) if mine | theirs else 0.0
    return (
        4.0 * (one.category == other.category)
        + 3.0 * (one.cards == other.cards)
        + 2.0 * (one.axis == other.axis)
        + 2.0 * shared
        + 1.0 * (one.dtypes == other.dtypes)
        + 0.5 * ((one.row > _LONG) == (other.row > _LONG))
        + 0.5 * (one.outputs == other.outputs)
        + 0.25 * (one.rank == other.rank)
    )


def read_shots() -> list[Shot]:
    """All examples of the package."""
    folder = resources.files("npusmith.agent") / "texts" / "shots"
    rows = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    return [
        Shot(program=(folder / f"{row['name']}.tile").read_text(encoding="utf-8"), **row)
        for row in rows
    ]


def _all_nodes(graph: Graph) -> Iterator[Node]:
    """With those of steps in time."""
    for node in graph.nodes:
        yield node
        if node.body is not None:
            yield from _all_nodes(node.body)


def _short(op: str) -> str:
    return op.removeprefix("aten.").removeprefix("higher_order.").partition(".")[0]


def _is(op: str, words: Iterable[str]) -> bool:
    name = op.removeprefix("aten.")
    return any(word in name for word in words)


def _category(ops: Iterable[str]) -> str:
    names = [f"{op}." for op in ops]
    for category, words in _CATEGORIES:
        if any(word in name for name in names for word in words):
            return category
    return "elementwise"


def _axis(node: Node, rank: int) -> str:
    """Where the reduced axes are; nodes without a list of axes reduce all of them."""
    given = [item for item in node.args[1:2] if item is not None and not isinstance(item, bool)]
    dims = given[0] if given else ()
    listed = dims if isinstance(dims, tuple) else (dims,)
    axes = sorted({item % max(rank, 1) for item in listed if isinstance(item, int)})
    if not axes or len(axes) == rank:
        return "all"
    return "last" if axes == list(range(rank - len(axes), rank)) else "middle"


def _size(shape: Sequence[int]) -> int:
    total = 1
    for item in shape:
        total *= item
    return total
