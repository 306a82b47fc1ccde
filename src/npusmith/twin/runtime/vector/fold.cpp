// Reductions along an axis, exclusive-or sums and running sums.
#include "twin/fold.h"

#include <algorithm>

#include "vector/loops.h"
#include "log/record.h"
#include "text.h"

namespace twin {

namespace {

template <typename T>
using WidenedT = typename Widened<T>::Type;

template <typename T>
WidenedT<T> Joined(AxisFold fold, WidenedT<T> a, WidenedT<T> b) {
  const auto rounded = [](WidenedT<T> value) { return Widened<T>::Load(Widened<T>::Store(value)); };
  switch (fold) {
    case AxisFold::kSum: case AxisFold::kMean: return rounded(static_cast<WidenedT<T>>(a + b));
    case AxisFold::kProd: return rounded(static_cast<WidenedT<T>>(a * b));
    case AxisFold::kMax: case AxisFold::kAny: return a != a || a > b ? a : b;
    default: return a != a || a < b ? a : b;
  }
}

// Halves the list by joining each value with the one half a list further on.
// guess: the vendor's pages do not say in which order the terms are joined
template <typename T>
WidenedT<T> Halved(AxisFold fold, std::vector<WidenedT<T>> &values) {
  std::size_t n = values.size();
  while (n > 1) {
    const std::size_t half = (n + 1) / 2;
    for (std::size_t i = 0; i + half < n; ++i) {
      values[i] = Joined<T>(fold, values[i], values[i + half]);
    }
    n = half;
  }
  return values[0];
}

template <typename T>
void FoldAxisAs(T *to, const T *from, std::int64_t rows, std::int64_t columns, std::int64_t pitch,
                const AxisJob &job) {
  const std::int64_t kept = job.rows ? columns : rows, gone = job.rows ? rows : columns;
  std::vector<WidenedT<T>> values;
  for (std::int64_t i = 0; i < kept; ++i) {
    values.clear();
    for (std::int64_t j = 0; j < gone; ++j) {
      values.push_back(Widened<T>::Load(job.rows ? from[j * pitch + i] : from[i * pitch + j]));
    }
    WidenedT<T> result = Halved<T>(job.fold, values);
    if (job.fold == AxisFold::kMean)
      result = result * (WidenedT<T>(1) / static_cast<WidenedT<T>>(gone));
    to[i] = Widened<T>::Store(result);
  }
}

template <typename T>
void CheckLogic(const Call &call, const T *from, std::int64_t rows, std::int64_t columns,
                std::int64_t pitch) {
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const T value = from[i / columns * pitch + i % columns];
    if (value == T(0) || value == T(1)) continue;
    Report(call, "param-range", Text("%s got a source that is neither 0 nor 1", call.api),
           Text("%g at row %lld, column %lld", static_cast<double>(value), Ll(i / columns),
                Ll(i % columns)),
           "0 or 1");
    return;
  }
}

}  // namespace

void FoldAxis(const Call &call, DType type, const View &dst, const View &src, const View *scratch,
              const AxisJob &job) {
  Core &core = Enter(call);
  const std::int64_t size = SizeOf(type), rows = job.shape[0], columns = job.shape[1];
  if (!InRange(call, "srcShape[0]", rows, 1, 0x7FFFFFFF)) return;
  if (!InRange(call, "srcShape[1]", columns, 1, 0x7FFFFFFF)) return;
  if (!job.padded) {
    Report(call, "param-range", Text("srcInnerPad of %s is false", call.api), "false",
           "true on this chip: rows of a multiple of 32 B");
    return;
  }
  const std::int64_t pitch = RoundUp(columns * size, kBlock) / size;
  const std::int64_t srcBytes = ((rows - 1) * pitch + columns) * size;
  const std::int64_t dstBytes = (job.rows ? columns : rows) * size;
  if (!HasScratch(core, call, scratch, kBlock)) return;
  const Spread spread = pitch == columns ? Spread{} : Spread{columns * size, pitch * size};
  const std::uint8_t *from = Usable(
      core, call, {"src", &src, srcBytes, kBlock, job.reuse ? Use::kUpdate : Use::kRead, spread});
  std::uint8_t *to = Usable(core, call, {"dst", &dst, dstBytes});
  if (from == nullptr || to == nullptr) return;
  if (!Disjoint(call, "dst", dst, dstBytes, "src", src, srcBytes)) return;
  if (scratch != nullptr) {
    Disjoint(call, "sharedTmpBuffer", *scratch, kBlock, "src", src, srcBytes);
    Disjoint(call, "sharedTmpBuffer", *scratch, kBlock, "dst", dst, dstBytes);
  }
  RecordLibrary(call.api, type, rows * columns);
  if (Dry()) return;
  const bool logic = job.fold == AxisFold::kAny || job.fold == AxisFold::kAll;
  const auto run = [&](auto tag) {
    using T = decltype(tag);
    const auto *values = reinterpret_cast<const T *>(from);
    if constexpr (!std::is_same_v<T, half>) {
      if (logic) CheckLogic(call, values, rows, columns, pitch);
    }
    FoldAxisAs(reinterpret_cast<T *>(to), values, rows, columns, pitch, job);
  };
  if (type == DType::kF32) run(float());
  else if (type == DType::kF16) run(half());
  else run(std::uint8_t());
}

