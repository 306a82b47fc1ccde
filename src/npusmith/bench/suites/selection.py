"""Which tasks of a suite a user names: by a name, or by a pattern such as `*pool*`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase

from npusmith.errors import NpusmithError
from npusmith.lang.words import closest


def matches(patterns: Sequence[str], names: Collection[str]) -> bool:
    """Whether one of a task's names fits one of the patterns, in any case; no patterns: yes."""
    return not patterns or any(_fits(pattern, name) for pattern in patterns for name in names)


def check_patterns(patterns: Sequence[str], tasks: Iterable[Collection[str]]) -> None:
    """Raises run-empty for a pattern that no task fits: a misspelt task would be left out unseen.

    tasks: the names of each; the first is the one that is shown.
    """
    known = [tuple(names) for names in tasks]
    for pattern in patterns:
        if any(matches((pattern,), names) for names in known):
            continue
        shown = {name.lower(): names[0] for names in known for name in names}
        near = shown.get(closest(pattern.lower(), list(shown)), "")
        raise NpusmithError(
            "run-empty", f"no task is called {pattern[:80]}", seen=pattern[:80],
            legal=f"names like {near}" if near else "",
            hint="npusmith bench SUITE --root CHECKOUT --list names all of them",
        )  # fmt: skip


def _fits(pattern: str, name: str) -> bool:
    return pattern == name or fnmatchcase(name.lower(), pattern.lower())
