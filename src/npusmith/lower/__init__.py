"""Tile program to Ascend C operator project."""

from npusmith.lower.bindings import BINDINGS, CONSTANTS, plain_spec, read_bindings
from npusmith.lower.origins import origins
from npusmith.lower.pipeline import PIPELINE, lower
from npusmith.lower.project import project_files, write_project

__all__ = [
    "BINDINGS",
    "CONSTANTS",
    "PIPELINE",
    "lower",
    "origins",
    "plain_spec",
    "project_files",
    "read_bindings",
    "write_project",
]
