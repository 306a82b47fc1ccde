// Which APIs a launch called, so that a report can say how sure we are of them.
#include <algorithm>
#include <array>
#include <string_view>

#include "core.h"

namespace twin {

namespace {

// Names are literals: one address stands for one name, several addresses may stand for one too.
struct Used {
  std::array<const char *, 1024> slots{};
  std::size_t count = 0;
};

Used &Table() {
  static thread_local Used used;
  return used;
}

}  // namespace

void NoteApi(const char *name) {
  Used &used = Table();
  std::size_t at = (reinterpret_cast<std::uintptr_t>(name) * 0x9E3779B97F4A7C15ull) >> 54;
  while (used.slots[at] != nullptr && used.slots[at] != name) at = (at + 1) % used.slots.size();
  if (used.slots[at] == name || used.count + 1 >= used.slots.size()) return;
  used.slots[at] = name;
  used.count += 1;
}

std::vector<std::string> TakeApis() {
  std::vector<std::string> names;
  for (const char *name : Table().slots) {
    if (name != nullptr && *name != '\0') names.emplace_back(name);
  }
  Table() = Used();
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace twin
