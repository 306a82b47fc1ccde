// How a matmul is cut into base blocks and how much of it is kept in L1: one rule for the host's
// tiling classes and for tiling that is constant in the kernel.
#pragma once

#include <cstdint>

#include "twin/chip.h"

namespace twin {

struct BlockRequest {
  std::int64_t m, n, k;           // of one core
  int bitsA, bitsB;               // of an element
  int sizeBias;                   // bytes of an element; 0: no bias
  std::int64_t l1, l0c;           // bytes that may be used
  std::int64_t baseM, baseN, baseK;  // fixed values, or 0
  std::int64_t mostM, mostN, mostK;  // upper limits, or 0
};

struct BlockSplit {
  bool fits = false;
  std::int64_t baseM = 0, baseN = 0, baseK = 0;
  std::int64_t stepKa = 1, stepKb = 1, depthA1 = 1, depthB1 = 1;
  std::int64_t dbL0A = 1, dbL0B = 1, dbL0C = 1;
  std::int64_t l1 = 0, l0c = 0;  // bytes used
};

namespace split {

constexpr std::int64_t RoundUp(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}
constexpr std::int64_t Smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
constexpr std::int64_t Larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
constexpr std::int64_t Limited(std::int64_t value, std::int64_t most) {
  return most > 0 ? Smaller(value, Larger(most / 16 * 16, 16)) : value;
}
constexpr std::int64_t Doubled(std::int64_t bytes, std::int64_t room) {
  return bytes * 2 <= room ? 2 : 1;
}

}  // namespace split

// doc: 128 x 256 x 64 of half is the block that performs well; of a narrower one baseK is what both
// halves of L0A and L0B hold (seen in the vendor's tiling of 128 x 128 blocks)
constexpr void ChooseBase(const BlockRequest &ask, BlockSplit &out) {
  const std::int64_t unitK = split::Larger(16, 256 / split::Smaller(ask.bitsA, ask.bitsB));
  const std::int64_t m = split::Smaller(128, split::RoundUp(ask.m, 16));
  const std::int64_t n = split::Smaller(256, split::RoundUp(ask.n, 16));
  const std::int64_t k = split::RoundUp(ask.k, unitK);
  out.baseM = ask.baseM > 0 ? ask.baseM : split::Limited(m, ask.mostM);
  out.baseN = ask.baseN > 0 ? ask.baseN : split::Limited(n, ask.mostN);
  while (ask.baseN == 0 && out.baseN > 16 && out.baseM * out.baseN * 4 > ask.l0c) out.baseN -= 16;
  while (ask.baseM == 0 && out.baseM > 16 && out.baseM * out.baseN * 4 > ask.l0c) out.baseM -= 16;
  const std::int64_t bitsM = out.baseM * ask.bitsA, bitsN = out.baseN * ask.bitsB;
  const std::int64_t bias = out.baseN * ask.sizeBias;
  const std::int64_t l0 = split::Smaller(4 * TWIN_L0A_BYTES / bitsM, 4 * TWIN_L0B_BYTES / bitsN);
  const std::int64_t l1 = 8 * split::Larger(ask.l1 - bias, 0) / (bitsM + bitsN);
  const std::int64_t room = split::Larger(split::Smaller(l0, l1) / unitK * unitK, unitK);
  out.baseK = ask.baseK > 0 ? ask.baseK : split::Smaller(split::Limited(k, ask.mostK), room);
}

// Keeps all of k in L1 when that fits twice, else as much as fits twice (depth = step * 2).
constexpr BlockSplit SplitBlock(const BlockRequest &ask) {
  BlockSplit out;
  ChooseBase(ask, out);
  const std::int64_t a = out.baseM * out.baseK * ask.bitsA / 8;
  const std::int64_t b = out.baseN * out.baseK * ask.bitsB / 8;
  const std::int64_t c = out.baseM * out.baseN * 4, bias = out.baseN * ask.sizeBias;
  if (a > TWIN_L0A_BYTES || b > TWIN_L0B_BYTES || c > ask.l0c || a + b + bias > ask.l1) return out;
  if (ask.sizeBias > 0 && out.baseN * 4 > TWIN_BIAS_TABLE_BYTES) return out;
  out.dbL0A = split::Doubled(a, TWIN_L0A_BYTES);
  out.dbL0B = split::Doubled(b, TWIN_L0B_BYTES);
  out.dbL0C = split::Doubled(c, ask.l0c);
  const std::int64_t rounds = split::Larger((ask.k + out.baseK - 1) / out.baseK, 1);
  const std::int64_t copies = (a + b) * 2 + bias <= ask.l1 ? 2 : 1;
  const std::int64_t room = split::Larger((ask.l1 - bias) / ((a + b) * copies), 1);
  const std::int64_t steps = split::Smaller(rounds, room);
  out.stepKa = out.stepKb = steps;
  out.depthA1 = out.depthB1 = steps * copies;
  out.l1 = (a + b) * steps * copies + bias;
  out.l0c = c;
  out.fits = true;
  return out;
}

}  // namespace twin
