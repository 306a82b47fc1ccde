"""Template tiling: instances are told from the text, and the key that host code sets picks one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from npusmith.errors import TwinError
from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.twin import build, read_project, run
from npusmith.twin.template import find_instances, is_template, namespaces

F32 = DType.FLOAT32
Edit = Callable[..., Path]

ARGUMENTS = """#pragma once
#include "ascendc/host_api/tiling/template_argument.h"
#define SLOW 3
ASCENDC_TPL_ARGS_DECL(Bump,
    ASCENDC_TPL_DATATYPE_DECL(D, C_DT_FLOAT, C_DT_FLOAT16, ASCENDC_TPL_INPUT(0)),
    ASCENDC_TPL_UINT_DECL(STEP, 8, ASCENDC_TPL_UI_MIX, 1, 1, SLOW, 200),
    ASCENDC_TPL_BOOL_DECL(TWICE, 0, 1), );
ASCENDC_TPL_SEL(
    ASCENDC_TPL_ARGS_SEL(
        ASCENDC_TPL_KERNEL_TYPE_SEL(ASCENDC_TPL_AIV_ONLY),
        ASCENDC_TPL_DATATYPE_SEL(D, C_DT_FLOAT),
        ASCENDC_TPL_UINT_SEL(STEP, ASCENDC_TPL_UI_MIX, 1, 1, SLOW, 200),
        ASCENDC_TPL_BOOL_SEL(TWICE, 0, 1), ),
    ASCENDC_TPL_ARGS_SEL(
        ASCENDC_TPL_DATATYPE_SEL(D, C_DT_FLOAT16),
        ASCENDC_TPL_UINT_SEL(STEP, ASCENDC_TPL_UI_LIST, 200),
        ASCENDC_TPL_BOOL_SEL(TWICE, 0), ), );
"""


def test_every_combination_of_every_selection_is_an_instance() -> None:
    found = [item.arguments for item in find_instances(ARGUMENTS)]
    floats = [("float", step, twice) for step in ("1", "2", "3", "200") for twice in ("0", "1")]
    assert found == [*floats, ("half", "200", "0")]
    assert is_template(ARGUMENTS)


def test_macros_that_stand_for_several_arguments_are_replaced() -> None:
    old = """        ASCENDC_TPL_UINT_SEL(STEP, ASCENDC_TPL_UI_LIST, 200),
        ASCENDC_TPL_BOOL_SEL(TWICE, 0), ), );"""
    macros = """#define STEPS(kind, step) ASCENDC_TPL_UINT_SEL(STEP, kind, step), \\
    ASCENDC_TPL_BOOL_SEL(TWICE, 0),
#define LISTED(...) STEPS(ASCENDC_TPL_UI_##__VA_ARGS__)
"""
    assert old in ARGUMENTS
    text = macros + ARGUMENTS.replace(old, "        LISTED(LIST, 200) ), );")
    assert find_instances(text) == find_instances(ARGUMENTS)
    with pytest.raises(TwinError, match="never end"):
        find_instances("#define LISTED(x) LISTED(x)\n" + text.replace(macros, ""))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ASCENDC_TPL_BOOL_SEL(TWICE, 0), ), );", "), );"),
        ("UI_MIX, 1, 1, SLOW, 200),\n        ASC", "UI_MIX, 1, 1, x, 200),\n        ASC"),
        ("ASCENDC_TPL_UI_LIST, 200", "ASCENDC_TPL_UI_RANGE, 1, 0, 100000"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_refused(old: str, new: str) -> None:
    assert old in ARGUMENTS
    with pytest.raises(TwinError) as caught:
        find_instances(ARGUMENTS.replace(old, new))
    assert caught.value.code == "tiling-template"


def test_the_key_of_the_host_picks_the_instance(edited: Edit, chip: Chip) -> None:
    root = edited("bump")
    (root / "op_kernel/arguments.h").write_text(ARGUMENTS)
    kernel = root / "op_kernel/bump.cpp"
    kernel.write_text(
        '#include "kernel_operator.h"\n#include "arguments.h"\n'
        "template <typename D, uint32_t STEP, bool TWICE>\n"
        "__global__ __aicore__ void bump(GM_ADDR x, GM_ADDR xRef, GM_ADDR work, GM_ADDR tiling) {\n"
        "  AscendC::GlobalTensor<D> g;\n  g.SetGlobalBuffer((__gm__ D *)x, 1);\n"
        "  g.SetValue(0, g.GetValue(0) + STEP * (TWICE ? 2 : 1));\n}\n"
    )
    host = root / "op_host/bump.cpp"
    text = host.read_text()
    lines = "  ASCENDC_TPL_SEL_PARAM(context, ge::DT_FLOAT, 200, true);\n"
    at = text.index("return ge::GRAPH_SUCCESS")
    host.write_text('#include "../op_kernel/arguments.h"\n' + text[:at] + lines + text[at:])
    built = build(read_project(root), chip, (F32, F32))
    result = run(built, [np.ones(1, np.float32)], [((1,), F32)])
    assert [item.code for item in result.findings if item.level.value == "error"] == []
    assert result.outputs[0][0] == 401
    key = "context->SetTilingKey(GET_TPL_TILING_KEY(ge::DT_FLOAT, 200, true))"
    host.write_text(host.read_text().replace(lines.strip().rstrip(";"), key))
    built = build(read_project(root), chip, (F32, F32))
    assert run(built, [np.ones(1, np.float32)], [((1,), F32)]).outputs[0][0] == 401
    host.write_text(host.read_text().replace("200, true", "7, true"))
    built = build(read_project(root), chip, (F32, F32))
    result = run(built, [np.ones(1, np.float32)], [((1,), F32)])
    assert "kernel-assert" in [item.code for item in result.findings]


def test_arguments_in_a_namespace_are_found_there() -> None:
    text = f"namespace a {{ int x; }}\nnamespace b::c {{\nnamespace d {{\n{ARGUMENTS}\n}} }}\n"
    assert namespaces(text) == ["::b::c::d"]
    assert namespaces(ARGUMENTS) == []
    assert find_instances(text) == find_instances(ARGUMENTS)
