// The OPS_ spelling of the logging and checking macros.
#pragma once

#include "log/log.h"

#define OPS_LOG_D(name, ...) OP_LOGD(name, __VA_ARGS__)
#define OPS_LOG_I(name, ...) OP_LOGI(name, __VA_ARGS__)
#define OPS_LOG_W(name, ...) OP_LOGW(name, __VA_ARGS__)
#define OPS_LOG_E(name, ...) OP_LOGE(name, __VA_ARGS__)
#define OPS_REPORT_VECTOR_INNER_ERR(name, ...) OP_LOGE(name, __VA_ARGS__)
#define OPS_REPORT_CUBE_INNER_ERR(name, ...) OP_LOGE(name, __VA_ARGS__)
#define OPS_LOG_E_IF_NULL(context, pointer, action) \
  do {                                              \
    if ((pointer) == nullptr) {                     \
      OP_LOGE(context, "%s is null", #pointer);     \
      action;                                       \
    }                                               \
  } while (0)
#define OPS_ERR_IF(condition, log, action) OP_TILING_CHECK(condition, log, action)
#define OPS_CHECK(condition, log, action) OP_TILING_CHECK(condition, log, action)
