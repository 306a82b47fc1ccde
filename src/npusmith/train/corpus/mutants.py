"""Programs with one fault: `mutants(text, random, count)`, each of one line of the text.

Faults that may leave a legal program with other values are three times as likely as the others:
most of them are caught all the same.

The faults are those that writers of kernels make: a count that is one too long, a tail that is not
cut, an operation beside the right one, a buffer that is too short, another element type, a copy in
the wrong stage. Whether a mutant is wrong, and how, only judging it tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from npusmith.lang.words import DTYPES

_BESIDE = {
    "add": "sub", "sub": "add", "mul": "add", "div": "mul", "max": "min", "min": "max",
    "adds": "muls", "muls": "adds", "maxs": "mins", "mins": "maxs", "exp": "ln", "ln": "exp",
    "sqrt": "rsqrt", "rsqrt": "sqrt", "abs": "relu", "relu": "abs", "reduce_sum": "reduce_max",
    "reduce_max": "reduce_min", "reduce_min": "reduce_max", "accumulate_sum": "accumulate_max",
    "accumulate_max": "accumulate_sum", "sum_rows": "max_rows", "max_rows": "sum_rows",
}  # fmt: skip
_CALL = re.compile(r"^(\s*)([a-z_]\w*)\((.*)\)$")
_BUFFER = re.compile(r"^(\s*\w+ = ub\()(.+), (\w+)(\)|, copies)")
_NUMBER = re.compile(r"(?<![\w.\"])(\d+)(?![\w.\"])")


@dataclass(frozen=True, slots=True)
class Mutant:
    """`line` (from 1) was `before` and is `after`; "" where it was taken away."""

    fault: str
    line: int
    before: str
    after: str
    text: str


Fault = Callable[[str, Random], str | None]


def mutants(text: str, random: Random, count: int) -> Iterator[Mutant]:
    """At most so many, each once."""
    lines = text.split("\n")
    seen: set[tuple[int, str]] = set()
    names = [*FAULTS, *_OF_VALUES, *_OF_VALUES]
    for _ in range(count * 20):
        if len(seen) >= count:
            return
        fault = random.choice(names)
        places = [at for at, line in enumerate(lines) if _is_code(line)]
        at = random.choice(places)
        for place in (*range(at, len(lines)), *range(at)):  # the next line that takes the fault
            if not _is_code(lines[place]):
                continue
            after = FAULTS[fault](lines[place], random)
            if after is not None and after != lines[place] and (place, after) not in seen:
                seen.add((place, after))
                changed = [*lines[:place], *([after] if after else []), *lines[place + 1 :]]
                yield Mutant(fault, place + 1, lines[place], after, "\n".join(changed))
                break


def _is_code(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith(('"', "@"))


def _call(line: str) -> re.Match[str] | None:
    return _CALL.match(line)


def _longer_count(line: str, random: Random) -> str | None:
    if (found := _call(line)) is None or found[2] == "launch":
        return None
    return f"{line[:-1]} {random.choice(('+ 1', '+ 8', '- 1'))})"


def _no_tail(line: str, random: Random) -> str | None:
    """`min(a, b)` is one of the two."""
    found = re.search(r"\bmin\(([^(),]+), ([^()]+)\)", line)
    if found is None:
        return None
    return line[: found.start()] + random.choice((found[1], found[2])) + line[found.end() :]


def _beside(line: str, random: Random) -> str | None:
    found = _call(line)
    if found is None or found[2] not in _BESIDE:
        return None
    return f"{found[1]}{_BESIDE[found[2]]}({found[3]})"


def _swapped(line: str, random: Random) -> str | None:
    """The sources of an operation the other way round."""
    found = _call(line)
    if found is None or found[2] not in ("sub", "div", "load", "store", "compare", "select"):
        return None
    parts = found[3].split(", ")
    first = 0 if found[2] in ("load", "store") else 1
    if len(parts) < first + 2:
        return None
    parts[first], parts[first + 1] = parts[first + 1], parts[first]
    return f"{found[1]}{found[2]}({', '.join(parts)})"


def _short_buffer(line: str, random: Random) -> str | None:
    found = _BUFFER.match(line)
    if found is None:
        return None
    return f"{found[1]}{found[2]} // {random.choice((2, 4))}, {line[found.start(3) :]}"


def _long_buffer(line: str, random: Random) -> str | None:
    found = _BUFFER.match(line)
    return None if found is None else f"{found[1]}{found[2]} * 16, {line[found.start(3) :]}"


def _other_type(line: str, random: Random) -> str | None:
    found = list(re.finditer(rf"\b({'|'.join(DTYPES)})\b", line))
    if not found:
        return None
    spot = random.choice(found)
    other = random.choice([name for name in DTYPES if name != spot[0]])
    return line[: spot.start()] + other + line[spot.end() :]


def _left_out(line: str, random: Random) -> str | None:
    return "" if _call(line) is not None else None


def _one_core(line: str, random: Random) -> str | None:
    return line.replace("core_id()", "0") if "core_id()" in line else None


def _other_number(line: str, random: Random) -> str | None:
    found = list(_NUMBER.finditer(line))
    if not found:
        return None
    spot = random.choice(found)
    number = max(0, int(spot[1]) + random.choice((-1, 1, 1)))
    return line[: spot.start()] + str(number) + line[spot.end() :]


def _unknown_name(line: str, random: Random) -> str | None:
    found = _call(line)
    if found is None or len(found[2]) < 3:
        return None
    wrong = random.choice((f"v{found[2]}", found[2][:-1], found[2].capitalize()))
    return f"{found[1]}{wrong}({found[3]})"


def _wrong_stage(line: str, random: Random) -> str | None:
    found = re.match(r"^(\s*)with (copy_in|compute|copy_out):$", line)
    if found is None:
        return None
    others = [name for name in ("copy_in", "compute", "copy_out") if name != found[2]]
    return f"{found[1]}with {random.choice(others)}:"


def _mixed_kinds(line: str, random: Random) -> str | None:
    """A float where an int has to be, or the other way round."""
    found = re.search(r"(?<![\w.])(\d+)\.0\b", line)
    if found is not None:
        return line[: found.start()] + found[1] + line[found.end() :]
    found = re.search(r"\bfloat\((\w+)\)", line)
    return None if found is None else line[: found.start()] + found[1] + line[found.end() :]


def _other_mode(line: str, random: Random) -> str | None:
    found = re.search(r'"(rint|floor|ceil|round|trunc|none|lt|le|gt|ge|eq|ne)"', line)
    if found is None:
        return None
    casts, compares = ("rint", "floor", "ceil", "trunc", "none"), ("lt", "le", "gt", "ge", "eq")
    rows = casts if found[1] in casts else compares
    other = random.choice([name for name in rows if name != found[1]])
    return line[: found.start()] + f'"{other}"' + line[found.end() :]


def _broken_text(line: str, random: Random) -> str | None:
    if line.endswith(":"):
        return line[:-1]
    return line[:-1] if line.endswith(")") else None


def _missing_argument(line: str, random: Random) -> str | None:
    found = _call(line)
    if found is None or ", " not in found[3]:
        return None
    parts = found[3].split(", ")
    del parts[random.randrange(len(parts))]
    return f"{found[1]}{found[2]}({', '.join(parts)})"


FAULTS: dict[str, Fault] = {
    "count": _longer_count, "tail": _no_tail, "operation": _beside, "order": _swapped,
    "short-buffer": _short_buffer, "long-buffer": _long_buffer, "type": _other_type,
    "left-out": _left_out, "one-core": _one_core, "number": _other_number,
    "name": _unknown_name, "stage": _wrong_stage, "kind": _mixed_kinds, "mode": _other_mode,
    "text": _broken_text, "argument": _missing_argument,
}  # fmt: skip
_OF_VALUES = ("operation", "order", "number", "tail", "mode")
