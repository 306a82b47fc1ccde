// The raw platform record that contexts hand out; PlatformAscendC is the documented way to read it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Host code relies on the standard names that come with the chip's record.
using std::string;
using std::vector;

namespace fe {

enum class LocalMemType { L0_A, L0_B, L0_C, L1, L2, UB, HBM, RESERVED };

class PlatFormInfos {
 public:
  std::uint32_t GetCoreNum() const;
  void GetLocalMemSize(const LocalMemType &type, std::uint64_t &bytes) const;
  // Sections as in the chip's configuration file, e.g. ("AICoreSpec", "ub_size").
  bool GetPlatformRes(const std::string &section, const std::string &key, std::string &value) const;
};

}  // namespace fe
