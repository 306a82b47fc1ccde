"""Group-relative policy optimisation on what the twin says, with repair in several turns.

A rollout is an answer; with `turns` above 1, an answer that is not right is followed by what the
reward said of it and by another one. The reward is of the last answer; the gradient is of the
model's own tokens, not of what it was told in between.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from npusmith.errors import NpusmithError
from npusmith.lm.encode import Words, encode_prompt
from npusmith.lm.prompt import program_in, task_in
from npusmith.train.backbone import Backbone, adapters
from npusmith.train.configuration import Grpo
from npusmith.train.corpus.sample import Kind, Sample
from npusmith.train.run import arguments, fitting, processes

Reward = Callable[..., list[float]]  # (prompts, completions, **columns), as TRL calls it
Judge = Callable[..., list[tuple[float, str]]]  # the same, with what is said of each answer
Columns = Mapping[str, Mapping[str, Any]]  # by prompt, what the data says besides
FEEDBACK = "feedback"  # the attribute of a reward function that gives both


def open_reward(name: str) -> Reward:
    """The function MODULE:FUNCTION. Raises train-config.

    For rollouts of several turns it has an attribute `feedback`: a function of the same arguments
    that gives a reward and a text for each answer, "" for one that needs no repair.
    """
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise NpusmithError(
            "train-config", f"reward: {name} cannot be found", seen=str(error)[:200],
            legal="MODULE:FUNCTION, called with prompts, completions and columns of the data",
        ) from error  # fmt: skip
    return found  # type: ignore[no-any-return]


@dataclass
class Rollout:
    """One line of turns: ids after the prompt, which of them are the model's, the last answer."""

    prompt: list[int]
    ids: list[int]
    own: list[int]
    answer: str = ""
    done: bool = False


class Rollouts:
    """What TRL calls for a batch of prompts; one rollout for each, duplicates included."""

    def __init__(self, stage: Grpo, words: Words, columns: Columns, judge: Judge | None) -> None:
        self._stage, self._words, self._columns, self._judge = stage, words, columns, judge
        if stage.turns > 1 and judge is None:
            raise NpusmithError(
                "train-config", f"turns: {stage.reward} says nothing of an answer",
                legal="one turn, or a reward function with an attribute feedback",
            )  # fmt: skip

    def __call__(self, prompts: list[str], trainer: Any) -> dict[str, Any]:
        lines = [Rollout(encode_prompt(self._words, prompt), [], []) for prompt in prompts]
        for turn in range(self._stage.turns):
            open_ = [line for line in lines if not line.done]
            if not _anywhere(len(open_), trainer):
                break
            made = self._sample(open_ or lines[:1], trainer)  # every process generates, or none
            for line, new in zip(open_, made, strict=False):
                line.ids += new
                line.own += [1] * len(new)
                line.answer = self._words.decode([at for at in new if at != self._words.end])
            if turn + 1 < self._stage.turns:
                self._tell(prompts, lines)
        return {
            "prompt_ids": [line.prompt for line in lines],
            "completion_ids": [line.ids for line in lines],
            "logprobs": None,
            "env_mask": [line.own for line in lines],
            "answer": [line.answer for line in lines],
        }

    def _sample(self, lines: Sequence[Rollout], trainer: Any) -> list[list[int]]:
        """The next answer of each, with its end where it has one, by the trainer's own sampling."""
        given = [line.prompt + line.ids for line in lines]
        made, _ = trainer._generate_single_turn(given, None, {}, 1)
        return list(made)

    def _tell(self, prompts: Sequence[str], lines: Sequence[Rollout]) -> None:
        """Ends what is right; tells the others what is wrong, where there is room for an answer."""
        open_ = [at for at, line in enumerate(lines) if not line.done]
        asked = [prompts[at] for at in open_]
        assert self._judge is not None
        said = self._judge(
            asked, [lines[at].answer for at in open_], **_columns_of(self._columns, asked)
        )
        for at, (_, text) in zip(open_, said, strict=True):
            line = lines[at]
            told = encode_prompt(self._words, text) if text else []
            room = self._stage.max_length - len(line.prompt) - len(line.ids) - len(told)
            line.done = not text or room < self._stage.answer
            if not line.done:
                line.ids += told
                line.own += [0] * len(told)


def _anywhere(count: int, trainer: Any) -> bool:
    """Whether a process has some."""
    here = torch.tensor([count], device=trainer.accelerator.device)
    return bool(trainer.accelerator.gather(here).sum() > 0)


def make_trainer(
    stage: Grpo, backbone: Backbone, samples: Sequence[Sample], callbacks: list[Any]
) -> tuple[Any, dict[str, object]]:
    """On the prompts that ask for a program, each once."""
    reward = open_reward(stage.reward)
    columns = {
        sample.prompt: _columns(sample)
        for sample in samples
        if sample.kind is Kind.CODE and task_in(sample.prompt) and program_in(sample.completion)
    }
    room = stage.max_length - stage.answer
    kept, found = fitting(
        list(columns), lambda prompt: len(encode_prompt(backbone.words, prompt)), room
    )
    given = arguments(stage, processes())
    trainer = GRPOTrainer(
        model=backbone.model, reward_funcs=[_of_last_answers(reward, columns)],
        args=GRPOConfig(
            **given, beta=stage.beta, num_generations=stage.group,
            steps_per_generation=given["gradient_accumulation_steps"],
            max_completion_length=stage.answer, temperature=stage.temperature,
            top_p=stage.top_p, scale_rewards=stage.scale,
        ),
        train_dataset=Dataset.from_list([{"prompt": prompt} for prompt in kept]),
        processing_class=backbone.processing, peft_config=adapters(stage), callbacks=callbacks,
        rollout_func=Rollouts(stage, backbone.words, columns, getattr(reward, FEEDBACK, None)),
    )  # fmt: skip
    return trainer, {"epoch": found}


def _columns(sample: Sample) -> dict[str, Any]:
    """What the reward function may read of a sample, beside its prompt."""
    task = task_in(sample.prompt)
    return {"task": task, "id": sample.id, "family": sample.family, "meta": sample.meta}


def _columns_of(columns: Columns, prompts: Sequence[str]) -> dict[str, list[Any]]:
    rows = [columns[prompt] for prompt in prompts]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _of_last_answers(reward: Reward, columns: Columns) -> Reward:
    """The reward of each rollout's last answer, under the reward's own name in the log."""

    def last(prompts: list[str], answer: list[str], **more: Any) -> list[float]:
        return reward(prompts, answer, **_columns_of(columns, prompts))

    last.__name__ = getattr(reward, "__name__", "reward")
    return last
