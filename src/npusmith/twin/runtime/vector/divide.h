// Integer division by zero in a kernel: the scalar unit goes on, so the twin does too.
#pragma once

#include <csignal>

namespace twin {

// While it lives, an integer division by zero gives 0 (its remainder: the dividend) and a warning.
// On machines whose processor does not trap there is nothing to do.
class DivideWatch {
 public:
  DivideWatch();
  ~DivideWatch();
  DivideWatch(const DivideWatch &) = delete;
  DivideWatch &operator=(const DivideWatch &) = delete;

 private:
  struct sigaction before_;
};

}  // namespace twin
