// The cube core: moves into L1, L0 and the tables, matrix products, and the way out of L0C.
#pragma once

#include <cstring>

#include "twin/copy.h"
#include "twin/tensor.h"

// How Fixpipe converts what it moves (doc: Fixpipe, quantPre). V...: a scale for each column.
enum QuantMode_t {
  NoQuant = 0,
  F322F16,
  F322BF16,
  DEQF16,
  VDEQF16,
  QF322B8_PRE,
  VQF322B8_PRE,
  REQ8,
  VREQ8
};

namespace twin {

// ---- what the headers ask of the runtime

// A load of whole fractals of 512 bytes; strides count in units of what one iteration reads.
struct Fractals {
  std::int64_t start, repeats, source, gap, inner;
  bool transpose, descend;
};
struct NdToNz {
  std::int64_t count, rows, columns, sourceMatrix, sourceRow, targetC0, targetRow, targetMatrix;
};
// Image to column: which part of the matrix that a convolution sees.
struct ImageLoad {
  std::int64_t pad[4];  // left, right, top, bottom
  std::int64_t height, width, channels;
  std::int64_t kExtension, mExtension, kStart, mStart;
  std::int64_t strideW, strideH, filterW, filterH, dilationW, dilationH;
  bool transpose;
  std::uint64_t padBits;
  bool ownMatrix, ownPad;  // height, width and pad (padBits) of the call, or of the registers
};
struct Product {
  std::int64_t m, n, k;
  bool zero;       // C starts at 0
  bool tableBias;  // C starts at the bias table
  bool alignK16;
  int unitFlag;
};
struct Outflow {
  std::int64_t n, m, source, target;
  int mode;  // a QuantMode_t
  std::uint64_t scale;
  std::int64_t matrices, sourceMatrix, targetMatrix;
  bool relu, rowMajor, split;
  int unitFlag;
};

void LoadFractals(const Call &call, DType type, const View &dst, const View &src,
                  const Fractals &how);
void LoadFractalsGm(const Call &call, DType type, const View &dst, const Gm &src,
                    const Fractals &how);
void LoadSquares(const Call &call, DType type, const View &dst, const View &src,
                 const Fractals &how);
void LoadSparse(const Call &call, const View &dst, const View &src, const View &index,
                const Fractals &how);
void LoadImage(const Call &call, DType type, const View &dst, const View &src,
               const ImageLoad &how);
void SetImage(const Call &call, std::int64_t height, std::int64_t width, const std::uint8_t *pad);
void SetImagePad(const Call &call, std::uint64_t bits);
void SetImageRepeat(const Call &call, std::int64_t stride, std::int64_t times, std::int64_t mode);
void SetImageBoundary(const Call &call, std::int64_t bytes);
void FillBlocks(const Call &call, DType type, const View &dst, const void *value,
                std::int64_t repeats, std::int64_t blocks, std::int64_t gap);
void CopyNdToNz(const Call &call, DType type, const View &dst, const Gm &src, const NdToNz &how);
// L1 to the bias table or the fixpipe buffer; `how` is null for the count form.
void CopyToTable(const Call &call, DType dstType, DType srcType, const View &dst, const View &src,
                 const Blocks *how, std::int64_t count);
void MmadOp(const Call &call, DType type, const View &dst, const View &a, const View &b,
            const View *bias, const Product &how);
void MmadSparseOp(const Call &call, const View &dst, const View &a, const View &b,
                  const Product &how);
void SetHf32(const Call &call, bool on);
void SetHf32Round(const Call &call, bool towardsZero);
void FixpipeToGm(const Call &call, DType dstType, DType srcType, const Gm &dst, const View &src,
                 const View *scales, const Outflow &how);
void FixpipeToL1(const Call &call, DType dstType, DType srcType, const View &dst, const View &src,
                 const View *scales, const Outflow &how);
void SetFixScale(const Call &call, std::uint64_t scale);
void SetFixTable(const Call &call, const View &table, bool clearUnitFlags);
void SetFixMatrices(const Call &call, std::int64_t count, std::int64_t source,
                    std::int64_t target);
// What SetFixScale and SetFixMatrices have set, for copies without parameters of their own.
std::uint64_t FixScale();
void FixMatrices(Outflow &how);

template <typename T>
inline constexpr bool kCubeElement =
    kOneOf<T, half, bfloat16_t, float, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t,
           std::int32_t, std::uint32_t, int4b_t>;

}  // namespace twin

