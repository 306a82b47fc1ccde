// What the banks of UB cost a vector instruction (doc: avoid bank conflicts, dav-2201).
#pragma once

#include <cstdint>
#include <unordered_map>

#include "../runtime/log/log.h"

namespace twin {

// Cycles of one instruction by cause, over all its repeats.
struct BankCost {
  double slots = 0;      // further rows that a bank group had to give or take
  double partial = 0;    // repeats in which a single repeated block meets the other source
  double readWrite = 0;  // repeats in which the result of the one before meets a source's bank
};

// Bytes of one element of a twin::DType (a half for int4).
double BytesOf(std::uint8_t type);

// What an instruction does with its destination.
struct DestinationUse {
  bool readsDst = false;  // it is a source too: Axpy, MulAddDst
  bool smallDst = false;  // less than a block for each repeat: reductions, comparisons
};

class Banks {
 public:
  const BankCost &Of(const VectorStep &step, std::uint8_t type, DestinationUse use);

 private:
  std::unordered_map<std::uint64_t, BankCost> known_;  // by hash of the operands
};

}  // namespace twin
