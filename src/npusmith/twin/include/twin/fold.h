// Reductions of the library: along one axis of a matrix, exclusive-or sums, running sums.
#pragma once

#include "twin/reduce.h"
#include "twin/scratch.h"

namespace AscendC {

// Which axis of a matrix goes (R) and which stays (A).
namespace Pattern {
namespace Reduce {
struct AR {};
struct RA {};
}  // namespace Reduce
}  // namespace Pattern

struct CumSumInfo {
  std::uint32_t outter{0};
  std::uint32_t inner{0};  // a multiple of 32 bytes
};
enum class CumSumAlgorithm { CUMSUM_ALGORITHM_LINEBYLINE = 0, CUMSUM_ALGORITHM_SKLANSKY = 1 };
struct CumSumConfig {
  bool isLastAxis{true};
  bool isReuseSource{false};
  bool outputLastRow{false};
  CumSumAlgorithm algorithm{CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE};  // of another chip
};
constexpr CumSumConfig defaultCumSumConfig = {true, false, false};

}  // namespace AscendC

namespace twin {

enum class AxisFold : std::uint8_t { kSum, kMean, kMax, kMin, kProd, kAny, kAll };

struct AxisJob {
  AxisFold fold;
  bool rows;    // RA: the first axis goes
  bool reuse;   // the source may be overwritten
  bool padded;  // srcInnerPad
  const std::uint32_t *shape;
};
void FoldAxis(const Call &call, DType type, const View &dst, const View &src, const View *scratch,
              const AxisJob &job);
void XorSum(const Call &call, const View &dst, const View &a, const View &b, const View *scratch,
            std::int64_t count, bool reuse);

struct RunningJob {
  bool last, keepRow;  // along rows; and a copy of the last row
  std::int64_t outter, inner;
};
void RunningSum(const Call &call, DType type, const View &dst, const View &lastRow,
                const View &src, const View *scratch, const RunningJob &job);

template <typename Kind>
constexpr bool FoldsRows() {
  constexpr bool kRows = std::is_same_v<Kind, AscendC::Pattern::Reduce::RA>;
  static_assert(kRows || std::is_same_v<Kind, AscendC::Pattern::Reduce::AR>,
                "the pattern is Pattern::Reduce::AR or Pattern::Reduce::RA");
  return kRows;
}

}  // namespace twin

namespace AscendC {

#define TWIN_AXIS(name, fold, legal, ...)                                                        \
  template <class T, class pattern, bool isReuseSource = false>                                  \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src,                                \
            const LocalTensor<std::uint8_t> &tmp, const std::uint32_t srcShape[],                \
            bool srcInnerPad, twin::Site site = twin::Here()) {                                  \
    static_assert(twin::kOneOf<T, __VA_ARGS__>, #name " along an axis on dav-2201 takes " legal); \
    twin::FoldAxis({#name, site}, twin::TagOf<T>(), dst.view(), src.view(), &tmp.view(),         \
                   {fold, twin::FoldsRows<pattern>(), isReuseSource, srcInnerPad, srcShape});    \
  }                                                                                              \
  template <class T, class pattern, bool isReuseSource = false>                                  \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src,                                \
            const std::uint32_t srcShape[], bool srcInnerPad, twin::Site site = twin::Here()) {  \
    static_assert(twin::kOneOf<T, __VA_ARGS__>, #name " along an axis on dav-2201 takes " legal); \
    twin::FoldAxis({#name, site}, twin::TagOf<T>(), dst.view(), src.view(), nullptr,             \
                   {fold, twin::FoldsRows<pattern>(), isReuseSource, srcInnerPad, srcShape});    \
  }

TWIN_AXIS(ReduceSum, twin::AxisFold::kSum, "float", float)
TWIN_AXIS(ReduceMean, twin::AxisFold::kMean, "float", float)
TWIN_AXIS(ReduceProd, twin::AxisFold::kProd, "float", float)
TWIN_AXIS(ReduceMax, twin::AxisFold::kMax, "half or float", half, float)
TWIN_AXIS(ReduceMin, twin::AxisFold::kMin, "half or float", half, float)
TWIN_AXIS(ReduceAny, twin::AxisFold::kAny, "uint8_t or float", std::uint8_t, float)
TWIN_AXIS(ReduceAll, twin::AxisFold::kAll, "uint8_t or float", std::uint8_t, float)
#undef TWIN_AXIS

// The sum of src0 ^ src1, kept inside int16_t.
template <typename T, bool isReuseSource = false>
void ReduceXorSum(const LocalTensor<T> &dst, const LocalTensor<T> &src0,
                  const LocalTensor<T> &src1, const LocalTensor<std::uint8_t> &tmp,
                  const std::uint32_t calCount, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, std::int16_t>, "ReduceXorSum on dav-2201 takes int16_t");
  twin::XorSum({"ReduceXorSum", site}, dst.view(), src0.view(), src1.view(), &tmp.view(), calCount,
               isReuseSource);
}
template <typename T, bool isReuseSource = false>
void ReduceXorSum(const LocalTensor<T> &dst, const LocalTensor<T> &src0,
                  const LocalTensor<T> &src1, const std::uint32_t calCount,
                  twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, std::int16_t>, "ReduceXorSum on dav-2201 takes int16_t");
  twin::XorSum({"ReduceXorSum", site}, dst.view(), src0.view(), src1.view(), nullptr, calCount,
               isReuseSource);
}

// Running sums of each row (last axis) or of each column.
template <typename T, const CumSumConfig &config = defaultCumSumConfig>
void CumSum(const LocalTensor<T> &dst, const LocalTensor<T> &lastRow, const LocalTensor<T> &src,
            const LocalTensor<std::uint8_t> &tmp, const CumSumInfo &how,
            twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "CumSum on dav-2201 takes half or float");
  twin::RunningSum({"CumSum", site}, twin::TagOf<T>(), dst.view(), lastRow.view(), src.view(),
                   &tmp.view(), {config.isLastAxis, config.outputLastRow, how.outter, how.inner});
}
template <typename T, const CumSumConfig &config = defaultCumSumConfig>
void CumSum(const LocalTensor<T> &dst, const LocalTensor<T> &lastRow, const LocalTensor<T> &src,
            const CumSumInfo &how, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "CumSum on dav-2201 takes half or float");
  twin::RunningSum({"CumSum", site}, twin::TagOf<T>(), dst.view(), lastRow.view(), src.view(),
                   nullptr, {config.isLastAxis, config.outputLastRow, how.outter, how.inner});
}

}  // namespace AscendC
