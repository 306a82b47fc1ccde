"""What was learnt: items in three parts, found by two axes, kept by their effect."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from npusmith.knowledge.base import FILE, Base, Policy, open_knowledge
from npusmith.knowledge.seam import Knowledge, Outcome, Query, Served, Use

__all__ = [
    "Base",
    "Knowledge",
    "Outcome",
    "Policy",
    "Query",
    "Served",
    "Use",
    "default_path",
    "open_knowledge",
]


def default_path() -> Path:
    """NPUSMITH_KNOWLEDGE, or a file in the user's data folder."""
    named = os.environ.get("NPUSMITH_KNOWLEDGE")
    return Path(named) if named else platformdirs.user_data_path("npusmith") / FILE
