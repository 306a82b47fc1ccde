"""Direct preference optimisation on pairs: chosen is right, rejected compiles and is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from trl import DPOConfig, DPOTrainer

from npusmith.lm.encode import encode
from npusmith.train.backbone import Backbone, adapters, reference
from npusmith.train.configuration import Dpo
from npusmith.train.corpus.sample import Kind, Sample
from npusmith.train.run import arguments, fitting, processes


class _Encoded(DPOTrainer):  # type: ignore[misc]
    """A trainer whose data are ids already, made by the one encode."""

    def _prepare_dataset(self, dataset: Any, *rest: Any) -> Any:
        return dataset


def make_trainer(
    stage: Dpo, backbone: Backbone, samples: Sequence[Sample], callbacks: list[Any]
) -> tuple[Any, dict[str, object]]:
    """Of the preferences."""
    rows = [_row(backbone, sample) for sample in samples if sample.kind is Kind.PREFERENCE]
    kept, found = fitting(rows, _length, stage.max_length)
    trainer = _Encoded(
        model=backbone.model, ref_model=reference(stage, backbone),
        args=DPOConfig(
            **arguments(stage, processes()), beta=stage.beta, max_length=stage.max_length
        ),
        train_dataset=Dataset.from_list(kept), processing_class=backbone.processing,
        peft_config=adapters(stage), callbacks=callbacks,
    )  # fmt: skip
    return trainer, {"epoch": found}


def _row(backbone: Backbone, sample: Sample) -> dict[str, list[int]]:
    chosen = encode(backbone.words, sample.prompt, sample.chosen)
    rejected = encode(backbone.words, sample.prompt, sample.rejected)
    return {
        "prompt_ids": chosen.prompt, "chosen_ids": chosen.completion,
        "rejected_ids": rejected.completion,
    }  # fmt: skip


def _length(row: dict[str, list[int]]) -> int:
    """Of the longer of the two."""
    return len(row["prompt_ids"]) + max(len(row["chosen_ids"]), len(row["rejected_ids"]))
