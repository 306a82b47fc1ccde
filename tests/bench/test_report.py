"""The report of a run: page, tables, audit, comparison, export, and the two commands."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import shutil
import sqlite3
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browserlook import browser, console, look, start

from npusmith.bench import export
from npusmith.bench.archive import open_run
from npusmith.bench.audit import audit
from npusmith.bench.compare import compare
from npusmith.bench.model import Record, Span
from npusmith.bench.plan import Plan
from npusmith.bench.pool import LocalPool
from npusmith.bench.published import PUBLISHED, published
from npusmith.bench.report import page as pages
from npusmith.bench.report.lanes import draw
from npusmith.bench.report.plots import WIDTH, bars, histogram, speed_curve
from npusmith.bench.runner import run
from npusmith.bench.suites import NAMES
from npusmith.errors import NpusmithError
from npusmith.store.database import FILE

HOSTILE = '<script>document.title="owned"</script><img src=x onerror=alert(1)>'


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of seven tasks with every kind of outcome."""
    root = tmp_path_factory.mktemp("suite")
    words = {
        "add": "pass\npass b", "div": "wrong\npass", "gone": "skip", "mul": "broken\nrefuse",
        "neg": f"wrong {HOSTILE}\nraise", "sub": "cheat pass\ncheat pass x", "tan": "pass a b c d",
    }  # fmt: skip
    for name, text in words.items():
        (root / f"{name}.task").write_text(text)
    plan = Plan(
        suite="fake", root=root, writer="v1", samples=2,
        suites="fakesuite:open_suite", writers="fakesuite:open_writer",
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("runs") / "run"
    run(plan, folder, LocalPool(2))
    finish(folder)
    return folder


def finish(folder: Path) -> None:
    """Leaves the summary, as the command does."""
    with open_run(folder) as found:
        found.finish()


@pytest.fixture
def copy(done: Path, tmp_path: Path) -> Path:
    """A run to damage."""
    with open_run(done) as found:
        found.store._link.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(shutil.copytree(done, tmp_path / "copy"))


def change(folder: Path, statement: str) -> None:
    link = sqlite3.connect(folder / FILE)
    link.execute(statement)
    link.commit()
    link.close()


# ---- audit


def test_a_run_that_nobody_touched_passes_its_audit(done: Path) -> None:
    with open_run(done) as found:
        result = audit(found, rerun=6)
    assert result.wrong == []
    assert (result.records, result.again) == (12, 6)
    assert result.figures > 200
    assert result.notes == []


def test_a_record_that_was_improved_fails_the_audit(copy: Path) -> None:
    change(copy, "UPDATE records SET data = replace(data, 'false', 'true')")
    with open_run(copy) as found:
        wrong = " ".join(audit(found, rerun=12).wrong)
    assert "its text is not what was written" in wrong
    assert "the summary's 'compiled' is not what the records give" in wrong
    assert re.search(r"official was True, is False now", wrong)


def test_a_candidate_that_was_exchanged_fails_the_audit(copy: Path) -> None:
    change(
        copy,
        "UPDATE proposals SET candidate = (SELECT candidate FROM proposals WHERE item = 'add'"
        " AND sample = 0) WHERE item = 'div' AND sample = 0",
    )
    with open_run(copy) as found:
        wrong = audit(found, rerun=0).wrong
    assert len(wrong) == 1
    assert "of div sample 0: its key is not that of its task" in wrong[0]


def test_a_task_that_changed_in_the_checkout_fails_the_audit(copy: Path, tmp_path: Path) -> None:
    with open_run(copy) as found:
        root = Path(shutil.copytree(found.plan.root, tmp_path / "moved"))
        assert audit(found, rerun=12, root=root).wrong == []
        (root / "add.task").write_text("wrong")
        wrong = audit(found, rerun=12, root=root).wrong
    assert set(wrong) == {"add: the checkout has another task of that name, or none"}


def test_a_wrong_figure_is_found_by_the_second_count(
    done: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from npusmith.bench import metrics

    monkeypatch.setattr(metrics, "at_least_one", lambda n, c, k: 1.0)
    with open_run(done) as found:
        wrong = audit(found, rerun=0).wrong
    assert any("pass@1 of all tasks is 1.0, the records say" in text for text in wrong)


# ---- comparison


def test_a_comparison_pairs_tasks_and_says_what_differs(done: Path, tmp_path: Path) -> None:
    with open_run(done) as found:
        plan = found.plan
    root = Path(shutil.copytree(plan.root, tmp_path / "suite"))
    (root / "add.task").write_text("wrong")
    other = plan.model_copy(update={"root": root, "writer": "v2"})
    run(other, tmp_path / "second", LocalPool(2))
    with open_run(done) as first, open_run(tmp_path / "second") as second:
        found_ = compare(first, second)
    assert found_.tasks == 7
    correct = next(part for part in found_.differences if part.name == "correct")
    assert (correct.lost, correct.gained) == (["add"], [])
    assert correct.change == pytest.approx(-1 / 6)
    assert found_.warnings == ["1 tasks are not the same, add for one"]
    assert (found_.speed.n, found_.speed.ratio) == (2, 1.0)


# ---- files


def test_the_table_has_a_row_for_each_record_and_each_task_that_was_not_run(
    done: Path, tmp_path: Path
) -> None:
    with open_run(done) as found:
        assert export.write_csv(found, tmp_path / "r.csv") == 13
    with (tmp_path / "r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["item"] for row in rows if row["skipped"]] == ["gone"]
    assert {row["official"] for row in rows if row["item"] == "add"} == {"True"}
    assert json.loads(next(r for r in rows if r["item"] == "neg")["findings"]) == {"ub-align": 2}


def test_a_cell_cannot_be_a_formula() -> None:
    assert export._cell("=1+1") == "'=1+1"
    assert export._cell("plain") == "plain"
    assert export._cell(-1.5) == -1.5


def test_parquet_has_the_rows_of_the_table(done: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("pyarrow") is None:
        with open_run(done) as found, pytest.raises(NpusmithError) as caught:
            export.write_parquet(found, tmp_path / "r.parquet")
        assert caught.value.code == "extra-missing"
        pytest.skip("the extra npusmith[parquet] is not installed")
    from pyarrow import parquet

    with open_run(done) as found:
        assert export.write_parquet(found, tmp_path / "r.parquet") == 13
        rows = list(export.rows(found))
    assert parquet.read_table(tmp_path / "r.parquet").to_pylist() == rows


def test_the_best_right_kernel_of_each_task_is_exported(done: Path, tmp_path: Path) -> None:
    with open_run(done) as found:
        places = export.write_projects(found, tmp_path / "out")
    assert sorted(places) == ["add", "div", "tan"]
    assert (tmp_path / "out/add/kernel.cpp").read_text() == "pass"  # 2x beats 1x
    assert json.loads((tmp_path / "out/add/record.json").read_text())["time_us"] == 5.0


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "a\0b"])
def test_a_candidate_cannot_write_outside_of_its_folder(name: str, tmp_path: Path) -> None:
    from npusmith.bench.model import Candidate

    with pytest.raises(NpusmithError) as caught:
        export.unpack(Candidate(format="project", files={name: "x"}, writer="w"), tmp_path)
    assert caught.value.code == "file-denied"


# ---- plots


def test_every_value_is_in_one_bar() -> None:
    found = histogram([0.1, 0.5, 1.0, 1.0, 9.0], (0.5, 1.0), "x")
    assert [(bar.label, bar.count, bar.good) for bar in found] == [
        ("< 0.5x", 1, False),
        ("0.5x", 1, False),
        (">= 1x", 3, True),
    ]
    assert max(bar.height for bar in bars([("a", 0, False)])) == 0


def test_the_curve_of_speeds_falls_from_right_kernels_to_the_fastest() -> None:
    curve = speed_curve([0.5, 1.0, 4.0], tasks=4)
    assert curve is not None
    assert curve.points.split()[0] == "0.0,50.0"  # three of four are faster than 1/8
    assert curve.points.split()[-1] == f"{WIDTH},200.0"  # none is faster than 8
    assert speed_curve([], 4) is None


def test_a_timeline_has_a_lane_for_each_pipe() -> None:
    spans = [
        Span(core=0, unit="V", begin=2, end=4, what="add"),
        Span(core=0, unit="MTE2", begin=0, end=2),
        Span(core=0, unit="V", begin=6, end=8),
    ]
    found = draw(spans)
    assert found.count('class="lane"') == 2
    assert found.index(">V<") < found.index(">MTE2<") and ">AIV 0<" in found
    assert "6.00 to 8.00 us" in found and ">50%<" in found
    assert draw([]) == ""


# ---- the page


@pytest.fixture(scope="module")
def page(done: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, with the timeline that one kernel would have."""
    path = tmp_path_factory.mktemp("page") / "run.html"
    folder = Path(shutil.copytree(done, path.parent / "run"))
    with open_run(folder) as found:
        record = next(found.records("add"))
        spans = [Span(core=0, unit="V", begin=0, end=2, what=HOSTILE)]
        full = found.full(record).model_copy(update={"timeline": spans})
        detail = full.model_dump_json(include={"trials", "messages", "timeline"})
        with found.store._writing() as link:
            from npusmith.store.database import pack

            link.execute("UPDATE records SET detail = ? WHERE key = ?", (pack(detail), record.key))
        assert pages.write_page(found, path) == found.summary()
        return path


class Reader(HTMLParser):
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


def test_nothing_of_a_stranger_becomes_markup(page: Path) -> None:
    reader = Reader()
    reader.feed(page.read_text())
    assert not {"img", "iframe", "link", "object", "base"} & reader.tags
    assert page.read_text().count("<script") == 1  # the page's own
    assert not [name for name in reader.names if name.startswith("on") or name == "style"]
    assert page.read_text().count("&lt;script&gt;") >= 2


def test_every_link_is_an_anchor_of_the_page(page: Path) -> None:
    reader = Reader()
    reader.feed(page.read_text())
    assert len(reader.ids) == len(set(reader.ids))
    assert {link.removeprefix("#") for link in reader.links} <= set(reader.ids)


def test_the_page_shows_every_task_and_says_estimated(page: Path) -> None:
    text = page.read_text()
    assert text.count('class="task"') == 7
    assert "needs an NPU" in text
    assert "not measured on a device" in text
    assert "Outside the kernel:" in text
    assert "Errors of each trial" in text
    assert "AIV 0" in text and 'class="t-vector"' in text


def test_the_page_says_how_a_kernel_was_judged() -> None:
    record = Record(
        key="", suite="s", item="i", category="c", writer="w", sample=0, candidate="",
        true_shape="right: both ends",
        provenance={"shapes": "reduced", "more": "signed", "note_0": "rounded", "seed": "1"},
    )  # fmt: skip
    rows = [("Shapes", "reduced"), ("True shape", "right: both ends"), ("Further values", "signed")]
    assert pages.judged(record) == [*rows, ("Note", "rounded")]


def test_kernels_that_have_no_room_are_said_to_be_in_the_store(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_MOST_CHARS", 5)
    with open_run(done) as found:
        pages.write_page(found, tmp_path / "run.html")
        text = (tmp_path / "run.html").read_text()
    assert "more characters are in the store" in text


# Filters the list of tasks, then sorts it by name downwards and by speed.
SORT = """(() => {
  const table = page.querySelector("table.sorts"), bar = table.closest(".scroll").previousSibling;
  const names = () => [...table.tBodies[0].rows].filter((row) => !row.hidden)
    .map((row) => row.cells[0].textContent.trim().split(" ")[0]);
  const field = bar.querySelector("input"), heads = table.tHead.rows[0].cells;
  const type = (text) => { field.value = text; field.dispatchEvent(new Event("input")); };
  type("NEG");
  const some = names(), count = bar.querySelector("output").textContent;
  type("");
  heads[0].querySelector("button").click();
  heads[0].querySelector("button").click();
  const down = names(), way = heads[0].getAttribute("aria-sort");
  heads[6].querySelector("button").click();
  return {some, count, down, way, by_speed: names(),
    bars: page.querySelectorAll("svg.plot rect").length,
    low: [...page.querySelectorAll("svg.plot")].filter((node) => node.clientHeight < 90).length};
})()"""


@browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_in_a_browser_nothing_runs_over_all_can_be_read_and_the_list_filters_and_sorts(
    page: Path, tmp_path: Path, dark: bool
) -> None:
    for seen in look(page, tmp_path, dark, SORT):
        assert seen["title"] == "fake: fake - npusmith"
        assert len(seen["sections"]) == 10
        assert (seen["scroll"], seen["wide"], seen["pale"]) == (0, [], [])
        assert seen["dark"] is dark
        more = seen["more"]
        assert (more["bars"], more["low"]) == (7 + 9 + 10, 0)
        assert more["some"] == ["neg"]
        assert more["count"] == "1 of 7"
        assert more["down"] == sorted(more["down"], reverse=True)
        assert more["way"] == "descending"
        assert set(more["by_speed"]) == set(more["down"])


@browser
def test_in_a_browser_the_page_from_disk_asks_for_nothing(page: Path, tmp_path: Path) -> None:
    shot, log = tmp_path / "shot.png", tmp_path / "net.json"
    disk = (f"--screenshot={shot}", f"--log-net-log={log}")
    done = start(page.as_uri(), tmp_path / "profile", *disk)
    assert console(done) == []
    assert shot.stat().st_size > 20_000
    assert "/x" not in re.findall(r'"url":"([^"]*)"', log.read_text(errors="replace"))


def test_published_figures_stand_beside_ours_with_their_sources(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "published", lambda suite: published("multikernelbench"))
    with open_run(done) as found:
        pages.write_page(found, tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text()
    part = text[text.index('id="published"') :].partition("</section>")[0]
    assert part.count("<tr") == 1 + 1 + len(published("multikernelbench"))
    assert "arXiv 2601.22760" in part
    assert "no comparison of equals" in part
    assert all(row.source and row.where for row in PUBLISHED)
    assert {row.suite for row in PUBLISHED} <= set(NAMES)
    assert published("fake") == ()


# ---- the commands


def call(*argv: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    from npusmith.cli.main import call as main

    code = int(main(argv))
    told = capsys.readouterr()
    return code, told.out, told.err


def test_report_prints_figures_and_with_json_one_document(
    done: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = call("report", str(done), capsys=capsys)
    assert code == 0
    assert "fake by fake: 3 of 6 measured tasks correct" in out
    assert "gone: needs an NPU" in out
    code, out, _ = call("report", str(done), "--json", capsys=capsys)
    data = json.loads(out)
    assert (code, data["n"], data["compiled"], data["correct"]) == (0, 6, 5, 3)
    assert data["categories"]["even"]["fast"]["at_least"]["1"] == 1
    assert data["written"] == {}


def test_report_writes_the_files_that_are_named(
    done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"--csv": "a/r.csv", "--html": "a/r.html", "--export": "a/kernels"}
    args = [part for name, path in files.items() for part in (name, str(tmp_path / path))]
    assert call("report", str(done), *args, capsys=capsys)[0] == 0
    assert all((tmp_path / path).exists() for path in files.values())


def test_report_audit_and_compare_by_command(
    done: Path, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("report", str(done), "--audit", capsys=capsys)[0] == 0
    change(copy, "UPDATE records SET data = replace(data, 'false', 'true')")
    code, out, _ = call("report", str(copy), "--audit", "--rerun", "0", capsys=capsys)
    assert code == 1
    assert "AUDIT FAILED" in out
    code, out, _ = call("report", "--compare", str(done), str(done), capsys=capsys)
    assert code == 0
    assert "7 in both" in out


def test_report_of_a_folder_without_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call("report", str(tmp_path), capsys=capsys)
    assert code == 3
    assert "error[run-missing]" in err
    assert call("report", str(tmp_path), "--compare", capsys=capsys)[0] == 2
