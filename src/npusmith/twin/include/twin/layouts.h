// What host and kernel both say of sorting and of layouts: modes, formats, tiling structs.
#pragma once

#include <cstdint>

#include "twin/splits.h"

namespace AscendC {

enum class DataFormat : std::uint8_t {
  ND, NZ, NCHW, NC1HWC0, NHWC, NCDHW, NDC1HWC0, FRACTAL_Z_3D
};
struct TransDataConfig {
  DataFormat srcFormat;
  DataFormat dstFormat;
};

enum class TopKMode { TOPK_NORMAL, TOPK_NSMALL };
enum class SortType { RADIX_SORT, MERGE_SORT };
struct SortConfig {
  SortType type = SortType::RADIX_SORT;
  bool isDescend = false;
  bool hasSrcIndex = false;
  bool hasDstIndex = false;
};

#ifndef TWIN_REDUCE_PATTERN
#define TWIN_REDUCE_PATTERN
// Which axes a reduction keeps (A) and folds (R).
enum class ReducePattern : std::uint32_t {
  AR = 0, RA = 1, R, ARA, ARAR, ARARA, ARARAR, ARARARA, ARARARAR, ARARARARA, RAR, RARA, RARAR,
  RARARA, RARARAR, RARARARA
};
#endif

}  // namespace AscendC

// As documented; the twin reads the first three.
#define TWIN_TOPK_FIELDS(FIELD)                                                               \
  FIELD(int32_t, tmpLocalSize) FIELD(int32_t, allDataSize) FIELD(int32_t, innerDataSize)      \
  FIELD(uint32_t, sortRepeat) FIELD(int32_t, mrgSortRepeat) FIELD(int32_t, kAlignFourBytes)   \
  FIELD(int32_t, kAlignTwoBytes) FIELD(int32_t, maskOffset)                                   \
  FIELD(int32_t, maskVreducev2FourBytes) FIELD(int32_t, maskVreducev2TwoBytes)                \
  FIELD(int32_t, mrgSortSrc1offset) FIELD(int32_t, mrgSortSrc2offset)                         \
  FIELD(int32_t, mrgSortSrc3offset) FIELD(int32_t, mrgSortTwoQueueSrc1Offset)                 \
  FIELD(int32_t, mrgFourQueueTailPara1) FIELD(int32_t, mrgFourQueueTailPara2)                 \
  FIELD(int32_t, srcIndexOffset) FIELD(uint32_t, copyUbToUbBlockCount)                        \
  FIELD(int32_t, topkMrgSrc1MaskSizeOffset) FIELD(int32_t, topkNSmallSrcIndexOffset)          \
  FIELD(uint32_t, vreduceValMask0) FIELD(uint32_t, vreduceValMask1)                           \
  FIELD(uint32_t, vreduceIdxMask0) FIELD(uint32_t, vreduceIdxMask1)                           \
  FIELD(uint16_t, vreducehalfValMask0) FIELD(uint16_t, vreducehalfValMask1)                   \
  FIELD(uint16_t, vreducehalfValMask2) FIELD(uint16_t, vreducehalfValMask3)                   \
  FIELD(uint16_t, vreducehalfValMask4) FIELD(uint16_t, vreducehalfValMask5)                   \
  FIELD(uint16_t, vreducehalfValMask6) FIELD(uint16_t, vreducehalfValMask7)

// The members of the others are ours: the pages say that user code only passes them on.
#define TWIN_PAD_FIELDS(FIELD)                                                               \
  FIELD(uint32_t, srcHeight) FIELD(uint32_t, srcWidth) FIELD(uint32_t, srcOriWidth)          \
  FIELD(uint32_t, tmpSize)
#define TWIN_UNPAD_FIELDS(FIELD) \
  FIELD(uint32_t, srcHeight) FIELD(uint32_t, srcWidth) FIELD(uint32_t, tmpSize)
// Kernels fill the first six themselves for the scene of one matrix: elements of 32 bytes, height,
// width, height / 16, blocks of a column of blocks, width in blocks. The last six are ours: scene,
// bytes of an element, and B, N, S and H/N.
#define TWIN_TRANSPOSE_FIELDS(FIELD)                                                         \
  FIELD(uint32_t, param0) FIELD(uint32_t, param1) FIELD(uint32_t, param2)                    \
  FIELD(uint32_t, param3) FIELD(uint32_t, param4) FIELD(uint32_t, param5)                    \
  FIELD(uint32_t, param6) FIELD(uint32_t, param7) FIELD(uint32_t, param8)                    \
  FIELD(uint32_t, param9) FIELD(uint32_t, param10) FIELD(uint32_t, param11)                  \
  FIELD(uint32_t, param12) FIELD(uint32_t, param13) FIELD(uint32_t, param14)                 \
  FIELD(uint32_t, param15) FIELD(uint32_t, param16) FIELD(uint32_t, param17)

namespace AscendC {
namespace tiling {

TWIN_TILING_STRUCT(TopkTiling, TWIN_TOPK_FIELDS)
TWIN_TILING_STRUCT(PadTiling, TWIN_PAD_FIELDS)
TWIN_TILING_STRUCT(UnPadTiling, TWIN_UNPAD_FIELDS)
TWIN_TILING_STRUCT(ConfusionTransposeTiling, TWIN_TRANSPOSE_FIELDS)

}  // namespace tiling
}  // namespace AscendC
