"""What the report is made of: the ladder, colours, the two pictures, the sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusmith.ir.nodes import Const, Name, Program
from npusmith.lang import parse
from npusmith.report.color import colour, language
from npusmith.report.html import pictures
from npusmith.report.labels import Labels, Spot
from npusmith.report.ladder import State, ladder, reached, served
from npusmith.report.memory import Kind, divide
from npusmith.report.schedule import Box
from npusmith.report.sources import find_line, read_sources
from npusmith.report.split import Split
from npusmith.report.text import figure, plain, size
from npusmith.target.chips import CHIPS
from npusmith.task.verdict import Rung, Verdict
from npusmith.twin.finding import Finding

CHIP = CHIPS["910B2"]
KERNELS = Path(__file__).parents[1] / "kernels"


@given(st.text(), st.sampled_from(["cpp", "python", ""]))
def test_coloured_lines_joined_are_the_text(text: str, rules: str) -> None:
    joined = "\n".join("".join(piece.text for piece in line) for line in colour(text, rules))
    assert joined == text


@pytest.mark.parametrize(
    ("rules", "text", "kind"),
    [
        ("cpp", "// it's a comment", "com"),
        ("cpp", "/* never closed\nint x", "com"),
        ("cpp", '"a \\" quoted // string"', "str"),
        ("cpp", "#include <x>", "pre"),
        ("cpp", "constexpr", "key"),
        ("cpp", "0x1Fu", "num"),
        ("python", "# int", "com"),
        ("python", '"""two\nlines"""', "str"),
        ("python", "@kernel", "pre"),
        ("python", "1.5e-3", "num"),
    ],
)
def test_one_token_gets_one_colour(rules: str, text: str, kind: str) -> None:
    assert {piece.kind for line in colour(text, rules) for piece in line} == {kind}


def test_a_call_of_an_api_stands_out() -> None:
    (line,) = colour("DataCopy(a, b, 32);", "cpp")
    assert (line[0].kind, line[0].text) == ("fn", "DataCopy")


def test_a_file_of_no_known_language_stays_plain() -> None:
    assert language("CMakeLists.txt") == language("README") == ""


def test_unified_buffer_is_divided_without_gap_or_overlap(lowered: Program) -> None:
    memory = divide(lowered, CHIP)
    assert [piece.mark for piece in memory.pieces] == [
        "A1",
        "A2",
        "B1",
        "B2",
        "C",
        "D",
        "E",
        "",
        "",
    ]
    at = 0
    for piece in memory.pieces:
        assert piece.start == at
        at += piece.bytes
    assert at == memory.total == 192 * 1024
    assert memory.used + memory.free + memory.reserved == memory.total


def test_a_buffer_takes_whole_blocks(lowered: Program) -> None:
    part = divide(lowered, CHIP).rows[-1]
    assert (part.elements, part.bytes) == (9, 64)  # 36 bytes in two blocks of 32


def test_buffers_beyond_the_end_are_shown_as_such(lowered: Program) -> None:
    from dataclasses import replace

    big = replace(lowered.kernel.buffers[0], length=Const(40_000))
    memory = divide(replace(lowered, kernels=(replace(lowered.kernel, buffers=(big,)),)), CHIP)
    assert [piece.kind for piece in memory.pieces] == [Kind.IN, Kind.OVER, Kind.RESERVED]
    assert memory.free == 0
    assert memory.span == 320_000 + CHIP.ub_reserved_bytes


def test_a_length_that_is_no_number_yet_is_refused(lowered: Program) -> None:
    from dataclasses import replace

    open_ended = replace(lowered.kernel.buffers[0], length=Name("TILE"))
    kernel = replace(lowered.kernel, buffers=(open_ended,))
    with pytest.raises(ValueError, match="lower the program first"):
        divide(replace(lowered, kernels=(kernel,)), CHIP)


ROWS = """
@host
def host(x, y):
    rows = x.shape[0]
    cores = min({cores}, rows)
    rows_per_core = ceil_div(rows, cores)
    launch(k, cores, rows=rows, rows_per_core=rows_per_core)

@kernel
def k(x: input(float32), y: output(float32), rows: int, rows_per_core: int):
    b = ub(64, float32)
    {first}
    for row in range({range}):
        with copy_in:
            load(b, x[row * 64], 64)
        with copy_out:
            store(y[row * 64], b, 64)
