// Where an API was called: every public function takes a Site as its defaulted last parameter.
#pragma once

namespace twin {

struct Site {
  const char *file = "";
  int line = 0;
};

// Evaluated as a default argument, this is the place of the outermost call.
constexpr Site Here(const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
  return Site{file, line};
}

// One API call: what was called and from where.
struct Call {
  const char *api;
  Site site;
};

}  // namespace twin
