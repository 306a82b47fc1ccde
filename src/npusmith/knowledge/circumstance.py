"""Conditions that an item is kept to, and what is known of a situation.

A circumstance is a kind and a name: `code lang-ub`, `dtype float16`, `category reduction`,
`chip 910B2`, `api reduce_sum`. A condition is a circumstance, or `not` and one. What is not known
of a situation is not there, so that of two opposite conditions exactly one holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from npusmith.knowledge.seam import Query
from npusmith.knowledge.traits import read_traits

KINDS = ("code", "dtype", "category", "chip", "api")
_NOT = "not "
_CONDITION = re.compile(rf"(?:{_NOT})?(?:{'|'.join(KINDS)}) \S{{1,100}}")


def is_condition(text: str) -> bool:
    return _CONDITION.fullmatch(text) is not None


def kind_of(condition: str) -> str:
    return condition.removeprefix(_NOT).partition(" ")[0]


def opposite(condition: str) -> str:
    return condition.removeprefix(_NOT) if condition.startswith(_NOT) else _NOT + condition


def admits(conditions: Sequence[str], known: Iterable[str]) -> bool:
    """Whether all conditions hold where this is known."""
    there = frozenset(known)
    return all((text.removeprefix(_NOT) in there) != text.startswith(_NOT) for text in conditions)


def listed(kind: str, names: Iterable[str]) -> list[str]:
    """Circumstances of one kind; a name with blanks in it is none."""
    return [text for name in names if is_condition(text := f"{kind} {name}")]


def circumstances(query: Query) -> tuple[str, ...]:
    """What is known of a query, also from its text, in an order of its own."""
    traits = read_traits(query.text, query.route)
    found = {
        "code": query.codes,
        "dtype": (*query.dtypes, *traits.dtypes),
        "category": (query.category,),
        "chip": (query.chip,),
        "api": (*query.apis, *traits.apis),
    }
    return tuple(dict.fromkeys(text for kind in KINDS for text in listed(kind, found[kind])))