namespace AscendC {

using ::QuantMode_t;

// ---- parameters

struct Nd2NzParams {
  std::uint16_t ndNum = 0;
  std::uint16_t nValue = 0;
  std::uint32_t dValue = 0;
  std::uint32_t srcNdMatrixStride = 0;
  std::uint32_t srcDValue = 0;
  std::uint16_t dstNzC0Stride = 0;
  std::uint16_t dstNzNStride = 0;
  std::uint32_t dstNzMatrixStride = 0;

  Nd2NzParams() = default;
  Nd2NzParams(twin::Word nds, twin::Word rows, std::uint32_t columns, std::uint32_t sourceMatrix,
              std::uint32_t sourceRow, twin::Word c0Stride, twin::Word rowStride,
              std::uint32_t targetMatrix, twin::Site site = twin::Here())
      : ndNum(Cut(nds, "ndNum", site)),
        nValue(Cut(rows, "nValue", site)),
        dValue(columns),
        srcNdMatrixStride(sourceMatrix),
        srcDValue(sourceRow),
        dstNzC0Stride(Cut(c0Stride, "dstNzC0Stride", site)),
        dstNzNStride(Cut(rowStride, "dstNzNStride", site)),
        dstNzMatrixStride(targetMatrix) {}
};

// Of Ascend 950; kernels for several chips name it in branches that this one never takes.
struct LoadData2DParamsV2 {
  std::uint32_t mStartPosition = 0, kStartPosition = 0;
  std::uint16_t mStep = 0, kStep = 0;
  std::int32_t srcStride = 0;
  std::uint16_t dstStride = 0;
  bool ifTranspose = false;
  std::uint8_t sid = 0;
};

struct LoadData2DParams {
  std::uint16_t startIndex = 0;
  std::uint8_t repeatTimes = 0;
  std::uint16_t srcStride = 0;
  std::uint8_t sid = 0;
  std::uint16_t dstGap = 0;
  bool ifTranspose = false;
  std::uint8_t addrMode = 0;

  LoadData2DParams() = default;
  LoadData2DParams(twin::Word start, twin::Byte repeats, twin::Word source, std::uint8_t reserved,
                   twin::Word gap, bool transpose, std::uint8_t mode,
                   twin::Site site = twin::Here())
      : startIndex(Cut(start, "startIndex", site)),
        repeatTimes(Cut(repeats, "repeatTimes", site)),
        srcStride(Cut(source, "srcStride", site)),
        sid(reserved),
        dstGap(Cut(gap, "dstGap", site)),
        ifTranspose(transpose),
        addrMode(mode) {}
};
using LoadData2dParams = LoadData2DParams;

struct LoadData2dTransposeParams {
  std::uint16_t startIndex = 0;
  std::uint8_t repeatTimes = 0;
  std::uint16_t srcStride = 0;
  std::uint16_t dstGap = 0;
  std::uint16_t dstFracGap = 0;
  std::uint8_t addrMode = 0;

