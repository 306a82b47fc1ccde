"""How far an extrapolated time is from the whole one.

    python runs/speed/sample.py [--steps 150] [--json] [EXAMPLE...]

Each example's program is generated and run once with its whole log and once with a log of at most
`--steps` steps a core, as `npusmith profile --sample` does. Shown: the time of the kernel both
ways, the difference, and the error that the sampled run states by itself.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from npusmith import pipeline, profiling
from npusmith.target.chips import find_chip
from npusmith.writers.plan import PlanWriter

EXAMPLES = Path(__file__).parents[2] / "examples"
CHOSEN = ("softmax", "layer_norm", "gelu", "mse_loss", "adam_step", "group_norm")


class _Quiet:
    def step(self, name: str, detail: str = "") -> None:
        """Nobody watches."""


def measure(name: str, steps: int) -> dict[str, float]:
    """Kernel times in microseconds, whole and sampled, and the error that was stated."""
    task, chip = EXAMPLES / f"{name}.py", find_chip("910B2")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "project"
        pipeline.generate(task, out, chip, "strict", _Quiet(), writer=PlanWriter(chip, search=0))
        found = []
        for sample in (None, steps):
            options = profiling.Options(out=Path(folder) / f"profile{sample}", sample=sample)
            made = profiling.profile(out, task, chip, "strict", _Quiet(), options).profile
            assert made is not None, name
            found.append(made)
    whole, part = found
    return {
        "whole": whole.kernel_us,
        "part": part.kernel_us,
        "difference": part.kernel_us / whole.kernel_us - 1,
        "stated": part.sample_error,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("examples", nargs="*", default=CHOSEN)
    args = parser.parse_args()
    rows = {name: measure(name, args.steps) for name in args.examples}
    if args.json:
        print(json.dumps(rows))
        return
    for name, row in rows.items():
        print(
            f"{name}: {row['whole']:.2f} us whole, {row['part']:.2f} us from {args.steps} steps "
            f"a core, {row['difference']:+.1%}; stated {row['stated']:.1%}"
        )


if __name__ == "__main__":
    main()
