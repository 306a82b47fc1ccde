"""Random modules against PyTorch: does the writer give right programs, whatever it is given?

    python runs/random_modules.py [--count 500] [--seed 1] [--jobs 1] [--ops F,G] [--json FILE]
                                  [--twin 0.1] [--search 8]
    python runs/random_modules.py --only SEED:NUMBER          one module, and its source text

A module is made from the seed and its number alone (train/modules/draw.py) out of the operations
of train/modules/ops.py. It is captured, written as a tile program and checked; the program is
interpreted on the captured shapes and on others that the module takes as the same graph and that
the operator accepts. Outputs are judged as `generate` judges them (strict); what no operation has
rounded has to be equal. A chip with 4 cores and a small buffer makes tiles short. `--twin`: a share
of the modules, by seed and number, goes through g++ and the sanitizer too, on the twin of the 910B2
(train/modules/on_twin.py). `--search`: so many schedules of each are tried, with times that are
drawn from the text of a program, so that any schedule may be the one that is judged; a part that
the search cannot write another time is a crash.

right     every output, at all shapes tried
wrong     an output differs, the program is illegal, the interpreter met something undefined, or the
          sanitizer found something
refused   the writer says that it cannot write the module (PlanError), by code and operation
crash     any other exception
slow      the writer took more than SLOW seconds of processor time, or the interpreter more than
          PATIENCE (then other shapes are left out)
unfit     PyTorch itself cannot export or run the module: nothing is said about the writer

What is wrong or crashes is cut down to the first variable that shows it, and printed. `--ops`
keeps the modules that were drawn from these families alone. Ends with 1 when anything is wrong or
crashed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count, islice
from pathlib import Path

import torch

from npusmith.errors import LangError, PlanError, TaskError
from npusmith.ir.nodes import Program
from npusmith.ir.text import show
from npusmith.plan import Plan, write
from npusmith.plan.search import Times, search_plan
from npusmith.target.chips import Chip
from npusmith.task.export import warm_up
from npusmith.task.graph import Graph
from npusmith.train.modules.case import (
    CHIP,
    PATIENCE,
    SLOW,
    WORKER_BYTES,
    Case,
    Crash,
    Late,
    Unfit,
    Wrong,
    limited,
    ours,
)
from npusmith.train.modules.draw import Module, draw, families_of
from npusmith.train.modules.on_twin import is_chosen
from npusmith.train.modules.ops import FAMILIES, TABLE

OUTCOMES = ("right", "wrong", "refused", "crash", "slow", "unfit")
BAD = ("wrong", "crash")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one module."""

    id: str
    outcome: str
    cause: str = ""  # refused: code and operation; wrong and crash: what was seen first
    detail: str = ""
    sets: int = 0  # shapes at which its outputs were compared
    on_twin: bool = False  # on the twin as well
    source: str = ""
    least: str = ""  # the source that is left when it is cut down


# ------------------------------------------------------------------------------------- one module


@dataclass(frozen=True, slots=True)
class How:
    """How modules are judged: the share that goes to the twin, and schedules that are tried."""

    share: float = 0.0
    search: int = 0


def judge(module: Module, how: How = How()) -> Outcome:
    """The outcome of one module; never raises."""
    on_twin = is_chosen(module.seed, module.number, how.share)
    made = _outcome(module, on_twin, how.search)
    least = ""
    if made.outcome in BAD:
        least = cut_down(module, made.outcome, on_twin, how.search).source()
    return replace(made, source=module.source(), least=least, on_twin=on_twin)


def cut_down(module: Module, outcome: str, on_twin: bool, search: int = 0) -> Module:
    """The module of the first variable that ends in the same way, or of as few outputs as do."""
    targets = [name for line in module.lines for name in line.targets]
    for name in targets:
        if _ends(module.only((name,)), outcome, on_twin, search):
            return module.only((name,))
    for name in module.outputs:
        fewer = module.only(tuple(item for item in module.outputs if item != name))
        if _ends(fewer, outcome, on_twin, search):
            module = fewer
    return module


def _ends(module: Module, outcome: str, on_twin: bool, search: int) -> bool:
    usable = bool(module.inputs and module.outputs)
    return usable and _outcome(module, on_twin, search).outcome == outcome


def _drawn(plan: Plan, graph: Graph, chip: Chip) -> Times:
    """Times by the text of a program: without an order, and the same each time."""

    def time(program: Program) -> tuple[float, float]:
        drawn = 1.0 + zlib.crc32(show(program).encode()) % 1000
        return drawn, drawn

    return time


def _searched(plan: Plan, graph: Graph, budget: int) -> Plan:
    better, found = search_plan(plan, graph, "random_custom", CHIP, budget, _drawn)
    if refused := [trial.why for trial in found.trials if trial.why]:
        raise Crash(f"the search: {refused[0]}")
    return better


