"""Each stage on a tiny random model: it learns, goes on after a kill, and names what is wrong."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stages_corpus import write_corpus

from npusmith.cli.main import call
from npusmith.errors import NpusmithError
from npusmith.lm import tokenizer as own
from npusmith.lm.encode import OwnWords, encode
from npusmith.train.backbone import Backbone, ForeignWords, open_backbone, processing_of
from npusmith.train.configuration import Stage, read

os.environ["HF_HUB_OFFLINE"] = "1"
pytest.importorskip("trl", reason="the extra train is not installed")
pytest.importorskip("peft", reason="the extra train is not installed")

SETTINGS = {
    "model": "tiny", "steps": 4, "batch": 4, "micro_batch": 2, "save_steps": 2, "log_steps": 1,
    "max_length": 700, "learning_rate": 1e-3, "bf16": False,
}  # fmt: skip


def settings(stage: str, folder: Path, out: Path, **changes: object) -> Stage:
    return read("", stage, {**SETTINGS, "data": folder, "out": out, **changes})


def run(told: Stage) -> dict[str, Any]:
    from npusmith.train.run import train
    from npusmith.train.stages import TRAINERS

    return train(told, TRAINERS[told.stage])  # type: ignore[attr-defined]


def run_until_killed(told: Stage) -> None:
    """By itself, when the second checkpoint is written and not yet sealed."""
    from npusmith.train import run as running

    seal = running.seal

    def die(checkpoint: Path) -> None:
        if checkpoint.name == "checkpoint-4":
            os.kill(os.getpid(), signal.SIGKILL)
        seal(checkpoint)

    running.seal = die
    run(told)


def weights(out: Path) -> bytes:
    return (out / "model" / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def taught(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of sft, by the command line."""
    out = tmp_path_factory.mktemp("sft") / "run"
    changes = [f"--set={key}={json.dumps(value)}" for key, value in SETTINGS.items()]
    assert call(["train", "sft", f"--data={corpus}", f"--out={out}", *changes]) == 0
    yield out
    shutil.rmtree(out)


def test_sft_lowers_its_loss_and_says_what_it_was_told(taught: Path) -> None:
    record = json.loads((taught / "model" / "result.json").read_text())
    losses = [row["loss"] for row in record["log"]]
    assert losses[-1] < losses[0]
    assert record["steps"] == 4 and record["resumed_at"] == 0
    told = json.loads((taught / "run.json").read_text())
    assert told["stage"]["seed"] == 1024 and len(told["data"]["sha256"]) == 64
    assert told["epoch"]["too_long"] == 0


def test_a_run_killed_while_it_saves_ends_with_the_same_weights(
    corpus: Path, taught: Path, tmp_path: Path
) -> None:
    told = settings("sft", corpus, tmp_path / "run")
    child = multiprocessing.get_context("fork").Process(target=run_until_killed, args=(told,))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert (told.out / "checkpoint-4" / "optimizer.pt").is_file()
    assert not (told.out / "model").exists()
    assert run(told)["resumed_at"] == 2
    assert weights(told.out) == weights(taught)


def test_a_run_goes_on_only_under_what_it_was_told(
    corpus: Path, taught: Path, tmp_path: Path
) -> None:
    from npusmith.train.run import begin

    before = weights(taught)
    with pytest.raises(NpusmithError, match="train-changed"):
        run(settings("sft", corpus, taught, seed=7))
    assert weights(taught) == before
    (tmp_path / ".run.json").write_text("{")  # what a kill left, and no run
    begin(tmp_path, {"stage": 1}, first=True)
    (tmp_path / "run.json").unlink()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(NpusmithError, match="folder-foreign"):
        run(settings("sft", corpus, tmp_path))


def test_dpo_prefers_the_right_answer_more_than_before(
    corpus: Path, taught: Path, tmp_path: Path
) -> None:
    told = settings("dpo", corpus, tmp_path / "run", model=str(taught / "model"))
    log = run(told)["log"]
    assert log[0]["rewards/margins"] == 0
    assert log[-1]["rewards/margins"] > 0
    assert told.beta == 0.1  # type: ignore[attr-defined]


def test_lora_trains_few_weights(corpus: Path, taught: Path, tmp_path: Path) -> None:
    """By the command line, for one step."""
    out = tmp_path / "run"
    changes = {**SETTINGS, "steps": 1, "model": str(taught / "model")}
    told = [f"--set={key}={json.dumps(value)}" for key, value in changes.items()]
    argv = ["train", "sft", f"--data={corpus}", f"--out={out}", *told, "--set=lora.rank=4"]
    assert call(argv) == 0
    assert (out / "model" / "adapter_model.safetensors").stat().st_size < 100_000
    assert json.loads((out / "model" / "result.json").read_text())["steps"] == 1


def test_an_exported_model_answers_as_its_checkpoint_does(taught: Path, tmp_path: Path) -> None:
    """Within what int8 rows take away; and without what the tokenizer must be."""
    import torch
    from transformers import AutoModelForCausalLM

    from npusmith.lm import weights as stored
    from npusmith.lm.llama import Llama

    out = tmp_path / "lm"
    assert call(["train", "export", f"--model={taught / 'model'}", f"--out={out}"]) == 0
    weights = stored.read(out / stored.FILE)
    assert weights.tokenizer == own.read(out).digest
    prompt = own.read(out).encode("write add\n")
    model = Llama(weights)
    found = model.forward(*model.open([prompt], 0), every=True)[0]
    theirs = AutoModelForCausalLM.from_pretrained(taught / "model").eval()
    with torch.no_grad():
        wanted = theirs(torch.tensor([prompt])).logits[0].numpy()
    assert abs(found - wanted).max() < 0.05 * abs(wanted).max()
    assert call(["train", "export", f"--model={taught}", f"--out={tmp_path / 'x'}"]) == 3


