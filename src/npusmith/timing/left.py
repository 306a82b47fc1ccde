"""What PyTorch takes for the part of a module that is no operator: `left_us(project, chip)`."""

from __future__ import annotations

from pathlib import Path

from npusmith.target.chips import Chip
from npusmith.task.composition import left_graph, read_composition
from npusmith.timing.eager import estimate


def left_us(project: Path, chip: Chip) -> float:
    """Microseconds, by the estimate of eager; 0 for a project that is one operator."""
    composition = read_composition(project)
    return 0.0 if composition is None else estimate(left_graph(composition), chip).us
