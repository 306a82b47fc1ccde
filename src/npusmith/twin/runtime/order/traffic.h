// What is known of global memory that the kernel may write.
#pragma once

#include <cstdint>
#include <functional>

#include "order/shadow.h"

namespace twin {

// look(low, high, known) for every piece of the bytes at gm that is not data.
void GmLook(const std::uint8_t *gm, std::int64_t bytes,
            const std::function<void(std::int64_t, std::int64_t, Known)> &look);
void GmMark(const std::uint8_t *gm, std::int64_t bytes, Known known);

}  // namespace twin
