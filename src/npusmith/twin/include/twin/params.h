// Parameter records of the documented API; fields narrower than what was passed are findings.
#pragma once

#include "twin/narrow.h"
#include "twin/types.h"

namespace AscendC {

// Strides of one-source instructions, in 32-byte blocks.
struct UnaryRepeatParams {
  std::uint16_t dstBlkStride = 1;
  std::uint16_t srcBlkStride = 1;
  std::uint8_t dstRepStride = 8;
  std::uint8_t srcRepStride = 8;
  bool halfBlock = false;

  UnaryRepeatParams() = default;
  UnaryRepeatParams(twin::Word dstBlk, twin::Word srcBlk, twin::Byte dstRep, twin::Byte srcRep,
                    twin::Site site = twin::Here())
      : dstBlkStride(Cut(dstBlk, "dstBlkStride", site)),
        srcBlkStride(Cut(srcBlk, "srcBlkStride", site)),
        dstRepStride(Cut(dstRep, "dstRepStride", site)),
        srcRepStride(Cut(srcRep, "srcRepStride", site)) {}
};

// Strides of two-source instructions, in 32-byte blocks.
struct BinaryRepeatParams {
  std::uint8_t dstBlkStride = 1;
  std::uint8_t src0BlkStride = 1;
  std::uint8_t src1BlkStride = 1;
  std::uint8_t dstRepStride = 8;
  std::uint8_t src0RepStride = 8;
  std::uint8_t src1RepStride = 8;
  std::uint32_t blockNumber = 8;  // of the older interface; no instruction reads it

  BinaryRepeatParams() = default;
  BinaryRepeatParams(twin::Byte dstBlk, twin::Byte src0Blk, twin::Byte src1Blk, twin::Byte dstRep,
                     twin::Byte src0Rep, twin::Byte src1Rep, twin::Site site = twin::Here())
      : dstBlkStride(Cut(dstBlk, "dstBlkStride", site)),
        src0BlkStride(Cut(src0Blk, "src0BlkStride", site)),
        src1BlkStride(Cut(src1Blk, "src1BlkStride", site)),
        dstRepStride(Cut(dstRep, "dstRepStride", site)),
        src0RepStride(Cut(src0Rep, "src0RepStride", site)),
        src1RepStride(Cut(src1Rep, "src1RepStride", site)) {}
};

struct CopyRepeatParams {
  std::uint16_t dstStride = 1;
  std::uint16_t srcStride = 1;
  std::uint16_t dstRepeatSize = 8;
  std::uint16_t srcRepeatSize = 8;

  CopyRepeatParams() = default;
  CopyRepeatParams(twin::Word dst, twin::Word src, twin::Word dstRepeat, twin::Word srcRepeat,
                   twin::Site site = twin::Here())
      : dstStride(Cut(dst, "dstStride", site)),
        srcStride(Cut(src, "srcStride", site)),
        dstRepeatSize(Cut(dstRepeat, "dstRepeatSize", site)),
        srcRepeatSize(Cut(srcRepeat, "srcRepeatSize", site)) {}
};

struct BrcbRepeatParams {
  std::uint16_t dstBlkStride = 1;
  std::uint16_t dstRepStride = 8;

  BrcbRepeatParams() = default;
  BrcbRepeatParams(twin::Word dstBlk, twin::Word dstRep, twin::Site site = twin::Here())
      : dstBlkStride(Cut(dstBlk, "dstBlkStride", site)),
        dstRepStride(Cut(dstRep, "dstRepStride", site)) {}
};

struct GatherRepeatParams {
  std::uint16_t dstBlkStride = 1;
  std::uint16_t dstRepStride = 8;

  GatherRepeatParams() = default;
  GatherRepeatParams(twin::Word dstBlk, twin::Word dstRep, twin::Site site = twin::Here())
      : dstBlkStride(Cut(dstBlk, "dstBlkStride", site)),
        dstRepStride(Cut(dstRep, "dstRepStride", site)) {}
};

struct GatherMaskParams {
  std::uint8_t src0BlockStride = 1;
  std::uint16_t repeatTimes = 0;
  std::uint16_t src0RepeatStride = 0;
  std::uint8_t src1RepeatStride = 0;

