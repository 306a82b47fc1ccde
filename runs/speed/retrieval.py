"""How long a search of the knowledge takes: both axes on, one core.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python runs/speed/retrieval.py [--sizes 10000,100000]

Items are made up by a seed: each has the codes, API names and words that real ones have, mixed.
Targets: p99 at most 10 ms at 10,000 items and 30 ms at 100,000.
"""

from __future__ import annotations

import argparse
import random
import time

import numpy as np

from npusmith.errors import CODES
from npusmith.knowledge.embed import SIZE, embed
from npusmith.knowledge.index import Entry, Index
from npusmith.knowledge.traits import SIGNS, api_names
from npusmith.timing.bottleneck import NAMES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--searches", type=int, default=300)
    options = parser.parse_args()
    for size in map(int, options.sizes.split(",")):
        measure(size, options.searches)


def measure(size: int, searches: int) -> None:
    rng = random.Random(size)
    index = Index()
    start = time.perf_counter()
    for number in range(size):
        index.add(entry(rng, number))
    built = time.perf_counter() - start
    took = []
    for _ in range(searches):
        words, vector = situation(rng)
        clock = time.perf_counter()
        hits = index.search(words, vector, "repair", "direct", "910B2")
        took.append(1e3 * (time.perf_counter() - clock))
        assert len(hits) == 6
    middle, last = np.percentile(took, [50, 99])
    print(f"{size} items: p50 {middle:.2f} ms, p99 {last:.2f} ms, {built:.1f} s to build")


def entry(rng: random.Random, number: int) -> Entry:
    vector = np.array([rng.gauss(0, 1) for _ in range(SIZE)], np.float32)
    aim = rng.choice(("repair", "repair", "optimise"))
    chips = () if rng.random() < 0.9 else ("910B2",)
    return Entry(str(number), aim, rng.choice(("tile", "direct")), chips, text(rng), vector)


def text(rng: random.Random) -> tuple[str, ...]:
    """A code three times, some names, and words of which a few are common."""
    names = sorted(api_names("direct"))
    common = [f"word{int(rng.paretovariate(0.8)) % 5000}" for _ in range(25)]
    return (*[rng.choice(sorted(CODES))] * 3, *rng.sample(names, 6), *common)


def situation(rng: random.Random) -> tuple[tuple[str, ...], np.ndarray]:
    words = text(rng)
    limits = [rng.random() for _ in NAMES]
    return words, embed(words[:4], limits, [rng.random() for _ in SIGNS])


if __name__ == "__main__":
    main()
