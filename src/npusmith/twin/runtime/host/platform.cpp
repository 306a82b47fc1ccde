// The chip as host code sees it.
#include <algorithm>

#include "node.h"
#include "tiling/platform/platform_ascendc.h"
#include "graph/utils/type_utils.h"
#include "twin/chip.h"

namespace fe {

std::uint32_t PlatFormInfos::GetCoreNum() const { return TWIN_CUBE_CORES; }

void PlatFormInfos::GetLocalMemSize(const LocalMemType &type, std::uint64_t &bytes) const {
  switch (type) {
    case LocalMemType::L0_A: bytes = TWIN_L0A_BYTES; return;
    case LocalMemType::L0_B: bytes = TWIN_L0B_BYTES; return;
    case LocalMemType::L0_C: bytes = TWIN_L0C_BYTES; return;
    case LocalMemType::L1: bytes = TWIN_L1_BYTES; return;
    case LocalMemType::L2: bytes = TWIN_L2_BYTES; return;
    case LocalMemType::UB: bytes = TWIN_UB_TOTAL_BYTES - TWIN_UB_SYSTEM_BYTES; return;
    case LocalMemType::HBM: bytes = TWIN_HBM_BYTES; return;
    default: bytes = 0; return;
  }
}

bool PlatFormInfos::GetPlatformRes(const std::string &section, const std::string &key,
                                   std::string &value) const {
  const struct {
    const char *section, *key;
    std::uint64_t value;
  } rows[] = {
      {"SoCInfo", "ai_core_cnt", TWIN_CUBE_CORES},
      {"SoCInfo", "cube_core_cnt", TWIN_CUBE_CORES},
      {"SoCInfo", "vector_core_cnt", TWIN_VECTOR_CORES},
      {"SoCInfo", "l2_size", TWIN_L2_BYTES},
      {"SoCInfo", "memory_size", TWIN_HBM_BYTES},
      {"AICoreSpec", "ub_size", TWIN_UB_TOTAL_BYTES},
      {"AICoreSpec", "l1_size", TWIN_L1_BYTES},
      {"AICoreSpec", "l0_a_size", TWIN_L0A_BYTES},
      {"AICoreSpec", "l0_b_size", TWIN_L0B_BYTES},
      {"AICoreSpec", "l0_c_size", TWIN_L0C_BYTES},
  };
  for (const auto &row : rows) {
    if (section != row.section || key != row.key) continue;
    value = std::to_string(row.value);
    return true;
  }
  return false;
}

}  // namespace fe

namespace platform_ascendc {

std::uint32_t PlatformAscendC::GetCoreNum() const { return TWIN_VECTOR_CORES; }
std::uint32_t PlatformAscendC::GetCoreNumAic() const { return TWIN_CUBE_CORES; }
std::uint32_t PlatformAscendC::GetCoreNumAiv() const { return TWIN_VECTOR_CORES; }
std::uint32_t PlatformAscendC::GetCoreNumVector() const { return 0; }
SocVersion PlatformAscendC::GetSocVersion() const { return SocVersion::ASCEND910B; }

void PlatformAscendC::GetCoreMemSize(const CoreMemType &type, std::uint64_t &bytes) const {
  const std::uint64_t reserved[] = {0, 8 * 1024, 16 * 1024};
  switch (type) {
    case CoreMemType::L0_A: bytes = TWIN_L0A_BYTES; return;
    case CoreMemType::L0_B: bytes = TWIN_L0B_BYTES; return;
    case CoreMemType::L0_C: bytes = TWIN_L0C_BYTES; return;
    case CoreMemType::L1: bytes = TWIN_L1_BYTES; return;
    case CoreMemType::L2: bytes = TWIN_L2_BYTES; return;
    case CoreMemType::HBM: bytes = TWIN_HBM_BYTES; return;
    case CoreMemType::FB: bytes = TWIN_FIXPIPE_BYTES; return;
    case CoreMemType::BT: bytes = TWIN_BIAS_TABLE_BYTES; return;
    case CoreMemType::UB:
      bytes = TWIN_UB_TOTAL_BYTES - TWIN_UB_SYSTEM_BYTES - reserved[static_cast<int>(reserved_)];
      return;
    default: bytes = 0; return;
  }
}

void PlatformAscendC::GetCoreMemBw(const CoreMemType &type, std::uint64_t &bytesPerCycle) const {
  switch (type) {
    case CoreMemType::L2: bytesPerCycle = TWIN_L2_BYTES_PER_CYCLE; return;
    case CoreMemType::HBM: bytesPerCycle = TWIN_DDR_BYTES_PER_CYCLE; return;
    default: bytesPerCycle = 0; return;
  }
}

std::uint32_t PlatformAscendC::GetLibApiWorkSpaceSize() const {
  return TWIN_SYSTEM_WORKSPACE_BYTES;
}

// Workspaces of cube groups and group barriers, which the twin's vector core does not run.
std::uint32_t PlatformAscendC::GetResCubeGroupWorkSpaceSize() const { return 0; }
std::uint32_t PlatformAscendC::GetResGroupBarrierWorkSpaceSize() const { return 0; }

// Blocks to launch for `slices` pieces of work: a launched block of a mixed kernel is one cube core
// with its vector cores, so vector work needs only one block for each such group.
std::uint32_t PlatformAscendC::CalcTschBlockDim(std::uint32_t slices, std::uint32_t aicCores,
                                                std::uint32_t aivCores) const {
  if (aicCores == 0 || aivCores == 0 || aicCores > aivCores) return slices;
  const std::uint32_t ratio = aivCores / aicCores;
  return (slices + ratio - 1) / ratio;
}

PlatformAscendC *PlatformAscendCManager::GetInstance() {
  static PlatformAscendC instance(nullptr);
  return &instance;
}

PlatformAscendC *PlatformAscendCManager::GetInstance(const char *) { return GetInstance(); }

}  // namespace platform_ascendc

