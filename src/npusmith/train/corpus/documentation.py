"""Questions about our own tables, with their answers: APIs, operations, findings, chips, costs.

Every fact is asked for in two ways. An answer ends in a line `Answer: ...`, which `is_true` holds
against the table once more, from the finished text; whether an operation takes an element type the
checker of the language decides, on a program that uses it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache

from npusmith.errors import CODES
from npusmith.ir.dtypes import DType
from npusmith.lang import check_all, parse
from npusmith.lang.words import CALLS, signature
from npusmith.target.apis import ALL as APIS
from npusmith.target.apis import Known
from npusmith.target.chips import CHIPS, DEFAULT_CHIP, find_chip
from npusmith.target.costs import COSTS
from npusmith.target.intrinsics import CASTS, INTRINSICS, Intrinsic, Operand
from npusmith.train.corpus.sample import Kind, Sample, Split

_END = "\nAnswer: "
_MOST_TEST, _MOST_VALIDATION = 5, 8  # of 100 rows of a table: those for tests, and those for both
_KNOWN = {
    Known.REPRODUCED: "the twin reproduces the published table of special values",
    Known.DOCUMENTED: "its documentation says what it does, and the twin does that",
    Known.INFERRED: "its behaviour was inferred from its formula, name or use",
    Known.UNKNOWN: "nothing published says what the chip does",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """`value` of `field` in a row; `asks`: two questions. `why`: a sentence before the answer."""

    table: str
    row: str
    field: str
    value: str
    asks: tuple[str, str]
    why: str
    shown_by: str


def samples() -> Iterator[Sample]:
    """All of them, in the order of the tables; raises AssertionError for one that is not true."""
    for fact in (fact for facts in TABLES.values() for fact in facts()):
        for number, ask in enumerate(fact.asks):
            made = Sample(
                kind=Kind.DOCUMENTATION, family=f"documentation {fact.table}", split=_split(fact),
                prompt=ask, completion=f"{fact.why}{_END}{fact.value}", verified_by=fact.shown_by,
                meta={
                    "table": fact.table, "row": fact.row, "field": fact.field, "wording": number,
                },
            )  # fmt: skip
            assert is_true(made), made.prompt
            yield made


def is_true(sample: Sample) -> bool:
    """Whether the table says what the sample's last line says."""
    wanted = _values(sample.meta["table"])
    said = sample.completion.rpartition(_END)[2]
    return wanted[sample.meta["row"], sample.meta["field"]] == said


def _split(fact: Fact) -> Split:
    """By the row, whatever is asked of it."""
    place = int(hashlib.sha256(f"{fact.table} {fact.row}".encode()).hexdigest()[:8], 16) % 100
    if place < _MOST_TEST:
        return Split.TEST
    return Split.VALIDATION if place < _MOST_VALIDATION else Split.TRAIN


@cache
def _values(table: str) -> Mapping[tuple[str, str], str]:
    """What each field of each row has to be."""
    return READERS[table]()


# ------------------------------------------------------------------------------------- the tables


def _codes() -> Iterator[Fact]:
    for row in CODES.values():
        shown = f"npusmith explain {row.name}"
        yield Fact(
            "findings", row.name, "level", row.level.value,
            (f"How serious is npusmith's finding `{row.name}`: error, warning or note?",
             f"A report lists `{row.name}`. Does it fail the verdict? Name its level."),
            f"`{row.name}` means: {row.meaning}", shown,
        )  # fmt: skip
        yield Fact(
            "findings", row.name, "legal", row.legal,
            (f"What is legal where npusmith reports `{row.name}`?",
             f"npusmith says `{row.name}`: {row.meaning} What would be legal?"),
            f"{row.meaning} What usually helps: {row.hint}.", shown,
        )  # fmt: skip
        yield Fact(
            "findings", row.name, "name", row.name,
            (f"Which code of npusmith stands for this: {row.meaning}",
             f"A program breaks this rule: {row.meaning} Under which code does npusmith report "
             "it?"),
            f"What is legal there: {row.legal}.", shown,
        )  # fmt: skip


def _read_codes() -> dict[tuple[str, str], str]:
    return {
        (name, field): value
        for name, row in CODES.items()
        for field, value in (("level", row.level.value), ("legal", row.legal), ("name", row.name))
    }