SEEN: list[str] = []


def levels(prompts: list[str], completions: list[str], **columns: list[Any]) -> list[float]:
    """A reward by length, which a random model varies."""
    return [score for score, _ in said(prompts, completions, **columns)]


def said(
    prompts: list[str], completions: list[str], **columns: list[Any]
) -> list[tuple[float, str]]:
    assert len(columns["meta"]) == len(columns["task"]) == len(prompts) == len(completions)
    assert all("get_inputs" in text for text in columns["task"])
    SEEN.extend(completions)
    return [
        (len(text) % 5 / 4, "" if len(text) % 5 == 4 else "error[lang-syntax]")
        for text in completions
    ]


levels.feedback = said  # type: ignore[attr-defined]


def test_grpo_repairs_in_turns_and_moves_the_weights(
    corpus: Path, taught: Path, tmp_path: Path
) -> None:
    given = {
        "model": str(taught / "model"), "steps": 2, "micro_batch": 4, "group": 4, "answer": 8,
        "turns": 2, "reward": f"{__name__}:levels",
    }  # fmt: skip
    told = settings("grpo", corpus, tmp_path / "run", **given)
    record = run(told)
    assert len(SEEN) > 2 * 4  # a turn is judged before it is repaired
    assert all(row["completions/max_length"] <= 2 * 8 for row in record["log"])
    assert record["log"][0]["frac_reward_zero_std"] == 0
    assert weights(told.out) != weights(taught)


def test_rollouts_mark_what_the_model_did_not_say(taught: Path, corpus: Path) -> None:
    from npusmith.train.policy import Rollouts

    told = settings("grpo", corpus, taught, turns=3, answer=8, reward="x:y")
    tokenizer = own.read(taught / "model")
    words = OwnWords(tokenizer)
    answers = iter([["bad", "right!"], ["worse"], ["good!"]])

    class Trainer:
        """Samples what the test says; everything else of a trainer is not asked for."""

        class accelerator:
            device = "cpu"

            @staticmethod
            def gather(item: Any) -> Any:
                return item

        @staticmethod
        def _generate_single_turn(given: list[list[int]], *rest: Any) -> tuple[Any, None]:
            return [[*words.encode(text), words.end] for text in next(answers)], None

    def judge(prompts: list[str], texts: list[str], **columns: Any) -> list[tuple[float, str]]:
        return [(0.0, "" if text.endswith("!") else f"not {text}") for text in texts]

    rollouts = Rollouts(told, words, {"a": {"id": "1"}, "b": {"id": "2"}}, judge)
    found = rollouts(["a", "b"], Trainer)
    assert found["answer"] == ["good!", "right!"]
    shown = [
        [tokenizer.decode([at for at, own_ in zip(ids, mask, strict=True) if own_ == which])
         for which in (1, 0)]
        for ids, mask in zip(found["completion_ids"], found["env_mask"], strict=True)
    ]  # fmt: skip
    assert shown == [["badworsegood!", "not badnot worse"], ["right!", ""]]


def test_a_checkpoint_of_another_tokenizer_is_refused(
    corpus: Path, taught: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(taught / "model", folder)
    own.build(["something else " * 3], 500).save(folder)
    with pytest.raises(NpusmithError, match="lm-tokenizer"):
        open_backbone(settings("sft", corpus, tmp_path, model=str(folder)), ())


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_checkpoint_that_is_cut_off_is_named(
    name: str, corpus: Path, taught: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(taught / "model", folder)
    path = folder / name
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(NpusmithError) as caught:
        open_backbone(settings("sft", corpus, tmp_path, model=str(folder)), ())
    assert caught.value.code in ("train-model", "lm-tokenizer")


def backbone(folder: Path) -> Backbone:
    return open_backbone(settings("sft", folder, folder, model=str(folder)), ())


def test_one_encode_serves_our_tokenizer_and_that_of_a_chat_model(taught: Path) -> None:
    tokenizer = own.read(taught / "model")
    text = "@kernel\ndef f(x: input(float32)):\n    pass <|end|> é\n"
    ours = encode(OwnWords(tokenizer), text, "answer")
    assert ours.completion[-1] == tokenizer.end and tokenizer.end not in ours.completion[:-1]
    processing = processing_of(tokenizer)
    processing.chat_template = (
        "{% for m in messages %}<|answer|>{{ m.role }}\n{{ m.content }}{% endfor %}"
        "<|end|>bot{{ '\n' }}"
    )
    chat = encode(ForeignWords(processing), text, "answer")
    assert chat.prompt.count(tokenizer.end) == 1, "the text's own mark is no special token"
    assert processing.decode(chat.prompt) == f"<|answer|>user\n{text}<|end|>bot\n"
    assert chat.completion == ours.completion


def test_both_tokenizers_read_one_file_alike(taught: Path) -> None:
    tokenizer = own.read(taught / "model")
    processing = processing_of(tokenizer)
    texts = ["    for i in range(10):\n\n  x = 1.5e-3", "é\t\u2028中文\x00 __a1_b", "<|pad|>", ""]
    for text in texts:
        assert processing(text)["input_ids"] == tokenizer.encode(text)
        assert tokenizer.decode(tokenizer.encode(text)) == text
