"""The stages of training, and what makes a model of ours of a checkpoint."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from npusmith.cli.exits import Exit
from npusmith.cli.option_groups import expand_groups, panel
from npusmith.cli.options import Json
from npusmith.cli.reply import Job, Reply
from npusmith.cli.screen import Screen
from npusmith.cli.steps import Steps

_of_stage = panel("Stage")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOptions:
    """What every stage takes; a file says the rest."""

    data: Annotated[
        Path | None,
        _of_stage("--data", "A corpus, or a file of its JSON lines.", metavar="PATH"),
    ] = None
    model: Annotated[
        str | None,
        _of_stage(
            "--model",
            "small or tiny (new, of our own), or a folder or name of a causal model.",
            metavar="M",
        ),
    ] = None
    out: Annotated[
        Path | None,
        _of_stage("--out", "Folder of the run; a run that is there goes on.", metavar="RUN"),
    ] = None
    config: Annotated[
        str,
        _of_stage(
            "--config",
            "A file of settings, or the name of one that ships: docs/training.md.",
            metavar="FILE",
        ),
    ] = ""
    seed: Annotated[int | None, _of_stage("--seed", "Seed of the whole run.", min=0)] = None
    settings: Annotated[
        list[str] | None,
        _of_stage(
            "--set", "A setting in TOML's form, such as steps=100; repeatable.", metavar="KEY=VALUE"
        ),
    ] = None


@expand_groups
def sft(*, options: StageOptions, json: Json = False) -> Job:
    """Train on completions: a model of our own from scratch, or any causal model.

    Killed at any moment, the same command goes on after the last checkpoint. Needs the extra train.
    """
    return _job("sft", options)


@expand_groups
def dpo(*, options: StageOptions, json: Json = False) -> Job:
    """Train on preferences: chosen is right, rejected compiles and is wrong.

    Killed at any moment, the same command goes on after the last checkpoint. Needs the extra train.
    """
    return _job("dpo", options)


@expand_groups
def grpo(*, options: StageOptions, json: Json = False) -> Job:
    """Train on what the twin says of the model's own answers, with repair in several turns.

    Killed at any moment, the same command goes on after the last checkpoint. Needs the extra train.
    """
    return _job("grpo", options)


def export(
    *,
    model: Annotated[
        Path, typer.Option("--model", metavar="DIR", help="A checkpoint of a model of ours.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the model.")],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="PATH",
            help="The corpus it was trained on: answers will say how near they are to it.",
        ),
    ] = None,
    json: Json = False,
) -> Job:
    """Write a checkpoint as int8 weights that NumPy runs alone, for --writer lm.

    Needs the extra train; what it writes does not.
    """

    def job(steps: Steps) -> Reply:
        from npusmith.train import backbone
        from npusmith.train.export import export

        backbone.require_extra()
        steps.step("export", str(out))
        found = export(model, out, data)
        text = f"{found['parameters']:,} parameters in {found['bytes']:,} bytes"
        return Reply(Exit.PASS, found, lambda screen: screen.line(text))

    return job


def _job(stage: str, options: StageOptions) -> Job:
    changes = _settings(options.settings or ())
    for name in ("data", "model", "out", "seed"):
        if (value := getattr(options, name)) is not None:
            changes[name] = value

    def job(steps: Steps) -> Reply:
        from npusmith.train import backbone, configuration

        backbone.require_extra()
        size = "small" if backbone.is_ours(str(changes.get("model", "small"))) else "backbone"
        told = configuration.read(options.config or f"{size}-{stage}.toml", stage, changes)
        steps.step("load", told.model)
        from npusmith.train.run import train
        from npusmith.train.stages import TRAINERS

        steps.step(stage, str(told.out))
        found = train(told, TRAINERS[stage], steps.tell)
        return Reply(Exit.PASS, found, lambda screen: _show(screen, told.out, found))

    return job


def _settings(texts: Sequence[str]) -> dict[str, Any]:
    """The values of --set. Raises BadParameter."""
    found: dict[str, Any] = {}
    for text in texts:
        try:
            found |= tomllib.loads(text)
        except ValueError:
            name, sign, value = text.partition("=")
            if not sign or not name.strip().isidentifier():
                raise typer.BadParameter(f"--set takes KEY=VALUE, not {text[:80]!r}") from None
            found[name.strip()] = value  # plain words, such as model names
    return found


def _show(screen: Screen, out: Path, found: dict[str, Any]) -> None:
    losses = [row["loss"] for row in found["log"]]
    screen.line(f"{found['steps']:,} steps, {found['parameters']:,} parameters")
    if losses:
        screen.pair("loss", f"{losses[0]:.4f} to {losses[-1]:.4f}")
    screen.pair("seen", ", ".join(f"{name} {n:,}" for name, n in found["epoch"].items()))
    if found["resumed_at"]:
        screen.pair("resumed", f"after step {found['resumed_at']:,}")
    screen.pair("model", str(out / "model"))


COMMANDS: dict[str, Callable[..., Job]] = {"sft": sft, "dpo": dpo, "grpo": grpo, "export": export}
