"""The deterministic writer: captured core-ATen graph -> tile program."""

from npusmith.plan.write import Plan, write

__all__ = ["Plan", "write"]
