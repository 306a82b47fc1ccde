"""The two pictures: well-formed, small, right in what they show, and harmless."""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from npusmith.report.roofline import roofline
from npusmith.report.svg import STYLE, alone, short, ticks
from npusmith.report.timeline import choose, timeline
from npusmith.target.chips import CHIPS
from npusmith.timing.eager import Eager
from npusmith.timing.model import Timing
from npusmith.timing.profile import Profile, make_profile
from npusmith.timing.trace import Event

Make = Callable[..., Timing]
Steps = Callable[..., Iterator[Event]]
SVG = "{http://www.w3.org/2000/svg}"


def boxes(picture: str, css: str) -> list[xml.Element]:
    root = xml.fromstring(picture)
    return [item for item in root.iter(f"{SVG}rect") if item.get("class") == css]


def words(picture: str) -> list[str]:
    return [item.text or "" for item in xml.fromstring(picture).iter(f"{SVG}text")]


def test_ten_steps_are_drawn_one_by_one_at_their_places(made: Make) -> None:
    timing = made(cores=made().cores[:1], cycles=1000.0, kernel_us=1000 / 1800)
    events = [Event(0, 1, 100.0 * at, 100 * at + 50, 1, 1, -1, 0) for at in range(10)]
    picture = timeline(events, timing)
    drawn = boxes(picture, "t-vector")
    # the legend's box is the last
    assert [float(box.get("x", "")) for box in drawn[:-1]] == pytest.approx(
        [96 + 88 * at for at in range(10)]
    )
    assert all(float(box.get("width", "")) == pytest.approx(44) for box in drawn[:-1])
    assert drawn[0].find(f"{SVG}title").text == "add, Add, add.cpp:52: 0.0278 us"  # type: ignore[union-attr]


def test_a_wait_stands_before_its_step_in_the_colour_of_its_reason(made: Make) -> None:
    timing = made(cores=made().cores[:1], cycles=1000.0)
    picture = timeline([Event(0, 1, 500, 600, 1, 1, 4, 250)], timing)
    wait = boxes(picture, "t-wait")[0]
    assert float(wait.get("x", "")) == pytest.approx(96 + 880 / 4)
    assert float(wait.get("width", "")) == pytest.approx(220)
    for reason, css in ((7, "t-issue"), (8, "t-queue"), (9, "t-memory"), (10, "t-cores")):
        assert boxes(timeline([Event(0, 1, 500, 600, 1, 1, reason, 250)], timing), css)


def test_a_hundred_thousand_steps_make_a_picture_of_sane_size(made: Make) -> None:
    timing = made(cores=made().cores[:1])
    step = timing.cycles / 100_000
    events = (Event(0, 1, at * step, (at + 0.5) * step, 1, 1, -1, 0) for at in range(100_000))
    picture = timeline(events, timing)
    assert len(picture) < 60_000
    drawn = boxes(picture, "t-vector")[:-1]
    # half of the time is busy: columns of half height over the whole width
    assert sum(float(box.get("width", "")) for box in drawn) == pytest.approx(880, rel=0.02)
    area = sum(float(box.get("width", "")) * float(box.get("height", "")) for box in drawn)
    assert area == pytest.approx(880 * 20 / 2, rel=0.05)


def test_first_slowest_and_last_core_have_lanes(made: Make) -> None:
    cores = [core.model_copy(update={"end": 9000.0}) for core in made().cores]
    cores[7] = cores[7].model_copy(update={"end": 18_000.0})
    timing = made(cores=cores)
    assert [core.number for core in choose(timing)] == [0, 14, 94]
    shown = words(timeline([], timing))
    assert [name for name in shown if name.startswith("AIV")] == ["AIV 0", "AIV 7", "AIV 47"]


def test_a_deadlock_and_a_cap_are_said_in_the_picture(made: Make) -> None:
    head = words(timeline([], made(finished=False, events_dropped=5)))[0]
    assert "up to a deadlock" in head
    assert "drawn up to" in head
    assert words(timeline([], made()))[0].startswith("Estimate for 910B2: 10 us")


def test_a_launch_without_work_has_a_picture(made: Make) -> None:
    picture = timeline([], made(cores=[], cycles=0, kernel_us=0, steps=0, paths={}))
    assert "no core" in picture
    xml.fromstring(picture)


def test_text_of_strangers_is_escaped(made: Make) -> None:
    timing = made(
        cores=made().cores[:1], names=["<script>alert(1)</script>"], places=[("<b>&.cpp", 1, '">')]
    )
    picture = timeline([Event(0, 1, 0, 900, 0, 0, -1, 0)], timing)
    assert "<script" not in picture
    assert "&lt;script" in picture


def test_colours_are_classes_of_the_style_sheet_and_no_attribute_holds_style(
    timing: Timing, steps: Steps
) -> None:
    picture = timeline(steps(timing), timing)
    assert not re.search(r"\s(style|fill|stroke|on\w+|href)=", picture)
    style = STYLE.read_text()
    for css in set(re.findall(r'class="(t-\w+|lane|grid|page|mark|roof)"', picture)):
        assert f".{css} " in style
    whole = alone(picture)
    assert style in whole
    assert "prefers-color-scheme: dark" in whole
    xml.fromstring(whole)


EAGER = Eager(chip="910B2", us=26.0, low_us=20.0, high_us=40.0, ops=[])


def profile(timing: Timing, limits: Any = None, eager: Any = None) -> Profile:
    return make_profile([timing], CHIPS["910B2"], roof=limits, eager=eager)


def test_the_kernel_stands_below_the_roof_at_the_bytes_that_it_moves(
    timing: Timing, limits: Any
) -> None:
    picture = roofline(profile(timing, limits, EAGER))
    root = xml.fromstring(picture)
    points = {css.get("class"): css for css in root.iter(f"{SVG}circle")}
    best, here = points["t-store"], points["t-load"]
    assert float(here.get("cy", "")) > float(best.get("cy", ""))  # lower in the picture
    assert float(here.get("cx", "")) == pytest.approx(float(best.get("cx", "")), abs=0.1)
    limits.gm_bytes /= 10
    again = xml.fromstring(roofline(profile(timing, limits)))
    points = {css.get("class"): css for css in again.iter(f"{SVG}circle")}
    assert float(points["t-load"].get("cx", "")) < float(points["t-store"].get("cx", ""))


def test_without_arithmetic_or_traffic_times_are_bars(made: Make, limits: Any) -> None:
    assert "PyTorch eager" in words(roofline(profile(made(), None, EAGER)))
    limits.vector_ops = {}
    assert "memory roof" in words(roofline(profile(made(), limits)))
    limits.vector_ops, limits.gm_bytes, limits.memory_us = {"float32": 1.0}, 0.0, 0.0
    xml.fromstring(roofline(profile(made(paths={}), limits)))


def test_ticks_are_round_and_at_most_eight_steps() -> None:
    assert ticks(10.0) == [0, 2, 4, 6, 8, 10]
    for top in (0.003, 1.0, 7.7, 99.0, 12345.0):
        assert 2 < len(ticks(top)) <= 9
        assert ticks(top)[-1] <= top * 1.0000001
    assert ticks(0.0) == ticks(float("inf")) == [0.0]
    assert [short(value) for value in (0, 0.0123, 12.5, 1234.5)] == ["0", "0.0123", "12.5", "1,234"]
