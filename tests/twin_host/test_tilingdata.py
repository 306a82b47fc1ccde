"""Every documented way in which a kernel reads its tiling, and how it asks for its key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.twin import Build, build, read_project, run

F32 = DType.FLOAT32
Edit = Callable[..., Path]

STRUCTS = """#pragma once
#include <cstdint>
struct Inner { int32_t one; int32_t list[4]; };
struct Plan { int64_t total; float scale; Inner inner; };
"""
KERNEL = """#include "kernel_operator.h"
#include "plan.h"
REGISTER_TILING_DEFAULT(Plan);
REGISTER_TILING_FOR_TILINGKEY("TILING_KEY_VAR > 100", Inner);
REGISTER_NONE_TILING;
extern "C" __global__ __aicore__ void bump(GM_ADDR x, GM_ADDR xRef, GM_ADDR work, GM_ADDR tiling) {
  GET_TILING_DATA(all, tiling);
  GET_TILING_DATA_WITH_STRUCT(Plan, same, tiling);
  GET_TILING_DATA_MEMBER(Plan, scale, scale, tiling);
  GET_TILING_DATA_PTR_WITH_STRUCT(Plan, plan, tiling);
  COPY_TILING_WITH_STRUCT(Inner, &plan->inner, byAddress);
  COPY_TILING_WITH_STRUCT(Inner, plan->inner, inner);
  COPY_TILING_WITH_ARRAY(int32_t, 4, plan->inner.list, list);
  AscendC::GlobalTensor<float> g;
  g.SetGlobalBuffer((__gm__ float *)x, 1);
  float sum = all.total + same.inner.list[1] * 10 + scale + inner->one * 1000 +
              (*list)[3] * 100000 + (byAddress->one - inner->one);
  if (TILING_KEY_IS(7)) sum += 0.25f;
  if (TILING_KEY_LIST(7, 8)) sum += 0.0625f;
  if (TILING_KEY_VAR == 9) sum = -1;
  g.SetValue(0, sum);
}
"""
HOST = """  Plan *plan = context->GetTilingData<Plan>();
  *plan = Plan{3, 0.5f, Inner{4, {5, 6, 7, 8}}};
  context->SetTilingKey(KEY);
"""


@pytest.fixture
def with_key(edited: Edit, chip: Chip) -> Callable[[int], Build]:
    def make(key: int) -> Build:
        root = edited("bump")
        (root / "op_kernel/plan.h").write_text(STRUCTS)
        (root / "op_kernel/bump.cpp").write_text(KERNEL)
        host = root / "op_host/bump.cpp"
        text = host.read_text()
        at = text.index("return ge::GRAPH_SUCCESS")
        lines = HOST.replace("KEY", str(key))
        host.write_text('#include "../op_kernel/plan.h"\n' + text[:at] + lines + text[at:])
        return build(read_project(root), chip, (F32, F32))

    return make


def value(built: Build) -> float:
    result = run(built, [np.ones(1, np.float32)], [((1,), F32)])
    assert [item.code for item in result.findings if item.level.value == "error"] == []
    return float(result.outputs[0][0])


def test_every_way_to_read_tiling_gives_the_hosts_values(
    with_key: Callable[[int], Build],
) -> None:
    assert value(with_key(1)) == 3 + 60 + 0.5 + 4000 + 800000


@pytest.mark.parametrize(("key", "more"), [(7, 0.3125), (8, 0.0625)])
def test_a_key_list_takes_either_key(
    with_key: Callable[[int], Build], key: int, more: float
) -> None:
    assert value(with_key(key)) == np.float32(804063.5 + more)
