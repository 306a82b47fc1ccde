"""Protocols of papers: they fill in what a command does not say, and stand beside a run's."""

from __future__ import annotations

import pytest

from npusmith.agent.options import read_options
from npusmith.bench.metrics import Figure, Group, Summary
from npusmith.bench.protocols import PROTOCOLS, Protocol, beside, find_protocol, with_terms
from npusmith.errors import NpusmithError


def group(**rates: float) -> Group:
    counts = dict.fromkeys(
        ("tasks", "n", "not_measured", "samples", "compiled", "official", "strict", "precise",
         "correct", "trusted", "cheating", "weak", "untimed"), 0,
    )  # fmt: skip
    figures = {name.replace("_", "@"): Figure(value=value, n=4) for name, value in rates.items()}
    return Group(**counts, fast={}, rates=figures)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda item: item.name)
def test_a_protocol_asks_a_model_in_terms_that_the_agent_has(protocol: Protocol) -> None:
    spec = with_terms(protocol, "agent:model=scripted,journal=j")
    setting, _ = read_options(spec.removeprefix("agent:"))
    assert (setting.terms.samples, setting.start) == (1, "none")  # nothing of the compiler's own
    assert with_terms(protocol, "plan") == "plan"
    assert find_protocol(protocol.name, protocol.suite) is protocol
    for row in protocol.published:
        assert all(0 <= value <= 1 for value in row.figures.values())


def test_what_a_command_says_wins_over_the_protocol() -> None:
    paper = find_protocol("ascendcraft", "multikernelbench")
    spec = with_terms(paper, "agent:model=scripted,rounds=9,start=whole")
    setting, _ = read_options(spec.removeprefix("agent:"))
    assert (setting.terms.rounds, setting.start, setting.terms.samples) == (9, "whole", 1)


@pytest.mark.parametrize(("name", "suite"), [("nobody", "kernelbench"), ("hawk", "npukernelbench")])
def test_a_protocol_of_another_suite_is_refused(name: str, suite: str) -> None:
    with pytest.raises(NpusmithError) as caught:
        find_protocol(name, suite)
    assert caught.value.code == "usage"


def test_the_papers_figures_stand_beside_the_runs_for_the_same_tasks() -> None:
    paper = find_protocol("ascendkernelgen", "npukernelbench")
    summary = Summary(
        overall=group(pass_1=0.5), levels={"1": group(pass_1=0.75, compile_1=1.0)}, categories={},
        dtypes={},
    )  # fmt: skip
    rows = {(row.system, row.group, row.figure): row for row in beside(paper, summary)}
    first = rows["Qwen3-32B + SFT + RL", "1", "pass@1"]
    assert (first.paper, first.run, first.n) == (0.4328, 0.75, 4)
    assert rows["Qwen3-32B", "", "pass@1"].run == 0.5
    assert rows["Qwen3-32B", "2", "pass@1"].run is None  # a level that was not run
    assert rows["Qwen3-32B", "", "pass@100"].run is None  # too few samples