  GatherMaskParams() = default;
  GatherMaskParams(twin::Byte src0Block, twin::Word repeats, twin::Word src0Repeat,
                   twin::Byte src1Repeat, twin::Site site = twin::Here())
      : src0BlockStride(Cut(src0Block, "src0BlockStride", site)),
        repeatTimes(Cut(repeats, "repeatTimes", site)),
        src0RepeatStride(Cut(src0Repeat, "src0RepeatStride", site)),
        src1RepeatStride(Cut(src1Repeat, "src1RepeatStride", site)) {}
};

// Block copies: length and gaps in 32-byte blocks (in bytes for DataCopyPad).
struct DataCopyParams {
  std::uint16_t blockCount = 1;
  std::uint16_t blockLen = 0;
  union {
    std::uint16_t srcStride = 0;
    std::uint16_t srcGap;
  };
  union {
    std::uint16_t dstStride = 0;
    std::uint16_t dstGap;
  };

  DataCopyParams() = default;
  DataCopyParams(twin::Word count, twin::Word length, twin::Word source, twin::Word target,
                 twin::Site site = twin::Here())
      : blockCount(Cut(count, "blockCount", site)),
        blockLen(Cut(length, "blockLen", site)),
        srcStride(Cut(source, "srcStride", site)),
        dstStride(Cut(target, "dstStride", site)) {}
};

// Padded copies: length and the stride in global memory in bytes, in UB in 32-byte blocks.
struct DataCopyExtParams {
  std::uint16_t blockCount = 1;
  std::uint32_t blockLen = 0;
  std::uint32_t srcStride = 0;
  std::uint32_t dstStride = 0;
  std::uint32_t rsv = 0;

  DataCopyExtParams() = default;
  DataCopyExtParams(twin::Word count, twin::Narrow<std::uint32_t> length,
                    twin::Narrow<std::uint32_t> source, twin::Narrow<std::uint32_t> target,
                    std::uint32_t reserved, twin::Site site = twin::Here())
      : blockCount(Cut(count, "blockCount", site)),
        blockLen(Wide(length, "blockLen", site)),
        srcStride(Wide(source, "srcStride", site)),
        dstStride(Wide(target, "dstStride", site)),
        rsv(reserved) {}

 private:
  static std::uint32_t Wide(twin::Narrow<std::uint32_t> number, const char *what, twin::Site site) {
    return static_cast<std::uint32_t>(
        twin::Fit({"DataCopyExtParams", site}, what, number.value, 0xFFFFFFFFll));
  }
};

// Matrices in fractals of 16 columns to rows; strides from head to head.
struct Nz2NdParamsFull {
  std::uint16_t ndNum = 1;
  std::uint16_t nValue = 0;             // rows
  std::uint16_t dValue = 0;             // columns, a multiple of 16
  std::uint16_t srcNdMatrixStride = 1;  // in 256 elements
  std::uint16_t srcNStride = 0;         // between columns of fractals, in 16 elements
  std::uint16_t dstDStride = 0;         // between rows, in elements
  std::uint16_t dstNdMatrixStride = 1;  // in elements

  Nz2NdParamsFull() = default;
  Nz2NdParamsFull(twin::Word matrices, twin::Word rows, twin::Word columns, twin::Word srcMatrix,
                  twin::Word srcColumn, twin::Word dstRow, twin::Word dstMatrix,
                  twin::Site site = twin::Here())
      : ndNum(Cut(matrices, "ndNum", site)),
        nValue(Cut(rows, "nValue", site)),
        dValue(Cut(columns, "dValue", site)),
        srcNdMatrixStride(Cut(srcMatrix, "srcNdMatrixStride", site)),
        srcNStride(Cut(srcColumn, "srcNStride", site)),
        dstDStride(Cut(dstRow, "dstDStride", site)),
        dstNdMatrixStride(Cut(dstMatrix, "dstNdMatrixStride", site)) {}
};

struct DataCopyPadParams {
  bool isPad = false;
  std::uint8_t leftPadding = 0;
  std::uint8_t rightPadding = 0;
  std::uint64_t paddingValue = 0;

