"""Patterns over the tokens of a kernel: text with holes, for both routes.

    $a        one expression: tokens in balance, up to the comma or bracket that follows
    $a:name   one name; also $a:int, $a:number
    ...       anything, as little as will do, from the block that it stands in or one inside of it.
              At the end of a pattern: the rest of the block
    $said     the name that a message quotes, $hint the one that it proposes instead
    $(a)      in a replacement: the words of $a, as $(a).0f
    $(a * 2)  in a replacement only: an int that was matched, with one operation on it;
              $(f ~ s) is a name without the ending s

A hole that stands twice must match the same words. Layout and comments do not count.
Patterns work on words and not on a syntax tree, because most kernels to be mended have none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice

from npusmith.knowledge.tokens import (
    CLOSES,
    END,
    IN,
    OPENS,
    OUT,
    ROUTES,
    TILE,
    Kind,
    Token,
    read_tokens,
)

KINDS = ("name", "int", "number")
SAID, HINT = "said", "hint"  # holes that messages fill
_INT = re.compile(r"\d+")
_STEPS = 60_000  # of one search: a pattern of many gaps gives up instead of hanging
_HOLE = re.compile(r"\$(\w+)(?::(\w+))?\Z")
_USE = re.compile(r"\$\((\w+)(?:\s*([*/+~-])\s*(\w+))?\)|\$(\w+)(?::\w+)?|\.\.\.")
_PER_START = 40  # matches that begin at one place
_START = "<start>"  # in a pattern: a statement begins here
_BOUNDS = frozenset((";", "{", "}", END, IN, OUT))
_STOPS = frozenset((",", ";", END, IN, OUT, "{"))  # where an expression ends at the latest


class PatternError(ValueError):
    """The text of a pattern, replacement or condition is none; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens [first, last) of the text that a hole or a gap stands for."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Match:
    """Where a pattern fits: tokens [first, last), what its holes and gaps stand for."""

    first: int
    last: int
    holes: Mapping[str, tuple[str, ...]]
    spans: Mapping[str, Span] = field(default_factory=dict)
    gaps: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Pattern:
    """A pattern, ready to be searched for."""

    tokens: tuple[Token, ...]
    text: str

    @property
    def holes(self) -> frozenset[str]:
        return frozenset(hole_of(item)[0] for item in self.tokens if _is_hole(item))

    @cached_property
    def gaps(self) -> int:
        return sum(item.text == "..." for item in self.tokens)

    @cached_property
    def fixed(self) -> frozenset[str]:
        """Words that a text must have."""
        words = (item.text for item in self.tokens if not _is_open(item))
        return frozenset(word for word in words if word != _START)


def hole_of(token: Token) -> tuple[str, str]:
    """Name and kind of a hole."""
    return _read_hole(token.text)


@lru_cache(maxsize=4096)
def _read_hole(text: str) -> tuple[str, str]:
    found = _HOLE.match(text)
    if found is None:
        raise PatternError(f"{text} is no hole of a pattern")
    name, kind = found.group(1), found.group(2) or ""
    if kind and kind not in KINDS:
        raise PatternError(f"${name}:{kind}: a hole is of kind {', '.join(KINDS)}, or of none")
    return name, kind


@lru_cache(maxsize=4096)
def compile_pattern(text: str, route: str) -> Pattern:
    """The pattern that a text describes; PatternError when it is empty or begins with a gap."""
    if route not in ROUTES:
        raise PatternError(f"{route} is none of {', '.join(ROUTES)}")
    tokens = list(read_tokens(text.strip("\n"), route))
    while tokens and tokens[0].text in (END, IN):
        tokens.pop(0)
    while tokens and tokens[-1].text in (END, OUT):
        tokens.pop()
    if not tokens:
        raise PatternError("a pattern has at least one word")
    if tokens[0].text == "...":
        raise PatternError("a pattern begins with a word, not with a gap")
    for token in tokens:
        if token.text.startswith("$"):
            hole_of(token)
    return Pattern(tuple(_with_starts(tokens)), text)


def _with_starts(tokens: Sequence[Token]) -> Iterator[Token]:
    """A gap between statements ends where one begins, however deep that one stands."""
    skip = False
    for at, token in enumerate(tokens):
        if skip and token.text == END:
            continue
        skip = False
        yield token
        if token.text != "..." or at + 1 == len(tokens):
            continue
        if tokens[at - 1].text in _BOUNDS and tokens[at + 1].text not in CLOSES:
            yield Token(_START, Kind.MARK, token.start, token.start, token.line)
            skip = True