  LoadData2dTransposeParams() = default;
  LoadData2dTransposeParams(twin::Word start, twin::Byte repeats, twin::Word source,
                            twin::Word gap, twin::Word fractalGap, std::uint8_t mode = 0,
                            twin::Site site = twin::Here())
      : startIndex(Cut(start, "startIndex", site)),
        repeatTimes(Cut(repeats, "repeatTimes", site)),
        srcStride(Cut(source, "srcStride", site)),
        dstGap(Cut(gap, "dstGap", site)),
        dstFracGap(Cut(fractalGap, "dstFracGap", site)),
        addrMode(mode) {}
};

struct IsResetLoad3dConfig {
  bool isSetFMatrix = true;
  bool isSetPadding = true;
};
constexpr IsResetLoad3dConfig IS_RESER_LOAD3D_DEFAULT_CONFIG = {true, true};
constexpr std::int32_t PAD_SIZE = 4;

template <typename T>
struct LoadData3DParamsV2 {
  std::uint8_t padList[PAD_SIZE] = {0, 0, 0, 0};
  std::uint16_t l1H = 0;
  std::uint16_t l1W = 0;
  std::uint16_t channelSize = 0;
  std::uint16_t kExtension = 0;
  std::uint16_t mExtension = 0;
  std::uint16_t kStartPt = 0;
  std::uint16_t mStartPt = 0;
  std::uint8_t strideW = 1;
  std::uint8_t strideH = 1;
  std::uint8_t filterW = 1;
  std::uint8_t filterH = 1;
  std::uint8_t dilationFilterW = 1;
  std::uint8_t dilationFilterH = 1;
  bool enTranspose = false;
  bool enSmallK = false;
  T padValue = T{};
  bool filterSizeW = false;
  bool filterSizeH = false;
  bool fMatrixCtrl = false;
};

struct LoadData3DParamsV2Pro {
  std::uint16_t channelSize = 0;
  bool enTranspose = false;
  bool enSmallK = false;
  bool filterSizeW = false;
  bool filterSizeH = false;
  bool fMatrixCtrl = false;
  std::uint64_t extConfig = 0;                 // mStartPt, kStartPt, mExtension, kExtension
  std::uint64_t filterConfig = 0x10101010101;  // dilation, filter and stride, H before W
};

struct LoadDataRepeatParam {
  std::uint16_t repeatStride = 0;
  std::uint8_t repeatTime = 1;
  std::uint8_t repeatMode = 0;
};
enum class FmatrixMode : std::uint8_t { FMATRIX_LEFT = 0, FMATRIX_RIGHT = 1 };

template <typename T>
struct InitConstValueParams {
  std::uint16_t repeatTimes = 0;
  std::uint16_t blockNum = 0;
  std::uint16_t dstGap = 0;
  T initValue = T(0);

  InitConstValueParams() = default;
  InitConstValueParams(std::uint16_t repeats, std::uint16_t blocks, std::uint16_t gap, T value)
      : repeatTimes(repeats), blockNum(blocks), dstGap(gap), initValue(value) {}
  InitConstValueParams(std::uint16_t repeats, T value)
      : repeatTimes(repeats), blockNum(1), initValue(value) {}
};

struct MmadParams {
  std::uint16_t m = 0;
  std::uint16_t n = 0;
  std::uint16_t k = 0;
  bool isBias = false;
  std::int32_t fmOffset = 0;
  bool enSsparse = false;
  bool enWinogradA = false;
  bool enWinogradB = false;
  std::int8_t unitFlag = 0;
  bool kDirectionAlign = false;
  bool cmatrixSource = false;
  bool cmatrixInitVal = true;

  MmadParams() = default;
  MmadParams(twin::Word rows, twin::Word columns, twin::Word inner, bool bias,
             std::int32_t offset = 0, bool sparse = false, bool winogradA = false,
             bool winogradB = false, twin::Site site = twin::Here())
      : m(Cut(rows, "m", site)),
        n(Cut(columns, "n", site)),
        k(Cut(inner, "k", site)),
        isBias(bias),
        fmOffset(offset),
        enSsparse(sparse),
        enWinogradA(winogradA),
        enWinogradB(winogradB) {}
  MmadParams(twin::Word rows, twin::Word columns, twin::Word inner, std::uint8_t flag,
             bool fromTable, bool fromZero, twin::Site site = twin::Here())
      : m(Cut(rows, "m", site)),
        n(Cut(columns, "n", site)),
        k(Cut(inner, "k", site)),
        unitFlag(static_cast<std::int8_t>(flag)),
        cmatrixSource(fromTable),
        cmatrixInitVal(fromZero) {}
};

enum class HF32Mode : std::uint8_t { DISABLE = 0, ENABLE = 1 };
enum class HF32TransMode : std::uint8_t { NEAREST_EVEN = 0, NEAREST_ZERO = 1 };

enum class CO2Layout : std::uint8_t { NZ = 0, ROW_MAJOR };
struct FixpipeConfig {
  CO2Layout format;
  bool isToUB = false;  // another chip has a way from L0C to UB
};
constexpr FixpipeConfig CFG_NZ = {CO2Layout::NZ};
constexpr FixpipeConfig CFG_ROW_MAJOR = {CO2Layout::ROW_MAJOR};

struct FixpipeParamsV220 {
  std::uint16_t nSize = 0;
  std::uint16_t mSize = 0;
  std::uint16_t srcStride = 0;
  std::uint32_t dstStride = 0;
  QuantMode_t quantPre = QuantMode_t::NoQuant;
  std::uint64_t deqScalar = 0;
  std::uint16_t ndNum = 1;
  std::uint16_t srcNdStride = 0;
  std::uint16_t dstNdStride = 0;
  bool reluEn = false;
  std::uint8_t unitFlag = 0;
  bool isChannelSplit = false;

