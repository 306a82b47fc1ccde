"""Code that never ran is not certified: which functions of a kernel no set of inputs reached."""

from __future__ import annotations

from collections.abc import Iterable

from npusmith.twin import Build
from npusmith.twin.coverage import Ran, measure


def unreached(build: Build, ran: Iterable[Ran]) -> list[str]:
    """Their plain names, in the order of their lines; none where nothing can be known."""
    taken = [blocks for blocks in ran if blocks]
    return list(measure(build, taken).unreached_functions) if taken else []
