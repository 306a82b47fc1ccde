"""Train on what execution has verified: the corpus, and the reward as a server."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from npusmith.cli.exits import Exit
from npusmith.cli.option_groups import expand_groups
from npusmith.cli.options import ChipName, Json, Seed, ToleranceName, Workers
from npusmith.cli.reply import Job, Reply
from npusmith.cli.screen import Screen
from npusmith.cli.steps import Steps
from npusmith.target.chips import DEFAULT_CHIP, lasting_name


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOptions:
    """What a corpus is made of."""

    root: Annotated[
        Path | None,
        typer.Option(
            "--root",
            metavar="DIR",
            help="Kernels of your own: NAME.py, a task, beside NAME.tile.py, NAME.asc or the "
            "folder NAME.",
        ),
    ] = None
    against: Annotated[
        list[Path] | None,
        typer.Option(
            "--against",
            metavar="DIR",
            help="The checkout of a suite whose tasks the corpus must not hold; may be repeated.",
        ),
    ] = None
    twin: Annotated[
        float,
        typer.Option(
            "--twin",
            metavar="SHARE",
            min=0,
            max=1,
            help="Share of the modules whose program the twin runs besides the interpreter.",
        ),
    ] = 0.01
    chip: ChipName = DEFAULT_CHIP
    seed: Seed = 0  # fmt: skip


@expand_groups
def data(
    *,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where the corpus lies, or will lie.")
    ] = Path("cot"),
    samples: Annotated[
        int, typer.Option("--samples", metavar="N", min=1, help="Samples, at least.")
    ] = 10_000,
    minutes: Annotated[
        float,
        typer.Option("--minutes", metavar="M", min=0, help="Begin nothing after that; 0: no end."),
    ] = 0.0,
    order: OrderOptions,
    workers: Workers = 0,
    json: Json = False,
) -> Job:
    """Build a corpus of samples that were verified by running them, and its card.

    Goes on where an earlier run of the same orders ended, however it ended. See docs/corpus.md.
    """

    def job(steps: Steps) -> Reply:
        from npusmith.train.corpus.build import Orders, build
        from npusmith.train.corpus.decontaminate import read_suites
        from npusmith.train.corpus.publish import publish

        suites = read_suites(order.against or ())
        orders = Orders(
            seed=order.seed, chip=lasting_name(order.chip), twin=order.twin,
            root=str(order.root.resolve()) if order.root else "",
        )  # fmt: skip
        steps.step("build", str(out))
        limit = 60 * minutes or float("inf")
        built = build(orders, out, samples, workers, steps.tell, limit)
        steps.step("publish", f"{built.samples:,} samples")
        facts = built.facts(orders)
        statistics, files = publish(out, sorted(built.done), suites, facts)
        found: dict[str, Any] = {
            "samples": statistics.samples, "fresh": built.fresh, "splits": statistics.splits,
            "kinds": statistics.kinds, "programs": len(statistics.programs),
            "doubled": statistics.doubled, "contaminated": statistics.contaminated,
            "outcomes": built.outcomes, "lost": [item.file for item in built.lost],
            "seconds": round(built.seconds, 1), "files": [str(path) for path in files],
        }  # fmt: skip
        return Reply(Exit.PASS, found, lambda screen: _show(screen, found))

    return job


class JudgeRoute(str, Enum):
    """How a completion is judged."""

    INTERPRETER = "interpreter"
    TWIN = "twin"


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardOptions:
    """How a completion is judged."""

    route: Annotated[
        JudgeRoute,
        typer.Option(
            "--route", help="interpreter: tile programs, in NumPy; twin: Ascend C, too, compiled."
        ),
    ] = JudgeRoute.INTERPRETER
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, help="Processor time of one candidate, at most.")
    ] = 10.0
    audit: Annotated[
        float,
        typer.Option(
            "--audit",
            metavar="SHARE",
            min=0,
            max=1,
            help="Share of right tile programs that the twin judges besides.",
        ),
    ] = 0.0
    chip: ChipName = DEFAULT_CHIP
    tolerance: ToleranceName = "default"  # fmt: skip


@expand_groups
def judge_server(
    *,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="0: any that is free.")
    ] = 8100,
    workers: Workers = 0,
    judged: RewardOptions,
    address: Annotated[
        Path | None,
        typer.Option(
            "--address-file", metavar="FILE", help="Write the URL here once the server listens."
        ),
    ] = None,
    json: Json = False,
) -> Job:
    """Serve the reward over HTTP to trainers on this machine. Needs the extra serve.

    Ends with Ctrl-C. See docs/reward.md for the requests.
    """

    def job(steps: Steps) -> Reply:
        from npusmith.train.judge_server import serve
        from npusmith.train.reward import Reward, Route

        with Reward(
            route=Route(judged.route.value), chip=judged.chip, tolerance=judged.tolerance,
            workers=workers, seconds=judged.seconds, audit=judged.audit,
        ) as reward:  # fmt: skip

            def listening(url: str) -> None:
                steps.step("serve", f"{reward.route.value} at {url}")
                if address is not None:
                    address.write_text(url + "\n", encoding="utf-8")

            with suppress(KeyboardInterrupt):
                serve(reward, port, listening)
            seen = dict(reward.seen)
        words = ", ".join(f"{name} {number:,}" for name, number in sorted(seen.items()))
        return Reply(
            Exit.PASS, {"judged": seen}, lambda screen: screen.line(f"judged: {words or 'nothing'}")
        )

    return job


def _show(screen: Screen, found: dict[str, Any]) -> None:
    rate = found["fresh"] / max(found["seconds"], 1e-9)
    screen.line(
        f"{found['samples']:,} samples, {found['programs']:,} programs; {found['fresh']:,} of this "
        f"run in {found['seconds']:,.0f} s ({rate:.1f} a second)"
    )
    for name in ("splits", "kinds", "outcomes", "contaminated"):
        words = ", ".join(f"{key} {number:,}" for key, number in sorted(found[name].items()))
        screen.pair(name, words or "none")
    screen.pair("doubled", f"{found['doubled']:,}")
    for path in found["files"]:
        screen.pair("file", path)
    if not any(path.endswith(".parquet") for path in found["files"]):
        screen.pair("Parquet", "left out: pip install 'npusmith[parquet]'")


COMMANDS = {"data": data}  # of `npusmith train`
