"""The trace file against the rules of the trace-event format, and its cap."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from npusmith.timing.lines import Lines
from npusmith.timing.model import UNITS, Timing
from npusmith.timing.trace import Event, read_events, write_trace

Make = Callable[..., Timing]
Steps = Callable[..., Iterator[Event]]


def loaded(path: Path) -> dict[str, object]:
    data = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert isinstance(data, dict)
    return data


SLICE = {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"}
ARROW = {"name", "cat", "ph", "id", "ts", "pid", "tid"}
FIELDS = {"X": SLICE, "C": SLICE - {"cat", "dur"}, "s": ARROW, "f": ARROW | {"bp"}}


def check_format(data: dict[str, object]) -> list[dict[str, object]]:
    """Each event has the fields that the format asks of its kind, and each arrow both its ends."""
    assert data["displayTimeUnit"] in ("ms", "ns")
    rows = data["traceEvents"]
    assert isinstance(rows, list)
    for row in rows:
        assert isinstance(row["pid"], int) and isinstance(row["tid"], int)
        assert isinstance(row["name"], str)
        if row["ph"] == "M":
            assert row["name"] in (
                "process_name", "process_sort_index", "thread_name", "thread_sort_index",
            )  # fmt: skip
            continue
        assert set(row) == FIELDS[row["ph"]]
        assert row["ts"] >= 0 and row.get("dur", 0) >= 0
    ends = {kind: [row["id"] for row in rows if row["ph"] == kind] for kind in "sf"}
    assert ends["s"] == ends["f"] and len(set(ends["s"])) == len(ends["s"])
    return rows


def test_an_arrow_leads_from_what_was_waited_for_to_what_waited(
    timing: Timing, tmp_path: Path
) -> None:
    load = Event(2, 4, 0, 1800, 0, 0, 255, 0, 16384)
    other_core = Event(4, 4, 0, 1799, 0, 0, 255, 0, 16384)
    late = Event(2, 4, 1800, 3600, 0, 0, 255, 0, 16384)  # not over when the sum begins
    add = Event(2, 1, 1801, 1900, 1, 1, 4, 900)
    write_trace([load, other_core, late, add], timing, tmp_path / "t.json")
    rows = check_format(loaded(tmp_path / "t.json"))
    begin, end = (row for row in rows if row["ph"] in "sf")
    assert (begin["pid"], begin["tid"], end["tid"], end["bp"]) == (2, 4, 1, "e")
    assert 0.9 < float(str(begin["ts"])) < 1.0  # inside of the load's slice
    assert end["ts"] == pytest.approx(1801 / 1800)


@pytest.mark.parametrize(
    "waiter",
    [Event(2, 1, 1800, 1900, 1, 1, 4, 0), Event(2, 1, 1800, 1900, 1, 1, 7, 90),
     Event(2, 1, 900, 1000, 1, 1, 4, 90), Event(2, 4, 1800, 1900, 0, 0, 4, 90)],
    ids=["did not wait", "for the queue", "before anything ended", "for its own pipe"],
)  # fmt: skip
def test_no_arrow_is_drawn_without_a_cause(timing: Timing, tmp_path: Path, waiter: Event) -> None:
    write_trace([Event(2, 4, 0, 1800, 0, 0, 255, 0), waiter], timing, tmp_path / "t.json")
    assert not [row for row in check_format(loaded(tmp_path / "t.json")) if row["ph"] in "sf"]


def test_a_counter_says_how_much_of_ub_buffers_take(made: Make, tmp_path: Path) -> None:
    timing = made(names=["alloc", "call", "free"])
    steps = [Event(2, 0, 0, 9, 0, 0, 255, 0, 4096), Event(2, 0, 9, 18, 1, 0, 255, 0, 0),
             Event(2, 0, 18, 27, 2, 0, 255, 0, 0)]  # fmt: skip
    write_trace(steps, timing, tmp_path / "t.json")
    rows = check_format(loaded(tmp_path / "t.json"))
    said = [(row["ts"], row["args"]) for row in rows if row["ph"] == "C"]
    assert said == [(0.005, {"bytes": 4096}), (0.015, {"bytes": 0})]


def test_lines_are_sorted_by_the_work_that_they_give(timing: Timing, steps: Steps) -> None:
    lines = Lines(timing)
    seen = list(lines.watch(steps(timing, 4)))
    assert seen == list(steps(timing, 4))
    first, second = lines.shares()
    assert (first.line, first.unit, first.steps) == (41, "MTE2", 48 * 8)
    assert (second.line, second.unit, second.steps) == (52, "V", 48 * 4)
    step = timing.cycles / 6 / timing.clock_mhz  # of each core: four tiles
    assert first.us == pytest.approx(4 * (0.9 + 0.3) * step)
    assert second.waited_us == pytest.approx(4 * 0.4 * step)
    assert lines.shares(1) == [first]


def test_a_trace_has_a_process_for_each_core_and_a_thread_for_each_pipe(
    timing: Timing, steps: Steps, tmp_path: Path
) -> None:
    written = write_trace(steps(timing, 4), timing, tmp_path / "t.json")
    rows = check_format(loaded(tmp_path / "t.json"))
    names = [row for row in rows if row["name"] == "process_name"]
    assert len(names) == 48
    assert names[1] == {
        "name": "process_name", "ph": "M", "pid": 2, "tid": 0, "args": {"name": "AIV 1"},
    }  # fmt: skip
    threads = [row["args"] for row in rows if row["name"] == "thread_name" and row["pid"] == 0]
    assert threads == [{"name": name} for name in ("S", "V", "MTE2", "MTE3")]
    assert sum(row["ph"] == "X" for row in rows) == written.events == 48 * 4 * 3
    assert written.note == ""


def test_an_event_says_where_it_comes_from_what_it_moves_and_what_it_waited_for(
    timing: Timing, tmp_path: Path
) -> None:
    event = Event(2, 4, 1800, 3600, 0, 0, 1, 180, 16384)
    write_trace([event], timing, tmp_path / "t.json")
    rows = check_format(loaded(tmp_path / "t.json"))
    assert rows[-1] == {
        "name": "gm_ub", "cat": "MTE2", "ph": "X", "ts": 1.0, "dur": 1.0, "pid": 2, "tid": 4,
        "args": {
            "API": "DataCopy", "source": "op_kernel/add.cpp:41", "bytes": 16384,
            "waited_us": 0.1, "waited_for": "V",
        },
    }  # fmt: skip


@pytest.mark.parametrize(("most", "left"), [(576, 0), (575, 1), (1, 575)])
def test_a_trace_stops_at_its_cap_and_says_so(
    timing: Timing, steps: Steps, tmp_path: Path, most: int, left: int
) -> None:
    written = write_trace(steps(timing, 4), timing, tmp_path / "t.json", most)
    data = loaded(tmp_path / "t.json")
    rows = check_format(data)
    about = data["otherData"]
    assert isinstance(about, dict)
    assert sum(row["ph"] == "X" for row in rows) == about["events"] == most
    assert about["events_left_out"] == written.dropped == left
    assert ("note" in about) is bool(left) is bool(written.note)


def test_events_that_the_timer_left_out_count_as_left_out(made: Make, tmp_path: Path) -> None:
    written = write_trace([], made(events_dropped=7), tmp_path / "t.json")
    assert written.dropped == 7


def test_a_name_of_a_stranger_stays_text(made: Make, tmp_path: Path) -> None:
    timing = made(names=['"}],</script>\n'], places=[('a"\\\u2028.cpp', 3, "\x1b[31m")])
    write_trace([Event(0, 1, 0, 1, 0, 0, -1, 0)], timing, tmp_path / "t.json")
    rows = check_format(loaded(tmp_path / "t.json"))
    assert rows[-1]["name"] == '"}],</script>\n'


def test_an_index_outside_of_the_tables_is_a_step_without_a_place(
    timing: Timing, tmp_path: Path
) -> None:
    write_trace([Event(0, 1, 0, 1, 99, 99, 99, 5)], timing, tmp_path / "t.json")
    rows = check_format(loaded(tmp_path / "t.json"))
    assert rows[-1]["args"] == {"API": ""}


def test_lines_of_eight_and_nine_columns_are_read_and_broken_ones_left_out(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_text(
        "0 4 0 10.5 0 0 -1 0\n2 1 3 4 1 1 4 2.5 64\n0 9 0 1 0 0 0 0\n0 1 5 4 0 0 0 0\n"
        "0 1 nan 4 0 0 0 0\n\nhello\n0 1 2"
    )
    assert list(read_events(path)) == [
        Event(0, UNITS.index("MTE2"), 0.0, 10.5, 0, 0, -1, 0.0),
        Event(2, UNITS.index("V"), 3.0, 4.0, 1, 1, 4, 2.5, 64),
    ]
