"""Seeded faults in correct kernels: how many does the twin notice?

    python runs/mutation.py [--tasks examples] [--seed 1] [--out mutation.jsonl]

Every task of the folder is written, compiled and judged once as it is (it must pass). Then each
kind of fault below is put into a copy of its kernel at one place, chosen by the seed among the
places where that kind applies, and the copy is judged by the same trials. A fault is caught when
the copy does not compile, breaks a checked rule (a finding of level error or warning that the
correct kernel does not have), or gives wrong values. One JSON row per fault; the summary names
the misses.
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


_LINE = r"^[ \t]*"
_VECTOR = r"(?:Add|Sub|Mul|Div|Max|Min|Adds|Muls|Exp|Ln|Abs|Sqrt|Maxs|Mins|Cast|Select)"
FAULTS = (
    Fault("dropped event", _LINE + r"Sync<HardEvent::\w+>\(\);\n", _drop),
    Fault("dropped barrier", _LINE + r"PipeBarrier<PIPE_V>\(\);\n", _drop),
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
    Fault("wrong tail", r"ScalarMin\((TILE\w*), [^;\n]*\);", lambda m: f"{m.group(1)};"),
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
    ),
    Fault(
        "wrong element size",
        r"(static_cast<uint32_t>\(\w+ \* sizeof\()(?:float|half|int32_t|bfloat16_t)\)",
        lambda m: f"{m.group(1)}int8_t)",
    ),
    Fault(
        "small buffer",
        r"(InitBuffer\((?:\w+, \d+|\w+), )(\d+)( \* sizeof)",
        lambda m: f"{m.group(1)}{max(int(m.group(2)) // 64, 8)}{m.group(3)}",
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
    ),
    Fault("same work on every core", r"GetBlockIdx\(\)", lambda _: "(GetBlockIdx() / 2)"),
    Fault("copy of odd length", r"DataCopyPad\((\w+), (\w+Gm(?:\[[^\]]+\])?), \w+, \w+\);",
          lambda m: f"DataCopy({m.group(1)}, {m.group(2)}, 13);"),
    Fault("stale result", _LINE + _VECTOR + r"\([^\n]*\);\n", _drop),
    Fault("dropped copy out", _LINE + r"DataCopyPad\(\w+Gm[^\n]*\);\n", _drop),
    Fault("dropped SyncAll", _LINE + r"SyncAll(?:<\w+>)?\([^\n]*\);\n", _drop),
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

    def judge(self, project: Path) -> Verdict:
        return judge(
            project, self.prepared, CHIP, "strict", spec=self.spec, seconds=SECONDS, watch=WATCH
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=Path, default=Path("examples"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("mutation.jsonl"))
    parser.add_argument("--only", default="", help="names of tasks, separated by commas")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    rows = []
    with tempfile.TemporaryDirectory() as work, options.out.open("w") as file:
        for task in sorted(options.tasks.glob("*.py")):
            if only and task.stem not in only:
                continue
            kernel = correct(task, Path(work, task.stem))
            for row in mutate(kernel, options.seed, Path(work)):
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


def mutate(kernel: Kernel, seed: int, work: Path) -> Iterator[dict[str, object]]:
    """A row for each kind of fault that applies to this kernel."""
    for fault in FAULTS:
        folder = "op_host" if fault.host else "op_kernel"
        source = next(kernel.project.glob(f"{folder}/*.cpp"))
        text = source.read_text()
        rng = random.Random(f"{seed} {kernel.name} {fault.name}")
        sites = list(re.finditer(fault.pattern, text, re.MULTILINE))
        rng.shuffle(sites)
        for site in sites:
            after = text[: site.start()] + fault.change(site) + text[site.end() :]
            if after == text:
                continue
            copy = work / "mutant"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(kernel.project, copy)
            (copy / source.relative_to(kernel.project)).write_text(after)
            clock = time.monotonic()
            how, codes = caught(kernel.judge(copy), kernel.verdict)
            yield {
                "kernel": kernel.name,
                "fault": fault.name,
                "line": text[: site.start()].count("\n") + 1,
                "text": site.group(0).strip()[:120],
                "caught": how,
                "codes": codes,
                "seconds": round(time.monotonic() - clock, 1),
            }
            break


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


def summary(rows: list[dict[str, object]]) -> dict[str, object]:
    missed = [
        f"{r['kernel']}:{r['line']}: {r['fault']}: {r['text']}" for r in rows if not r["caught"]
    ]
    return {
        "kernels": len({row["kernel"] for row in rows}),
        "kinds": len({row["fault"] for row in rows}),
        "faults": len(rows),
        "caught": len(rows) - len(missed),
        "share": round(1 - len(missed) / max(len(rows), 1), 4),
        "by": dict(Counter(str(row["caught"]) or "missed" for row in rows)),
        "missed": missed,
    }


if __name__ == "__main__":
    main()
