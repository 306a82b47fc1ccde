"""One run of a stage on disk: `train(stage, name)`. Killed at any moment, it goes on where it was.

    OUT/run.json        what it was told, data, seeds, versions; fixed before the first step
    OUT/tokenizer.json  of a model of ours
    OUT/checkpoint-N    weights, optimizer, random numbers and place in the data after step N
    OUT/model           the result

A checkpoint counts once its seal names every file with its size; one that a kill left without a
seal is taken away. So the same seeds give the same steps, with or without a kill (on one machine,
one number of processes and the same versions).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from transformers import PrinterCallback, TrainerCallback, set_seed

from npusmith.errors import NpusmithError, Place
from npusmith.lm import tokenizer as own
from npusmith.sandbox.folder import remove_tree
from npusmith.store.folder import new_folder
from npusmith.store.record import to_json, write_result
from npusmith.store.refusal import named_errors
from npusmith.train.backbone import SHAPES, Backbone, open_backbone
from npusmith.train.configuration import Stage
from npusmith.train.corpus.sample import Sample
from npusmith.train.data import drawn, facts, read_split

RUN, SEAL, MODEL = "run.json", "sealed.json", "model"
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_LIBRARIES = ("torch", "transformers", "trl", "peft", "accelerate", "numpy")
# what a person watches; of a group with equal rewards nothing is learnt
_TOLD = ("loss", "rewards/margins", "rewards/accuracies", "reward", "frac_reward_zero_std")
_MOST_READ = 20_000  # samples that a tokenizer is learnt from
_FULL = "No space left"  # in the words of libraries that raise no OSError for it

MakeTrainer = Callable[[Any, Backbone, Sequence[Sample], list[Any]], tuple[Any, dict[str, object]]]


def train(
    stage: Stage, make: MakeTrainer, tell: Callable[[str], None] = lambda line: None
) -> dict[str, object]:
    """Runs a stage to its end and gives its record.

    `make(stage, backbone, samples, callbacks)` gives the trainer, and facts for the record;
    `tell` hears of the steps.
    Raises train-changed, train-empty, and what reading data and model raises.
    """
    samples = list(read_split(stage.data))
    epoch = drawn(samples, stage.mix, stage.seed)
    set_seed(stage.seed)
    backbone = open_backbone(stage, _texts(samples) if stage.model in SHAPES else ())
    trainer, more = make(stage, backbone, epoch, [Seal(), Tell(tell)])
    trainer.remove_callback(PrinterCallback)  # standard output is for the answer
    told = json.loads(stage.model_dump_json(exclude={"out", "data"}))
    record = {
        "stage": told, "data": facts(stage.data, samples), **more,
        "parameters": sum(item.numel() for item in backbone.model.parameters()),
        "libraries": {name: metadata.version(name) for name in _LIBRARIES},
        "threads": torch.get_num_threads(), "processes": trainer.args.world_size,
    }  # fmt: skip
    with named_errors(stage.out), _full_disk(stage.out):
        begin(stage.out, record, trainer.is_world_process_zero())
        resumed = latest(stage.out, trainer.is_world_process_zero())
        trainer.accelerator.wait_for_everyone()
        trainer.train(resume_from_checkpoint=None if resumed is None else str(resumed))
        history = [row for row in trainer.state.log_history if "loss" in row]
        record["resumed_at"] = 0 if resumed is None else _step(resumed)
        record["steps"], record["log"] = trainer.state.global_step, history
        _finish(trainer, backbone, stage.out / MODEL, record)
    return record


def _texts(samples: Sequence[Sample]) -> list[str]:
    """What a tokenizer is learnt from: all, or one sample in so many of a large corpus."""
    step = -(-len(samples) // _MOST_READ)
    return [text for sample in samples[::step] for text in (sample.prompt, sample.completion)]


def begin(out: Path, record: dict[str, object], first: bool) -> None:
    """Writes run.json, or checks that the run that is there was told the same: train-changed."""
    path = out / RUN
    text = to_json(record) + "\n"
    if path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))
        now = json.loads(text)
        if changed := [key for key in now if before.get(key) != now[key]]:
            raise NpusmithError(
                "train-changed", f"the run in {out} was begun with another {changed[0]}",
                Place(str(path)), seen=json.dumps(before.get(changed[0]))[:300],
            )  # fmt: skip
    elif first:
        if out.is_dir() and any(item.name != f".{RUN}" for item in out.iterdir()):
            raise NpusmithError("folder-foreign", f"{out} holds no run", Place(str(out)))
        out.mkdir(parents=True, exist_ok=True)
        draft = out / f".{RUN}"
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)


class Seal(TrainerCallback):  # type: ignore[misc]
    """Marks a checkpoint as whole, once everything in it is written."""

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if state.is_world_process_zero:
            seal(Path(args.output_dir, f"checkpoint-{state.global_step}"))


class Tell(TrainerCallback):  # type: ignore[misc]
    """Says how a run goes, a line for each time that the trainer logs."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        if state.is_world_process_zero and "loss" in (logs or {}):
            shown = (name for name in _TOLD if name in logs)
            figures = ", ".join(f"{name} {float(logs[name]):.4g}" for name in shown)
            self._tell(f"step {state.global_step} of {state.max_steps}: {figures}")


