"""Items out of a fast kernel: take one thing out of it that may make it fast, and measure.

Every removal is an edit of ours. Where the result is still right and measurably slower, the way
back becomes an item; where it is not, nothing is learnt. (The idea of mining by de-optimising is
AscendOptimizer's.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npusmith.knowledge.base import Base, learn_item
from npusmith.knowledge.edit import Edit, Template, candidates
from npusmith.knowledge.item import OPTIMISE, Proof, State
from npusmith.knowledge.learn import best_template
from npusmith.knowledge.seam import Query
from npusmith.knowledge.tokens import DIRECT, TILE
from npusmith.knowledge.traits import read_traits
from npusmith.knowledge.trial import SLOW, Bench

SLOWER = 1.05  # a removal that costs less taught nothing
_PLACES = 2  # at which one removal is tried


@dataclass(frozen=True, slots=True)
class Removal:
    """One optimisation, as the edit that takes it out."""

    name: str
    template: Template


@dataclass(frozen=True, slots=True)
class Rewound:
    """What taking it out did: how many times as long, and the item that was kept ("": none)."""

    name: str
    slowdown: float
    item: str


def _removal(name: str, route: str, find: str, put: str, *where: str) -> Removal:
    edit = Edit(find=find, put=put)
    return Removal(name, Template(route=route, edits=(edit,), where=where))


REMOVALS = (
    _removal(
        "large tiles", TILE, "$t:name = $n:int", "$t = 128", "$n > 512", "has ub($t, $d)"
    ),
    _removal("all cores", TILE, "chip.vector_cores", "4"),
    _removal(
        "one load of many rows", TILE, "load($b, $x, $n, rows=$r, pitch=$p)",
        "for each_row in range($r):\n    load($b[each_row * $n], $x, $n)",
    ),
    _removal("two buffers", DIRECT, "InitBuffer($q, 2, $l)", "InitBuffer($q, 1, $l)"),
    _removal("barriers of one pipe", DIRECT, "PipeBarrier<PIPE_V>();", "PipeBarrier<PIPE_ALL>();"),
    _removal(
        "stages that overlap", DIRECT, "$f:name($a, $n);\n}",
        "$f($a, $n);\nPipeBarrier<PIPE_ALL>();\n}", "$f in CopyOut CopyOut0",
    ),
)  # fmt: skip


def rewind(base: Base, bench: Bench, route: str, fast: str) -> Iterator[Rewound]:
    """Take each thing out of the kernel `fast`, which is right, and keep what it teaches."""
    start = bench.time(route, fast)
    if start is None or not bench.judge(route, fast).accepted:
        return
    for removal in REMOVALS:
        if removal.template.route != route:
            continue
        for slow in candidates(removal.template, fast, (), _PLACES):
            timed = bench.time(route, slow) if bench.judge(route, slow).accepted else None
            if timed is None:
                continue
            cost = timed.us / start.us
            name = _keep(base, bench, route, slow, fast, cost, timed.vector, removal)
            yield Rewound(removal.name, round(cost, 3), name)


def _keep(
    base: Base,
    bench: Bench,
    route: str,
    slow: str,
    fast: str,
    cost: float,
    vector: tuple[float, ...],
    removal: Removal,
) -> str:
    """The name of the item that leads from the slow text to the fast one; "" for none."""
    template = best_template(slow, fast, route) if cost >= SLOWER else None
    if template is None:
        return ""
    query = Query(
        route=route, aim=OPTIMISE, text=slow, codes=(SLOW,), chip=bench.chip.name,
        dtypes=read_traits(slow, route).dtypes, category=bench.case.category, bottleneck=vector,
    )  # fmt: skip
    proof = Proof(case=bench.case, before=slow, after=fast)
    item = learn_item(query, slow, fast, (SLOW,), cost, (proof,), template)
    if item is None:
        return ""
    kept = item.model_copy(update={"origin": "rewound"})
    return base.add(
        kept, State.VERIFIED, f"rewound: without {removal.name} {cost:.2f} times as long"
    )
