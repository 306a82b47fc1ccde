"""Eight everyday modules end with a verified operator: by file, by class name and from Python.

    python runs/everyday.py [--only NAME] [--search N]

Each is generated three ways in a folder of its own, as a user would: `npusmith generate FILE`,
`npusmith generate FILE:CLASS`, and `npusmith.generate(module, inputs)`. A row for each shows the
verdicts and the seconds on the clock; ends with 1 where one does not pass.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

# Name: the class, and its inputs.
MODULES = {
    "rms_norm_silu_gate": (
        """
class Everyday(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(256) + 0.5)

    def forward(self, x, gate):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return x * scale * self.weight * F.silu(gate)
""",
        "[torch.randn(64, 256), torch.randn(64, 256)]",
    ),
    "cross_entropy": (
        """
class Everyday(nn.Module):
    def forward(self, logits, target):
        return F.cross_entropy(logits, target, label_smoothing=0.1)
""",
        "[torch.randn(64, 100), torch.randint(0, 100, (64,))]",
    ),
    "layer_norm_residual": (
        """
class Everyday(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(256)

    def forward(self, x, residual):
        return self.norm(x + residual)
""",
        "[torch.randn(64, 256), torch.randn(64, 256)]",
    ),
    "rope": (
        """
class Everyday(nn.Module):
    def forward(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin
""",
        "[torch.randn(2, 4, 32, 64), torch.rand(32, 64), torch.rand(32, 64)]",
    ),
    "top_k_gating": (
        """
class Everyday(nn.Module):
    def forward(self, x):
        values, index = torch.topk(x, 2, dim=-1)
        return torch.softmax(values, -1), index
""",
        "[torch.randn(64, 16)]",
    ),
    "linear_gelu": (
        """
class Everyday(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(128, 64)

    def forward(self, x):
        return F.gelu(self.linear(x))
""",
        "[torch.randn(32, 128)]",
    ),
    "causal_attention": (
        """
class Everyday(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
""",
        "[torch.randn(1, 2, 64, 32), torch.randn(1, 2, 64, 32), torch.randn(1, 2, 64, 32)]",
    ),
    "conv_batch_norm_relu": (
        """
class Everyday(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))
""",
        "[torch.randn(2, 4, 16, 16)]",
    ),
}
HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"
SCRIPT = """
import npusmith

made = npusmith.generate(
    Everyday().eval(), {inputs}, out="by_python", search={search}, whole=True
)
print(made.verdict.verdict)
"""


def write(name: str, folder: Path, search: int) -> None:
    """The task, the same module under a name of its own, and a script that imports npusmith."""
    text, inputs = MODULES[name]
    given = (
        f"\n\ndef get_inputs():\n    return {inputs}\n\n\ndef get_init_inputs():\n    return []\n"
    )
    (folder / "task.py").write_text(HEAD + text.replace("Everyday", "Model") + given)
    (folder / "nets.py").write_text(HEAD + text + given)
    script = SCRIPT.format(inputs=inputs, search=search)
    (folder / "script.py").write_text(HEAD + text + script)


def ways(folder: Path, search: int) -> Iterator[tuple[str, float]]:
    """The verdict and the seconds of each way."""
    tried = [f"--search={search}"] if search else ["--no-search"]
    command = [sys.executable, "-m", "npusmith", "generate"]
    for argv in (
        [*command, "task.py", "--whole", *tried, "--json", "--out", "by_file"],
        [*command, "nets.py:Everyday", "--whole", *tried, "--json", "--out", "by_class"],
        [sys.executable, "script.py"],
    ):
        start = time.monotonic()
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
        try:
            told = done.stdout.strip().splitlines()[-1] if "script.py" in argv else done.stdout
            verdict = told if "script.py" in argv else json.loads(told)["verdict"]
        except (ValueError, KeyError, IndexError):
            verdict = f"exit {done.returncode}"
        yield str(verdict), time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=sorted(MODULES))
    parser.add_argument("--search", type=int, default=0, help="Schedules to try; 0: none.")
    args = parser.parse_args()
    print(f"{'module':22}  {'by file':>15}  {'by class':>15}  {'from Python':>15}")
    bad = 0
    for name in [args.only] if args.only else MODULES:
        with tempfile.TemporaryDirectory() as place:
            write(name, Path(place), args.search)
            rows = list(ways(Path(place), args.search))
        bad += sum(verdict != "pass" for verdict, _ in rows)
        cells = "  ".join(f"{verdict:>8} {took:4.0f} s" for verdict, took in rows)
        print(f"{name:22}  {cells}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
