"""Options of the model-driven writer, and the commands around it: serve-model and mcp."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npusmith.cli.exits import Exit
from npusmith.cli.option_groups import panel
from npusmith.cli.options import ChipName, Json
from npusmith.cli.reply import Job, Reply
from npusmith.cli.steps import Steps
from npusmith.target.chips import DEFAULT_CHIP, Chip, find_chip

if TYPE_CHECKING:
    from npusmith.bench.model import Writer


_of_model, _of_agent = panel("Model"), panel("Agent")

Library = Annotated[
    Path | None, _of_agent("--knowledge", "A knowledge store to use and feed.", metavar="FILE")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """Which model is asked, and how."""

    model: Annotated[
        str,
        _of_model(
            "--model",
            "The model at --base-url; or scripted, scripted:FILE, litellm:NAME; for --writer lm a "
            "folder.",
            metavar="NAME",
        ),
    ] = ""
    base_url: Annotated[
        str,
        _of_model(
            "--base-url", "An OpenAI-compatible endpoint, up to and with /v1.", metavar="URL"
        ),
    ] = ""
    key_env: Annotated[
        str,
        _of_model(
            "--key-env",
            "Environment variable that holds the key; it is never stored.",
            metavar="NAME",
        ),
    ] = "NPUSMITH_API_KEY"
    silence: Annotated[
        float, _of_model("--silence", "Seconds to wait for the next byte.", min=0.1)
    ] = 120.0
    attempts: Annotated[
        int, _of_model("--attempts", "Attempts of one call, before the run stops.", min=1)
    ] = 6
    call_seconds: Annotated[
        float, _of_model("--call-seconds", "Seconds of one call in all.", min=1)
    ] = 900.0
    record: Annotated[
        Path | None, _of_model("--record", "Write every call to this file.", metavar="FILE")
    ] = None
    replay: Annotated[
        Path | None, _of_model("--replay", "Answer from a recording, offline.", metavar="FILE")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """What is asked of the model: rounds, budget, and what is kept."""

    route: Annotated[
        str,
        _of_agent(
            "--route",
            "tile (a tile program), kernel (one Ascend C source) or project (host and kernel).",
            metavar="ROUTE",
        ),
    ] = "tile"
    start: Annotated[
        str,
        _of_agent(
            "--start",
            "Of the compiler's own programs, in first prompts: parts (of a task that it refuses "
            "as a whole), whole, none.",
            metavar="WHAT",
        ),
    ] = "parts"
    samples: Annotated[int, _of_agent("--samples", "First drafts, asked for at once.", min=1)] = 4
    rounds: Annotated[
        int, _of_agent("--rounds", "Calls after the first drafts, at most.", min=0)
    ] = 8
    patience: Annotated[
        int, _of_agent("--patience", "Fruitless calls before a candidate is given up.", min=1)
    ] = 3
    optimise: Annotated[bool, _of_agent("--optimise", "Make a right candidate faster, too.")] = (
        False
    )
    target: Annotated[
        float, _of_agent("--target", "Fast enough: this many times the roof's time.", min=1)
    ] = 1.2
    conversation: Annotated[
        bool,
        _of_agent(
            "--conversation",
            "Ask for repairs in the talk that gave the candidate, not in prompts of their own.",
        ),
    ] = False
    temperature: Annotated[
        float, _of_agent("--temperature", "Temperature of the model's sampling.", min=0)
    ] = 0.7
    max_tokens: Annotated[
        int, _of_agent("--max-tokens", "Tokens of one answer, at most.", min=1)
    ] = 8192
    budget_tokens: Annotated[
        int, _of_agent("--budget-tokens", "Tokens of the whole run, at most.")
    ] = 1_000_000
    budget_usd: Annotated[
        float | None,
        _of_agent("--budget-usd", "Dollars of the whole run, at most; needs the prices."),
    ] = None
    price_prompt: Annotated[
        float | None, _of_agent("--price-prompt", "Dollars for a million prompt tokens.", min=0)
    ] = None
    price_answer: Annotated[
        float | None, _of_agent("--price-answer", "Dollars for a million answer tokens.", min=0)
    ] = None
    concurrency: Annotated[int, _of_agent("--concurrency", "Calls at a time.", min=1)] = 4
    knowledge: Library = None
    journal: Annotated[
        Path | None,
        _of_agent(
            "--journal",
            "Where prompts, replies and verdicts are kept; default: OUT-journal.",
            metavar="DIR",
        ),
    ] = None
    resume: Annotated[bool, _of_agent("--resume", "Go on with the journal's run.")] = False


def open_agent(
    chip: Chip,
    tolerance: str,
    model: ModelOptions,
    options: AgentOptions,
    out: Path,
    steps: Steps,
) -> Writer:
    """The writer of `npusmith generate --writer agent`; its journal lies beside `out`."""
    from npusmith.agent.library import open_library
    from npusmith.agent.options import make_setting
    from npusmith.agent.writer import AgentWriter

    # always with times: a session that ended right goes on for speed (--resume --optimise)
    given = {**asdict(model), **asdict(options), "time": True}
    given["knowledge"] = str(options.knowledge or "")
    setting = make_setting({name.replace("_", "-"): value for name, value in given.items()})
    journal = options.journal or out.with_name(f"{out.name}-journal")
    return AgentWriter(
        setting, chip, journal, knowledge=open_library(setting.knowledge), tolerance=tolerance,
        resume=options.resume, step=steps.step,
    )  # fmt: skip


# What --writer lm reads, by what its own setting calls it.
LM_READS = {
    "model": "model", "temperature": "temperature", "samples": "draws", "max_tokens": "tokens",
}  # fmt: skip


def open_lm(chip: Chip, model: ModelOptions, options: AgentOptions) -> Writer:
    """The writer of `npusmith generate --writer lm`; --samples answers, the first legal one."""
    from npusmith.lm.writer import LmWriter, make_setting

    if not model.model:
        raise typer.BadParameter("--writer lm needs --model FOLDER: docs/training.md")
    known = {**asdict(model), **asdict(options)}
    given = {setting: known[option] for option, setting in LM_READS.items()}
    return LmWriter(make_setting(given), chip)


def serve_model(
    script: Annotated[
        Path | None,
        typer.Option("--script", metavar="FILE", help="A script of replies: docs/agent.md."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="DIR",
            help="A checkpoint on this machine, for transformers. Needs the extra local.",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="0: any that is free.")
    ] = 8000,
    address: Annotated[
        Path | None,
        typer.Option(
            "--address-file", metavar="FILE", help="Write the URL here once the server listens."
        ),
    ] = None,
    json: Json = False,
) -> Job:  # fmt: skip
    """Serve the scripted model, or a local checkpoint, over OpenAI's protocol.

    Listens on this machine only. Ends with Ctrl-C.
    """

    def job(steps: Steps) -> Reply:
        from npusmith.agent.checkpoint import Checkpoint
        from npusmith.agent.scripted import Script, Scripted, read_script
        from npusmith.agent.serve import open_server
        from npusmith.agent.talk import Model
        from npusmith.errors import NpusmithError

        if script is not None and checkpoint is not None:
            raise NpusmithError("usage", "--script and --checkpoint exclude each other")
        model: Model = Checkpoint(checkpoint) if checkpoint else Scripted()
        rules = None if checkpoint else (read_script(script) if script else Script())
        with open_server(model, rules, port) as server:
            steps.step("serve", f"{model.name} at {server.url}")
            if address is not None:
                address.write_text(server.url + "\n", encoding="utf-8")
            with suppress(KeyboardInterrupt):
                server.serve_forever()
            data = {"url": server.url, "model": model.name, "asked": server.asked}
        return Reply(Exit.PASS, data, lambda screen: screen.line(f"{data['asked']} calls answered"))

    return job


def mcp(
    chip: ChipName = DEFAULT_CHIP,
    knowledge: Library = None,
    root: Annotated[
        Path | None,
        typer.Option(
            "--root", metavar="DIR",
            help="Serve paths in this folder only; default: what you may read and write.",
        ),
    ] = None,
    options: Annotated[
        str,
        typer.Option(
            "--options", metavar="NAME=VALUE,...",
            help="Of the model that generate asks: base-url, key-env, model, ...; a call cannot "
            "name another endpoint or key.",
        ),
    ] = "",
    json: Json = False,
) -> Job:  # fmt: skip
    """Serve check, run, profile, search-knowledge and generate to a coding agent, over stdio.

    Speaks the Model Context Protocol. Needs the extra mcp. See docs/agent.md and docs/skill.
    """
    row = find_chip(chip)

    def job(steps: Steps) -> Reply:
        from npusmith.agent.mcp_server import serve

        serve(row.name, "" if knowledge is None else str(knowledge), root, options)
        return Reply(Exit.PASS, {"served": True}, lambda screen: None)

    return job


COMMANDS = (serve_model, mcp)
