"""Answers of a model: `generate(model, prompts, sampling, end)`, the same for the same seed.

Each answer draws from a stream of its own, `(seed, number of the answer)`. Rows of a batch are
rounded alike only in batches of the same shape, so that a seed stands for an answer together with
the batch that it was drawn in, on one machine and one BLAS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from npusmith.errors import NpusmithError
from npusmith.lm.llama import Llama
from npusmith.lm.weights import Floats


@dataclass(frozen=True, slots=True)
class Sampling:
    """How answers are drawn; a temperature of 0 takes the likeliest token."""

    temperature: float = 0.8
    top_p: float = 0.95
    tokens: int = 1024
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """Ids without the end; whether that came; and how many tokens a mask had a say in."""

    ids: tuple[int, ...]
    finished: bool
    masked: int = 0  # tokens at which the model's own choice was not allowed


class Guide(Protocol):
    """What may come next in one answer: a grammar's state."""

    def allowed(self) -> npt.NDArray[np.bool_]:
        """For each id; at least one."""

    def advance(self, at: int) -> None:
        """The id that came."""


def generate(
    model: Llama,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    end: int,
    guides: Sequence[Guide] = (),
) -> list[Answer]:
    """One answer for each prompt, drawn side by side. Raises lm-context."""
    longest = max(map(len, prompts))
    room = min(sampling.tokens, model.architecture.context - longest)
    if room < 1:
        raise NpusmithError(
            "lm-context", f"a prompt of {longest:,} tokens",
            legal=f"fewer than {model.architecture.context:,}",
        )  # fmt: skip
    streams = [np.random.default_rng([sampling.seed, row]) for row in range(len(prompts))]
    found: list[list[int]] = [[] for _ in prompts]
    masked = [0] * len(prompts)
    finished = [False] * len(prompts)
    running = list(range(len(prompts)))
    ids, cache = model.open(prompts, room)
    for step in range(room):
        logits = model.forward(ids, cache)
        chosen: list[int] = []
        for place, row in enumerate(running):
            given = logits[place]
            if guides:
                allowed = guides[row].allowed()
                masked[row] += not allowed[int(given.argmax())]
                given = np.where(allowed, given, np.float32(-np.inf))
            chosen.append(choose(given, sampling, streams[row]))
            if guides:
                guides[row].advance(chosen[-1])
        going = [place for place, at in enumerate(chosen) if at != end]
        for place, row in enumerate(running):
            finished[row] = chosen[place] == end
            found[row] += [] if finished[row] else [chosen[place]]
        if not going or step + 1 == room:
            break
        if len(going) < len(running):
            cache.keep(going)
            running = [running[place] for place in going]
        ids = np.array([[chosen[place]] for place in going], np.int64)
    return [Answer(tuple(found[row]), finished[row], masked[row]) for row in range(len(prompts))]


def choose(logits: Floats, sampling: Sampling, stream: np.random.Generator) -> int:
    """An id: of the likeliest ones that together have `top_p` of the chance."""
    if sampling.temperature == 0:
        return int(logits.argmax())
    scaled = logits.astype(np.float64) / sampling.temperature
    order = np.argsort(-scaled, kind="stable")
    chances = np.exp(scaled[order] - scaled[order[0]])
    total = np.cumsum(chances / chances.sum())
    kept = int(np.searchsorted(total, min(sampling.top_p, total[-1]))) + 1
    return int(order[np.searchsorted(total[:kept], stream.random() * total[kept - 1], "right")])
