"""Edits: from one verified program to another, by schedule, time, chip or element type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from npusmith.agent.prompt import fence
from npusmith.errors import LowerError, PlanError, TaskError
from npusmith.lm.prompt import NAME
from npusmith.plan import write
from npusmith.target.chips import Chip, find_chip
from npusmith.train.corpus.program_hash import program_hash
from npusmith.train.corpus.programs import plan_words
from npusmith.train.corpus.sample import Kind, Sample
from npusmith.train.corpus.subject import SECONDS, Dropped, Subject, Written, open_subject
from npusmith.train.modules.case import Crash, Late, Unfit, Wrong, limited
from npusmith.train.modules.draw import INDEX, Module

_FASTER = 1.05  # times as long: less is no lesson
_HALF = ".to(torch.float16)"
_SMALL = "910B4"  # another chip: fewer cores, slower
_LESS_UB = 64 * 1024  # of a chip file of the user's own
_DROPS = (Dropped, PlanError, TaskError, LowerError, Late, Crash, Unfit, Wrong)


def scheduled_edits(subject: Subject, others: list[Written]) -> Iterator[Sample]:
    """The compiler's own program to each other schedule, and whatever is slower to the fastest."""
    first = subject.first
    for written in others:
        yield _edit(
            subject, first, written, "schedule",
            f"Rewrite it with this schedule: {written.schedule}.",
        )  # fmt: skip
    timed = [item for item in (first, *others) if item.us is not None]
    best = min(timed, key=lambda item: item.us or 0.0, default=first)
    for slow in timed:
        if slow.us and best.us and slow.us > _FASTER * best.us:
            ask = (
                f"At {subject.sizes} it is estimated to take {slow.us:.2f} us on the "
                f"{subject.chip.name}. Make it faster without changing its values."
            )
            yield _edit(subject, slow, best, "faster", ask, us=(slow.us, best.us))


def _edit(
    subject: Subject, before: Written, after: Written, form: str, ask: str,
    us: tuple[float, float] | None = None,
) -> Sample:  # fmt: skip
    words = plan_words(subject, after)
    if us:
        words += f"\n{us[0]:.2f} us before: {us[0] / us[1]:.2f} times as fast now."
    return subject.sample(
        Kind.EDIT, f"{subject.task}\n\n{fence(before.text, 'python')}\n\n{ask}",
        f"{words}\n\n{fence(after.text, 'python')}", f"edit {form}",
        program_hash=program_hash(before.text + after.text), meta={"us": us},
    )  # fmt: skip


def other_chip(subject: Subject) -> Iterator[Sample]:
    """The program for a chip with a small buffer, where it is another one."""
    if not subject.is_short:
        return
    less = replace(subject.chip, name="less-ub", ub_total_bytes=_LESS_UB)
    for chip in (find_chip(_SMALL), less):
        try:
            with limited(SECONDS):
                plan = write(subject.case.captured.graph, NAME, chip)
            there = replace(subject, chip=chip, plan=plan)
            written = there.write(plan.schedule)
        except _DROPS:
            continue
        if written is None or written.text == subject.first.text:
            continue
        yield there.sample(
            Kind.EDIT,
            f"{subject.task}\n\n{fence(subject.first.text, 'python')}\n\nRewrite it for a chip "
            f"with {chip.vector_cores} vector cores and {chip.ub_bytes:,} B of unified buffer.",
            f"{plan_words(there, written)}\n\n{fence(written.text, 'python')}", "edit chip",
            program_hash=program_hash(subject.first.text + written.text),
            meta={"ub_total_bytes": chip.ub_total_bytes},
        )  # fmt: skip


def other_type(subject: Subject, chip: Chip) -> Iterator[Sample]:
    """The same module on half-precision inputs, where it has float32 ones and can be written."""
    module = in_half(subject.case.module)
    if module is None:
        return
    try:
        other = open_subject(module, subject.split, chip)
    except _DROPS:
        return
    yield other.sample(
        Kind.EDIT,
        f"{other.task}\n\nThis program solves the same task with float32 inputs:\n\n"
        f"{fence(subject.first.text, 'python')}\n\nRewrite it for float16 inputs.",
        f"{plan_words(other, other.first)}\n\n{fence(other.first.text, 'python')}", "edit type",
        program_hash=program_hash(subject.first.text + other.first.text),
    )  # fmt: skip
    yield other.sample(
        Kind.CODE, f"{other.task}\n\nState the plan, then write the tile program.",
        f"{plan_words(other, other.first)}\n\n{fence(other.first.text, 'python')}", "tile",
        program_hash=other.first.hash, meta={"us": other.first.us},
    )  # fmt: skip


def in_half(module: Module) -> Module | None:
    """With float16 inputs and parameters instead of float32; None where nothing changes."""

    def halved(make: str) -> str:
        floats = ("torch.randn(", "torch.rand(", "torch.where(")
        plain = make.startswith(floats) and ".to(" not in make and "dtype" not in make
        if make.startswith(INDEX) or "<" in make.partition("torch.where(")[0] or not plain:
            return make
        return f"{make}{_HALF}" if "argsort" not in make and "< 0.5" not in make else make

    inputs = tuple(replace(item, make=halved(item.make)) for item in module.inputs)
    parameters = tuple(
        replace(item, make=item.make.replace("torch.float32", "torch.float16"))
        for item in module.parameters
    )
    if inputs == module.inputs:
        return None
    return replace(module, inputs=inputs, parameters=parameters, exact=frozenset())
