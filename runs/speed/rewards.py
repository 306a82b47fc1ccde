"""Rewards a second: `python runs/speed/rewards.py [--count N] [--route twin] [--workers 2] [TASK]`.

Candidates are the compiler's programs for the tasks, each with a note of its own so that none was
judged before: a third as they are, a third wrong in one operation, a third illegal. Says rewards a
second on the clock and of processor time, and resident memory at the beginning and at the end.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections import Counter
from pathlib import Path

from npusmith.sandbox.folder import temporary_folder
from npusmith.train import Reward, Route

TASKS = {
    "relu_of_a_sum": ("torch.relu(a * 2.0 + b)", "torch.randn(24, 100), torch.randn(24, 100)"),
    "scaled_tanh": ("torch.tanh(a) * b", "torch.randn(7, 61), torch.randn(7, 61)"),
    "row_sums": ("(a * b).sum(-1)", "torch.randn(17, 64), torch.randn(17, 64)"),
    "softmax": ("torch.softmax(a + b, -1)", "torch.randn(24, 100), torch.randn(24, 100)"),
}
TEXT = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return {forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--route", type=Route, default=Route.INTERPRETER)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--group", type=int, default=16, help="completions of one task at a time")
    parser.add_argument("tasks", nargs="*", type=Path)
    args = parser.parse_args()
    tasks = args.tasks or [
        TEXT.format(forward=forward, inputs=inputs) for forward, inputs in TASKS.values()
    ]
    with (
        temporary_folder("npusmith-rewards-") as folder,
        Reward(route=args.route, workers=args.workers, folder=folder) as reward,
    ):
        texts = []
        for task in tasks:
            with reward._tasks.use(task) as opened:
                texts.append(opened.teacher_text() or "")
            reward(task, texts[-1])  # warm, and the reference's time
        before, levels = _memory(), Counter[str]()
        clock, spent, done = time.perf_counter(), _processor(), 0
        while done < args.count:
            at = done // args.group % len(tasks)
            group = [_varied(texts[at], number) for number in range(done, done + args.group)]
            found = reward.batch([tasks[at]] * len(group), group)
            levels.update(item.level for _, item in found)
            done += len(group)
        wall = time.perf_counter() - clock
        memory = _memory()
    spent = _processor() - spent
    print(f"{done} rewards, {done / wall:.1f} a second on the clock with {args.workers} workers")
    print(f"{spent / done * 1000:.1f} ms of processor time each, {2 * done / spent:.1f} a second "
          "of two processors")  # fmt: skip
    print(f"levels {dict(levels)}; resident {before >> 20} MiB before, {memory >> 20} MiB after")


def _varied(text: str, number: int) -> str:
    body = text.replace('"""', f'"""{number} ', 1)
    match number % 3:
        case 0:
            return body
        case 1:
            return body.replace("mul(", "sub(", 1).replace("add(", "sub(", 1)
        case _:
            return body.replace("load(", "lead(", 1)


def _memory() -> int:
    """Resident bytes of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _processor() -> float:
    """Seconds of this process and of the boxes that have ended: their servers count them."""
    own = time.process_time()
    parent = Path("/proc/self/task")
    children = [
        int(pid) for thread in parent.iterdir() for pid in (thread / "children").read_text().split()
    ]
    return own + sum(map(_spent, children))


def _spent(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / 100  # user, system, and the same of its children


if __name__ == "__main__":
    main()
