"""The model that a stage begins with, and its tokenizer: ours from scratch, or a causal model.

Nothing is downloaded that the user has not named, and no code of a checkpoint is run.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from npusmith.errors import NpusmithError, Place
from npusmith.lm import tokenizer as own
from npusmith.lm.encode import OwnWords, Words
from npusmith.train.configuration import Stage

DIGEST = "npusmith_tokenizer"  # in the config.json of a checkpoint of ours
CONTEXT = 4096  # positions of a model of ours


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a Llama of ours, with tied embeddings."""

    width: int
    layers: int
    heads: int
    hidden: int
    vocabulary: int


SHAPES = {
    "small": Shape(width=384, layers=6, heads=6, hidden=1024, vocabulary=2048),  # 11.4M
    "tiny": Shape(width=64, layers=2, heads=2, hidden=128, vocabulary=1024),
}


@dataclass(frozen=True, slots=True)
class Backbone:
    """A model, the tokenizer that its trainer wants, and the words that encode takes."""

    model: Any
    processing: Any
    words: Words


class ForeignWords:
    """Any tokenizer of transformers, with its chat template where it has one."""

    _MARK = "npusmith-prompt-here"

    def __init__(self, processing: Any) -> None:
        self.processing = processing
        self.end: int = processing.eos_token_id

    @cached_property
    def frame(self) -> tuple[list[int], list[int]]:
        if not getattr(self.processing, "chat_template", None):
            return [], self._special("\n")
        text = self.processing.apply_chat_template(
            [{"role": "user", "content": self._MARK}], tokenize=False, add_generation_prompt=True
        )
        head, _, tail = text.partition(self._MARK)
        return self._special(head), self._special(tail)

    def encode(self, text: str) -> list[int]:
        found = self.processing(text, add_special_tokens=False, split_special_tokens=True)
        return list(found["input_ids"])

    def decode(self, ids: list[int]) -> str:
        return str(self.processing.decode(ids, skip_special_tokens=True))

    def _special(self, text: str) -> list[int]:
        found = self.processing(text, add_special_tokens=False, split_special_tokens=False)
        return list(found["input_ids"])


def is_ours(model: str) -> bool:
    """Whether it is a model of ours: a new one, or a checkpoint of one."""
    if model in SHAPES:
        return True
    try:
        return DIGEST in json.loads(Path(model, "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def require_extra() -> None:
    """Raises extra-missing unless everything of the extra `train` is there."""
    try:
        import accelerate  # noqa: F401
        import peft  # noqa: F401
        import trl  # noqa: F401
    except ImportError as error:
        raise NpusmithError(
            "extra-missing", f"{error.name} is not installed", hint='pip install "npusmith[train]"'
        ) from error


def open_backbone(stage: Stage, texts: Iterable[str]) -> Backbone:
    """The model of a stage; a new one of ours learns its tokenizer from the texts.

    Raises train-model and lm-tokenizer.
    """
    if stage.model in SHAPES:
        return _new(SHAPES[stage.model], own.build(texts, SHAPES[stage.model].vocabulary), stage)
    return _opened(stage)


def _new(shape: Shape, tokenizer: own.Tokenizer, stage: Stage) -> Backbone:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(stage.seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=tokenizer.size, hidden_size=shape.width, num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads, intermediate_size=shape.hidden,
            max_position_embeddings=CONTEXT, tie_word_embeddings=True,
            pad_token_id=own.SPECIAL.index(own.PAD), bos_token_id=None,
            eos_token_id=tokenizer.end, attn_implementation=stage.attention,
            **{DIGEST: tokenizer.digest},
        )
    )  # fmt: skip
    return Backbone(model, processing_of(tokenizer), OwnWords(tokenizer))


def processing_of(tokenizer: own.Tokenizer) -> Any:
    """Our tokenizer as transformers know one."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(own.document(tokenizer)), pad_token=own.PAD,
        eos_token=own.END, split_special_tokens=True, padding_side="left",
    )  # fmt: skip


def _opened(stage: Stage) -> Backbone:
    import transformers
    from safetensors import SafetensorError

    load: dict[str, Any] = {"trust_remote_code": False}
    try:
        tokenizer = own.read(Path(stage.model)) if is_ours(stage.model) else None
        model = transformers.AutoModelForCausalLM.from_pretrained(
            stage.model, attn_implementation=stage.attention,
            dtype="bfloat16" if stage.bf16 and tokenizer is None else "float32", **load,
        )  # fmt: skip
        processing = (
            transformers.AutoTokenizer.from_pretrained(stage.model, **load)
            if tokenizer is None
            else processing_of(tokenizer)
        )
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise NpusmithError(
            "train-model", f"{stage.model} cannot be loaded", Place(stage.model),
            seen=f"{type(error).__name__}: {error}"[:300],
        ) from error  # fmt: skip
    seen = "" if tokenizer is None else check_tokenizer(model.config, tokenizer)
    if len(processing) > model.config.vocab_size:
        seen = f"{len(processing)} tokens, and rows for {model.config.vocab_size}"
    if seen:
        raise NpusmithError(
            "lm-tokenizer", f"{stage.model} was trained with another tokenizer",
            Place(stage.model), seen=seen,
        )  # fmt: skip
    if processing.pad_token_id is None:
        processing.pad_token = processing.eos_token
    processing.padding_side = "left"
    words: Words = ForeignWords(processing) if tokenizer is None else OwnWords(tokenizer)
    return Backbone(model, processing, words)


def check_tokenizer(config: Any, tokenizer: own.Tokenizer) -> str:
    """How the tokenizer differs from the one that a checkpoint of ours was trained with; or ""."""
    wanted = getattr(config, DIGEST, "")
    return "" if wanted == tokenizer.digest else f"{tokenizer.digest[:12]}, not {wanted[:12]}"


def adapters(stage: Stage) -> Any:
    """What peft is told, or None for all weights."""
    if stage.lora is None:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=stage.lora.rank, lora_alpha=stage.lora.alpha, lora_dropout=stage.lora.dropout,
        target_modules=stage.lora.layers, task_type="CAUSAL_LM",
    )  # fmt: skip


def reference(stage: Stage, backbone: Backbone) -> Any:
    """The model at the start, which a policy is held to; peft turns its adapters off instead."""
    return copy.deepcopy(backbone.model) if stage.lora is None else None