  DataCopyPadParams() = default;
  DataCopyPadParams(bool pad, twin::Byte left, twin::Byte right, std::uint64_t value,
                    twin::Site site = twin::Here())
      : isPad(pad),
        leftPadding(Cut(left, "leftPadding", site)),
        rightPadding(Cut(right, "rightPadding", site)),
        paddingValue(value) {}
};

template <typename T>
struct DataCopyPadExtParams {
  bool isPad = false;
  std::uint8_t leftPadding = 0;
  std::uint8_t rightPadding = 0;
  T paddingValue = T(0);

  DataCopyPadExtParams() = default;
  DataCopyPadExtParams(bool pad, twin::Byte left, twin::Byte right, T value,
                       twin::Site site = twin::Here())
      : isPad(pad),
        leftPadding(Cut(left, "leftPadding", site)),
        rightPadding(Cut(right, "rightPadding", site)),
        paddingValue(value) {}
};

// One dimension of a slice copy; startIndex, endIndex and stride in elements, burstLen in blocks.
struct SliceInfo {
  std::uint32_t startIndex = 0;
  std::uint32_t endIndex = 0;
  std::uint32_t stride = 0;
  std::uint32_t burstLen = 0;
  std::uint32_t shapeValue = 0;

  SliceInfo() = default;
  SliceInfo(std::uint32_t start, std::uint32_t end, std::uint32_t gap, std::uint32_t burst,
            std::uint32_t shape = 0)
      : startIndex(start), endIndex(end), stride(gap), burstLen(burst), shapeValue(shape) {}
};

struct TransDataTo5HDParams {
  bool dstHighHalf = false;
  bool srcHighHalf = false;
  std::uint8_t repeatTimes = 1;
  std::uint16_t dstRepStride = 0;
  std::uint16_t srcRepStride = 0;

  TransDataTo5HDParams() = default;
  TransDataTo5HDParams(bool dstHigh, bool srcHigh, twin::Byte repeats, twin::Word dstRepeat,
                       twin::Word srcRepeat, twin::Site site = twin::Here())
      : dstHighHalf(dstHigh),
        srcHighHalf(srcHigh),
        repeatTimes(Cut(repeats, "repeatTimes", site)),
        dstRepStride(Cut(dstRepeat, "dstRepStride", site)),
        srcRepStride(Cut(srcRepeat, "srcRepStride", site)) {}
};

// Rows of `inner` elements (a multiple of 32 B), of which the first n count.
struct SumParams {
  std::uint32_t outter = 1;
  std::uint32_t inner = 0;
  std::uint32_t n = 0;
};
struct MeanParams {
  std::uint32_t outter = 1;
  std::uint32_t inner = 0;
  std::uint32_t n = 0;
};

constexpr std::int32_t K_MAX_DIM = 8;
struct ShapeInfo {
  std::uint8_t shapeDim = 0;
  std::uint32_t shape[K_MAX_DIM] = {};
  std::uint8_t originalShapeDim = 0;
  std::uint32_t originalShape[K_MAX_DIM] = {};
  DataFormat dataFormat = DataFormat::ND;

  ShapeInfo() = default;
  ShapeInfo(std::uint8_t dims, const std::uint32_t axes[], DataFormat format = DataFormat::ND)
      : ShapeInfo(dims, axes, dims, axes, format) {}
  ShapeInfo(std::uint8_t dims, const std::uint32_t axes[], std::uint8_t originalDims,
            const std::uint32_t originalAxes[], DataFormat format = DataFormat::ND)
      : shapeDim(dims), originalShapeDim(originalDims), dataFormat(format) {
    for (int i = 0; i < dims && i < 8; ++i) shape[i] = axes[i];
    for (int i = 0; i < originalDims && i < 8; ++i) originalShape[i] = originalAxes[i];
  }
};

inline int GetShapeSize(const ShapeInfo &info) {
  int size = info.shapeDim > 0 ? 1 : 0;
  for (int i = 0; i < info.shapeDim; ++i) size *= static_cast<int>(info.shape[i]);
  return size;
}

}  // namespace AscendC
