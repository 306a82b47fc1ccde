"""Expert-written Ascend C kernels against the deterministic writer's, operator by operator.

    python runs/experts.py --root NPUKERNELBENCH [--json FILE] [--sizes N] [--most-mb MB] [NAME...]

The experts' kernels are the reference answers of PCL's NPUKernelBench. Both kernels of a case get
the same inputs on the same twin, are judged by the suite's rule, and are timed by the same model
from a recorded run; a time counts where the values are right. An operator's cases are the smallest,
the middle and the largest by bytes of inputs (`--sizes`); its ratio is the geometric mean of expert
time / our time over them. NAME is an operator or a category; the default is all that have answers.

With --json rows are kept as they come. A second call writes all kernels again and measures those
that are missing, or are not the ones of the row, or were measured by another twin. Two kinds of
answers have tables of their own: naive ones, which keep to one core at their largest size, and
those that move less than the reference's results need (half results where the reference has
float32, or fewer of them). What could not be compared is listed with the reason. All times are
estimates of the timing model.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from npusmith.bench.model import Candidate, Item, Limits, Record, Writer
from npusmith.bench.plan import judge_digest
from npusmith.bench.suites.npucases import literal_bytes, read_cases
from npusmith.bench.suites.npukernelbench import NpuKernelBench
from npusmith.bench.suites.options import SuiteOptions
from npusmith.errors import NpusmithError
from npusmith.target.chips import find_chip
from npusmith.writers.folder import AnswerWriter
from npusmith.writers.plan import PlanWriter

TARGET_MEAN, TARGET_LEAST, TARGET_SHARE = 1.10, 0.98, 0.90
LEAST = 4096  # bytes of inputs below which a case says what a launch costs, and nothing else
LESS = 0.9  # of what ours writes
KIND, ONE_CORE, PARTIAL = "Answers", "Answers on one core", "Answers that write less than asked"
Row = dict[str, Any]


# --------------------------------------------------------------------------------- which cases


def spread(sizes: Mapping[int, int], count: int) -> list[int]:
    """`count` cases from the smallest to the largest, by bytes; those below LEAST come last.

    Sizes are by case. Cases of one size stand in their own order, so that the choice is stable.
    """
    order = sorted(sizes, key=lambda case: (sizes[case], case))
    large = [case for case in order if sizes[case] >= LEAST]
    if len(large) < count:  # then as many of the small ones as are missing, the largest of them
        small = [case for case in order if sizes[case] < LEAST]
        return small[max(0, len(small) - count + len(large)) :] + large
    if count == 1:
        return large[-1:]
    return [large[round(at * (len(large) - 1) / (count - 1))] for at in range(count)]


def chosen(suite: NpuKernelBench, count: int, most_mb: float) -> Iterator[tuple[Item, int]]:
    """The items to compare with the bytes of their inputs, operator by operator."""
    groups: dict[str, list[Item]] = {}
    for item in suite.items():
        groups.setdefault(item.source, []).append(item)
    for source, items in groups.items():
        rows = {int(row["case_id"]): row for row in read_cases(suite.root / source)}
        sizes = {case: literal_bytes(row) for case, row in rows.items()}
        fit = {case: size for case, size in sizes.items() if size <= most_mb * 1e6}
        by_case = {int(item.name.rpartition("/case")[2]): item for item in items}
        for case in spread(fit, count):
            yield by_case[case], sizes[case]


# ------------------------------------------------------------------------------------ one case


def compare(
    suite: NpuKernelBench, item: Item, size: int, writers: Sequence[Writer], kept: Mapping[str, Row]
) -> tuple[Row, bool]:
    """Both sides' records of one case, and the ratio of their times or why there is none.

    `kept`: rows by case. The second result says whether the row is new.
    """
    expert, ours = (written(suite, item, writer) for writer in writers)
    texts = [side if isinstance(side, str) else side.digest for side in (expert, ours)]
    row: Row = {
        "operator": item.name.rpartition("/")[0], "case": item.name, "bytes": size,
        "measured": [judge_digest(), *texts],
    }  # fmt: skip
    old = kept.get(item.name)
    if old is not None and old.get("measured") == row["measured"]:
        return old, False
    limits = Limits(timing=True, trials=1)
    row["expert"] = side_of(suite, item, expert, limits, alone=False)
    row["ours"] = side_of(suite, item, ours, limits, alone=True)
    row["why"] = "; ".join(
        f"{name}: {row[name]['why']}" for name in ("expert", "ours") if row[name]["why"]
    )
    row["ratio"] = None if row["why"] else round(row["expert"]["us"] / row["ours"]["us"], 4)
    return row, True


def written(suite: NpuKernelBench, item: Item, writer: Writer) -> Candidate | str:
    """What a writer proposes, or why it proposes nothing."""
    try:
        return writer.write(suite.brief(item), 0, 0)
    except NpusmithError as error:
        return f"refused, {error.code}: {error.message}"


def side_of(
    suite: NpuKernelBench, item: Item, given: Candidate | str, limits: Limits, *, alone: bool
) -> Row:
    """One side's time, cores and findings; `why`: what it lacks to be compared."""
    begin = time.monotonic()
    candidate = None if isinstance(given, str) else given
    record, why = None, given if isinstance(given, str) else ""
    if candidate is not None:
        try:
            record = (suite.evaluate_alone if alone else suite.evaluate)(item, candidate, limits)
        except NpusmithError as error:
            why = f"refused, {error.code}: {error.message}"
        else:
            why = lacking(record)
    told = record.provenance if record else {}
    return {
        "us": record.time_us if record else None,
        **{name: int(told.get(name, 0)) for name in ("cores", "read_bytes", "written_bytes")},
        "findings": record.findings if record else {},
        "notes": list(candidate.origin.get("notes", ())) if candidate else [],
        "why": why[:300],
        "seconds": round(time.monotonic() - begin, 1),
    }


