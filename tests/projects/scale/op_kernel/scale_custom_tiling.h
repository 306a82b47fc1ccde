#ifndef SCALE_CUSTOM_TILING_H
#define SCALE_CUSTOM_TILING_H
#include <cstdint>

struct ScaleCustomTiling {
  uint64_t length;
  uint32_t perCore;
  uint32_t tile;
  float alpha;
  int32_t hasBias;
};
#endif
