"""A CMakeLists.txt is read for macros and include folders, without CMake."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.twin.cmake import follow
from npusmith.twin.cmake_target import Flags, read_flags

TEXT = """cmake_minimum_required(VERSION 3.16)   # not this one: add_definitions(-DNEVER)
set(SCENE "1" CACHE STRING "scene (1-4)")
set(KIND fast slow)
string(REGEX MATCH "([0-9]+)" ARCH "${CMAKE_ASC_ARCHITECTURES}")
string(TOUPPER fast LOUD)
add_definitions(-DARCH=${ARCH} -D${LOUD})
if(NOT SCENE MATCHES "^[1-4]$")
  message(FATAL_ERROR "SCENE is ${SCENE}")
endif()
if(SCENE STREQUAL "2" AND (CMAKE_ASC_ARCHITECTURES STREQUAL "dav-2201"))
  set(EXTRA TWO=2)
elseif(DEFINED OTHER OR SCENE EQUAL 3)
  set(EXTRA MANY)
else()
  set(EXTRA ONE)
endif()
foreach(item a b)
  add_definitions(-DLOOP)
endforeach()
add_definitions(-DSCENE=${SCENE})
add_executable(demo
    add.asc)
add_executable(others other.asc)
target_compile_options(demo PRIVATE
    $<$<COMPILE_LANGUAGE:ASC>:--npu-arch=${CMAKE_ASC_ARCHITECTURES} -DFROM_OPTION>
)
target_compile_definitions(demo PRIVATE ${EXTRA} NAME="x")
target_compile_definitions(others PRIVATE NOT_OURS)
target_include_directories(demo PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/inc missing)
"""


@pytest.mark.parametrize(
    "variables, extra", [({}, "ONE"), ({"SCENE": "2"}, "TWO=2"), ({"SCENE": "3"}, "MANY")]
)
def test_variables_decide_what_is_defined(
    tmp_path: Path, variables: dict[str, str], extra: str
) -> None:
    (tmp_path / "CMakeLists.txt").write_text(TEXT)
    (tmp_path / "inc").mkdir()
    scene = variables.get("SCENE", "1")
    found = read_flags(tmp_path / "add.asc", variables)
    assert found.definitions == (
        "ARCH=2201",
        "FAST",
        f"SCENE={scene}",
        "FROM_OPTION",
        extra,
        'NAME="x"',
    )
    assert found.includes == (tmp_path / "inc",)


def test_without_a_file_nothing_is_defined(tmp_path: Path) -> None:
    assert read_flags(tmp_path / "add.asc", {}) == Flags()


@pytest.mark.parametrize(
    "text",
    ["if(", "else()", "endif()", "set()", "if(NOT", 'set(A "', "if(A MATCHES [)\nendif()",
     "set(A ${A})\nadd_definitions(-D${A})", "endfunction()\nadd_definitions(-DX)", "#[["],
)  # fmt: skip
def test_a_broken_file_ends_in_no_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "CMakeLists.txt").write_text(text)
    read_flags(tmp_path / "add.asc", {})


def test_a_variable_by_way_of_another_counts_and_an_unknown_one_is_said() -> None:
    text = """set(ROOT /lib)  # the top
set(NEAR ${ROOT}/inc;${ROOT}/own)
if(NOBODY_KNOWS)
  include_directories(${NEAR})
endif()
#[[ set(ROOT /other)
]]
target_include_directories(x PRIVATE "${ELSEWHERE}/inc")
"""
    every = list(follow(text, {}, every=True))
    assert [(item.name, item.words, item.line, item.unknown) for item in every] == [
        ("include_directories", ("/lib/inc", "/lib/own"), 4, False),
        ("target_include_directories", ("x", "PRIVATE", "/inc"), 8, True),
    ]
    assert [item.line for item in follow(text, {}, every=False)] == [8]
