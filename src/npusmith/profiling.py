"""`profile(...)`: judge a candidate on one set of inputs, time that run, and write what it says.

The run is the judge's own, so a time never stands without a verdict on the values. Leaves
result.json, profile.json, trace.json, timeline.svg, roofline.svg and report.html.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from npusmith import pipeline
from npusmith.errors import Level, NpusmithError
from npusmith.report.html import Timed, write_report
from npusmith.report.roofline import roofline
from npusmith.report.split import core_times
from npusmith.report.svg import alone
from npusmith.report.timeline import Lanes
from npusmith.sandbox.folder import temporary_folder
from npusmith.store.folder import new_folder, refuse_foreign
from npusmith.store.record import to_json, write_result
from npusmith.target.chips import Chip
from npusmith.task.composition import read_composition
from npusmith.task.prepared import Prepared
from npusmith.task.program import Around
from npusmith.task.recording import Recording
from npusmith.task.verdict import Verdict
from npusmith.timing.eager import Eager, estimate, pytorch_us
from npusmith.timing.lines import Lines
from npusmith.timing.model import Timing
from npusmith.timing.profile import Profile, make_profile
from npusmith.timing.roof import Roof, beaten, roof
from npusmith.timing.rung import give_rung, time_logs
from npusmith.timing.search_trials import Trial, read_trials
from npusmith.timing.trace import MOST_EVENTS, Written, read_events, write_trace
from npusmith.twin.finding import Finding
from npusmith.twin.orders import Attr
from npusmith.twin.watch import Watch

TRACE, PROFILE, TIMELINE, ROOFLINE = "trace.json", "profile.json", "timeline.svg", "roofline.svg"
_WATCH = Watch(notes=True)  # notes name the places that the advice is about
_DRAWN = 1_000_000  # events that the timeline sees; the trace holds fewer
_FITTED = Path(__file__).with_name("target") / "fitted.json"


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may say about a profile."""

    out: Path
    trace: Path | None = None  # instead of trace.json in `out`
    most_events: int = MOST_EVENTS  # in the trace
    sample: int | None = None  # steps of a core that are recorded; the rest is extrapolated
    seed: int = 0
    watch: Watch = _WATCH
    attrs: Mapping[str, Attr] | None = None
    around: Around | None = None  # commands before and after a program

    def running(self) -> pipeline.RunOptions:
        """Of the run whose log is timed."""
        return pipeline.RunOptions(
            seed=self.seed, watch=self.watch, attrs=self.attrs, around=self.around
        )


@dataclass(frozen=True, slots=True)
class Profiled:
    """`profile` is None when there was nothing to time: not compiled, or it never launched."""

    verdict: Verdict
    profile: Profile | None
    trace: Written | None = None


def profile(
    project: Path,
    task: Path | None,
    chip: Chip,
    tolerance: str,
    progress: pipeline.Progress,
    options: Options,
) -> Profiled:
    """Judge, time, write. Raises what pipeline.run raises, and timing-log."""
    refuse_foreign(options.out)
    with temporary_folder("npusmith-time-") as name:
        work = Path(name)
        recording = Recording(work / "log", options.sample)
        verdict, prepared = pipeline.judge_once(
            project, task, chip, tolerance, progress, work, options.running(), recording
        )
        logs = recording.logs()
        if not logs:
            return Profiled(verdict, None)
        progress.step("time", f"{len(logs)} launch{'es' if len(logs) > 1 else ''}")
        events = work / "events"
        try:
            timings = time_logs(logs, chip, events, _DRAWN)
        except NpusmithError as error:
            if error.code != "timing-damaged" or verdict.correct:
                raise
            return Profiled(verdict, None)  # of a kernel that was ended the log is not whole
        left = pytorch_us(read_composition(project), chip)
        made = _weigh(timings, prepared, chip, verdict, left, read_trials(project))
        give_rung(verdict, timings, left)
        main = max(timings, key=lambda timing: timing.cycles)
        progress.step("report", f"{TRACE}, {TIMELINE}, {ROOFLINE}, report.html")
        with new_folder(options.out) as folder:
            subject = _Subject(project, prepared, chip, verdict)
            return _write(folder, subject, made, main, events, options)


def _weigh(
    timings: list[Timing],
    prepared: Prepared | None,
    chip: Chip,
    verdict: Verdict,
    left: float,
    trials: Sequence[Trial] | None,
) -> Profile:
    limits: Roof | None = None
    eager: Eager | None = None
    if prepared is not None:
        limits, eager = roof(prepared.graph, chip), estimate(prepared.graph, chip)
        said = beaten(limits, sum(timing.kernel_us for timing in timings))
        if said:
            message = "the kernel beats the roof of its task"
            verdict.findings.append(
                Finding(code="roof-beaten", level=Level.WARNING, message=message, seen=said)
            )
    return make_profile(
        timings, chip, roof=limits, eager=eager, findings=verdict.findings,
        model_error=model_error(_FITTED), trials=trials, left_us=left,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Subject:
    """What was judged, against what."""

    project: Path
    prepared: Prepared | None
    chip: Chip
    verdict: Verdict


def _write(
    folder: Path,
    subject: _Subject,
    made: Profile,
    main: Timing,
    events: Path,
    options: Options,
) -> Profiled:
    project, verdict, chip = subject.project, subject.verdict, subject.chip
    source = subject.prepared.task.text if subject.prepared else ""
    lanes, lines = Lanes(main), Lines(main)
    target = options.trace or folder / TRACE
    seen = lines.watch(lanes.watch(read_events(events)))
    written = write_trace(seen, main, target, options.most_events)
    made.lines = lines.shares()
    made.notes += [written.note] if written.note else []
    drawn = Timed(made, lanes.draw(), roofline(made), lanes.data(), tuple(core_times(main, chip)))
    (folder / TIMELINE).write_text(alone(drawn.timeline), encoding="utf-8")
    (folder / ROOFLINE).write_text(alone(drawn.roofline), encoding="utf-8")
    (folder / PROFILE).write_text(to_json(made.model_dump(mode="python")) + "\n", encoding="utf-8")
    write_result(folder, verdict.model_dump(mode="json"))
    write_report(
        folder, verdict, task_source=source, chip=chip,
        timed=drawn, sources=project if project.is_dir() else None,
    )  # fmt: skip
    return Profiled(verdict, made, replace(written, path=options.trace or options.out / TRACE))


def model_error(path: Path) -> str:
    """The model's own error on published measurements, as its calibration left it; "" if none."""
    try:
        errors = json.loads(path.read_text(encoding="utf-8"))["errors"]
        parts = [_error(name.replace("_", " "), row) for name, row in sorted(errors.items())]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    return "The model's own error on published kernel times: " + "; ".join(parts)


def _error(name: str, row: Mapping[str, Any]) -> str:
    return (
        f"{name} part median {float(row['median']):.0%}, mean {float(row['mean']):.0%} "
        f"({int(row['rows'])} rows)"
    )


def no_profile(verdict: Verdict) -> NpusmithError:
    """Why there is nothing to time although the candidate compiled."""
    seen = verdict.findings[0].message if verdict.findings else "no kernel was launched"
    return NpusmithError("timing-log", "the run left no log to time", seen=seen[:200])
