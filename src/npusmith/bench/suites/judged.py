"""The watched process that judges one candidate on its item's references, as a task's are judged.

`main()` reads orders from standard input and leaves a Verdict. The suite's rule comes as data, and
is one part of the criterion; what runs of the candidate is in boxes of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from npusmith.bench.suites.npucheck import npu_rule
from npusmith.bench.suites.orders import Orders
from npusmith.bench.suites.place import slot
from npusmith.bench.suites.trials import task_of
from npusmith.bench.suites.watch import leave_reply, read_orders, telling_defects
from npusmith.errors import NpusmithError, TwinError
from npusmith.lower import read_bindings
from npusmith.target.chips import find_chip
from npusmith.task import rules
from npusmith.task.calls import Calls, keep_logs
from npusmith.task.composition import all_outputs_from_operators, left_nodes, read_composition
from npusmith.task.graph import Graph
from npusmith.task.isolated.attempt import Limits
from npusmith.task.judge import empty_verdict, judge, open_operator
from npusmith.task.judge_composition import composed_submission, data_beside, judge_composition
from npusmith.task.judge_options import JudgeOptions
from npusmith.task.module import ClassOptions, copy_beside, judge_module
from npusmith.task.prepared import Prepared
from npusmith.task.recording import Recording
from npusmith.task.rules import Rule
from npusmith.task.trials import reopen
from npusmith.task.verdict import Verdict
from npusmith.task.weighing import Criterion, Pair
from npusmith.twin.formats import Submission, read_submission
from npusmith.twin.module import build_module

_STRICT = "strict"


def main() -> None:
    orders = read_orders()
    with telling_defects(Path(orders.folder)):
        leave_reply(Path(orders.folder), _judge(orders, open_prepared(orders)))


def _judge(orders: Orders, prepared: Prepared) -> Verdict:
    try:
        return (_judge_class if orders.submission else _judge_operator)(orders, prepared)
    except NpusmithError as error:
        verdict = empty_verdict(Path(orders.place), prepared, find_chip(orders.chip), _STRICT)
        verdict.error = error.record()
        return verdict


def open_prepared(orders: Orders) -> Prepared:
    """The item's references, which the parent has made."""
    found = reopen(task_of(orders.path, orders.text), Path(orders.given))
    if found is None:
        raise TwinError("cache-unusable", "the references were removed while they were read")
    return found


def _judge_operator(orders: Orders, prepared: Prepared) -> Verdict:
    project = Path(orders.place) / "project"
    if (composition := _composition(project)) is not None:
        return _judge_composed(orders, prepared, project, composition)
    return judge(
        project,
        prepared,
        find_chip(orders.chip),
        _STRICT,
        spec=read_bindings(project),
        options=JudgeOptions(
            dynamic=orders.rule is None,
            stop=orders.stop,
            seconds=orders.seconds,
            criterion=_criterion(orders),
            jobs=1,
        ),
    )


def _composition(project: Path) -> Graph | None:
    """How several operators make up a module; refused where something else computes a part."""
    composition = read_composition(project)
    if composition is None:
        return None
    left = [node.op for node in left_nodes(composition)]
    if left or not all_outputs_from_operators(composition):
        seen = ", ".join(dict.fromkeys(left)) or "an output that no operator gives"
        raise NpusmithError(
            "left-to-pytorch", "a part of the module is no operator of the project",
            seen=seen[:300], legal="operators, and views of what they give",
        )  # fmt: skip
    return composition


def _judge_composed(
    orders: Orders, prepared: Prepared, project: Path, composition: Graph
) -> Verdict:
    with slot() as work:
        return judge_composition(
            project,
            composition,
            prepared,
            find_chip(orders.chip),
            _STRICT,
            JudgeOptions(dynamic=False, stop=orders.stop, criterion=_criterion(orders)),
            ClassOptions(limits=_limits(orders), work=work, folder=Path(orders.folder) / "run"),
        )


def _judge_class(orders: Orders, prepared: Prepared) -> Verdict:
    submission = read_submission(Path(orders.place) / orders.submission)
    with slot() as work:
        return judge_module(
            submission,
            prepared,
            find_chip(orders.chip),
            _STRICT,
            options=JudgeOptions(
                dynamic=False,
                stop=orders.stop and not orders.given_class,
                criterion=_criterion(orders),
            ),
            how=ClassOptions(
                limits=_limits(orders),
                given=orders.given_class,
                work=work,
                folder=Path(orders.folder) / "run",
            ),
        )


def _limits(orders: Orders) -> Limits:
    return Limits(orders.whole_seconds, int(orders.memory_mb * (1 << 20)), orders.disk_bytes)


def record_first(orders: Orders, folder: Path) -> list[Path]:
    """Call the candidate on the first set of inputs alone; the logs of its launches, in order."""
    prepared, chip = open_prepared(orders), find_chip(orders.chip)
    first = next(item for item in prepared.trials if not item.skipped)
    prepared = replace(prepared, trials=(first,))
    recording = Recording(folder / "launch", orders.sample)
    submission, given, beside = _class_of(orders, prepared)
    if submission is not None:
        with slot() as work:
            built = build_module(submission, chip, work, ahead=not given)
            copy_beside(built, beside)
            calls = Calls(
                built, prepared, (first,), chip, folder / "run", _limits(orders), folder / "logs",
                given,
            )  # fmt: skip
            done = calls.all()[0].error is None
        keep_logs(folder / "logs", folder / "run", recording, alone=True)
    else:
        project = Path(orders.place) / "project"
        operator = open_operator(
            project, prepared, chip, read_bindings(project), seconds=orders.seconds
        )
        done = operator.call(first, **recording.options()).completed
    if not done:
        raise TwinError("timing-log", "the recorded run did not come to its end")
    return recording.logs()


def _class_of(orders: Orders, prepared: Prepared) -> tuple[Submission | None, bool, list[Path]]:
    """The class that calls operators, whether it is not the candidate's, and what it reads.

    None where one operator is the module.
    """
    if orders.submission:
        return read_submission(Path(orders.place) / orders.submission), orders.given_class, []
    project = Path(orders.place) / "project"
    if (composition := _composition(project)) is None:
        return None, False, []
    task = prepared.task
    return composed_submission(project, composition, task), True, data_beside(task)


def _criterion(orders: Orders) -> Criterion:
    """The suite's rule, and what we want besides."""
    if orders.rule is None:
        return Criterion(_STRICT)
    own = "path" in orders.rule.options  # the task has a rule of its own
    check = npu_rule(**orders.rule.options) if own else partial(_each, rules.find(orders.rule))
    return Criterion(
        _STRICT, check, ours=orders.ours, lenient=orders.given_class,
        undefined=orders.rule.name == "narrow",
    )  # fmt: skip


def _each(rule: Rule, pairs: Sequence[Pair]) -> list[str]:
    return [rules.apply(rule, pair) for pair in pairs]