void XorSum(const Call &call, const View &dst, const View &a, const View &b, const View *scratch,
            std::int64_t count, bool reuse) {
  Core &core = Enter(call);
  constexpr std::int64_t kSize = 2, kLeast = -32768, kMost = 32767;
  if (!HasScratch(core, call, scratch, kBlock) || count == 0) return;
  const Use use = reuse ? Use::kUpdate : Use::kRead;
  const auto *x = reinterpret_cast<const std::int16_t *>(
      Usable(core, call, {"src0", &a, count * kSize, kBlock, use}));
  const auto *y = reinterpret_cast<const std::int16_t *>(
      Usable(core, call, {"src1", &b, count * kSize, kBlock, use}));
  auto *to = reinterpret_cast<std::int16_t *>(Usable(core, call, {"dst", &dst, kSize}));
  if (x == nullptr || y == nullptr || to == nullptr) return;
  if (!Disjoint(call, "dst", dst, kSize, "src0", a, count * kSize)) return;
  if (!Disjoint(call, "dst", dst, kSize, "src1", b, count * kSize)) return;
  RecordLibrary(call.api, DType::kI16, count);
  if (Dry()) return;
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<std::int16_t>(x[i] ^ y[i]);
  *to = static_cast<std::int16_t>(std::clamp(sum, kLeast, kMost));
}

namespace {

// guess: half is summed in float and rounded where it is written ("precision conversion", says
// the page)
template <typename T>
void RunningSumAs(T *to, const T *from, const RunningJob &job) {
  const std::int64_t lines = job.last ? job.outter : job.inner;
  const std::int64_t steps = job.last ? job.inner : job.outter;
  const std::int64_t step = job.last ? 1 : job.inner, line = job.last ? job.inner : 1;
  for (std::int64_t i = 0; i < lines; ++i) {
    float sum = 0.0f;
    for (std::int64_t j = 0; j < steps; ++j) {
      const float value = static_cast<float>(from[i * line + j * step]);
      sum = j == 0 ? value : sum + value;
      to[i * line + j * step] = T(sum);
    }
  }
}

}  // namespace

void RunningSum(const Call &call, DType type, const View &dst, const View &lastRow,
                const View &src, const View *scratch, const RunningJob &job) {
  Core &core = Enter(call);
  const std::int64_t size = SizeOf(type), bytes = job.outter * job.inner * size;
  if (!InRange(call, "cumSumInfo.outter", job.outter, 1, 0x7FFFFFFF)) return;
  if (!InRange(call, "cumSumInfo.inner", job.inner, 1, 0x7FFFFFFF)) return;
  if (job.inner * size % kBlock != 0) {
    Report(call, "param-range", Text("rows of %s have %lld B", call.api, Ll(job.inner * size)),
           Text("cumSumInfo.inner = %lld", Ll(job.inner)), "inner a multiple of 32 B");
    return;
  }
  if (!HasScratch(core, call, scratch, kBlock)) return;
  const std::uint8_t *from = Usable(core, call, {"src", &src, bytes});
  std::uint8_t *to = Usable(core, call, {"dst", &dst, bytes});
  if (from == nullptr || to == nullptr) return;
  std::uint8_t *row = nullptr;
  if (job.keepRow) {
    row = Usable(core, call, {"dstLastRow", &lastRow, job.inner * size});
    if (row == nullptr) return;
  }
  if (dst.addr != src.addr && !Disjoint(call, "dst", dst, bytes, "src", src, bytes)) return;
  RecordLibrary(call.api, type, job.outter * job.inner);
  if (Dry()) return;
  if (type == DType::kF32) {
    RunningSumAs(reinterpret_cast<float *>(to), reinterpret_cast<const float *>(from), job);
  } else {
    RunningSumAs(reinterpret_cast<half *>(to), reinterpret_cast<const half *>(from), job);
  }
  if (row != nullptr) std::copy_n(to + bytes - job.inner * size, job.inner * size, row);
}

}  // namespace twin
