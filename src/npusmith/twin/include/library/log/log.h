// Logging and checking macros that operator libraries use in host code.
#pragma once

#include <cinttypes>
#include <cstdio>
#include <sstream>
#include <string>

#include "toolchain/slog.h"
#include "util/shape_util.h"

namespace twin::host {
// The name that a log line starts with: a context's node, or the text itself.
inline const char *LogName(const char *name) { return name == nullptr ? "nil" : name; }
template <typename Context>
const char *LogName(const Context *context) {
  return context == nullptr ? "nil" : context->GetNodeName();
}
template <typename Text>
auto LogName(const Text &text) -> decltype(text.c_str()) { return text.c_str(); }

template <typename Name, typename... Values>
void Log(const char *level, const Name &name, Values... values) {
  std::fprintf(stderr, "[%s] %s: ", level, LogName(name));
  if constexpr (sizeof...(values) > 0) std::fprintf(stderr, values...);
  std::fputc('\n', stderr);
}

// A refusal: what is refused, the parameter, what it is, why.
template <typename Name, typename... Parts>
void LogRefused(const char *what, const Name &name, const Parts &...parts) {
  std::fprintf(stderr, "[error] %s: %s:", LogName(name), what);
  (std::fprintf(stderr, " %s", Ops::Base::ToString(parts).c_str()), ...);
  std::fputc('\n', stderr);
}
}  // namespace twin::host

#ifndef OP_LOGE
#define OP_LOGE(...) ::twin::host::Log("error", __VA_ARGS__)
#endif
#ifndef OP_LOGW
#define OP_LOGW(...) ::twin::host::Log("warning", __VA_ARGS__)
#endif
#ifndef OP_LOGI
#define OP_LOGI(...) ::twin::host::Log("info", __VA_ARGS__)
#endif
#ifndef OP_LOGD
#define OP_LOGD(...) ::twin::host::Log("debug", __VA_ARGS__)
#endif
#ifndef OP_LOGE_IF
#define OP_LOGE_IF(condition, result, name, ...) \
  do {                                           \
    if (condition) {                             \
      OP_LOGE(name, __VA_ARGS__);                \
      return result;                             \
    }                                            \
  } while (0)
#endif
#ifndef likely
#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)
#endif

#define OpLogSub(module, level, ...) ::twin::host::Log((level) == DLOG_ERROR ? "error" : "info", __VA_ARGS__)
// Of two names for one thing the one that libraries map their own onto is the primitive.
#ifndef OP_CHECK_IF
#define OP_CHECK_IF(condition, log, action) \
  do {                                          \
    if (condition) {                            \
      log;                                      \
      action;                                   \
    }                                           \
  } while (0)
