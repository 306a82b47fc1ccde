"""The judge and the timing model, as both routes use them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from npusmith.agent.assessment import Assessment, Step, assess_verdict
from npusmith.target.chips import Chip
from npusmith.task.prepared import Prepared
from npusmith.task.recording import Recording
from npusmith.task.verdict import Verdict
from npusmith.timing.advice import advise
from npusmith.timing.bottleneck import busy_cycles, share, vector, waits_of
from npusmith.timing.model import UNITS, Timing
from npusmith.timing.roof import Roof, roof
from npusmith.timing.rung import give_rung, time_logs

_SHOWN = 0.02  # a smaller share of the time is not worth a word


def judged(
    judge: Callable[[Recording | None], Verdict],
    prepared: Prepared,
    chip: Chip,
    folder: Path,
    least: Step,
    timed: bool,
) -> Assessment:
    """The judge's word; where it is good and `timed`, what the timing model says too."""
    # beside the folder, which is the candidate's own
    recording = Recording(folder.with_name(f"{folder.name}.log")) if timed else None
    verdict = judge(recording)
    if not verdict.correct or recording is None:
        return assess_verdict(verdict, least, folder)
    timings = time_logs(recording.logs(), chip)
    give_rung(verdict, timings)
    return _with_time(assess_verdict(verdict, least, folder), verdict, timings, prepared, chip)


def _with_time(
    assessment: Assessment, verdict: Verdict, timings: list[Timing], prepared: Prepared, chip: Chip
) -> Assessment:
    if not timings:
        return assessment
    main = max(timings, key=lambda timing: timing.cycles)
    limit = roof(prepared.graph, chip)
    return assessment.model_copy(
        update={
            "bound_us": limit.bound_us,
            "bottleneck": tuple(vector(main, limit)),
            "profile": tuple(profile_lines(main, limit, verdict, chip)),
        }
    )


def profile_lines(timing: Timing, limit: Roof, verdict: Verdict, chip: Chip) -> list[str]:
    """What limits a kernel: its time against the roof, each pipe, the stalls, what to change."""
    bound = limit.bound_us
    over = f", {timing.kernel_us / bound:.1f} times the roof of {bound:.2f} us" if bound > 0 else ""
    lines = [
        f"kernel {timing.kernel_us:.2f} us{over}; with launch {timing.task_us:.2f} us"
        " (each core that is started adds to it)"
    ]
    busy = {unit: share(timing, unit) for unit, cycles in busy_cycles(timing).items() if cycles}
    pipes = [f"{unit} {busy[unit]:.0%}" for unit in UNITS if busy.get(unit, 0.0) >= _SHOWN]
    lines.append(f"busy: {', '.join(pipes) or 'nothing'}")
    top = max(busy, key=lambda unit: busy[unit], default="")
    waits = sorted(waits_of(timing, top).items(), key=lambda item: -item[1]) if top else []
    stalls = [f"{reason} {part:.0%}" for reason, part in waits[:3] if part >= _SHOWN]
    if stalls:
        lines.append(f"{top}, the busiest pipe, waits for: {', '.join(stalls)}")
    for item in advise(timing, limit, verdict.findings, chip, most=4):
        if item.rule == "launch":  # no change of one kernel helps against that
            continue
        lines.append(f"{item.number} (at most {item.gain:.0%} of the time): {item.hint}")
    return lines
