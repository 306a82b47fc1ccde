"""PCL's NPUKernelBench: tasks/level<N>/<Category>/<Operator>, levels 1 to 3.

A candidate takes the place of the suite's answer: its operator is built on the twin, the suite's
own binding and class call it, and the suite's rule for the task decides.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from npusmith.bench.model import Brief, Candidate, Entry, Item, Limits, Record
from npusmith.bench.suites import judging, submit, texts
from npusmith.bench.suites.npucases import Task, literal_bytes, read_cases, read_suite
from npusmith.bench.suites.npuprompt import Question, build_prompt
from npusmith.bench.suites.options import SEEDS, SuiteOptions
from npusmith.bench.suites.selection import check_patterns, matches
from npusmith.bench.suites.torchsuite import read_text, refuse_root, write_once
from npusmith.bench.suites.trials import Order
from npusmith.errors import NpusmithError, TwinError
from npusmith.ir.opname import entry_name
from npusmith.task import rules
from npusmith.task.verdict import Trial
from npusmith.twin import bind
from npusmith.twin.cache import cache_root
from npusmith.twin.formats import Kind

RULE = f"{rules.NPUKERNELBENCH}; seed 0"
MODULE = "kernel_gen_ops"  # what the suite's classes import
_HOME = "of_the_suite"  # beside a candidate's files
_ENTRY = ("GM_ADDR workspace", "GM_ADDR workspace, GM_ADDR tiling")
_TOGETHER = 256e6  # bytes of the inputs of cases that are judged at a time


class NpuKernelBench:
    """Static mode: an item for each case. Dynamic mode: an item for each operator."""

    name = "npukernelbench"

    def __init__(self, root: Path, options: SuiteOptions) -> None:
        self.root = Path(root).resolve()
        self.options = options
        # answers alone want no prompt
        wanted = ("tasks",) if options.answered else ("tasks", "kernel_generator", "framework")
        missing = [name for name in wanted if not (self.root / name).is_dir()]
        if missing:
            raise refuse_root(self.root, "PCL's NPUKernelBench", missing)
        read_suite(self.root, answered=False)

    # --- the Protocol

    def chosen(self) -> Iterator[Entry]:
        for task in self._tasks():
            yield Entry(_stem(task), task.category, str(task.level), task.folder)

    def _tasks(self) -> Iterator[Task]:
        options = self.options
        levels = [int(level) for level in options.levels if level.isdecimal()]
        tasks = read_suite(self.root, (), levels, answered=options.answered)
        check_patterns(options.names, map(_names, tasks))
        for task in tasks:
            of_category = not options.categories or task.category in options.categories
            if of_category and matches(options.names, _names(task)):
                yield task

    def items(self) -> Iterator[Item]:
        options = self.options
        for task in self._tasks():
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
            prompt=self._prompt(task, cases),
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
        bind.find_binder()  # once for a machine, and not in a unit's time
        task, cases = self._task(item)
        try:
            placed = self._placed(task, candidate)
        except NpusmithError as error:
            judging.fail(record, f"{error.code}: {error.message}")
            return record
        parts = []
        for batch in self._batches(task, cases):
            plan = self._plan(item, task, batch, limits)
            parts.append(judging.judge(plan, item, placed, limits))
            limits = limits.model_copy(update={"timing": False})  # the first case's time is enough
            if not parts[-1].trials and not parts[-1].skipped:  # it was not built
                parts[-1].trials = [_unbuilt(parts[-1], row["case_id"]) for row in batch]
        if "repairs" in candidate.origin:
            record.provenance["repairs"] = "; ".join(candidate.origin["repairs"])[:500]
        return _joined(record, parts, cases)

    def evaluate_alone(self, item: Item, candidate: Candidate, limits: Limits) -> Record:
        """The record of an operator that is called with what the case's `forward` takes.

        No verdict of the suite's, whose own binding and class would have to call it: its
        references, its rule and the same timing, for operators with ports of their own (a project
        with bindings.json) on an item of one case.
        """
        task, cases = self._task(item)
        rows = [row for row in read_cases(task.folder) if row["case_id"] in cases[:1]]
        plan = self._plan(item, task, rows, limits)
        text = read_text(Path(plan.order.path))  # has no cases, whose tensors hold no parameters
        plan = replace(plan, order=replace(plan.order, text=text), given_class=False)
        return judging.judge(plan, item, candidate, limits)

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
        size = min((literal_bytes(row) for row in rows), default=0)
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

    def _prompt(self, task: Task, cases: Sequence[int]) -> str:
        if self.options.answered:
            return ""
        return build_prompt(self.root, self._question(task, cases), self.options.response)

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
        if row is None:
            return None
        copy = cache_root() / "suites" / "tasks" / item.digest[:24] / f"{_kernel(task)}.py"
        write_once(copy, (_text(task) + _TASK.format(param=_plain_row(row))).encode())
        return copy

    def _batches(self, task: Task, cases: Sequence[int]) -> Iterator[list[dict[str, Any]]]:
        """Rows of cases whose tensors are on the disk at the same time."""
        batch: list[dict[str, Any]] = []
        total = 0.0
        for row in read_cases(task.folder):
            if row.get("case_id") in cases:
                size = literal_bytes(row)
                size = 0 if size > self.options.input_mb * 1e6 else size  # it is skipped
                if batch and total + size > _TOGETHER:
                    yield batch
                    batch, total = [], 0.0
                batch.append(row)
                total += size
        if batch:
            yield batch

    def _plan(
        self, item: Item, task: Task, rows: Sequence[dict[str, Any]], limits: Limits
    ) -> judging.Plan:
        """The reference of these cases, and the suite's rule."""
        first = _first_seed(limits)
        lines = [f"    ({literal_bytes(row)}, {_plain_row(row)})," for row in rows]
        order = Order(
            path=str(self._write_task(item, task, rows[0]["case_id"])),
            text=_text(task) + _CASES.format(rows="\n".join(lines)),
            seed=first, seeds=tuple(range(first, first + max(1, limits.trials))), training=True,
            most_bytes=int(self.options.input_mb * 1e6),
        )  # fmt: skip
        check = {
            "path": str(task.validation / "prepare_inputs.py"), "rows": list(rows),
            "seconds": limits.seconds, "memory_mb": limits.memory_mb,
        }  # fmt: skip
        rule = rules.Named(name="npukernelbench", options=check)
        return judging.Plan(
            order, rule, RULE, profile="npukernelbench", given_class=True,
            eager=self.options.eager,
        )  # fmt: skip

    def _placed(self, task: Task, candidate: Candidate) -> Candidate:
        """The operator project with the suite's own binding and class beside it."""
        op = task.name.split("_")[0]
        binding = read_text(task.validation / "pybind.cpp").replace("aclnnCustomOp", f"aclnn{op}")
        model = _without_model(read_text(task.validation / "module.py"))
        files = {
            **self._files(task, candidate),
            f"{_HOME}/pybind.cpp": binding.replace("custom_pybind_api", entry_name(op)),
            f"{_HOME}/module.py": model,
        }
        whole = {
            "backend": Kind.MSOPGEN.value,
            "sources": [{"path": name, "content": text} for name, text in files.items()],
            "build": {"binding_sources": [f"{_HOME}/pybind.cpp"], "module_name": MODULE},
            "entry": {"model": f"{_HOME}/module.py::ModelNew"},
        }
        update = {"format": "json", "files": {"submission.json": json.dumps(whole)}}
        return candidate.model_copy(update=update)

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
_CASES = """
_rows = [
{rows}
]


def _draw(row):
    def draw(device):
        settings = list(get_init_inputs(dict(row), device=device))
        return settings, list(get_inputs(dict(row), device=device))

    return draw


def get_cases():
    return [(f"case {{row['case_id']}}", size, _draw(row)) for size, row in _rows]
"""


