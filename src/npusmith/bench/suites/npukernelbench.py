"""PCL's NPUKernelBench: tasks/level<N>/<Category>/<Operator>, levels 1 to 3.

A candidate takes the place of the suite's answer: its operator is built on the twin, the suite's
own binding calls it, and the suite's rule for the task decides. conformance/ does all of that.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from npusmith.bench.model import Brief, Candidate, Item, Limits, Record, TrialNote
from npusmith.bench.suites import judging, submit, texts
from npusmith.bench.suites.npuprompt import Question, build_prompt
from npusmith.bench.suites.options import SEEDS, SuiteOptions
from npusmith.bench.suites.times import add_times, wants_time
from npusmith.bench.suites.torchsuite import read_text, refuse_root, write_once
from npusmith.bench.suites.watch import Ended, run_watched
from npusmith.conformance.child import Param, _literal_bytes
from npusmith.conformance.rows import Row
from npusmith.conformance.suite import Task, read_cases, read_suite
from npusmith.errors import NpusmithError, TwinError
from npusmith.ir.opname import entry_name
from npusmith.sandbox.folder import remove_tree
from npusmith.target.chips import find_chip
from npusmith.task.verdict import Rung, right_rung
from npusmith.twin import bind
from npusmith.twin.cache import cache_root
from npusmith.twin.toolchain import find_toolchain

RULE = "absolute and relative error above 1e-3, nothing infinite, or the task's own rule; seed 0"
_CHEATS = ("cheat-compute", "cheat-binding")
_ENTRY = ("GM_ADDR workspace", "GM_ADDR workspace, GM_ADDR tiling")
_KEPT = 12


class NpuKernelBench:
    """Static mode: an item for each case. Dynamic mode: an item for each operator."""

    name = "npukernelbench"

    def __init__(self, root: Path, options: SuiteOptions) -> None:
        self.root = Path(root).resolve()
        self.options = options
        wanted = ("tasks", "kernel_generator", "framework")
        missing = [name for name in wanted if not (self.root / name).is_dir()]
        if missing:
            raise refuse_root(self.root, "PCL's NPUKernelBench", missing)
        read_suite(self.root, answered=False)

    # --- the Protocol

    def items(self) -> Iterator[Item]:
        options = self.options
        levels = [int(level) for level in options.levels if level.isdecimal()]
        for task in read_suite(self.root, (), levels, answered=False):
            if options.categories and task.category not in options.categories:
                continue
            if options.names and not {task.name, _stem(task)} & set(options.names):
                continue
            cases = task.cases[: options.cases or None]
            if options.shapes == "dynamic":
                yield self._item(task, cases)
            else:
                yield from (self._item(task, [case]) for case in cases)

    def brief(self, item: Item) -> Brief:
        task, cases = self._task(item)
        reference = read_text(task.validation / "module.py")
        description = _optional(task.folder / "api_desc.md")
        return Brief(
            item=item,
            reference=reference,
            description=description,
            prompt=build_prompt(self.root, self._question(task, cases), self.options.response),
            path=self._write_task(item, task, cases[0]),
            operator=_operator(task),
            formats=(self.options.response, "project"),
        )

    def evaluate(self, item: Item, candidate: Candidate, limits: Limits) -> Record:
        """The record of one unit: the candidate in the place of answer/0."""
        record = judging.start_record(self.name, item, candidate, limits)
        first = _first_seed(limits)
        record.provenance |= {"rule": RULE, "seeds": f"{first} to {first + limits.trials - 1}"}
        if item.skipped:
            record.skipped = item.skipped
            return record
        if candidate.refusal:
            return judging.refused(record, candidate)
        find_toolchain(find_chip(limits.chip))  # once for a machine, and not in a unit's time
        bind.find_binder()
        work = Path(tempfile.mkdtemp(prefix="npusmith-unit-")).resolve()
        try:
            self._judge(item, candidate, limits, record, work)
        except NpusmithError as error:
            judging.fail(record, f"{error.code}: {error.message}")
        finally:
            remove_tree(work)
        return record

    def export(self, item: Item, candidate: Candidate, folder: Path, chip: str) -> None:
        """Write the candidate as a ready operator project; `folder` is new."""
        submit.write_tree(self._files(self._task(item)[0], candidate), folder)

    # --- parts

    def _task(self, item: Item) -> tuple[Task, list[int]]:
        level, category, name = item.source.split("/")[1:4]
        folder = self.root / item.source
        task = read_suite(self.root, [f"{category}/{name}"], [int(level[5:])], answered=False)[0]
        if item.name.count("/") == 3:
            return task, [int(item.name.rpartition("/")[2].removeprefix("case"))]
        assert folder == task.folder
        return task, list(task.cases[: self.options.cases or None])

    def _item(self, task: Task, cases: Sequence[int]) -> Item:
        dynamic = self.options.shapes == "dynamic"
        name = _stem(task) if dynamic else f"{_stem(task)}/case{cases[0]}"
        rows, why = self._rows(task, cases)
        kinds = list(dict.fromkeys(str(row["dtype"]) for row in rows if "dtype" in row))
        return Item(
            suite=self.name, name=name, category=task.category, level=str(task.level),
            dtype=kinds[0] if len(kinds) == 1 else ("mixed" if kinds else ""),
            source=task.folder.relative_to(self.root).as_posix(),
            digest=self._digest(task, cases), skipped=why,
        )  # fmt: skip

    def _rows(self, task: Task, cases: Sequence[int]) -> tuple[list[dict[str, Any]], str]:
        """The rows of these cases, and why the item cannot be evaluated."""
        try:
            rows = [row for row in read_cases(task.folder) if row.get("case_id") in cases]
        except (OSError, ValueError) as error:
            return [], f"test_cases.csv cannot be read: {error}"[:200]
        for name in ("module.py", "prepare_inputs.py", "pybind.cpp"):
            path = task.validation / name
            if not path.is_file() and name != "prepare_inputs.py":
                return rows, f"validation/{name} is missing"
            if path.suffix == ".py" and path.is_file():
                text = path.read_text(encoding="utf-8", errors="replace")
                found = texts.read_facts(text, name).why
                if found and "scipy" not in found:  # conformance/stubs.py has what is used of it
                    return rows, found
        size = max((_literal_bytes(Param(row)) for row in rows), default=0)
        if size > self.options.input_mb * 1e6:
            return rows, f"{size / 1e6:.0f} MB of inputs"
        return rows, ""

    def _digest(self, task: Task, cases: Sequence[int]) -> str:
        total = hashlib.sha256()
        for path in sorted(task.validation.glob("*")):
            if path.is_file():
                total.update(f"{path.name}\0".encode() + path.read_bytes())
        for path in sorted((task.folder / "question").rglob("*.cpp")):
            total.update(path.read_bytes())
        options = (self.options.shapes, self.options.response, *map(str, cases))
        total.update(json.dumps(options).encode())
        return total.hexdigest()

    def _question(self, task: Task, cases: Sequence[int]) -> Question:
        kernel, static = _kernel(task), self.options.shapes == "static"
        rows = [row for row in read_cases(task.folder) if not static or row["case_id"] in cases]
        return Question(
            operator=_operator(task),
            kernel=kernel,
            description=_optional(task.folder / "api_desc.md"),
            kernel_text=_optional(task.folder / "question" / "op_kernel" / f"{kernel}.cpp"),
            host_text=_optional(task.folder / "question" / "op_host" / f"{kernel}.cpp"),
            cases=tuple(rows),
            static=static,
        )

    def _write_task(self, item: Item, task: Task, case: int) -> Path | None:
        """The first case as a task in KernelBench's format, for writers that capture it."""
        row = next((row for row in read_cases(task.folder) if row.get("case_id") == case), None)
        path = task.validation / "prepare_inputs.py"
        if row is None:
            return None
        parts = [
            texts.strip_imports(read_text(task.validation / "module.py")),
            texts.strip_imports(read_text(path)) if path.is_file() else "",
            _TASK.format(param=_plain_row(row)),
        ]
        copy = cache_root() / "suites" / "tasks" / item.digest[:24] / f"{_kernel(task)}.py"
        write_once(copy, "\n\n".join(parts).encode())
        return copy

    def _judge(
        self, item: Item, candidate: Candidate, limits: Limits, record: Record, work: Path
    ) -> None:
        task, cases = self._task(item)
        orders = {
            "root": str(self.root),
            "task": f"{task.category}/{task.name}",
            "level": task.level,
            "cases": cases,
            "most_mb": self.options.input_mb,
            "seconds": limits.seconds,
            "memory_mb": limits.memory_mb,
            "seeds": max(1, limits.trials),
            "seed": _first_seed(limits),
            "chip": limits.chip,
            "nulls": True,
        }
        files = self._files(task, candidate)
        ended = _start(files, orders, work)
        rows = [Row.model_validate(row) for row in ended.reply.get("rows", ())]
        _fill(record, rows, len(cases))
        if ended.error or "error" in ended.reply:
            record.seconds.setdefault("run", ended.seconds)
            said = ended.reply.get("error", {})
            judging.fail(record, ended.error or f"{said['code']}: {said['message']}")
        if wants_time(record, limits):
            self._time(item, files, orders, record, limits, work)

    def _time(
        self,
        item: Item,
        files: dict[str, str],
        orders: dict[str, Any],
        record: Record,
        limits: Limits,
        work: Path,
    ) -> None:
        """The first case once more, through the suite's binding, with a log of each call."""
        task, cases = self._task(item)
        once = {**orders, "cases": cases[:1], "seeds": 1, "nulls": False}

        def start(folder: Path) -> Ended:
            logs = folder.with_name("logs")
            logs.mkdir()
            return _start(files, {**once, "logs": str(logs)}, folder)

        remove_tree(work)  # what the judged run left; the disk may be small
        work.mkdir()
        path = self._write_task(item, task, cases[0])
        add_times(record, limits, work / "time", task=path, inputs=None, start=start)
        if len(cases) > 1 and record.time_us is not None:
            record.time_note = f"case {cases[0]} of {len(cases)}; {record.time_note}".strip("; ")

    def _files(self, task: Task, candidate: Candidate) -> dict[str, str]:
        """The operator project that a response stands for, by the suite's own reading."""
        kernel = _kernel(task)
        host, device = f"op_host/{kernel}.cpp", f"op_kernel/{kernel}.cpp"
        if candidate.format == "project":
            return candidate.files
        text = submit.only_text(candidate)
        if candidate.format == "kernel_only":
            found = _between(text, r"<kernel_impl>(.*?)</kernel_impl>", "block <kernel_impl>")
            question = task.folder / "question" / "op_host" / f"{kernel}.cpp"
            return {host: read_text(question), device: found.replace(*_ENTRY)}
        if candidate.format == "full":
            names = (f"op_host/{kernel}_tiling.h", host, device)
            return {name: _between(text, _SECTION.format(re.escape(name)), name) for name in names}
        raise TwinError(
            "format-part", f"this suite's items take no candidate in the format {candidate.format}",
            seen=candidate.format,
        )  # fmt: skip


