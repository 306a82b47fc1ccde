"""Each thing that the twin checks: one kernel that must be caught, a near twin that must pass."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from native import Kernels, Outcome, Runtime, Tensor, build_kernels, compile_errors

from npusmith.errors import CODES, Level

FAULTS = Path(__file__).parent / "faults.cpp"
TEXT = FAULTS.read_text()
NAMES = re.findall(r"^BOTH\((\w+)\)", TEXT, re.MULTILINE)
RUNTIME = Path(__file__).parents[2] / "src" / "npusmith" / "twin" / "runtime"
BLOCKS = {"deadlock": (3, 3), "sync_cores": (49, 48), "cross_mode": (2, 2)}  # bad, good


def _code(name: str) -> str:
    """The code of the table that a pair's name begins with."""
    words = name.replace("_", "-")
    return max((code for code in CODES if words.startswith(code)), key=len)


def _line(name: str) -> int:
    start = TEXT.index(f"BOTH({name})")
    return TEXT[: TEXT.index("// caught", start)].count("\n") + 1


@pytest.fixture(scope="session")
def kernels(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, TEXT, "faults")


def _launch(kernels: Kernels, entry: str, blocks: int) -> Outcome:
    tensors = [
        Tensor(np.ones(1024, np.float32), "x", writable=False),
        Tensor(np.zeros(1024, np.float32), "y"),
        Tensor(np.array([256, 0], np.int64), "tiling", writable=False),
        Tensor(np.ones(1040, np.float32), "padded", writable=False, pad=64),
    ]
    return kernels.launch(entry, tensors, blocks=blocks)


@pytest.mark.parametrize("name", NAMES)
def test_the_faulty_kernel_is_caught_on_its_line(kernels: Kernels, name: str) -> None:
    outcome = _launch(kernels, f"bad_{name}", BLOCKS.get(name, (1, 1))[0])
    assert {item.code for item in outcome.findings} == {_code(name)}
    finding = outcome.findings[0]
    assert finding.line == _line(name)
    assert finding.level is CODES[finding.code].level
    assert finding.message in finding.render()


@pytest.mark.parametrize("name", NAMES)
def test_its_near_twin_passes(kernels: Kernels, name: str) -> None:
    outcome = _launch(kernels, f"good_{name}", BLOCKS.get(name, (1, 1))[1])
    assert outcome.findings == ()
    assert outcome.finished


def test_two_flags_of_fetched_ids_are_told_from_two_flags_of_one_number(kernels: Kernels) -> None:
    fetched, plain = (
        _launch(kernels, f"bad_event_pair_{name}", 1).findings[0]
        for name in ("fetched_twice", "set_twice")
    )
    assert "FetchEventID gave one id for both" in fetched.seen
    assert "AllocEventID" in fetched.hint
    assert "FetchEventID" not in plain.seen


def test_every_code_of_the_runtime_is_in_the_table_and_has_a_pair() -> None:
    # runner.cpp speaks of the run; the fence's pairs are in tests/twin_host/test_cheats.py
    apart = ("runner.cpp", "fence.cpp")
    files = [path for path in RUNTIME.rglob("*.cpp") if path.parent.name != "host"]
    text = "".join(path.read_text() for path in files if path.name not in apart)
    reported = set(re.findall(r'Report\(\s*(?:\{[^}]*\}|[\w>.-]+),\s*"([a-z-]+)"', text))
    assert len(reported) > 25
    assert reported <= set(CODES)
    assert {CODES[code].area for code in reported} == {"twin"}
    files = sorted(FAULTS.parent.glob("faults*.cpp"))
    text = "".join(path.read_text() for path in files)
    pairs = re.findall(r"^BOTH\((\w+)\)", text, re.MULTILINE)
    assert reported <= {_code(name.removeprefix("manual_")) for name in pairs}


def test_repetitions_of_a_finding_are_counted_and_the_first_step_is_kept(runtime: Runtime) -> None:
    body = """#include "kernel_operator.h"
    using namespace AscendC;
    extern "C" void entry(void **args) {
      TPipe pipe;
      TBuf<TPosition::VECCALC> buf;
      pipe.InitBuffer(buf, 1024);
      auto x = buf.Get<float>();
      for (int i = 0; i < 5; ++i) {
        Duplicate(x, 1.0f, i < 2 ? 256 : 257);
      }
    }"""
    outcome = build_kernels(runtime, body, "repeated").launch("entry", [])
    assert [item.code for item in outcome.findings] == ["ub-bounds"]
    assert (outcome.findings[0].count, outcome.findings[0].step) == (3, 2)


