"""What a profile says, put together from timings made by hand."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npusmith.report.html import Pictures, Timed, make_page
from npusmith.report.roofline import roofline
from npusmith.report.timeline import timeline
from npusmith.target.chips import CHIPS
from npusmith.task.verdict import Rung, Verdict
from npusmith.timing.eager import Eager, OpTime
from npusmith.timing.model import Hinge, PathTime, Timing
from npusmith.timing.profile import Profile, make_profile

CHIP = CHIPS["910B2"]
Make = Callable[..., Timing]


EAGER = Eager(
    chip="910B2", us=26.0, low_us=20.0, high_us=39.0, rows=1,
    ops=[
        OpTime(
            op="aten.add", shape="", dtype="float32", us=26.0, low_us=20.0, high_us=39.0,
            basis="model", source="KernelBench level 1 <b>", rows=1, reach=7.0,
        )
    ],
)  # fmt: skip


def verdict(**more: object) -> Verdict:
    fields: dict[str, object] = {
        "verdict": "pass", "rung": Rung.TIMED, "compiled": True, "correct": True, "task": "add",
        "tolerance": "strict", "chip": "910B2", "task_us": 13.0, "kernel_us": 10.0,
    }  # fmt: skip
    return Verdict.model_validate(fields | more)


def test_a_profile_is_called_an_estimate_and_has_the_ratio_to_eager(
    timing: Timing, limits: Any
) -> None:
    made = make_profile([timing], CHIP, roof=limits, eager=EAGER)
    assert "estimate" in made.headline
    assert made.estimate is True
    assert made.eager is not None
    assert (made.eager.ratio, made.eager.low_ratio, made.eager.high_ratio) == pytest.approx(
        (2.0, 20 / 13, 3.0)
    )
    assert made.roof is not None
    assert made.roof.memory_share == pytest.approx(0.5)
    assert Profile.model_validate_json(made.model_dump_json()) == made


def test_shares_of_a_pipe_add_up_to_the_whole(timing: Timing) -> None:
    for row in make_profile([timing], CHIP).pipes:
        assert row.busy + sum(row.waits.values()) == pytest.approx(1)
        assert list(row.waits.values()) == sorted(row.waits.values(), reverse=True)


def test_only_paths_of_global_memory_have_hits(made: Make) -> None:
    paths = {
        "gm_ub": PathTime(transfers=4, bytes=4000, miss_bytes=1000, busy=1, sizes=[4], unaligned=0),
        "l1_l0a": PathTime(transfers=1, bytes=99, miss_bytes=0, busy=1, sizes=[1], unaligned=0),
        "ub_gm": PathTime(transfers=0, bytes=0, miss_bytes=0, busy=0, sizes=[], unaligned=0),
    }
    rows = make_profile([made(paths=paths)], CHIP).paths
    assert [(row.path, row.hit) for row in rows] == [("gm_ub", 0.75), ("l1_l0a", None)]
    assert rows[0].gbps == pytest.approx(4000 / 10e-6 / 1e9)


def test_several_launches_add_up_and_the_longest_gives_the_details(made: Make) -> None:
    short = made(cycles=1800.0, kernel_us=1.0, task_us=2.0, steps=7)
    profile = make_profile([short, made(), short], CHIP)
    assert (profile.kernel_us, profile.task_us, profile.steps) == (12.0, 17.0, 48 * 192)
    assert len(profile.launches) == 3
    assert "3 launches" in profile.notes[0]


def test_a_deadlock_and_a_kernel_without_traffic_are_noted(made: Make) -> None:
    profile = make_profile([made(finished=False, paths={})], CHIP)
    assert not profile.finished
    assert any("up to the deadlock" in note for note in profile.notes)
    assert any("no copy from or to global memory" in note for note in profile.notes)


def test_an_empty_launch_has_a_profile(made: Make, limits: Any) -> None:
    empty = made(cores=[], paths={}, cycles=0, kernel_us=0, task_us=0, steps=0)
    profile = make_profile([empty], CHIP, roof=limits, eager=EAGER)
    assert profile.eager is None
    assert profile.advice == []
    json.loads(profile.model_dump_json())


def test_the_page_shows_the_time_and_no_script_or_style_of_a_stranger(
    timing: Timing, limits: Any, made: Make
) -> None:
    profile = make_profile(
        [made(places=[("<script>x</script>", 1, "<b>")], hinges=[Hinge(name="gm", share=0.6)])],
        CHIP, roof=limits, eager=EAGER, model_error="error of the model: 9 %",
    )  # fmt: skip
    page = make_page(
        verdict(), (), Pictures(), timed=Timed(profile, timeline([], timing), roofline(profile))
    )
    assert '<section id="time">' in page
    assert page.count('<svg class="picture"') == 2
    assert "an estimate of the timing model" in page
    assert "KernelBench level 1 &lt;b&gt;" in page
    assert page.count("<script") == 1  # the page's own
    assert " style=" not in page
    assert "svg.picture .t-load" in page


def test_a_page_without_times_is_as_it_was(timing: Timing) -> None:
    page = make_page(verdict(task_us=None, kernel_us=None), (), Pictures())
    assert 'id="time"' not in page
    assert "estimate" not in page.split("<body>")[1]


def test_the_screen_says_estimate_roofs_pipes_paths_advice_and_eager(
    timing: Timing, limits: Any
) -> None:
    from npusmith.cli.profile import show_profile
    from npusmith.cli.screen import Screen
    from npusmith.profiling import Profiled
    from npusmith.timing.trace import Written

    profile = make_profile([timing], CHIP, roof=limits, eager=EAGER)
    stream = io.StringIO()
    done = Profiled(verdict(), profile, Written(Path("out/trace.json"), 5, 0))
    show_profile(Screen(stream), done, Path("out"))
    text = stream.getvalue()
    for words in (
        "13.00 us (kernel 10.00 us), an estimate", "timed on the twin",
        "memory 5 us (50% reached; 2.5 us when L2",
        "26.00 us (20.00 to 39.00), an estimate",
        "rests on 1 published row, up to 7 times away in work: too few for a headline figure",
        "MTE2", "60.0%", "gm_ub", "25,165,824", "0%", "1. ", "source: ", "out/trace.json",
    ):  # fmt: skip
        assert words in text
