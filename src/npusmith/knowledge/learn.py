"""From a failure and its fix, or a slow kernel and a faster one, to an item.

`drafts(before, after, route)` gives templates for the smallest difference of the two, with the
kernel's own names and untouched arguments made holes; `best_template` takes the one that, applied
to `before`, gives `after` again at the first place it tries, and fits as little else as possible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from npusmith.knowledge.edit import Edit, Template, candidates, sites_of
from npusmith.knowledge.pattern import PatternError
from npusmith.knowledge.tokens import (
    CLOSES,
    END,
    IN,
    INIT,
    INIT_END,
    OPENS,
    OUT,
    TILE,
    Kind,
    Token,
    read_tokens,
    words,
)
from npusmith.knowledge.traits import api_names, fixed_names

_NEAR = 6  # words between two changes that count as one
_MOST = 600  # words of a change: what is larger is another kernel, not a fix
_ENDS = frozenset((";", "{", "}", END, IN, OUT))
_TRIED = 3  # places at which the fix may be found
# Words with a bracket and without these say enough by themselves, without their statement.
_BRACKETS, _LOOSE = frozenset(("[", "(")), frozenset((",", "=", ";", END, IN, OUT))
_OPERATORS = frozenset(("+", "-", "*", "/", "//", "%", "<", ">", "<=", ">=", "==", "!="))
_JUDGED = 3  # drafts that are judged, of those that do not replay word for word
# Calls whose name a pattern keeps: their place in a kernel's flow is what a fix is about.
_KEPT = " load store value range core_id DataCopyPad DataCopy PipeBarrier cast Cast launch ub "
_TYPES = frozenset(
    ("float", "half", "bfloat16_t", "int32_t", "float32", "float16", "bfloat16", "int32")
)


@dataclass(frozen=True, slots=True)
class Hunk:
    """Words [b0, b1) of `before` became words [a0, a1) of `after`."""

    b0: int
    b1: int
    a0: int
    a1: int


def best_template(
    before: str,
    after: str,
    route: str,
    lines: Sequence[int] = (),
    said: Sequence[str] = (),
    accept: Callable[[str], bool] | None = None,
) -> Template | None:
    """The template that replays the fix; None when no draft does.

    `lines` and `said`: where the findings are, and the names that their messages quote. `accept`
    judges a text: a draft whose first edit is right in another way than `after` will do too.
    """
    target = words(after, route)
    found: list[tuple[tuple[int, int, int], Template]] = []
    others: list[str] = []
    for order, template in enumerate(drafts(before, after, route, said)):
        made = candidates(template, before, lines, most=_TRIED, said=said)
        texts = [words(text, route) for text in made]
        left = 0 if lines else min(sum(1 for _ in sites_of(template, after)), 4)
        if target in texts:
            found.append(((texts.index(target), left, order), template))
        elif made and accept and made[0] not in others and len(others) < _JUDGED:
            others.append(made[0])
            if accept(made[0]):
                found.append(((0, left, order), template))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def drafts(before: str, after: str, route: str, said: Sequence[str] = ()) -> Iterator[Template]:
    """Templates from the most general to the most literal."""
    left, right = read_tokens(before, route), read_tokens(after, route)
    hunks = find_hunks(left, right)
    if not hunks or sum(hunk.b1 - hunk.b0 + hunk.a1 - hunk.a0 for hunk in hunks) > _MOST:
        return
    seen: set[str] = set()
    for wide in (2, 1, 0):
        for context in ("tight", "call", "none", "next", "previous", "both"):
            for template in _variants(left, right, route, hunks[:8], wide, context, said):
                if (text := template.model_dump_json()) not in seen:
                    seen.add(text)
                    yield template


def _variants(
    left: Sequence[Token],
    right: Sequence[Token],
    route: str,
    hunks: Sequence[Hunk],
    wide: int,
    context: str,
    said: Sequence[str],
) -> Iterator[Template]:
    """The template, first on condition that what is put in is not there yet."""
    maker = _Maker(left, right, route, wide, said[0] if said else "")
    try:
        edits = tuple(maker.edit(hunk, context) for hunk in hunks)
    except (PatternError, ValueError, IndexError):
        return
    first = (f"lacks {maker.fresh_text}",) if maker.fresh_text else tuple(maker.tests)
    for where in dict.fromkeys((first, ())):
        with suppress(PatternError, ValueError):
            yield Template(route=route, edits=edits, where=where)


def find_hunks(left: Sequence[Token], right: Sequence[Token]) -> list[Hunk]:
    """The changes; neighbours, and those of one statement, are joined."""
    a, b = [token.text for token in left], [token.text for token in right]
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    a, b = a[head : len(a) - tail], b[head : len(b) - tail]
    hunks: list[Hunk] = []
    for tag, i0, i1, j0, j1 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        between = a[hunks[-1].b1 - head : i0] if hunks else []
        layout = not set(a[i0:i1] + b[j0:j1]) - {IN, OUT, END}  # the end of a block put around
        if hunks and (len(between) < _NEAR or layout or not _ENDS & set(between)):
            last = hunks.pop()
            hunks.append(Hunk(last.b0, i1 + head, last.a0, j1 + head))
        else:
            hunks.append(Hunk(i0 + head, i1 + head, j0 + head, j1 + head))
    return hunks


@dataclass
class _Maker:
    """Makes edits of one draft; hole names are shared between its edits.

    `wide`: 2 turns API names that did not change into holes too, 1 types and numbers, 0 only the
    kernel's own names.
    """

    left: Sequence[Token]
    right: Sequence[Token]
    route: str
    wide: int
    said: str = ""  # the name that the message quotes
    holes: dict[str, str] = field(default_factory=dict)
    fresh_text: str = ""  # of a statement that is put in
    tests: list[str] = field(default_factory=list)  # on ints that became other ones

    def edit(self, hunk: Hunk, context: str) -> Edit:
        small = {"tight": self._tight, "call": self._call}.get(context)
        place = small(hunk) if small else self._statement(hunk)
        if place is None:
            raise PatternError("nothing in it says what it is")
        start, end = place
        before = (start - hunk.b0, end - hunk.b1)
        stmt_b = list(self.left[start:end])
        stmt_a = list(self.right[hunk.a0 + before[0] : hunk.a1 + before[1]])
        find, put = self._change(stmt_b, stmt_a)
        if context in ("next", "both") or (context == "none" and not find):
            words = self._keep(*self._next(end))
            find, put = [*find, *words], [*put, *words]
        if context in ("previous", "both"):
            words = self._keep(*self._previous(start))
            find, put = [*words, *find], [*words, *put]
        find, put = self._bind(stmt_a, start, find, put)
        if self.wide:
            find, put = _rest(find, put, 3 - self.wide)
        own = {key for key in self.holes if key.isidentifier() and self._is_own(key)}
        put = [f"${self.holes[word]}" if word in own else word for word in put]
        if not stmt_b and stmt_a:
            words = self._abstract(stmt_a, {}, set(), old=False)
            known = [f"${self.holes[word]}" if word in self.holes else word for word in words]
            self.fresh_text = _show(known, self.route)
        return Edit(find=_show(find, self.route), put=_show(put, self.route))

    # ---- where statements begin and end

    def _tight(self, hunk: Hunk) -> tuple[int, int] | None:
        """The words themselves, with the call that they begin; None where they could be anything.

        `cdiv(a, b)` or `part[0]` says by itself what is wrong with it, wherever it stands.
        """
        known = {token.text for token in self.right} | fixed_names(self.route)
        odd = [
            at for at in range(hunk.b0, hunk.b1)
            if self.left[at].kind is Kind.NAME and self.left[at].text not in known
        ]  # fmt: skip
        texts = {token.text for token in self.left[hunk.b0 : hunk.b1]}
        if not odd and self._operator(hunk):
            return hunk.b0 - 1, hunk.b1 + 1
        if not odd and (not texts & _BRACKETS or texts & _LOOSE):
            return None
        start, end = hunk.b0, hunk.b1
        while start > 1 and self.left[start - 1].text in (".", "::", "->"):
            start -= 2
        if self.left[end].text == "(":
            end += 1
        return start, self._closed(start, end)

    def _operator(self, hunk: Hunk) -> bool:
        """One operator between two words became another one."""
        if (hunk.b1 - hunk.b0, hunk.a1 - hunk.a0) != (1, 1) or hunk.b0 == 0:
            return False
        both = {self.left[hunk.b0].text, self.right[hunk.a0].text}
        beside = (self.left[hunk.b0 - 1].kind, self.left[hunk.b1].kind)
        return both <= _OPERATORS and set(beside) <= {Kind.NAME, Kind.NUMBER}

    def _call(self, hunk: Hunk) -> tuple[int, int] | None:
        """The innermost call around the words; None where there is none, or it is the statement."""
        depth, start = 0, hunk.b0 - 1
        while start > 0 and (depth or self.left[start].text != "("):
            word = self.left[start].text
            if word in _ENDS:
                return None
            depth += (word in CLOSES) - (word in OPENS)
            start -= 1
        if start < 1 or self.left[start - 1].kind is not Kind.NAME or self._starts(start - 1):
            return None
        return start - 1, self._closed(start - 1, hunk.b1)

    def _closed(self, start: int, end: int) -> int:
        """The end, moved on until all brackets are closed."""
        words_of = [token.text for token in self.left[start:]]
        while end < len(self.left):
            inside = words_of[: end - start]
            if sum(w in OPENS for w in inside) <= sum(w in CLOSES for w in inside):
                break
            end += 1
        return end

    def _statement(self, hunk: Hunk) -> tuple[int, int]:
        """The words of the statements that the hunk touches; nothing for a whole one put in."""
        start, end = hunk.b0, hunk.b1
        whole = start == end and self._starts(start) and self._closes(hunk)
        if whole:
            return start, end
        while start > 0 and not self._starts(start):
            start -= 1
        while end < len(self.left) and (end == start or not self._starts(end)):
            if self.left[end].text in (IN, OUT):
                break
            end += 1
        return start, end

    def _starts(self, at: int) -> bool:
        return at == 0 or self.left[at - 1].text in _ENDS

    def _closes(self, hunk: Hunk) -> bool:
        return hunk.a1 > hunk.a0 and self.right[hunk.a1 - 1].text in _ENDS

    def _next(self, at: int) -> tuple[int, int]:
        end = at
        while end < len(self.left) and (end == at or not self._starts(end)):
            end += 1
        return at, end

    def _previous(self, at: int) -> tuple[int, int]:
        start = max(at - 1, 0)
        while start > 0 and not self._starts(start):
            start -= 1
        return start, at

    # ---- words with holes

    def _keep(self, start: int, end: int, wanted: Sequence[str] = ()) -> list[str]:
        """An untouched statement: the same name is the same hole throughout.

        Arguments that hold a wanted name stay as they are, so that it can be taken from there.
        """
        tokens = self.left[start:end]
        names = {
            span: self._hole(_key(tokens, span))
            for span in _spans(tokens)
            if span[1] - span[0] == 1 or not {t.text for t in tokens[slice(*span)]} & set(wanted)
        }
        return self._abstract(tokens, names)

    def _change(self, before: list[Token], after: list[Token]) -> tuple[list[str], list[str]]:
        """Both sides of a change: what is the same in both may become a hole."""
        if not after:  # put out: an untouched statement in all but that
            whole = {span: self._hole(_key(before, span)) for span in _spans(before)}
            return self._abstract(before, whole), []
        a, b = [token.text for token in before], [token.text for token in after]
        blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
        same = {block.a + at: block.b + at for block in blocks for at in range(block.size)}
        spans = [
            span for span in _spans(before)
            if all(at in same and same[at] - at == same[span[0]] - span[0] for at in range(*span))
        ]  # fmt: skip
        names = {span: self._argument(_key(before, span)) for span in spans}
        moved = {
            (same[first], same[first] + last - first): name for (first, last), name in names.items()
        }
        olds, news = self._numbers(before, after, same)
        if self.wide == 2:
            self._endings(before, after, same, olds, news)
        find = self._abstract(before, names, set(same), olds)
        put = self._abstract(after, moved, set(same.values()), news, old=False)
        return find, put

    def _argument(self, key: str) -> str:
        """An argument that did not change: one of its own, though another is equal by chance."""
        if self.wide == 0 or key not in self.holes:
            return self._hole(key)
        return self._hole(f"{key} once more {len(self.holes)}")

    def _numbers(
        self, before: list[Token], after: list[Token], same: dict[int, int]
    ) -> tuple[dict[int, str], dict[int, str]]:
        """Ints that got an ending, as 2 -> 2.0f: the int becomes a hole, the ending is put on.

        An int that became another one matches any int.
        """
        if self.wide == 0:
            return {}, {}
        kept = set(same.values())
        old = [at for at, token in enumerate(before) if at not in same and _is_int(token)]
        new = [at for at, item in enumerate(after) if at not in kept and item.kind is Kind.NUMBER]
        finds: dict[int, str] = {}
        puts: dict[int, str] = {}
        for left, right in zip(old, new, strict=False):
            name = self._hole(f"changed {before[left].text} {left}")
            finds[left] = f"${name}:int"
            if _is_int(after[right]):
                sign = "<" if int(before[left].text) < int(after[right].text) else ">"
                self.tests.append(f"${name} {sign} {after[right].text}")
            ending = after[right].text.removeprefix(before[left].text)
            if ending and ending != after[right].text:
                puts[right] = f"$({name}){ending}"
        return finds, puts

    def _endings(
        self,
        before: list[Token],
        after: list[Token],
        same: dict[int, int],
        olds: dict[int, str],
        news: dict[int, str],
    ) -> None:
        """Names that got an ending or lost one, as mul -> muls: the name becomes a hole."""
        kept = set(same.values())
        old = [at for at, token in enumerate(before) if at not in same and token.kind is Kind.NAME]
        new = [at for at, item in enumerate(after) if at not in kept and item.kind is Kind.NAME]
        for left, right in zip(old, new, strict=False):
            one, two = before[left].text, after[right].text
            more, less = two.removeprefix(one), one.removeprefix(two)
            if 0 < len(more) <= 2 and more != two:
                put = f"){more}"
            elif 0 < len(less) <= 2 and less != one:
                put = f" ~ {less})"
            else:
                continue
            name = self._hole(f"ended {one}")
            olds[left], news[right] = f"${name}:name", f"$({name}{put}"

    def _abstract(
        self,
        tokens: Sequence[Token],
        spans: Mapping[tuple[int, int], str],
        same: set[int] | None = None,
        fixed: Mapping[int, str] | None = None,
        old: bool = True,
    ) -> list[str]:
        """Words of a pattern; each span is the hole that it is given."""
        words: list[str] = []
        ends = {first: (last, name) for (first, last), name in spans.items()}
        at = 0
        while at < len(tokens):
            if at in ends:
                at, name = ends[at]
                words.append(f"${name}")
                continue
            given = fixed.get(at) if fixed else None
            words.append(given or self._word(tokens, at, same is None or at in same, old))
            at += 1
        return words

    def _word(self, tokens: Sequence[Token], at: int, same: bool, old: bool) -> str:
        token = tokens[at]
        after = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if token.kind is Kind.NAME and token.text not in fixed_names(self.route):
            made_up = not same and (
                after in ("(", "<", ".", "::") or (at > 0 and tokens[at - 1].text in (".", "::"))
            )
            if old and not made_up:
                return f"${self._hole(token.text)}"
            if token.text in self.holes:
                return f"${self.holes[token.text]}"
            return "$(said)" if token.text == self.said and not old else token.text
        if not same:
            return token.text
        if token.kind is Kind.NUMBER and self.wide >= 1:
            return f"${self._hole(f'number {token.text}')}"
        if self.wide >= 1 and token.text in _TYPES:
            return f"${self._hole(token.text)}"
        if self.wide >= 2 and after == "(" and _is_operation(token.text, self.route):
            return f"${self._hole(token.text)}"
        return token.text

    def _hole(self, key: str) -> str:
        return self.holes.setdefault(key, _letter(len(self.holes)))

    # ---- names that the fix uses and the pattern does not know yet

    def _bind(
        self, after: list[Token], start: int, find: list[str], put: list[str]
    ) -> tuple[list[str], list[str]]:
        """Puts the nearest earlier statement with the missing names in front, behind a gap."""
        missing = [
            token.text
            for token in after
            if token.kind is Kind.NAME and token.text in put and self._is_own(token.text)
        ]
        missing = [name for name in dict.fromkeys(missing) if name not in self.holes]
        if not missing:
            return find, put
        spot = self._mention(missing, start)
        if spot is None:
            return find, put
        words = self._keep(*spot, missing)
        gap = [] if spot[1] == start else ["..."]
        put = [f"${self.holes[word]}" if word in self.holes else word for word in put]
        return [*words, *gap, *find], [*words, *gap, *put]

    def _is_own(self, name: str) -> bool:
        return name not in fixed_names(self.route) and any(
            token.text == name for token in self.left
        )

    def _mention(self, names: Sequence[str], start: int) -> tuple[int, int] | None:
        """The nearest statement before `start` with all the names, else with the first of them.

        Blocks that are closed before `start` do not count: a gap cannot leave them.
        """
        for wanted in (set(names), {names[0]}):
            at, closed = start, 0
            while at > 0:
                first, last = self._previous(at)
                texts = [token.text for token in self.left[first:last]]
                shut = sum(text in CLOSES for text in texts) - sum(text in OPENS for text in texts)
                closed = max(0, closed + shut)
                if closed == 0 and wanted <= set(texts):
                    return first, last
                at = first
        return None


def _rest(find: list[str], put: list[str], least: int) -> tuple[list[str], list[str]]:
    """That many arguments or more, behind the first, alike at the end of both calls: one gap."""
    size = 0
    while size < min(len(find), len(put)) and find[-1 - size] == put[-1 - size]:
        size += 1
    tail = find[len(find) - size :]
    if not tail or ")" not in tail or tail.count(",") < least or any(w in _ENDS for w in tail[:-1]):
        return find, put
    first, last = tail.index(","), len(tail) - 1 - tail[::-1].index(")")
    if any(word in OPENS or word in CLOSES for word in tail[first:last]):
        return find, put
    tail = [*tail[: first + 1], "...", *tail[last:]]
    return [*find[: len(find) - size], *tail], [*put[: len(put) - size], *tail]


def _spans(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Arguments of calls: pieces between brackets and commas, the outermost ones."""
    spans: list[tuple[int, int]] = []
    depth, start = 0, 0
    for at, token in enumerate(tokens):
        word = token.text
        if word in CLOSES:
            depth -= 1
            if depth == 0 and word != "}":
                spans.append((start, at))
        if depth == 1 and word == ",":
            spans.append((start, at))
            start = at + 1
        if word in OPENS:
            depth += 1
            if depth == 1:
                start = at + 1
        depth = max(depth, 0)
    return [
        (first, last)
        for first, last in spans
        if first < last and not any(token.text in _ENDS for token in tokens[first:last])
    ]