def _types(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _apis() -> Iterator[Fact]:
    for row in APIS:
        shown = "npusmith docs (docs/apis.md)"
        note = f" {row.note[:1].upper()}{row.note[1:]}." if row.note else ""
        yield Fact(
            "apis", row.name, "dtypes", _types(row.dtypes),
            (f"Which element types does Ascend C's {row.name} take on dav-2201, as the twin has "
             "it?",
             f"For {row.name} of Ascend C, list the C++ element types that compile for dav-2201."),
            f"{row.name} belongs to the section {row.group}.{note}", shown,
        )  # fmt: skip
        yield Fact(
            "apis", row.name, "known", row.known.value,
            (f"How well is the behaviour of {row.name} known: reproduced, documented, inferred or "
             "unknown?",
             f"How sure is npusmith's twin of Ascend C's {row.name}?"),
            f"Of {row.name}, {_KNOWN[row.known]}.{note}", shown,
        )  # fmt: skip
        yield Fact(
            "apis", row.name, "group", row.group,
            (f"To which section of the Ascend C API does {row.name} belong?",
             f"Where would you look up {row.name} in the Ascend C guide?"),
            f"Its element types are: {_types(row.dtypes)}.", shown,
        )  # fmt: skip


def _read_apis() -> dict[tuple[str, str], str]:
    fields = ("dtypes", "known", "group")
    return {
        (row.name, field): value
        for row in APIS
        for field, value in zip(
            fields, (_types(row.dtypes), row.known.value, row.group), strict=True
        )
    }


def _operations() -> Iterator[Fact]:
    for name, row in INTRINSICS.items():
        shown = "npusmith docs (docs/reference.md)"
        yield Fact(
            "operations", name, "call", signature(row),
            (f"How is the operation `{name}` of npusmith's tile language called?",
             f"Write the call of the tile language's `{name}` with the names of its operands."),
            f"It computes {row.summary}; {row.form.value}.", shown,
        )  # fmt: skip
        yield Fact(
            "operations", name, "ascend", row.ascend,
            (f"To which Ascend C function does the tile language's `{name}` go?",
             f"What does npusmith's lowering make of `{name}`: which Ascend C call?"),
            f"`{signature(row)}` computes {row.summary}.", shown,
        )  # fmt: skip
        yield Fact(
            "operations", name, "name", name,
            (f"Which operation of the tile language computes {row.summary} ({row.form.value}), by "
             f"{row.ascend}?",
             f"In a compute stage you need: {row.summary}, {row.form.value}; Ascend C has "
             f"{row.ascend} for it. Which operation do you write?"),
            f"It is called so: {signature(row)}.", shown,
        )  # fmt: skip
        for dtype in _asked_types(row):
            yield Fact(
                "operations", name, dtype.value, "yes" if dtype in row.dtypes else "no",
                (f"May the destination of `{name}` be {dtype.value} in the tile language?",
                 f"A kernel calls `{name}` on a buffer of {dtype.value}. Does npusmith's checker "
                 "take that?"),
                f"The destination of `{name}` is one of "
                f"{', '.join(item.value for item in row.dtypes)}.",
                "npusmith check FILE.tile.py",
            )  # fmt: skip


def _asked_types(row: Intrinsic) -> tuple[DType, ...]:
    """Where a program with nothing but this operation can decide: one type for all operands."""
    plain = {Operand.DST, Operand.SRC, Operand.SCALAR, Operand.COUNT}
    if not set(row.operands) <= plain or row.src_dtypes or row.int_scalar:
        return ()
    return (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.INT32, DType.INT16, DType.INT8)


def _read_operations() -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for name, row in INTRINSICS.items():
        found |= {(name, "call"): signature(row), (name, "ascend"): row.ascend}
        found[name, "name"] = name
        for dtype in _asked_types(row):
            found[name, dtype.value] = "yes" if _is_legal(row, dtype) else "no"
    return found


def _is_legal(row: Intrinsic, dtype: DType) -> bool:
    """As the checker says, of a program that calls the operation on buffers of that type."""
    whole = "1.0" if dtype.is_float else "1"
    sources = [item for item in row.operands if item is Operand.SRC]
    words = {Operand.DST: "yt", Operand.SRC: "xt", Operand.SCALAR: whole, Operand.COUNT: "256"}
    kind = dtype.value
    start = "" if not row.reads_dst else f"            duplicate(yt, {whole}, 256)\n"
    load = (
        f"    xt = ub(256, {kind})\n" if sources else "",
        "        with copy_in:\n            load(xt, x[t * 256], 256)\n" if sources else "",
    )
    given = f"x: input({kind}), " if sources else ""
    text = (
        f"@host\ndef host({'x, ' if sources else ''}y):\n    launch(k, 1, n=y.size)\n\n\n"
        f"@kernel\ndef k({given}y: output({kind}), n: int):\n{load[0]}    yt = ub(256, {kind})\n"
        f"    for t in range(n // 256):\n{load[1]}        with compute:\n{start}"
        f"            {row.name}({', '.join(words[item] for item in row.operands)})\n"
        "        with copy_out:\n            store(y[t * 256], yt, 256)\n"
    )
    return not check_all(parse(text), find_chip(DEFAULT_CHIP))


def _casts() -> Iterator[Fact]:
    for source in DType:
        for target in DType:
            if source is target or not (source.is_computed and target.is_computed):
                continue
            modes = _modes(source, target)
            yield Fact(
                "conversions", f"{source.value} {target.value}", "modes", modes,
                (f"With which rounding modes does the tile language's `cast` convert "
                 f"{source.value} to {target.value}?",
                 f"Is there a direct cast from {source.value} to {target.value} on dav-2201, and "
                 "in which modes?"),
                "A cast names its mode; a pair without a mode needs another type between."
                if modes == "none" else f"`cast(dst, src, mode, count)` from {source.value}.",
                "npusmith docs (docs/reference.md)",
            )  # fmt: skip


def _modes(source: DType, target: DType) -> str:
    return ", ".join(sorted(CASTS.get((source, target), ()))) or "none"


def _read_casts() -> dict[tuple[str, str], str]:
    pairs = ((a, b) for a in DType for b in DType)
    return {(f"{a.value} {b.value}", "modes"): _modes(a, b) for a, b in pairs}


def _chips() -> Iterator[Fact]:
    for name, chip in CHIPS.items():
        for field, value in _facts(name).items():
            words = field.replace("_", " ")
            yield Fact(
                "chips", name, field, value,
                (f"What is {words} of the chip {name}, as npusmith describes it?",
                 f"npusmith's row of the {name}: give `{field}`."),
                f"The {name} is compiled for {chip.arch} and has {chip.vector_cores} vector cores "
                f"and {chip.cube_cores} cube cores.", "npusmith docs (docs/chips.md)",
            )  # fmt: skip


def _facts(name: str) -> dict[str, str]:
    chip = CHIPS[name]
    rows = {key: value for key, value in asdict(chip).items() if key not in ("name", "hbm_basis")}
    return {key: str(value) for key, value in (rows | {"ub_bytes": chip.ub_bytes}).items()}


def _read_chips() -> dict[tuple[str, str], str]:
    return {(name, field): value for name in CHIPS for field, value in _facts(name).items()}


def _costs() -> Iterator[Fact]:
    for row in COSTS.values():
        yield Fact(
            "costs", row.name, "basis", row.basis,
            (f"On what does `{row.name}` of npusmith's timing model rest: documented, measured, "
             "derived, fitted or guess?",
             f"How far can one trust the constant `{row.name}` of the timing model?"),
            f"Before the calibration it is {row.value:g} {row.unit}."
            + (f" Source: {row.source}." if row.source else ""),
            "npusmith docs",
        )  # fmt: skip


def _read_costs() -> dict[tuple[str, str], str]:
    return {(row.name, "basis"): row.basis for row in COSTS.values()}


def _calls() -> Iterator[Fact]:
    for name, form in CALLS.items():
        yield Fact(
            "calls", name, "form", form,
            (f"How is `{name}` written in the tile language?",
             f"Show the form of the tile language's call `{name}`."),
            "It is a statement of its own, without a value.", "npusmith docs (docs/reference.md)",
        )  # fmt: skip


def _read_calls() -> dict[tuple[str, str], str]:
    return {(name, "form"): form for name, form in CALLS.items()}


TABLES: dict[str, Callable[[], Iterator[Fact]]] = {
    "findings": _codes, "apis": _apis, "operations": _operations, "conversions": _casts,
    "chips": _chips, "costs": _costs, "calls": _calls,
}  # fmt: skip
READERS: dict[str, Callable[[], dict[tuple[str, str], str]]] = {
    "findings": _read_codes, "apis": _read_apis, "operations": _read_operations,
    "conversions": _read_casts, "chips": _read_chips, "costs": _read_costs, "calls": _read_calls,
}  # fmt: skip
