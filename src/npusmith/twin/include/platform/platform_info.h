// What older host code asks about the chip without a context.
#pragma once

#include <cstdint>
#include <map>

#include "graph/types.h"
#include "platform/platform_infos_def.h"

namespace fe {

struct StrInfo {
  std::string short_soc_version;
};
struct SoCInfo {
  std::uint32_t ai_core_cnt = 0;
  std::uint32_t vector_core_cnt = 0;
};
struct PlatformInfo {
  StrInfo str_info;
  SoCInfo soc_info;
};
struct OptionalInfo {
  std::string soc_version;
};

class PlatformInfoManager {
 public:
  static PlatformInfoManager &Instance() {
    static PlatformInfoManager manager;
    return manager;
  }
  static PlatformInfoManager &GeInstance() { return Instance(); }
  std::uint32_t GetPlatformInfoWithOutSocVersion(PlatformInfo &info, OptionalInfo &optional) {
    info.str_info.short_soc_version = "Ascend910B";
    info.soc_info.ai_core_cnt = PlatFormInfos().GetCoreNum();
    optional.soc_version = info.str_info.short_soc_version;
    return ge::GRAPH_SUCCESS;
  }
  std::uint32_t GetPlatformInfoWithOutSocVersion(PlatFormInfos &, OptionalInfo &optional) {
    optional.soc_version = "Ascend910B";
    return ge::GRAPH_SUCCESS;
  }
};

}  // namespace fe

using std::map;
