"""Runs the reference answers of a checkout of PCL's NPUKernelBench on the twin.

`run(root, ...)`: for each task its binding is compiled here; reference and answer then run on every
case in a boxed child, whose calls of the operator build and run it in a box of their own. A child
that dies takes one case with it, the next one goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import npusmith
from npusmith.conformance.repairs import repair
from npusmith.conformance.rows import Row, RowFile
from npusmith.conformance.suite import Task, read_suite
from npusmith.errors import NpusmithError
from npusmith.ir.opname import entry_name
from npusmith.sandbox.box import Boxed, Policy, run_boxed
from npusmith.sandbox.folder import remove_tree
from npusmith.target.chips import DEFAULT_CHIP, find_chip
from npusmith.twin import bind, cheating, read_project
from npusmith.twin.cache import cache_root
from npusmith.twin.project import read_text
from npusmith.twin.toolchain import find_toolchain

MODULE = "kernel_gen_ops"
_START = "from npusmith.conformance.child import main; main()"
_KEPT = 12  # findings of a case in words
_POLL = 0.2  # seconds between two looks at what a child has left
_NOT_BUILT = ("compile-", "project-", "tiling-", "dtypes-", "device-cpp", "kind-")


@dataclass(frozen=True, slots=True)
class Options:
    """What to run and how much of the machine it may take."""

    every_case: bool = False
    names: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()
    jobs: int = 0  # 0: one for each CPU
    most_mb: float = 256
    case_seconds: float = 120
    seeds: int = 1
    rows: Path | None = None
    resume: bool = False
    memory_mb: float = 8192
    nulls: bool = False  # name the do-nothing kernels that would pass, too
    chip: str = DEFAULT_CHIP
    seed: int = 0  # the first one
    logs: Path | None = None  # a folder for the logs of the operator's calls


Watch = Callable[[Row, int, int], None]  # a row, how many are done, how many there are


def run(root: Path, options: Options, watch: Watch | None = None) -> list[Row]:
    """Run what `options` name; the rows of earlier runs are among those returned on resume."""
    tasks = read_suite(root, options.names, options.levels)
    plan = [(task, task.cases if options.every_case else task.cases[:1]) for task in tasks]
    find_toolchain(find_chip(options.chip))  # once, and not in the first case's time
    bind.find_binder()
    with RowFile(options.rows, options.resume) as file:
        done = {row.key for row in file.rows}
        left = [
            (task, [case for case in cases if key(task, case) not in done]) for task, cases in plan
        ]
        total, before = sum(len(cases) for _, cases in plan), len(done)

        def add(row: Row) -> None:
            file.add(row)
            if watch is not None:
                watch(row, len(file.rows) - before, total)

        jobs = options.jobs or os.cpu_count() or 2
        with ThreadPoolExecutor(jobs) as pool:
            try:
                waiting = [
                    pool.submit(run_task, task, cases, options, jobs, add)
                    for task, cases in left
                    if cases
                ]
                for future in as_completed(waiting):
                    future.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        wanted = {key(task, case) for task, cases in plan for case in cases}
        return sorted((row for row in file.rows if row.key in wanted), key=lambda row: row.key)


def key(task: Task, case: int) -> tuple[str, int]:
    return f"{task.level}/{task.category}/{task.name}", case


def run_task(
    task: Task,
    cases: Sequence[int],
    options: Options,
    jobs: int,
    take: Callable[[Row], None],
    candidate: Path | None = None,
) -> None:
    """All wanted cases of one task; what goes wrong is in their rows.

    `candidate`: a project that takes the place of the suite's answer, as it is.
    """
    start = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="npusmith-suite-"))
    answer, repairs = candidate or task.answer, list[str]()
    if candidate is None:
        answer, repairs = repair(task.name, task.answer, folder / "answer")

    def add(row: Row) -> None:
        take(row.model_copy(update={"repairs": repairs, "seeds": options.seeds}))

    try:
        cheats = _prepare(task, answer, folder, options.chip)
    except NpusmithError as error:
        for case in cases:
            add(_row(task, case, error=f"{error.code}: {error.message} ({error.place})"))
        remove_tree(folder)
        return
    binding = time.monotonic() - start
    try:
        left = list(cases)
        while left:
            left = _run_some(task, left, folder, options, jobs, cheats, binding, add)
            binding = 0.0
    finally:
        remove_tree(folder)


def _prepare(task: Task, answer: Path, folder: Path, chip: str) -> list[str]:
    """Read the answer and compile its binding, with the substitutions that the suite makes."""
    project = read_project(answer)
    op = task.name.split("_")[0]
    text = read_text(task.validation / "pybind.cpp")
    text = text.replace("aclnnCustomOp", f"aclnn{op}").replace("custom_pybind_api", entry_name(op))
    source = cache_root() / "suite" / task.name / "pybind.cpp"  # a stable name: the binding's key
    source.parent.mkdir(parents=True, exist_ok=True)
    if not source.exists() or source.read_text(encoding="utf-8") != text:
        fresh = source.with_name(f".{os.getpid()}")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(source)
    ops = {project.op.type: project}
    bind.build_binding([source], ops, folder, MODULE, chip=find_chip(chip))
    return [finding.code for finding in cheating.find_cheats(text, source)]


def _run_some(
    task: Task,
    cases: list[int],
    folder: Path,
    options: Options,
    jobs: int,
    cheats: list[str],
    binding: float,
    add: Callable[[Row], None],
) -> list[int]:
    """Run cases in one child until it ends; the cases that are left."""
    out = folder / "results"
    out.unlink(missing_ok=True)
    orders = {
        "folder": str(task.folder),
        "modules": str(folder),
        "out": str(out),
        "cases": cases,
        "most_bytes": int(options.most_mb * 1e6),
        "seeds": options.seeds,
        "seed": options.seed,
        "threads": max(1, (os.cpu_count() or 2) // jobs),
        "nulls": options.nulls,
    }
    left = list(cases)
    started: list[int] = []

    def take(lines: list[dict[str, Any]]) -> None:
        nonlocal binding
        for line in lines:
            if "start" in line:
                started.append(int(line["start"]))
            elif line.get("case") in left:
                left.remove(line["case"])
                add(_result(task, line, cheats, binding))
                binding = 0.0

    reader = _Reader(out)
    with ThreadPoolExecutor(1) as pool:
        child = pool.submit(_start, orders, folder, options, len(cases))
        while not child.done():  # rows are on the disk soon after each case, not after the task
            wait([child], timeout=_POLL)
            take(reader.fresh())
    boxed = child.result()
    take(reader.fresh())
    if not left:
        return []
    lost = started[-1] if started and started[-1] in left else left[0]
    left.remove(lost)
    add(_row(task, lost, error=_ended(boxed), findings=cheats))
    return left


@dataclass(slots=True)
class _Reader:
    """The lines that a child leaves; `fresh` gives each once, when it is whole."""

    path: Path
    taken: int = 0

    def fresh(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self.taken)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self.taken += len(whole)
        found = []
        for line in whole.decode(errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found


def _start(orders: dict[str, Any], folder: Path, options: Options, cases: int) -> Boxed:
    cache = cache_root()
    cache.mkdir(parents=True, exist_ok=True)
    logs = () if options.logs is None else (options.logs,)
    policy = Policy(
        write=(folder, cache, *logs),
        seconds=options.case_seconds * cases * options.seeds + 30,
        memory_bytes=int(options.memory_mb * (1 << 20)),
        file_bytes=4 << 30,
        processes=True,
    )
    env = {
        "NPUSMITH_CACHE": str(cache),
        "NPUSMITH_SECONDS": str(options.case_seconds),
        "PYTHONPATH": str(Path(npusmith.__file__).parents[1]),
        **({} if options.logs is None else {"NPUSMITH_LOGS": str(options.logs)}),
        **{name: os.environ[name] for name in ("NPUSMITH_CXX",) if name in os.environ},
    }
    return run_boxed(
        [sys.executable, "-c", _START],
        policy,
        stdin=json.dumps(orders).encode(),
        env=env,
        cwd=folder,
    )


def _ended(boxed: Boxed) -> str:
    if boxed.timed_out:
        return "the case had not ended in time"
    if boxed.out_of_memory:
        return "the case needed more memory than it may"
    said = boxed.stderr.decode(errors="replace").strip().splitlines()
    last = said[-1] if said else ""
    return f"the process ended (signal {boxed.signal}, status {boxed.returncode}) {last}"[:500]


def _result(task: Task, line: dict[str, Any], cheats: list[str], binding: float) -> Row:
    findings = _codes([*line.get("findings", ())]) + cheats
    stages = {"binding": round(binding, 3), **line.get("stages", {})}
    stages |= {name: line[name] for name in ("build", "run") if name in line}
    error = str(line.get("error", ""))
    code = str(line.get("code", ""))
    built = bool(line.get("built")) or not code.startswith(_NOT_BUILT)
    skipped = str(line.get("skipped", ""))
    compiled = bool(line.get("compiled")) and built
    return _row(
        task,
        int(line["case"]),
        compiled=compiled,
        official=None if skipped else bool(line.get("official")),
        # values that the binding had PyTorch compute say nothing of the kernel
        strict=None if skipped else bool(line.get("strict")) and not cheats,
        precise=None if skipped else bool(line.get("precise")) and not cheats,
        clean=None if skipped else compiled and not findings,
        findings=findings,
        warnings=_codes(line.get("warnings", ())),
        said=[_said(item) for item in line.get("findings", ())[:_KEPT]],
        weak=line.get("weak", []),
        seconds=round(binding + sum(line.get("stages", {}).values()), 3),
        error=_with_places(error, line.get("findings", ())),
        skipped=skipped,
        stages=stages,
    )


def _codes(findings: Collection[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(finding["code"]) for finding in findings))


def _said(finding: dict[str, Any]) -> str:
    place = f"{Path(finding['file']).name}:{finding['line']}" if finding["file"] else ""
    text = "; ".join(filter(None, [finding["message"], finding["seen"]]))
    return f"{finding['code']}: {text[:300]}{f' ({place})' if place else ''}"


def _with_places(error: str, findings: Collection[dict[str, Any]]) -> str:
    """The first finding of level error, in words, behind the error."""
    for finding in list(findings)[:1]:
        said = f"{finding['code']}: {finding['message']}; {finding['seen']}"
        where = f"{Path(finding['file']).name}:{finding['line']}" if finding["file"] else ""
        return "; ".join(filter(None, [error, f"{said} {where}".strip()]))[:700]
    return error


def _row(task: Task, case: int, **facts: Any) -> Row:
    known = {"level": task.level, "category": task.category, "task": task.name, "case": case}
    return Row.model_validate({"precise": False} | known | facts)