  FixpipeParamsV220() = default;
  FixpipeParamsV220(twin::Word n, twin::Word m, twin::Word source, std::uint32_t target, bool relu,
                    twin::Site site = twin::Here())
      : nSize(Cut(n, "nSize", site)),
        mSize(Cut(m, "mSize", site)),
        srcStride(Cut(source, "srcStride", site)),
        dstStride(target),
        reluEn(relu) {}
  FixpipeParamsV220(twin::Word n, twin::Word m, twin::Word source, std::uint32_t target, bool relu,
                    QuantMode_t quant, std::uint64_t scalar, twin::Word nds, twin::Word sourceNd,
                    twin::Word targetNd, std::uint8_t flag = 0, twin::Site site = twin::Here())
      : FixpipeParamsV220(n, m, source, target, relu, site) {
    quantPre = quant;
    deqScalar = scalar;
    ndNum = Cut(nds, "ndNum", site);
    srcNdStride = Cut(sourceNd, "srcNdStride", site);
    dstNdStride = Cut(targetNd, "dstNdStride", site);
    unitFlag = flag;
  }
};

struct DataCopyCO12DstParams {
  std::uint8_t sid = 0;
  std::uint16_t nSize = 0;
  std::uint16_t mSize = 0;
  std::uint32_t dstStride = 0;
  std::uint16_t srcStride = 0;
  std::uint8_t unitFlag = 0;
  std::uint8_t clipReluPre = 0;
  std::uint8_t eltWiseOp = 0;
  QuantMode_t quantPre = QuantMode_t::NoQuant;
  std::uint8_t reluPre = 0;
  bool channelSplit = false;
  bool nz2ndEn = false;

  DataCopyCO12DstParams() = default;
  DataCopyCO12DstParams(twin::Word n, twin::Word m, std::uint32_t target, twin::Word source,
                        QuantMode_t quant, std::uint8_t relu, bool split, bool toNd,
                        twin::Site site = twin::Here())
      : nSize(Cut(n, "nSize", site)),
        mSize(Cut(m, "mSize", site)),
        dstStride(target),
        srcStride(Cut(source, "srcStride", site)),
        quantPre(quant),
        reluPre(relu),
        channelSplit(split),
        nz2ndEn(toNd) {}
};

// ---- global memory to L1

template <typename T>
void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const Nd2NzParams &how,
              twin::Site site = twin::Here()) {
  static_assert(twin::kCubeElement<T>,
                "ND to NZ on dav-2201 takes int4b_t and 8-, 16- and 32-bit types");
  twin::CopyNdToNz({"DataCopy", site}, twin::TagOf<T>(), dst.view(), src.gm(),
                   {how.ndNum, how.nValue, how.dValue, how.srcNdMatrixStride, how.srcDValue,
                    how.dstNzC0Stride, how.dstNzNStride, how.dstNzMatrixStride});
}

// ---- L1 to the bias table, with a conversion from half to float

template <typename T, typename U,
          std::enable_if_t<!std::is_same_v<T, U>, int> = 0>
void DataCopy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const DataCopyParams &how,
              twin::Site site = twin::Here()) {
  static_assert(std::is_same_v<T, float> && std::is_same_v<U, half>,
                "DataCopy on dav-2201 converts half in L1 to float in the bias table only");
  const twin::Blocks blocks = twin::BlocksOf(how);
  twin::CopyToTable({"DataCopy", site}, twin::TagOf<T>(), twin::TagOf<U>(), dst.view(),
                    src.view(), &blocks, 0);
}

// ---- L1 or global memory to L0