GENTLE = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" void top_of_ub(void **args) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> all;
  pipe.InitBuffer(all, TWIN_UB_BYTES + 4096);
  auto x = all.Get<float>();
  auto mask = x[1024].ReinterpretCast<uint8_t>();
  Duplicate(x, 1.0f, 64);
  Duplicate(mask.ReinterpretCast<uint16_t>(), uint16_t(1), 16);
  Select(x, mask, x, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64);
}
extern "C" void one_too_many(void **args) {
  TPipe pipe;
  TQue<TPosition::VECOUT, 1> out;
  pipe.InitBuffer(out, 1, 256);
  auto x = out.AllocTensor<float>();
}"""


@pytest.mark.parametrize(
    ("entry", "code"), [("top_of_ub", "ub-reserved"), ("one_too_many", "queue-leak")]
)
def test_what_harms_nothing_is_a_warning(runtime: Runtime, entry: str, code: str) -> None:
    """Published operators have one buffer over all of UB and leave its top alone, and take the
    tensor of a turn of their loop that does not come."""
    outcome = build_kernels(runtime, GENTLE, "gentle").launch(entry, [])
    assert [(item.code, item.level) for item in outcome.findings] == [(code, Level.WARNING)]


ILLEGAL = {
    "a constant repeat of 256": (
        "void f(LocalTensor<float> a) { Add(a, a, a, uint64_t(64), 256, {}); }"
    ),
    "a constant stride of 300": (
        "void f(LocalTensor<float> a) { Add(a, a, a, uint64_t(64), 1, {1, 1, 1, 8, 8, 300}); }"
    ),
    "arithmetic on bfloat16": "void f(LocalTensor<bfloat16_t> a) { Add(a, a, a, 64); }",
    "And on float": "void f(LocalTensor<float> a) { And(a, a, a, 64); }",
    "a scalar of another type": "void f(LocalTensor<float> a) { Adds(a, a, 1, 64); }",
    "a cast pair that is not there": (
        "void f(LocalTensor<half> a, LocalTensor<bfloat16_t> b) "
        "{ Cast(a, b, RoundMode::CAST_NONE, 64); }"
    ),
    "the 2D load of another chip": (
        "void f(LocalTensor<half> a) { LoadData(a, a, LoadData2DParamsV2()); }"
    ),
    "a tensor of long double": "void f(LocalTensor<long double> a) { a.GetSize(); }",
    "arithmetic on a bfloat16 scalar": "bfloat16_t f(bfloat16_t a) { return a + a; }",
}
LEGAL = (
    "void f(LocalTensor<float> a, LocalTensor<half> h, LocalTensor<bfloat16_t> b, int n) {"
    " Add(a, a, a, uint64_t(64), 255, {1, 1, 1, 8, 8, 255}); Add(a, a, a, uint64_t(64), n, {});"
    " Adds(a, a, 1.0f, 64); Adds<float>(a, a, 1, 64); Adds(h, h, half(1), 64);"
    " Cast(b, a, RoundMode::CAST_RINT, 64); Duplicate(b, bfloat16_t(1.0f), 64);"
    " half x = 1.0; x = x + 1; x += 0.5f; float y = x * 2.0f; double z = x; half w(y);"
    " if (x > 0.5f && w < x) Exp(a, a, 64); (void)z; }"
    " template <typename T> void never(LocalTensor<T> a)"
    " { LoadData2DParamsV2 how; how.mStep = 1; LoadData(a, a, how); }"
)


@pytest.mark.parametrize("what", ILLEGAL)
def test_what_the_chip_cannot_do_does_not_compile(runtime: Runtime, what: str) -> None:
    assert "error" in compile_errors(runtime, ILLEGAL[what])


def test_what_the_chip_can_do_compiles(runtime: Runtime) -> None:
    assert compile_errors(runtime, LEGAL) == ""


def test_a_type_error_names_the_operation_and_the_legal_types(runtime: Runtime) -> None:
    errors = compile_errors(runtime, ILLEGAL["arithmetic on bfloat16"])
    assert "Add on dav-2201 takes half, float, int16_t or int32_t" in errors


def test_a_store_that_is_rounded_up_into_padding_is_a_warning(kernels: Kernels) -> None:
    tensors = [Tensor(np.zeros(1024, np.float32), name) for name in ("x", "y", "z")]
    padded = Tensor(np.zeros(1040, np.float32), "padded", pad=48)  # 1028 elements
    outcome = kernels.launch("rounded_store", [*tensors, padded])
    assert [(item.code, item.level) for item in outcome.findings] == [
        ("gm-bounds", Level.WARNING), ("gm-bounds", Level.ERROR),
    ]  # fmt: skip
