"""How forward hands over its tensors: a Python expression of their places, such as
`(0, {'aux': 1}, None)` or `Output(logits=0, states=[1, 2])`.

Tuples, lists, dicts with words or numbers for keys, None, and calls of types that the task's file
names, nested as forward nests them. The places count from 0 in the order in which the tensors stand
in the text.
"""

from __future__ import annotations

import ast
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

MOST = 1 << 16  # characters
KEYS = (str, int)  # types of the keys of a dict


@dataclass(frozen=True, slots=True)
class _Called:
    """A call of a type: what it holds, by name."""

    name: str
    parts: dict[str, Any]


def plain(count: int) -> str:
    """One tensor as it is, several as a tuple."""
    return "0" if count == 1 else f"({', '.join(map(str, range(count)))},)"


def arranged(text: str, values: Sequence[Any]) -> Any:
    """The values as forward would hand them over, named tuples for types of the task's file.

    ValueError where the text does not fit them.
    """

    def made(part: Any) -> Any:
        if type(part) is int:
            return values[part]
        if isinstance(part, _Called):
            kind = namedtuple(part.name, [*part.parts], rename=True)  # type: ignore[misc]
            return kind(*map(made, part.parts.values()))
        if isinstance(part, dict):
            return {key: made(item) for key, item in part.items()}
        return None if part is None else type(part)(map(made, part))

    return made(_tree(text, len(values)))


def spelled(text: str, value: Callable[[int], str], count: int) -> str:
    """The same as Python text, by the expression of each value."""

    def made(part: Any) -> str:
        if type(part) is int:
            return value(part)
        if isinstance(part, _Called):
            named = (f"{name}={made(item)}" for name, item in part.parts.items())
            return f"{part.name}({', '.join(named)})"
        if isinstance(part, dict):
            return f"{{{', '.join(f'{key!r}: {made(item)}' for key, item in part.items())}}}"
        if part is None:
            return "None"
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
        tree = _part(ast.parse(text, mode="eval").body)
        places = [*_places(tree)]
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(f"not an expression of places: {text[:80]}") from error
    if places != [*range(count)]:
        raise ValueError(f"places {places[:8]} of {count} tensors")
    return tree


def _part(node: ast.expr) -> Any:
    """TypeError for what is no part of such an expression."""
    match node:
        case ast.Constant(value=None):
            return None
        case ast.Constant(value=place) if type(place) is int:
            return place
        case ast.Tuple(elts=items):
            return tuple(map(_part, items))
        case ast.List(elts=items):
            return [*map(_part, items)]
        case ast.Dict(keys=keys, values=items):
            return dict(zip(map(_key, keys), map(_part, items), strict=True))
        case ast.Call(func=ast.Name(id=name), args=[], keywords=named):
            return _Called(name, {_name(item.arg): _part(item.value) for item in named})
    raise TypeError(ast.dump(node)[:80])


def _key(node: ast.expr | None) -> Any:
    match node:
        case ast.Constant(value=key) if type(key) in KEYS:
            return key
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=key)) if type(key) is int:
            return -key
    raise TypeError(node)


def _name(name: str | None) -> str:
    if name is None:  # of `**`
        raise TypeError(name)
    return name


def _places(part: Any) -> Iterator[int]:
    if type(part) is int:
        yield part
    elif part is not None:
        inside = part.parts if isinstance(part, _Called) else part
        for item in inside.values() if isinstance(inside, dict) else inside:
            yield from _places(item)
