"""A verdict for a person and for --json. "Correct" never stands without the rung reached."""

from __future__ import annotations

from pathlib import Path

from npusmith.cli.exits import exit_for
from npusmith.cli.reply import Reply
from npusmith.cli.screen import Screen
from npusmith.errors import CODES, Level
from npusmith.report.ladder import State, Step, answer, document, ladder, reached, served
from npusmith.report.text import REPORT, figure
from npusmith.task.verdict import REFUSED, Doubt, Intermediate, Trial, Verdict, unjudged
from npusmith.twin.finding import Finding, Printed, printed_by_core

_STYLES = {"pass": "bold green", "ran": "bold yellow", "fail": "bold red", "error": "bold red"}
_MARKS = {State.REACHED: "[x]", State.FAILED: "[!]", State.UNCHECKED: "[ ]"}
_LEVELS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "cyan"}
_LINES = 8  # of what a program printed
_PRINTED = 40  # of what a core printed
_MOST = 20  # findings shown; result.json holds all


def verdict_reply(verdict: Verdict) -> Reply:
    """The exit code, the document and the text of a verdict."""
    code = exit_for(verdict.verdict, verdict.error)
    return Reply(code, document(verdict), lambda screen: show_verdict(screen, verdict))


def show_verdict(screen: Screen, verdict: Verdict) -> None:
    """The compact answer: what was judged, how far it got, figures, findings, where it lies."""
    screen.line(verdict.verdict.upper(), _STYLES.get(verdict.verdict, "bold"))
    if verdict.task:
        screen.pair("task", verdict.task)
    rule = f", tolerance {verdict.tolerance}" if verdict.tolerance else ""
    screen.pair("judged on", f"the CPU twin of {verdict.chip}{rule}")
    screen.pair("correct", f"{answer(verdict)}: {reached(verdict)}")
    _show_own_sizes(screen, verdict)
    if verdict.task_us is not None:
        times = f"{verdict.task_us:.2f} us (kernel {verdict.kernel_us:.2f} us)"
        screen.pair("time", f"{times}, an estimate of the timing model, first set of inputs")
    _show_composition(screen, verdict)
    _show_served(screen, verdict)
    _show_refused(screen, verdict.trials)
    said = unjudged(verdict.trials)
    if said:
        screen.pair("shapes", said, "yellow")
    _show_notes(screen, [note for note in _notes(verdict) if note != said])
    _show_schedule(screen, verdict)
    _show_device(screen, verdict)
    for step in ladder(verdict):
        _show_step(screen, step)
    _show_error(screen, verdict)
    _show_printed(screen, "the program", str(verdict.provenance.get("printed", "")))
    for said in verdict.provenance.get("commands", ()):
        _show_printed(screen, said["command"], said["printed"])
    _show_prints(screen, verdict.prints)
    _show_trials(screen, verdict.trials)
    _show_intermediates(screen, verdict.intermediates)
    _show_weak(screen, verdict.weak_task)
    _show_doubts(screen, verdict.doubts)
    _show_findings(screen, verdict.findings)
    _show_paths(screen, verdict)


def _show_own_sizes(screen: Screen, verdict: Verdict) -> None:
    """What fails elsewhere alone may do for whoever has these sizes."""
    own = [trial for trial in verdict.trials if trial.kind == "random"]
    if verdict.correct or not own or not all(trial.passed for trial in own):
        return
    wrong = [
        item for item in verdict.trials if not item.passed and not item.skipped and item.message
    ]
    named = f"; {wrong[0].name} is not" if wrong else ""
    screen.pair("own sizes", f"right in {len(own)} random sets{named}", "yellow")


def _show_composition(screen: Screen, verdict: Verdict) -> None:
    """What of a module is a kernel, and what PyTorch computes."""
    if (found := verdict.provenance.get("composition")) is None:
        return
    operators, left = found["operators"], found["left"]
    screen.pair("operators", f"{operators}, called by model_new.py")
    if left:
        count = sum(left.values())
        calls = ", ".join(f"{op} x {many}" if many > 1 else op for op, many in left.items())
        said = f"computes {count} call{'s' if count > 1 else ''} between them: {calls}"
        screen.pair("PyTorch", said, "yellow")


