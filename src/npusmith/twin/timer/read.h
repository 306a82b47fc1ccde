// A log (../runtime/log/log.h) in memory, checked as far as the timer relies on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../runtime/log/log.h"

namespace twin {

struct BadLog {
  std::string what;
};

struct CoreLog {
  const CoreHead *head;
  const Step *steps;
  const StepDep *deps;
  const StepJoin *joins;
};

struct LogPlace {
  std::uint32_t line;
  std::string file, api;
};

class Log {
 public:
  explicit Log(const std::string &file);  // throws BadLog
  ~Log();
  Log(const Log &) = delete;
  Log &operator=(const Log &) = delete;

  const LogHead &head() const { return *reinterpret_cast<const LogHead *>(base_); }
  std::vector<CoreLog> cores;  // by number
  std::vector<std::string> names;
  std::vector<LogPlace> places;
  std::vector<std::uint64_t> regions;  // bytes; the first is region 1

 private:
  const std::uint8_t *base_ = nullptr;
  std::uint64_t size_ = 0;

  std::uint64_t ReadCore(std::uint64_t at);
  void ReadTables();
  void Check(const CoreLog &core) const;
};

}  // namespace twin
