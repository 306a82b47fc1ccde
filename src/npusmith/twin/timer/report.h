// What the timer writes: the report as JSON, and the steps one by one.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "engine.h"

namespace twin {

struct BadFile {
  std::string what;
};

// A file that is whole when Close() has returned.
class OutFile {
 public:
  explicit OutFile(const std::string &path);
  ~OutFile();
  OutFile(const OutFile &) = delete;
  OutFile &operator=(const OutFile &) = delete;
  void Close();  // throws BadFile when not all of it could be written
  std::FILE *get() const { return file_; }

 private:
  std::string path_;
  std::FILE *file_;
};

class EventFile : public Events {
 public:
  EventFile(const std::string &path, long long most) : file_(path), most_(most) {}
  void Add(const CoreRun &core, const Step &step, double start, double end, int reason, double wait,
           std::uint64_t bytes) override;
  void Close() { file_.Close(); }

  long long written() const { return written_; }
  long long dropped() const { return dropped_; }

 private:
  OutFile file_;
  long long most_, written_ = 0, dropped_ = 0;
};

void WriteReport(const std::string &path, const Log &log, const Costs &costs, const Engine &engine,
                 EventFile *events);

}  // namespace twin
