// The part of the device runtime that direct-launch programs use, on host memory.
#pragma once

#include <cstddef>
#include <cstdint>

using aclError = int;
using aclrtStream = void *;
using aclrtContext = void *;
using aclrtEvent = void *;
using aclFloat16 = std::uint16_t;

constexpr aclError ACL_SUCCESS = 0;
constexpr aclError ACL_ERROR_NONE = 0;
constexpr aclError ACL_ERROR_INVALID_PARAM = 100000;
constexpr aclError ACL_ERROR_BAD_ALLOC = 200000;

enum aclrtMemMallocPolicy {
  ACL_MEM_MALLOC_HUGE_FIRST,
  ACL_MEM_MALLOC_HUGE_ONLY,
  ACL_MEM_MALLOC_NORMAL_ONLY
};

enum aclrtMemcpyKind {
  ACL_MEMCPY_HOST_TO_HOST,
  ACL_MEMCPY_HOST_TO_DEVICE,
  ACL_MEMCPY_DEVICE_TO_HOST,
  ACL_MEMCPY_DEVICE_TO_DEVICE
};

extern "C" {
aclError aclInit(const char *config);
aclError aclFinalize();
aclError aclrtSetDevice(std::int32_t device);
aclError aclrtGetDevice(std::int32_t *device);
aclError aclrtResetDevice(std::int32_t device);
aclError aclrtCreateContext(aclrtContext *context, std::int32_t device);
aclError aclrtDestroyContext(aclrtContext context);
aclError aclrtCreateStream(aclrtStream *stream);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtSynchronizeDevice();
// Device memory is filled with a NaN pattern, as nothing promises zeros.
aclError aclrtMalloc(void **pointer, std::size_t bytes, aclrtMemMallocPolicy policy);
aclError aclrtFree(void *pointer);
aclError aclrtMallocHost(void **pointer, std::size_t bytes);
aclError aclrtFreeHost(void *pointer);
aclError aclrtMemcpy(void *target, std::size_t most, const void *source, std::size_t bytes,
                     aclrtMemcpyKind kind);
aclError aclrtMemcpyAsync(void *target, std::size_t most, const void *source, std::size_t bytes,
                          aclrtMemcpyKind kind, aclrtStream stream);
aclError aclrtMemset(void *target, std::size_t most, std::int32_t value, std::size_t bytes);
aclError aclrtMemsetAsync(void *target, std::size_t most, std::int32_t value, std::size_t bytes,
                          aclrtStream stream);
float aclFloat16ToFloat(aclFloat16 value);
aclFloat16 aclFloatToFloat16(float value);
}
