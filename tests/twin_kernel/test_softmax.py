"""The SoftMax family against float64 NumPy, in every documented form; its tiling on the host."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from native import INCLUDE, ROOT, Kernels, Runtime, Tensor, build_kernels, compile_errors

F32, F16 = np.float32, np.float16
FOLDER = Path(__file__).parent
KINDS = {"f32": (F32, F32), "f16": (F16, F16), "mixed": (F16, F32)}
CLOSE = {F32: 1e-5, F16: 2e-3}


@pytest.fixture(scope="session")
def kernels(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, (FOLDER / "soft.cpp").read_text(), "soft")


@dataclass
class Ran:
    """One launch: what went in, and in double precision what came out."""

    m: int
    k: int
    kind: str
    real: tuple[int, int] | None = None
    loops: int = 1
    seed: int = 0
    nz: bool = False
    old: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.data, self.stat = KINDS[self.kind]
        rng = np.random.default_rng(self.seed)
        self.x = (rng.standard_normal((self.m, self.k)) * 3).astype(self.data)
        self.y = rng.standard_normal((self.m, self.k)).astype(self.data)
        self.in_max = rng.standard_normal((self.m, 1)).astype(self.stat)
        self.in_sum = (rng.random((self.m, 1)) * 9 + 1).astype(self.stat)
        self.in_mean = rng.standard_normal((self.m, 1)).astype(F32)

    def _fractal(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(self.m, self.k // 16, 16).transpose(1, 0, 2).reshape(-1)

    def launch(self, kernels: Kernels, entry: str, second: np.ndarray | None = None) -> Ran:
        blocks = 32 // np.dtype(self.stat).itemsize
        real = self.real or (self.m, self.k)
        shape = np.array([self.m, self.k, *real, self.loops], np.int64)
        x = self._fractal(self.x) if self.nz else self.x.copy()
        stats = [np.repeat(v, blocks, 1) for v in (self.in_sum, self.in_max)]
        out = [
            np.zeros(self.x.shape, self.data),
            *(np.zeros((self.m, blocks), self.stat) for _ in range(2)),
            np.zeros((self.m, 32 // np.dtype(self.data).itemsize), self.data),
            np.zeros((self.m, blocks), self.stat),
        ]
        given = [shape, x, self.y if second is None else second, *stats]
        tensors = [Tensor(np.ascontiguousarray(v), f"in{i}", False) for i, v in enumerate(given)]
        self.outcome = kernels.launch(entry, [*tensors, *(Tensor(v) for v in out)])
        assert self.outcome.codes == []
        self.dst, self.sum, self.max, self.exp_max, self.mean = (v.astype(float) for v in out)
        if self.nz:
            flat = self.dst.reshape(self.k // 16, self.m, 16)
            self.dst = flat.transpose(1, 0, 2).reshape(self.m, self.k)
        return self

    # what float64 says
    def soft(self, update: bool = False) -> dict[str, np.ndarray]:
        rows, columns = self.real or (self.m, self.k)
        x = self.x.astype(float)[:rows, :columns]
        old_max, old_sum = self.in_max.astype(float)[:rows], self.in_sum.astype(float)[:rows]
        most = x.max(1, keepdims=True)
        most = np.maximum(most, old_max) if update else most
        e = np.exp(x - most)
        factor = np.exp(old_max - most)
        total = e.sum(1, keepdims=True) + (factor * old_sum if update else 0)
        return {"e": e, "max": most, "sum": total, "factor": factor, "dst": e / total,
                "last": factor * old_sum / total}  # fmt: skip

    def near(self, got: np.ndarray, want: np.ndarray, dtype: type | None = None) -> None:
        dtype = dtype or self.data
        rows, columns = want.shape
        floor = 1e-7 if dtype is F16 else 1e-37
        np.testing.assert_allclose(got[:rows, :columns], want, rtol=CLOSE[dtype], atol=floor)

    def spread(self, got: np.ndarray, want: np.ndarray, dtype: type | None = None) -> None:
        """Every element of a row's datablock is the row's number."""
        assert (got == got[:, :1]).all()
        self.near(got[:, :1], want, dtype or self.stat)


SHAPES = [(8, 64), (3, 16), (16, 208)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("m", "k"), SHAPES)
def test_softmax_gives_result_sum_and_maximum(kernels: Kernels, kind: str, m: int, k: int) -> None:
    ran = Ran(m, k, kind).launch(kernels, f"soft_{kind}")
    want = ran.soft()
    ran.near(ran.dst, want["dst"])
    ran.spread(ran.sum, want["sum"])
    ran.spread(ran.max, want["max"])


@pytest.mark.parametrize("kind", KINDS)
def test_padded_columns_take_no_part_in_the_reductions(kernels: Kernels, kind: str) -> None:
    ran = Ran(4, 48, kind, real=(4, 33))
    ran.x[:, 33:] = 1000.0
    ran.launch(kernels, f"soft_{kind}")
    ran.near(ran.dst, ran.soft()["dst"])
    ran.spread(ran.sum, ran.soft()["sum"])


def test_softmax_without_a_scratch_tensor_takes_what_is_left_of_ub(kernels: Kernels) -> None:
    for kind in ("f32", "mixed"):
        ran = Ran(8, 64, kind).launch(kernels, f"soft_own_{kind}")
        ran.near(ran.dst, ran.soft()["dst"])


def test_softmax_in_place_without_statistics(kernels: Kernels) -> None:
    for kind in ("f32", "f16"):
        ran = Ran(5, 32, kind).launch(kernels, f"soft_bare_{kind}")
        ran.near(ran.dst, ran.soft()["dst"])


def test_softmax_with_a_basic_block_and_with_a_constant_shape(kernels: Kernels) -> None:
    for entry in ("soft_basic_f32", "soft_fixed_f32"):
        ran = Ran(8, 64, "f32").launch(kernels, entry)
        ran.near(ran.dst, ran.soft()["dst"])


def test_softmax_of_fractals_reduces_whole_rows(kernels: Kernels) -> None:
    for kind in ("f32", "f16"):
        ran = Ran(16, 48, kind, real=(16, 40), nz=True).launch(kernels, f"soft_nz_{kind}")
        ran.near(ran.dst, ran.soft()["dst"])
        ran.spread(ran.max, ran.soft()["max"])


def test_the_shape_of_the_tensor_counts_when_the_call_gives_none(kernels: Kernels) -> None:
    ran = Ran(4, 32, "f32", real=(4, 20)).launch(kernels, "soft_shaped_f32")
    ran.near(ran.dst, ran.soft()["dst"])


@pytest.mark.parametrize("kind", KINDS)
def test_simple_softmax_uses_the_given_sum_and_maximum(kernels: Kernels, kind: str) -> None:
    ran = Ran(8, 64, kind)
    ran.in_max += 5
    ran.launch(kernels, f"simple_{kind}")
    want = np.exp(ran.x.astype(float) - ran.in_max.astype(float)) / ran.in_sum.astype(float)
    ran.near(ran.dst, want)


@pytest.mark.parametrize("kind", KINDS)
def test_softmax_flash_continues_and_rescales(kernels: Kernels, kind: str) -> None:
    first = Ran(8, 64, kind).launch(kernels, f"flash_first_{kind}")
    first.near(first.dst, first.soft()["dst"])
    ran = Ran(8, 64, kind).launch(kernels, f"flash_next_{kind}")
    want = ran.soft(update=True)
    ran.near(ran.dst, want["dst"])
    ran.spread(ran.sum, want["sum"])
    ran.spread(ran.max, want["max"])
    ran.spread(ran.exp_max, want["last"], ran.data)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("m", "k"), SHAPES)
def test_softmax_flash_v2_leaves_the_division_out(
    kernels: Kernels, kind: str, m: int, k: int
) -> None:
    first = Ran(m, k, kind).launch(kernels, f"flash2_first_{kind}")
    first.near(first.dst, first.soft()["e"])
    ran = Ran(m, k, kind).launch(kernels, f"flash2_next_{kind}")
    want = ran.soft(update=True)
    ran.near(ran.dst, want["e"])
    ran.spread(ran.sum, want["sum"])
    ran.spread(ran.max, want["max"])
    ran.spread(ran.exp_max, want["factor"], ran.data)


def test_softmax_flash_v2_in_place_with_tiling_made_by_the_kernel(kernels: Kernels) -> None:
    ran = Ran(8, 128, "f32").launch(kernels, "flash2_inplace_f32")
    want = ran.soft(update=True)
    ran.near(ran.dst, want["e"])
    ran.spread(ran.sum, want["sum"])
    ran.spread(ran.max, want["max"])


def test_pieces_of_a_row_through_flash_v2_give_the_softmax_of_the_row(kernels: Kernels) -> None:
    whole = Ran(8, 192, "f32")
    part = Ran(8, 64, "f32")
    parts: list[np.ndarray] = []
    for at in range(0, 192, 64):
        part.x = whole.x[:, at : at + 64]
        part.launch(kernels, "flash2_next_f32" if at else "flash2_first_f32")
        parts = [p * part.exp_max[:, :1] for p in parts] + [part.dst]
        part.in_max, part.in_sum = part.max[:, :1].astype(F32), part.sum[:, :1].astype(F32)
    whole.near(np.concatenate(parts, 1) / part.sum[:, :1], whole.soft()["dst"])


def test_flash_v2_without_broadcast_keeps_one_number_a_row(kernels: Kernels) -> None:
    ran = Ran(8, 64, "f32")
    numbers = np.arange(64, dtype=F32)  # the first 8 of each are read: one a row
    ran.in_max, ran.in_sum = numbers.reshape(8, 8)[:, :1] * 0, numbers.reshape(8, 8)[:, :1] * 0 + 2
    ran.launch(kernels, "flash2_narrow_f32")
    want = ran.soft(update=True)
    ran.near(ran.dst, want["e"])
    for got, name in ((ran.sum, "sum"), (ran.max, "max")):
        ran.near(got.reshape(-1)[:8].reshape(8, 1), want[name])
        assert (got.reshape(-1)[8:] == 0).all()
    ran.near(ran.mean.reshape(-1)[:8].reshape(8, 1), ran.x.astype(float).max(1, keepdims=True))


def _pasa(ran: Ran, update: bool) -> dict[str, np.ndarray]:
    scalar = 0.9375 / (1 - 0.9375)
    x = ran.x.astype(float)
    all_mean = x.mean(1, keepdims=True)
    sums = x[:, :512].reshape(ran.m, 64, 8).sum(2)
    sums += x[:, 512:].reshape(ran.m, -1, 64).sum(1)
    local = (sums.reshape(ran.m, 8, 8).sum(2) / (ran.k // 8)).repeat(ran.k // 8, 1)
    x = x - (all_mean - local) * scalar
    old_mean, old_max = ran.in_mean.astype(float), ran.in_max.astype(float)
    mean = (all_mean + old_mean * (ran.loops - 1)) / ran.loops if update else all_mean
    shift = (all_mean - mean) * scalar
    most = shift + x.max(1, keepdims=True)
    before = (old_mean - mean) * scalar
    most = np.maximum(most, before + old_max) if update else most
    e = np.exp(x - (most - shift))
    factor = np.exp(old_max - most + before)
    total = e.sum(1, keepdims=True) + (factor * ran.in_sum if update else 0)
    return {"dst": e, "max": most, "sum": total, "mean": mean, "factor": factor}


@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize("k", [512, 1024])
def test_softmax_flash_v3_follows_its_pseudo_code(kernels: Kernels, k: int, update: bool) -> None:
    ran = Ran(8, k, "mixed", loops=3)
    second = np.repeat(ran.in_mean, 8, 1)
    padded = np.zeros(ran.m * ran.k // 2, F32)
    padded[: second.size] = second.reshape(-1)
    ran.launch(kernels, "pasa_next" if update else "pasa_first", padded)
    want = _pasa(ran, update)
    ran.near(ran.dst, want["dst"])
    for got, name in ((ran.sum, "sum"), (ran.max, "max"), (ran.mean, "mean")):
        assert (got == got[:, :1]).all()
        np.testing.assert_allclose(got[:, :1], want[name], rtol=1e-4, atol=1e-4)
    if update:
        np.testing.assert_allclose(ran.exp_max[:, :1], want["factor"], rtol=2e-3, atol=1e-7)


@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_log_softmax_is_a_logarithm_to_base_ten(kernels: Kernels, kind: str) -> None:
    ran = Ran(8, 64, kind).launch(kernels, f"log_{kind}")
    want = np.log10(ran.soft()["dst"])
    np.testing.assert_allclose(ran.dst, want, rtol=CLOSE[ran.data], atol=1e-6)
    ran.spread(ran.sum, ran.soft()["sum"])


@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_softmax_grad_and_its_front_half(kernels: Kernels, kind: str) -> None:
    ran = Ran(6, 64, kind, real=(6, 50))
    ran.x[:, 50:] = ran.y[:, 50:] = 99.0
    ran.launch(kernels, f"grad_{kind}")
    x, grad = ran.x.astype(float)[:, :50], ran.y.astype(float)[:, :50]
    total = (grad * x).sum(1, keepdims=True)
    scale = np.abs((grad - total) * x).max()
    np.testing.assert_allclose(
        ran.dst[:, :50], (grad - total) * x, rtol=CLOSE[ran.data], atol=CLOSE[ran.data] * scale
    )
    ran.launch(kernels, f"front_{kind}")
    assert (ran.sum == ran.sum[:, :1]).all()
    np.testing.assert_allclose(ran.sum[:, :1], total, rtol=2e-3 if kind == "f16" else 1e-4)


def test_adjust_softmax_res_replaces_rows_by_the_bits_of_their_maximum(kernels: Kernels) -> None:
    ran = Ran(4, 16, "f32")
    ran.in_max[2] = np.uint32(0xFF7FFFFF).view(F32)
    ran.launch(kernels, "adjust_f32")
    assert (ran.dst[2] == 0).all()
    np.testing.assert_array_equal(ran.dst[[0, 1, 3]], ran.x.astype(float)[[0, 1, 3]])
    assert ran.sum[0, 0] == 1
    ran = Ran(4, 16, "f32").launch(kernels, "adjust_f32")
    assert ran.sum[0, 0] == 0


BODY = """
void f(LocalTensor<{t}> d, LocalTensor<{s}> s, LocalTensor<{s}> m, LocalTensor<{t}> x) {{
  SoftMaxTiling tiling; SoftMaxParams params{{}};
  {call};
}}
"""
LEGAL = {
    "SoftMax<float>(d, s, m, x, tiling)": ("float", "float"),
    "SoftMax<half>(d, s, m, x, tiling)": ("half", "float"),
    "SoftmaxFlashV3<half, float>(d, s, s, m, x, x, s, s, m, tiling, params)": ("half", "float"),
}
ILLEGAL = {
    "SoftMax<float>(d, s, m, x, tiling)": ("float", "half"),
    "SoftMax(d, x, tiling)": ("int32_t", "float"),
    "SoftmaxFlashV3<float, float>(d, s, s, m, x, x, s, s, m, tiling, params)": ("float", "float"),
    "LogSoftMax(d, s, m, x, LogSoftMaxTiling())": ("float", "float"),
}


def test_wrong_types_and_missing_operands_do_not_compile(runtime: Runtime) -> None:
    for call, (t, s) in LEGAL.items():
        assert compile_errors(runtime, BODY.format(t=t, s=s, call=call)) == ""
    for call, (t, s) in ILLEGAL.items():
        assert "error" in compile_errors(runtime, BODY.format(t=t, s=s, call=call))


# ---- faults

FAULTS = (FOLDER / "faults_soft.cpp").read_text()
NAMES = re.findall(r"^BOTH\((\w+)\)", FAULTS, re.MULTILINE)


@pytest.fixture(scope="session")
def faults(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, FAULTS, "faults_soft")


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_is_caught_on_its_line_and_its_near_twin_passes(faults: Kernels, name: str) -> None:
    line = FAULTS[: FAULTS.index("// caught", FAULTS.index(f"BOTH({name})"))].count("\n") + 1
    code = re.sub(r"-(of|by)-.*", "", name.replace("_", "-"))
    bad = faults.launch(f"bad_{name}", [Tensor(np.zeros(2048, F32))])
    assert {(item.code, item.line) for item in bad.findings} == {(code, line)}
    good = faults.launch(f"good_{name}", [Tensor(np.zeros(2048, F32))])
    assert good.findings == ()
    assert good.finished


# ---- host


def test_host_and_kernel_agree_on_tiling_structs(runtime: Runtime, tmp_path: Path) -> None:
    program = tmp_path / "host"
    sources = [str(FOLDER / "hosttiling.cpp"), str(ROOT / "runtime/host/tilingdata.cpp")]
    command = ["g++", *runtime.flags, "-O1", f"-I{INCLUDE}", *sources, "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([str(program)], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "good\n")
