// Rows of C in registers, as wide as the machine's are.
#include "cube/panel.h"

#include "vector/loops.h"

namespace twin {

namespace {

// Left to itself, g++ -O3 takes these loops apart.
#if defined(__AVX512F__)
constexpr std::int64_t kLanes = 16;
#else
constexpr std::int64_t kLanes = 8;
#endif

// T: float, or an unsigned number, which wraps.
template <int tall, typename T>
__attribute__((always_inline)) inline void Panel(T *c, std::int64_t pitchC, const T *a,
                                                 std::int64_t pitchA, const T *b,
                                                 std::int64_t depth) {
  typedef T Lanes __attribute__((vector_size(kLanes * sizeof(T)), aligned(alignof(T))));
  constexpr std::int64_t kLines = kPanel / kLanes;
  Lanes sum[tall][kLines];
  for (int i = 0; i < tall; ++i) {
    const Lanes *row = reinterpret_cast<const Lanes *>(c + i * pitchC);
    for (int j = 0; j < kLines; ++j) sum[i][j] = row[j];
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    const Lanes *line = reinterpret_cast<const Lanes *>(b + k * kPanel);
    for (int i = 0; i < tall; ++i) {
      for (int j = 0; j < kLines; ++j) sum[i][j] += a[i * pitchA + k] * line[j];
    }
  }
  for (int i = 0; i < tall; ++i) {
    Lanes *row = reinterpret_cast<Lanes *>(c + i * pitchC);
    for (int j = 0; j < kLines; ++j) row[j] = sum[i][j];
  }
}

std::uint32_t *Wrapping(std::int32_t *at) { return reinterpret_cast<std::uint32_t *>(at); }
const std::uint32_t *Wrapping(const std::int32_t *at) {
  return reinterpret_cast<const std::uint32_t *>(at);
}

void FourRows(float *c, std::int64_t pitchC, const float *a, std::int64_t pitchA,
                        const float *b, std::int64_t depth) {
  Panel<kTall>(c, pitchC, a, pitchA, b, depth);
}
void FourRows(std::uint32_t *c, std::int64_t pitchC, const std::uint32_t *a,
                        std::int64_t pitchA, const std::uint32_t *b, std::int64_t depth) {
  Panel<kTall>(c, pitchC, a, pitchA, b, depth);
}
void OneRow(float *c, const float *a, const float *b, std::int64_t depth) {
  Panel<1>(c, kPanel, a, 0, b, depth);
}
void OneRow(std::uint32_t *c, const std::uint32_t *a, const std::uint32_t *b,
                      std::int64_t depth) {
  Panel<1>(c, kPanel, a, 0, b, depth);
}

}  // namespace

void Panel4(float *c, std::int64_t pitchC, const float *a, std::int64_t pitchA, const float *b,
            std::int64_t depth) {
  FourRows(c, pitchC, a, pitchA, b, depth);
}
void Panel1(float *c, const float *a, const float *b, std::int64_t depth) {
  OneRow(c, a, b, depth);
}
void Panel4(std::int32_t *c, std::int64_t pitchC, const std::int32_t *a, std::int64_t pitchA,
            const std::int32_t *b, std::int64_t depth) {
  FourRows(Wrapping(c), pitchC, Wrapping(a), pitchA, Wrapping(b), depth);
}
void Panel1(std::int32_t *c, const std::int32_t *a, const std::int32_t *b, std::int64_t depth) {
  OneRow(Wrapping(c), Wrapping(a), Wrapping(b), depth);
}

}  // namespace twin
