"""Seeded faults in correct kernels: how many does the twin notice?

    python runs/mutation.py [--tasks examples] [--seed 1] [--out mutation.jsonl]

Every task of the folder is written, compiled and judged once as it is (it must pass). Then each
kind of fault below is put into a copy of its kernel at one place, chosen by the seed among the
places where that kind applies and that the trials reach, and the copy is judged by the same
trials. A fault is caught when the copy does not compile, breaks a checked rule (a finding of level
error or warning that the correct kernel does not have), or gives wrong values. One JSON row per
fault; the summary names the misses.

A change that changes nothing is no fault. Three proofs are accepted, each is written down in a row
of its own, and the next place is taken: a mark in the block of the place is never executed; the
condition under which the change matters never holds there (a mark under that condition is never
executed); no vector instruction between this barrier and the next reads what one between the last
barrier and this one writes.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from npusmith.errors import Level
from npusmith.ir.spec import OpSpec
from npusmith.lower import lower, write_project
from npusmith.plan import write
from npusmith.target.chips import find_chip
from npusmith.task.judge import judge
from npusmith.task.judge_options import JudgeOptions
from npusmith.task.load import open_task
from npusmith.task.prepared import Prepared
from npusmith.task.trials import prepare
from npusmith.task.verdict import Verdict
from npusmith.twin.watch import Watch

CHIP = find_chip("910B2")
SECONDS = 20.0
# The kernels set every barrier themselves, so nothing may be hidden by the compiler's.
WATCH = Watch(auto_sync=False)

Match = re.Match[str]


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault: where it can be put, and what is put there."""

    name: str
    pattern: str
    change: Callable[[Match], str]
    host: bool = False  # in the tiling code instead of the kernel
    matters: Callable[[Match], str] | None = None  # the condition (C++) under which it differs
    same: Callable[[Match], str] | None = None  # why it changes nothing, or ""


def _drop(_: Match) -> str:
    return ""


def _twice(match: Match) -> str:
    return match.group(0) * 2


def _other_queue(match: Match) -> str:
    """EnQue into the queue that the text names next."""
    text = match.string
    names = list(dict.fromkeys(re.findall(r"\b(\w+Queue)\.EnQue", text)))
    if len(names) < 2:
        return match.group(0)
    after = names[(names.index(match.group(1)) + 1) % len(names)]
    return match.group(0).replace(match.group(1), after, 1)


_BARRIER = "PipeBarrier<PIPE_V>();"
_CALL = re.compile(r"^\s*(?!DataCopy)(\w+)(?:<[^()\n]*>)?\(([^;]*)\);", re.MULTILINE)
_NAME = re.compile(r"\b\w+(?:Local|Buf)\b")


def _groups(text: str) -> Iterator[tuple[str, ...]]:
    """Each function's text, cut at its barriers."""
    for body in re.split(r"__aicore__ inline", text)[1:]:
        yield tuple(body.split(_BARRIER))


def _writes(part: str) -> set[str]:
    calls = _CALL.finditer(part)
    return {name for call in calls for name in _NAME.findall(call.group(2).split(",")[0])}


def _reads(part: str) -> set[str]:
    names: set[str] = set()
    for call in _CALL.finditer(part):
        first, _, rest = call.group(2).partition(",")
        names.update(_NAME.findall(rest))
        if call.group(1) in ("Axpy", "MulAddDst", "FusedMulAdd"):
            names.update(_NAME.findall(first))
    return names


def _no_dependence(match: Match) -> str:
    """Does another event already order all that a barrier orders, or is there nothing to order?

    A barrier at the start of a function also follows what any function does behind its last one.
    """
    text = match.string
    before, after = text[: match.start()], text[match.end() :]
    behind = re.split(r"PipeBarrier<|__aicore__ inline", before)
    ahead = re.split(r"PipeBarrier<|__aicore__ inline", after)[0]
    opens = before.rfind("__aicore__ inline") > before.rfind("PipeBarrier<")
    written = _writes(behind[-1])
    if opens:
        written |= {name for group in _groups(text) for name in _writes(group[-1])}
    if written & _reads(ahead):
        return ""
    return "nothing between this barrier and the next reads what was written since the last one"


