"""The stages, each with what makes its trainer. Needs the extra train."""

from __future__ import annotations

from npusmith.train import policy, preferences, sft
from npusmith.train.run import MakeTrainer

TRAINERS: dict[str, MakeTrainer] = {
    "sft": sft.make_trainer,
    "dpo": preferences.make_trainer,
    "grpo": policy.make_trainer,
}
