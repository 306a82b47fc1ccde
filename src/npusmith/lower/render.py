"""Templates of the files that npusmith writes."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

from npusmith.lower.lines import code, quoted

if TYPE_CHECKING:
    from jinja2 import Environment


def python_literal(value: object) -> str:
    """As Python text; infinities and NaN have no literal there."""
    if isinstance(value, list):
        return f"[{', '.join(map(python_literal, value))}]"
    whole = not isinstance(value, float) or math.isfinite(value)
    return repr(value) if whole else f'float("{value}")'


def _wrapped(text: str, indent: int = 0) -> str:
    return "\n".join(code(text, indent))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # reading bindings needs none

    environment = Environment(
        loader=PackageLoader("npusmith.lower", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # C++, CMake and Python text, no HTML
    )
    environment.filters["code"] = _wrapped
    environment.filters["quoted"] = quoted
    return environment


def render(template: str, **context: object) -> str:
    """The text of a template with every name that it uses given."""
    return _environment().get_template(template).render(**context)


def template_text(template: str) -> str:
    """A template as it is written."""
    loader = _environment().loader
    assert loader is not None
    return loader.get_source(_environment(), template)[0]