template <typename T, typename Source>
void LoadData(const LocalTensor<T> &, const Source &, const LoadData2DParamsV2 &) {
  static_assert(sizeof(T) == 0,
                "LoadData of LoadData2DParamsV2 is not on dav-2201 (Atlas A2): Ascend 950 has it");
}
template <typename T>
void LoadData(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LoadData2DParams &how,
              twin::Site site = twin::Here()) {
  static_assert(twin::kCubeElement<T>,
                "LoadData on dav-2201 takes int4b_t and 8-, 16- and 32-bit types");
  twin::LoadFractals({"LoadData", site}, twin::TagOf<T>(), dst.view(), src.view(),
                     {how.startIndex, how.repeatTimes, how.srcStride, how.dstGap, 0,
                      how.ifTranspose, how.addrMode != 0});
}
template <typename T>
void LoadData(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const LoadData2DParams &how,
              twin::Site site = twin::Here()) {
  static_assert(twin::kCubeElement<T> && !std::is_same_v<T, int4b_t>,
                "LoadData from global memory on dav-2201 takes 8-, 16- and 32-bit types");
  twin::LoadFractalsGm({"LoadData", site}, twin::TagOf<T>(), dst.view(), src.gm(),
                       {how.startIndex, how.repeatTimes, how.srcStride, how.dstGap, 0,
                        how.ifTranspose, how.addrMode != 0});
}
template <typename T>
void LoadDataWithTranspose(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                           const LoadData2dTransposeParams &how, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, std::int8_t, std::uint8_t, half, bfloat16_t, std::int32_t,
                             std::uint32_t, float, int4b_t>,
                "LoadDataWithTranspose on dav-2201 takes int4b_t, 8-bit integers, half, "
                "bfloat16_t, float and 32-bit integers");
  twin::LoadSquares({"LoadDataWithTranspose", site}, twin::TagOf<T>(), dst.view(), src.view(),
                    {how.startIndex, how.repeatTimes, how.srcStride, how.dstGap, how.dstFracGap,
                     true, how.addrMode != 0});
}
// The weights of a 4:2 sparse product and the index of what was kept.
template <typename T = std::int8_t, typename U = std::uint8_t>
void LoadDataWithSparse(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                        const LocalTensor<U> &idx, const LoadData2DParams &how,
                        twin::Site site = twin::Here()) {
  static_assert(std::is_same_v<T, std::int8_t> && std::is_same_v<U, std::uint8_t>,
                "LoadDataWithSparse on dav-2201 takes int8_t and an index of uint8_t");
  twin::LoadSparse({"LoadDataWithSparse", site}, dst.view(), src.view(), idx.view(),
                   {how.startIndex, how.repeatTimes, 1, 0, 0, false, false});
}

