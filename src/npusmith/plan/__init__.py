"""The deterministic writer: captured core-ATen graph -> tile program."""

from npusmith.plan.structures import Plan
from npusmith.plan.write import write

__all__ = ["Plan", "write"]