def find_all(
    pattern: Pattern,
    tokens: Sequence[Token],
    bound: Mapping[str, tuple[str, ...]] | None = None,
    most: int = 64,
) -> list[Match]:
    """The places where the pattern fits, in order of their beginning; a few for each beginning
    where gaps leave a choice, the shortest first."""
    if not pattern.fixed <= {token.text for token in tokens}:
        return []
    search = _Search(pattern.tokens, tokens)
    found: list[Match] = []
    head, each = pattern.tokens[0], _PER_START if pattern.gaps else 1
    for first, token in enumerate(tokens):
        if not _is_hole(head) and token.text != head.text:
            continue
        begun = search.at(0, first, first, dict(bound or {}), {}, ())
        found += islice(begun, each)
        if len(found) >= most or search.steps > _STEPS:
            break
    return found


class _Search:
    """Backtracking over one text; counts its steps."""

    def __init__(self, pattern: Sequence[Token], tokens: Sequence[Token]) -> None:
        self.pattern, self.tokens, self.steps = pattern, tokens, 0

    def at(
        self,
        place: int,
        here: int,
        first: int,
        holes: dict[str, tuple[str, ...]],
        spans: dict[str, Span],
        gaps: tuple[Span, ...],
    ) -> Iterator[Match]:
        """Matches of the pattern from `place` on, at token `here`."""
        self.steps += 1
        if self.steps > _STEPS:
            return
        while place < len(self.pattern) and not _is_open(self.pattern[place]):
            word = self.pattern[place].text
            if word == _START:
                if here == 0 or self.tokens[here - 1].text not in _BOUNDS:
                    return
                place += 1
                continue
            if here >= len(self.tokens) or self.tokens[here].text != word:
                return
            place, here = place + 1, here + 1
        if place == len(self.pattern):
            yield Match(first, here, dict(holes), dict(spans), gaps)
            return
        token = self.pattern[place]
        if token.text == "...":
            ends: Iterable[int] = self._balanced(here, frozenset())
            if place + 1 == len(self.pattern):
                ends = list(ends)[-1:]
            elif self.pattern[place + 1].text not in CLOSES:
                ends = self._inward(here)
            for end in ends:
                after = (*gaps, Span(here, end))
                yield from self.at(place + 1, end, first, holes, spans, after)
            return
        name, kind = hole_of(token)
        for end in self._hole(kind, here, holes.get(name)):
            words = tuple(item.text for item in self.tokens[here:end])
            more = {**spans, name: spans.get(name, Span(here, end))}
            yield from self.at(place + 1, end, first, {**holes, name: words}, more, gaps)

    def _hole(self, kind: str, here: int, bound: tuple[str, ...] | None) -> Iterator[int]:
        """Ends of what a hole may stand for, the shortest first."""
        if bound is not None:
            end = here + len(bound)
            if tuple(item.text for item in self.tokens[here:end]) == bound:
                yield end
            return
        if kind:
            if here < len(self.tokens) and _is_kind(self.tokens[here], kind):
                yield here + 1
            return
        for end in self._balanced(here, _STOPS):
            if end > here:
                yield end

    def _inward(self, here: int) -> Iterator[int]:
        """Ends of the pieces that begin here and do not leave the block, whole statements."""
        depth, end = 0, here
        while depth >= 0:
            yield end
            if end >= len(self.tokens) or self.steps > _STEPS:
                return
            self.steps += 1
            word = self.tokens[end].text
            depth += (word in OPENS) - (word in CLOSES)
            end += 1

    def _balanced(self, here: int, stops: frozenset[str]) -> Iterator[int]:
        """Ends of the balanced pieces that begin here, the empty one first."""
        depth, end = 0, here
        while True:
            if depth == 0:
                yield end
            if end >= len(self.tokens):
                return
            self.steps += 1
            word = self.tokens[end].text
            if self.steps > _STEPS or (depth == 0 and (word in stops or word in CLOSES)):
                return
            depth += (word in OPENS) - (word in CLOSES)
            end += 1


def _is_hole(token: Token) -> bool:
    return token.kind is Kind.HOLE and token.text != "..."


def _is_open(token: Token) -> bool:
    return token.kind is Kind.HOLE


def _is_kind(token: Token, kind: str) -> bool:
    if kind == "name":
        return token.kind is Kind.NAME
    if kind == "int":
        return token.kind is Kind.NUMBER and _INT.fullmatch(token.text) is not None
    return token.kind is Kind.NUMBER


# ------------------------------------------------------------------------------------ replacing


