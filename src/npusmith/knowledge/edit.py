"""Applying a template: candidates in which one place of a kernel's text is edited.

`candidates(template, text, lines)` tries the places that lie nearest to the lines first. Conditions
(`Template.where`), one a line:

    $a in float half        $a not in float half
    $n < 1024               (also <= > >= == !=; ints)
    $a == $b                $a != $b
    has PATTERN             the text has this somewhere, with what is bound so far
    lacks PATTERN           the text has it nowhere

`$said` and `$hint` are names that the findings give: the one that they complain of, and the one
that they propose instead. A template that asks for one fits nowhere as long as none was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from pydantic import BaseModel, ConfigDict, Field, model_validator

from npusmith.knowledge.pattern import (
    HINT,
    SAID,
    Match,
    PatternError,
    check_replacement,
    compile_pattern,
    find_all,
    replace_match,
)
from npusmith.knowledge.tokens import TILE, Token, read_tokens, words
from npusmith.knowledge.traits import known_names

MOST_CHARS = 20_000  # of a pattern or replacement
_TEST = re.compile(r"\$(\w+)\s*(in|not in|[<>=!]=|<|>)\s+(.+)")
_LOOK = re.compile(r"(has|lacks)\s+(.+)", re.DOTALL)
_INT = re.compile(r"-?\d+")
_QUOTED = re.compile(r"['\"`](?:[\w:<>]*::)?(\w+)['\"`]")
_FOREIGN = re.compile(r"(?:\w+\.)*(\w+)(?:\(\.\.\.\))? is (?:not an? |not of this|\w+'s)")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
_ASKED = re.compile(rf"\$\(?({SAID}|{HINT})\b")
_PART = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_ODD = re.compile(r"\b[A-Za-z]+(?:_\w+|\d+)\b")  # no words of prose
_ALIKE = 0.5  # names that share less are others
_FITS = 400  # places that are looked at


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
    hinted: Sequence[str] = (),
) -> list[str]:
    """Texts with one site edited each, all different from `text` and from each other.

    `said`: names that the messages quote, `hinted`: those that they propose; each fills `$said`
    and `$hint` in turn.
    """
    return [text for text, _ in edits_of(template, text, lines, most, said, hinted)]


def edits_of(
    template: Template,
    text: str,
    lines: Sequence[int] = (),
    most: int = 3,
    said: Sequence[str] = (),
    hinted: Sequence[str] = (),
) -> list[tuple[str, int]]:
    """The same, each with how many lines it lies from the nearest finding."""
    tokens = read_tokens(text, template.route)
    made: dict[tuple[str, ...], tuple[str, int]] = {words(text, template.route): (text, 0)}
    for site in _sites(template, tokens, lines, said, hinted):
        edited = _edit_all(template, text, tokens, site)
        if edited is not None:
            away = _distance(tokens, site, lines)
            made.setdefault(words(edited, template.route), (edited, away))
        if len(made) > most:
            break
    return list(made.values())[1:]


def _sites(
    template: Template,
    tokens: Sequence[Token],
    lines: Sequence[int],
    said: Sequence[str],
    hinted: Sequence[str] = (),
) -> list[Match]:
    """Where the first edit fits.

    Places with a name that a message quotes come first, then those nearest to the lines, then
    short ones.
    """
    pattern = compile_pattern(template.edits[0].find, template.route)
    sites = [
        site
        for bound in _bounds(template, said, hinted)
        for site in find_all(pattern, tokens, bound, _FITS)
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


def _bounds(
    template: Template, said: Sequence[str], hinted: Sequence[str]
) -> list[dict[str, tuple[str, ...]]]:
    """What `$said` and `$hint` stand for, in turn, where the template asks for them."""
    edits = [text for edit in template.edits for text in (edit.find, edit.put)]
    asked = set(_ASKED.findall("\n".join([*edits, *template.where])))
    bounds: list[dict[str, tuple[str, ...]]] = [{}]
    for hole, names in ((SAID, said), (HINT, hinted)):
        if hole in asked:
            given = list(dict.fromkeys(names))[:4]
            bounds = [{**bound, hole: (name,)} for bound in bounds for name in given]
    return bounds


def quoted_names(messages: Sequence[str]) -> tuple[str, ...]:
    """The names that messages complain of: those in quotes, in their order."""
    found = [
        name
        for text in messages
        for name in (_QUOTED.findall(text) or _FOREIGN.findall(text[:200]))
    ]
    return tuple(dict.fromkeys(found))[:4]


def hinted_names(hints: Sequence[str], said: Sequence[str] = (), route: str = TILE) -> list[str]:
    """The names that hints propose: in quotes, called, or odd ones that a table has.

    Then the known ones most like `said`.
    """
    found: list[str] = []
    for text in hints:
        text = text.rpartition("did you mean")[2]  # of compilers: at the end of the message
        found += _QUOTED.findall(text) or _CALLED.findall(text) or _plain(text, route)
    near = [name for word in said[:2] for name in near_names(word, route)]
    return [name for name in dict.fromkeys((*found, *near)) if name not in said[:1]]


def given_names(
    messages: Sequence[str], hints: Sequence[str], route: str
) -> tuple[tuple[str, ...], list[str]]:
    """What fills `$said` and `$hint`: names complained of, and names proposed."""
    said = quoted_names(messages)
    proposing = [text for text in messages if "did you mean" in text]
    return said, hinted_names((*hints, *proposing), said, route)


def _plain(text: str, route: str) -> list[str]:
    known = known_names(route)
    return [word for word in _ODD.findall(text) if word in known]


@lru_cache(maxsize=1024)
def near_names(word: str, route: str) -> tuple[str, ...]:
    """The three names of the table that a name is most like, the order of its parts aside."""
    known = known_names(route)
    if word in known or not word:
        return ()
    if route != TILE:  # names in capitals are of another layer than those without
        known = frozenset(name for name in known if name[0].isupper() == word[0].isupper())

    whole, parts = _alike(word.lower()), _alike(_sorted_parts(word))
    scores = {name: max(whole(name.lower()), parts(_sorted_parts(name))) for name in sorted(known)}
    best = sorted(scores, key=lambda name: -scores[name])[:3]
    return tuple(name for name in best if scores[name] >= _ALIKE)


def _sorted_parts(name: str) -> str:
    return " ".join(sorted(part.lower() for part in _PART.findall(name)))


def _alike(word: str) -> Callable[[str], float]:
    """How much of a name is the word's; 0 below _ALIKE, which is found out faster."""
    matcher = SequenceMatcher(None, b=word, autojunk=False)

    def ratio(name: str) -> float:
        matcher.set_seq1(name)
        quick = min(matcher.real_quick_ratio(), matcher.quick_ratio())
        return matcher.ratio() if quick >= _ALIKE else 0.0

    return ratio


def _distance(tokens: Sequence[Token], site: Match, lines: Sequence[int]) -> int:
    """Lines between the words of a site (not its gaps) and the nearest finding.

    0 when nothing is known of where.
    """
    wanted = [line for line in lines if line > 0]
    return min(
        (max(top - line, line - end, 0) for line in wanted for top, end in _pieces(tokens, site)),
        default=0,
    )


def _pieces(tokens: Sequence[Token], site: Match) -> Iterator[tuple[int, int]]:
    """First and last lines of what stands between the gaps of a site."""
    first = site.first
    for gap in (*site.gaps, None):
        last = site.last if gap is None else gap.first
        if last > first:
            yield tokens[first].line, tokens[last - 1].line
        first = site.last if gap is None else gap.last


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
