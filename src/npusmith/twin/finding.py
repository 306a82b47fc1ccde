"""What the twin saw a project do wrong, and what its kernels printed, as data."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, field_validator

from npusmith.errors import CODES, Level, Place


class Finding(BaseModel):
    """One violation, with every repetition of the same code on the same line counted once.

    `core` and `step` are those of the first occurrence; `step` counts how often that line had run
    on that core (0 = the first time).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str
    message: str
    level: Level = Level.ERROR
    file: str = ""
    line: int = 0
    core: int | None = None
    step: int | None = None
    count: int = 1
    seen: str = ""
    legal: str = ""
    hint: str = ""

    @field_validator("code")
    @classmethod
    def _is_known(cls, code: str) -> str:
        if code not in CODES:
            raise ValueError(f"{code!r} is not in the table of codes")
        return code

    @property
    def place(self) -> Place:
        return Place(self.file, self.line, "", self.core, self.step)

    def render(self) -> str:
        """The text a person reads, in the form of NpusmithError.render."""
        row = CODES[self.code]
        times = f" ({self.count} times)" if self.count > 1 else ""
        where = ": ".join(part for part in (str(self.place), self.seen) if part)
        return (
            f"{self.level.value}[{self.code}]: {self.message}{times}\n  {where}\n"
            f"  legal: {self.legal or row.legal}      try: {self.hint or row.hint}"
        )


class Printed(BaseModel):
    """What a kernel printed with one call; `core` is the block that it ran on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    api: str = ""  # printf, PRINTF, DumpTensor, DumpAccChkPoint
    file: str = ""
    line: int = 0
    core: int | None = None


def printed_by_core(prints: Iterable[Printed]) -> dict[int | None, str]:
    """The text of each core in the order of its calls; of None: what belongs to no core."""
    texts: dict[int | None, str] = {}
    for item in prints:
        texts[item.core] = texts.get(item.core, "") + item.text
    return texts
