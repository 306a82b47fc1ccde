"""Train on what execution has verified: the corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from npusmith.cli.exits import Exit
from npusmith.cli.options import ChipName, Json, Seed
from npusmith.cli.reply import Job, Reply
from npusmith.cli.screen import Screen
from npusmith.cli.steps import Steps
from npusmith.target.chips import DEFAULT_CHIP, lasting_name


def data(
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
    against: Annotated[
        list[Path] | None,
        typer.Option(
            "--against", metavar="DIR",
            help="The checkout of a suite whose tasks the corpus must not hold; may be repeated.",
        ),
    ] = None,
    chip: ChipName = DEFAULT_CHIP,
    seed: Seed = 0,
    jobs: Annotated[
        int, typer.Option("--jobs", min=0, help="Processes; 0: one for each processor.")
    ] = 0,
    json: Json = False,
) -> Job:  # fmt: skip
    """Build a corpus of samples that were verified by running them, and its card.

    Goes on where an earlier run of the same orders ended, however it ended. See docs/corpus.md.
    """

    def job(steps: Steps) -> Reply:
        from npusmith.train.corpus.build import Orders, build
        from npusmith.train.corpus.decontaminate import read_suites
        from npusmith.train.corpus.publish import publish

        suites = read_suites(against or ())
        orders = Orders(seed=seed, chip=lasting_name(chip))
        steps.step("build", str(out))
        limit = 60 * minutes or float("inf")
        built = build(orders, out, samples, jobs, steps.tell, limit)
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


COMMANDS = {"data": data}
