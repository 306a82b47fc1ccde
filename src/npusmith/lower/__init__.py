"""Tile program to Ascend C operator project."""

from npusmith.lower.origins import origins
from npusmith.lower.pipeline import PIPELINE, lower
from npusmith.lower.project import project_files, write_project

__all__ = ["PIPELINE", "lower", "origins", "project_files", "write_project"]
