"""The child of interpreted.py: in the box, from completions to how far each got.

Orders come pickled on stdin, from our own side; of each completion a line of JSON goes to stdout as
soon as it is judged, so that one that takes the box down with it takes no other's answer.
"""

from __future__ import annotations

import json
import pickle
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npusmith.agent.assessment import Note, notes_of
from npusmith.agent.extract import find_program
from npusmith.agent.meaning import try_case
from npusmith.agent.ports import Ports
from npusmith.agent.talk import Answer, Usage
from npusmith.agent.values import Case
from npusmith.errors import NpusmithError
from npusmith.ir.nodes import Program
from npusmith.ir.spec import OpSpec
from npusmith.lang import check_all, parse
from npusmith.lang.extents import serves
from npusmith.target.chips import Chip
from npusmith.train.levels import Level
from npusmith.train.static_time import static_us

Shape = tuple[int, ...]
_NOTHING = Usage(prompt=0, completion=0)


@dataclass(frozen=True, slots=True)
class Set:
    """A set of inputs, with all tensors that a kernel of the task may take, in their order."""

    case: Case
    shapes: tuple[Shape, ...]  # of the arguments of forward
    shaped: bool  # of other shapes than the task's own


@dataclass(frozen=True, slots=True)
class Orders:
    """What the child is given."""

    completions: tuple[str, ...]
    chip: Chip
    ports: Ports
    sets: tuple[Set, ...]
    folder: Path
    tolerance: str
    seconds: float  # of a processor, for each completion


class _Late(BaseException):
    """A completion has used up its time."""


def main() -> None:
    """Orders on stdin, a line for each completion on stdout."""
    orders: Orders = pickle.load(sys.stdin.buffer)
    for text in orders.completions:
        sys.stdout.write(json.dumps(_limited(text, orders)) + "\n")
        sys.stdout.flush()


def _limited(text: str, orders: Orders) -> dict[str, Any]:
    """What was found of one completion, or that it took too long or too much."""
    found: dict[str, Any] = {"level": Level.NOTHING, "share": 0.0, "us": None, "notes": []}
    why = ""
    try:
        with _stopped_after(orders.seconds):
            _judge(text, orders, found)
    except _Late:
        why = f"still running after {orders.seconds:g} s"
    except MemoryError:
        why = "out of memory"
    except NpusmithError as error:
        found["notes"] = notes_as_data(notes_of(error.record()))
    except (RecursionError, ArithmeticError, ValueError, TypeError, KeyError, IndexError) as error:
        said = f"{type(error).__name__}: {error}"[:300]  # a defect of ours: not the candidate's
        found["notes"] = notes_as_data([Note(code="internal", message=said)])
    if why:
        message = f"the program was stopped in NumPy: {why}"
        found["notes"] = notes_as_data([Note(code="agent-endless", message=message)])
    return found


@contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise _Late

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _judge(text: str, orders: Orders, found: dict[str, Any]) -> None:
    """Fills in what is known so far; raises at the stage that fails."""
    program = parse(find_program(Answer(text=text, usage=_NOTHING)))
    found["level"] = Level.PARSED
    if wrong := check_all(program, orders.chip):
        found["notes"] = notes_as_data(
            note for error in wrong[:3] for note in notes_of(error.record())
        )
        return
    spec = orders.ports.spec(program)
    found["level"] = Level.LEGAL
    sets = _counting(spec, orders)
    taken = [item.name for item in orders.ports.inputs]
    places = [taken.index(item.name) for item in program.inputs]
    right, ran = 0, True
    for item in sets:
        notes = try_case(
            program, orders.chip, _taken(item.case, places), orders.folder, orders.tolerance
        )
        right += not notes
        found["notes"] = found["notes"] or notes_as_data(notes[:3])
        if any(note.code != "agent-values" for note in notes):  # a rule is broken
            ran = False
            if item is sets[0]:
                return
    found["sets"], found["share"] = len(sets), right / len(sets)
    if ran:
        found["level"] = Level.RIGHT if right == len(sets) else Level.RAN
    if found["level"] is Level.RIGHT:
        found["us"] = _time(program, orders)


def _counting(spec: OpSpec, orders: Orders) -> list[Set]:
    """Those on which the program is judged: other shapes, where its operator says so."""
    dynamic = orders.ports.serves(spec)

    def counts(item: Set) -> bool:
        shapes = {
            port.name: item.shapes[port.position] if not port.target else port.shape
            for port in spec.inputs
        }
        return not item.shaped or (dynamic and serves(spec, shapes))

    return [item for item in orders.sets if counts(item)]


def _taken(case: Case, places: list[int]) -> Case:
    return case.model_copy(update={"inputs": tuple(case.inputs[place] for place in places)})


def _time(program: Program, orders: Orders) -> float | None:
    ports = (*orders.ports.inputs, *orders.ports.outputs)
    return static_us(program, {port.name: port.shape for port in ports}, orders.chip)


def notes_as_data(notes: Iterable[Note]) -> list[dict[str, Any]]:
    """For a line of JSON."""
    return [
        {"code": note.code, "line": note.line, "message": note.message, "seen": note.seen}
        for note in notes
    ]
