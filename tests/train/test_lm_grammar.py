"""The grammar of the mask against the parser: what each takes of the other."""

from __future__ import annotations

import random

import numpy as np
import pytest
from stages_corpus import programs

from npusmith.errors import LangError
from npusmith.ir.text import show
from npusmith.lang import parse
from npusmith.lm import tokenizer as own
from npusmith.lm.automaton import (
    DEAD,
    Alt,
    Chars,
    Grammar,
    Guided,
    Item,
    Masks,
    Rule,
    Seq,
    Star,
    Text,
    Word,
)
from npusmith.lm.grammar import open_grammar, rule
from npusmith.target.intrinsics import INTRINSICS

TEXTS = [show(parse(text)) for _, text in programs()]
# What the rules do not know: names of functions, and arguments, that come twice.
TWICE = {"lang-functions", "lang-const"}


@pytest.fixture(scope="module")
def grammar() -> Grammar:
    return open_grammar("program")


@pytest.fixture(scope="module")
def tokenizer() -> own.Tokenizer:
    return own.build(TEXTS, 800)


def takes(grammar: Grammar, text: str) -> bool:
    place = grammar.read(grammar.start(), text.encode())
    return place != DEAD and grammar.is_end(place)


@pytest.mark.parametrize("text", TEXTS)
def test_every_program_that_is_printed_is_taken(text: str, grammar: Grammar) -> None:
    assert takes(grammar, text)
    assert not takes(grammar, text[:-1])
    assert not takes(grammar, text + "x")


class Draw:
    """Texts of items; from some rules on the first way of each, so that it ends."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.left = 300

    def text(self, item: Item) -> str:
        draw = self.random
        match item:
            case Text(text):
                return text
            case Chars(legal):
                return chr(draw.choice(sorted(byte for byte in legal if byte < 128)))
            case Seq(items):
                return "".join(map(self.text, items))
            case Alt(items):
                first = self.left < 0 or draw.random() < 0.4
                return self.text(items[0] if first else draw.choice(items))
            case Star(part):
                count = 0 if self.left < 0 else draw.choice((0, 0, 1, 2))
                return "".join(self.text(part) for _ in range(count))
            case Word(first, later, _):
                size = draw.randrange(6)
                return "z" + bytes([min(first), *draw.choices(sorted(later), k=size)]).decode()
            case Rule(name):
                self.left -= 1
                return self.text(rule(name))


@pytest.mark.parametrize("seed", range(40))
def test_the_parser_takes_what_the_rules_give(seed: int, grammar: Grammar) -> None:
    text = Draw(seed).text(rule("program"))
    assert takes(grammar, text)
    try:
        parse(text)
    except LangError as error:
        repeated = error.code == "lang-syntax" and "repeated" in str(error)
        assert error.code in TWICE or repeated, f"{error}\n{text}"


@pytest.mark.parametrize(
    "text",
    [
        "    for for| in range(3):",
        "    x = ub(8, float3|3)",
        "    x = 0|07",
        "    x = y if | z",
        "    with cop|ies:",
        "    exp|(a, b, n)",
        "        load|(a, x[0], n)",
        "        exp(a, b|)",
        '        cast(a, b, "n|earest", n)',
        "        x = y\n        |    z = y",
    ],
)
def test_what_is_no_statement_is_stopped_where_it_stops_being_one(
    text: str, grammar: Grammar
) -> None:
    """Up to the bar it may become one; with eight spaces it stands in a compute stage."""
    head = "@host\ndef h(x):\n    launch(k, 1)\n\n@kernel\ndef k(x: output(float32)):\n"
    stage = "    with compute:\n" if text.startswith(" " * 8) else ""
    at = grammar.read(grammar.start(), f"{head}{stage}".encode())
    taken, _, rest = text.partition("|")
    at = grammar.read(at, taken.encode())
    assert at != DEAD
    assert grammar.read(at, rest[:1].encode()) == DEAD


def test_masks_let_the_tokens_of_a_program_pass_and_end_where_it_ends(
    tokenizer: own.Tokenizer,
) -> None:
    masks = Masks(open_grammar("answer"), tokenizer.tokens, tokenizer.end)
    text = f"2 tiles of 4096\n\n```python\n{min(TEXTS, key=len)}```\n"
    guided = Guided(masks)
    for at in tokenizer.encode(text):
        allowed = guided.allowed()
        assert allowed[at] and not allowed[own.SPECIAL.index(own.PAD)]
        guided.advance(at)
    assert list(np.flatnonzero(guided.allowed())) == [tokenizer.end]


def test_a_mask_is_what_reading_each_token_says(tokenizer: own.Tokenizer) -> None:
    grammar = open_grammar("program")
    masks = Masks(grammar, tokenizer.tokens, tokenizer.end)
    data = min(TEXTS, key=len).encode()
    for cut in range(0, len(data), 7):
        place = grammar.read(grammar.start(), data[:cut])
        wanted = [bool(token) and grammar.read(place, token) != DEAD for token in tokenizer.tokens]
        wanted[tokenizer.end] = grammar.is_end(place)
        assert masks.allowed(place).tolist() == wanted


def test_every_operation_of_the_table_has_a_rule(grammar: Grammar) -> None:
    head = "@host\ndef h(x):\n    launch(k, 1)\n\n@kernel\ndef k(x: output(float32)):\n"
    at = grammar.read(grammar.start(), f"{head}    with compute:\n        ".encode())
    for name in INTRINSICS:
        assert grammar.read(at, f"{name}(".encode()) != DEAD, name
