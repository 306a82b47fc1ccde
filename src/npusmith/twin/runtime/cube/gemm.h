// Products of plain row-major matrices, in the order in which the twin's cube core adds.
#pragma once

#include <cstdint>

namespace twin {

// c[m][n] += a[m][k] * b[k][n]: one rounded product and one rounded sum for each k, k ascending.
void Multiply(const float *a, const float *b, float *c, std::int64_t m, std::int64_t n,
              std::int64_t k, std::int64_t stepA, std::int64_t stepB, std::int64_t stepC);
void Multiply(const std::int32_t *a, const std::int32_t *b, std::int32_t *c, std::int64_t m,
              std::int64_t n, std::int64_t k, std::int64_t stepA, std::int64_t stepB,
              std::int64_t stepC);

}  // namespace twin
