"""Options of the model-driven writer, and the commands around it: serve-model and mcp."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npusmith.cli.exits import Exit
from npusmith.cli.options import ChipName, Json
from npusmith.cli.reply import Job, Reply
from npusmith.cli.steps import Steps
from npusmith.target.chips import DEFAULT_CHIP, Chip, find_chip

if TYPE_CHECKING:
    from npusmith.bench.model import Writer

_PANEL = "Agent: "

ModelName = Annotated[
    str,
    typer.Option(
        "--model", metavar="NAME",
        help=_PANEL + "the model at --base-url; or scripted, scripted:FILE, litellm:NAME.",
    ),
]  # fmt: skip
BaseUrl = Annotated[
    str,
    typer.Option(
        "--base-url", metavar="URL",
        help=_PANEL + "an OpenAI-compatible endpoint, up to and with /v1.",
    ),
]  # fmt: skip
KeyName = Annotated[
    str,
    typer.Option(
        "--key-env", metavar="NAME",
        help=_PANEL + "environment variable that holds the key; it is never stored.",
    ),
]  # fmt: skip
RouteName = Annotated[
    str,
    typer.Option(
        "--route", metavar="ROUTE",
        help=_PANEL + "tile (a tile program), kernel (one Ascend C source) or project (host and "
        "kernel).",
    ),
]  # fmt: skip
Samples = Annotated[
    int, typer.Option("--samples", min=1, help=_PANEL + "first drafts, asked for at once.")
]
Rounds = Annotated[
    int, typer.Option("--rounds", min=0, help=_PANEL + "calls after the first drafts, at most.")
]
Patience = Annotated[
    int,
    typer.Option(
        "--patience", min=1, help=_PANEL + "fruitless calls before a candidate is given up."
    ),
]
Optimise = Annotated[
    bool, typer.Option("--optimise", help=_PANEL + "make a right candidate faster, too.")
]
Target = Annotated[
    float,
    typer.Option("--target", min=1, help=_PANEL + "fast enough: this many times the roof's time."),
]
Temperature = Annotated[
    float, typer.Option("--temperature", min=0, help=_PANEL + "of the model's sampling.")
]
MaxTokens = Annotated[int, typer.Option("--max-tokens", min=1, help=_PANEL + "of one answer.")]
BudgetTokens = Annotated[
    int, typer.Option("--budget-tokens", help=_PANEL + "tokens of the whole run.")
]
BudgetUsd = Annotated[
    float | None,
    typer.Option("--budget-usd", help=_PANEL + "dollars of the whole run; needs the prices."),
]
PricePrompt = Annotated[
    float | None,
    typer.Option("--price-prompt", min=0, help=_PANEL + "dollars for a million prompt tokens."),
]
PriceAnswer = Annotated[
    float | None,
    typer.Option("--price-answer", min=0, help=_PANEL + "dollars for a million answer tokens."),
]
Concurrency = Annotated[int, typer.Option("--concurrency", min=1, help=_PANEL + "calls at a time.")]
Silence = Annotated[
    float,
    typer.Option("--silence", min=0.1, help=_PANEL + "seconds to wait for the next byte."),
]
Attempts = Annotated[
    int, typer.Option("--attempts", min=1, help=_PANEL + "of one call, before the run stops.")
]
Record = Annotated[
    Path | None,
    typer.Option("--record", metavar="FILE", help=_PANEL + "write every call to this file."),
]
Replay = Annotated[
    Path | None,
    typer.Option("--replay", metavar="FILE", help=_PANEL + "answer from a recording, offline."),
]
Library = Annotated[
    Path | None,
    typer.Option("--knowledge", metavar="FILE", help=_PANEL + "a knowledge store to use and feed."),
]
JournalFolder = Annotated[
    Path | None,
    typer.Option(
        "--journal", metavar="DIR",
        help=_PANEL + "where prompts, replies and verdicts are kept; default: OUT-journal.",
    ),
]  # fmt: skip
Resume = Annotated[bool, typer.Option("--resume", help=_PANEL + "go on with the journal's run.")]


def open_agent(
    chip: Chip,
    tolerance: str,
    asked: Mapping[str, object],
    journal: Path,
    resume: bool,
    steps: Steps,
) -> Writer:
    """The writer of `npusmith generate --writer agent`; `asked` are the options by their names."""
    from npusmith.agent.library import open_library
    from npusmith.agent.options import make_setting
    from npusmith.agent.writer import AgentWriter

    setting = make_setting(asked)
    return AgentWriter(
        setting, chip, journal, knowledge=open_library(setting.knowledge), tolerance=tolerance,
        resume=resume, step=steps.step,
    )  # fmt: skip


def serve_model(
    script: Annotated[
        Path | None,
        typer.Option("--script", metavar="FILE", help="A script of replies: docs/agent.md."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="DIR",
            help="A checkpoint on this machine, for transformers. Needs npusmith[local].",
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

    Speaks the Model Context Protocol. Needs npusmith[mcp]. See docs/agent.md and docs/skill.
    """
    row = find_chip(chip)

    def job(steps: Steps) -> Reply:
        from npusmith.agent.tools import serve

        serve(row.name, "" if knowledge is None else str(knowledge), root, options)
        return Reply(Exit.PASS, {"served": True}, lambda screen: None)

    return job


COMMANDS = (serve_model, mcp)
