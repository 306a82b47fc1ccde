"""Learning from two kernels that somebody gives: the failed one and the right one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from npusmith.errors import NpusmithError, Place
from npusmith.knowledge.base import Base, learn_item
from npusmith.knowledge.edit import quoted_names
from npusmith.knowledge.item import OPTIMISE, REPAIR, Proof, State
from npusmith.knowledge.learn import best_template
from npusmith.knowledge.rewind import Rewound, rewind
from npusmith.knowledge.seam import Query
from npusmith.knowledge.tokens import TILE
from npusmith.knowledge.trial import SLOW, Bench, Case, Judged, Shapes
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.chips import Chip

_MOST_BYTES = 200_000  # of a kernel
_FASTER = 1.05
Shape = tuple[int, ...]


def read_kernel(path: Path) -> str:
    """The text of a kernel; file-missing, file-unusable."""
    if not path.is_file():
        raise NpusmithError("file-missing", f"there is no file {path}", Place(str(path)))
    try:
        if path.stat().st_size <= _MOST_BYTES:
            return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        pass
    message = f"{path} is no UTF-8 text of at most {_MOST_BYTES} bytes"
    raise NpusmithError("file-unusable", message, Place(str(path)))


def teach(
    base: Base,
    before: str,
    after: str,
    route: str,
    program: str,
    shapes: tuple[Sequence[Shape], Sequence[Shape]],
    chip: Chip,
) -> str:
    """Adds what turns `before` into `after`, and gives its name; knowledge-pair where nothing does.

    `program` says what is right ("": `after` itself, of a tile program), `shapes` are of inputs and
    outputs. Without shapes nothing is judged, and the item stays unverified.
    """
    if not shapes[0] or not shapes[1]:
        return _keep(base, before, after, Query(route=route, aim=REPAIR, text=before), None, None)
    case = _case(program or (after if route == TILE else ""), shapes)
    with temporary_folder("npusmith-teach-") as folder:
        bench = Bench(case, chip, Path(folder))
        if not bench.judge(route, after).accepted:
            raise NpusmithError("knowledge-pair", "the second kernel is not accepted itself")
        verdict = bench.judge(route, before)
        if verdict.accepted:
            return _faster(base, before, after, route, bench)
        query = _query(route, before, verdict, chip)
        return _keep(base, before, after, query, bench, None)


def unwind(
    base: Base,
    kernel: str,
    route: str,
    program: str,
    shapes: tuple[Sequence[Shape], Sequence[Shape]],
    chip: Chip,
) -> Iterator[Rewound]:
    """Rewinds a kernel on a case made of these shapes."""
    case = _case(program or (kernel if route == TILE else ""), shapes)
    with temporary_folder("npusmith-rewind-") as folder:
        yield from rewind(base, Bench(case, chip, Path(folder)), route, kernel)


def _case(program: str, shapes: tuple[Sequence[Shape], Sequence[Shape]]) -> Case:
    """What is right, and for which shapes."""
    if not program:
        raise NpusmithError("knowledge-pair", "an Ascend C kernel needs a tile program beside it")
    if not shapes[0] or not shapes[1]:
        raise NpusmithError("knowledge-pair", "nothing can be judged without shapes")
    row = Shapes(inputs=tuple(shapes[0]), outputs=tuple(shapes[1]))
    return Case(name="taught", program=program, small=(row,), large=row)


def _faster(base: Base, before: str, after: str, route: str, bench: Bench) -> str:
    """Both are right: what made the second one faster?"""
    slow, fast = bench.time(route, before), bench.time(route, after)
    gain = slow.us / fast.us if slow and fast else 0.0
    if gain < _FASTER:
        seen = f"{gain:.2f} times as fast by the timing model"
        raise NpusmithError(
            "knowledge-pair", "both kernels are right, and alike in time", seen=seen
        )
    assert slow is not None
    query = Query(
        route=route, aim=OPTIMISE, text=before, codes=(SLOW,), chip=bench.chip.name,
        bottleneck=slow.vector,
    )  # fmt: skip
    return _keep(base, before, after, query, bench, gain)


def _query(route: str, text: str, verdict: Judged, chip: Chip) -> Query:
    return Query(
        route=route, aim=REPAIR, text=text, codes=verdict.codes, chip=chip.name,
        messages=verdict.messages, lines=verdict.lines, hints=verdict.hints,
    )  # fmt: skip


def _keep(
    base: Base, before: str, after: str, query: Query, bench: Bench | None, gain: float | None
) -> str:
    said = quoted_names(query.messages)

    def accept(text: str) -> bool:
        return bench is not None and bench.judge(query.route, text).accepted

    judged = accept if bench is not None and gain is None else None
    template = best_template(before, after, query.route, query.lines, said, judged)
    if template is None:
        raise NpusmithError("knowledge-pair", "no small edit makes the second out of the first")
    proofs = (Proof(case=bench.case, before=before, after=after),) if bench else ()
    item = learn_item(query, before, after, query.codes, gain, proofs, template)
    assert item is not None
    state = State.VERIFIED if bench else State.NEW
    return base.add(item, state, "taught: " + ("judged" if bench else "nothing was judged"))