template <typename T, const IsResetLoad3dConfig &config = IS_RESER_LOAD3D_DEFAULT_CONFIG>
void LoadData(const LocalTensor<T> &dst, const LocalTensor<T> &src,
              const LoadData3DParamsV2<T> &how, twin::Site site = twin::Here()) {
  static_assert(twin::kCubeElement<T>,
                "LoadData on dav-2201 takes int4b_t and 8-, 16- and 32-bit types");
  twin::LoadImage({"LoadData", site}, twin::TagOf<T>(), dst.view(), src.view(),
                  {{how.padList[0], how.padList[1], how.padList[2], how.padList[3]},
                   how.l1H, how.l1W, how.channelSize,
                   how.kExtension, how.mExtension, how.kStartPt, how.mStartPt,
                   how.strideW, how.strideH,
                   how.filterW + (how.filterSizeW ? 256 : 0),
                   how.filterH + (how.filterSizeH ? 256 : 0),
                   how.dilationFilterW, how.dilationFilterH, how.enTranspose,
                   twin::ElementBits(how.padValue), config.isSetFMatrix, config.isSetPadding});
}
template <typename T>
void LoadData(const LocalTensor<T> &dst, const LocalTensor<T> &src,
              const LoadData3DParamsV2Pro &how, twin::Site site = twin::Here()) {
  const auto part = [](std::uint64_t bits, int at, int width) {
    return static_cast<std::int64_t>(bits >> at & ((1ull << width) - 1));
  };
  const std::uint64_t ext = how.extConfig, filter = how.filterConfig;
  twin::LoadImage({"LoadData", site}, twin::TagOf<T>(), dst.view(), src.view(),
                  {{0, 0, 0, 0}, 0, 0, how.channelSize,
                   part(ext, 0, 16), part(ext, 16, 16), part(ext, 32, 16), part(ext, 48, 16),
                   part(filter, 0, 8), part(filter, 8, 8),
                   part(filter, 16, 8) + (how.filterSizeW ? 256 : 0),
                   part(filter, 24, 8) + (how.filterSizeH ? 256 : 0),
                   part(filter, 32, 8), part(filter, 40, 8), how.enTranspose, 0, false, false});
}
inline void SetFmatrix(std::uint16_t l1H, std::uint16_t l1W, const std::uint8_t padList[4],
                       const FmatrixMode & = FmatrixMode::FMATRIX_LEFT,
                       twin::Site site = twin::Here()) {
  twin::SetImage({"SetFmatrix", site}, l1H, l1W, padList);
}
// The name that the instruction has inside of the library.
inline void Load3DSetFMatrixCal(std::uint16_t l1H, std::uint16_t l1W,
                                const std::uint8_t padList[4], twin::Site site = twin::Here()) {
  twin::SetImage({"Load3DSetFMatrixCal", site}, l1H, l1W, padList);
}
template <typename T>
void SetLoadDataPaddingValue(const T padValue, twin::Site site = twin::Here()) {
  twin::SetImagePad({"SetLoadDataPaddingValue", site}, twin::ElementBits(padValue));
}
inline void SetLoadDataRepeat(const LoadDataRepeatParam &how, twin::Site site = twin::Here()) {
  twin::SetImageRepeat({"SetLoadDataRepeat", site}, how.repeatStride, how.repeatTime,
                       how.repeatMode);
}
inline void SetLoadDataBoundary(std::uint32_t bytes, twin::Site site = twin::Here()) {
  twin::SetImageBoundary({"SetLoadDataBoundary", site}, bytes);
}

template <typename T, typename U,
          std::enable_if_t<std::is_same_v<U, InitConstValueParams<T>>, int> = 0>
void Fill(const LocalTensor<T> &dst, const U &how, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, std::int16_t, std::uint16_t, half, bfloat16_t, std::int32_t,
                             std::uint32_t, float>,
                "Fill on dav-2201 takes 16- and 32-bit types");
  twin::FillBlocks({"Fill", site}, twin::TagOf<T>(), dst.view(), &how.initValue, how.repeatTimes,
                   how.blockNum, how.dstGap);
}
template <typename T>
void InitConstValue(const LocalTensor<T> &dst, const InitConstValueParams<T> &how,
                    twin::Site site = twin::Here()) {
  Fill(dst, how, site);
}

// ---- products

}  // namespace AscendC

namespace twin {

template <typename C, typename A, typename B>
constexpr bool kMmadTypes =
    std::is_same_v<A, B> &&
    (kOneOf<A, std::int8_t, int4b_t>
         ? std::is_same_v<C, std::int32_t>
         : kOneOf<A, half, bfloat16_t, float> && std::is_same_v<C, float>);

inline Product ProductOf(const AscendC::MmadParams &how) {
  const bool zero = how.cmatrixInitVal && !how.isBias;
  return {how.m, how.n, how.k, zero, !zero && how.cmatrixSource, how.kDirectionAlign,
          how.unitFlag};
}

}  // namespace twin

