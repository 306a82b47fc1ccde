// The two-phase interface of aclnn functions without an NPU: the first phase keeps the arguments,
// the second hands them to npusmith.device, which runs the operator on the twin and writes into the
// memory of the outputs. Failures are Python's exceptions and no status, because they say more.
#pragma once

#include "../acl/acl.h"

using aclnnStatus = std::int32_t;

enum aclFormat { ACL_FORMAT_UNDEFINED = -1, ACL_FORMAT_NCHW = 0, ACL_FORMAT_NHWC = 1, ACL_FORMAT_ND = 2 };

// Values as published in the list of aclDataType.
enum aclDataType {
  ACL_DT_UNDEFINED = -1,
  ACL_FLOAT = 0,
  ACL_FLOAT16 = 1,
  ACL_INT8 = 2,
  ACL_INT32 = 3,
  ACL_UINT8 = 4,
  ACL_INT16 = 6,
  ACL_UINT16 = 7,
  ACL_UINT32 = 8,
  ACL_INT64 = 9,
  ACL_BOOL = 12,
  ACL_BF16 = 27
};

struct aclOpExecutor {
  pybind11::list values;
};

namespace npusmith {

inline at::ScalarType TypeOf(aclDataType type) {
  switch (type) {
    case ACL_FLOAT: return at::kFloat;
    case ACL_FLOAT16: return at::kHalf;
    case ACL_INT8: return at::kChar;
    case ACL_INT32: return at::kInt;
    case ACL_UINT8: return at::kByte;
    case ACL_INT16: return at::kShort;
    case ACL_UINT16: return at::kUInt16;
    case ACL_UINT32: return at::kUInt32;
    case ACL_INT64: return at::kLong;
    case ACL_BOOL: return at::kBool;
    case ACL_BF16: return at::kBFloat16;
    default: TORCH_CHECK(false, "a tensor of aclDataType ", static_cast<int>(type));
  }
}

// The first phase of any function: `values` end with where size and executor go.
template <typename... Ts>
aclnnStatus Prepare(std::uint64_t *bytes, aclOpExecutor **executor, const Ts &...values) {
  const py::gil_scoped_acquire lock;
  auto *made = new aclOpExecutor;
  (made->values.append(Give(values)), ...);
  *bytes = 32;  // as on the device never none: the library's own
  *executor = made;
  return 0;
}

inline aclnnStatus Launch(const void *here, const char *name, void *workspace, std::uint64_t bytes,
                          aclOpExecutor *executor) {
  const py::gil_scoped_acquire lock;
  TORCH_CHECK(executor != nullptr, name, " without an executor of its first phase");
  TORCH_CHECK(bytes == 0 || workspace != nullptr, name, " without its workspace");
  const std::unique_ptr<aclOpExecutor> used(executor);
  py::module_::import("npusmith.device").attr("call")(File(here), name, used->values);
  return 0;
}

}  // namespace npusmith

// Failures have been raised before anybody asks.
extern "C" inline const char *aclGetRecentErrMsg() { return nullptr; }

inline aclTensor *aclCreateTensor(const std::int64_t *dims, std::uint64_t rank, aclDataType type,
                                  const std::int64_t *strides, std::int64_t offset, aclFormat,
                                  const std::int64_t *, std::uint64_t, void *data) {
  const at::ScalarType element = npusmith::TypeOf(type);
  auto *start = static_cast<char *>(data) + offset * static_cast<std::int64_t>(at::elementSize(element));
  const at::Tensor tensor = at::from_blob(start, at::IntArrayRef(dims, rank),
                                          at::IntArrayRef(strides, rank), at::dtype(element));
  const pybind11::gil_scoped_acquire lock;
  return new aclTensor{npusmith::Give(tensor)};
}

inline aclnnStatus aclDestroyTensor(const aclTensor *tensor) {
  const pybind11::gil_scoped_acquire lock;
  delete tensor;
  return 0;
}
