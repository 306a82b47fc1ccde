"""What a person reads of a verdict, and what a terminal is spared."""

from __future__ import annotations

import io
import json

import pytest

from npusmith.cli.exits import Exit, exit_for
from npusmith.cli.main import call
from npusmith.cli.screen import Screen
from npusmith.cli.steps import Steps
from npusmith.cli.verdict import show_verdict, verdict_reply
from npusmith.errors import Level
from npusmith.store.record import to_json
from npusmith.task.verdict import Rung, Trial, Verdict
from npusmith.twin.finding import Finding

HOSTILE = "[bold red]\x1b[2J\x1b]0;owned\x07\u202e\x9b2J\u061c\u2028"


def make(rung: Rung = Rung.VALUES, verdict: str = "pass", **more: object) -> Verdict:
    fields: dict[str, object] = {
        "verdict": verdict, "rung": rung, "compiled": True, "correct": verdict == "pass",
        "task": "softmax", "tolerance": "strict", "chip": "910B2",
    }  # fmt: skip
    return Verdict.model_validate(fields | more)


def trial(name: str, passed: bool = True, **more: object) -> Trial:
    fields: dict[str, object] = {
        "name": name, "kind": "random", "seed": 0, "shapes": [[4, 1000], []], "passed": passed,
        "max_abs_error": 1.5e-7, "elements": 4000,
    }  # fmt: skip
    return Trial.model_validate(fields | more)


def text_of(verdict: Verdict, monkeypatch: pytest.MonkeyPatch, width: int = 100) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    stream = io.StringIO()
    show_verdict(Screen(stream), verdict)
    return stream.getvalue()


def test_a_table_in_a_pipe_is_as_wide_as_what_stands_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    stream = io.StringIO()
    Screen(stream).table(("name", "why"), [("x" * 60, "y" * 60)], most=1)
    lines = stream.getvalue().splitlines()
    assert lines[1:] == [f"  {'x' * 60}  {'y' * 60}"]


def test_correct_never_stands_without_the_rung(monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(make(), monkeypatch)
    line = next(line for line in text.splitlines() if "correct" in line)
    assert "yes: values right on the twin; a device was not used" in line


def test_notes_on_the_task_have_a_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = [f"size {n} is fixed: the reference raises" for n in range(10)]
    text = text_of(make(provenance={"task_notes": [*notes, HOSTILE]}), monkeypatch)
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("note ")]
    assert lines[0].endswith(notes[0]) and lines[7].endswith(notes[7])
    assert lines[8].endswith("3 more in result.json") and len(lines) == 9
    assert "\x1b" not in text_of(make(provenance={"task_notes": [HOSTILE]}), monkeypatch)


def test_a_pass_says_that_no_other_shape_was_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "the reference raises: mat1 and mat2 shapes cannot be multiplied"
    skipped = [trial(f"shape {n}x24", False, kind="shape", skipped=why) for n in (1, 23)]
    said = "no other shape was judged: the reference refuses all 2\n"
    assert said in text_of(make(trials=[trial("random 0"), *skipped]), monkeypatch)
    others = [*skipped, trial("branch 64x21", kind="shape")]
    said = "no planned set of other shapes was judged: the reference refuses all 2\n"
    assert said in text_of(make(trials=others), monkeypatch)
    judged = [*skipped, trial("shape 54x21", kind="shape")]
    assert "was judged:" not in text_of(make(trials=judged), monkeypatch)


def test_what_nobody_checked_is_called_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(make(), monkeypatch)
    for rung in (Rung.RACE_FREE, Rung.TIMED, Rung.DEVICE):
        assert f"[ ] {rung.value}: not checked" in text
    for rung in (Rung.PARSED, Rung.LEGAL, Rung.COMPILED, Rung.RAN, Rung.VALUES):
        assert f"[x] {rung.value}\n" in text


def test_a_failed_candidate_shows_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(make(Rung.RAN, "fail"), monkeypatch)
    assert "[!] values right on the twin (stopped here)" in text
    assert "correct    no: ran on the twin" in text


def test_a_broken_rule_with_right_values_is_no_failure_of_the_race_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "stopped here" not in text_of(make(Rung.VALUES, "fail"), monkeypatch)


def test_figures_of_every_trial_are_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = [
        trial("random 0"),
        trial(
            "zeros", False, max_abs_error=float("inf"), mismatched=9, message="element 3: 1, not 2"
        ),
        trial("nan", False, skipped="the reference raises", max_abs_error=None),
    ]
    text = text_of(make(Rung.RAN, "fail", trials=trials), monkeypatch)
    rows = {line.split("  ")[1].strip(): line for line in text.splitlines() if "/4000" in line}
    assert "pass" in rows["random 0"]
    assert "1.50e-07" in rows["random 0"]
    assert "4x1000 scalar" in rows["random 0"]
    assert "FAIL" in rows["zeros"]
    assert "inf" in rows["zeros"]
    assert "9/4000" in rows["zeros"]
    assert "skipped" in rows["nan"]
    assert "zeros: element 3: 1, not 2" in text