def _show_served(screen: Screen, verdict: Verdict) -> None:
    """Sizes that are all that the operator serves: a pass says nothing of others."""
    if verdict.provenance.get("serves"):
        screen.pair("serves", served(verdict), "yellow")


def _show_refused(screen: Screen, trials: list[Trial]) -> None:
    """Sizes that the model takes and the operator does not: it is right where it serves."""
    refused = [trial for trial in trials if trial.result == REFUSED]
    if not refused:
        return
    tried = [trial for trial in trials if trial.kind == "shape" and trial.result != "skipped"]
    said = f"{len(refused)} of {len(tried)} sets of other shapes, by its own conditions"
    screen.pair("refused", said, "yellow")
    for why in dict.fromkeys(trial.skipped for trial in refused):
        screen.line(f"    {why}", "yellow")


def _notes(verdict: Verdict) -> list[str]:
    return [str(note) for note in verdict.provenance.get("task_notes", ())]


def _show_notes(screen: Screen, notes: list[str]) -> None:
    """What the references say of the task: why a size is fixed, what was left out."""
    for note in notes[:_LINES]:
        screen.pair("note", note)
    if len(notes) > _LINES:
        screen.pair("note", f"{len(notes) - _LINES} more in result.json")


def _show_schedule(screen: Screen, verdict: Verdict) -> None:
    if (found := verdict.provenance.get("schedule")) is not None:
        from npusmith.plan.schedule import SavedSchedule

        schedule = SavedSchedule.model_validate(found).schedule
        rest = len(schedule.kernels) - _LINES
        first = schedule.model_copy(update={"kernels": schedule.kernels[:_LINES]})
        screen.pair("schedule", f"{first}; {rest} more in result.json" if rest > 0 else str(first))


def _show_device(screen: Screen, verdict: Verdict) -> None:
    held = verdict.device
    if held is None:
        return
    passed = sum(trial.passed for trial in held.trials)
    said = f"{passed} of {len(held.trials)} sets of inputs right"
    screen.pair("device", f"{held.device}, built with {held.toolkit} ({held.route}): {said}")
    if held.median_us is not None:
        screen.pair("measured", f"{held.median_us:.2f} us, median of {len(held.task_us)} calls")
    for trial in [trial for trial in held.trials if not trial.passed][:_LINES]:
        screen.line(f"    on the device, {trial.name}: {trial.message}", "red")
    for note in held.notes:
        screen.line(f"    {note}", "dim")


def _show_step(screen: Screen, step: Step) -> None:
    style = {State.REACHED: "green", State.FAILED: "red"}.get(step.state, "dim")
    note = {State.FAILED: " (stopped here)", State.UNCHECKED: ": not checked"}.get(step.state, "")
    screen.line(f"    {_MARKS[step.state]} {step.rung.value}{note}", style)


def _show_error(screen: Screen, verdict: Verdict) -> None:
    if verdict.error is None:
        return
    error = verdict.error
    row = CODES[str(error["code"])]
    where = f"{error.get('file', '')}:{error.get('line', 0)}".removesuffix(":0")
    screen.line()
    screen.line(f"error[{row.name}]: {error.get('message', '')}", "red")
    spot = ": ".join(str(part) for part in (where, error.get("seen", "")) if part)
    if spot:
        screen.line(f"  {spot}")
    legal, hint = error.get("legal") or row.legal, error.get("hint") or row.hint
    screen.line(f"  legal: {legal}      try: {hint}")


def _show_printed(screen: Screen, who: str, printed: str) -> None:
    lines = printed.strip().splitlines()
    if lines:
        screen.line()
        screen.line(f"{who} printed:" if len(lines) <= _LINES else f"{who} printed at last:")
    for line in lines[-_LINES:]:
        screen.line(f"  {line[:200]}")


