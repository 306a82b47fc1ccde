"""Every kernel-side header compiles by itself, without a warning."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

from native import INCLUDE, Runtime

from npusmith.target.chips import CHIPS
from npusmith.target.header import chip_header

HOST = {"launch.h", "direct.h", "entry.h"}


def _complaints(runtime: Runtime, header: str) -> str:
    command = [
        "g++",
        *runtime.flags,
        "-Werror",
        "-fsyntax-only",
        "-x",
        "c++",
        "-o",
        os.devnull,
        "-",
    ]
    text = f'#include "{header}"\n'
    return subprocess.run(command, input=text, capture_output=True, text=True).stderr


def test_each_header_compiles_alone(runtime: Runtime) -> None:
    headers = [f"twin/{path.name}" for path in sorted((INCLUDE / "twin").glob("*.h"))]
    headers = [name for name in headers if name.split("/")[1] not in HOST]
    with ThreadPoolExecutor(2) as pool:
        complaints = dict(
            zip(headers, pool.map(lambda h: _complaints(runtime, h), headers), strict=True)
        )
    assert len(headers) > 20
    assert {name: text for name, text in complaints.items() if text} == {}


def test_forwarding_headers_lead_to_the_umbrella(runtime: Runtime) -> None:
    names = (
        "kernel_tiling/kernel_tiling.h",
        "kernel_utils.h",
        "lib/math/kernel_operator_tan_intf.h",
    )
    for name in names:
        assert '#include "kernel_operator.h"' in (INCLUDE / name).read_text()
        assert _complaints(runtime, name) == ""


def test_the_chip_header_states_the_facts_of_the_table() -> None:
    for chip in CHIPS.values():
        text = chip_header(chip)
        assert f"#define TWIN_VECTOR_CORES {chip.vector_cores} " in text
        assert f"#define TWIN_UB_TOTAL_BYTES {chip.ub_total_bytes} " in text
        assert f"#define TWIN_UB_BYTES {chip.ub_bytes} " in text
