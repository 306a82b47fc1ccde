"""Which code of a project ran: `measure(build, runs) -> Coverage`, `merge(parts) -> Coverage`.

`Run.ran` holds the blocks of code that ran (runtime/fence); here they become the user's functions
and lines, beside those of all blocks that the compiler kept. What it kept of host code is in
host.so, whose blocks the host's own process counts: that part rests on the candidate's word.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from npusmith.twin.compile import Build
from npusmith.twin.debug_lines import Spot, block_offsets, places

_PARTS = ("kernel", "cube", "host")
_DEVICE = _PARTS[:2]
_KEPT = 8  # builds whose places stay in memory
_NOTE = "coverage.json"  # in the build's folder: the places of all blocks
_LIBRARY = ("AscendC::", "matmul::", "std::", "twin::")
_ARGUMENTS = re.compile(r"<[^<>]*>")


@dataclass(frozen=True, slots=True)
class Coverage:
    """Places of the user's code that blocks begin in: those that ran, and all there are."""

    reached: frozenset[Spot] = frozenset()
    known: frozenset[Spot] = frozenset()

    @property
    def unreached(self) -> tuple[tuple[str, int], ...]:
        """Lines of which no block ran, in order."""
        ran = {(spot.file, spot.line) for spot in self.reached}
        return tuple(sorted({(spot.file, spot.line) for spot in self.known} - ran))

    @property
    def unreached_functions(self) -> tuple[str, ...]:
        """Functions of which no block ran, by their plain names, in the order of their lines."""
        ran = {(spot.file, plain(spot.function)) for spot in self.reached}
        named = [spot for spot in sorted(self.known) if _is_own(spot.function)]
        missing = (spot for spot in named if (spot.file, plain(spot.function)) not in ran)
        return tuple(dict.fromkeys(plain(spot.function) for spot in missing))

    @property
    def share(self) -> float:
        """Of the lines; 1 where none are known."""
        lines = {(spot.file, spot.line) for spot in self.known}
        return 1 - len(self.unreached) / len(lines) if lines else 1.0


def _is_own(function: str) -> bool:
    """Destructors of library objects stand at lines of the user's, under the library's names."""
    return bool(function.strip("?")) and not function.startswith(_LIBRARY)


Ran = Mapping[str, Collection[int]]  # as Run.ran
_Known = dict[str, dict[int, tuple[Spot, ...]]]
_Stamp = tuple[int, ...]


def measure(build: Build, runs: Iterable[Ran], *, host: bool = False) -> Coverage:
    """What these runs of one build reached of its device code; `host`: of its host code too."""
    taken = list(runs)
    known = _all_places(build)
    parts = _PARTS if host else _DEVICE
    everything = {part: known.get(part, {}) for part in parts}
    ran: set[Spot] = set()
    for part in parts:
        blocks = frozenset[int]().union(*(run.get(part, ()) for run in taken))
        for block in blocks:
            ran.update(everything[part].get(block, ()))
    spots = (spots for blocks in everything.values() for spots in blocks.values())
    return Coverage(frozenset(ran), frozenset(spot for group in spots for spot in group))


def user_blocks(build: Build, ran: Ran) -> frozenset[tuple[str, int]]:
    """Part and block of what ran of the user's code, host code too.

    Finer than lines: `if (a) b();` is one line of two blocks.
    """
    everything = all_user_blocks(build)
    return frozenset((part, at) for part in ran for at in ran[part] if (part, at) in everything)


def all_user_blocks(build: Build) -> frozenset[tuple[str, int]]:
    """All that the compiler kept."""
    return _user_blocks(build.folder, _stamp(build))


@lru_cache(maxsize=_KEPT)
def _user_blocks(folder: Path, stamp: _Stamp) -> frozenset[tuple[str, int]]:
    return frozenset(
        (part, at)
        for part, blocks in _places_in(folder, stamp).items()
        for at, spots in blocks.items()
        if any(spot.line for spot in spots)
    )


def open_places(build: Build, reached: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
    """File and line of blocks that are not among these, in functions that began.

    Host code that only the registration runs is none that a call could reach.
    """
    known = _all_places(build)
    blocks = {(part, at): spots for part in known for at, spots in known[part].items()}
    began = {(part, _function(blocks[part, at])) for part, at in reached}
    return {
        (spot.file, spot.line)
        for (part, at), spots in blocks.items()
        if (part, at) not in reached and (part, _function(spots)) in began
        for spot in spots[:1]
        if spot.line
    }


def _function(spots: Sequence[Spot]) -> tuple[str, str]:
    return (spots[0].file, plain(spots[0].function)) if spots else ("", "")


def merge(parts: Iterable[Coverage]) -> Coverage:
    """Over builds, as for several element types: what any of them reached."""
    listed = list(parts)
    return Coverage(
        frozenset[Spot]().union(*(part.reached for part in listed)),
        frozenset[Spot]().union(*(part.known for part in listed)),
    )


def plain(function: str) -> str:
    """The name without the arguments of templates: `Kernel<float>::Run` is Kernel::Run."""
    while (shorter := _ARGUMENTS.sub("", function)) != function:
        function = shorter
    return function.partition("(")[0].split(" ")[-1]


def _all_places(build: Build) -> _Known:
    """By part and block."""
    return _places_in(build.folder, _stamp(build))


def _stamp(build: Build) -> _Stamp:
    """When the libraries were made: a build whose headers changed is made again in its folder."""
    paths = [build.folder / f"{part}.so" for part in _PARTS]
    return tuple(path.stat().st_mtime_ns if path.exists() else 0 for path in paths)


@lru_cache(maxsize=_KEPT)
def _places_in(folder: Path, stamp: _Stamp) -> _Known:
    """Read from the libraries once, then kept beside them: each trial of a kernel asks again."""
    note = folder / _NOTE
    if not note.exists():
        found = {part: _block_places(folder / f"{part}.so") for part in _PARTS}
        draft = note.with_name(f"{_NOTE}.{os.getpid()}")
        draft.write_text(json.dumps({part: _rows(blocks) for part, blocks in found.items()}))
        draft.replace(note)
        return found
    rows = json.loads(note.read_text())
    return {part: _unrows(rows.get(part, {})) for part in _PARTS}


def _block_places(library: Path) -> dict[int, tuple[Spot, ...]]:
    if not library.exists():
        return {}
    # A block is known by the address behind its call; the call itself has the block's place.
    blocks = block_offsets(library)
    spots = places(library, [block - 1 for block in blocks])
    return {block: spots.get(block - 1, ()) for block in blocks}


def _rows(blocks: Mapping[int, Sequence[Spot]]) -> dict[str, list[list[str | int]]]:
    return {
        str(block): [[spot.file, spot.line, spot.function] for spot in spots]
        for block, spots in blocks.items()
    }


def _unrows(rows: Mapping[str, Sequence[Sequence[str | int]]]) -> dict[int, tuple[Spot, ...]]:
    return {
        int(block): tuple(Spot(str(row[0]), int(row[1]), str(row[2])) for row in spots)
        for block, spots in rows.items()
    }
