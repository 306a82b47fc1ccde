"""The card of a corpus: what is in it, how it was verified, and the published corpus beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from npusmith.train.corpus.sample import Split

if TYPE_CHECKING:
    from npusmith.train.corpus.decontaminate import Suites
    from npusmith.train.corpus.publish import Statistics

_SHARES = (0.5, 0.9, 0.99, 1.0)
# arXiv 2601.07160: raw samples and the lengths that it gives, in tokens of its tokenizer
_PUBLISHED = """\
| | this corpus | Ascend-CoT as published (arXiv 2601.07160) |
|---|---|---|
| samples | {samples:,} | 83,916 raw |
| inputs | 99 % up to {prompt:,} bytes, longest {prompt_most:,} | 99.1 % up to about 11,100 \
tokens, longest about 111,000 |
| outputs | 99 % up to {completion:,} bytes, longest {completion_most:,} | 85.1 % up to 21,900 \
tokens, longest about 219,000 |
| what verified a program | it was run | for projects a reference tiling; for the rest not given |
| teacher | a deterministic compiler | DeepSeek-R1, Gemini 2.5 Pro |
"""


def card(statistics: Statistics, suites: Suites, facts: Mapping[str, Any]) -> str:
    """The text of README.md, with the front matter that the library `datasets` reads."""
    parts = [
        _front(statistics), "# A corpus of Ascend kernels that were run\n", _WHAT,
        _numbers(statistics), _lengths(statistics), _how(facts), _clean(statistics, suites),
    ]  # fmt: skip
    return "\n".join(parts)


_WHAT = """\
Made by `npusmith train data`. Each line has `id`, `kind`, `family`, `split`, `prompt`, \
`completion`, `verified_by`
(the command that shows the same), `program_hash` and `meta`; a preference has `chosen` and \
`rejected` besides.
Times are estimates of npusmith's timing model, not measurements of a device.
"""


def _front(statistics: Statistics) -> str:
    rows = "".join(
        f"  - split: {split.value}\n    path: {split.value}.jsonl\n"
        for split in Split
        if statistics.splits[split.value]
    )
    return f"---\nconfigs:\n- config_name: default\n  data_files:\n{rows}---\n"


def _numbers(statistics: Statistics) -> str:
    rows = [
        ("split", statistics.splits), ("kind", statistics.kinds), ("family", statistics.families),
    ]  # fmt: skip
    lines = [
        f"| {what} | {name} | {number:,} |"
        for what, counter in rows
        for name, number in sorted(counter.items())
    ]
    head = f"## Numbers\n\n{statistics.samples:,} samples, {len(statistics.programs):,} programs.\n"
    return "\n".join([head, "| | | samples |", "|---|---|---|", *lines, ""])


def _lengths(statistics: Statistics) -> str:
    rows = []
    for name, sizes in (
        ("prompt", statistics.prompt_bytes), ("completion", statistics.completion_bytes),
    ):  # fmt: skip
        cells = " | ".join(f"{quantile(sizes, share):,}" for share in _SHARES)
        rows.append(f"| {name} | {cells} | {sum(sizes):,} |")
    beside = _PUBLISHED.format(
        samples=statistics.samples,
        prompt=quantile(statistics.prompt_bytes, 0.99),
        prompt_most=quantile(statistics.prompt_bytes, 1.0),
        completion=quantile(statistics.completion_bytes, 0.99),
        completion_most=quantile(statistics.completion_bytes, 1.0),
    )
    head = "| bytes | half | 90 % | 99 % | all | in all |\n|---|---|---|---|---|---|"
    return "\n".join(["## Lengths\n", head, *rows, "", beside])


def quantile(sizes: Sequence[int], share: float) -> int:
    """The size that this share of them does not exceed; 0 of none."""
    ordered = sorted(sizes)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else 0


def _how(facts: Mapping[str, Any]) -> str:
    rows = [f"- {name}: {value}" for name, value in facts.items()]
    return "\n".join(["## How it was made\n", *rows, ""])


def _clean(statistics: Statistics, suites: Suites) -> str:
    named = ", ".join(folder.name for folder in suites.folders)
    how = ", ".join(f"{number:,} by {name}" for name, number in statistics.contaminated.items())
    against = (
        f"Compared with {suites.tasks:,} tasks of {named}: {how or 'none'} left out."
        if suites.folders
        else "Compared with no suite: `--against FOLDER` names one."
    )
    return (
        f"## Doubles and suites\n\n{statistics.doubled:,} samples said what another says and are "
        f"not here.\n{against}\nFamilies of operators were given to train, validation and test "
        "before anything was drawn.\n"
    )
