"""Questions about numbers of a program: bytes, buffers, cores, host values, traffic, times.

An answer shows how each number comes about. `holds` reads the numbers back from the finished text
and computes them once more from the program in the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from npusmith.agent.prompt import fence
from npusmith.lang import parse
from npusmith.target.chips import Chip, find_chip
from npusmith.train.corpus.facts import Facts, facts
from npusmith.train.corpus.sample import Kind, Sample
from npusmith.train.corpus.subject import Subject, Written
from npusmith.train.static_time import static_us

_END = "\nAnswer: "
_PROGRAM = re.compile(r"```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CHECK = "npusmith check FILE.tile.py"  # what knows the budget; numbers follow from the text


def reasoning(subject: Subject, written: Written) -> Iterator[Sample]:
    """Those that a verified program gives rise to; raises AssertionError for a wrong number."""
    found = facts(written.program, subject.large, subject.chip)
    head = fence(written.text, "python")
    chip, sizes = subject.chip, subject.sizes
    asked = {
        "ub": (
            f"How many bytes of the unified buffer do its buffers take, and do they fit on the "
            f"{chip.name}?",
            _ub_words(found, chip),
        ),
        "cores": (
            f"The inputs are {sizes}. On how many cores of the {chip.name} does it run, and what "
            "does the host pass?",
            _core_words(found),
        ),
        "traffic": (
            f"The inputs are {sizes}. How many bytes pass between global memory and the cores at "
            f"least, and how long does that take at {chip.hbm_gbps:,} GB/s?",
            _traffic_words(found, chip),
        ),
    }
    if written.us is not None:
        asked["time"] = (
            f"The inputs are {sizes}. What does npusmith's static estimate say of its time on the "
            f"{chip.name}, and how far is that from the least time of its tensors?",
            _time_words(found, chip, written.us),
        )
    for name, (question, answer) in asked.items():
        made = subject.sample(
            Kind.REASONING, f"{head}\n\n{question}", answer, f"reasoning {name}",
            program_hash=written.hash, verified_by=_CHECK,
            meta={"shapes": {key: list(shape) for key, shape in subject.large.items()}},
        )  # fmt: skip
        assert holds(made), answer
        yield made


def holds(sample: Sample) -> bool:
    """Whether every number of the last line, and of the sums before it, comes out again."""
    matched = _PROGRAM.search(sample.prompt)
    assert matched is not None
    shapes = {name: tuple(shape) for name, shape in sample.meta["shapes"].items()}
    chip = find_chip(sample.meta["chip"])
    program = parse(matched[1])
    found = facts(program, shapes, chip)
    what = sample.meta["form"].partition(" ")[2]
    said = sample.completion.rpartition(_END)[2]
    us = static_us(program, shapes, chip)
    return said == _answer(what, found, chip, us) and _adds_up(sample.completion)


def _adds_up(text: str) -> bool:
    """Every `a x type = b B` and every `a + b = c` is right."""
    sums = re.findall(r"^((?:[\d,]+ \+ )+[\d,]+) = ([\d,]+)", text, re.MULTILINE)
    return all(sum(map(_number, left.split(" + "))) == _number(right) for left, right in sums)


def _number(word: str) -> int:
    return int(word.replace(",", ""))


def _answer(what: str, found: Facts, chip: Chip, us: float | None) -> str:
    """The last line."""
    if what == "ub":
        fits = "yes" if found.ub <= chip.ub_bytes else "no"
        return f"{found.ub:,} B of {chip.ub_bytes:,} B; {fits}"
    if what == "cores":
        return ", ".join(map(str, found.cores))
    if what == "traffic":
        return f"{found.moved:,} B, {_us(found.moved, chip):.2f} us"
    assert us is not None
    return f"{us:.2f} us, {_us(found.moved, chip):.2f} us of it for the tensors"


def _us(count: int, chip: Chip) -> float:
    return count / (chip.hbm_gbps * 1000)


def _ub_words(found: Facts, chip: Chip) -> str:
    """Versions and kernels, one after another; what the largest needs."""
    lines = []
    for number, own in enumerate(found.versions, 1):
        which = f"version {number}" if len(found.versions) > 1 else "all buffers"
        lines += [item.words for item in own]
        parts = " + ".join(f"{item.bytes:,}" for item in own) or "0"
        lines.append(f"{parts} = {sum(item.bytes for item in own):,} B, {which}")
    lines.append(
        f"Each buffer is padded to blocks of {chip.block_bytes} B; a version, or a kernel, has the "
        "unified buffer to itself."
    )
    return "\n".join(lines) + _END + _answer("ub", found, chip, None)


def _core_words(found: Facts) -> str:
    host = "; ".join(f"{name} = {value:,}" for name, value in found.host)
    lines = [
        "The host function, line by line, for these shapes, gives the first launch: "
        f"{host or 'no numbers'}.",
        f"Launches: {len(found.cores)}.",
    ]
    return "\n".join(lines) + _END + ", ".join(map(str, found.cores))


def _traffic_words(found: Facts, chip: Chip) -> str:
    parts = " + ".join(f"{size:,}" for _, size in found.tensors)
    rows = [f"{name}: {size:,} B" for name, size in found.tensors]
    if len(found.tensors) > 1:
        rows.append(f"{parts} = {found.moved:,} B, each tensor once")
    rows.append(f"{found.moved:,} B / {chip.hbm_gbps * 1000:,} B per us")
    return "\n".join(rows) + _END + _answer("traffic", found, chip, None)


def _time_words(found: Facts, chip: Chip, us: float) -> str:
    least = _us(found.moved, chip)
    over = f"{us / least:.1f} times as long" if least else "no tensor takes time"
    lines = [f"The estimate walks one core's work: {us:.2f} us with launch.",
             f"The tensors alone take {found.moved:,} B / {chip.hbm_gbps * 1000:,} B per us = "
             f"{least:.2f} us: {over}."]  # fmt: skip
    return "\n".join(lines) + _END + _answer("time", found, chip, us)
