"""The table of chips, and chips that a user describes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from npusmith.errors import NpusmithError
from npusmith.target.chipfile import KEYS, RANGES, read_chip
from npusmith.target.chips import CHIPS, find_chip, of_record
from npusmith.target.header import chip_header

GOOD = """
name = "mine"
base = "910B2"
cube_cores = 10
vector_cores = 20
l2_bytes = 100_663_296
"""
ALONE = """
name = "alone"
cube_cores = 8
vector_cores = 16
clock_mhz = 1000
hbm_bytes = 17_179_869_184
l2_bytes = 0
hbm_gbps = 400
"""


def write(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


def refusal(folder: Path, text: str) -> NpusmithError:
    with pytest.raises(NpusmithError) as caught:
        find_chip(write(folder, text))
    assert caught.value.code == "chip-file"
    return caught.value


def test_the_table_has_the_parts_of_the_two_families() -> None:
    assert {name: (chip.cube_cores, chip.clock_mhz) for name, chip in CHIPS.items()} == {
        "910B1": (24, 1850), "910B2": (24, 1800), "910B2C": (24, 1800), "910B3": (20, 1800),
        "910B4": (20, 1500), "910B4-1": (20, 1500), "910_9391": (24, 1850), "910_9392": (24, 1850),
        "910_9381": (24, 1800), "910_9382": (24, 1800), "910_9372": (20, 1800),
        "910_9362": (20, 1500),
    }  # fmt: skip
    for chip in CHIPS.values():
        assert chip.vector_cores == 2 * chip.cube_cores
        assert chip.family == ("ascend910_93" if "_93" in chip.name else "ascend910b")
        assert chip.hbm_basis.split(":")[0] in ("measured", "documented", "derived", "guess")
        assert 500 <= chip.hbm_gbps <= 2000


def test_a_chip_of_the_table_passes_the_rules_for_chip_files() -> None:
    for chip in CHIPS.values():
        assert all(legal.holds(getattr(chip, key)) for key, legal in RANGES.items())


@pytest.mark.parametrize("name", ["910B4-1", "Ascend910B4-1", "910b4-1"])
def test_a_chip_is_found_with_and_without_its_family_name(name: str) -> None:
    assert find_chip(name) is CHIPS["910B4-1"]


def test_an_unknown_chip_lists_the_known_ones() -> None:
    with pytest.raises(NpusmithError) as caught:
        find_chip("910Z")
    assert caught.value.code == "chip-unknown"
    assert all(name in caught.value.render() for name in CHIPS)


def test_a_file_changes_what_it_names_and_keeps_the_rest(tmp_path: Path) -> None:
    chip = find_chip(write(tmp_path, GOOD))
    assert chip == replace(
        CHIPS["910B2"], name="mine", cube_cores=10, vector_cores=20, l2_bytes=96 << 20
    )
    assert "#define TWIN_VECTOR_CORES 20 " in chip_header(chip)


def test_a_file_without_a_base_says_what_differs_between_parts(tmp_path: Path) -> None:
    chip = find_chip(write(tmp_path, ALONE))
    assert (chip.cube_cores, chip.l2_bytes, chip.ub_total_bytes) == (8, 0, 192 * 1024)
    assert chip.hbm_basis == "given by the user"


def test_a_chip_survives_being_written_down(tmp_path: Path) -> None:
    chip = find_chip(write(tmp_path, GOOD))
    assert of_record(json.loads(json.dumps(chip.record()))) == chip
    assert CHIPS["910B3"].record() == "910B3"
    assert of_record("910B3") is CHIPS["910B3"]


@pytest.mark.parametrize(
    "key", ["cube_cores", "vector_cores", "clock_mhz", "hbm_bytes", "l2_bytes", "hbm_gbps", "name"]
)
def test_a_missing_key_is_named_with_what_is_legal(tmp_path: Path, key: str) -> None:
    text = "\n".join(line for line in ALONE.splitlines() if not line.startswith(key))
    error = refusal(tmp_path, text)
    assert error.message.startswith(f"{key} of the chip file is missing")
    assert error.legal


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("clock_mhz = 99", "clock_mhz"),
        ("clock_mhz = -1800", "clock_mhz"),
        ("clock_mhz = 1800.5", "clock_mhz"),
        ("clock_mhz = true", "clock_mhz"),
        ("clock_mhz = nan", "clock_mhz"),
        ('clock_mhz = "fast"', "clock_mhz"),
        ("clock_mhz = [1800]", "clock_mhz"),
        ("hbm_gbps = 0", "hbm_gbps"),
        ("hbm_gbps = 1" + "0" * 40, "hbm_gbps"),
        ("ub_total_bytes = 100_001", "ub_total_bytes"),
        ("ub_reserved_bytes = 160_000", "ub_reserved_bytes"),
        ("repeat_bytes = 512", "repeat_bytes"),
        ("npu_arch = 3101", "npu_arch"),
        ("cores = 7", "cores"),
        ("[clock]\nmhz = 1", "clock"),
        ('soc_version = "H100"', "soc_version"),
        ('soc_version = "Ascend910B2\\"; rm"', "soc_version"),
        ('hbm_basis = "a\\nb"', "hbm_basis"),
        ("hbm_basis = 3", "hbm_basis"),
    ],
)
def test_a_nonsense_value_is_named_with_what_was_seen(tmp_path: Path, line: str, key: str) -> None:
    error = refusal(tmp_path, f"{GOOD}{line}\n")
    assert error.message.startswith(f"{key} of the chip file")
    assert error.seen.startswith(f"{key} = ")
    assert error.legal


@pytest.mark.parametrize(("low", "code"), [(100, ""), (99, "chip-file")])
def test_a_range_begins_where_it_says(tmp_path: Path, low: int, code: str) -> None:
    text = f"{GOOD}clock_mhz = {low}\n"
    if code:
        refusal(tmp_path, text)
    else:
        assert find_chip(write(tmp_path, text)).clock_mhz == low


def test_cores_that_do_not_pair_are_refused(tmp_path: Path) -> None:
    error = refusal(tmp_path, GOOD.replace("vector_cores = 20", "vector_cores = 21"))
    assert "20: two vector cores" in error.legal


@pytest.mark.parametrize("name", ["910B3", "Ascend910B3", "a b", "", "x" * 41, '"quote'])
def test_a_name_that_is_taken_or_no_name_is_refused(tmp_path: Path, name: str) -> None:
    text = GOOD.replace('"mine"', json.dumps(name))
    assert refusal(tmp_path, text).message.startswith("name of the chip file")


def test_a_base_must_be_a_known_chip(tmp_path: Path) -> None:
    for base in ('"910Z"', "7"):
        error = refusal(tmp_path, GOOD.replace('"910B2"', base))
        assert "910B4-1" in error.legal


@pytest.mark.parametrize("data", [b"name = ", b"\xff\xfe", b"[" * 5000, b"a = 1\n" * 20_000])
def test_what_is_no_toml_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(data)
    with pytest.raises(NpusmithError) as caught:
        read_chip(path, CHIPS, CHIPS["910B2"])
    assert caught.value.code == "chip-file"


def test_a_file_that_is_not_there_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NpusmithError) as caught:
        find_chip(str(tmp_path / "gone.toml"))
    assert caught.value.code == "file-missing"
    (tmp_path / "dir.toml").mkdir()
    with pytest.raises(NpusmithError) as caught:
        find_chip(str(tmp_path / "dir.toml"))
    assert caught.value.code == "chip-file"


def test_every_key_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "chips.md").read_text()
    assert all(f"`{key}`" in page for key in KEYS)
