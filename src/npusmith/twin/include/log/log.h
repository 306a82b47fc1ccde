// Logging and checking macros that operator libraries use in host code.
#pragma once

#include <cstdio>

namespace twin::host {
// The name that a log line starts with: a context's node, or the text itself.
inline const char *LogName(const char *name) { return name == nullptr ? "nil" : name; }
template <typename Context>
const char *LogName(const Context *context) {
  return context == nullptr ? "nil" : context->GetNodeName();
}
template <typename Text>
auto LogName(const Text &text) -> decltype(text.c_str()) { return text.c_str(); }
}  // namespace twin::host

#define TWIN_LOG(level, name, ...)                                               \
  do {                                                                           \
    std::fprintf(stderr, "[%s] %s: ", level, ::twin::host::LogName(name));       \
    std::fprintf(stderr, __VA_ARGS__);                                           \
    std::fputc('\n', stderr);                                                    \
  } while (0)

#ifndef OP_LOGE
#define OP_LOGE(name, ...) TWIN_LOG("error", name, __VA_ARGS__)
#endif
#ifndef OP_LOGW
#define OP_LOGW(name, ...) TWIN_LOG("warning", name, __VA_ARGS__)
#endif
#ifndef OP_LOGI
#define OP_LOGI(name, ...) TWIN_LOG("info", name, __VA_ARGS__)
#endif
#ifndef OP_LOGD
#define OP_LOGD(name, ...) TWIN_LOG("debug", name, __VA_ARGS__)
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
#ifndef OP_TILING_CHECK
#define OP_TILING_CHECK(condition, log, action) \
  do {                                          \
    if (condition) {                            \
      log;                                      \
      action;                                   \
    }                                           \
  } while (0)
#endif
#ifndef OP_CHECK_IF
#define OP_CHECK_IF(condition, log, action) OP_TILING_CHECK(condition, log, action)
#endif
#ifndef OP_CHECK
#define OP_CHECK(condition, log, action) OP_TILING_CHECK(condition, log, action)
#endif
#ifndef OPS_CHECK_NULL_WITH_CONTEXT
#define OPS_CHECK_NULL_WITH_CONTEXT(context, pointer)    \
  do {                                                   \
    if ((pointer) == nullptr) {                          \
      OP_LOGE(context, "%s is null", #pointer);          \
      return ::ge::GRAPH_FAILED;                         \
    }                                                    \
  } while (0)
#endif
#ifndef OP_CHECK_NULL_WITH_CONTEXT
#define OP_CHECK_NULL_WITH_CONTEXT(context, pointer) OPS_CHECK_NULL_WITH_CONTEXT(context, pointer)
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
