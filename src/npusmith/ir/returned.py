"""How forward hands over its tensors: a Python literal of their places, such as `(0, {'aux': 1})`.

Tuples, lists and dicts with words or numbers for keys, nested as forward nests them. The places
count from 0 in the order in which the tensors stand in the text.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

MOST = 1 << 16  # characters
_KEYS = (str, int)


def plain(count: int) -> str:
    """One tensor as it is, several as a tuple."""
    return "0" if count == 1 else f"({', '.join(map(str, range(count)))},)"


def arranged(text: str, values: Sequence[Any]) -> Any:
    """The values as forward would hand them over. ValueError where the text does not fit them."""

    def made(part: Any) -> Any:
        if type(part) is int:
            return values[part]
        if isinstance(part, dict):
            return {key: made(item) for key, item in part.items()}
        return type(part)(map(made, part))

    return made(_tree(text, len(values)))


def spelled(text: str, value: Callable[[int], str], count: int) -> str:
    """The same as Python text, by the expression of each value."""

    def made(part: Any) -> str:
        if type(part) is int:
            return value(part)
        if isinstance(part, dict):
            return f"{{{', '.join(f'{key!r}: {made(item)}' for key, item in part.items())}}}"
        inside = ", ".join(map(made, part))
        if isinstance(part, list):
            return f"[{inside}]"
        return f"({inside},)" if len(part) == 1 else f"({inside})"

    return made(_tree(text, count))


def check(text: str, count: int) -> None:
    """ValueError where the text is not that of so many tensors; it may come from anywhere."""
    _tree(text, count)


def _tree(text: str, count: int) -> Any:
    if len(text) > MOST:
        raise ValueError(f"{len(text)} characters")
    try:
        tree = ast.literal_eval(text)
        places = [*_places(tree)]
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(f"not a literal of places: {text[:80]}") from error
    if places != [*range(count)]:
        raise ValueError(f"places {places[:8]} of {count} tensors")
    return tree


def _places(part: Any) -> list[int]:
    if type(part) is int:
        return [part]
    if isinstance(part, dict) and all(type(key) in _KEYS for key in part):
        part = part.values()
    elif not isinstance(part, (tuple, list)):
        raise TypeError(part)
    return [place for item in part for place in _places(item)]
