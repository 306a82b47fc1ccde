// EXEC_NPU_CMD without an NPU: the arguments go to npusmith.device, which runs the operator on the
// twin and writes the outputs into the tensors that were given.
#pragma once

#include <dlfcn.h>

#include <array>
#include <memory>
#include <type_traits>
#include <utility>

#include "torch.hpp"

// What an opaque argument of an aclnn function stands for, as a Python value.
struct aclTensor { pybind11::object value; };
struct aclScalar { pybind11::object value; };
struct aclIntArray { pybind11::object value; };
struct aclFloatArray { pybind11::object value; };
struct aclBoolArray { pybind11::object value; };
struct aclTensorList { pybind11::object value; };
struct aclScalarList { pybind11::object value; };

namespace npusmith {

namespace py = pybind11;

// ---- C++ values to Python ones

inline py::object Give(const at::Tensor &tensor) {
  if (!tensor.defined()) return py::none();
  return py::cast(tensor);
}
inline py::object Give(const at::Scalar &scalar) { return py::cast(scalar); }
inline py::object Give(at::ScalarType type) { return py::cast(type); }
inline py::object Give(const char *text) { return text ? py::object(py::str(text)) : py::none(); }
inline py::object Give(const std::string &text) { return py::str(text); }
inline py::object Give(std::nullptr_t) { return py::none(); }
inline py::object Give(c10::nullopt_t) { return py::none(); }
inline py::object Give(bool value) { return py::bool_(value); }

template <typename T>
std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>, py::object> Give(T value) {
  if constexpr (std::is_enum_v<T>) return py::int_(static_cast<std::int64_t>(value));
  else if constexpr (std::is_floating_point_v<T>) return py::float_(value);
  else return py::int_(value);
}

template <typename Range>
py::object GiveAll(const Range &range) {
  py::list list;
  for (const auto &value : range) list.append(Give(value));
  return list;
}

template <typename T>
py::object Give(at::ArrayRef<T> values) { return GiveAll(values); }
template <typename T>
py::object Give(const std::vector<T> &values) {
  py::list list;
  for (std::size_t at = 0; at < values.size(); ++at) list.append(Give(static_cast<T>(values[at])));
  return list;
}
template <typename T, std::size_t N>
py::object Give(const std::array<T, N> &values) { return GiveAll(values); }
template <typename T>
py::object Give(const std::optional<T> &value) {
  return value.has_value() ? Give(*value) : py::object(py::none());
}
template <typename T>
auto Give(T *handle) -> decltype(py::object(handle->value)) {
  return handle ? handle->value : py::object(py::none());
}

// ---- opaque arguments: they live until the call that takes them, as on the device

inline std::vector<std::shared_ptr<void>> &Kept() {
  static auto *kept = new std::vector<std::shared_ptr<void>>;  // never freed: Python ends earlier
  return *kept;
}

template <typename Handle>
Handle *Keep(py::object value) {
  auto handle = std::make_shared<Handle>(Handle{std::move(value)});
  Kept().push_back(handle);
  return handle.get();
}

// ---- the call

static const char kHere = 0;  // one in each extension: its address tells which file this is

inline std::string File(const void *address) {
  Dl_info info;
  return dladdr(address, &info) != 0 ? info.dli_fname : "";
}

template <typename... Ts>
void Call(const void *here, const char *name, const Ts &...values) {
  const py::gil_scoped_acquire lock;
  py::list given;
  (given.append(Give(values)), ...);
  Kept().clear();
  py::module_::import("npusmith.device").attr("call")(File(here), name, given);
}

}  // namespace npusmith

#define EXEC_NPU_CMD(aclnn_api, ...)                                           \
  do {                                                                         \
    ::npusmith::Call(&::npusmith::kHere, #aclnn_api, ##__VA_ARGS__);           \
  } while (false)

// ---- conversions that bindings call themselves

inline aclTensor *ConvertType(const at::Tensor &tensor) {
  return tensor.defined() ? npusmith::Keep<aclTensor>(npusmith::Give(tensor)) : nullptr;
}
inline aclScalar *ConvertType(const at::Scalar &scalar) {
  return npusmith::Keep<aclScalar>(npusmith::Give(scalar));
}
inline aclIntArray *ConvertType(const at::IntArrayRef &values) {
  return npusmith::Keep<aclIntArray>(npusmith::Give(values));
}
template <std::size_t N>
aclBoolArray *ConvertType(const std::array<bool, N> &values) {
  return npusmith::Keep<aclBoolArray>(npusmith::Give(values));
}
inline aclBoolArray *ConvertType(const at::ArrayRef<bool> &values) {
  return npusmith::Keep<aclBoolArray>(npusmith::Give(values));
}
inline aclTensorList *ConvertType(const at::TensorList &values) {
  return npusmith::Keep<aclTensorList>(npusmith::Give(values));
}
inline aclScalarList *ConvertType(const at::ArrayRef<at::Scalar> &values) {
  return npusmith::Keep<aclScalarList>(npusmith::Give(values));
}
inline aclTensor *ConvertType(const c10::optional<at::Tensor> &tensor) {
  return tensor.has_value() ? ConvertType(*tensor) : nullptr;
}
inline aclIntArray *ConvertType(const c10::optional<at::IntArrayRef> &values) {
  return values.has_value() ? ConvertType(*values) : nullptr;
}
inline aclScalar *ConvertType(const c10::optional<at::Scalar> &scalar) {
  return scalar.has_value() ? ConvertType(*scalar) : nullptr;
}
inline at::ScalarType ConvertType(at::ScalarType type) { return type; }
template <typename T>
T ConvertType(T value) { return value; }

inline aclScalar *ConvertTensorToAclScaler(const at::Tensor &tensor) {
  return ConvertType(tensor.item());
}
inline c10::Scalar ConvertTensorToScalar(const at::Tensor &tensor) { return tensor.item(); }
inline at::Tensor CopyTensorHostToDevice(const at::Tensor &tensor) { return tensor; }
inline at::Tensor CopyScalarToDevice(const c10::Scalar &scalar, at::ScalarType type) {
  return at::scalar_tensor(scalar, type);
}

// ---- what torch_npu offers beside it

#define NPU_NAME_SPACE at_npu::native
namespace at_npu::native {
struct OpPreparation {
  static at::Tensor apply_tensor(const at::Tensor &like) { return at::empty_like(like); }
  static at::Tensor apply_tensor(const at::Tensor &like, at::IntArrayRef sizes) {
    return at::empty(sizes, like.options());
  }
  static at::Tensor apply_tensor(at::IntArrayRef sizes, const at::TensorOptions &options) {
    return at::empty(sizes, options);
  }
  template <typename... Ts>
  static at::Tensor apply_tensor_without_format(const Ts &...values) {
    return apply_tensor(values...);
  }
  template <typename... Ts>
  static at::Tensor ApplyTensor(const Ts &...values) { return apply_tensor(values...); }
  template <typename... Ts>
  static at::Tensor ApplyTensorWithoutFormat(const Ts &...values) {
    return apply_tensor(values...);
  }
};
}  // namespace at_npu::native

namespace c10_npu {
struct NPUStream {
  void *stream(bool = true) const { return nullptr; }
  operator void *() const { return nullptr; }
  void synchronize() const {}
};
inline NPUStream getCurrentNPUStream(int = -1) { return {}; }
}  // namespace c10_npu

#include "aclnn.hpp"

// The device of torch_npu is this machine's memory here.
#define PrivateUse1 CPU
#define kPrivateUse1 kCPU
