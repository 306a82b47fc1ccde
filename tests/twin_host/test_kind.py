"""On which cores a kernel runs, read off its text."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.twin.kind import Kind, read_kinds

HEAD = '#include "kernel_operator.h"\nusing namespace AscendC;\n'
ENTRY = 'extern "C" __global__ __aicore__ void k(GM_ADDR x) {\n%s\n}\n'
KERNEL = Path("/project/op_kernel/k.cpp")


def kinds(body: str, head: str = HEAD) -> Kind:
    return read_kinds({KERNEL: head + ENTRY % body}, KERNEL).default


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("Add(z, x, y, 64);", Kind.AIV_ONLY),
        ("DataCopy(z, x, 64);", Kind.AIV_ONLY),
        ("Mmad(c, a, b, how); Fixpipe(gm, c, out);", Kind.AIC_ONLY),
        (
            "if ASCEND_IS_AIV { Adds(x, x, 1.0f, 64); } else { Mmad(c, a, b, how); }",
            Kind.MIX_AIC_1_2,
        ),
        ("REGIST_MATMUL_OBJ(&pipe, ws, mm, &tiling);", Kind.MIX_AIC_1_2),
        ("// Mmad(c, a, b, how);\nAdd(z, x, y, 64);", Kind.AIV_ONLY),
        ('printf("; Add(a)"); Mmad(c, a, b, how);', Kind.AIC_ONLY),
        ("Mmad(c, a, b, how); int least = Min(1, 2); static Coord Min(Coord a);", Kind.AIC_ONLY),
    ],
)
def test_instructions_tell_the_cores(body: str, kind: Kind) -> None:
    assert kinds(body) is kind


def test_every_instruction_of_the_table_tells_the_cores_and_sizes_do_not() -> None:
    assert kinds("Mmad(c, a, b, p); CumSum(y, y, x, tmp, info);").vector
    assert kinds("Mmad(c, a, b, p); auto rows = Ceil(m, 16); Round(rows);") is Kind.AIC_ONLY


def test_without_the_namespace_only_qualified_names_count() -> None:
    head = '#include "kernel_operator.h"\n'
    assert kinds("AscendC::Mmad(c, a, b, how); Add(1, 2);", head) is Kind.AIC_ONLY
    assert kinds("AscendC::Mmad(c, a, b, how); AscendC::Add(z, x, y, 64);", head).vector


def test_what_the_kernel_declares_wins_over_its_instructions() -> None:
    body = "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1); Add(z, x, y, 64);"
    assert kinds(body) is Kind.MIX_AIC_1_1


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("__vector__", Kind.AIV_ONLY),
        ("__cube__", Kind.AIC_ONLY),
        ("__mix__(1, 1)", Kind.MIX_AIC_1_1),
        ("__mix__(1,2)", Kind.MIX_AIC_1_2),
        ("__mix__(0, 1)", Kind.MIX_AIV_1_0),
    ],
)
def test_words_at_the_entry_declare_it_too(word: str, kind: Kind) -> None:
    text = HEAD + f"__global__ {word} void k(GM_ADDR x) {{ Mmad(c, a, b, how); }}"
    assert read_kinds({KERNEL: text}, KERNEL).default is kind


def test_a_tiling_key_may_have_its_own_type() -> None:
    body = """
    if (TILING_KEY_IS(CUBE_KEY)) { KERNEL_TASK_TYPE(CUBE_KEY, KERNEL_TYPE_AIC_ONLY); }
    else if (TILING_KEY_IS(11)) { KERNEL_TASK_TYPE(11, KERNEL_TYPE_MIX_AIC_1_2); }
    """
    text = HEAD + "constexpr int CUBE_KEY = 10;\n" + ENTRY % body
    found = read_kinds({KERNEL: text}, KERNEL)
    assert found.of(10) is Kind.AIC_ONLY
    assert found.of(11) is Kind.MIX_AIC_1_2
    assert found.of(12) is Kind.AIV_ONLY
    assert found.cube and found.vector


def test_local_headers_count_and_strange_ones_do_not() -> None:
    beside, other = KERNEL.parent / "block.h", KERNEL.parent / "other.h"
    texts = {
        KERNEL: HEAD + '#include "block.h"\n' + ENTRY % "Run();",
        beside: "inline void Run() { Mmad(c, a, b, how); }",
        other: "inline void Walk() { Add(z, x, y, 64); }",
    }
    assert read_kinds(texts, KERNEL).default is Kind.AIC_ONLY