def check_replacement(text: str, pattern: Pattern) -> None:
    """Every hole of the replacement stands in the pattern, and no gap is invented."""
    known = pattern.holes | {SAID, HINT}
    gaps = 0
    for use in _USE.finditer(text):
        name = use.group(1) or use.group(4)
        gaps += name is None
        if name is not None and name not in known:
            raise PatternError(f"${name} stands in the replacement and not in the pattern")
    if gaps > pattern.gaps:
        raise PatternError(f"{gaps} gaps in the replacement, {pattern.gaps} in the pattern")


def replace_match(
    source: str, tokens: Sequence[Token], match: Match, replacement: str, route: str
) -> str:
    """The source with the match replaced; PatternError when `$(a * 2)` is no number."""
    start = tokens[match.first].start
    end = max(tokens[at].end for at in range(match.first, match.last))
    margin = _margin(source, start) if route == TILE else None
    put = _fill(replacement.strip("\n"), source, tokens, match, margin)
    return source[:start] + put + source[end:]


def _fill(
    replacement: str, source: str, tokens: Sequence[Token], match: Match, margin: str | None
) -> str:
    """The replacement with its holes filled, laid out at the place where it goes."""
    lines = []
    gaps = iter(match.gaps)
    behind: Span | None = None  # the gap that the next line follows
    for number, line in enumerate(replacement.split("\n")):
        inner = line[: len(line) - len(line.lstrip())]
        if behind is not None and margin is not None and line.strip():
            margin, behind = _margin_behind(source, tokens, behind, inner), None
        lead = (margin or "") if number else ""
        ended: list[Span] = []

        def word(
            use: re.Match[str], indent: str = (margin or "") + inner, ended: list[Span] = ended
        ) -> str:
            if use.group() == "...":
                ended.append(next(gaps))
                return _moved(source, tokens, ended[-1], indent)
            if use.group(1):
                if use.group(1) not in match.holes:
                    raise PatternError(f"{use.group()}: no message gives a name")
                return _computed(use, match.holes[use.group(1)])
            if use.group(4) not in match.spans:
                return _given(use, match)
            return _slice(source, tokens, match.spans[use.group(4)])

        lines.append((lead + _USE.sub(word, line)).rstrip() if line.strip() else "")
        if line.strip() == "...":
            behind = ended[-1]
    return "\n".join(lines)


def _given(use: re.Match[str], match: Match) -> str:
    """A name that a message gave and that stands nowhere in the pattern."""
    if use.group(4) not in match.holes:
        raise PatternError(f"{use.group()}: no message gives a name")
    return "".join(match.holes[use.group(4)])


def _margin_behind(source: str, tokens: Sequence[Token], gap: Span, inner: str) -> str:
    """The margin of what follows a gap, which may stand deeper than what was before it."""
    rest = (token for token in tokens[gap.last :] if token.end > token.start)
    follows = next(rest, None)
    if follows is None:
        return ""
    return _margin(source, follows.start).removesuffix(inner)


def _computed(use: re.Match[str], words: tuple[str, ...]) -> str:
    """`$(a)` and `$(a * 2)`: what was matched, or an int with one operation on it."""
    sign, number = use.group(2), use.group(3)
    if sign is None:
        return "".join(words)
    if sign == "~":
        return _without(words, number)
    if not _INT.fullmatch(number):
        raise PatternError(f"{use.group()}: {number} is no int")
    if len(words) != 1 or not _INT.fullmatch(words[0]):
        raise PatternError(f"{use.group()}: {' '.join(words)} is no int")
    left, right = int(words[0]), int(number)
    if sign == "/" and right == 0:
        raise PatternError(f"{use.group()} divides by zero")
    results = {"*": left * right, "+": left + right, "-": left - right}
    return str(results[sign] if sign in results else left // right)


def _without(words: tuple[str, ...], ending: str) -> str:
    """`$(f ~ s)`: a name without its ending."""
    name = "".join(words)
    if not name.endswith(ending) or name == ending:
        raise PatternError(f"{name} does not end with {ending}")
    return name.removesuffix(ending)


def _slice(source: str, tokens: Sequence[Token], span: Span) -> str:
    if span.first == span.last:
        return ""
    return source[tokens[span.first].start : tokens[span.last - 1].end]


def _moved(source: str, tokens: Sequence[Token], span: Span, indent: str) -> str:
    """A gap's text; its lines move with the first one when that changes its column."""
    inner = [item for item in tokens[span.first : span.last] if item.end > item.start]
    if not inner:
        return ""
    text = source[inner[0].start : inner[-1].end]
    was = _margin(source, inner[0].start)
    if was == indent or "\n" not in text:
        return text
    first, *rest = text.split("\n")
    moved = [indent + line[len(was) :] if line.startswith(was) else line for line in rest]
    return "\n".join([first, *moved])


def _margin(source: str, at: int) -> str:
    """The white space that the line of that place begins with."""
    line = source[source.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]
