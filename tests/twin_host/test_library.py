"""Operators of a library: what lies around a project, variants for chips, several operators."""

from __future__ import annotations

import subprocess

from npusmith.twin.toolchain import INCLUDE, LIBRARY, find_compiler

# ---- the headers that libraries share


def test_headers_that_libraries_share_say_what_their_use_expects() -> None:
    text = """
#include "infershape_broadcast_util.h"
#include "infershape_elewise_util.h"
#include "op_kernel/math_util.h"
#include "op_kernel/platform_util.h"
#include "securec.h"
#include "tiling_base_class.h"
#include "tiling_base_util.h"
#include "util/const_util.h"
#include "graph/operator_reg.h"
namespace ge {
REG_OP(Foo).INPUT(x, TensorType({DT_FLOAT, DT_FLOAT16})).ATTR(n, ListInt, {1, 2})
    .OP_END_FACTORY_REG(Foo)
}
using namespace Ops::Base;
static_assert(CeilDiv(7, 2) == 4 && CeilDiv(-7, 2) == -3 && CeilDiv(5, 0) == 5);
static_assert(FloorDiv(7u, 2) == 3 && CeilAlign(33, 32) == 64 && FloorAlign(33L, 32) == 32);
"""
    command = [find_compiler().path, "-std=c++17", "-fsyntax-only", "-Werror", f"-I{INCLUDE}"]
    done = subprocess.run(
        [*command, f"-I{LIBRARY}", "-x", "c++", "-"], input=text, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[:2000]
