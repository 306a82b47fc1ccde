"""One sample of the corpus, and its line of JSON. Texts are plain; code stands in fences."""

from __future__ import annotations

import hashlib
import json
from enum import Enum
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from npusmith.errors import NpusmithError, Place

MOST_BYTES = 1 << 20  # of a line


class Kind(str, Enum):
    """What a sample teaches."""

    DOCUMENTATION = "documentation"  # a question about APIs, chips, findings
    CODE = "code"  # task to tile program, with its plan; task or tile program to Ascend C
    REASONING = "reasoning"  # bytes, buffers, tiles, cores, traffic, times
    ERROR = "error"  # a broken program and its diagnostics to place, diagnosis and fix
    EDIT = "edit"  # another element type, shape, chip or schedule; or faster
    PREFERENCE = "preference"  # of two answers, the right one and one that is legal and wrong


class Split(str, Enum):
    """What a sample is for."""

    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


class Sample(BaseModel):
    """One line of the corpus.

    `verified_by`: the command that shows the same. `program_hash`: of the tile program with its
    names taken away, "" where there is none. A preference has `chosen` and `rejected` besides;
    its completion is the chosen one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind
    family: str  # of operators, or the table that a question is about
    split: Split
    prompt: str
    completion: str
    verified_by: str
    chosen: str = ""
    rejected: str = ""
    program_hash: str = ""
    meta: dict[str, Any] = {}

    @model_validator(mode="after")
    def _whole(self) -> Sample:
        both = bool(self.chosen) and bool(self.rejected) and self.chosen == self.completion
        if both is not (self.kind is Kind.PREFERENCE):
            raise ValueError("chosen and rejected belong to a preference, and to nothing else")
        if not (self.prompt and self.completion and self.verified_by):
            raise ValueError("prompt, completion and verified_by are not empty")
        return self

    @property
    def id(self) -> str:
        """The same for the same texts."""
        parts = [self.kind.value, self.prompt, self.completion, self.rejected]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def line(self) -> str:
        """Without the newline."""
        data = self.model_dump(mode="json")
        if self.kind is not Kind.PREFERENCE:
            del data["chosen"], data["rejected"]
        return json.dumps({"id": self.id, **data}, ensure_ascii=True, allow_nan=False)


def read_line(line: bytes, file: str = "", number: int = 0) -> Sample:
    """What `line` wrote; raises corpus-sample for one that is cut, changed or no sample."""
    try:
        if len(line) > MOST_BYTES:
            raise ValueError(f"{len(line):,} bytes")
        data = json.loads(line.decode("utf-8"))
        name = data.pop("id")
        sample = Sample.model_validate(data)
        if sample.id != name:
            raise ValueError(f"the id of its texts is {sample.id}, not {name}")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise NpusmithError(
            "corpus-sample", "a line holds no whole sample", Place(file, number), seen=why[:200]
        ) from error
    return sample
