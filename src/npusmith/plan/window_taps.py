"""How the taps of a window along a row are joined: one by one, or by windows of 2, 4, 8 ..."""

from __future__ import annotations

from dataclasses import dataclass

_FEW = 4  # taps that are written one after another


@dataclass(frozen=True, slots=True)
class Tap:
    """Something that is joined to a window: first windows are doubled, then one is taken."""

    doublings: tuple[int, ...]  # elements of the windows that are doubled, one after another
    at: int  # elements from the start of the window to it


def taps_of(text: str, size: int, rows: int, alike: int) -> list[Tap] | None:
    """What a window of `size` elements is made of; None: of its elements one by one.

    rows: how many such windows are joined; alike: elements that are doubled for each result.
    """
    if size == 1:
        return [Tap((), 0)]
    taps = _overlapping(size) if text in ("max", "min") else _binary(size)
    doublings = sum(len(tap.doublings) for tap in taps)
    if doublings * alike + rows * len(taps) < rows * size:
        return taps
    return [Tap((), at) for at in range(size)] if size <= _FEW else None


def _overlapping(size: int) -> list[Tap]:
    """Two windows of the largest power of two below the size."""
    half = 1 << ((size - 1).bit_length() - 1)
    levels = tuple(1 << i for i in range(half.bit_length() - 1))
    return [Tap(levels, 0), Tap((), size - half)]


def _binary(size: int) -> list[Tap]:
    """A window for each power of two in the size; two of half of it where there is only one."""
    if size & (size - 1) == 0:
        return _overlapping(size)
    taps, doublings, at = list[Tap](), list[int](), 0
    for bit in range(size.bit_length()):
        if size >> bit & 1:
            taps.append(Tap(tuple(doublings), at))
            doublings = []
            at += 1 << bit
        doublings.append(1 << bit)
    return taps
