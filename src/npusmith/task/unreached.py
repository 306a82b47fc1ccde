"""Code that never ran is not certified: which functions of a kernel no set of inputs reached."""

from __future__ import annotations

from collections.abc import Iterable

from npusmith.twin import Build
from npusmith.twin.coverage import Ran, measure, plain


def unreached(build: Build, ran: Iterable[Ran]) -> list[str]:
    """Their plain names with the line, in the order of lines; none where nothing can be known."""
    taken = [blocks for blocks in ran if blocks]
    if not taken:
        return []
    coverage = measure(build, taken)
    lines = {plain(spot.function): spot.line for spot in sorted(coverage.known, reverse=True)}
    return [f"{name} (line {lines[name]})" for name in coverage.unreached_functions]
