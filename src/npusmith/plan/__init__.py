"""The deterministic writer: captured core-ATen graph -> tile program."""

from npusmith.plan.write import write
from npusmith.plan.write_kernel import Plan

__all__ = ["Plan", "write"]
