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

enum aclLogLevel { ACL_DEBUG, ACL_INFO, ACL_WARNING, ACL_ERROR };

enum aclrtMemMallocPolicy {
  ACL_MEM_MALLOC_HUGE_FIRST,
  ACL_MEM_MALLOC_HUGE_ONLY,
  ACL_MEM_MALLOC_NORMAL_ONLY
};

enum aclrtLastErrLevel { ACL_RT_THREAD_LEVEL };

enum aclrtMemAttr { ACL_DDR_MEM, ACL_HBM_MEM };

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
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, std::int32_t milliseconds);
aclError aclrtSynchronizeDevice();
aclError aclrtGetDeviceCount(std::uint32_t *count);
const char *aclrtGetSocName();
const char *aclGetRecentErrMsg();
// Errors go to stderr, the rest nowhere.
void aclAppLog(aclLogLevel level, const char *function, const char *file, std::uint32_t line,
               const char *format, ...);
aclError aclrtGetLastError(aclrtLastErrLevel level);
aclError aclrtPeekAtLastError(aclrtLastErrLevel level);
aclError aclrtGetMemInfo(aclrtMemAttr attribute, std::size_t *free, std::size_t *total);
// Launches run at once: an event has nothing to wait for, and no time passes between two.
aclError aclrtCreateEvent(aclrtEvent *event);
aclError aclrtDestroyEvent(aclrtEvent event);
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtSynchronizeEvent(aclrtEvent event);
aclError aclrtEventElapsedTime(float *milliseconds, aclrtEvent start, aclrtEvent end);
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
