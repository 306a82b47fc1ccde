"""Processor seconds in which the deterministic writer writes modules of many operations.

python runs/speed/writing.py [--only NAME] [--runs 3]

Each is captured once; the writer alone is timed, without search, lowering and compiling. The digest
is of the tile program and of what its operator serves: a faster writer writes the same ones.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import tempfile
import time
from pathlib import Path

from npusmith.ir.text import show
from npusmith.plan import write
from npusmith.target.chips import find_chip
from npusmith.task.capture import capture

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"
TAIL = "\n\ndef get_init_inputs():\n    return []\n"
MODULES = {
    "transformer of 12 blocks": """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(64), nn.LayerNorm(64)
        self.qkv, self.proj = nn.Linear(64, 192), nn.Linear(64, 64)
        self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, s, 3, 4, d // 4).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, s, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(Block() for _ in range(12)))

    def forward(self, x):
        return self.blocks(x)


def get_inputs():
    return [torch.randn(2, 32, 64)]
""",
    "8 residual bottlenecks": """
class Block(nn.Module):
    def __init__(self, inside, mid, stride):
        super().__init__()
        out = 4 * mid
        self.c1, self.b1 = nn.Conv2d(inside, mid, 1, bias=False), nn.BatchNorm2d(mid)
        self.c2, self.b2 = nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid)
        self.c3, self.b3 = nn.Conv2d(mid, out, 1, bias=False), nn.BatchNorm2d(out)
        self.down = nn.Conv2d(inside, out, 1, stride) if inside != out else nn.Identity()

    def forward(self, x):
        y = F.relu(self.b2(self.c2(F.relu(self.b1(self.c1(x))))))
        return F.relu(self.b3(self.c3(y)) + self.down(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        first = [Block(16, 16, 1), *(Block(64, 16, 1) for _ in range(3))]
        second = [Block(64, 32, 2), *(Block(128, 32, 1) for _ in range(3))]
        self.blocks = nn.Sequential(*first, *second)

    def forward(self, x):
        return self.blocks(x)


def get_inputs():
    return [torch.randn(2, 16, 32, 32)]
""",
    "transposed convolution in 3-D": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.ConvTranspose3d(
            8, 16, (3, 5, 5), stride=2, padding=(1, 2, 2), output_padding=1
        )
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        return F.gelu(self.norm(self.conv(x).permute(0, 2, 3, 4, 1)))


def get_inputs():
    return [torch.randn(2, 8, 4, 8, 8)]
""",
    "LSTM of 2 layers, both ways": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(24, 32, num_layers=2, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.lstm(x)[0]


def get_inputs():
    return [torch.randn(4, 12, 24)]
""",
}


def measure(name: str, runs: int) -> dict[str, object]:
    """The seconds of each run, and what was written."""
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder, "task.py")
        task.write_text(HEAD + MODULES[name] + TAIL)
        graph = capture(task)
    seconds = []
    for _ in range(runs):
        clock = time.process_time()
        plan = write(graph, "op_custom", find_chip("910B2"))
        seconds.append(time.process_time() - clock)
    text = show(plan.program) + repr(plan.spec)
    return {
        "module": name,
        "nodes": len(graph.nodes),
        "kernels": len(plan.program.kernels),
        "launches": len(plan.program.host.launches),
        "processor_s": round(statistics.median(seconds), 2),
        "least_s": round(min(seconds), 2),
        "most_s": round(max(seconds), 2),
        "digest": hashlib.sha256(text.encode()).hexdigest()[:16],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=sorted(MODULES))
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    for name in [options.only] if options.only else MODULES:
        print(json.dumps(measure(name, options.runs)), flush=True)


if __name__ == "__main__":
    main()