def _start(files: dict[str, str], orders: dict[str, Any], folder: Path) -> Ended:
    """The project in the place of the answer, in a watched process."""
    submit.write_tree(files, folder / "project")
    seconds = float(orders["seconds"]) * len(orders["cases"]) + 60
    return run_watched("answer", orders, folder, seconds=seconds, disk_bytes=judging.DISK_BYTES)


def _first_seed(limits: Limits) -> int:
    """The suite's own seed 0, shifted as far as the run's seed is from its default."""
    return (limits.seed - Limits().seed) % SEEDS


_SECTION = r"================== {} ==================\n```cpp\n(.*?)\n```"
_FENCE = re.compile(r"```cpp\s*(.*?)\s*```", re.DOTALL)
_TASK = """
_param = {param}
_prepare_inputs, _prepare_init = get_inputs, get_init_inputs


def get_inputs():
    return list(_prepare_inputs(_param, device="cpu"))


def get_init_inputs():
    return list(_prepare_init(_param, device="cpu"))
"""


def _between(text: str, pattern: str, what: str) -> str:
    found = re.search(pattern, text, re.DOTALL)
    inside = found.group(1).strip() if found else ""
    fence = _FENCE.search(inside)
    code = fence.group(1).strip() if fence else inside
    if not code:
        raise TwinError("format-part", f"the response has no {what}", seen=text[:80])
    return code