def _key(tokens: Sequence[Token], span: tuple[int, int]) -> str:
    return " ".join(token.text for token in tokens[span[0] : span[1]])


def _is_operation(name: str, route: str) -> bool:
    return name in api_names(route) and f" {name} " not in _KEPT


def _is_int(token: Token) -> bool:
    return token.kind is Kind.NUMBER and token.text.isdecimal()


def _letter(number: int) -> str:
    """a, b, ... z, a1, b1 ..."""
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")


# ---- words to text

_PLAIN = {INIT: "{ ", INIT_END: " }"}  # with a blank: no end of a line of the pattern
_TIGHT_BEFORE = frozenset((";", ",", ")", "]", ".", "->", "::", "(", "[", ":"))
_GENERIC = re.compile(
    r"\b(?:LocalTensor|GlobalTensor|TQue|TBuf|TQueBind|PipeBarrier|Sync|SetFlag|WaitFlag|"
    r"AllocTensor|DeQue|EnQue|Get|static_cast|DataCopyPadExtParams|SyncAll|ReinterpretCast)$"
)


def _show(words: Sequence[str], route: str) -> str:
    """Text that reads as these words again."""
    lines: list[str] = []
    line, depth, generic = "", 0, 0
    for word in (_PLAIN.get(word, word) for word in words):
        if word in (IN, OUT):
            depth += 1 if word == IN else -1
            continue
        if word == END:
            lines.append(line)
            line = ""
            continue
        opens = word == "<" and _GENERIC.search(line) is not None
        tight = opens or (generic and word == ">") or line.endswith(("(", "[", ".", "::", "->"))
        if not line:
            line = "    " * max(depth, 0) + word
        elif tight or word in _TIGHT_BEFORE or (generic and line.endswith("<")):
            line += word
        else:
            line += f" {word}"
        generic += opens - (1 if generic and word == ">" else 0)
        inside = line.count("(") > line.count(")")
        if (word == "..." and not inside) or (route != TILE and word in (";", "{", "}")):
            lines.append(line)
            line = ""
    lines.append(line)
    return "\n".join(text for text in lines if text.strip())
