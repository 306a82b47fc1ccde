// Hazards between pipes and between cores, by vector clocks.
#include "order.h"

#include "core.h"

namespace twin {

void OrderIssue(Core &, pipe_t) {}
void OrderTouch(Core &, const Call &, Memory, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                bool) {}
void OrderTouchGm(Core &, const Call &, const Region &, const std::uint8_t *, std::int64_t,
                  std::int64_t, std::int64_t, bool, bool) {}
void OrderSet(Core &, AscendC::HardEvent, int) {}
void OrderWait(Core &, AscendC::HardEvent, int) {}
void OrderBarrier(Core &, pipe_t) {}
Stamp OrderStamp(Core &, pipe_t) { return {}; }
void OrderTake(Core &, const Stamp &, pipe_t) {}
void OrderJoin(Core &, const Stamp &) {}
void OrderBegin(Core &) {}
void OrderLaunch() {}

}  // namespace twin
