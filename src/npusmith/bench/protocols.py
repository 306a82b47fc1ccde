"""How published systems were measured, so that one option repeats an experiment.

A protocol is a suite with a selection, how many samples of each task, how a model is asked, and the
figures that the paper has for it. `npusmith bench SUITE --protocol NAME --writer agent:...` fills
in what the command does not say, and sets the paper's figures beside the run's. Papers measured on
hardware; a run of ours says on which twin its times are estimates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npusmith.bench.metrics import Summary
from npusmith.errors import NpusmithError


@dataclass(frozen=True, slots=True)
class Published:
    """One row of a paper's table: a system, tasks ("" for all), and figures as shares of one."""

    system: str
    group: str
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Protocol:
    """`agent`: options of the agent as a writer, where the command does not give them.

    `differs`: what is not as in the paper, in words.
    """

    name: str
    paper: str
    suite: str
    samples: int
    agent: Mapping[str, str]
    published: tuple[Published, ...]
    categories: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()


# One reply for a sample, without help: what the model can do by itself.
_ALONE = {"samples": "1", "rounds": "0", "start": "none"}


def _levels(
    system: str, *rows: tuple[str, float, float, float, float, float, float]
) -> list[Published]:
    """Compile and execution rates in per cent at k = 1, 10, 100, as AscendKernelGen prints them."""
    names = ("compile@1", "pass@1", "compile@10", "pass@10", "compile@100", "pass@100")
    return [
        Published(system, level, dict(zip(names, (value / 100 for value in values), strict=True)))
        for level, *values in rows
    ]


PROTOCOLS = (
    Protocol(
        name="ascendkernelgen", paper="arXiv 2601.07160 v2, its table of compile and execution "
        "rates", suite="npukernelbench", samples=100,
        agent={**_ALONE, "route": "suite"},
        published=(
            *_levels(
                "Qwen3-32B", ("1", 38.08, 17.39, 71.62, 48.84, 75.00, 66.67),
                ("2", 0, 0, 0, 0, 0, 0), ("3", 1.83, 0, 15.43, 0, 50.00, 0),
                ("", 25.59, 11.59, 49.46, 32.56, 55.56, 44.44),
            ),
            *_levels(
                "Qwen3-32B + SFT", ("1", 84.83, 38.28, 99.97, 86.82, 100, 94.44),
                ("2", 60.5, 8.00, 96.54, 40.48, 100, 75.00),
                ("3", 17.0, 0.17, 63.75, 1.67, 100, 16.67),
                ("", 71.89, 27.31, 95.18, 67.06, 100, 81.48),
            ),
            *_levels(
                "Qwen3-32B + SFT + RL", ("1", 82.17, 43.28, 99.92, 93.89, 100, 100),
                ("2", 62.75, 14.25, 95.49, 64.28, 100, 91.67),
                ("3", 14.67, 0.17, 61.12, 1.67, 100, 16.67),
                ("", 70.35, 32.04, 94.62, 77.06, 100, 88.89),
            ),
        ),
        differs=(
            "the paper's figures are those of some 54 of the suite's tasks; which is not said",
            "values are judged on the twin",
        ),
    ),
    Protocol(
        name="hawk", paper="arXiv 2607.01590, its abstract", suite="cann-bench", samples=1,
        levels=("1", "2"),
        agent={"samples": "1", "rounds": "10", "start": "none", "optimise": "true"},
        published=(
            Published("GLM-5.1 without knowledge", "", {"pass@1": 0.494}),
            Published("GLM-5.1 with Hawk", "", {"pass@1": 0.80}),
        ),
        differs=(
            "how many rounds the paper takes is not said",
            "name a store (knowledge=FILE) for the second row, none for the first",
        ),
    ),
    Protocol(
        name="ascendcraft", paper="arXiv 2601.22760 v1, its table by category",
        suite="multikernelbench", samples=1,
        categories=(
            "activation", "loss", "math", "normalization", "optimizer", "reduce", "pooling",
        ),
        agent={"samples": "1", "rounds": "4", "start": "none", "route": "tile"},
        published=(
            Published("AscendCraft", "activation", {"compile@1": 1.0, "pass@1": 1.0}),
            Published("AscendCraft", "loss", {"compile@1": 1.0, "pass@1": 0.857}),
            Published("AscendCraft", "math", {"compile@1": 0.833, "pass@1": 0.833}),
            Published("AscendCraft", "normalization", {"compile@1": 1.0, "pass@1": 0.875}),
            Published("AscendCraft", "optimizer", {"compile@1": 1.0, "pass@1": 1.0}),
            Published("AscendCraft", "reduce", {"compile@1": 1.0, "pass@1": 1.0}),
            Published("AscendCraft", "pooling", {"compile@1": 1.0, "pass@1": 0.667}),
            Published("AscendCraft", "", {"compile@1": 0.981, "pass@1": 0.904}),
        ),
        differs=(
            "the model writes the tile program; the passes below it are the compiler's, not a "
            "model's",
            "repairs may follow wrong values as well, where the paper's follow compile errors",
        ),
    ),
)  # fmt: skip


def find_protocol(name: str, suite: str) -> Protocol:
    """Raises usage for one that is not there, or is about another suite."""
    found = next((item for item in PROTOCOLS if item.name == name), None)
    if found is None:
        raise NpusmithError(
            "usage", f"no protocol is called {name[:80]}", seen=name[:80],
            legal=", ".join(item.name for item in PROTOCOLS),
        )  # fmt: skip
    if found.suite != suite:
        raise NpusmithError(
            "usage", f"the protocol {name} is about {found.suite}", seen=suite, legal=found.suite
        )
    return found


def with_terms(protocol: Protocol, writer: str) -> str:
    """The writer with the protocol's options of an agent, where it is one and has no others."""
    kind, sign, rest = writer.partition(":")
    if kind != "agent" or not sign:
        return writer
    given = {part.partition("=")[0] for part in rest.split(",")}
    more = [f"{name}={value}" for name, value in protocol.agent.items() if name not in given]
    return ":".join((kind, ",".join([*filter(None, [rest]), *more])))


@dataclass(frozen=True, slots=True)
class Beside:
    """A figure of a paper, and the run's own; None where the run does not measure it."""

    system: str
    group: str
    figure: str
    paper: float
    run: float | None
    n: int  # tasks that the run's is a mean of


def beside(protocol: Protocol, summary: Summary) -> list[Beside]:
    """The paper's figures, each with the run's for the same tasks."""
    groups = {"": summary.overall, **summary.levels, **summary.categories}
    rows = []
    for row in protocol.published:
        group = groups.get(row.group)
        for name, value in row.figures.items():
            own = None if group is None else group.rates.get(name)
            rows.append(
                Beside(
                    row.system, row.group, name, value, own.value if own else None,
                    own.n if own else 0,
                )
            )  # fmt: skip
    return rows
