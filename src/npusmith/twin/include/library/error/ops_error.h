// The OPS_ spelling of the logging and checking macros.
#pragma once

#include "log/log.h"

#define OPS_LOG_D(name, ...) OP_LOGD(name, __VA_ARGS__)
#define OPS_LOG_I(name, ...) OP_LOGI(name, __VA_ARGS__)
#define OPS_LOG_W(name, ...) OP_LOGW(name, __VA_ARGS__)
#define OPS_LOG_E(name, ...) OP_LOGE(name, __VA_ARGS__)
#define OPS_REPORT_VECTOR_INNER_ERR(name, ...) OP_LOGE(name, __VA_ARGS__)
#define OPS_REPORT_CUBE_INNER_ERR(name, ...) OP_LOGE(name, __VA_ARGS__)
#define OPS_LOG_EVENT(name, ...) OP_LOGI(name, __VA_ARGS__)
#define OPS_LOG_E_WITHOUT_REPORT(name, ...) OP_LOGE(name, __VA_ARGS__)
#define OPS_LOG_D_FULL(name, ...) OP_LOGD(name, __VA_ARGS__)
#define OPS_LOG_I_FULL(name, ...) OP_LOGI(name, __VA_ARGS__)
#define OPS_LOG_W_FULL(name, ...) OP_LOGW(name, __VA_ARGS__)
#define OPS_LOG_D_IF(condition, name, action, ...) \
  OP_CHECK_IF(condition, OP_LOGD(name, __VA_ARGS__), action)
#define OPS_LOG_I_IF(condition, name, action, ...) \
  OP_CHECK_IF(condition, OP_LOGI(name, __VA_ARGS__), action)
#define OPS_LOG_W_IF(condition, name, action, ...) \
  OP_CHECK_IF(condition, OP_LOGW(name, __VA_ARGS__), action)
#define OPS_LOG_E_IF(condition, name, action, ...) \
  OP_CHECK_IF(condition, OP_LOGE(name, __VA_ARGS__), action)
// Callers leave out the semicolon behind it.
#define OPS_LOG_E_IF_NULL(context, pointer, action) \
  if ((pointer) == nullptr) {                       \
    OP_LOGE(context, "%s is null", #pointer);       \
    action;                                         \
  }
#define OPS_ERR_IF(condition, log, action) OP_TILING_CHECK(condition, log, action)
#define OPS_CHECK(condition, log, action) OP_TILING_CHECK(condition, log, action)