def seal(checkpoint: Path) -> None:
    """Names each file with its size."""
    draft = checkpoint / f".{SEAL}"
    draft.write_text(json.dumps(_sizes(checkpoint)), encoding="utf-8")
    draft.replace(checkpoint / SEAL)


def _sizes(checkpoint: Path) -> dict[str, int]:
    return {
        path.relative_to(checkpoint).as_posix(): path.stat().st_size
        for path in sorted(checkpoint.rglob("*"))
        if path.is_file() and path.name not in (SEAL, f".{SEAL}")
    }


def is_whole(checkpoint: Path) -> bool:
    """Whether its seal is there, and every file that it names with the size that it names."""
    try:
        sealed = json.loads((checkpoint / SEAL).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(sealed) and sealed == _sizes(checkpoint)


def latest(out: Path, first: bool) -> Path | None:
    """The last whole checkpoint; later ones are what a kill left, and go."""
    found = [path for path in out.glob("checkpoint-*") if _CHECKPOINT.fullmatch(path.name)]
    for path in sorted(found, key=_step, reverse=True):
        if is_whole(path):
            return path
        if first:
            remove_tree(path)
    return None


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


class _full_disk:
    """Turns what libraries say of a full disk into disk-full."""

    def __init__(self, out: Path) -> None:
        self._out = out

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None and not isinstance(error, OSError) and _FULL in str(error):
            raise NpusmithError(
                "disk-full", f"no room left below {self._out}", Place(str(self._out))
            ) from error


def _finish(trainer: Any, backbone: Backbone, folder: Path, record: dict[str, object]) -> None:
    """The result, in one step; adapters stay beside the model that they are for."""
    whole = trainer.accelerator.get_state_dict(trainer.model)  # a collective: on every process
    if trainer.is_world_process_zero():
        model = trainer.accelerator.unwrap_model(trainer.model)
        with new_folder(folder) as draft:
            model.save_pretrained(draft, state_dict=whole)
            backbone.processing.save_pretrained(draft)
            if (tokenizer := getattr(backbone.words, "tokenizer", None)) is not None:
                assert isinstance(tokenizer, own.Tokenizer)
                tokenizer.save(draft)
            write_result(draft, record)
    trainer.accelerator.wait_for_everyone()


def arguments(stage: Stage, processes: int) -> dict[str, Any]:
    """What every trainer is told."""
    share = stage.micro_batch * processes
    if stage.batch % share:
        raise NpusmithError(
            "train-config", f"a batch of {stage.batch} does not divide by {share}",
            seen=f"micro_batch {stage.micro_batch} on {processes} processes",
        )  # fmt: skip
    return {
        "output_dir": str(stage.out), "seed": stage.seed, "data_seed": stage.seed,
        "max_steps": stage.steps or -1, "num_train_epochs": stage.epochs,
        "learning_rate": stage.learning_rate, "lr_scheduler_type": stage.schedule,
        "warmup_steps": stage.warmup, "weight_decay": stage.weight_decay,
        "max_grad_norm": stage.clip, "per_device_train_batch_size": stage.micro_batch,
        "gradient_accumulation_steps": stage.batch // share, "bf16": stage.bf16,
        "gradient_checkpointing": stage.gradient_checkpointing, "save_steps": stage.save_steps,
        "save_total_limit": stage.kept, "logging_steps": stage.log_steps,
        "logging_first_step": True, "report_to": [], "disable_tqdm": True,
        "dataloader_pin_memory": False, "use_cpu": not torch.cuda.is_available(),
        "full_determinism": False,
    }  # fmt: skip


def processes() -> int:
    """How many run side by side, as `accelerate launch` says."""
    from accelerate import PartialState

    return int(PartialState().num_processes)


def fitting(
    items: Sequence[Any], length: Callable[[Any], int], most: int
) -> tuple[list[Any], dict[str, object]]:
    """Those of at most so many tokens, and how many others there were; raises train-empty."""
    kept = [item for item in items if length(item) <= most]
    if not kept:
        raise NpusmithError(
            "train-empty", "no sample of the split fits", seen=f"{len(items)} samples",
            legal=f"at most {most} tokens with the prompt",
        )  # fmt: skip
    tokens = sum(map(length, kept))
    return kept, {"seen": len(kept), "tokens": tokens, "too_long": len(items) - len(kept)}
