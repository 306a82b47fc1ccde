"""A quicker program for graphs of a known form, in front of the general one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from npusmith.errors import PlanError
from npusmith.ir.nodes import Assign, Binary, BinOp, Choice, Expr, For, Load, Program, Store
from npusmith.ir.walk import names, statements
from npusmith.plan.either import either, length
from npusmith.plan.read import Meaning
from npusmith.plan.short_axes import write_interleaved, write_resident, write_short
from npusmith.plan.space import Space
from npusmith.target.chips import Chip

# Bytes of UB that the general program is written for when another stands before it: small tiles,
# because it runs at sizes that are not what the operator is for.
_SMALL = (8 * 1024, 12 * 1024, 16 * 1024, 24 * 1024, 32 * 1024)

# The program in so many bytes of UB, without names that are taken, and the host variable that is 1
# where it is right, or "" where it always is.
Quick = Callable[[int, Collection[str]], tuple[Program, str] | None]
_SHORT = "short axes of the captured sizes stay on chip"


@dataclass(frozen=True, slots=True)
class Quicker:
    """A program, what it is, and which sizes alone it serves."""

    program: Program
    note: str
    legal: tuple[Expr, ...] = ()


def with_quicker(
    space: Space,
    outputs: Sequence[str],
    name: str,
    chip: Chip,
    general: Callable[[Chip], Program],
    meaning: Meaning,
    many_rows: bool,
) -> Quicker | None:
    """The quicker program, or both in one, and a note; None where the graph has no known form.

    `general` writes the general program for a chip; it may raise PlanError. `many_rows`: reductions
    go along few elements of many.
    """
    rows = partial(_refused, write_resident, meaning, name, chip)
    if rows(chip.ub_bytes, ()) is not None:
        found = _joined(rows, chip, general)
        return None if found is None else Quicker(found, _SHORT)
    quick = partial(_refused, write_interleaved, meaning, name, chip)
    alone = quick(chip.ub_bytes, ())
    if alone is not None:
        found = _joined(quick, chip, general, twice=True)
        return _alone(*alone) if found is None else Quicker(found, _SHORT)
    if not many_rows:
        return None
    found = _joined(partial(_refused, write_short, meaning, name, chip), chip, general, twice=True)
    return None if found is None else Quicker(found, "rows are short as captured: many in a tile")


def _refused(
    write: Callable[[Meaning, str, Chip, Collection[str]], tuple[Program, str] | None],
    meaning: Meaning, name: str, chip: Chip, room: int, taken: Collection[str],
) -> tuple[Program, str] | None:  # fmt: skip
    try:
        return write(meaning, name, _sized(chip, room), taken)
    except PlanError:
        return None  # the general program serves it


def _alone(program: Program, test: str) -> Quicker | None:
    """A program without the general one: the operator refuses sizes that it does not serve."""
    host, kernel, launch = program.host, program.kernel, program.host.launch
    made = {stmt.target: stmt.value for stmt in host.body if isinstance(stmt, Assign)}
    fits = made.pop(test, None)
    if not isinstance(fits, Choice):
        return Quicker(program, _SHORT)
    if any(True for _ in names(fits.cond)):
        return None  # more than sizes of inputs
    args = tuple(pair for pair in launch.args if pair[0] != test)
    scalars = tuple(scalar for scalar in kernel.scalars if scalar.name != test)
    body = tuple(stmt for stmt in host.body if not isinstance(stmt, Assign) or stmt.target in made)
    rest = replace(
        program,
        host=replace(host, body=body, launches=(replace(launch, args=args),)),
        kernels=(replace(kernel, scalars=scalars),),
    )
    return Quicker(rest, _SHORT, tuple(_parts(fits.cond)))


def _parts(test: Expr) -> Iterator[Expr]:
    """The tests that have to hold together."""
    match test:
        case Binary(BinOp.AND, left, right):
            yield from _parts(left)
            yield from _parts(right)
        case _:
            yield test


def _joined(
    quick: Quick, chip: Chip, general: Callable[[Chip], Program], twice: bool = False
) -> Program | None:
    """The quick program with the general one behind it, in as much of UB as that leaves.

    `twice`: with room for two of every buffer that the quick one loads or stores.
    """
    if quick(chip.ub_bytes, ()) is None:
        return None
    other = _smallest(general, chip)
    if other is None:
        return None
    room, taken = chip.ub_bytes, set(_taken(other))
    while room > 0:
        found = quick(room, taken)
        if found is None:
            return None
        first, test = found
        program = either(test, first, other) if test else first
        over = _bytes(program, first if twice else None) - chip.ub_bytes
        if over <= 0:
            return program
        room -= over
    return None


def _sized(chip: Chip, room: int) -> Chip:
    return replace(chip, ub_total_bytes=chip.ub_reserved_bytes + room)


def _bytes(program: Program, twice: Program | None) -> int:
    """What the buffers of a program take, those twice that `twice` loads or stores."""
    double = _queued(twice) if twice is not None else frozenset[str]()
    return sum(
        -(-length(buffer, program) * buffer.dtype.bytes // 32) * 32 * (1 + (buffer.name in double))
        for buffer in program.kernel.buffers
    )


def _queued(program: Program) -> frozenset[str]:
    """Buffers that are loaded or stored."""
    found = list(statements(program.kernel.body))
    loaded = {stmt.dst.buffer for stmt in found if isinstance(stmt, Load)}
    return frozenset(loaded | {stmt.src.buffer for stmt in found if isinstance(stmt, Store)})


def _smallest(general: Callable[[Chip], Program], chip: Chip) -> Program | None:
    for room in _SMALL:
        if room > chip.ub_bytes:
            return None
        try:
            return general(_sized(chip, room))
        except PlanError as problem:
            if problem.code != "plan-ub":
                return None
    return None


def _taken(program: Program) -> Iterator[str]:
    """Names that have a meaning in a program."""
    kernel = program.kernel
    yield from (tensor.name for tensor in kernel.tensors)
    yield from (scalar.name for scalar in kernel.scalars)
    yield from (buffer.name for buffer in kernel.buffers)
    yield from (name for name, _ in program.consts)
    for stmt in (*program.host.body, *statements(kernel.body)):
        if isinstance(stmt, Assign):
            yield stmt.target
        if isinstance(stmt, For):
            yield stmt.var
