// The inner loops of matrix products: rows of B are added to rows of C, so that loops over n
// vectorise and each element of C still sees k in ascending order.
#include "cube/gemm.h"

#include <algorithm>

#include "vector/loops.h"

namespace twin {

namespace {

constexpr std::int64_t kWide = 256;  // columns of C at a time: four rows of them stay in L1 cache

TWIN_WIDE void FourRows(const float *a, std::int64_t stepA, const float *b, std::int64_t stepB,
                        float *c, std::int64_t stepC, std::int64_t n, std::int64_t k) {
  for (std::int64_t i = 0; i < k; ++i) {
    const float a0 = a[i], a1 = a[stepA + i], a2 = a[2 * stepA + i], a3 = a[3 * stepA + i];
    const float *row = b + i * stepB;
    float *c0 = c, *c1 = c + stepC, *c2 = c + 2 * stepC, *c3 = c + 3 * stepC;
    TWIN_LOOP
    for (std::int64_t j = 0; j < n; ++j) {
      const float value = row[j];
      c0[j] += a0 * value;
      c1[j] += a1 * value;
      c2[j] += a2 * value;
      c3[j] += a3 * value;
    }
  }
}

TWIN_WIDE void OneRow(const float *a, const float *b, std::int64_t stepB, float *c,
                      std::int64_t n, std::int64_t k) {
  for (std::int64_t i = 0; i < k; ++i) {
    const float first = a[i];
    const float *row = b + i * stepB;
    TWIN_LOOP
    for (std::int64_t j = 0; j < n; ++j) c[j] += first * row[j];
  }
}

// Sums of int8 products wrap as the 32-bit accumulator does.
TWIN_WIDE void OneRow(const std::int32_t *a, const std::int32_t *b, std::int64_t stepB,
                      std::int32_t *c, std::int64_t n, std::int64_t k) {
  auto *sum = reinterpret_cast<std::uint32_t *>(c);
  for (std::int64_t i = 0; i < k; ++i) {
    const std::int32_t first = a[i];
    const std::int32_t *row = b + i * stepB;
    TWIN_LOOP
    for (std::int64_t j = 0; j < n; ++j) sum[j] += static_cast<std::uint32_t>(first * row[j]);
  }
}

}  // namespace

void Multiply(const float *a, const float *b, float *c, std::int64_t m, std::int64_t n,
              std::int64_t k, std::int64_t stepA, std::int64_t stepB, std::int64_t stepC) {
  for (std::int64_t column = 0; column < n; column += kWide) {
    const std::int64_t width = std::min(kWide, n - column);
    std::int64_t row = 0;
    for (; row + 4 <= m; row += 4) {
      FourRows(a + row * stepA, stepA, b + column, stepB, c + row * stepC + column, stepC, width,
               k);
    }
    for (; row < m; ++row) {
      OneRow(a + row * stepA, b + column, stepB, c + row * stepC + column, width, k);
    }
  }
}

void Multiply(const std::int32_t *a, const std::int32_t *b, std::int32_t *c, std::int64_t m,
              std::int64_t n, std::int64_t k, std::int64_t stepA, std::int64_t stepB,
              std::int64_t stepC) {
  for (std::int64_t column = 0; column < n; column += kWide) {
    const std::int64_t width = std::min(kWide, n - column);
    for (std::int64_t row = 0; row < m; ++row) {
      OneRow(a + row * stepA, b + column, stepB, c + row * stepC + column, width, k);
    }
  }
}

}  // namespace twin
