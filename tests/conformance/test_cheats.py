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
    ("auto z = x.max();", "auto n = std::max(x.size(0), y.size(0));"),
]


@pytest.mark.parametrize(("cheat", "honest"), CHEATS)
def test_a_binding_that_computes_is_found_and_its_twin_is_not(cheat: str, honest: str) -> None:
    (finding,) = find_cheats(f"{HEAD}{cheat}\nreturn x; }}", Path("a.cpp"))[:1]
    assert (finding.code, finding.line) == ("cheat-binding", 2)
    assert not find_cheats(
        f"{HEAD}{honest}\nEXEC_NPU_CMD(aclnnX, x, y); return x; }}", Path("a.cpp")
    )


def test_comments_and_texts_are_not_read() -> None:
    text = HEAD + '// at::matmul(x, y)\nTORCH_CHECK(true, "at::matmul(x, y)"); return x; }'
    assert not find_cheats(text, Path("a.cpp"))
