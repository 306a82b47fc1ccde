// The fields of TCubeTiling, what the host's matmul tiling tells the kernel.
#pragma once

#include <cstdint>

// The documented fields, in the order of the documented layout; each is an int32_t.
#define TWIN_CUBE_FIELDS(X)                                                                  \
  X(usedCoreNum) X(M) X(N) X(Ka) X(Kb) X(singleCoreM) X(singleCoreN) X(singleCoreK)          \
  X(baseM) X(baseN) X(baseK) X(depthA1) X(depthB1) X(stepM) X(stepN) X(isBias)               \
  X(transLength) X(iterateOrder) X(shareMode) X(shareL1Size) X(shareL0CSize) X(shareUbSize)  \
  X(batchM) X(batchN) X(singleBatchM) X(singleBatchN) X(stepKa) X(stepKb)                    \
  X(depthAL1CacheUB) X(depthBL1CacheUB) X(dbL0A) X(dbL0B) X(dbL0C)                           \
  X(ALayoutInfoB) X(ALayoutInfoS) X(ALayoutInfoN) X(ALayoutInfoG) X(ALayoutInfoD)            \
  X(BLayoutInfoB) X(BLayoutInfoS) X(BLayoutInfoN) X(BLayoutInfoG) X(BLayoutInfoD)            \
  X(CLayoutInfoB) X(CLayoutInfoS1) X(CLayoutInfoN) X(CLayoutInfoG) X(CLayoutInfoS2)          \
  X(BatchNum) X(mxTypePara)

namespace AscendC::tiling {

// Aligned as the host places a nested struct.
struct alignas(8) TCubeTiling {
#define TWIN_CUBE_MEMBER(name) std::int32_t name;
  TWIN_CUBE_FIELDS(TWIN_CUBE_MEMBER)
#undef TWIN_CUBE_MEMBER
};
static_assert(sizeof(TCubeTiling) == 50 * sizeof(std::int32_t));

}  // namespace AscendC::tiling
