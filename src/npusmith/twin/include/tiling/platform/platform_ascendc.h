// What host code may ask about the chip.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "platform/platform_infos_def.h"
#include "platform/soc_spec.h"

namespace platform_ascendc {

enum class CoreMemType { L0_A, L0_B, L0_C, L1, L2, UB, HBM, FB, BT, RESERVED };
enum class SocVersion {
  ASCEND910,
  ASCEND910B,
  ASCEND310P,
  ASCEND310B,
  ASCEND910_95,
  ASCEND910_93,
  ASCEND950,
  ASCEND910_55,
  ASCEND910E,
  ASCEND350,
  ASCEND310,
  ASCEND310C,
  ASCEND610,
  ASCEND610LITE,
  AS31XM1,
  MC62,
  KIRINX90,
  KIRIN9030,
  RESERVED_VERSION = 99999
};
enum class ReservedSize { RESERVED_SIZE_0K, RESERVED_SIZE_8K, RESERVED_SIZE_16K };

class PlatformAscendC {
 public:
  explicit PlatformAscendC(const fe::PlatFormInfos *) {}
  std::uint32_t GetCoreNum() const;        // vector cores: what a vector kernel is split over
  std::uint32_t GetCoreNumAic() const;
  std::uint32_t GetCoreNumAiv() const;
  std::uint32_t GetCoreNumVector() const;  // separate vector cores of other chips: none here
  SocVersion GetSocVersion() const;
  NpuArch GetCurNpuArch() const { return NpuArch::DAV_2201; }
  void GetCoreMemSize(const CoreMemType &type, std::uint64_t &bytes) const;
  void GetCoreMemBw(const CoreMemType &type, std::uint64_t &bytesPerCycle) const;
  std::uint32_t GetLibApiWorkSpaceSize() const;
  std::uint32_t GetResCubeGroupWorkSpaceSize() const;
  std::uint32_t GetResGroupBarrierWorkSpaceSize() const;
  std::uint32_t CalcTschBlockDim(std::uint32_t slices, std::uint32_t aicCores,
                                 std::uint32_t aivCores) const;
  void ReserveLocalMemory(ReservedSize size) { reserved_ = size; }

 private:
  ReservedSize reserved_ = ReservedSize::RESERVED_SIZE_0K;
};

class PlatformAscendCManager {
 public:
  static PlatformAscendC *GetInstance();
  static PlatformAscendC *GetInstance(const char *soc);
};

}  // namespace platform_ascendc
