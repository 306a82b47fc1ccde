// What costs time without being wrong: counted only when a launch asks for notes.
#pragma once

#include <cstdint>

namespace twin {

struct Core;

enum class Inefficiency : std::uint8_t { kCopy, kBarrier, kScalar };

void CountInefficiency(const Core &core, Inefficiency kind, std::int64_t bytes = 0);
void ReportInefficiencies();
void ForgetInefficiencies();

}  // namespace twin
