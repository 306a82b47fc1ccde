"""The page itself: looked at as text, and in a real browser where there is one."""

from __future__ import annotations

import html
import http.server
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from npusmith.ir.nodes import Program
from npusmith.report.html import Pictures, make_page, write_report
from npusmith.report.memory import divide
from npusmith.report.sources import read_sources
from npusmith.report.split import split
from npusmith.target.chips import CHIPS
from npusmith.task.verdict import Verdict

HOSTILE = '<script>document.title="owned"</script>'
SECTIONS = ("verdict", "trials", "findings", "memory", "cores", "kernel", "task", "provenance")
CHIP = CHIPS["910B2"]


@pytest.fixture
def page(verdict: Verdict, lowered: Program, folder: Path) -> str:
    """A page with every part in it."""
    shown = Pictures(
        (divide(lowered, CHIP),),
        split(47, {"rows": 1024, "cols": 1024, "rows_per_core": 22}, CHIP.vector_cores),
    )
    task = f'"""{HOSTILE}"""\nimport torch\n' + "x = 1  # a long line " + "y" * 400
    return make_page(
        verdict, read_sources(folder), shown, notes=[f"rows over cores {HOSTILE}"], task_source=task
    )


class Reader(HTMLParser):
    """Collects tags, attributes and anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    return reader


def test_nothing_of_a_stranger_becomes_markup(page: str) -> None:
    reader = read(page)
    assert not {"script", "img", "iframe", "link", "object", "base"} & reader.tags
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

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

# Runs in a frame of its own beside the report, which itself holds no script.
PROBE = """<!DOCTYPE html><meta charset=utf-8><body><pre id=out>waiting</pre><script>
const frame = document.createElement("iframe");
frame.width = WIDTH; frame.height = 900; frame.style.border = 0;
frame.onload = () => {
  const page = frame.contentDocument, root = page.documentElement;
  const inside = (node) => node.closest(".scroll, .code");
  const wide = [...page.querySelectorAll("body *")].filter((node) => !inside(node.parentElement)
    && node.getBoundingClientRect().right > root.clientWidth + 1);
  document.getElementById("out").textContent = JSON.stringify({
    title: page.title,
    sections: [...page.querySelectorAll("section")].map((node) => node.id),
    scroll: root.scrollWidth - root.clientWidth,
    wide: wide.map((node) => node.tagName + "." + node.className),
    rects: page.querySelectorAll("svg rect").length,
    styled: getComputedStyle(page.querySelector("section")).borderRadius,
    heights: [...page.querySelectorAll("svg")].map((node) => node.clientHeight),
    lines: page.querySelectorAll(".l").length,
    flat: [...page.querySelectorAll("details[open] .l")].filter((n) => n.clientHeight < 8).length,
  });
};
frame.src = "report.html"; document.body.append(frame);
</script>"""


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory, page: str) -> Iterator[tuple[str, list[str]]]:
    """The page on a server of this machine, and the list of what was asked of it."""
    root = tmp_path_factory.mktemp("site")
    (root / "report.html").write_text(page, encoding="utf-8")
    for width in (360, 1200):
        probe = PROBE.replace("WIDTH", str(width))
        (root / f"probe{width}.html").write_text(probe, encoding="utf-8")
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(root))  # type: ignore[arg-type]

        def log_message(self, format: str, *args: object) -> None:
            asked.append(self.path)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def look(url: str, profile: Path, *more: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM
    return subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={profile}", "--enable-logging=stderr", "--v=0",
            "--virtual-time-budget=5000", "--window-size=1300,1000", *more, url,
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip


def console(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


@browser
@pytest.mark.parametrize("width", [360, 1200], ids=["phone", "desk"])
def test_in_a_browser_all_is_there_and_nothing_runs_over_the_edge(
    site: tuple[str, list[str]], tmp_path: Path, width: int
) -> None:
    url, asked = site
    done = look(f"{url}/probe{width}.html", tmp_path / "profile", "--dump-dom")
    found = re.search(r"<pre id=\"?out\"?>(.*?)</pre>", done.stdout, re.DOTALL)
    assert found, done.stdout[:500]
    seen = json.loads(html.unescape(found[1]))
    assert seen["title"] == "softmax: fail - npusmith"
    assert tuple(seen["sections"]) == SECTIONS
    assert seen["scroll"] <= 0
    assert seen["wide"] == []
    assert seen["rects"] == 9 + 48
    assert min(seen["heights"]) >= 25
    assert seen["styled"] == "10px"  # the policy lets the page's own style through
    assert seen["lines"] > 30
    assert seen["flat"] == 0
    assert console(done) == []
    assert {path for path in asked if "favicon" not in path} == {
        f"/probe{width}.html",
        "/report.html",
    }


@browser
def test_in_a_browser_the_page_from_disk_asks_for_nothing(page: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    shot = tmp_path / "shot.png"
    log = tmp_path / "net.json"
    done = look(path.as_uri(), tmp_path / "profile", f"--screenshot={shot}", f"--log-net-log={log}")
    assert console(done) == []
    assert shot.stat().st_size > 20_000
    assert "127.0.0.1:9" not in log.read_text(errors="replace")


@browser
def test_in_a_browser_the_policy_stops_a_script_that_slipped_through(
    page: str, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    path.write_text(page.replace("</main>", f"{HOSTILE}</main>"), encoding="utf-8")
    done = look(path.as_uri(), tmp_path / "profile", "--dump-dom")
    assert "<title>softmax: fail - npusmith</title>" in done.stdout
    assert "Content Security Policy" in "".join(console(done))