def test_the_first_wrong_set_says_where_it_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        trial("zeros"),
        trial("random 0", False, message="differs", wrong=["at [0, 7] 1 where 2 is expected",
              "wrong: the last 4 elements"], likely="a tail: the count of the last tile"),
        trial("random 1", False, message="differs", wrong=["at [1, 7] 1 where 3 is expected"]),
    ]  # fmt: skip
    text = text_of(make(verdict="fail", trials=rows), monkeypatch)
    assert "at [0, 7] 1 where 2 is expected" in text and "wrong: the last 4 elements" in text
    assert "likely: a tail: the count of the last tile" in text
    assert "[1, 7]" not in text


def test_a_weak_task_is_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(make(weak_task=["returning zeros"]), monkeypatch)
    assert "weak task: returning zeros would pass this task's check too" in text


def test_findings_say_place_what_is_legal_and_what_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    finding = Finding(
        code="chip-unknown", message="bad copy", file="k.cpp", line=41, core=2, step=3
    )
    text = text_of(make(Rung.RAN, "fail", findings=[finding]), monkeypatch)
    assert "error[chip-unknown]: bad copy" in text
    assert "k.cpp:41, core 2, step 3" in text
    assert "legal: " in text
    assert "try: " in text


def test_many_findings_are_cut_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    finding = Finding(code="chip-unknown", message="bad", level=Level.NOTE)
    text = text_of(make(findings=[finding] * 25), monkeypatch)
    assert "... and 5 more in result.json" in text


def test_text_of_strangers_reaches_the_terminal_as_text_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    finding = Finding(code="chip-unknown", message=HOSTILE, seen=HOSTILE)
    verdict = make(
        Rung.RAN, "fail", task=HOSTILE, findings=[finding], weak_task=[HOSTILE], project=HOSTILE,
        trials=[trial(HOSTILE, False, message=HOSTILE)],
        error={"code": "internal", "message": HOSTILE, "seen": HOSTILE},
    )  # fmt: skip
    text = text_of(verdict, monkeypatch)
    assert "[bold red]" in text
    assert not {"\x1b", "\x07", "\u202e"} & set(text)


@pytest.mark.parametrize("width", [32, 48, 64])
def test_a_narrow_terminal_gets_name_result_and_largest_error(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = text_of(make(trials=[trial("random 0")]), monkeypatch, width)
    assert "max abs" in text.replace("\n", " ")
    assert "mean abs" not in text


def test_a_long_path_stays_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/very/long/path/" * 12
    assert path in text_of(make(project=path), monkeypatch, 40)


def test_the_document_has_the_verdict_and_the_ladder() -> None:
    data = verdict_reply(make(trials=[trial("random 0")])).data
    wanted = {"verdict", "compiled", "correct", "trials", "max_abs_error", "findings", "project"}
    assert wanted <= set(data)
    rungs = data["rungs"]
    assert isinstance(rungs, dict)
    assert rungs["values right on the twin"] == "reached"
    assert rungs["right on a device"] == "not checked"


@pytest.mark.parametrize(
    ("verdict", "error", "code"),
    [
        ("pass", None, Exit.PASS),
        ("fail", None, Exit.FAILED),
        ("fail", {"code": "task-syntax"}, Exit.TASK),
        ("error", {"code": "compiler-missing"}, Exit.ENVIRONMENT),
        ("error", {"code": "disk-full"}, Exit.ENVIRONMENT),
        ("error", {"code": "interrupted"}, Exit.INTERRUPTED),
    ],
)
def test_the_exit_code_follows_the_error_or_else_the_verdict(
    verdict: str, error: dict[str, object] | None, code: Exit
) -> None:
    assert exit_for(verdict, error) is code


def test_progress_names_each_step_once_and_where_it_stopped() -> None:
    stream = io.StringIO()
    with pytest.raises(KeyError), Steps(Screen(stream)) as steps:
        steps.step("read", "a.py")
        steps.step("judge", HOSTILE + "\nover lines")
        raise KeyError
    lines = stream.getvalue().splitlines()
    assert [line.split(" s  ")[1][:10].strip() for line in lines] == ["read  a.py", "judge  [bo"]
    assert lines[1].endswith("(stopped)")
    assert "\x1b" not in stream.getvalue()


def test_no_way_to_a_terminal_lets_strangers_text_command_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """People, --json, and the traceback of a defect: each has its own way out."""

    def job(steps: Steps) -> object:
        raise RuntimeError(HOSTILE)

    monkeypatch.setattr("npusmith.cli.main._parse", lambda args: (job, ()))
    for args in ((), ("--json",)):
        assert call(args) == Exit.ENVIRONMENT
        said = "".join(capsys.readouterr())
        assert "owned" in said and "RuntimeError" in said
        assert not [mark for mark in "\x1b\x07\x9b\u202e\u061c\u2028" if mark in said]
    assert json.loads(to_json({"a": HOSTILE})) == {"a": HOSTILE}
