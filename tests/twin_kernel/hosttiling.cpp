// Tiling of SoftMax and the normalisations on the host: classes and plain structs hold the same.
#include <cstdio>
#include <cstring>

#include "tiling/tiling_api.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(All)
TILING_DATA_FIELD_DEF(uint32_t, first);
TILING_DATA_FIELD_DEF_STRUCT(SoftMaxTiling, soft);
TILING_DATA_FIELD_DEF_STRUCT(LayerNormTiling, layer);
TILING_DATA_FIELD_DEF_STRUCT(RmsNormTiling, rms);
TILING_DATA_FIELD_DEF_STRUCT(GroupNormTiling, group);
TILING_DATA_FIELD_DEF_STRUCT(BatchNormTiling, batch);
END_TILING_DATA_DEF;
}  // namespace optiling

// What the kernel reads the same bytes as.
struct alignas(8) Kernel {
  uint32_t first;
  AscendC::tiling::SoftMaxTiling soft;
  AscendC::tiling::LayerNormTiling layer;
  AscendC::tiling::RmsNormTiling rms;
  AscendC::tiling::GroupNormTiling group;
  AscendC::tiling::BatchNormTiling batch;
};

#define EXPECT(condition)                                       \
  if (!(condition)) return std::printf("failed: %s\n", #condition), 1

int main() {
  using namespace AscendC;
  optiling::All host;
  const ge::Shape matrix({40, 64}), cube({2, 5, 48}), image({2, 8, 4, 2});
  const uint32_t least = GetSoftMaxMinTmpSize(matrix, 4, false);
  EXPECT(least <= GetSoftMaxMaxTmpSize(matrix, 4, false));
  SoftMaxTilingFunc(matrix, 4, least * 16, host.soft);
  EXPECT(host.soft.get_splitM() == 16 && host.soft.get_rangeM() == 2 && host.soft.get_tailM() == 8);
  EXPECT(IsBasicBlockInSoftMax(host.soft, 4));
  SoftMaxTilingFunc(matrix, 4, least, host.soft);
  EXPECT(!IsBasicBlockInSoftMax(host.soft, 4));
  tiling::SoftMaxTiling plain;
  SoftMaxFlashV2TilingFunc(matrix, 2, 4, 1 << 16, plain, true, true);
  EXPECT(plain.srcM == 40 && plain.srcK == 64 && plain.splitM % 8 == 0 && plain.outMaxK == 8);
  EXPECT(GetSoftMaxGradMinTmpSize(matrix, 4, false, false) > 0);
  GetLayerNormNDTilingInfo(ge::Shape({2, 5, 48, 40}), 4096, 4, false, host.layer);
  uint32_t most = 0, small = 0;
  EXPECT(GetRmsNormMaxMinTmpSize(cube, 4, most, small) && small <= most);
  EXPECT(GetRmsNormTilingInfo(cube, ge::Shape({2, 5, 45}), small, 4, host.rms));
  EXPECT(!GetRmsNormTilingInfo(cube, cube, small - 1, 4, host.rms));
  EXPECT(!GetRmsNormTilingInfo(cube, cube, most, 4, host.rms, true));
  GetGroupNormNDTilingInfo(image, 1 << 14, 4, false, 4, host.group);
  EXPECT(GetBatchNormNDTilingInfo(cube, cube, 1 << 14, 4, false, host.batch));
  GetSigmoidMaxMinTmpSize(matrix, 2, false, most, small);
  EXPECT(small > 0 && small <= most);
  host.set_first(7);

  Kernel kernel;
  EXPECT(host.GetDataSize() == sizeof kernel);
  host.SaveToBuffer(&kernel, sizeof kernel);
  EXPECT(kernel.first == 7 && kernel.soft.srcM == 40 && kernel.soft.splitM == 1);
  EXPECT(kernel.layer.hLength == 48 && kernel.layer.originalHLength == 40);
  EXPECT(kernel.layer.lastDimValueBack == 1.0f / 40);
  EXPECT(kernel.rms.hLength == 48 && kernel.rms.originalHLength == 45);
  EXPECT(kernel.rms.loopRound == 10);
  EXPECT(kernel.group.n == 2 && kernel.group.g == 4 && kernel.group.d == 2 && kernel.group.hw == 8);
  EXPECT(kernel.batch.originalBLength == 2 && kernel.batch.meanVarSize == 240);
  return std::puts("good"), 0;
}
