"""What an object is kept by: the texts it is made of, and the facts of a chip that it asks for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from npusmith.target.chips import find_chip
from npusmith.twin import toolchain
from npusmith.twin.includes import used_text

CHIP = """// Facts of a chip.
#pragma once

#define CORES 24
#define BYTES (2 * HALF)
#define HALF 8
"""


def text_of(folder: Path, source: str, chip: str = CHIP) -> str:
    (folder / "a.cpp").write_text(source)
    return used_text(folder / "a.cpp", (folder / "include",), {"chip.h": chip})


def test_every_header_counts_once_and_those_in_brackets_do_not(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "far.h").write_text('#include "near.h"\nint far;\n')
    (tmp_path / "include" / "near.h").write_text('#include "far.h"\n#include <vector>\nint near;\n')
    text = text_of(tmp_path, '#  include "far.h"\n#include "near.h"\nint own;\n')
    assert [text.count(name) for name in ("int far;", "int near;", "int own;")] == [1, 1, 1]


def test_only_the_facts_that_are_asked_for_count(tmp_path: Path) -> None:
    asks = '#include "twin/chip.h"\nint a = BYTES;\n'
    text = text_of(tmp_path, asks)
    assert "#define BYTES (2 * HALF)" in text and "#define HALF 8" in text and "CORES" not in text
    assert text == text_of(tmp_path, asks, CHIP.replace("24", "20").replace("a chip", "another"))
    assert text != text_of(tmp_path, asks, CHIP.replace("HALF 8", "HALF 4"))
    assert "HALF" not in text_of(tmp_path, "int a = BYTES;\n")


@pytest.mark.parametrize("line", ['#include "gone.h"', "#include NAME"])
def test_what_cannot_be_followed_is_an_error(tmp_path: Path, line: str) -> None:
    with pytest.raises(ValueError, match="include"):
        text_of(tmp_path, line)


@pytest.mark.parametrize("name", ["host/platform.cpp", "check.cpp", "matmul/matmulcheck.cpp"])
def test_texts_are_equal_only_where_the_preprocessor_says_the_same(
    name: str, tmp_path: Path
) -> None:
    source = toolchain.RUNTIME / name
    texts, outputs = set(), set()
    for chip in map(find_chip, ("910B2", "910B4")):
        folder = tmp_path / chip.name
        made = toolchain._made(chip)
        (folder / "twin").mkdir(parents=True)
        for header, text in made.items():
            (folder / "twin" / header).write_text(text)
        flags = [f"-I{place}" for place in (folder, toolchain.INCLUDE, toolchain.RUNTIME)]
        command = [toolchain.find_compiler().path, "-std=c++17", "-E", "-P", *flags, str(source)]
        outputs.add(subprocess.run(command, capture_output=True, check=True).stdout)
        folders = (toolchain.INCLUDE, toolchain.RUNTIME, toolchain.TIMER)
        texts.add(used_text(source, folders, made))
    assert len(texts) == len(outputs)
