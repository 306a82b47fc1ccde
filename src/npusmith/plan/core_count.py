"""How many cores a kernel is worth: each takes time to start, which little work does not earn back.

With c cores a kernel takes `c * start + work / c`: least at the square root of `work / start`. Work
grows with the elements of the largest tensor; how many of them earn a start back follows from the
estimate at the captured sizes. The host function takes the root by tangents of its curve.

before: `cores = min(pieces, chip.vector_cores)`
after:  `worth_cores = min(chip.vector_cores, x.size // 904 + 2, ...)`, then `cores` of these
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from math import prod

from npusmith.errors import LangError
from npusmith.ir.nodes import Assign, ChipFact, Const, Expr, Name, Program, Size
from npusmith.ir.spec import OpSpec
from npusmith.plan.estimate import Shape, core_time
from npusmith.plan.near_shapes import replaced_in_host
from npusmith.plan.scalars import least, plus, quotient
from npusmith.target.chips import Chip
from npusmith.timing.simulate import core_start_us

_CORES, _NAME = ChipFact("vector_cores"), Name("worth_cores")
_TANGENTS = (4, 16, 48)  # cores where the curve and a tangent touch
_ROOMS = (1.0, 1.3, 1.7)  # times as many: lines are dealt whole, so that some cores have one less
_LEAST = 4096  # elements: fewer say too little about the work of larger sizes
_WORTH_IT = 0.99  # of the time at the captured sizes


def on_worthwhile_cores(
    program: Program, spec: OpSpec, shapes: Mapping[str, Shape], chip: Chip
) -> Program:
    """The kernel on as many cores as its work is worth; as it is where that is unknown."""

    def time(tried: Program) -> float:
        us, cores = core_time(tried, shapes, chip)
        return us + cores * core_start_us(chip)

    ports = [port for port in (*spec.inputs, *spec.outputs) if port.name in program.host.tensors]
    largest = max(ports, key=lambda port: prod(shapes[port.name]))
    size = prod(shapes[largest.name])
    if size < _LEAST:
        return program
    try:
        worth = _worth(program, shapes, chip)
        each = [round(2 * size / (worth * room) ** 2) for room in _ROOMS if worth]
        tried = [_with_cores(program, _root(largest.name, count)) for count in each if count]
        best = min(tried, key=time, default=program)
        return best if time(best) < _WORTH_IT * time(program) else program
    except (LangError, ZeroDivisionError):  # sizes that the estimate does not serve
        return program


def _root(name: str, each: int) -> Expr:
    """The least of all tangents; `each`: elements, at one core, on two cores' time to start."""
    size: Expr = Size(name)
    ways = [plus(quotient(size, Const(at * each)), Const(at // 2)) for at in _TANGENTS]
    return reduce(least, [_CORES, *ways])


def _with_cores(program: Program, most: Expr) -> Program:
    host = replaced_in_host(program.host, _CORES, _NAME)
    return replace(program, host=replace(host, body=(Assign(_NAME.id, most), *host.body)))


def _worth(program: Program, shapes: Mapping[str, Shape], chip: Chip) -> float:
    """Cores that the work at these sizes is worth, if the chip had so many; 0 where unknown.

    From the time on all cores, a half and a quarter of them: `fixed + each * cores + work / cores`.
    `each` is what joining one more core's result takes.
    """
    most = chip.vector_cores
    caps = (program, *(_with_cores(program, Const(most // part)) for part in (2, 4)))
    (us1, all1), (us2, half), (us4, few) = (core_time(item, shapes, chip) for item in caps)
    if not few < half < all1:
        return 0.0
    less, fewer = (half - all1, 1 / half - 1 / all1), (few - half, 1 / few - 1 / half)
    both = less[0] * fewer[1] - less[1] * fewer[0]
    each = ((us2 - us1) * fewer[1] - (us4 - us2) * less[1]) / both
    work = (less[0] * (us4 - us2) - fewer[0] * (us2 - us1)) / both
    return float((max(work, 0.0) / (core_start_us(chip) + max(each, 0.0))) ** 0.5)