def _show_prints(screen: Screen, prints: list[Printed]) -> None:
    """What the kernel printed, core by core."""
    for core, text in printed_by_core(prints).items():
        lines = text.rstrip().splitlines()
        screen.line()
        screen.line(f"core {core} printed:" if core is not None else "of all cores:")
        for line in lines[:_PRINTED]:
            screen.line(f"  {line[:200]}")
        if len(lines) > _PRINTED:
            screen.line(f"  ... {len(lines) - _PRINTED} more lines, with --json")


def _show_trials(screen: Screen, trials: list[Trial]) -> None:
    if not trials:
        return
    screen.line()
    heads = ("trial", "result", "max abs", "mean abs", "max rel", "outside", "shapes")
    screen.table(heads, [_trial_row(trial) for trial in trials], most=3)
    for trial in trials:
        if trial.message and not trial.passed:
            screen.line(f"  {trial.name}: {trial.message}", "red")
    reasons: dict[str, list[str]] = {}
    for trial in trials:
        if trial.result == "skipped":
            reasons.setdefault(trial.skipped, []).append(trial.name)
    for why, names in reasons.items():
        screen.line(f"  skipped: {', '.join(names)}: {why}"[:300], "dim")
    # where the first one is wrong: others have the same cause more often than not
    first = next((trial for trial in trials if trial.wrong and not trial.passed), None)
    for text in first.wrong if first else ():
        screen.line(f"    {text}"[:200])
    if first and first.likely:
        screen.line(f"    likely: {first.likely}"[:200], "dim")


def _trial_row(trial: Trial) -> tuple[str, ...]:
    return (
        trial.name,
        trial.result,
        figure(trial.max_abs_error),
        figure(trial.mean_abs_error),
        figure(trial.max_rel_error),
        f"{trial.mismatched}/{trial.elements}",
        " ".join("x".join(map(str, shape)) or "scalar" for shape in trial.shapes),
    )


def _show_intermediates(screen: Screen, rows: list[Intermediate]) -> None:
    """What passes between several kernels, and what is wrong of it in their order."""
    if not rows:
        return
    right = sum(row.passed for row in rows)
    screen.line()
    sets = f"{rows[0].sets} sets of inputs" if rows[0].sets != 1 else "one set of inputs"
    screen.line(f"between kernels: {right} of {len(rows)} values are as in PyTorch ({sets})")
    for row in [row for row in rows if not row.passed][:_LINES]:
        screen.line(f"  kernel {row.kernel} stores {row.value} wrongly: {row.message}", "red")


def _show_weak(screen: Screen, weak: list[str]) -> None:
    for what in weak:
        screen.line()
        screen.line(f"weak task: {what} would pass this task's check too", "yellow")


def _show_doubts(screen: Screen, doubts: list[Doubt]) -> None:
    if not doubts:
        return
    screen.line()
    screen.line("not documented, so the twin's behaviour may differ from the chip's:", "yellow")
    for doubt in doubts:
        note = f": {doubt.note}" if doubt.note else ""
        screen.line(f"  {doubt.api} ({doubt.known.value}){note}")


def _show_findings(screen: Screen, findings: list[Finding]) -> None:
    for finding in findings[:_MOST]:
        screen.line()
        screen.line(finding.render(), _LEVELS[finding.level])
    if len(findings) > _MOST:
        screen.line(f"... and {len(findings) - _MOST} more in result.json")


def _show_paths(screen: Screen, verdict: Verdict) -> None:
    report = Path(verdict.project, REPORT)
    written = (
        ("project", verdict.project),
        ("program", verdict.program),
        ("report", str(report) if verdict.program and report.is_file() else ""),
    )
    if any(path for _, path in written):
        screen.line()
    for label, path in written:
        if path:
            screen.pair(label, path)
