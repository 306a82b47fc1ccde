// What bindings use of PyTorch: tensors, their functions, and pybind11. torch/extension.h and its
// kin take three times as long, for modules, optimisers and autograd that no binding needs.
#pragma once

#include <ATen/ATen.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <string>
#include <tuple>
#include <vector>

namespace torch {
using namespace at;
using Dtype = at::ScalarType;
constexpr auto kUInt8 = at::kByte;
constexpr auto kInt8 = at::kChar;
constexpr auto kInt16 = at::kShort;
constexpr auto kInt32 = at::kInt;
constexpr auto kInt64 = at::kLong;
constexpr auto kFloat16 = at::kHalf;
constexpr auto kFloat32 = at::kFloat;
constexpr auto kFloat64 = at::kDouble;
}  // namespace torch

namespace py = pybind11;

// Registrations for the dispatcher: their bodies must compile, and nothing is registered. Python
// reaches the operator through PYBIND11_MODULE, and no tensor here lives on an NPU.
namespace npusmith {
struct Library {
  template <typename... Ts>
  Library &impl(Ts &&...) { return *this; }
  template <typename... Ts>
  Library &def(Ts &&...) { return *this; }
};
}  // namespace npusmith

#define NPUSMITH_JOIN_(a, b) a##b
#define NPUSMITH_JOIN(a, b) NPUSMITH_JOIN_(a, b)
#define NPUSMITH_LIBRARY(m) \
  [[maybe_unused]] static void NPUSMITH_JOIN(npusmith_library_, __COUNTER__)(::npusmith::Library & m)
#define TORCH_LIBRARY(space, m) NPUSMITH_LIBRARY(m)
#define TORCH_LIBRARY_FRAGMENT(space, m) NPUSMITH_LIBRARY(m)
#define TORCH_LIBRARY_IMPL(space, key, m) NPUSMITH_LIBRARY(m)
