"""Normalisations against float64 NumPy, in every documented form, and the vendor's examples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from native import Kernels, Runtime, Tensor, build_kernels, compile_errors

F32, F16 = np.float32, np.float16
FOLDER = Path(__file__).parent
TYPES = {"f32": F32, "f16": F16}
CLOSE = {F32: 1e-5, F16: 2e-3}
BYTES = 4096
EPS = 1e-3


@pytest.fixture(scope="session")
def kernels(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, (FOLDER / "norm.cpp").read_text(), "norm")


def _padded(values: np.ndarray) -> np.ndarray:
    raw = np.zeros(BYTES, np.uint8)
    flat = np.ascontiguousarray(values).view(np.uint8).reshape(-1)
    raw[: flat.size] = flat
    return raw


@dataclass
class Out:
    raw: np.ndarray

    def read(self, dtype: type, *shape: int) -> np.ndarray:
        count = int(np.prod(shape))
        return self.raw.view(dtype)[:count].reshape(shape).astype(float)


def _launch(kernels: Kernels, entry: str, shape: tuple[int, ...], *inputs: np.ndarray) -> list[Out]:
    numbers = np.zeros(5, np.int64)
    numbers[: len(shape)] = shape
    numbers[4] = round(EPS * 1e6)
    given = [_padded(v) for v in inputs] + [np.zeros(BYTES, np.uint8)] * (6 - len(inputs))
    out = [np.zeros(BYTES, np.uint8) for _ in range(3)]
    tensors = [Tensor(numbers), *(Tensor(v, f"in{i}", False) for i, v in enumerate(given))]
    outcome = kernels.launch(entry, [*tensors, *map(Tensor, out)])
    assert outcome.codes == []
    return [Out(v) for v in out]


@dataclass
class Case:
    """A matrix with scale and shift per column."""

    rows: int
    h: int
    real: int
    dtype: type

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.h)
        self.x = (rng.standard_normal((self.rows, self.h)) * 2 + 0.5).astype(self.dtype)
        self.x[:, self.real :] = 0
        self.more = rng.standard_normal((self.rows, self.h)).astype(self.dtype)
        self.gamma, self.beta = (rng.random(self.h) + 0.5 for _ in range(2))
        self.wide = self.x.astype(float)[:, : self.real]

    def weights(self, dtype: type) -> tuple[np.ndarray, np.ndarray]:
        return self.gamma.astype(dtype), self.beta.astype(dtype)

    def layer(self, x: np.ndarray, dtype: type) -> dict[str, np.ndarray]:
        gamma, beta = (v.astype(float)[: self.real] for v in self.weights(dtype))
        mean, var = x.mean(1, keepdims=True), x.var(1, keepdims=True)
        rstd = 1 / np.sqrt(var + float(self.dtype(EPS)) if dtype is self.dtype else var + EPS)
        plain = (x - mean) * rstd
        return {"y": plain * gamma + beta, "mean": mean, "var": var, "rstd": rstd, "plain": plain}

    def near(self, out: Out, want: np.ndarray, dtype: type | None = None) -> None:
        dtype = dtype or self.dtype
        width = self.h if want.shape[1] == self.real else want.shape[1]
        got = out.read(dtype, want.shape[0], width)[:, : want.shape[1]]
        scale = float(np.abs(want).max())
        np.testing.assert_allclose(got, want, rtol=CLOSE[dtype], atol=CLOSE[dtype] * scale / 10)


@pytest.fixture(params=[(4, 64, 64, F32), (4, 64, 64, F16), (3, 48, 41, F32), (3, 48, 41, F16)])
def case(request: pytest.FixtureRequest) -> Case:
    return Case(*request.param)


def _kind(case: Case) -> str:
    return "f32" if case.dtype is F32 else "f16"


@pytest.mark.parametrize("entry", ["layer", "layer_inplace"])
def test_layer_norm_gives_output_mean_and_variance(
    kernels: Kernels, case: Case, entry: str
) -> None:
    gamma, beta = case.weights(case.dtype)
    shape = (case.rows, case.h, case.real)
    y, mean, var = _launch(kernels, f"{entry}_{_kind(case)}", shape, case.x, gamma, beta)
    want = case.layer(case.wide, case.dtype)
    case.near(y, want["y"])
    case.near(mean, want["mean"])
    case.near(var, want["var"])


def test_layer_norm_of_two_axes_gives_rstd_in_float(kernels: Kernels, case: Case) -> None:
    gamma, beta = case.weights(F32)
    shape = (case.rows, case.h, case.real)
    y, mean, rstd = _launch(kernels, f"layer_rstd_{_kind(case)}", shape, case.x, gamma, beta)
    want = case.layer(case.wide, F32)
    case.near(y, want["y"])
    case.near(mean, want["mean"], F32)
    case.near(rstd, want["rstd"], F32)


def test_layer_norm_without_gamma_and_beta(kernels: Kernels, case: Case) -> None:
    gamma, beta = case.weights(case.dtype)
    shape = (case.rows, case.h, case.real)
    y, _, rstd = _launch(kernels, f"layer_plain_{_kind(case)}", shape, case.x, gamma, beta)
    mean, var = case.wide.mean(1, keepdims=True), case.wide.var(1, keepdims=True)
    case.near(y, (case.wide - mean) / np.sqrt(var + EPS))
    case.near(rstd, 1 / np.sqrt(var + EPS), F32)


def test_normalize_takes_mean_and_variance_from_before(kernels: Kernels, case: Case) -> None:
    gamma, beta = case.weights(F32)
    rng = np.random.default_rng(1)
    mean, var = rng.standard_normal(case.rows).astype(F32), rng.random(case.rows).astype(F32)
    shape = (case.rows, case.h, case.real)
    entry = f"normalize_{_kind(case)}"
    y, rstd, _ = _launch(kernels, entry, shape, case.x, gamma, beta, mean, var)
    want = 1 / np.sqrt(var.astype(float)[:, None] + EPS)
    plain = (case.wide - mean.astype(float)[:, None]) * want
    wide = [v.astype(float)[: case.real] for v in (gamma, beta)]
    case.near(y, plain * wide[0] + wide[1])
    case.near(rstd, want, F32)


def test_deep_norm_is_layer_norm_of_a_scaled_residual(kernels: Kernels, case: Case) -> None:
    gamma, beta = case.weights(case.dtype)
    shape = (case.rows, case.h, case.real)
    entry = f"deep_{_kind(case)}"
    y, mean, var = _launch(kernels, entry, shape, case.x, gamma, beta, case.more)
    x = case.wide * 0.5 + case.more.astype(float)[:, : case.real]
    want = case.layer(x, case.dtype)
    case.near(y, want["y"])
    case.near(mean, want["mean"])
    case.near(var, want["var"])  # the page's own example prints it under the name rstdLocal


def test_deep_norm_gives_what_its_page_prints(kernels: Kernels) -> None:
    # doc: DeepNorm's example; by its means alpha is -5.5 there (ours is 0.5), and by its result
    # epsilon is 65558, so that only these two are compared
    x = np.arange(64, dtype=F32).reshape(8, 8) * -11
    more = np.arange(64, dtype=F32).reshape(8, 8)
    weights = np.arange(8, dtype=F32)
    _, mean, var = _launch(kernels, "deep_f32", (8, 8, 8), x, weights, weights, more)
    np.testing.assert_allclose(mean.read(F32, 8, 1)[:, 0], [-15.75 - 36 * i for i in range(8)])
    np.testing.assert_allclose(var.read(F32, 8, 1)[:, 0], [106.3125] * 8)


def test_rms_norm_divides_by_the_root_mean_square(kernels: Kernels, case: Case) -> None:
    gamma, _ = case.weights(case.dtype)
    shape = (case.rows, case.h, case.real)
    y, *_ = _launch(kernels, f"rms_{_kind(case)}", shape, case.x, gamma)
    root = np.sqrt((case.wide**2).mean(1, keepdims=True) + float(case.dtype(EPS)))
    case.near(y, case.wide / root * gamma.astype(float)[: case.real])


@pytest.mark.parametrize("kind", TYPES)
def test_batch_norm_goes_over_the_first_axis_with_a_scale_for_each_batch(
    kernels: Kernels, kind: str
) -> None:
    case = Case(8, 32, 32, TYPES[kind])
    gamma, beta = (np.resize(v, 8).astype(case.dtype) for v in (case.gamma, case.beta))
    y, mean, var = _launch(kernels, f"batch_{kind}", (8, 32), case.x, gamma, beta)
    m, v = case.wide.mean(0, keepdims=True), case.wide.var(0, keepdims=True)
    plain = (case.wide - m) / np.sqrt(v + float(case.dtype(EPS)))
    case.near(y, plain * gamma.astype(float)[:, None] + beta.astype(float)[:, None])
    case.near(mean, m)
    case.near(var, v)


@pytest.mark.parametrize("kind", TYPES)
def test_group_norm_scales_by_channel(kernels: Kernels, kind: str) -> None:
    n, channels, area, groups = 2, 8, 8, 4
    case = Case(n, channels * area, channels * area, TYPES[kind])
    gamma, beta = (v[:channels].astype(case.dtype) for v in (case.gamma, case.beta))
    shape = (n, channels * area, channels, groups)
    y, mean, var = _launch(kernels, f"group_{kind}", shape, case.x, gamma, beta)
    x = case.wide.reshape(n * groups, -1)
    m, v = x.mean(1, keepdims=True), x.var(1, keepdims=True)
    plain = ((x - m) / np.sqrt(v + float(case.dtype(EPS)))).reshape(n, channels, area)
    want = plain * gamma.astype(float)[:, None] + beta.astype(float)[:, None]
    case.near(y, want.reshape(n, -1))
    case.near(mean, m)
    case.near(var, v)


def test_layer_norm_grad_follows_its_formula(kernels: Kernels, case: Case) -> None:
    gamma, _ = case.weights(case.dtype)
    x = case.wide
    mean, var = (v.astype(case.dtype) for v in (x.mean(1), x.var(1)))
    shape = (case.rows, case.h, case.real)
    dy = case.more
    entry = f"grad_{_kind(case)}"
    pd_x, for_gamma, _ = _launch(kernels, entry, shape, dy, gamma, gamma, case.x, var, mean)
    m, v = mean.astype(float)[:, None], var.astype(float)[:, None]
    root = 1 / np.sqrt(v + float(case.dtype(EPS)))
    one = dy.astype(float)[:, : case.real] * gamma.astype(float)[: case.real]
    pd_var = (-0.5 * one * (x - m) * root**3).sum(1, keepdims=True)
    pd_mean = -(one * root).sum(1, keepdims=True)
    pd_mean += pd_var / case.real * (-2 * (x - m)).sum(1, keepdims=True)
    case.near(pd_x, one * root + pd_var * 2 / case.real * (x - m) + pd_mean / case.real)
    case.near(for_gamma, (x - m) * root)


def test_layer_norm_grad_beta_sums_over_the_rows(kernels: Kernels, case: Case) -> None:
    shape = (case.rows, case.h, case.real)
    unused = np.zeros(4, F32)
    entry = f"beta_{_kind(case)}"
    gamma, beta, _ = _launch(kernels, entry, shape, case.x, unused, unused, case.more)
    dy = case.more.astype(float)[:, : case.real]
    case.near(gamma, (case.wide * dy).sum(0, keepdims=True))
    case.near(beta, dy.sum(0, keepdims=True))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("tail", [64, 24])
def test_welford_gives_mean_and_variance_of_all_pieces(
    kernels: Kernels, kind: str, tail: int
) -> None:
    x = np.random.default_rng(tail).standard_normal((4, 64)).astype(TYPES[kind]) + TYPES[kind](3)
    mean, var, _ = _launch(kernels, f"welford_{kind}", (4, 64, tail), x)
    seen = x.astype(float).reshape(-1)[: 3 * 64 + tail]
    np.testing.assert_allclose(mean.read(F32, 1), seen.mean(), rtol=1e-5)
    np.testing.assert_allclose(var.read(F32, 1), seen.var(), rtol=1e-5)


# ---- numbers printed on the vendor's pages


def test_welford_finalize_with_counts_gives_what_its_page_prints(kernels: Kernels) -> None:
    numbers = np.arange(32, dtype=F32)
    mean, var, _ = _launch(kernels, "finalize_counts", (1,), numbers, numbers, np.full(32, 4, "i4"))
    np.testing.assert_array_equal(mean.read(F32, 8), [0.484375] + [0] * 7)
    np.testing.assert_allclose(var.read(F32, 8), [9.831062] + [0] * 7, rtol=1e-7)


def test_rms_norm_gives_what_its_page_prints(kernels: Kernels) -> None:
    numbers = np.arange(16, dtype=F32)
    y, *_ = _launch(kernels, "rms_f32", (1, 16, 16), numbers, numbers)
    want = [0, 0.11359233, 0.4543693, 1.022331, 1.8174772, 2.8398082, 4.089324, 5.566024]
    np.testing.assert_allclose(y.read(F32, 8), want, rtol=2e-5)  # the page's epsilon is not told


def test_group_norm_gives_what_its_page_prints(kernels: Kernels) -> None:
    weights = np.arange(8, dtype=F32)
    shape = (2, 64, 8, 4)
    y, mean, var = _launch(kernels, "group_f32", shape, np.arange(128, dtype=F32), weights, weights)
    np.testing.assert_array_equal(mean.read(F32, 8), [7.5 + 16 * i for i in range(8)])
    np.testing.assert_array_equal(var.read(F32, 8), [21.25] * 8)
    want = [1.1084652, 1.3253956, 1.542326, 1.7592564, 1.9761869, 2.1931171, 2.4100475, 2.6269782]
    np.testing.assert_allclose(y.read(F32, 16)[8:], want, rtol=2e-4)


def test_batch_norm_gives_what_its_page_prints(kernels: Kernels) -> None:
    weights = np.arange(8, dtype=F32)
    y, mean, var = _launch(kernels, "batch_f32", (8, 8), np.arange(64, dtype=F32), weights, weights)
    np.testing.assert_array_equal(mean.read(F32, 8), np.arange(28, 36))
    np.testing.assert_array_equal(var.read(F32, 8), [336] * 8)
    np.testing.assert_allclose(y.read(F32, 8, 8)[2], [0.6907122] * 8, rtol=1e-4)


def test_normalisations_take_half_and_float_only(runtime: Runtime) -> None:
    body = "void f(LocalTensor<{}> x) {{ RmsNormTiling t; RmsNorm(x, x, x, {}(1), t); }}"
    assert compile_errors(runtime, body.format("half", "half")) == ""
    message = compile_errors(runtime, body.format("bfloat16_t", "bfloat16_t"))
    assert "normalisations on dav-2201 take half or float" in message
    low = "LayerNorm<half, float>(x, x, x, x, g, g, 1.0f, para, tiling);"
    body = f"""void f(LocalTensor<float> x, LocalTensor<half> g) {{
      LayerNormPara para{{}}; LayerNormSeparateTiling tiling; {low} }}"""
    assert "at least as precise" in compile_errors(runtime, body)