def _outcome(module: Module, on_twin: bool, search: int = 0) -> Outcome:
    try:
        case = Case(module)
    except TaskError as error:
        return Outcome(module.id, "unfit", error.code, error.message)
    start, plan = time.process_time(), None
    try:
        with limited(PATIENCE):
            plan = ours(lambda: write(case.captured.graph, "random_custom", CHIP))
        slow = time.process_time() - start > SLOW
        if search:
            plan = ours(lambda: _searched(plan, case.captured.graph, search))
        sets = case.check(plan, on_twin)
    except PlanError as error:
        if time.process_time() - start > SLOW:
            return Outcome(module.id, "slow", f"refused after more than {SLOW:.0f} s")
        return Outcome(module.id, "refused", f"{error.code} {_operation(error)}", error.message)
    except Wrong as error:
        return Outcome(module.id, "wrong", str(error).partition("\n")[0], str(error))
    except Unfit as error:
        return Outcome(module.id, "unfit", "reference", str(error))
    except (Crash, LangError) as error:
        return Outcome(module.id, "crash", str(error), "".join(traceback.format_exception(error)))
    except Late:
        doing = "interpreted" if plan else "being written"
        return Outcome(module.id, "slow", f"{doing} for more than {PATIENCE:.0f} s")
    if slow:
        return Outcome(module.id, "slow", f"written after more than {SLOW:.0f} s", sets=sets)
    return Outcome(module.id, "right", sets=sets)


def _operation(error: PlanError) -> str:
    word = error.message.partition(" ")[0]
    return word if word.startswith("aten.") else error.message[:60]


# ---------------------------------------------------------------------------------------- all of it


def modules(seed: int, families: Sequence[str]) -> Iterator[Module]:
    """Those of that seed which were drawn from these families alone."""
    chosen = (n for n in count() if set(families_of(seed, n, TABLE)) <= set(families))
    return (draw(seed, number, TABLE) for number in chosen)


def run(
    seed: int, wanted: int, families: Sequence[str], jobs: int = 1, how: How = How()
) -> Iterator[Outcome]:
    """Outcomes in the order of the numbers."""
    chosen = islice(modules(seed, families), wanted)
    judged = partial(judge, how=how)
    if jobs == 1:
        yield from map(judged, chosen)
        return
    with ProcessPoolExecutor(jobs, initializer=_alone) as pool:
        yield from pool.map(judged, chosen, chunksize=4)


def _alone() -> None:
    # A module that wants more than its worker may have is a crash of its own, not of the whole run.
    resource.setrlimit(resource.RLIMIT_AS, (WORKER_BYTES, WORKER_BYTES))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of PyTorch, of rows that are too short for a variance
    warm_up()


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many of each outcome, and the causes by number."""
    total = Counter(item.outcome for item in outcomes)
    every = max(len(outcomes), 1)
    lines = [f"{name:8} {total[name]:5} {total[name] / every:6.1%}" for name in OUTCOMES]
    lines.append(f"{'judged at other shapes too':26} {sum(item.sets > 1 for item in outcomes)}")
    judged = [item for item in outcomes if item.sets or item.outcome in BAD]
    lines.append(f"{'judged on the twin too':26} {sum(item.on_twin for item in judged)}")
    for name in ("refused", "slow", "unfit"):
        causes = Counter(item.cause for item in outcomes if item.outcome == name)
        lines += [f"{name}: {cause}  {times}" for cause, times in causes.most_common()]
    return "\n".join(lines)


def shown(item: Outcome) -> str:
    """A wrong or crashed module, as an issue wants it."""
    return f"--- {item.id} {item.outcome}: {item.cause}\n{item.detail}\n\n{item.least}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", metavar="SEED:NUMBER")
    parser.add_argument("--ops", default=",".join(FAMILIES), help=", ".join(FAMILIES))
    parser.add_argument(
        "--twin", type=float, default=0.0, metavar="SHARE", help="of the modules, on the twin too"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="one outcome a line, as they come"
    )
    parser.add_argument("--search", type=int, default=0, metavar="N", help="schedules of each")
    args = parser.parse_args()
    how = How(args.twin, args.search)
    families = args.ops.split(",")
    if unknown := set(families) - set(FAMILIES):
        parser.error(f"no families: {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    _alone()
    outcomes = []
    if args.only:
        seed, _, number = args.only.partition(":")
        module = draw(int(seed), int(number), TABLE)
        print(module.source())
        results: Iterator[Outcome] = iter([judge(module, how)])
    else:
        results = run(args.seed, args.count, families, args.jobs, how)
    with (args.json or Path(os.devnull)).open("w", encoding="utf-8") as lines:
        for item in results:
            outcomes.append(item)
            print(json.dumps(asdict(item)), file=lines, flush=True)
            if item.outcome in BAD:
                print(shown(item), flush=True)
    print(summary(outcomes))
    return int(any(item.outcome in BAD for item in outcomes))


if __name__ == "__main__":
    sys.exit(main())
