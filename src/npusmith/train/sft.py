"""Supervised fine-tuning on completions alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from trl import SFTConfig, SFTTrainer

from npusmith.lm.encode import Encoded, encode
from npusmith.train.backbone import Backbone, adapters
from npusmith.train.configuration import Sft
from npusmith.train.corpus.sample import Kind, Sample
from npusmith.train.run import arguments, fitting, processes


def make_trainer(
    stage: Sft, backbone: Backbone, samples: Sequence[Sample], callbacks: list[Any]
) -> tuple[Any, dict[str, object]]:
    """Of all samples but preferences; the loss is over its tokens and the end."""
    encoded = [
        encode(backbone.words, sample.prompt, sample.completion)
        for sample in samples
        if sample.kind is not Kind.PREFERENCE  # whose completion another sample has
    ]
    kept, found = fitting(encoded, lambda item: item.tokens, stage.max_length)
    trainer = SFTTrainer(
        model=backbone.model,
        args=SFTConfig(
            **arguments(stage, processes()), max_length=stage.max_length, packing=stage.packing,
            completion_only_loss=True,
        ),
        train_dataset=Dataset.from_list([_row(item) for item in kept]),
        processing_class=backbone.processing, peft_config=adapters(stage), callbacks=callbacks,
    )  # fmt: skip
    return trainer, {"epoch": found}


def _row(item: Encoded) -> dict[str, list[int]]:
    mask = [0] * len(item.prompt) + [1] * len(item.completion)
    return {"input_ids": item.prompt + item.completion, "completion_mask": mask}
