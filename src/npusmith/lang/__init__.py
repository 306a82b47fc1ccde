"""The tile language: parse a text, check a program, interpret it."""

from npusmith.lang.parse import parse

__all__ = ["parse"]
