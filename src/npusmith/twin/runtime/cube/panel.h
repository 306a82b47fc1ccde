// A few rows of C over 16 columns: c += a * b with one rounded product and one rounded sum for each
// k, k ascending. They stay in registers, so that a product does as much as the machine can.
#pragma once

#include <cstdint>

namespace twin {

constexpr std::int64_t kPanel = 16;  // columns
constexpr std::int64_t kTall = 4;    // rows of Panel4

// Pitches in elements; b has 16 columns one after the other for each k.
void Panel4(float *c, std::int64_t pitchC, const float *a, std::int64_t pitchA, const float *b,
            std::int64_t depth);
void Panel1(float *c, const float *a, const float *b, std::int64_t depth);
// Sums of integer products wrap as the 32-bit accumulator does.
void Panel4(std::int32_t *c, std::int64_t pitchC, const std::int32_t *a, std::int64_t pitchA,
            const std::int32_t *b, std::int64_t depth);
void Panel1(std::int32_t *c, const std::int32_t *a, const std::int32_t *b, std::int64_t depth);

}  // namespace twin