namespace gert {

namespace {
fe::PlatFormInfos *Platform() {
  static fe::PlatFormInfos platform;
  return &platform;
}
}  // namespace

fe::PlatFormInfos *TilingContext::GetPlatformInfo() const { return Platform(); }
fe::PlatFormInfos *TilingParseContext::GetPlatformInfo() const { return Platform(); }

}  // namespace gert

namespace ge {

namespace {
const struct {
  DataType type;
  const char *name;
} kTypes[] = {
    {DT_FLOAT, "DT_FLOAT"},   {DT_FLOAT16, "DT_FLOAT16"}, {DT_BF16, "DT_BF16"},
    {DT_INT8, "DT_INT8"},     {DT_UINT8, "DT_UINT8"},     {DT_INT16, "DT_INT16"},
    {DT_UINT16, "DT_UINT16"}, {DT_INT32, "DT_INT32"},     {DT_UINT32, "DT_UINT32"},
    {DT_INT64, "DT_INT64"},   {DT_UINT64, "DT_UINT64"},   {DT_DOUBLE, "DT_DOUBLE"},
    {DT_BOOL, "DT_BOOL"},     {DT_STRING, "DT_STRING"},   {DT_COMPLEX64, "DT_COMPLEX64"},
};
const struct {
  Format format;
  const char *name;
} kFormats[] = {
    {FORMAT_ND, "ND"},           {FORMAT_NCHW, "NCHW"},       {FORMAT_NHWC, "NHWC"},
    {FORMAT_NCDHW, "NCDHW"},     {FORMAT_NDHWC, "NDHWC"},     {FORMAT_HWCN, "HWCN"},
    {FORMAT_NC1HWC0, "NC1HWC0"}, {FORMAT_FRACTAL_Z, "FRACTAL_Z"},
    {FORMAT_FRACTAL_NZ, "FRACTAL_NZ"},
};
}  // namespace

std::string TypeUtils::DataTypeToSerialString(DataType type) {
  for (const auto &row : kTypes) {
    if (row.type == type) return row.name;
  }
  return "DT_UNDEFINED";
}

std::string TypeUtils::FormatToSerialString(Format format) {
  for (const auto &row : kFormats) {
    if (row.format == format) return row.name;
  }
  return "RESERVED";
}

bool TypeUtils::GetDataTypeLength(DataType type, std::uint32_t &length) {
  const int bytes = GetSizeByDataType(type);
  if (bytes < 0) return false;
  length = static_cast<std::uint32_t>(bytes);
  return true;
}

}  // namespace ge
