"""Peak memory of judging one large candidate, next to what its tensors take.

    python runs/speed/memory.py [--rows 4096] [--columns 8192]

The bound is inputs + outputs + references (native and float64) + 300 MB, for the judge's process
and the candidate's process each. Resident sizes include mapped files.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from dataclasses import replace
from pathlib import Path

from npusmith.lower import lower, write_project
from npusmith.plan import write
from npusmith.target.chips import find_chip
from npusmith.task.judge import judge
from npusmith.task.load import open_task
from npusmith.task.trials import Sets, prepare

TASK = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0


def get_inputs():
    return [torch.randn({rows}, {columns})]


def get_init_inputs():
    return []
"""
MB = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--columns", type=int, default=8192)
    options = parser.parse_args()
    chip = find_chip("910B2")
    with tempfile.TemporaryDirectory() as work:
        task = Path(work, "scaled_relu.py")
        task.write_text(TASK.format(rows=options.rows, columns=options.columns))
        prepared = prepare(
            open_task(task), Path(work), sets=Sets(seeds=(1,), edges=False, shapes=False)
        )
        plan = write(prepared.graph, "scaled_relu_custom", chip)
        folder = Path(work, "project")
        folder.mkdir()
        spec = replace(plan.spec, task_source=prepared.task.text)
        write_project(lower(plan.program, chip), chip, folder, spec)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        verdict = judge(folder, prepared, chip, "strict", spec=spec)
        trial = prepared.trials[0]
        arrays = [*trial.inputs, *trial.references, *trial.references, *trial.goldens]
        tensors = sum(array.nbytes for array in arrays) // MB
        bound = tensors + 300
        judge_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(
            json.dumps(
                {
                    "verdict": verdict.verdict,
                    "tensors_mb": tensors,
                    "bound_mb": bound,
                    "judge_before_mb": before,
                    "judge_peak_mb": judge_mb,
                    "candidate_peak_mb": verdict.provenance.get("candidate_peak_bytes", 0) // MB,
                    "within": judge_mb <= bound,
                },
                indent=2,
            )
        )


if __name__ == "__main__":
    main()
