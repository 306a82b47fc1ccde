"""Activation functions: against float64 NumPy, and the outputs that the vendor's pages print."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from native import Kernels, Runtime, Tensor, build_kernels, compile_errors

F32, F16 = np.float32, np.float16
FOLDER = Path(__file__).parent
COUNT = 300


@pytest.fixture(scope="session")
def kernels(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, (FOLDER / "activation.cpp").read_text(), "activation")


def _launch(kernels: Kernels, entry: str, *sources: np.ndarray) -> np.ndarray:
    out = np.zeros(sources[0].size, sources[0].dtype)
    inputs = [*sources, sources[0]][:2]
    tensors = [Tensor(np.array([out.size], np.int64)), *map(Tensor, inputs), Tensor(out)]
    outcome = kernels.launch(entry, tensors)
    assert outcome.codes == []
    return out


def _numbers(dtype: type, seed: int) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(COUNT) * 3).astype(dtype)


def _swish(x: np.ndarray, beta: float = 1.0) -> np.ndarray:
    return x / (1 + np.exp(-beta * x))


def _gelu(x: np.ndarray) -> np.ndarray:
    return _swish(x + 0.044715 * x**3, math.sqrt(8 / math.pi)) / (x + 0.044715 * x**3) * x


def _piece(x: np.ndarray) -> np.ndarray:
    arch = -0.1444 * (np.minimum(np.abs(x) * math.sqrt(0.5), 1.769) - 1.769) ** 2 + 0.5
    return x * (np.sign(x) * arch + 0.5)


ONE = {"gelu": _gelu, "faster_gelu": lambda x: _swish(x, 1.702), "faster_gelu_v2": _piece,
       "silu": _swish, "swish": lambda x: _swish(x, 1.5)}  # fmt: skip
TWO = {"swiglu": lambda x, y: x * _swish(y, 0.5), "geglu": lambda x, y: x * _gelu(y),
       "reglu": lambda x, y: x * np.maximum(y, 0)}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("kind", ["f32", "f16", "precise"])
def test_an_activation_is_its_formula(kernels: Kernels, name: str, kind: str) -> None:
    dtype = F32 if kind == "f32" else F16
    x = _numbers(dtype, 1)
    x = x[np.abs(x.astype(float)) > 0.01][:256]
    got = _launch(kernels, f"{name}_{kind}", x).astype(float)
    want = ONE[name](x.astype(float))
    # rounding after each step on half data costs more, and where results cancel more still
    near = {"f32": (1e-5, 1e-6), "precise": (1e-3, 1e-3), "f16": (6e-3, 4e-3)}[kind]
    np.testing.assert_allclose(got, want, rtol=near[0], atol=near[1])


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_a_gated_unit_multiplies_the_first_source_by_the_activated_second(
    kernels: Kernels, name: str, kind: str
) -> None:
    dtype = F32 if kind == "f32" else F16
    x, y = _numbers(dtype, 2), _numbers(dtype, 3)
    got = _launch(kernels, f"{name}_{kind}", x, y).astype(float)
    near = 1e-5 if kind == "f32" else 1e-3
    np.testing.assert_allclose(got, TWO[name](x.astype(float), y.astype(float)), near, near / 10)


def test_reglu_takes_bfloat16(kernels: Kernels) -> None:
    x, y = (_numbers(F32, seed).view(np.uint32) & 0xFFFF0000 for seed in (4, 5))
    parts = [(v >> 16).astype(np.uint16) for v in (x, y)]
    got = _launch(kernels, "reglu_bf16", *parts).astype(np.uint32) << 16
    want = x.view(F32) * np.maximum(y.view(F32), 0)
    np.testing.assert_allclose(got.view(F32), want, rtol=2**-8)


def test_a_count_that_fills_no_repeat_leaves_the_rest_alone(kernels: Kernels) -> None:
    x = _numbers(F32, 6)
    for entry in ("gelu_f32", "swiglu_f32"):
        out = np.full(COUNT, 7, F32)
        tensors = [Tensor(np.array([30], np.int64)), Tensor(x), Tensor(x), Tensor(out)]
        assert kernels.launch(entry, tensors).codes == []
        assert (out[:30] != 7).all()
        assert (out[30:] == 7).all()


# Inputs and outputs as printed on the pages of Gelu and FasterGelu (half data).
GELU = (
    "-2.56 -2.395 -2.23 -2.066 -1.9 -1.735 -1.571 -1.406 -1.241 -1.076 -0.9116 -0.7466 -0.582"
    " -0.417 -0.2522 -0.0874 0.0774 0.2423 0.407 0.572",
    "-0.01295471 -0.01953125 -0.02836609 -0.03991699 -0.05453491 -0.07196045 -0.09130859"
    " -0.11254883 -0.13342285 -0.15185547 -0.16516113 -0.17004395 -0.16320801 -0.14111328"
    " -0.10101318 -0.04067993 0.04107666 0.14428711 0.26782227 0.40942383",
)
FASTER = (
    "-1.83887 -3.60742 3.12891 -0.620605 2.0625 -2.77344 -0.04422 -3.54297 -3.16211 2.67383",
    "-0.0769653 -0.00775528 3.11328 -0.160034 2.00195 -0.0244446 -0.021286 -0.00849152"
    " -0.0144653 2.64453",
)


@pytest.mark.parametrize(("entry", "page"), [("gelu_f16", GELU), ("faster_gelu_f16", FASTER)])
def test_the_outputs_on_the_vendors_page_come_out_bit_for_bit(
    kernels: Kernels, entry: str, page: tuple[str, str]
) -> None:
    x, want = (np.array(text.split(), float).astype(F16) for text in page)
    np.testing.assert_array_equal(_launch(kernels, entry, x), want)


LEGAL = (
    ("float", "Silu(d, x, 8)"),
    ("half", "Swish(d, x, 8, half(1))"),
    ("bfloat16_t", "ReGlu(d, x, x, 8)"),
    ("half", "Gelu<half, true>(d, x, t, 8)"),
    ("float", "SwiGLU(d, x, x, 1.0f, t)"),
    ("float", "Sigmoid(d, x)"),
)
ILLEGAL = (
    ("float", "Silu(d, x, t, 8)"),
    ("float", "Gelu(d, x)"),
    ("int32_t", "Gelu(d, x, 8)"),
    ("bfloat16_t", "GeGLU(d, x, x, 8)"),
    ("float", "ReGlu(d, x, x)"),
)


def test_activations_have_only_the_documented_forms(runtime: Runtime) -> None:
    body = "void f(LocalTensor<{}> x, LocalTensor<uint8_t> t) {{ LocalTensor<{}> d; {}; }}"
    for dtype, call in LEGAL:
        assert compile_errors(runtime, body.format(dtype, dtype, call)) == ""
    for dtype, call in ILLEGAL:
        assert "error" in compile_errors(runtime, body.format(dtype, dtype, call))
