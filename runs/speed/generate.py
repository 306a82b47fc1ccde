"""`npusmith generate` end to end, as a whole process, warm.

python runs/speed/generate.py [--task examples/softmax.py] [--runs 5]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", type=Path, default=Path("examples/softmax.py"))
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    seconds = []
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, "-m", "npusmith", "generate", str(options.task), "--out"]
        for index in range(options.runs + 1):
            clock = time.perf_counter()
            subprocess.run([*command, str(Path(work, "out"))], check=True, capture_output=True)
            if index:  # the first run may build the header cache
                seconds.append(time.perf_counter() - clock)
    print(
        json.dumps(
            {
                "task": str(options.task),
                "runs": len(seconds),
                "median_s": round(statistics.median(seconds), 2),
                "min_s": round(min(seconds), 2),
                "max_s": round(max(seconds), 2),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
