"""What the agent and the knowledge store exchange; each works without the other.

The agent asks `search` before a prompt, shows the texts that it is served, and tells `credit` what
came of it. `credit` takes the same `Use` twice without counting twice: a resumed run repeats calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Query:
    """The situation: a candidate and what was said of it. Empty fields are not known."""

    route: str  # "tile" or "direct"
    aim: str  # "write", "repair" or "optimise"
    text: str = ""  # of the candidate: a tile program, or Ascend C
    codes: tuple[str, ...] = ()  # findings and errors, the first is the one that stopped it
    apis: tuple[str, ...] = ()  # operations or Ascend C names that it uses
    dtypes: tuple[str, ...] = ()
    category: str = ""  # of the operator: "reduction", "normalization", ...
    chip: str = ""
    bottleneck: tuple[float, ...] = ()  # timing.bottleneck.vector of the candidate
    messages: tuple[str, ...] = ()  # what compiler, checker or judge said
    lines: tuple[int, ...] = ()  # of `text`, that the findings name: edits are tried there first
    hints: tuple[str, ...] = ()  # what the findings propose to write instead


@dataclass(frozen=True, slots=True)
class Served:
    """An item for a prompt. `edit`: the candidate with the template applied, where it fits."""

    id: str  # of the item and its version
    text: str  # trigger, rationale and template in a few lines, plain text
    edit: str | None = None
    codes: tuple[str, ...] = ()  # of findings that it is for; empty: it says nothing of them


@dataclass(frozen=True, slots=True)
class Outcome:
    """What judge and timing model say of one candidate."""

    rung: int  # how far it got, larger is better; 0: nothing could be read
    correct: bool
    codes: tuple[str, ...] = ()
    us: float | None = None  # estimated task time of a correct one
    bottleneck: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Use:
    """Items were shown, or applied (`after` is an item's edit): a candidate became another."""

    key: str  # of this event; the same event always has the same key
    items: tuple[str, ...]  # ids of Served; empty: nothing was served
    query: Query
    before: str
    after: str


class Knowledge(Protocol):
    """What the agent needs of a store."""

    def search(self, query: Query, most: int = 6) -> Sequence[Served]:
        """Verified items that fit, the best first."""

    def credit(self, use: Use, before: Outcome, after: Outcome) -> None:
        """Credits or debits the items of a use; a step forward may become an item of its own."""
