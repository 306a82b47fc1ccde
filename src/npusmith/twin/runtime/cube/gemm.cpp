// Products of plain matrices, panel by panel of 16 columns: a part of B is packed once for all rows
// of C, and each element of C still sees k in ascending order.
#include "cube/gemm.h"

#include <algorithm>
#include <vector>

#include "cube/panel.h"

namespace twin {

namespace {

constexpr std::int64_t kDeep = 512;  // k at a time: a packed part of 32 KB stays in cache

template <typename T>
void Pack(T *to, const T *b, std::int64_t stepB, std::int64_t columns, std::int64_t depth) {
  for (std::int64_t k = 0; k < depth; ++k, to += kPanel, b += stepB) {
    std::copy_n(b, columns, to);
    std::fill(to + columns, to + kPanel, T{});
  }
}

// One row, of which only the first columns are C's.
template <typename T>
void Row(T *c, std::int64_t columns, const T *a, const T *b, std::int64_t depth) {
  T whole[kPanel] = {};
  std::copy_n(c, columns, whole);
  Panel1(whole, a, b, depth);
  std::copy_n(whole, columns, c);
}

template <typename T>
void Product(const T *a, const T *b, T *c, std::int64_t m, std::int64_t n, std::int64_t k,
             std::int64_t stepA, std::int64_t stepB, std::int64_t stepC) {
  static thread_local std::vector<T> packed(static_cast<std::size_t>(kDeep * kPanel));
  for (std::int64_t first = 0; first < k; first += kDeep) {
    const std::int64_t depth = std::min(kDeep, k - first);
    for (std::int64_t column = 0; column < n; column += kPanel) {
      const std::int64_t columns = std::min(kPanel, n - column);
      Pack(packed.data(), b + first * stepB + column, stepB, columns, depth);
      T *at = c + column;
      std::int64_t row = 0;
      for (; columns == kPanel && row + kTall <= m; row += kTall) {
        Panel4(at + row * stepC, stepC, a + row * stepA + first, stepA, packed.data(), depth);
      }
      for (; row < m; ++row) {
        Row(at + row * stepC, columns, a + row * stepA + first, packed.data(), depth);
      }
    }
  }
}

}  // namespace

void Multiply(const float *a, const float *b, float *c, std::int64_t m, std::int64_t n,
              std::int64_t k, std::int64_t stepA, std::int64_t stepB, std::int64_t stepC) {
  Product(a, b, c, m, n, k, stepA, stepB, stepC);
}

void Multiply(const std::int32_t *a, const std::int32_t *b, std::int32_t *c, std::int64_t m,
              std::int64_t n, std::int64_t k, std::int64_t stepA, std::int64_t stepB,
              std::int64_t stepC) {
  Product(a, b, c, m, n, k, stepA, stepB, stepC);
}

}  // namespace twin