#endif
#ifndef OP_TILING_CHECK
#define OP_TILING_CHECK(condition, log, action) OP_CHECK_IF(condition, log, action)
#endif
#ifndef OP_CHECK
#define OP_CHECK(condition, log, action) OP_CHECK_IF(condition, log, action)
#endif
#ifndef OP_CHECK_NULL_WITH_CONTEXT
#define OP_CHECK_NULL_WITH_CONTEXT(context, pointer)     \
  do {                                                   \
    if ((pointer) == nullptr) {                          \
      OP_LOGE(context, "%s is null", #pointer);          \
      return ::ge::GRAPH_FAILED;                         \
    }                                                    \
  } while (0)
#endif
#ifndef OPS_CHECK_NULL_WITH_CONTEXT
#define OPS_CHECK_NULL_WITH_CONTEXT(context, pointer) OP_CHECK_NULL_WITH_CONTEXT(context, pointer)
#endif
#ifndef OPS_CHECK_NULL_WITH_CONTEXT_RET
#define OPS_CHECK_NULL_WITH_CONTEXT_RET(context, pointer, result) \
  do {                                                            \
    if ((pointer) == nullptr) {                                   \
      OP_LOGE(context, "%s is null", #pointer);                   \
      return result;                                              \
    }                                                             \
  } while (0)
#endif
#ifndef VECTOR_INNER_ERR_REPORT_TILIING
#define VECTOR_INNER_ERR_REPORT_TILIING(name, ...) OP_LOGE(name, __VA_ARGS__)
#endif
#ifndef VECTOR_INNER_ERR_REPORT_TILING
#define VECTOR_INNER_ERR_REPORT_TILING(name, ...) OP_LOGE(name, __VA_ARGS__)
#endif

// Refusals by kind, each also with the reason behind; libraries of CANN 9 say them so.
#define TWIN_REFUSED(what, name, ...) ::twin::host::LogRefused(what, name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUE(...) \
  TWIN_REFUSED("invalid value", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUE_WITH_REASON(...) \
  TWIN_REFUSED("invalid value", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUES(...) \
  TWIN_REFUSED("invalid values", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUES_WITH_REASON(...) \
  TWIN_REFUSED("invalid values", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPE(...) \
  TWIN_REFUSED("invalid shape", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPE_WITH_REASON(...) \
  TWIN_REFUSED("invalid shape", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPES(...) \
  TWIN_REFUSED("invalid shapes", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPES_WITH_REASON(...) \
  TWIN_REFUSED("invalid shapes", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIM(...) \
  TWIN_REFUSED("invalid shapedim", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIM_WITH_REASON(...) \
  TWIN_REFUSED("invalid shapedim", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIMS(...) \
  TWIN_REFUSED("invalid shapedims", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIMS_WITH_REASON(...) \
  TWIN_REFUSED("invalid shapedims", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZE(...) \
  TWIN_REFUSED("invalid shapesize", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZE_WITH_REASON(...) \
  TWIN_REFUSED("invalid shapesize", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZES(...) \
  TWIN_REFUSED("invalid shapesizes", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZES_WITH_REASON(...) \
  TWIN_REFUSED("invalid shapesizes", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPE(...) \
  TWIN_REFUSED("invalid dtype", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPE_WITH_REASON(...) \
  TWIN_REFUSED("invalid dtype", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPES(...) \
  TWIN_REFUSED("invalid dtypes", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPES_WITH_REASON(...) \
  TWIN_REFUSED("invalid dtypes", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMAT(...) \
  TWIN_REFUSED("invalid format", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMAT_WITH_REASON(...) \
  TWIN_REFUSED("invalid format", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMATS(...) \
  TWIN_REFUSED("invalid formats", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMATS_WITH_REASON(...) \
  TWIN_REFUSED("invalid formats", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_LISTSIZE(...) \
  TWIN_REFUSED("invalid listsize", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_LISTSIZE_WITH_REASON(...) \
  TWIN_REFUSED("invalid listsize", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUM(...) \
  TWIN_REFUSED("invalid tensornum", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUM_WITH_REASON(...) \
  TWIN_REFUSED("invalid tensornum", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUMS(...) \
  TWIN_REFUSED("invalid tensornums", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUMS_WITH_REASON(...) \
  TWIN_REFUSED("invalid tensornums", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_STRIDE(...) \
  TWIN_REFUSED("invalid stride", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_STRIDE_WITH_REASON(...) \
  TWIN_REFUSED("invalid stride", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_CONFIG(...) \
  TWIN_REFUSED("invalid config", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_CONFIG_WITH_REASON(...) \
  TWIN_REFUSED("invalid config", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_ARGUMENT(...) \
  TWIN_REFUSED("invalid argument", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_ARGUMENT_WITH_REASON(...) \
  TWIN_REFUSED("invalid argument", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_ATTR(...) \
  TWIN_REFUSED("invalid attr", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_ATTR_SIZE(...) \
  TWIN_REFUSED("invalid attr size", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT(...) \
  TWIN_REFUSED("invalid input", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_DTYPE(...) \
  TWIN_REFUSED("invalid input dtype", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_FORMAT(...) \
  TWIN_REFUSED("invalid input format", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_SHAPE(...) \
  TWIN_REFUSED("invalid input shape", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_SHAPESIZE(...) \
  TWIN_REFUSED("invalid input shapesize", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_DIM(...) \
  TWIN_REFUSED("invalid input dim", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_COUNT(...) \
  TWIN_REFUSED("invalid input count", __VA_ARGS__)

#ifndef CUBE_INNER_ERR_REPORT
#define CUBE_INNER_ERR_REPORT(name, ...) OP_LOGE(name, __VA_ARGS__)
#endif
#ifndef OP_LOGE_WITHOUT_REPORT
#define OP_LOGE_WITHOUT_REPORT(name, ...) OP_LOGE(name, __VA_ARGS__)
#endif
#define D_OP_LOGE(name, ...) OP_LOGE(name, __VA_ARGS__)
#define D_OP_LOGW(name, ...) OP_LOGW(name, __VA_ARGS__)
#define D_OP_LOGI(name, ...) OP_LOGI(name, __VA_ARGS__)
#define D_OP_LOGD(name, ...) OP_LOGD(name, __VA_ARGS__)
#ifndef REPORT_INNER_ERR_MSG
#define REPORT_INNER_ERR_MSG(code, ...) OP_LOGE(code, __VA_ARGS__)
#define REPORT_USER_ERR_MSG(code, ...) OP_LOGE(code, __VA_ARGS__)
#endif
#ifndef OP_LOGI_IF_RETURN
#define OP_LOGI_IF_RETURN(condition, result, name, ...) \
  do {                                                  \
    if (condition) {                                    \
      OP_LOGI(name, __VA_ARGS__);                       \
      return result;                                    \
    }                                                   \
  } while (0)
#endif
#ifndef OP_LOGW_IF
#define OP_LOGW_IF(condition, name, ...)      \
  do {                                        \
    if (condition) OP_LOGW(name, __VA_ARGS__); \
  } while (0)
#endif

namespace Ops {
namespace Base {
template <typename T>
const char *GetOpInfo(const T &name) { return ::twin::host::LogName(name); }
inline const char *GetSafeStr(const char *text) { return text == nullptr ? "nil" : text; }
inline const char *GetSafeStr(const std::string &text) { return text.c_str(); }
}  // namespace Base
}  // namespace Ops
