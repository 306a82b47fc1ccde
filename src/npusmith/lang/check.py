"""Is a program legal? Names first, then types, then what each statement may do."""

from __future__ import annotations

from collections.abc import Callable

from npusmith.errors import LangError
from npusmith.ir.launches import each_kernel
from npusmith.ir.nodes import Program
from npusmith.lang.budget import check_budget, check_lengths
from npusmith.lang.cube_rules import check_matrices
from npusmith.lang.flags import check_flags
from npusmith.lang.kinds import check_kinds
from npusmith.lang.launches import check_bindings, check_host
from npusmith.lang.lifetimes import check_lifetimes
from npusmith.lang.log import Log
from npusmith.lang.naming import check_names
from npusmith.lang.operands import check_operands
from npusmith.lang.parse import parse
from npusmith.lang.ranges import check_ranges
from npusmith.lang.stages import check_stages
from npusmith.lang.usage import check_usage
from npusmith.target.chips import Chip


def check(program: Program, chip: Chip, file: str = "") -> None:
    """Raise the first LangError of check_all, if there is one."""
    errors = check_all(program, chip, file)
    if errors:
        raise errors[0]


def legal(text: str, file: str, chip: Chip) -> Program:
    """The program of that text; raises the first LangError of parsing and of checking it."""
    program = parse(text, file)
    check(program, chip)
    return program


def check_all(program: Program, chip: Chip, file: str = "") -> list[LangError]:
    """Everything that is wrong, by line.

    Each group of checks relies on what the groups before it have made sure of, so that one mistake
    is reported once.
    """
    groups: tuple[Callable[[], list[Log]], ...] = (
        lambda: [check_bindings(program, file)],
        lambda: [check_names(program, file)],
        lambda: [
            check_kinds(program, file),
            check_host(program, file),
            check_flags(program, file),
            *_each(program, check_lengths, file),
        ],
        lambda: _each(program, check_matrices, file),
        lambda: [*_each(program, check_operands, file), *_each(program, check_stages, file)],
        lambda: _buffers(program, chip, file),
    )
    for group in groups:
        errors = [error for log in group() for error in log.errors]
        if errors:
            return sorted(errors, key=lambda error: error.place.line)
    return []


def _each(program: Program, check: Callable[[Program, str], Log], file: str) -> list[Log]:
    """A check of every kernel by itself."""
    return [check(part, file) for part in each_kernel(program)]


def _buffers(program: Program, chip: Chip, file: str) -> list[Log]:
    return [
        *_each(program, check_ranges, file),
        *_each(program, check_lifetimes, file),
        check_usage(program, file),
        *(check_budget(part, chip, file) for part in each_kernel(program)),
    ]