namespace AscendC {

template <typename T, typename U, typename S>
void Mmad(const LocalTensor<T> &dst, const LocalTensor<U> &fm, const LocalTensor<S> &filter,
          const MmadParams &how, twin::Site site = twin::Here()) {
  static_assert(twin::kMmadTypes<T, U, S>,
                "Mmad on dav-2201 takes half, bfloat16_t or float into float, int8_t or int4b_t "
                "into int32_t");
  twin::MmadOp({"Mmad", site}, twin::TagOf<U>(), dst.view(), fm.view(), filter.view(), nullptr,
               twin::ProductOf(how));
}
// C starts at the bias: a row of the bias table for all of its rows.
template <typename T, typename U, typename S, typename V>
void Mmad(const LocalTensor<T> &dst, const LocalTensor<U> &fm, const LocalTensor<S> &filter,
          const LocalTensor<V> &bias, const MmadParams &how, twin::Site site = twin::Here()) {
  static_assert(twin::kMmadTypes<T, U, S> && std::is_same_v<T, V>,
                "Mmad on dav-2201 takes half, bfloat16_t or float into float, int8_t or int4b_t "
                "into int32_t");
  twin::MmadOp({"Mmad", site}, twin::TagOf<U>(), dst.view(), fm.view(), filter.view(),
               &bias.view(), twin::ProductOf(how));
}
template <typename T = std::int32_t, typename U = std::int8_t>
void MmadWithSparse(const LocalTensor<T> &dst, const LocalTensor<U> &fm,
                    const LocalTensor<U> &filter, const MmadParams &how,
                    twin::Site site = twin::Here()) {
  static_assert(std::is_same_v<T, std::int32_t> && std::is_same_v<U, std::int8_t>,
                "MmadWithSparse on dav-2201 takes int8_t into int32_t");
  twin::MmadSparseOp({"MmadWithSparse", site}, dst.view(), fm.view(), filter.view(),
                     twin::ProductOf(how));
}
inline void SetHF32Mode(HF32Mode mode, twin::Site site = twin::Here()) {
  twin::SetHf32({"SetHF32Mode", site}, mode == HF32Mode::ENABLE);
}
inline void SetHF32Mode(bool on, twin::Site site = twin::Here()) {
  twin::SetHf32({"SetHF32Mode", site}, on);
}
inline void SetHF32TransMode(HF32TransMode mode, twin::Site site = twin::Here()) {
  twin::SetHf32Round({"SetHF32TransMode", site}, mode == HF32TransMode::NEAREST_ZERO);
}
inline void SetHF32TransMode(bool towardsZero, twin::Site site = twin::Here()) {
  twin::SetHf32Round({"SetHF32TransMode", site}, towardsZero);
}
// The order in which fractals of C come to be changes time, not values.
inline void SetMMColumnMajor() {}
inline void SetMMRowMajor() {}
inline void SetMMLayoutTransform(bool) {}  // the order of results, as the two above

// ---- out of L0C

}  // namespace AscendC

namespace twin {

template <typename Dst, typename Src>
constexpr bool kFixTypes =
    std::is_same_v<Src, float>
        ? kOneOf<Dst, std::int8_t, std::uint8_t, half, bfloat16_t, float>
        : std::is_same_v<Src, std::int32_t> &&
              kOneOf<Dst, std::int8_t, std::uint8_t, half, std::int32_t>;

inline Outflow OutflowOf(const AscendC::FixpipeParamsV220 &how, bool rowMajor) {
  return {how.nSize,     how.mSize, how.srcStride,   how.dstStride,   how.quantPre,
          how.deqScalar, how.ndNum, how.srcNdStride, how.dstNdStride, how.reluEn,
          rowMajor,      how.isChannelSplit,         how.unitFlag};
}
inline Outflow OutflowOf(const AscendC::DataCopyCO12DstParams &how) {
  Outflow out{how.nSize, how.mSize, how.srcStride, how.dstStride, how.quantPre,
              FixScale(), 1, 0, 0, how.reluPre != 0, how.nz2ndEn, how.channelSplit, how.unitFlag};
  if (how.nz2ndEn) FixMatrices(out);
  return out;
}

}  // namespace twin

