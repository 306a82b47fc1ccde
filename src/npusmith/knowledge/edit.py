"""Applying a template: candidates in which one place of a kernel's text is edited.

`candidates(template, text, lines)` tries the places that lie nearest to the lines first. Conditions
(`Template.where`), one a line:

    $a in float half        $a not in float half
    $n < 1024               (also <= > >= == !=; ints)
    $a == $b                $a != $b
    has PATTERN             the text has this somewhere, with what is bound so far
    lacks PATTERN           the text has it nowhere
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field, model_validator

from npusmith.knowledge.pattern import (
    SAID,
    Match,
    PatternError,
    check_replacement,
    compile_pattern,
    find_all,
    replace_match,
)
from npusmith.knowledge.tokens import Token, read_tokens, words

MOST_CHARS = 20_000  # of a pattern or replacement
_TEST = re.compile(r"\$(\w+)\s*(in|not in|[<>=!]=|<|>)\s+(.+)")
_LOOK = re.compile(r"(has|lacks)\s+(.+)", re.DOTALL)
_INT = re.compile(r"-?\d+")
_QUOTED = re.compile(r"['\"`](?:[\w:<>]*::)?(\w+)['\"`]")


class Edit(BaseModel):
    """One replacement. `every`: at all places, else at the first that fits what is bound."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    find: str = Field(min_length=1, max_length=MOST_CHARS)
    put: str = Field(max_length=MOST_CHARS)
    every: bool = False


class Template(BaseModel):
    """The executable part of an item: edits, and what must hold for them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    route: str
    edits: tuple[Edit, ...] = Field(min_length=1, max_length=8)
    where: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_sound(self) -> Template:
        known: set[str] = set()
        for edit in self.edits:
            pattern = compile_pattern(edit.find, self.route)
            known |= pattern.holes
            check_replacement(edit.put, pattern)
        for condition in self.where:
            _check_condition(condition, self.route, known)
        return self


def _check_condition(text: str, route: str, known: set[str]) -> None:
    look, test = _LOOK.fullmatch(text), _TEST.fullmatch(text)
    if look is not None:
        compile_pattern(look.group(2), route)
    elif test is None or test.group(1) not in known:
        raise PatternError(f"{text!r} is no condition on a hole of the pattern")


def candidates(
    template: Template,
    text: str,
    lines: Sequence[int] = (),
    most: int = 3,
    said: Sequence[str] = (),
) -> list[str]:
    """Texts with one site edited each, all different from `text` and from each other.

    `said`: names that the messages quote; each fills `$(said)` in turn.
    """
    tokens = read_tokens(text, template.route)
    made: dict[tuple[str, ...], str] = {words(text, template.route): text}
    for site in _sites(template, tokens, lines, said):
        edited = _edit_all(template, text, tokens, site)
        if edited is not None:
            made.setdefault(words(edited, template.route), edited)
        if len(made) > most:
            break
    return list(made.values())[1:]


def _sites(
    template: Template, tokens: Sequence[Token], lines: Sequence[int], said: Sequence[str]
) -> list[Match]:
    """Where the first edit fits.

    Places with a name that a message quotes come first, then those nearest to the lines, then
    short ones.
    """
    pattern = compile_pattern(template.edits[0].find, template.route)
    asks = any("$(said)" in edit.put for edit in template.edits)
    bounds = [{SAID: (name,)} for name in dict.fromkeys(said)] if asks else [{}]
    sites = [
        site
        for bound in bounds[:4]
        for site in find_all(pattern, tokens, bound)
        if _holds(template, tokens, site)
    ]
    sites.sort(
        key=lambda site: (
            not _mentions(tokens, site, said),
            _distance(tokens, site, lines),
            site.last - site.first,
        )
    )
    return sites[:1] if template.edits[0].every else sites


def _mentions(tokens: Sequence[Token], site: Match, said: Sequence[str]) -> bool:
    return any(token.text in said for token in tokens[site.first : site.last])


def quoted_names(messages: Sequence[str]) -> tuple[str, ...]:
    """The names that stand in quotes in messages, in their order."""
    found = [name for text in messages for name in _QUOTED.findall(text)]
    return tuple(dict.fromkeys(found))[:4]


def _distance(tokens: Sequence[Token], site: Match, lines: Sequence[int]) -> int:
    """Lines between a site and the nearest finding; 0 when it lies inside, or nothing is known."""
    top, end = tokens[site.first].line, tokens[site.last - 1].line
    return min((max(top - line, line - end, 0) for line in lines if line > 0), default=0)


def _edit_all(template: Template, text: str, tokens: Sequence[Token], site: Match) -> str | None:
    """The text after all edits, None when a later one finds no place."""
    try:
        first, *rest = template.edits
        edited = replace_match(text, tokens, site, first.put, template.route)
        if first.every:
            edited = _everywhere(first, edited, template.route, {})
        for edit in rest:
            after = _edit_one(edit, edited, template.route, site.holes)
            if after is None:
                return None
            edited = after
    except PatternError:
        return None
    return edited


def _edit_one(
    edit: Edit, text: str, route: str, bound: Mapping[str, tuple[str, ...]]
) -> str | None:
    tokens = read_tokens(text, route)
    pattern = compile_pattern(edit.find, route)
    found = find_all(pattern, tokens, bound, most=1)
    if not found:
        return None
    after = replace_match(text, tokens, found[0], edit.put, route)
    return _everywhere(edit, after, route, bound) if edit.every else after


def _everywhere(edit: Edit, text: str, route: str, bound: Mapping[str, tuple[str, ...]]) -> str:
    """The edit at what is left of its places; stops when it only finds what it made itself."""
    pattern = compile_pattern(edit.find, route)
    for _ in range(64):
        tokens = read_tokens(text, route)
        for match in find_all(pattern, tokens, bound):
            after = replace_match(text, tokens, match, edit.put, route)
            if words(after, route) != words(text, route):
                text = after
                break
        else:
            return text
    return text


def _holds(template: Template, tokens: Sequence[Token], site: Match) -> bool:
    return all(_meets(text, template.route, tokens, site.holes) for text in template.where)


def _meets(
    text: str, route: str, tokens: Sequence[Token], holes: Mapping[str, tuple[str, ...]]
) -> bool:
    look = _LOOK.fullmatch(text)
    if look is not None:
        found = find_all(compile_pattern(look.group(2), route), tokens, holes, most=1)
        return bool(found) == (look.group(1) == "has")
    test = _TEST.fullmatch(text)
    if test is None or test.group(1) not in holes:
        return False
    return _compare("".join(holes[test.group(1)]), test.group(2), test.group(3).strip(), holes)


def _compare(left: str, sign: str, right: str, holes: Mapping[str, tuple[str, ...]]) -> bool:
    if sign in ("in", "not in"):
        return (left in right.split()) == (sign == "in")
    if right.startswith("$"):
        right = "".join(holes.get(right[1:], ()))
    if sign in ("==", "!="):
        return (left == right) == (sign == "==")
    if not (_INT.fullmatch(left) and _INT.fullmatch(right)):
        return False
    low, high = int(left), int(right)
    return {"<": low < high, "<=": low <= high, ">": low > high, ">=": low >= high}[sign]


def sites_of(template: Template, text: str) -> Iterator[int]:
    """The lines at which the first edit fits."""
    tokens = read_tokens(text, template.route)
    for site in find_all(compile_pattern(template.edits[0].find, template.route), tokens):
        if _holds(template, tokens, site):
            yield tokens[site.first].line