"""
BLOCKED = ("first = core_id() * rows_per_core", "first, min(first + rows_per_core, rows)")
CYCLIC = ("turns = rows", "core_id(), turns, core_count()")


def shared(cores: int, rows: int, way: tuple[str, str]) -> Split:
    text = ROWS.format(cores=cores, first=way[0], range=way[1])
    shown = pictures(parse(text), CHIP, {"x": (rows, 64), "y": (rows, 64)})
    return shown.launches[0].split


def test_shares_of_the_cores_add_up_to_the_whole() -> None:
    got = shared(47, 1024, BLOCKED)
    assert got.unit == "row"
    assert sum(got.shares) == 1024
    assert got.shares[-1] == 12
    assert got.words == "47 of 48 vector cores, 12 to 22 of 1,024 turns of the loop over row each"
    assert shared(47, 1024, CYCLIC).shares == (22,) * 37 + (21,) * 10


def test_a_core_without_work_is_counted_and_drawn() -> None:
    got = shared(4, 5, BLOCKED)
    assert got.shares == (2, 2, 1, 0)
    assert "1 launched core has nothing to do" in got.words
    shades = re.findall(r'class="core (\w+)"', got.picture)
    assert shades[:5] == ["w5", "w5", "w3", "w0", "off"]
    assert len(shades) == 48


FROM_DATA = """c = ub(64, float32)
    with copy_in:
        load(c, x[0], 64)
    n = int(value(c))"""


# known at first, then changed by what is in a buffer
CHANGED = FROM_DATA.replace("with copy_in", "n = 4\n    with copy_in").replace(
    "    n = int", "    with compute:\n        n = int"
)


@pytest.mark.parametrize(
    "way", [("n = rows", "0, n"), (FROM_DATA, "core_id(), n"), (CHANGED, "core_id(), n")]
)
def test_no_share_is_guessed(way: tuple[str, str]) -> None:
    got = shared(4, 64, way)
    assert got.shares == ()
    assert got.words == "4 of 48 vector cores"


def test_the_schedule_shows_the_version_that_runs() -> None:
    text = (KERNELS / "softmax_three_pass.tile.py").read_text(encoding="utf-8")
    shown = pictures(parse(text), CHIP, {"x": (64, 10000), "y": (64, 10000)})
    (box,) = [item for item in shown.launches[0].boxes if item.kind == "cores"]
    assert box.head == "for row, dealt to the cores: 2 turns on the first"
    kinds = [item.kind for loop in box.inside for item in loop.inside]
    assert {"in", "calc", "out"} <= set(kinds)
    (first, *_) = [item for loop in box.inside for item in loop.inside if item.kind == "in"]
    assert first.lines[0].startswith("x → xt, ")


def test_the_fusion_shows_what_passes_between_launches() -> None:
    text = (KERNELS / "linear_gelu.tile.py").read_text(encoding="utf-8")
    shapes = {"x": (300, 64), "w": (500, 64), "b": (500,), "y": (300, 500)}
    shown = pictures(parse(text), CHIP, shapes)
    words = re.findall(r"<text[^>]*>([^<]*)<", shown.fusion)
    assert [word for word in words if ": " in word] == [
        "1. product: 12 cube cores", "2. bias_gelu: 24 vector cores",
    ]  # fmt: skip
    assert "mmad" in words
    assert "y" in words
    assert shown.more == 0


def test_kernels_side_by_side_show_so_and_what_they_wait_for() -> None:
    text = (KERNELS / "linear_gelu_beside.tile.py").read_text(encoding="utf-8")
    shapes = {"x": (300, 64), "w": (500, 64), "b": (500,), "y": (300, 500)}
    shown = pictures(parse(text), CHIP, shapes)
    assert "2. bias_gelu: 24 vector cores, beside the one before" in shown.fusion
    heads = [[item.head for item in _all(launch.boxes)] for launch in shown.launches]
    assert "tells the other side of its block: product" in heads[0]
    assert "waits for the other side of its block: product" in heads[1]


def _all(boxes: tuple[Box, ...]) -> list[Box]:
    return [each for box in boxes for each in (box, *_all(box.inside))]


def test_labels_stand_beside_each_other_and_off_the_lines() -> None:
    labels = Labels(0, 0, 300, 100)
    labels.cross(0, 50, 300, 50)
    labels.cover(90, 40, 110, 60)
    spots = [Spot(100, 52), Spot(100, 30), Spot(100, 80)]
    placed = [re.search(r'y="(\d+)"', labels.put("a word", spots)) for _ in range(2)]
    assert [item and item[1] for item in placed] == ["30", "80"]


def test_a_finding_from_a_build_folder_finds_its_line(folder: Path) -> None:
    sources = read_sources(folder)
    key = next(source.key for source in sources if source.name == "op_kernel/softmax_custom.cpp")
    assert find_line(sources, "/tmp/x/op_kernel/softmax_custom.cpp", 9) == f"{key}-L9"
    assert find_line(sources, "/tmp/x/op_kernel/softmax_custom.cpp", 99) == ""
    assert find_line(sources, "/tmp/x/softmax_custom.cpp", 9) == ""
    assert find_line(sources, "", 0) == ""


def test_sources_come_in_the_order_of_reading(folder: Path) -> None:
    assert [source.name for source in read_sources(folder)] == [
        "softmax_custom.tile.py",
        "op_kernel/softmax_custom.cpp",
        "op_host/softmax_custom.cpp",
        "op_host/softmax_custom_tiling.h",
    ]


def test_a_link_out_of_the_folder_is_not_followed(folder: Path) -> None:
    (folder / "op_kernel" / "passwd.h").symlink_to("/etc/passwd")
    assert not [source for source in read_sources(folder) if "passwd" in source.name]


def test_the_ladder_of_a_pass_says_what_nobody_checked(passing: Verdict) -> None:
    states = {step.rung: step.state for step in ladder(passing)}
    assert states[Rung.VALUES] is State.REACHED
    assert {states[rung] for rung in (Rung.RACE_FREE, Rung.TIMED, Rung.DEVICE)} == {State.UNCHECKED}
    assert reached(passing) == "values right on the twin; a device was not used"


@pytest.mark.parametrize("rung", [Rung.VALUES, Rung.RAN])
def test_a_race_marks_its_rung_as_failed(passing: Verdict, rung: Rung) -> None:
    race = Finding(code="gm-race", message="two cores touch the same bytes")
    raced = passing.model_copy(
        update={"verdict": "fail", "correct": False, "rung": rung, "findings": [race]}
    )
    states = {step.rung: step.state for step in ladder(raced)}
    assert states[Rung.RACE_FREE] is State.FAILED
    assert states[Rung.DEVICE] is State.UNCHECKED


@given(st.text())
def test_plain_text_holds_no_control_character(text: str) -> None:
    shown = plain(text)
    assert not [char for char in shown if ord(char) < 32 and char not in "\n\t"]
    assert plain(shown) == shown


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (0.0, "0"), (2.98e-8, "2.98e-08"), (float("inf"), "inf")]
)
def test_a_figure_has_three_digits(value: float | None, text: str) -> None:
    assert figure(value) == text


def test_a_size_is_exact_where_it_is_short() -> None:
    assert (size(0), size(8448), size(196_608)) == ("0 B", "8,448 B", "192.0 KiB")


def test_every_memory_of_a_cube_core_is_divided_by_itself() -> None:
    text = (KERNELS / "linear_gelu.tile.py").read_text(encoding="utf-8")
    shapes = {"x": (300, 64), "w": (500, 64), "b": (500,), "y": (300, 500)}
    shown = pictures(parse(text), CHIP, shapes)
    titles = [item.kernel for item in shown.memories]
    assert titles == [f"product, {name}" for name in ("l1", "l0a", "l0b", "l0c")] + ["bias_gelu"]
    left = shown.memories[1]
    assert (left.used, left.free, left.reserved) == (2 * 128 * 64 * 2, 32 * 1024, 0)
    assert left.rows[0].elements == 128 * 64
    assert shown.launches[0].split.words.startswith("12 of 24 cube cores")


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        (None, ""),
        ([], "every size that the model takes at these ranks"),
        (["x.shape[1] % 2 == 0"], "sizes with x.shape[1] % 2 == 0 alone"),
        (["x.shape[1] == 1"], "an axis that is 1 in get_inputs() stays 1"),
        ([f"x.shape[1] > {n}" for n in range(9)], "x.shape[1] > 3, and 5 more alone"),
    ],
)
def test_served_sizes_are_said_in_words(
    conditions: list[str] | None, words: str, passing: Verdict
) -> None:
    if conditions is not None:
        passing.provenance["serves"] = conditions
    assert words in served(passing) and bool(words) == bool(served(passing))
