"""From a checkpoint to what NumPy runs: `export(model, out)`. Needs the extra train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from npusmith.errors import NpusmithError, Place
from npusmith.lm import similarity
from npusmith.lm import tokenizer as own
from npusmith.lm import weights as stored
from npusmith.lm.prompt import program_in
from npusmith.lm.weights import Architecture, Weights
from npusmith.store.folder import new_folder
from npusmith.store.record import read_result, write_result
from npusmith.train.backbone import check_tokenizer, is_ours
from npusmith.train.data import read_split


def export(model: Path, out: Path, data: Path | None = None) -> dict[str, object]:
    """Writes the weights and tokenizer of a checkpoint of ours; gives facts about them.

    data: the corpus that it was trained on, whose programs its answers will be compared with.
    Raises train-model, lm-tokenizer, lm-weights.
    """
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    if not is_ours(str(model)):
        raise NpusmithError(
            "train-model", f"{model} is no checkpoint of a model of ours", Place(str(model)),
            hint="npusmith serve-model --checkpoint serves any other",
        )  # fmt: skip
    try:
        loaded = AutoModelForCausalLM.from_pretrained(model, dtype="float32")
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise NpusmithError(
            "train-model", f"{model} cannot be loaded", Place(str(model)), seen=str(error)[:300]
        ) from error
    tokenizer = own.read(model)
    if seen := check_tokenizer(loaded.config, tokenizer):
        raise NpusmithError(
            "lm-tokenizer", f"{model} was trained with another tokenizer", Place(str(model)),
            seen=seen,
        )  # fmt: skip
    given = loaded.state_dict()
    tensors = {name: np.asarray(item.numpy(), np.float32) for name, item in given.items()}
    weights = Weights(architecture_of(loaded.config), tensors, tokenizer.digest)
    with new_folder(out) as draft:
        stored.write(draft / stored.FILE, weights)
        tokenizer.save(draft)
        rows = similarity.signatures(() if data is None else programs_of(data))
        np.save(draft / similarity.FILE, rows)
        facts = {
            "parameters": sum(item.numel() for item in loaded.parameters()),
            "bytes": (draft / stored.FILE).stat().st_size, "programs": len(rows),
            "trained": read_result(model),
        }  # fmt: skip
        write_result(draft, facts)
    return facts


def programs_of(data: Path) -> list[str]:
    """The programs of a corpus, each once and at most so many, evenly drawn from all."""
    found = {
        sample.program_hash or text: text
        for sample in read_split(data)
        if (text := program_in(sample.completion))
    }
    step = -(-len(found) // similarity.MOST) or 1
    return list(found.values())[::step]


def architecture_of(config: Any) -> Architecture:
    """Of a Llama's configuration."""
    return Architecture(
        vocabulary=config.vocab_size, width=config.hidden_size, layers=config.num_hidden_layers,
        heads=config.num_attention_heads, groups=config.num_key_value_heads, head=config.head_dim,
        hidden=config.intermediate_size, context=config.max_position_embeddings,
        theta=config.rope_parameters["rope_theta"], epsilon=config.rms_norm_eps,
        tied=config.tie_word_embeddings,
    )  # fmt: skip
