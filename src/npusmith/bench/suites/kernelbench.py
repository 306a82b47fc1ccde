"""KernelBench: KernelBench/level<N>/<number>_<name>.py, levels 1 to 3."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import torch

from npusmith.bench.model import Entry
from npusmith.bench.suites.torchsuite import TorchSuite, refuse_root
from npusmith.task import rules

LEVELS = (1, 2, 3)


class KernelBench(TorchSuite):
    """Seed 42; each trial is drawn under a seed of its own, made from that; allclose by dtype."""

    name = "kernelbench"
    rule = rules.Named(name="kernelbench")
    rule_name = rules.KERNELBENCH
    seed = 42
    official = 5  # its scripts' number of correctness trials
    scale_mb = 40  # as MultiKernelBench

    def check(self) -> None:
        found = [f"level{level}" for level in LEVELS if (self._home / f"level{level}").is_dir()]
        if not found or next(self.entries(), None) is None:
            raise refuse_root(self.root, "KernelBench", ["KernelBench/level1 with tasks"])
        missing = [f"level{level}" for level in LEVELS if f"level{level}" not in found]
        if missing and not self.options.levels:
            raise refuse_root(self._home, "all of KernelBench", missing)

    @property
    def _home(self) -> Path:
        return self.root / "KernelBench"

    def entries(self) -> Iterator[Entry]:
        for level in LEVELS:
            folder = self._home / f"level{level}"
            for path in sorted(folder.glob("*_*.py"), key=_number):
                yield Entry(f"level{level}/{path.stem}", f"level{level}", str(level), path)

    def trial_seeds(self, base: int, count: int) -> tuple[int, ...]:
        generator = torch.Generator().manual_seed(base)
        drawn = torch.randint(0, (1 << 32) - 1, (max(count, 1),), generator=generator)
        return tuple(int(seed) for seed in drawn)


def _number(path: Path) -> tuple[int, str]:
    found = re.match(r"(\d+)_", path.name)
    return (int(found.group(1)) if found else 1 << 30, path.name)
