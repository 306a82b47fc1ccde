"""Finding items along two axes, in memory, growing one item at a time.

Syntactic: BM25 over codes, API names and words. Hardware-aligned: dot products of embed.py's
vectors. The ranks of the two are fused (reciprocal rank fusion), after a filter by aim, route and
chip. Equal scores stay in the order in which the items came, so a search is always the same.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npusmith.knowledge.embed import SIZE

Array = np.ndarray[Any, Any]

_K1, _B = 1.2, 0.75  # BM25's usual constants
_FUSE = 60.0  # of reciprocal rank fusion (Cormack, Clarke, Buettcher 2009)
_DEPTH = 100  # ranks of one axis that count
_COMMON = 0.25  # words of more than this share of many items tell nothing
_MANY = 2000


@dataclass(frozen=True, slots=True)
class Entry:
    """What is indexed of an item. `words` may repeat: that is their weight."""

    id: str
    aim: str
    route: str
    chips: tuple[str, ...]  # none: all
    words: tuple[str, ...]
    vector: Array


@dataclass(frozen=True, slots=True)
class Axes:
    """Which axes take part; both but where they are measured."""

    words: bool = True
    hardware: bool = True


@dataclass(frozen=True, slots=True)
class Hit:
    """An item that was found, and its fused score."""

    id: str
    score: float


class _Postings:
    """The rows that hold a word, and how often."""

    __slots__ = ("counts", "rows")

    def __init__(self) -> None:
        self.rows, self.counts = array("i"), array("f")

    def add(self, row: int, count: int) -> None:
        self.rows.append(row)
        self.counts.append(count)

    def arrays(self) -> tuple[Array, Array]:
        """Views; they may not outlive the call, or the arrays could not grow."""
        return np.frombuffer(self.rows, np.int32), np.frombuffer(self.counts, np.float32)


class Index:
    """See the module's text."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._row: dict[str, int] = {}
        self._words: dict[str, _Postings] = {}
        self._vectors = np.zeros((64, SIZE), np.float32)
        self._lengths = np.zeros(64, np.float32)
        self._kinds = np.full(64, -1, np.int16)  # -1: removed, or never there
        self._total = 0.0
        self._kind_of: dict[tuple[str, str], int] = {}
        self._chips: dict[str, array[int]] = {}  # rows that name this chip
        self._bound = array("i")  # rows that name any

    def __len__(self) -> int:
        return len(self._row)

    def add(self, entry: Entry) -> None:
        """Adds an item; one with the same id takes the place of the old one."""
        self.remove(entry.id)
        row = len(self._ids)
        self._grow(row)
        self._ids.append(entry.id)
        self._row[entry.id] = row
        for word, count in Counter(entry.words).items():
            self._words.setdefault(word, _Postings()).add(row, count)
        self._vectors[row] = entry.vector
        self._lengths[row] = len(entry.words)
        self._total += len(entry.words)
        self._kinds[row] = self._kind(entry.aim, entry.route)
        for chip in entry.chips:
            self._chips.setdefault(chip, array("i")).append(row)
        if entry.chips:
            self._bound.append(row)

    def remove(self, id: str) -> None:
        """Takes an item out; its row stays empty."""
        row = self._row.pop(id, None)
        if row is not None:
            self._kinds[row] = -1
            self._total -= float(self._lengths[row])

    def search(
        self,
        words: Iterable[str],
        vector: Array,
        aim: str,
        route: str,
        chip: str = "",
        most: int = 6,
        axes: Axes = Axes(),
    ) -> list[Hit]:
        """The best items of that aim and route; fewer than `most` where nothing else fits."""
        allowed = self._allowed(aim, route, chip)
        fused: dict[int, float] = {}
        if axes.words:
            _fuse(fused, self._best(self._by_words(words), allowed))
        if axes.hardware:
            _fuse(fused, self._best(self._by_vector(vector), allowed))
        ranked = sorted(fused, key=lambda row: (-fused[row], row))[:most]
        return [Hit(self._ids[row], fused[row]) for row in ranked]

    # ---- below

    def _kind(self, aim: str, route: str) -> int:
        return self._kind_of.setdefault((aim, route), len(self._kind_of))

    def _grow(self, row: int) -> None:
        """Room for that row: twice as much whenever it runs out."""
        size = len(self._kinds)
        if row < size:
            return
        self._vectors = np.concatenate([self._vectors, np.zeros((size, SIZE), np.float32)])
        self._lengths = np.concatenate([self._lengths, np.zeros(size, np.float32)])
        self._kinds = np.concatenate([self._kinds, np.full(size, -1, np.int16)])

    def _allowed(self, aim: str, route: str, chip: str) -> Array:
        allowed: Array = self._kinds[: len(self._ids)] == self._kind_of.get((aim, route), -2)
        if chip and self._bound:
            named = np.zeros(len(allowed), bool)
            named[np.array(self._chips.get(chip, array("i")), np.int64)] = True
            bound = np.zeros(len(allowed), bool)
            bound[np.array(self._bound, np.int64)] = True
            allowed &= named | ~bound
        return allowed

    def _by_words(self, words: Iterable[str]) -> Array:
        """BM25 of every row; 0 where no word is shared."""
        count = len(self._ids)
        scores = np.zeros(count, np.float32)
        mean = max(self._total, 1.0) / max(len(self._row), 1)
        norm = _K1 * (1 - _B + _B * self._lengths[:count] / mean)
        for word, times in sorted(Counter(words).items()):
            postings = self._words.get(word)
            if postings is None:
                continue
            rows, counts = postings.arrays()
            if count > _MANY and len(rows) > _COMMON * count:
                continue
            rare = math.log(1 + (count - len(rows) + 0.5) / (len(rows) + 0.5))
            weight = rare * min(times, 3)
            scores[rows] += weight * counts * (_K1 + 1) / (counts + norm[rows])
        return scores

    def _by_vector(self, vector: Array) -> Array:
        scores: Array = self._vectors[: len(self._ids)] @ vector.astype(np.float32)
        return scores

    def _best(self, scores: Array, allowed: Array) -> Sequence[int]:
        """Rows with a score above 0, the best first, equal ones in their order."""
        kept = np.flatnonzero(allowed & (scores > 1e-6))
        if len(kept) > _DEPTH:
            part = np.argpartition(-scores[kept], _DEPTH)[:_DEPTH]
            least = scores[kept[part]].min()
            kept = kept[scores[kept] >= least]  # all that tie with the last one, in row order
        order = np.argsort(-scores[kept], kind="stable")[:_DEPTH]
        best: Sequence[int] = kept[order].tolist()
        return best


def _fuse(fused: dict[int, float], ranked: Sequence[int]) -> None:
    for rank, row in enumerate(ranked):
        fused[row] = fused.get(row, 0.0) + 1 / (_FUSE + 1 + rank)
