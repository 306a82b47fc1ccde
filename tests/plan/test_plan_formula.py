"""Formulas in comments say what is computed: read back as Python, they give the same value."""

from __future__ import annotations

import random
import re
from fractions import Fraction
from typing import Any

import pytest

from npusmith.ir.dtypes import DType
from npusmith.plan.dag import Dag, Value
from npusmith.plan.formula import explained, formula
from npusmith.plan.space import Space
from npusmith.task.graph import Graph

NAMES = {"a": Fraction(3), "b": Fraction(5), "c": Fraction(-7, 2), "d": Fraction(11, 3)}
OPS = ("add", "sub", "mul", "div")


def blank() -> Space:
    graph = Graph.model_construct(inputs=(), outputs=(), nodes=())
    return Space((), (), (), -1, Dag(), graph)


def load(name: str) -> Value:
    return Value("load", text=name, dtype=DType.FLOAT32)


def drawn(rng: random.Random, deep: int) -> Value:
    """A tree of operators, not simplified by the Dag."""
    if deep == 0 or rng.random() < 0.15:
        if rng.random() < 0.3:
            return Value("const", number=rng.choice([2, -3, 0.5]))
        return load(rng.choice(list(NAMES)))
    if rng.random() < 0.15:
        return Value("neg", (drawn(rng, deep - 1),))
    return Value(rng.choice(OPS), (drawn(rng, deep - 1), drawn(rng, deep - 1)))


def worth(value: Value) -> Any:
    match value.op:
        case "load":
            return NAMES[value.text]
        case "const":
            return Fraction(value.number)
        case "neg":
            return -worth(value.args[0])
    a, b = (worth(arg) for arg in value.args)
    return {
        "add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "div": lambda: a / b,
        "lt": lambda: Fraction(a < b), "le": lambda: Fraction(a <= b),
    }[value.op]()  # fmt: skip


def read(text: str, names: dict[str, Any]) -> Any:
    exact = re.sub(r"(?<![\w.])(\d+(\.\d+)?)", r"Fraction('\1')", text)
    return Fraction(eval(exact, {"neg": lambda x: -x, "Fraction": Fraction, **names}))


@pytest.mark.parametrize("seed", range(300))
def test_a_formula_read_back_has_the_value_of_the_expression(seed: int) -> None:
    rng = random.Random(seed)
    value, space = drawn(rng, rng.randint(1, 7)), blank()
    if seed % 5 == 0:
        value = Value(rng.choice(["lt", "le"]), (value, drawn(rng, 3)))
    try:
        wanted = worth(value)
    except ZeroDivisionError:
        return
    text, names = formula(space, value), dict[str, Any](NAMES)
    for line in explained(space):
        name, _, meaning = line.partition(" = ")
        names[name] = read(meaning, names)
    assert read(text, names) == wanted, (text, explained(space))
    assert "..." not in text


def test_a_quotient_by_a_product_keeps_its_parentheses() -> None:
    a, b, c = load("a"), load("b"), load("c")
    assert formula(blank(), Value("div", (a, Value("mul", (b, c))))) == "a / (b * c)"
    assert formula(blank(), Value("mul", (Value("div", (a, b)), c))) == "a / b * c"
    assert formula(blank(), Value("sub", (a, Value("add", (b, c))))) == "a - (b + c)"


def test_a_deep_chain_is_named_piece_by_piece_and_hides_nothing() -> None:
    value, space = load("a"), blank()
    for _ in range(5000):
        value = Value("exp", (value,))
    text = formula(space, value)
    lines = [text, *explained(space)]
    assert sum(line.count("exp(") for line in lines) == 5000
    assert max(map(len, lines)) < 100
