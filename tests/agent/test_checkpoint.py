"""A local checkpoint as a model; with transformers, a tiny one of random weights is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from agentcases import ask

from npusmith.agent.checkpoint import Checkpoint
from npusmith.agent.endpoint import Endpoint, Settings
from npusmith.errors import NpusmithError

ServeCheckpoint = Callable[[Path], str]


def code_of(folder: Path) -> str:
    with pytest.raises(NpusmithError) as caught:
        Checkpoint(folder)
    return caught.value.code


def test_a_folder_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    assert code_of(tmp_path) == "file-missing"


def test_without_transformers_the_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    try:
        import transformers  # noqa: F401
    except ImportError:
        assert code_of(tmp_path) == "extra-missing"
    else:
        assert code_of(tmp_path) == "file-unusable"


def make_checkpoint(folder: Path) -> None:
    """One layer of random weights, and a tokenizer of bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=alphabet, special_tokens=["<s>", "</s>"]
    )
    words.train_from_iterator(["add(dst, a, b, n)"], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<s>", eos_token="</s>")
    fast.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(fast), hidden_size=32, intermediate_size=64, num_hidden_layers=1,
        num_attention_heads=2, max_position_embeddings=512,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)


def test_a_checkpoint_behind_a_real_server_answers_by_seed(
    serve_checkpoint: ServeCheckpoint, tmp_path: Path
) -> None:
    pytest.importorskip("transformers", reason="the extra npusmith[local] is not installed")
    make_checkpoint(tmp_path / "small")
    url = serve_checkpoint(tmp_path / "small")
    model = Endpoint(Settings(model="small", url=url, attempts=1))
    first, again, other = (model.ask(ask("hello", seed=seed)) for seed in (3, 3, 4))
    assert first == again
    assert first.text != other.text
    assert (first.model, first.usage.estimated) == ("small", False)
    assert 0 < first.usage.completion <= 100
    assert Checkpoint(tmp_path / "small").ask(ask("hello", seed=3)).usage == first.usage
    with pytest.raises(NpusmithError) as caught:
        model.ask(ask("hello " * 500))
    assert caught.value.code == "model-context"
