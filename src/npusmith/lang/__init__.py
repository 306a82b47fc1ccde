"""The tile language: parse a text, check a program, interpret it."""

from npusmith.lang.check import check, check_all, legal
from npusmith.lang.interp import interpret, run_host
from npusmith.lang.parse import parse, parse_condition

__all__ = ["check", "check_all", "interpret", "legal", "parse", "parse_condition", "run_host"]
