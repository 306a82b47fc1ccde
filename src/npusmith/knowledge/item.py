"""A knowledge item: trigger, rationale, template, and the proof that it does what it says."""

from __future__ import annotations

import hashlib
import json
import re
from enum import Enum

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from npusmith.errors import CODES
from npusmith.knowledge.circumstance import is_condition, listed
from npusmith.knowledge.edit import Template
from npusmith.knowledge.trial import SLOW, WRONG, Case
from npusmith.timing.bottleneck import NAMES

REPAIR, OPTIMISE = "repair", "optimise"
AIMS = (REPAIR, OPTIMISE)
OWN_CODES = (WRONG, SLOW)


class State(str, Enum):
    """Only verified items are served."""

    NEW = "unverified"
    VERIFIED = "verified"
    RETIRED = "retired"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Trigger(_Part):
    """Where it applies. An empty field says nothing."""

    aim: str
    codes: tuple[str, ...] = ()  # of findings: a key of errors.CODES, "wrong-values" or "slow"
    apis: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    chips: tuple[str, ...] = ()  # empty: all
    words: tuple[str, ...] = ()  # of the messages that were seen with it
    bottleneck: tuple[float, ...] = ()  # timing.bottleneck.vector before the edit
    only: tuple[str, ...] = ()  # conditions (circumstance.py) outside of which it is not served

    @field_validator("aim")
    @classmethod
    def _is_aim(cls, aim: str) -> str:
        if aim not in AIMS:
            raise ValueError(f"{aim!r} is none of {', '.join(AIMS)}")
        return aim

    @field_validator("codes")
    @classmethod
    def _are_codes(cls, codes: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [code for code in codes if code not in CODES and code not in OWN_CODES]
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: no code of the table (docs/errors.md)")
        return codes

    @field_validator("only")
    @classmethod
    def _are_conditions(cls, conditions: tuple[str, ...]) -> tuple[str, ...]:
        for text in conditions:
            if not is_condition(text):
                raise ValueError(f"{text[:80]!r} is no condition, as 'not dtype float16' is one")
        return conditions

    @field_validator("bottleneck")
    @classmethod
    def _is_vector(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        if values and len(values) != len(NAMES):
            raise ValueError(f"{len(values)} numbers; a bottleneck vector has {len(NAMES)}")
        return values

    @property
    def known(self) -> dict[str, list[str]]:
        """The circumstances that it names, by their kinds."""
        names = {
            "code": self.codes, "dtype": self.dtypes, "category": self.categories,
            "chip": self.chips, "api": self.apis,
        }  # fmt: skip
        return {kind: listed(kind, found) for kind, found in names.items()}


class Rationale(_Part):
    """Why it works: the constraint of the hardware or language, and where that is said."""

    why: str = Field(min_length=1, max_length=4000)
    constraint: str = Field(default="", max_length=4000)
    source: str = Field(min_length=1, max_length=400)


class Proof(_Part):
    """A kernel that must be caught (or be slow), and the case that says what is right.

    Applying the item to `before` must give a text that is accepted; for an optimisation one that
    is `gain` times as fast, `before` being right already. `after` is what the fix was when it was
    learnt. Without a case the proof is weaker: applying must give `after` word for word.
    """

    case: Case | None = None
    before: str = Field(min_length=1, max_length=200_000)
    after: str = Field(default="", max_length=200_000)
    gain: float = Field(default=1.0, ge=1.0, allow_inf_nan=False)


class Item(_Part):
    """One piece of knowledge."""

    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=80)
    title: str = Field(min_length=1, max_length=200)
    trigger: Trigger
    rationale: Rationale
    template: Template
    proofs: tuple[Proof, ...] = ()
    origin: str = "hand"  # "seed", "learnt", "rewound" or "hand"

    @model_validator(mode="after")
    def _proofs_fit(self) -> Item:
        for proof in self.proofs:
            if proof.case is None and not proof.after:
                raise ValueError("a proof has a case, or the text that comes after")
            if self.trigger.aim == OPTIMISE and proof.case and proof.case.large is None:
                raise ValueError("the proof of an optimisation needs large shapes to time")
        return self

    @property
    def route(self) -> str:
        return self.template.route

    @property
    def digest(self) -> str:
        """Of the whole item: names its version."""
        return _hash(self.model_dump_json())

    @property
    def shape(self) -> str:
        """Of what it does: two items of one shape are the same edit under the same conditions."""
        return _hash(json.dumps([self.trigger.aim, canonical(self.template)]))


def canonical(template: Template) -> list[object]:
    """The template with its holes renamed in their order: names of holes mean nothing."""
    names: dict[str, str] = {}

    def rename(match: re.Match[str]) -> str:
        name = names.setdefault(match.group(2), f"h{len(names)}")
        return f"{match.group(1)}{name}"

    def plain(text: str) -> str:
        return " ".join(re.sub(r"(\$\(?)(\w+)", rename, text).split())

    edits = [[plain(edit.find), plain(edit.put), edit.every] for edit in template.edits]
    return [template.route, edits, sorted(plain(text) for text in template.where)]


def prompt_text(item: Item) -> str:
    """Trigger, rationale and template in a few lines, for a prompt."""
    trigger, why = item.trigger, item.rationale
    seen = ", ".join((*trigger.codes, *trigger.apis[:4]))
    lines = [f"{item.title}" + (f" (seen with: {seen})" if seen else ""), f"why: {why.why}"]
    if why.constraint:
        lines.append(f"rule: {why.constraint}")
    lines.append(f"source: {why.source}")
    if trigger.only:
        lines.append("only: " + "; ".join(trigger.only))
    for edit in item.template.edits:
        lines += ["replace", *_indented(edit.find), "by", *_indented(edit.put or "(nothing)")]
    if item.template.where:
        lines.append("where " + "; ".join(item.template.where))
    return "\n".join(lines)


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.strip("\n").split("\n")]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