def _text(task: Task) -> str:
    """The suite's class and its inputs, in one text."""
    path = task.validation / "prepare_inputs.py"
    files = [task.validation / "module.py", *([path] if path.is_file() else [])]
    return "\n\n".join(texts.strip_imports(read_text(file)) for file in files) + "\n\n"


def _without_model(text: str) -> str:
    """The suite's file without the reference, unless the other class is made of it."""
    body = ast.parse(text).body
    models = [node for node in body if isinstance(node, ast.ClassDef) and node.name == "Model"]
    rest = (inner for node in body if node not in models for inner in ast.walk(node))
    if any(isinstance(node, ast.Name) and node.id == "Model" for node in rest):
        return text
    lines = text.splitlines(keepends=True)
    for node in models:
        for at in range(node.lineno - 1, node.end_lineno or node.lineno):
            lines[at] = "\n"
    return "".join(lines)


def _unbuilt(record: Record, case: object) -> Trial:
    name = f"case {case}"
    return Trial(name=name, kind="case", case=name, compiled=False, message=record.error)


def _joined(record: Record, parts: Sequence[Record], cases: Sequence[int]) -> Record:
    """The record of all cases, of those of a few."""
    first, *rest = parts
    for part in rest:
        first.messages = list(dict.fromkeys([*first.messages, *part.messages]))
        first.cheating = list(dict.fromkeys([*first.cheating, *part.cheating]))
        for name, seconds in part.seconds.items():
            first.seconds[name] = round(first.seconds.get(name, 0) + seconds, 3)
    first.provenance |= record.provenance
    if len(parts) > 1 and all(part.trials or part.skipped for part in parts):
        first.weak_task = sorted(set.intersection(*(set(part.weak_task) for part in parts)))
        extra = dict(pair for part in parts for pair in part.findings.items())
        judging.fold(first, [note for part in parts for note in part.trials])
        first.findings = extra | first.findings
    if len(cases) > 1 and first.time_us is not None:
        first.time_note = f"case {cases[0]} of {len(cases)}; {first.time_note}".strip("; ")
    return first


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


def _names(task: Task) -> tuple[str, ...]:
    return _stem(task), task.name, task.category, f"{task.category}/{task.name}"


def _operator(task: Task) -> str:
    return task.name.split("_")[0]


def _kernel(task: Task) -> str:
    return entry_name(_operator(task))


def _optional(path: Path) -> str:
    return read_text(path) if path.is_file() else ""
