"""Code-centric samples of a subject: task to program, plan alone, other schedules, Ascend C."""

from __future__ import annotations

from collections.abc import Iterator

from npusmith.agent.prompt import fence
from npusmith.errors import LowerError, PlanError, TwinError
from npusmith.lm.prompt import ASK
from npusmith.lower import lower, project_files
from npusmith.plan.schedule import Schedule
from npusmith.train.corpus.facts import facts
from npusmith.train.corpus.program_hash import program_hash
from npusmith.train.corpus.sample import Kind, Sample
from npusmith.train.corpus.subject import SECONDS, Dropped, Subject, Written
from npusmith.train.modules.case import Late, limited
from npusmith.train.modules.on_twin import OnTwin, Unfinished

_MOST_BUFFERS = 12  # that a plan names one by one
_SCHEDULES, _TRIES = 4, 6  # other ones of a subject, at most, and what is tried for them


def code(subject: Subject) -> Iterator[Sample]:
    """The program as the compiler writes it, with its plan, and the plan alone."""
    first = subject.first
    plan = plan_words(subject, first)
    yield subject.sample(
        Kind.CODE, f"{subject.task}\n\n{ASK}",
        f"{plan}\n\n{fence(first.text, 'python')}", "tile", program_hash=first.hash,
        meta={"schedule": str(first.schedule), "us": first.us},
    )  # fmt: skip
    yield subject.sample(
        Kind.CODE, f"{subject.task}\n\nState the plan alone: schedule, cores, buffers, bytes.",
        plan, "plan", program_hash=first.hash, meta={"schedule": str(first.schedule)},
    )  # fmt: skip


def plan_words(subject: Subject, written: Written) -> str:
    """Schedule, cores, buffers, bytes and time of a program.

    A cap of cores holds near the captured sizes, so cores are said there and at the large ones.
    """
    found = facts(written.program, subject.large, subject.chip)
    chip = subject.chip
    widest = max(found.versions, key=lambda row: sum(item.bytes for item in row), default=())
    shown = [item.words for item in widest[:_MOST_BUFFERS]]
    if len(widest) > _MOST_BUFFERS:
        shown.append(f"and {len(widest) - _MOST_BUFFERS} more")
    own = facts(written.program, subject.own, chip)
    near, far = (", then ".join(map(str, item.cores)) for item in (own, found))
    lines = [
        f"Plan: {written.schedule}.",
        f"Of {chip.vector_cores} vector cores {near} at the task's sizes, {far} at "
        f"{subject.sizes}.",
        f"Buffers: {'; '.join(shown) or 'none in the unified buffer'}.",
        f"Together {found.ub:,} of {chip.ub_bytes:,} B"
        + (f", the most of {len(found.versions)} versions." if len(found.versions) > 1 else "."),
        f"Inputs and outputs hold {own.moved:,} B; {found.moved:,} B there.",
    ]
    if written.us is not None:
        lines.append(f"Estimated there: {written.us:.2f} us with launch.")
    return "\n".join(lines)


def other_schedules(subject: Subject) -> list[Written]:
    """Verified programs of other schedules, each another text than those before."""
    if not subject.is_short:
        return []
    choices = [
        (item.name, value) for item in subject.plan.decisions for value in item.others
    ]  # fmt: skip
    subject.random.shuffle(choices)
    found: list[Written] = []
    seen = {subject.first.text}
    for name, value in choices[:_TRIES]:
        if len(found) == _SCHEDULES:
            break
        schedule = Schedule().changed(name, value)
        try:
            with limited(SECONDS):
                written = subject.write(schedule)
        except (PlanError, LowerError, Dropped, Late):
            continue
        if written is not None and written.text not in seen:
            seen.add(written.text)
            found.append(written)
    return found


def scheduled(subject: Subject, others: list[Written]) -> Iterator[Sample]:
    """A program for a schedule that the prompt asks for."""
    for written in others:
        ask = f"{subject.task}\n\nUse this schedule: {written.schedule}. State the plan first."
        answer = f"{plan_words(subject, written)}\n\n{fence(written.text, 'python')}"
        yield subject.sample(
            Kind.CODE, ask, answer, f"schedule {program_hash(str(written.schedule))}",
            program_hash=written.hash,
            meta={"schedule": str(written.schedule), "us": written.us},
        )  # fmt: skip


def ascend_c(subject: Subject) -> tuple[str, list[Sample]]:
    """The project of the program, once it has compiled and run on the twin; and how that went."""
    try:
        twin = OnTwin(subject.plan, subject.chip)
        for trial in subject.trials:
            subject.case.compare(twin.run(trial.inputs, trial.outputs), trial, "twin: ")
    except (TwinError, Unfinished) as error:
        return f"twin differs: {getattr(error, 'code', 'finding')}", []
    files = project_files(
        lower(subject.plan.program, subject.chip), subject.chip, subject.plan.spec
    )
    chosen = {
        name: text for name, text in files.items()
        if name.startswith(("op_host/", "op_kernel/")) and name.endswith((".cpp", ".h"))
    }  # fmt: skip
    blocks = [fence(text, f"cpp {name}") for name, text in sorted(chosen.items())]
    text = subject.first.text
    whole = subject.sample(
        Kind.CODE, f"{subject.task}\n\nWrite the Ascend C project: host tiling and kernel.",
        "\n".join(blocks), "ascendc", program_hash=subject.first.hash, meta={"twin": True},
    )  # fmt: skip
    kernels = [block for block in blocks if "op_kernel/" in block.partition("\n")[0]]
    lowered = subject.sample(
        Kind.CODE,
        f"Lower this tile program to an Ascend C kernel for the {subject.chip.name}.\n\n"
        f"{fence(text, 'python')}",
        "\n".join(kernels), "lowered", program_hash=subject.first.hash, meta={"twin": True},
    )  # fmt: skip
    return "twin agrees", [whole, lowered]
