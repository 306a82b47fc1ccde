"""Tile program to Ascend C operator project."""

from npusmith.lower.bindings import (
    BINDINGS,
    CONSTANTS,
    bindings_of,
    constants_text,
    plain_spec,
    read_bindings,
)
from npusmith.lower.origins import origins
from npusmith.lower.pipeline import PIPELINE, lower
from npusmith.lower.project import package_files, project_files, write_project

__all__ = [
    "BINDINGS",
    "CONSTANTS",
    "PIPELINE",
    "bindings_of",
    "constants_text",
    "lower",
    "origins",
    "package_files",
    "plain_spec",
    "project_files",
    "read_bindings",
    "write_project",
]
