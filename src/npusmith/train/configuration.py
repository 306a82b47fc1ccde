"""What a stage of training is told, as a TOML file: `read(path, stage, changes)`.

A file has a key for each field below and nothing else. The figures of the files in `configs/` for
large backbones are AscendKernelGen's (arXiv 2601.07160, training); those of the small model are
for weights that begin at random. Whatever a run was told stands in its `run.json`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from npusmith.errors import NpusmithError, Place
from npusmith.train.corpus.sample import Kind

CONFIGS = "configs"
_MOST_BYTES = 1 << 20


class Lora(BaseModel):
    """Low-rank adapters in place of all weights."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rank: int = Field(default=16, ge=1)
    alpha: int = Field(default=32, ge=1)
    dropout: float = Field(default=0.05, ge=0, lt=1)
    layers: str = "all-linear"  # of peft: which matrices get one


class Stage(BaseModel):
    """What every stage is told."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = "small"  # "small", "tiny", or a folder or name of a causal model
    data: Path  # a corpus, or one file of JSON lines
    out: Path
    seed: int = Field(default=1024, ge=0, lt=1 << 32)
    steps: int = Field(default=0, ge=0)  # of the optimizer; 0: as many as the epochs take
    epochs: float = Field(default=1, gt=0)
    learning_rate: float = Field(gt=0)
    schedule: Literal["cosine", "constant", "linear"] = "cosine"
    warmup: float = Field(default=0.01, ge=0, lt=1)  # share of the steps
    weight_decay: float = Field(default=0.1, ge=0)
    clip: float = Field(default=1.0, gt=0)  # norm of the gradient
    batch: int = Field(default=128, ge=1)  # samples of a step, over all processes
    micro_batch: int = Field(default=1, ge=1)  # samples of one forward pass of one process
    max_length: int = Field(default=1024, ge=8)  # tokens; longer samples are left out, not cut
    save_steps: int = Field(default=100, ge=1)
    # checkpoints on disk: the one before stays until the next is sealed
    kept: int = Field(default=2, ge=2)
    log_steps: int = Field(default=10, ge=1)
    bf16: bool = False
    gradient_checkpointing: bool = False
    attention: Literal["eager", "sdpa", "flash_attention_2"] = "sdpa"
    lora: Lora | None = None
    # how often a sample of a kind is seen in an epoch; kinds that it does not name: once
    mix: dict[Kind, Annotated[float, Field(ge=0)]] = {}


class Sft(Stage):
    """Supervised training on completions; error-derived samples are kinds of the same data."""

    stage: Literal["sft"] = "sft"
    packing: bool = False  # several samples in a sequence, apart; needs flash attention


class Dpo(Stage):
    """Preferences: chosen is right, rejected compiles and is wrong."""

    stage: Literal["dpo"] = "dpo"
    beta: float = Field(default=0.1, gt=0)


class Grpo(Stage):
    """Policy training on the verdicts of the twin."""

    stage: Literal["grpo"] = "grpo"
    beta: float = Field(default=0.0, ge=0)  # of the distance to the model at the start
    group: int = Field(default=8, ge=2)  # answers to one prompt
    answer: int = Field(default=512, ge=1)  # tokens of one answer
    turns: int = Field(
        default=1, ge=1, le=8
    )  # answers of one rollout; a verdict before each later one
    temperature: float = Field(default=1.0, gt=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    scale: Literal["group", "batch", "none"] = "group"  # what an advantage is divided by
    reward: str = "npusmith.train.verdicts:verdict"  # MODULE:FUNCTION, in TRL's form


STAGES: dict[str, type[Stage]] = {"sft": Sft, "dpo": Dpo, "grpo": Grpo}


def shipped() -> dict[str, str]:
    """The files that ship with npusmith, by name, with their texts."""
    folder = resources.files("npusmith.train").joinpath(CONFIGS)
    found = sorted(folder.iterdir(), key=lambda item: item.name)
    return {item.name: item.read_text(encoding="utf-8") for item in found if item.is_file()}


def read(file: str, stage: str, changes: Mapping[str, Any]) -> Stage:
    """A stage's settings: those of the file, then the changes that are not None.

    file: a path, or the name of a shipped file; "": none. Raises train-config.
    """
    given = _table(file) if file else {}
    named = given.get("stage", stage)
    if named != stage:
        raise _error(file, f"the file is for {named}, not for {stage}", "")
    given |= {key: value for key, value in changes.items() if value is not None}
    try:
        return STAGES[stage].model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _error(file, f"{where}: {first['msg'].lower()}", repr(first["input"])[:80]) from error


def _table(file: str) -> dict[str, Any]:
    path = Path(file)
    try:
        if path.is_file():
            if path.stat().st_size > _MOST_BYTES:
                raise _error(file, f"more than {_MOST_BYTES:,} bytes", "")
            return tomllib.loads(path.read_text(encoding="utf-8"))
        if file in (texts := shipped()) and file.endswith(".toml"):
            return tomllib.loads(texts[file])
    except (OSError, ValueError, RecursionError) as error:
        raise _error(file, str(error), "") from error
    names = [name for name in texts if name.endswith(".toml")]
    raise _error(file, "there is no such file", "", f"a path, or one of {', '.join(names)}")


def _error(file: str, message: str, seen: str, legal: str = "") -> NpusmithError:
    return NpusmithError("train-config", message, Place(file), seen=seen, legal=legal)