def _scalar_reads(match: Match) -> str:
    """An event from a scalar unit that writes nothing: the twin takes a load to be over at once."""
    if "S_V" not in match.group(0) or "SetValue" in match.string:
        return ""
    return "the scalar unit only loads, and a load is over before the next instruction is issued"


def _before_all(match: Match) -> str:
    """SyncAll begins with the same barrier."""
    after = match.string[match.end() :].lstrip()
    return "SyncAll waits for all pipes itself" if after.startswith("SyncAll") else ""


def _sum_scratch(match: Match) -> str:
    """The count form of ReduceSum has a scratch tensor and does not use it."""
    return "the count form of ReduceSum uses no scratch" if "Sum" in match.group(1) else ""


_LINE = r"^[ \t]*"
_VECTOR = r"(?:Add|Sub|Mul|Div|Max|Min|Adds|Muls|Exp|Ln|Abs|Sqrt|Maxs|Mins|Cast|Select)"
FAULTS = (
    Fault("dropped event", _LINE + r"Sync<HardEvent::\w+>\(\);\n", _drop, same=_scalar_reads),
    Fault("dropped barrier", _LINE + r"PipeBarrier<PIPE_V>\(\);\n", _drop, same=_no_dependence),
    Fault("dropped barrier of all pipes", _LINE + r"PipeBarrier<PIPE_ALL>\(\);\n", _drop,
          same=_before_all),
    Fault("another event", r"Sync<HardEvent::(\w+)_(\w+)>",
          lambda m: f"Sync<HardEvent::{m.group(2)}_{m.group(1)}>", same=_scalar_reads),
    Fault("dropped EnQue", _LINE + r"\w+\.EnQue\(\w+\);\n", _drop),
    Fault("AllocTensor for DeQue", r"\.DeQue<", lambda _: ".AllocTensor<"),
    Fault("dropped FreeTensor", _LINE + r"\w+\.FreeTensor\(\w+\);\n", _drop),
    Fault("freed twice", _LINE + r"\w+\.FreeTensor\(\w+\);\n", _twice),
    Fault(
        "freed before its use",
        _LINE + r"LocalTensor<\w+> (\w+) = (\w+)\.DeQue<\w+>\(\);\n",
        lambda m: f"{m.group(0)}        {m.group(2)}.FreeTensor({m.group(1)});\n",
    ),
    Fault("swapped queue", r"\b(\w+Queue)\.EnQue\(", _other_queue),
    Fault("wrong tail", r"ScalarMin\(((?:TILE|tile)\w*), [^;\n]*\);", lambda m: f"{m.group(1)};",
          matters=lambda m: f"{m.group(0)[:-1]} != {m.group(1)}"),
    Fault("offset off by one", r"(Gm\[)([^\]\n]+)\]", lambda m: f"{m.group(1)}{m.group(2)} + 1]"),
    Fault(
        "short copy",
        r"static_cast<uint32_t>\((\w+) \* sizeof",
        lambda m: f"static_cast<uint32_t>(({m.group(1)} - 1) * sizeof",
    ),
    Fault(
        "long copy",
        r"static_cast<uint32_t>\((\w+) \* sizeof",
        lambda m: f"static_cast<uint32_t>(({m.group(1)} + 16) * sizeof",
    ),
    Fault(
        "wrong stride",
        r"Gm\[(\w+) \* (\w+)",
        lambda m: f"Gm[{m.group(1)} * ({m.group(2)} + 8)",
        matters=lambda m: f"{m.group(1)} != 0",
    ),
    Fault(
        "wrong element size",
        r"(static_cast<uint32_t>\(\w+ \* sizeof\()(?:float|half|int32_t|bfloat16_t)\)",
        lambda m: f"{m.group(1)}int8_t)",
    ),
    Fault(
        "small buffer",
        # buffers of 64 hold one number: there is nothing smaller than the block it needs
        r"(InitBuffer\((?:\w+, \d+|\w+), )(\d{3,}|[A-Z]\w*)( \* sizeof)",
        lambda m: f"{m.group(1)}{m.group(2)} / 64{m.group(3)}",
    ),
    Fault(
        "too many buffers",
        r"(InitBuffer\(\w+Queue, )2,",
        lambda m: f"{m.group(1)}9,",
    ),
    Fault(
        "unset padding",
        r"(DataCopyPadExtParams<\w+> \w+\{)true",
        lambda m: f"{m.group(1)}false",
    ),
    Fault(
        "narrow offset",
        r"Gm\[([^\]\n]+)\]",
        lambda m: f"Gm[static_cast<int16_t>({m.group(1)})]",
        matters=lambda m: f"({m.group(1)}) > 32767",
    ),
    Fault(
        "wrong count",
        _LINE + _VECTOR + r"\([^\n]*, (\w+)\);\n",
        lambda m: m.group(0).replace(f", {m.group(1)});", f", {m.group(1)} - 1);"),
    ),
    Fault(
        "swapped operands",
        r"\b(Sub|Div)\((\w+), (\w+), (\w+),",
        lambda m: f"{m.group(1)}({m.group(2)}, {m.group(4)}, {m.group(3)},",
    ),
    Fault(
        "misaligned tensor",
        _LINE + _VECTOR + r"\((\w+Local),",
        lambda m: f"{m.group(0)[:-1]}[1],",
    ),
    Fault(
        "scratch that is the source",
        r"(Reduce(?:Sum|Max|Min)\(\w+, )(\w+), \w+,",
        lambda m: f"{m.group(1)}{m.group(2)}, {m.group(2)},",
        same=_sum_scratch,
    ),
    Fault(
        "small scratch",
        r"(Reduce(?:Sum|Max|Min)\(\w+, \w+, )(\w+),",
        lambda m: f"{m.group(1)}{m.group(2)}[{m.group(2)}.GetSize()],",
        same=_sum_scratch,
    ),
    Fault("dropped Duplicate", _LINE + r"Duplicate\([^\n]*\);\n", _drop),
    Fault("same work on every core", r"GetBlockIdx\(\)", lambda _: "(GetBlockIdx() / 2)",
          matters=lambda _: "GetBlockIdx() > 0"),
    Fault("copy of odd length", r"DataCopyPad\((\w+), (\w+Gm(?:\[[^\]]+\])?), \w+, \w+\);",
          lambda m: f"DataCopy({m.group(1)}, {m.group(2)}, 13);"),
    Fault("stale result", _LINE + _VECTOR + r"\([^\n]*\);\n", _drop),
    Fault("dropped copy out", _LINE + r"DataCopyPad\(\w+Gm[^\n]*\);\n", _drop),
    Fault("dropped SyncAll", _LINE + r"SyncAll(?:<\w+>)?\([^\n]*\);\n", _drop),
    Fault("SyncAll on some cores", _LINE + r"SyncAll(?:<\w+>)?\([^\n]*\);\n",
          lambda m: f"if (GetBlockIdx() > 0) {m.group(0).strip()}\n"),
    Fault("atomic left on", _LINE + r"SetAtomicNone\(\);\n", _drop),
    Fault("too few blocks", r"SetBlockDim\(([^;\n]+)\);",
          lambda m: f"SetBlockDim(({m.group(1)} + 1) / 2);", host=True),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kernel:
    """A correct kernel and what it is judged by."""

    name: str
    project: Path
    prepared: Prepared
    spec: OpSpec
    verdict: Verdict

    def judge(self, project: Path, trials: int | None = None) -> Verdict:
        prepared = replace(self.prepared, trials=self.prepared.trials[:trials])
        return judge(
            project,
            prepared,
            CHIP,
            "strict",
            spec=self.spec,
            options=JudgeOptions(seconds=SECONDS, watch=WATCH),
        )

    def catch(self, project: Path) -> tuple[str, list[str]]:
        """By what the copy is noticed; most are by the first trial."""
        how, codes = caught(self.judge(project, 1), self.verdict)
        return (how, codes) if how else caught(self.judge(project), self.verdict)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=Path, default=Path("examples"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("mutation.jsonl"))
    parser.add_argument("--most", type=int, default=len(FAULTS), help="faults of one kernel")
    parser.add_argument("--only", default="", help="names of tasks, separated by commas")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    rows = []
    with tempfile.TemporaryDirectory() as work, options.out.open("w") as file:
        for task in sorted(options.tasks.glob("*.py")):
            if only and task.stem not in only:
                continue
            kernel = correct(task, Path(work, task.stem))
            for row in mutate(kernel, options.seed, options.most, Path(work)):
                rows.append(row)
                file.write(json.dumps(row) + "\n")
                file.flush()
            print(f"{task.stem}: {len(rows)} faults so far", file=sys.stderr)
    print(json.dumps(summary(rows), indent=2))


def correct(task: Path, work: Path) -> Kernel:
    """Write the task's kernel, and see that it passes with a set of each kind."""
    work.mkdir()
    prepared = prepare(open_task(task), work)
    plan = write(prepared.graph, f"{task.stem}_custom", CHIP)
    spec = replace(plan.spec, task_source=prepared.task.text)
    project = work / "project"
    project.mkdir()
    write_project(lower(plan.program, CHIP), CHIP, project, spec)
    few = [item for item in prepared.trials if item.kind == "shape" or item.name == "random 0"]
    kernel = Kernel(
        task.stem, project, replace(prepared, trials=tuple(few)), spec, Verdict.model_construct()
    )
    verdict = kernel.judge(project)
    if verdict.verdict != "pass":
        raise SystemExit(f"{task.stem} does not pass as it is: {verdict.model_dump_json()}")
    return replace(kernel, verdict=verdict)


def mutate(kernel: Kernel, seed: int, most: int, work: Path) -> Iterator[dict[str, object]]:
    """A row for each kind of fault that applies to this kernel, and for each proof on the way."""
    reached = blocks_reached(kernel, work)
    held = conditions_held(kernel, work)
    order = random.Random(f"{seed} {kernel.name}").sample(FAULTS, len(FAULTS))
    for fault in order:
        if most == 0:
            break
        source = source_of(kernel.project, fault.host)
        text = source.read_text()
        rng = random.Random(f"{seed} {kernel.name} {fault.name}")
        sites = list(re.finditer(fault.pattern, text, re.MULTILINE))
        rng.shuffle(sites)
        for site in sites:
            after = text[: site.start()] + fault.change(site) + text[site.end() :]
            if after == text or not (fault.host or opening(text, site.start()) in reached):
                continue
            clock = time.monotonic()
            how, codes, proof = "", [], same_as_before(fault, site, held)
            if not proof:
                how, codes = kernel.catch(changed(kernel, fault, after, work))
            yield {
                "kernel": kernel.name,
                "fault": fault.name,
                "line": text[: site.start()].count("\n") + 1,
                "text": site.group(0).strip()[:120],
                "caught": how,
                "codes": codes,
                "same": proof,
                "seconds": round(time.monotonic() - clock, 1),
            }
            if not proof:
                most -= 1
                break


def same_as_before(fault: Fault, site: Match, held: set[tuple[str, int]]) -> str:
    """Why this change changes nothing, or ""."""
    if fault.matters is not None and (fault.name, site.start()) not in held:
        return f"never {fault.matters(site)}"
    return fault.same(site) if fault.same is not None else ""


def source_of(project: Path, host: bool) -> Path:
    return next(project.glob("op_host/*.cpp" if host else "op_kernel/*.cpp"))


def changed(kernel: Kernel, fault: Fault, text: str, work: Path) -> Path:
    """A copy of the project with that text in the place of one source."""
    copy = work / "mutant"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(kernel.project, copy)
    source_of(copy, fault.host).write_text(text)
    return copy


# A call that changes nothing and that the twin reports with its line: PIPE_S has no barrier.
_MARK = "AscendC::PipeBarrier<PIPE_S>()"
_MARKS = Fault("mark", "", lambda match: match.group(0))
_OPENS = re.compile(r"\)\s*\{$|else \{$", re.MULTILINE)


def marks_met(kernel: Kernel, text: str, work: Path) -> set[int]:
    """The lines of the marks in this text that a trial executes."""
    verdict = kernel.judge(changed(kernel, _MARKS, text, work))
    if not verdict.compiled:
        raise SystemExit(f"{kernel.name} does not compile with marks: {verdict.error}")
    return {item.line for item in verdict.findings if "PipeBarrier<PIPE_S>" in item.message}


def blocks_reached(kernel: Kernel, work: Path) -> set[int]:
    """Where the blocks begin that a trial enters; there are no jumps out of a block."""
    text = source_of(kernel.project, host=False).read_text()
    starts = [match.end() for match in _OPENS.finditer(text)]
    marked = text
    for start in reversed(starts):
        marked = f"{marked[:start]} {_MARK};{marked[start:]}"
    met = marks_met(kernel, marked, work)
    return {start for start in starts if text[:start].count("\n") + 1 in met}


def opening(text: str, at: int) -> int:
    """The end of the opening brace of the innermost block around a place."""
    depth = 0
    for index in range(at - 1, -1, -1):
        depth += {"}": 1, "{": -1}.get(text[index], 0)
        if depth < 0:
            return index + 1
    return 0


def conditions_held(kernel: Kernel, work: Path) -> set[tuple[str, int]]:
    """The faults and places where the fault's condition is true in some trial."""
    text = source_of(kernel.project, host=False).read_text()
    asked: list[tuple[int, str, tuple[str, int]]] = []
    for fault in FAULTS:
        if fault.matters is None:
            continue
        for site in re.finditer(fault.pattern, text, re.MULTILINE):
            ends = (text.rfind(end, 0, site.start()) for end in (";\n", "{\n", "}\n"))
            name = (fault.name, site.start())
            asked.append((max(ends) + 2, f"if ({fault.matters(site)}) {_MARK};\n", name))
    lines: dict[int, tuple[str, int]] = {}
    marked, last = "", 0
    for place, mark, name in sorted(asked):
        marked += text[last:place]
        lines[marked.count("\n") + 1] = name
        marked += mark
        last = place
    met = marks_met(kernel, marked + text[last:], work)
    return {name for line, name in lines.items() if line in met}


def caught(verdict: Verdict, before: Verdict) -> tuple[str, list[str]]:
    """By what a fault was noticed: "compile", "finding", "value", or "" for a miss."""
    if not verdict.compiled:
        return "compile", [str((verdict.error or {}).get("code"))]
    old = {(item.code, item.level) for item in before.findings}
    new = {
        item.code
        for item in verdict.findings
        if item.level is not Level.NOTE and (item.code, item.level) not in old
    }
    if new:
        return "finding", sorted(new)
    return ("", []) if verdict.correct else ("value", [])


def place_of(row: dict[str, object]) -> str:
    return f"{row['kernel']}:{row['line']}: {row['fault']}: {row['text']}"


def summary(rows: list[dict[str, object]]) -> dict[str, object]:
    same = [f"{place_of(row)}: {row['same']}" for row in rows if row["same"]]
    rows = [row for row in rows if not row["same"]]
    missed = [place_of(row) for row in rows if not row["caught"]]
    return {
        "kernels": len({row["kernel"] for row in rows}),
        "kinds": len({row["fault"] for row in rows}),
        "faults": len(rows),
        "caught": len(rows) - len(missed),
        "share": round(1 - len(missed) / max(len(rows), 1), 4),
        "by": dict(Counter(str(row["caught"]) or "missed" for row in rows)),
        "missed": missed,
        "same": same,
    }


if __name__ == "__main__":
    main()
