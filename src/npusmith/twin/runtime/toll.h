// What costs time without being wrong: counted only when a launch asks for notes.
#pragma once

#include <cstdint>

namespace twin {

struct Core;

enum class Toll : std::uint8_t { kCopy, kBarrier, kScalar };

void CountToll(const Core &core, Toll toll, std::int64_t bytes = 0);
void ReportTolls();
void ForgetTolls();

}  // namespace twin
