"""How the cores share the work: what the host function launched, and each core's part of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_SUFFIX = "_per_core"


@dataclass(frozen=True, slots=True)
class Split:
    """One launch. `shares` holds each core's part in `unit`; empty when no value says it."""

    cores: int
    of: int  # such cores of the chip
    values: tuple[tuple[str, float], ...]
    unit: str
    shares: tuple[int, ...]
    kind: str = "vector"

    @property
    def words(self) -> str:
        """The split in a sentence."""
        used = f"{self.cores} of {self.of} {self.kind} cores"
        if not self.shares:
            return used
        most, least = max(self.shares), min(self.shares)
        idle = sum(1 for share in self.shares if share == 0)
        each = f"{most:,}" if most == least else f"{least:,} to {most:,}"
        words = f"{used}, {each} {self.unit} each, {sum(self.shares):,} in all"
        if not idle:
            return words
        return f"{words}; {idle} launched {'core has' if idle == 1 else 'cores have'} nothing to do"


def split(cores: int, values: Mapping[str, float], of: int, kind: str = "vector") -> Split:
    """Shares are known where a value `X_per_core` stands beside a total `X`."""
    unit, shares = _shares(cores, values)
    return Split(cores, of, tuple(values.items()), unit, shares, kind)


def _shares(cores: int, values: Mapping[str, float]) -> tuple[str, tuple[int, ...]]:
    for name, each in values.items():
        unit = name.removesuffix(_SUFFIX)
        if unit == name or unit not in values:
            continue
        total, part = int(values[unit]), int(each)
        parts = tuple(min(max(total - core * part, 0), part) for core in range(cores))
        if sum(parts) == total:
            return unit, parts
    return "", ()
