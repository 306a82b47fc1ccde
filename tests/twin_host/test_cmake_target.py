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


FRAME = """set(RUN_MODE "cpu" CACHE STRING "cpu/npu")
set(SOC_VERSION "Ascend310P3" CACHE STRING "chip")
file(GLOB KERNEL_FILES ${CMAKE_CURRENT_SOURCE_DIR}/kernels/*.cpp)
if("${RUN_MODE}" STREQUAL "npu")
  include(cmake/npu.cmake)
endif()
include(cmake/npu.cmake)
add_executable(demo main.cpp plan.cpp)
target_compile_options(demo PRIVATE -O2 -D_GLIBCXX_USE_CXX11_ABI=0)
target_compile_definitions(demo PRIVATE SOC_VERSION="${SOC_VERSION}")
target_link_libraries(demo PRIVATE kernels_${RUN_MODE} tiling_api)
"""


def test_the_frame_of_kernel_launches_is_followed_through_its_files(tmp_path: Path) -> None:
    """A library of kernels from a pattern, in an included file that also includes itself."""
    (tmp_path / "CMakeLists.txt").write_text(FRAME)
    files = {
        "cmake/npu.cmake": "include(cmake/npu.cmake)\ninclude(/etc/none.cmake)\n"
        "ascendc_library(kernels_${RUN_MODE} STATIC ${KERNEL_FILES})\n"
        "ascendc_compile_definitions(kernels_${RUN_MODE} PRIVATE HAVE_WORKSPACE)\n"
        "ascendc_include_directories(kernels_${RUN_MODE} PRIVATE inc)\n",
        "inc/a.h": "",
        "kernels/add.cpp": "",
        "kernels/mul.cpp": "",
        "main.cpp": "",
        "plan.cpp": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = read_flags(tmp_path / "main.cpp", {}, "910B2")
    assert found.definitions == ('SOC_VERSION="Ascend910B2"',)
    names = [str(file.relative_to(tmp_path)) for file in found.sources]
    assert names == ["plan.cpp", "kernels/add.cpp", "kernels/mul.cpp"]
    kernel = read_flags(tmp_path / "kernels/add.cpp", {}, "910B2", tmp_path)
    assert kernel.definitions == ("HAVE_WORKSPACE",)
    assert kernel.includes == (tmp_path / "inc",)


def test_patterns_stay_in_the_folder(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (tmp_path / "secret.cpp").write_text("")
    text = "file(GLOB F ../*.cpp /etc/*.conf .)\nadd_executable(x main.cpp ${F})\n"
    (own / "CMakeLists.txt").write_text(text)
    (own / "main.cpp").write_text("")
    assert read_flags(own / "main.cpp", {}).sources == ()