namespace AscendC {

#define TWIN_FIX_TYPES(T, U)                                                                     \
  static_assert(twin::kFixTypes<T, U>,                                                           \
                "Fixpipe on dav-2201 moves float to float, half, bfloat16_t or 8-bit integers, " \
                "int32_t to int32_t, half or 8-bit integers")

template <typename T, typename U, const FixpipeConfig &config = CFG_ROW_MAJOR>
void Fixpipe(const GlobalTensor<T> &dst, const LocalTensor<U> &src, const FixpipeParamsV220 &how,
             twin::Site site = twin::Here()) {
  TWIN_FIX_TYPES(T, U);
  twin::FixpipeToGm({"Fixpipe", site}, twin::TagOf<T>(), twin::TagOf<U>(), dst.gm(), src.view(),
                    nullptr, twin::OutflowOf(how, config.format == CO2Layout::ROW_MAJOR));
}
template <typename T, typename U, const FixpipeConfig &config = CFG_ROW_MAJOR, typename S>
void Fixpipe(const GlobalTensor<T> &dst, const LocalTensor<U> &src, const LocalTensor<S> &scales,
             const FixpipeParamsV220 &how, twin::Site site = twin::Here()) {
  TWIN_FIX_TYPES(T, U);
  static_assert(std::is_same_v<S, std::uint64_t>, "scales of Fixpipe are a tensor of uint64_t");
  twin::FixpipeToGm({"Fixpipe", site}, twin::TagOf<T>(), twin::TagOf<U>(), dst.gm(), src.view(),
                    &scales.view(), twin::OutflowOf(how, config.format == CO2Layout::ROW_MAJOR));
}
template <typename T, typename U, const FixpipeConfig &config = CFG_ROW_MAJOR>
void Fixpipe(const LocalTensor<T> &dst, const LocalTensor<U> &src, const FixpipeParamsV220 &how,
             twin::Site site = twin::Here()) {
  TWIN_FIX_TYPES(T, U);
  twin::FixpipeToL1({"Fixpipe", site}, twin::TagOf<T>(), twin::TagOf<U>(), dst.view(), src.view(),
                    nullptr, twin::OutflowOf(how, false));
}
template <typename T, typename U, const FixpipeConfig &config = CFG_ROW_MAJOR, typename S>
void Fixpipe(const LocalTensor<T> &dst, const LocalTensor<U> &src, const LocalTensor<S> &scales,
             const FixpipeParamsV220 &how, twin::Site site = twin::Here()) {
  TWIN_FIX_TYPES(T, U);
  static_assert(std::is_same_v<S, std::uint64_t>, "scales of Fixpipe are a tensor of uint64_t");
  twin::FixpipeToL1({"Fixpipe", site}, twin::TagOf<T>(), twin::TagOf<U>(), dst.view(), src.view(),
                    &scales.view(), twin::OutflowOf(how, false));
}
template <typename T, typename U>
void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<U> &src,
              const DataCopyCO12DstParams &how, twin::Site site = twin::Here()) {
  TWIN_FIX_TYPES(T, U);
  twin::FixpipeToGm({"DataCopy", site}, twin::TagOf<T>(), twin::TagOf<U>(), dst.gm(), src.view(),
                    nullptr, twin::OutflowOf(how));
}
template <typename T, typename U>
void DataCopy(const LocalTensor<T> &dst, const LocalTensor<U> &src,
              const DataCopyCO12DstParams &how, twin::Site site = twin::Here()) {
  TWIN_FIX_TYPES(T, U);
  twin::FixpipeToL1({"DataCopy", site}, twin::TagOf<T>(), twin::TagOf<U>(), dst.view(), src.view(),
                    nullptr, twin::OutflowOf(how));
}
#undef TWIN_FIX_TYPES

// The registers that DataCopy out of L0C uses; Fixpipe sets its own.
inline void SetFixpipePreQuantFlag(std::uint64_t config, twin::Site site = twin::Here()) {
  twin::SetFixScale({"SetFixpipePreQuantFlag", site}, config);
}
template <typename T, bool setRelu = false>
void SetFixPipeConfig(const LocalTensor<T> &scales, bool isUnitFlag = false,
                      twin::Site site = twin::Here()) {
  static_assert(!setRelu, "SetFixPipeConfig on dav-2201 takes scales, no relu tensor");
  twin::SetFixTable({"SetFixPipeConfig", site}, scales.view(), isUnitFlag);
}
template <typename T>
void SetFixPipeConfig(const LocalTensor<T> &, const LocalTensor<T> &scales,
                      bool isUnitFlag = false, twin::Site site = twin::Here()) {
  twin::SetFixTable({"SetFixPipeConfig", site}, scales.view(), isUnitFlag);
}
template <typename T>
void SetFixPipeConfigImpl(const LocalTensor<T> &scales, bool isUnitFlag = false,
                          twin::Site site = twin::Here()) {
  SetFixPipeConfig(scales, isUnitFlag, site);
}
inline void SetFixpipeNz2ndFlag(std::uint16_t ndNum, std::uint16_t srcNdStride,
                                std::uint16_t dstNdStride, twin::Site site = twin::Here()) {
  twin::SetFixMatrices({"SetFixpipeNz2ndFlag", site}, ndNum, srcNdStride, dstNdStride);
}

}  // namespace AscendC