def _plain_row(row: dict[str, Any]) -> str:
    """A row as Python text; a missing cell is no number that `repr` could write."""
    shown = {name: "float('nan')" if value != value else repr(value) for name, value in row.items()}
    return "{" + ", ".join(f"{name!r}: {value}" for name, value in shown.items()) + "}"


def _stem(task: Task) -> str:
    return f"level{task.level}/{task.category}/{task.name}"


def _operator(task: Task) -> str:
    return task.name.split("_")[0]


def _kernel(task: Task) -> str:
    return entry_name(_operator(task))


def _optional(path: Path) -> str:
    return read_text(path) if path.is_file() else ""


def _fill(record: Record, rows: Sequence[Row], wanted: int) -> None:
    """What the rows of all cases say together."""
    if rows and all(row.skipped for row in rows):
        record.skipped = rows[0].skipped
        return
    ran = [row for row in rows if not row.skipped]
    whole = len(rows) == wanted and len(ran) == len(rows)
    record.compiled = bool(ran) and all(row.compiled for row in ran)
    record.official = whole and all(row.official is True for row in ran)
    record.strict = whole and all(row.strict is True for row in ran)
    record.precise = whole and all(row.precise is True for row in ran)
    record.clean = whole and all(row.clean is True for row in ran)
    codes = [code for row in ran for code in (*row.findings, *row.warnings)]
    record.findings = {code: codes.count(code) for code in dict.fromkeys(codes)}
    said = (text for row in ran for text in row.said)
    record.messages = list(dict.fromkeys(said))[:_KEPT]
    record.cheating = [code for code in record.findings if code in _CHEATS]
    record.weak_task = sorted(set.intersection(*(set(row.weak) for row in ran))) if ran else []
    record.accuracy = round(sum(row.official is True for row in ran) / wanted, 6)
    for row in ran:
        for stage, seconds in row.stages.items():
            record.seconds[stage] = round(record.seconds.get(stage, 0) + seconds, 3)
    notes = [
        TrialNote(
            name=f"case {row.case}", passed=row.official is True,
            message=(row.skipped or row.error)[:400],
        )
        for row in rows
    ]  # fmt: skip
    record.trials = sorted(notes, key=lambda note: note.passed)[:_KEPT]
    failed = [f"case {row.case}: {row.error}" for row in ran if row.error and not row.strict]
    record.error = "; ".join(failed[:3])[:700]
    if record.compiled:
        ended = whole and all("compare" in row.stages for row in ran)
        record.rung = (Rung.RAN if ended else Rung.COMPILED).value
        if record.strict:
            record.rung = right_rung(record.findings).value
