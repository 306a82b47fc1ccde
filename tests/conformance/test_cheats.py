"""Bindings that compute, and their near twins that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.twin.cheating import find_cheats

HEAD = "at::Tensor f(at::Tensor x, const at::Tensor &y, std::vector<at::Tensor> &all) {\n"

CHEATS = [
    ("auto z = at::matmul(x, y);", "auto z = at::empty_like(x);"),
    ("auto z = torch::relu(x);", "auto z = torch::zeros({3}, x.options());"),
    ("auto z = x.mul(y);", "auto z = x.contiguous();"),
    ("x.add_(1);", "x.zero_();"),
    ("auto z = x + y;", "auto n = x.size(0) + y.size(1);"),
    ("auto z = 2 * x;", "auto n = 2 * x.numel();"),
    ("x *= 2;", "int n = 3; n *= 2;"),
    (
        "auto z = torch::nn::functional::gelu(x);",
        "auto z = torch::TensorOptions().dtype(at::kInt);",
    ),
    ("auto z = at::_ops::add_Tensor::call(x, y, 1);", "auto z = x.view({-1});"),
    ('py::module_::import("torch").attr("mm")(x, y);', "all.push_back(x);"),
    ("using namespace at; auto z = softmax(x, 1);", "using namespace at; auto z = empty_like(x);"),
    ("double z = x.sum().item<double>();", "int64_t n = x.sum().item<int64_t>();"),
    (
        "const float *p = (const float *)x.data_ptr(); float v = p[0];",
        "float *p = (float *)x.data_ptr(); run(p, y.data_ptr<float>());",
    ),
    (
        "float v = *(float *)y.data_ptr();",
        "at::Tensor t = at::empty({2}, at::kInt); t.data_ptr<int>()[0] = 3;",
    ),
    (
        "auto p = reinterpret_cast<float *>(x.data_ptr()); float v = 2 * (*p);",
        "auto t = at::empty({2}); int *p = t.data_ptr<int>(); p[0] = 3; *p = 4;",
    ),
    ("y.data_ptr<float>()[3] = 1;", "launch(1, (uint8_t *)y.mutable_data_ptr());"),
    ("auto z = x.max();", "auto n = std::max(x.size(0), y.size(0));"),
]


@pytest.mark.parametrize(("cheat", "honest"), CHEATS)
def test_a_binding_that_computes_is_found_and_its_twin_is_not(cheat: str, honest: str) -> None:
    (finding,) = find_cheats(f"{HEAD}{cheat}\nreturn x; }}", Path("a.cpp"))[:1]
    assert (finding.code, finding.line) == ("cheat-binding", 2)
    assert not find_cheats(
        f"{HEAD}{honest}\nEXEC_NPU_CMD(aclnnX, x, y); return x; }}", Path("a.cpp")
    )


HONEST = """extern "C" void twice_do(uint32_t blocks, void *stream, uint8_t * x, uint8_t *y);
__global__ __aicore__ void twice(GM_ADDR x, GM_ADDR y, int64_t n) {
  to.SetGlobalBuffer((__gm__ float *)x + n, n);
  from.SetGlobalBuffer((__gm__ float *)y + GetBlockIdx() * n, n);
}
at::Tensor other(const at::Tensor x, float y);
at::Tensor run(const at::Tensor &x) {
  at::Tensor y = at::empty_like(x);
  twice_do(8, stream, (uint8_t *)x.data_ptr(), (uint8_t *)y.data_ptr());
  return y;
}
float *host(float *x, float *y, int n) { x[0] = x[1] * n; return x + n; }
"""


def test_pointers_of_other_functions_are_no_tensors() -> None:
    """Of 198 published bindings 6 were accused, for their kernels add to pointers called x."""
    assert not find_cheats(HONEST, Path("a.cpp"))
    guilty = HONEST.replace("return y;", "return y + x;")
    assert {item.line for item in find_cheats(guilty, Path("a.cpp"))} == {10}


def test_comments_and_texts_are_not_read() -> None:
    text = HEAD + '// at::matmul(x, y)\nTORCH_CHECK(true, "at::matmul(x, y)"); return x; }'
    assert not find_cheats(text, Path("a.cpp"))
