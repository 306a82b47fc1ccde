"""How near a program is to the nearest of many: `Nearest(signatures).to(text)`, from 0 to 1.

A program is the set of its runs of five words, with names and numbers taken away. The share of
equal places in two signatures of 128 minima estimates the share of runs that both have (the
Jaccard index), with a standard error of at most 0.045.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from npusmith.errors import NpusmithError, Place
from npusmith.lm.tokenizer import WORDS
from npusmith.target.intrinsics import INTRINSICS

FILE = "programs.npy"
MOST = 20_000  # programs that are compared with
_PLACES, _RUN = 128, 5
_KEPT = frozenset((*WORDS, *INTRINSICS))
_LEXICAL = re.compile(r'"[^"\n]*"|[A-Za-z_]\w*|[0-9][\w.]*|\n *|[=<>!/]=?|[^\s\w]')
Signature = npt.NDArray[np.uint32]


def words_of(text: str) -> list[str]:
    """Words of the language as they stand; names, numbers and notes each as one word."""
    return [_word(item) for item in _LEXICAL.findall(text)]


def _word(item: str) -> str:
    if item[0] == '"':
        return '"'
    if item[0].isdigit():
        return "0"
    if item[0].isalpha() or item[0] == "_":
        return item if item in _KEPT else "a"
    return item


def signature(text: str) -> Signature:
    """The minima of 128 hashes over its runs."""
    words = words_of(text)
    runs = {" ".join(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1))}
    base = np.array([zlib.crc32(run.encode()) for run in sorted(runs)], np.uint64)
    factors = np.random.default_rng(_PLACES).integers(1, 1 << 63, (2, _PLACES, 1), np.uint64)
    hashes = (factors[0] | np.uint64(1)) * base + factors[1]  # modulo 2**64
    found: Signature = (hashes >> np.uint64(32)).min(axis=1).astype(np.uint32)
    return found


def signatures(texts: Iterable[str]) -> npt.NDArray[np.uint32]:
    """Of several, a row each."""
    rows = [signature(text) for text in texts]
    return np.stack(rows) if rows else np.zeros((0, _PLACES), np.uint32)


class Nearest:
    """The programs that a model was trained on."""

    def __init__(self, rows: npt.NDArray[np.uint32]) -> None:
        self._rows = rows

    def to(self, text: str) -> float | None:
        """How near the nearest is; None without any."""
        if not len(self._rows):
            return None
        return float((self._rows == signature(text)).mean(axis=1).max())


def read(folder: Path) -> Nearest:
    """The programs beside a model; none where there is no file. Raises lm-weights."""
    path = folder / FILE
    if not path.is_file():
        return Nearest(signatures(()))
    try:
        rows = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise NpusmithError(
            "lm-weights", "the file cannot be read", Place(str(path)), seen=str(error)[:200]
        ) from error
    if rows.dtype != np.uint32 or rows.ndim != 2 or rows.shape[1] != _PLACES:
        raise NpusmithError(
            "lm-weights", "the file holds no signatures", Place(str(path)), seen=str(rows.shape)
        )
    return Nearest(rows)
