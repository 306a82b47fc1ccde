// UB address, in bits: [4:0] byte of a row, [8:5] bank group, [15:9] row, [17:16] bank. A bank
// group serves one row a cycle to the reads of a repeat, and takes one from the writes; the write
// of a repeat happens beside the reads of the next one and meets them only in the very same bank.
#include "bank.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace twin {

namespace {

constexpr std::uint32_t kGroups = 16, kBlocksOfRepeat = 8;

struct Touched {
  std::array<std::uint32_t, 3 * kBlocksOfRepeat> blocks;  // distinct, in units of 32 B
  std::uint32_t count = 0;

  void Add(std::uint32_t block) {
    const auto end = blocks.begin() + count;
    if (std::find(blocks.begin(), end, block) == end) blocks[count++] = block;
  }
  // Rows that the busiest bank group has to serve.
  std::uint32_t Slots() const {
    std::array<std::uint8_t, kGroups> rows{};
    std::uint32_t most = 1;
    for (std::uint32_t i = 0; i < count; ++i) {
      most = std::max<std::uint32_t>(most, ++rows[blocks[i] % kGroups]);
    }
    return most;
  }
  // One bit per bank: 16 groups, 4 banks of each that an address can name.
  std::uint64_t Banks() const {
    std::uint64_t banks = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      banks |= 1ull << ((blocks[i] >> 11 & 3) * kGroups + blocks[i] % kGroups);
    }
    return banks;
  }
};

void Collect(Touched &all, const VectorOperand &operand, std::uint32_t repeat,
             std::uint32_t blocks) {
  const std::uint32_t first = operand.addr + repeat * operand.repeat;
  for (std::uint32_t i = 0; i < blocks; ++i) all.Add(first + i * operand.block);
}

BankCost Walk(const VectorStep &step, std::uint32_t wide, std::uint32_t narrow,
              DestinationUse use) {
  const bool single =
      step.src0.there && step.src1.there && (step.src0.block == 0 || step.src1.block == 0);
  BankCost cost;
  std::uint64_t written = 0;
  for (std::uint32_t repeat = 0; repeat < step.repeats; ++repeat) {
    Touched reads, writes;
    if (step.src0.there) Collect(reads, step.src0, repeat, narrow);
    if (step.src1.there) Collect(reads, step.src1, repeat, narrow);
    if (step.dst.there && !use.smallDst) Collect(writes, step.dst, repeat, wide);
    if (use.readsDst) Collect(reads, step.dst, repeat, wide);
    const std::uint32_t slots = std::max(reads.Slots(), writes.Slots());
    if (single && slots == 2)
      cost.partial += 1;
    else
      cost.slots += slots - 1;
    // With a second cycle for the reads, the write finds its bank free in one of the two (measured:
    // both sources and the destination in one bank take no longer than the two sources).
    if (slots == 1 && (reads.Banks() & written) != 0) cost.readWrite += 1;
    written = writes.Banks();
  }
  return cost;
}

std::uint64_t Hash(const VectorStep &step, std::uint8_t type, DestinationUse use) {
  std::uint64_t words[4], hash = 0x9E3779B97F4A7C15ull + type;
  hash += (use.readsDst ? 256u : 0u) + (use.smallDst ? 512u : 0u);
  VectorStep key = step;
  key.elements = 0;
  std::memcpy(words, &key, sizeof(key));
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0xFF51AFD7ED558CCDull;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

double BytesOf(std::uint8_t type) {
  constexpr double kBytes[] = {4, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 8, 0.5};
  return type < std::size(kBytes) ? kBytes[type] : 4;
}

const BankCost &Banks::Of(const VectorStep &step, std::uint8_t type, DestinationUse use) {
  const auto [at, fresh] = known_.try_emplace(Hash(step, type, use));
  if (!fresh) return at->second;
  const double dst = BytesOf(type), src = BytesOf(step.srcType), widest = std::max(dst, src);
  const auto blocks = [&](double bytes) {
    return static_cast<std::uint32_t>(std::max(1.0, kBlocksOfRepeat * bytes / widest));
  };
  at->second = Walk(step, blocks(dst), blocks(src), use);
  return at->second;
}

}  // namespace twin