def lacking(record: Record) -> str:
    """Why a record's time cannot be compared; "" where it can."""
    if record.skipped:
        return f"skipped, {record.skipped}"
    if not record.compiled:
        return f"not compiled, {record.error}"
    if not record.official:
        return f"wrong, {record.error}"
    if record.cheating:
        return f"computes outside its kernel, {', '.join(record.cheating)}"
    return "" if record.time_us else f"no time, {record.time_note}"


# ------------------------------------------------------------------------------------- all of them


def by_operator(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of each operator in the order of their bytes."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["operator"], []).append(row)
    return {name: sorted(mine, key=lambda row: row["bytes"]) for name, mine in groups.items()}


def ratio_of(rows: Sequence[Row]) -> float | None:
    """Geometric mean over the sizes that could be compared."""
    found = [row["ratio"] for row in rows if row["ratio"]]
    return statistics.geometric_mean(found) if found else None


def naive(rows: Sequence[Row]) -> bool:
    """Whether the answer keeps to one core at its largest size, where ours takes several."""
    timed = [row for row in rows if row["ratio"]]
    return bool(timed) and timed[-1]["expert"]["cores"] == 1 < timed[-1]["ours"]["cores"]


def partial(rows: Sequence[Row]) -> bool:
    """Whether the answer writes much less than ours at its largest size: it has less to do."""
    timed = [row for row in rows if row["ratio"]]
    written = [timed[-1][name]["written_bytes"] for name in ("expert", "ours")] if timed else [0, 0]
    return 0 < written[0] < LESS * written[1]


def totals(groups: Mapping[str, Sequence[Row]]) -> str:
    """One line: operators, geometric mean, and how many are not slower."""
    found = [ratio for rows in groups.values() if (ratio := ratio_of(rows))]
    if not found:
        return "no operator compared"
    fast = sum(ratio >= TARGET_LEAST for ratio in found)
    mean = statistics.geometric_mean(found)
    return (
        f"{len(found)} operators: geometric mean {mean:.2f} (target {TARGET_MEAN:.2f}), "
        f"at least {TARGET_LEAST}: {fast}, {fast / len(found):.1%} (target {TARGET_SHARE:.0%}), "
        f"median {statistics.median(found):.2f}, least {min(found):.2f}, most {max(found):.1f}"
    )


def table(groups: Mapping[str, Sequence[Row]]) -> list[str]:
    """Markdown, the slowest of ours first. Times in microseconds from the smallest size on."""
    lines = [
        "| Operator | inputs, KB | expert us | ours us | cores | ratios | mean |",
        "|---" * 7 + "|",
    ]
    order = sorted(groups, key=lambda name: ratio_of(groups[name]) or 0.0)
    for name in order:
        rows = [row for row in groups[name] if row["ratio"]]
        cells = (
            [f"{row['bytes'] / 1e3:.0f}" for row in rows],
            [f"{row['expert']['us']:.1f}" for row in rows],
            [f"{row['ours']['us']:.1f}" for row in rows],
            [f"{row['expert']['cores']}:{row['ours']['cores']}" for row in rows],
            [f"{row['ratio']:.2f}" for row in rows],
        )
        mean = ratio_of(rows) or 0.0
        lines.append(f"| {name} | {' | '.join(', '.join(cell) for cell in cells)} | {mean:.2f} |")
    return lines


def report(rows: Sequence[Row]) -> str:
    """All tables of a run."""
    groups = by_operator(rows)
    told = {name: mine for name, mine in groups.items() if ratio_of(mine)}
    kinds: dict[str, dict[str, list[Row]]] = {KIND: {}}
    for name, mine in told.items():
        kind = ONE_CORE if naive(mine) else PARTIAL if partial(mine) else KIND
        kinds.setdefault(kind, {})[name] = mine
    lines = [f"{len(told)} of {len(groups)} operators compared, {len(rows)} cases"]
    for kind, mine in kinds.items():
        lines += ["", f"{kind}: {totals(mine)}", "", *table(mine)]
    left = [row for row in rows if row["why"]]
    if left:
        lines += ["", f"Not compared, {len(left)} cases:", ""]
        lines += [f"- {row['case']}: {row['why']}" for row in left]
    return "\n".join(lines)


def read_rows(path: Path | None) -> list[Row]:
    """What an earlier call has left; the last line may have been cut by a kill."""
    rows: list[Row] = []
    if path is not None and path.is_file():
        for text in path.read_text(encoding="utf-8").splitlines():
            try:
                rows.append(json.loads(text))
            except ValueError:
                continue
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--root", type=Path, required=True, help="a checkout of NPUKernelBench")
    parser.add_argument("--json", type=Path, help="rows as JSON lines; those there are kept")
    parser.add_argument("--sizes", type=int, default=3, help="cases of an operator")
    parser.add_argument("--most-mb", type=float, default=64, help="inputs of a case")
    parser.add_argument("--chip", default="910B2")
    options = parser.parse_args()
    asked = SuiteOptions(answered=True, cases=0, eager=False, names=tuple(options.names))
    suite = NpuKernelBench(options.root, asked)
    writers: tuple[Writer, Writer] = (
        AnswerWriter(options.root),
        PlanWriter(find_chip(options.chip), search=0),
    )
    kept = {row["case"]: row for row in read_rows(options.json)}
    rows: list[Row] = []
    wanted = list(chosen(suite, options.sizes, options.most_mb))
    for at, (item, size) in enumerate(wanted, 1):
        row, new = compare(suite, item, size, writers, kept)
        rows.append(row)
        if not new:
            continue
        told = f"{row['ratio']:.2f}" if row["ratio"] else row["why"]
        spent = row["expert"]["seconds"] + row["ours"]["seconds"]
        print(f"{at} of {len(wanted)}, {spent:.0f} s: {item.name} {told}"[:300], flush=True)
        if options.json is not None:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    print(report(rows))


if __name__ == "__main__":
    main()
