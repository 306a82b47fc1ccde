// The base class of host tiling in the namespace that operator libraries share.
#pragma once

#include "log/log.h"
#include "tiling/tiling_base.h"
#include "util/platform_util.h"

namespace Ops {
namespace Base {
using optiling::AiCoreParams;
using optiling::TilingBaseClass;
struct CompileInfoCommon {
  std::int32_t socVersion = 0;
};
}  // namespace Base
}  // namespace Ops
