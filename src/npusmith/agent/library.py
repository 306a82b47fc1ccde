"""The knowledge store of a path, where one is named."""

from __future__ import annotations

from pathlib import Path

from npusmith.knowledge.seam import Knowledge


def open_library(path: str) -> Knowledge | None:
    """None for ""; raises what opening the store raises."""
    if not path:
        return None
    from npusmith.knowledge.base import open_knowledge

    opened: Knowledge = open_knowledge(Path(path))
    return opened
