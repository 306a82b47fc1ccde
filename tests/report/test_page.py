"""The page itself: looked at as text, and in a real browser where there is one."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browserlook import browser, console, look, start
from profilecases import Limits, make, tiles

from npusmith.ir.nodes import Program
from npusmith.lang import parse
from npusmith.report.html import Pictures, Timed, make_page, pictures, write_report
from npusmith.report.memory import divide
from npusmith.report.roofline import roofline
from npusmith.report.sources import read_sources
from npusmith.report.split import core_times
from npusmith.report.timeline import Lanes
from npusmith.target.chips import CHIPS
from npusmith.task.verdict import Verdict
from npusmith.timing.eager import Eager
from npusmith.timing.model import Timing
from npusmith.timing.profile import LineShare, make_profile

HOSTILE = '<script>document.title="owned"</script>'
SECTIONS = ("verdict", "trials", "findings", "memory", "cores", "kernel", "task", "provenance")
CHIP = CHIPS["910B2"]
KERNELS = Path(__file__).parents[1] / "kernels"
TASK = f'"""{HOSTILE}"""\nimport torch\n' + "x = 1  # a long line " + "y" * 400


@pytest.fixture
def page(verdict: Verdict, lowered: Program, folder: Path) -> str:
    """A page with every part in it."""
    shown = Pictures((divide(lowered, CHIP),))
    return make_page(
        verdict, read_sources(folder), shown, notes=[f"rows over cores {HOSTILE}"], task_source=TASK
    )


class Reader(HTMLParser):
    """Collects tags, attributes and anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    return reader


def test_nothing_of_a_stranger_becomes_markup(page: str) -> None:
    reader = read(page)
    assert not {"img", "iframe", "link", "object", "base"} & set(reader.tags)
    assert reader.tags.count("script") == 1  # the page's own
    assert not [name for name in reader.names if name.startswith("on") or name == "style"]
    assert page.count(html.escape(HOSTILE, quote=False).replace('"', "&#34;")) >= 6
    assert "\x1b" not in page


def test_every_link_is_an_anchor_of_the_page(page: str) -> None:
    reader = read(page)
    assert reader.links
    assert {link[1:] for link in reader.links} <= set(reader.ids)
    assert all(link.startswith("#") for link in reader.links)
    assert len(reader.ids) == len(set(reader.ids))


def test_a_finding_links_to_its_line_in_the_kernel(page: str) -> None:
    link = re.search(r'<a href="#(f\d+-L9)">/elsewhere/build/op_kernel/softmax_custom.cpp:9', page)
    assert link
    assert f'id="{link[1]}"' in page


def test_all_sections_are_there(page: str) -> None:
    assert set(SECTIONS) <= set(read(page).ids)


def test_the_page_says_what_was_not_measured(page: str) -> None:
    assert "measured on the CPU twin of 910B2" in page
    assert page.count("not checked") == 3
    assert "a device was not used" in page


def test_every_trial_has_its_errors_and_its_seed(page: str, verdict: Verdict) -> None:
    rows = re.findall(r"<tr>\s*<td>.*?</tr>", page.split('id="trials"')[1], re.DOTALL)
    assert len(rows[: len(verdict.trials)]) == len(verdict.trials)
    assert "2.98e-08" in rows[0]
    assert "1.10e-09" in rows[0]
    assert ">7</td>" in rows[0]
    assert "inf" in rows[5]
    assert "1 scalar 3x5x7x11x13x17" in rows[5]


def test_the_report_of_a_project_without_a_tile_program_says_so(
    passing: Verdict, folder: Path
) -> None:
    text = write_report(folder, passing).read_text(encoding="utf-8")
    assert text.count("No tile program") == 2
    assert "The text of the task was not kept" in text


def test_the_report_of_an_error_shows_the_error(passing: Verdict, folder: Path) -> None:
    error = {"code": "internal", "message": HOSTILE, "seen": "", "legal": "a", "hint": "b"}
    passing = passing.model_copy(update={"verdict": "error", "error": error, "trials": []})
    text = write_report(folder, passing).read_text(encoding="utf-8")
    assert "error[internal]" in text
    assert HOSTILE not in text
    assert "No trial was run" in text


