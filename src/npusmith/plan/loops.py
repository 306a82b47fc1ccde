"""Loop nests: over tiles, over rows, over a core's share of the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from npusmith.ir.nodes import Assign, Binary, BinOp, Const, CoreId, Expr, If, Name, Stmt
from npusmith.plan.block import Block, Path, loop, staged
from npusmith.plan.dag import Value
from npusmith.plan.host import TILE, Deal
from npusmith.plan.refusals import refusal
from npusmith.plan.scalars import ONE, ZERO, least, minus, plus, product, quotient, remainder, times
from npusmith.plan.writer import Writer

SERIAL = 64  # terms added one after another before their sum is added to the total

Body = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Run:
    """One loop: its variable and range, and the list that is its body."""

    var: str
    start: Expr
    stop: Expr
    step: Expr
    block: Block
    head: tuple[Stmt, ...] = ()  # stands right before the loop: passes inside it may come between


@dataclass(frozen=True, slots=True)
class Serial:
    """What frames every SERIAL turns of an innermost loop: statements before and after them."""

    before: tuple[Stmt, ...]
    after: tuple[Stmt, ...]


def mixed(w: Writer, value: Value) -> NoReturn:
    """Refuse: one of these reductions (or scans) has to be finished before the other can begin."""
    word = "scan" if value.op == "running" else "reduction"
    why = f"this {word} and one along other axes depend on each other's rows"
    node = w.space.origin.get(value)
    raise refusal(w.space.graph, node, "plan-mixed-reductions", why)


def over(w: Writer, path: Path, group: int) -> Run:
    """A loop over one group: tile by tile along the last one, else index by index."""
    opened = path[-1].opened | {group}
    start, stop = w.bounds(path, group)
    if w.space.backward.get(group):
        return _backwards(w, opened, group, start, stop)
    if group != w.space.last:
        var = w.var(group)
        return Run(var, start, stop, ONE, Block(opened, {group: Name(var)}))
    head = Assign("n", least(TILE, minus(stop, Name("at"))))
    block = Block(opened, {group: Name("at")}, Name("n"), items=[head])
    return Run("at", start, stop, TILE, block)


def _backwards(w: Writer, opened: frozenset[int], group: int, start: Expr, stop: Expr) -> Run:
    """The same from the end; tiles start at the same places."""
    end, size = minus(stop, ONE), minus(stop, start)
    if group != w.space.last:
        var = w.var(group)
        block = Block(opened, {group: Name(var)})
        block.items.append(Assign(var, minus(end, Name(f"{var}_back"))))
        return Run(f"{var}_back", ZERO, size, ONE, block)
    block = Block(opened, {group: Name("at")}, Name("n"))
    last = plus(start, times(quotient(minus(end, start), TILE), TILE))
    block.items.append(Assign("at", minus(last, Name("back"))))
    block.items.append(Assign("n", least(TILE, minus(stop, Name("at")))))
    return Run("back", ZERO, size, TILE, block)


def dealt(w: Writer, path: Path, deal: Deal) -> Run:
    """A loop over this core's share of the dealt groups."""
    first, stop = part(deal)
    groups = (*deal.outer, *((w.space.last,) if deal.tiled else ()))
    block = Block(path[-1].opened | set(groups))
    line = w.var(deal.outer[0]) if len(deal.outer) == 1 else "line"
    var = "piece" if deal.tiled else line
    if deal.tiled:
        _open_tile(w, block, deal, var, line)
    open_outer(w, block, deal, line)
    block.head = len(block.items)
    return Run(var, Name("first"), stop, ONE, block, (first,))


def part(deal: Deal) -> tuple[Assign, Expr]:
    """This core's pieces: `first`, and where they end."""
    first = Assign("first", Binary(BinOp.MUL, CoreId(), Name(deal.share)))
    return first, least(plus(Name("first"), Name(deal.share)), Name(deal.units))


def _open_tile(w: Writer, block: Block, deal: Deal, var: str, line: str) -> None:
    size, tile = w.sizes.size(w.space.last), Name(deal.tile)
    piece: Expr = Name(var)
    if deal.outer:
        block.items.append(Assign(line, quotient(piece, Name(deal.tiles))))
        piece = remainder(piece, Name(deal.tiles))
    block.items.append(Assign("at", times(piece, tile)))
    block.items.append(Assign("n", least(tile, minus(size, Name("at")))))
    block.index[w.space.last] = Name("at")
    block.count = Name("n")


def open_outer(w: Writer, block: Block, deal: Deal, line: str) -> None:
    if len(deal.outer) == 1:
        block.index[deal.outer[0]] = Name(line)
        return
    if len(deal.outer) < 2:
        return
    block.joined = (deal.outer, line)
    for i, group in enumerate(deal.outer):
        inner = product(w.sizes.size(other) for other in deal.outer[i + 1 :])
        index = quotient(Name(line), inner)
        block.decode[group] = remainder(index, w.sizes.size(group)) if i else index


def nest(
    w: Writer, path: Path, groups: Sequence[int], body: Body, serial: Serial | None = None
) -> None:
    """Loops over the groups, outermost first, with `body` in the innermost."""
    if not groups:
        body(path)
        return
    run = over(w, path, groups[0])
    if groups[1:]:
        nest(w, (*path, run.block), groups[1:], body, serial)
        close(path, run)
    else:
        turn(path, run, body, serial)


def turn(path: Path, run: Run, body: Body, serial: Serial | None) -> None:
    """The innermost loop; with `serial`, cut into stretches that are framed by statements."""
    if serial is None:
        body((*path, run.block))
        close(path, run)
        return
    outer = f"{run.var}_from"
    frame = Block(path[-1].opened, items=list(serial.before), stretch=True)
    step = Const(SERIAL)
    inner = Run(run.var, Name(outer), least(plus(Name(outer), step), run.stop), run.step, run.block)
    body((*path, frame, run.block))
    close((frame,), inner)
    frame.items += serial.after
    path[-1].items += [*run.head, loop(outer, run.start, run.stop, step, frame)]


def close(path: Path, run: Run) -> None:
    """Put a finished loop into the list around it."""
    path[-1].items += [*run.head, loop(run.var, run.start, run.stop, run.step, run.block)]


def share(
    w: Writer, path: Path, groups: frozenset[int], rest: Sequence[int], body: Body,
    serial: Serial | None = None,
) -> None:  # fmt: skip
    """The work of a pass: the dealt groups on all cores, the rest in loops on each.

    With nothing to deal out, core 0 does it alone.
    """
    if not groups:
        only = Block(path[-1].opened)
        nest(w, (*path, only), rest, body, serial)
        alone = Binary(BinOp.EQ, CoreId(), Const(0))
        path[-1].items.append(If(alone, staged(only.items)))
        return
    run = dealt(w, path, w.sizes.deal(groups))
    if rest:
        nest(w, (*path, run.block), rest, body, serial)
        close(path, run)
    else:
        turn(path, run, body, serial)
