"""NPUKernelBench's rule for the cases of a task: the common one, or the task's own in a box.

The task's own `custom_check_precision` is the checkout's Python. `main()` is the boxed process that
calls it, with orders on stdin; it leaves what it says of each trial in a file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from npusmith.errors import NpusmithError
from npusmith.sandbox.box import Policy
from npusmith.sandbox.folder import temporary_folder
from npusmith.task import files, rules, stubs
from npusmith.task.trials import run_python
from npusmith.task.user import load_file
from npusmith.task.weighing import Pair
from npusmith.task.wire import Record, ValueFiles

_CHECK = "custom_check_precision"
_SAID = "said.json"
_ANY_ERROR = (Exception,)


class _Asked(Record):
    """One case's row, and what both sides gave."""

    param: dict[str, Any]
    wanted: ValueFiles
    found: ValueFiles


class _Orders(Record):
    text: str
    folder: str
    trials: tuple[_Asked, ...]


def npu_rule(
    path: str, rows: Sequence[dict[str, Any]], seconds: float, memory_mb: float
) -> Callable[[Sequence[Pair]], list[str]]:
    """The rule of the task whose inputs are prepared by the file at `path`, for these cases."""
    text = Path(path).read_text(encoding="utf-8") if Path(path).is_file() else ""

    def check(pairs: Sequence[Pair]) -> list[str]:
        if not pairs or _CHECK not in text:
            return [rules.apply(rules.npukernelbench, pair) for pair in pairs]
        with temporary_folder("npusmith-check-") as folder:
            return _boxed(text, rows, pairs, folder.resolve(), seconds, memory_mb)

    return check


def _said(rule: Callable[..., str], *values: Any) -> str:
    try:
        return rule(*values)
    except _ANY_ERROR as error:
        return f"{type(error).__name__}: {error}"[:300]


def _value(pair: Pair) -> Any:
    """What the candidate gave; words, which no rule takes, where that is no value."""
    try:
        return files.value(pair.found)
    except _ANY_ERROR as error:
        return f"{type(error).__name__}: {error}"


def _boxed(
    text: str,
    rows: Sequence[dict[str, Any]],
    pairs: Sequence[Pair],
    folder: Path,
    seconds: float,
    memory_mb: float,
) -> list[str]:
    asked = []
    for at, pair in enumerate(pairs):
        trial = pair.trial
        wanted = files.get(trial.wanted, trial.folder)
        asked.append(
            _Asked(
                param=rows[trial.record.case],
                wanted=files.put(wanted, folder, f"want{at}"),
                found=files.put(_value(pair), folder, f"got{at}"),
            )
        )
    orders = _Orders(text=text, folder=str(folder), trials=tuple(asked))
    policy = Policy(
        write=(folder,), read=(), seconds=seconds * len(pairs) + 30,
        memory_bytes=int(memory_mb * (1 << 20)), file_bytes=1 << 20,
    )  # fmt: skip
    run_python(__name__, orders.model_dump_json(), policy, folder)
    data = files.read_plain(folder / _SAID, 1 << 20)
    if not data:
        raise NpusmithError("task-result", "the task's own rule did not come to its end")
    said = [str(words) for words in json.loads(data)]
    return said + ["the task's own rule says nothing"] * (len(pairs) - len(said))


def main() -> None:
    orders = _Orders.model_validate_json(sys.stdin.buffer.read())
    stubs.install()
    folder = Path(orders.folder)
    check = getattr(load_file("prepare_inputs.py", orders.text), _CHECK)

    def rule(param: dict[str, Any], wanted: Any, found: Any) -> str:
        return "" if check(param, wanted, found)[0] else "the task's own rule says no"

    said = []
    for trial in orders.trials:
        wanted, found = (files.get(item, folder) for item in (trial.wanted, trial.found))
        said.append(_said(rule, trial.param, wanted, found))
    (folder / _SAID).write_text(json.dumps(said), encoding="utf-8")