# ------------------------------------------------------------------------------------- in a browser


def timed(timing: Timing) -> Timed:
    """The section on time, with two cores that have steps."""
    lanes = Lanes(timing)
    for event in tiles(timing):
        lanes.add(event)
    profile = make_profile(
        [timing],
        CHIP,
        roof=Limits(),
        eager=Eager(chip="910B2", us=26, low_us=20, high_us=40, ops=[]),
    )
    profile.lines = [LineShare(file="op_kernel/softmax_custom.cpp", line=9, unit="V", us=2.0,
                               waited_us=1.0, steps=48)]  # fmt: skip
    cores = core_times(timing, CHIP)
    return Timed(profile, lanes.draw(), roofline(profile), lanes.data(), cores)


@pytest.fixture
def whole(verdict: Verdict, lowered: Program, folder: Path, tmp_path: Path) -> Path:
    """A page with every part in it, and with times."""
    names = ["<img src=x>", "add", "ub_gm", "call"]
    program = parse((KERNELS / "linear_gelu.tile.py").read_text(encoding="utf-8"))
    shapes = {"x": (300, 64), "w": (500, 64), "b": (500,), "y": (300, 500)}
    page = make_page(
        verdict, read_sources(folder), pictures(program, CHIP, shapes),
        notes=[f"rows over cores {HOSTILE}"], task_source=TASK, timed=timed(make(names=names)),
    )  # fmt: skip
    path = tmp_path / "whole.html"
    path.write_text(page, encoding="utf-8")
    return path


# Zooms by the buttons, and looks at what is drawn then.
ZOOM = """(() => {
  const figure = page.querySelector("figure.timeline");
  const [closer] = figure.querySelectorAll("button");
  const count = (what) => figure.querySelectorAll(what).length;
  const seen = () => ({steps: count(".steps rect"), arrows: count(".arrows path"),
    ticks: [...figure.querySelectorAll(".ticks text")].map((node) => node.textContent),
    images: count("img")});
  const before = seen();
  for (let at = 0; at < 3; at++) closer.click();
  const near = seen();
  figure.querySelectorAll("button")[4].click();
  return {before, near, after: seen(), heat: page.querySelectorAll(".l.h4").length,
    shade: getComputedStyle(page.querySelector(".l.h4")).backgroundColor};
})()"""


@browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_in_a_browser_nothing_runs_over_and_every_text_can_be_read(
    whole: Path, tmp_path: Path, dark: bool
) -> None:
    for seen in look(whole, tmp_path, dark, ZOOM):
        assert seen["title"] == "softmax: fail - npusmith"
        assert set(seen["sections"]) == {*SECTIONS, "time", "schedule"}
        assert (seen["scroll"], seen["wide"], seen["flat"]) == (0, [], 0)
        assert seen["pale"] == []
        assert seen["meeting"] == []
        assert seen["lines"] > 30
        assert seen["dark"] is dark
        zoomed = seen["more"]
        assert zoomed["before"] == zoomed["after"]
        assert 0 < zoomed["near"]["steps"] < zoomed["before"]["steps"]
        assert zoomed["near"]["arrows"] > 0
        assert zoomed["near"]["ticks"] != zoomed["before"]["ticks"]
        assert zoomed["near"]["images"] == 0
        assert zoomed["heat"] == 1
        assert zoomed["shade"] != "rgba(0, 0, 0, 0)"  # the policy lets the page's own style through


@browser
def test_in_a_browser_the_page_from_disk_asks_for_nothing_and_runs_no_other_script(
    page: str, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    path.write_text(page.replace("</main>", f"{HOSTILE}</main>"), encoding="utf-8")
    log = tmp_path / "net.json"
    done = start(path.as_uri(), tmp_path / "profile", "--dump-dom", f"--log-net-log={log}")
    assert "<title>softmax: fail - npusmith</title>" in done.stdout
    assert "Content Security Policy" in "".join(console(done))
    assert "127.0.0.1:9" not in log.read_text(errors="replace")
