"""A model of ours as a writer: `lm:model=FOLDER,temperature=0.8,...`. NumPy alone, no key.

An answer is drawn for each sample, or several of which the first that the checker passes is
proposed. The suite, or the pipeline, judges it like anybody's.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from npusmith.agent.extract import find_program
from npusmith.agent.talk import Answer as Reply
from npusmith.agent.talk import Usage
from npusmith.agent.tasks import open_prepared
from npusmith.agent.tile import TileRoute
from npusmith.bench.model import Brief, Candidate
from npusmith.errors import LangError, NpusmithError, Place
from npusmith.lang import check_all, parse
from npusmith.lm import similarity, tokenizer, weights
from npusmith.lm.automaton import Guided, Masks
from npusmith.lm.encode import OwnWords, encode_prompt
from npusmith.lm.generate import Answer, Sampling, generate
from npusmith.lm.grammar import open_grammar
from npusmith.lm.llama import Llama
from npusmith.lm.prompt import task_prompt
from npusmith.target.chips import DEFAULT_CHIP, Chip, find_chip
from npusmith.twin.cache import cache_root


class Setting(BaseModel):
    """Which model, and how answers are drawn."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Path
    temperature: float = Field(default=0.8, ge=0, allow_inf_nan=False)
    top_p: float = Field(default=0.95, gt=0, le=1, alias="top-p")
    tokens: int = Field(default=2048, ge=1)
    draws: int = Field(default=1, ge=1, le=256)  # answers for a sample
    mask: bool = True  # whether the grammar has a say


class LmWriter:
    """Proposes what the model wrote; refuses where that holds no program.

    `masks`: another grammar than the language's. Raises file-missing, lm-weights, lm-tokenizer.
    """

    def __init__(self, setting: Setting, chip: Chip, masks: Masks | None = None) -> None:
        self.setting, self._chip = setting, chip
        folder = setting.model
        held = weights.read(folder / weights.FILE)
        self._tokenizer = tokenizer.read(folder)
        if held.tokenizer != self._tokenizer.digest:
            raise NpusmithError(
                "lm-tokenizer", f"the weights in {folder} have another tokenizer",
                Place(str(folder)), seen=self._tokenizer.digest[:12], legal=held.tokenizer[:12],
            )  # fmt: skip
        if held.architecture.vocabulary != self._tokenizer.size:
            raise NpusmithError(
                "lm-weights", f"{folder} has rows for other tokens", Place(str(folder)),
                seen=f"{held.architecture.vocabulary} rows, {self._tokenizer.size} tokens",
            )  # fmt: skip
        self._model = Llama(held)
        self._words = OwnWords(self._tokenizer)
        self._nearest = similarity.read(folder)
        self._masks = masks if masks is not None or not setting.mask else self._own_masks()
        with (folder / weights.FILE).open("rb") as stream:
            self._digest = hashlib.file_digest(stream, "sha256").hexdigest()
        self.name = f"lm:{folder.resolve().name}"
        told = setting.model_dump_json(exclude={"model"})
        self.version = hashlib.sha256(f"{self._digest} {told}".encode()).hexdigest()

    def _own_masks(self) -> Masks:
        return Masks(open_grammar(), self._tokenizer.tokens, self._tokenizer.end)

    def write(self, brief: Brief, sample: int, seed: int) -> Candidate:
        """The candidate of a sample; raises usage, lm-context, and reply-... without a program."""
        start = time.monotonic()
        if brief.path is None or "project" not in brief.formats:
            raise NpusmithError("usage", "the item has no task file that could be captured")
        with open_prepared(brief.path, cache_root() / "lm" / "tasks") as prepared:
            route = TileRoute(prepared, self._chip, "default", [], False, brief.operator)
            prompt = encode_prompt(
                self._words, task_prompt(route.ports.source, route.ports.lines(), self._chip)
            )
            text, origin = self._drawn(prompt, route.file, seed)
            # one that is not legal is its text alone: the judge says what is wrong
            files = route.files(text) if origin["legal"] else {route.file: text}
            return Candidate(
                format="project" if len(files) > 1 else "program", files=files, writer=self.name,
                sample=sample, seed=seed, seconds=round(time.monotonic() - start, 3),
                dynamic=route.serves(text), tokens=len(prompt) + int(origin["tokens"]),
                origin=origin,
            )  # fmt: skip

    def _drawn(self, prompt: list[int], file: str, seed: int) -> tuple[str, dict[str, Any]]:
        """The program that is proposed, and what is said of it."""
        setting = self.setting
        sampling = Sampling(setting.temperature, setting.top_p, setting.tokens, seed)
        guides = [Guided(self._masks) for _ in range(setting.draws)] if self._masks else ()
        answers = generate(
            self._model, [prompt] * setting.draws, sampling, self._tokenizer.end, guides
        )
        texts = [self._program(answer, len(prompt)) for answer in answers]
        usable = [at for at, item in enumerate(texts) if isinstance(item, str)]
        if not usable:
            assert isinstance(texts[0], NpusmithError)
            raise texts[0]
        legal = [at for at in usable if is_legal(str(texts[at]), file, self._chip)]
        at = (legal or usable)[0]
        answer, text = answers[at], str(texts[at])
        return text, {
            "model": self._digest, "draw": at, "legal": len(legal), "draws": setting.draws,
            "temperature": setting.temperature, "top_p": setting.top_p, "mask": bool(guides),
            "masked": answer.masked, "finished": answer.finished,
            "tokens": sum(len(item.ids) for item in answers), "similarity": self._nearest.to(text),
        }  # fmt: skip

    def _program(self, answer: Answer, prompt: int) -> str | NpusmithError:
        """The program in an answer, or why there is none."""
        text = self._tokenizer.decode(answer.ids)
        usage = Usage(prompt=prompt, completion=len(answer.ids))
        finish = "stop" if answer.finished else "length"
        try:
            return find_program(Reply(text=text, usage=usage, finish=finish))
        except NpusmithError as error:
            return error


def is_legal(text: str, file: str, chip: Chip) -> bool:
    """Whether parser and checker take a program."""
    try:
        return not check_all(parse(text, file), chip, file)
    except LangError:
        return False


def read_options(text: str) -> Setting:
    """`model=FOLDER,temperature=0.8,...`. Raises usage."""
    given: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, sign, value = part.partition("=")
        if not sign or name in given:
            raise _usage(f"the writer lm has no option {part[:80]}", part[:80])
        given[name] = value
    return make_setting(given)


def make_setting(given: Mapping[str, Any]) -> Setting:
    """A setting out of options by their names. Raises usage."""
    try:
        return Setting.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][-1])
        raise _usage(f"{name}: {first['msg'].lower()}", str(first["input"])[:80]) from error


def _usage(message: str, seen: str) -> NpusmithError:
    names = [field.alias or name for name, field in Setting.model_fields.items()]
    return NpusmithError("usage", message, seen=seen, legal=", ".join(names))


def open_writer(spec: str, chip: str = DEFAULT_CHIP) -> LmWriter:
    """What a bench's workers call."""
    return LmWriter(read_options(spec), find_chip(chip))
