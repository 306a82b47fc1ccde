"""The best-practice examples of an asc-devkit checkout, made ready to run on the twin.

A copy of the example goes into the work folder: macros that its CMakeLists sets are written in
front, and its data_utils.h is replaced by one that needs no input files (values decide nothing in
these kernels, but the group list of the quantised one). The checkout is the user's; nothing of it
is kept in this repository.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("examples/01_simd_cpp_api/05_best_practices")
_DATA_UTILS = """#pragma once
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>
#include "acl/acl.h"
#define CHECK_ACL(x) (void)(x)
#define INFO_LOG(...)
#define WARN_LOG(...)
#define ERROR_LOG(...)
inline bool ReadFile(const std::string &path, std::size_t size, void *to, std::size_t) {
  if (path.find("groupList") == std::string::npos) return true;
  for (std::size_t i = 0; i < size / 8; ++i) static_cast<std::int64_t *>(to)[i] = 1024;
  return true;
}
inline bool WriteFile(const std::string &, const void *, std::size_t) { return true; }
"""


@dataclass(frozen=True, slots=True)
class Example:
    """One source: its file, the macro that chooses a scenario, and what else it needs."""

    path: str
    macro: str = "SCENARIO_NUM"
    macros: tuple[tuple[str, str], ...] = (("NPU_ARCH", "2201"),)
    prelude: str = ""
    edits: tuple[tuple[str, str], ...] = ()  # text of the source and what stands there instead


@dataclass(frozen=True, slots=True)
class Smaller:
    """A constant of the source made smaller: one core does the same work again and again."""

    constant: str
    value: int
    share: float  # of the published work that is left


_UB = (("COPY_DST_UB", "1"), ("ARCH_2201", "1"))
_L1 = (("COPY_DST_L1", "1"), ("ARCH_2201", "1"))
# What the twin lacks: Ceil of two numbers, a word of the vendor's compiler.
_CEIL = (
    '#include "kernel_operator.h"\n#define __kfc_workspace__\nnamespace AscendC {\n'
    "__aicore__ inline uint32_t Ceil(uint32_t a, uint32_t b) { return (a + b - 1) / b; }\n}\n"
)
# What the vendor's tiling gives is its own; the example's page says which it was: depthA1 = 4 in
# case 4 (half of it a buffer), depthB1 = 8. Case 6 asks for tiles that 24 cores take in two rounds.
_MATMUL_TILING = (
    (
        "SetTilingTypes<matmul_tiling::MultiCoreMatmulTiling, true, baseM>(tilingApi, tilingData);",
        "SetTilingTypes<matmul_tiling::MultiCoreMatmulTiling, true, baseM>(tilingApi, tilingData);"
        " if constexpr (isMdl) { tilingData.set_depthA1(4); tilingData.set_stepKa(2);"
        " tilingData.set_depthB1(8); tilingData.set_stepKb(4); }"
        " if constexpr (isL2Cache) tilingData.set_singleCoreM(SINGLE_M_L2CACHE);",
    ),
    ("SetSingleShape(SINGLE_M_L2CACHE, singleN, K)", "SetSingleShape(SINGLE_M, singleN, K)"),
    # the twin asks for the word that B comes transposed
    ("CubeFormat::ND, BType>", "CubeFormat::ND, BType, IS_TRANS_B>"),
)
EXAMPLES = {
    "add": Example("00_vector_compute/add_high_performance/add.asc", "SCENARIO"),
    "matmul": Example("01_matrix_compute/matmul_high_performance/matmul.asc", edits=_MATMUL_TILING),
    "mmad": Example("01_matrix_compute/matmul_basic_api_high_performance/mmad.asc"),
    "gelu": Example(
        "03_fusion_compute/matmul_gelu_high_performance/mmad_gelu.asc",
        edits=(
            ("CO2Layout::ROW_MAJOR, true}", "CO2Layout::ROW_MAJOR}"),
            ("CO2Layout::ROW_MAJOR, false}", "CO2Layout::ROW_MAJOR}"),
        ),
    ),
    "quant": Example(
        "03_fusion_compute/quant_group_matmul_high_performance/quant_group_matmul_custom.asc",
        prelude=_CEIL,
    ),
    "nd2nz": Example("04_memory_access/bank_conflict_nd2nz/bank_conflict_nd2nz.asc", "SCENARIO"),
    "ub": Example("04_memory_access/data_copy/data_copy.asc", macros=_UB),
    "l1": Example("04_memory_access/data_copy/data_copy.asc", macros=_L1),
}
SCENARIO = {"gelu/fused": "1"}  # where the table's name is not the scenario's number
# The twin reads the kinds of cores from the text, the branch of an #if that is not taken too.
_ONE, _TWO = "__mix__(1, 1)", "__mix__(1, 2)"
EDITS = {"quant/0": ((_TWO, _ONE),), "quant/1": ((_ONE, _TWO),), "quant/2": ((_ONE, _TWO),)}
# One core repeats the same work: a part of it is run, and the times are scaled.
SMALLER = {
    "add/0": Smaller("totalM", 32, 32 / 8192),
    "matmul/0": Smaller("M", 256, 256 / 8192),
    "matmul/1": Smaller("M", 1024, 1024 / 8192),
}


def prepare(checkout: Path, name: str, work: Path) -> Path:
    """The source of one scenario ("add/2"), ready to build, in a folder of its own below `work`."""
    kind, number = name.split("/")
    example = EXAMPLES[kind]
    source = checkout / _ROOT / example.path
    if not source.exists():
        raise SystemExit(f"{source} is not there: is {checkout} a checkout of asc-devkit?")
    folder = work / "examples" / name.replace("/", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in source.parent.iterdir():
        if file.suffix in (".h", ".asc"):
            shutil.copyfile(file, folder / file.name)
    (folder / "data_utils.h").write_text(_DATA_UTILS)
    macros = (*example.macros, (example.macro, SCENARIO.get(name, number)))
    head = "".join(f"#define {macro} {value}\n" for macro, value in macros)
    if name in SMALLER:
        _shrink(folder, SMALLER[name])
    for old, new in (*example.edits, *EDITS.get(name, ())):
        _change(folder, old, _swap(old, new))
    target = folder / source.name
    target.write_text(f"{head}#include <iostream>\n{example.prelude}#line 1\n{target.read_text()}")
    return target


def _shrink(folder: Path, smaller: Smaller) -> None:
    """The constant, in the source or in a header beside it."""
    pattern = re.compile(rf"(constexpr uint32_t {smaller.constant} = )\d+;")
    _change(folder, smaller.constant, lambda text: pattern.sub(rf"\g<1>{smaller.value};", text))


def _swap(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new)


def _change(folder: Path, what: str, change: Callable[[str], str]) -> None:
    """Every file of the folder, one of which at least must change."""
    changed = 0
    for file in sorted(folder.iterdir()):
        old = file.read_text()
        new = change(old)
        changed += old != new
        file.write_text(new)
    if not changed:
        raise SystemExit(f"{folder.name}: the example has changed, {what!r} is not there")
