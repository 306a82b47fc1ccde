#include "report.h"

#include <algorithm>
#include <cinttypes>

namespace twin {

namespace {

constexpr const char *kUnitNames[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"};
constexpr const char *kReasonNames[] = {"S",   "V",     "M",     "MTE1",   "MTE2",  "MTE3",
                                        "FIX", "issue", "queue", "memory", "cores", "end"};
static_assert(std::size(kUnitNames) == kLogUnits && std::size(kReasonNames) == kReasons);

// JSON, one value after the other; cycles with three digits, so that a report can be compared.
class Json {
 public:
  explicit Json(std::FILE *file) : file_(file) {}

  Json &Key(const char *name) {
    Next();
    Text(name);
    std::fputc(':', file_);
    fresh_ = true;
    return *this;
  }
  Json &Key(const std::string &name) { return Key(name.c_str()); }
  void Open(char bracket) {
    Next();
    std::fputc(bracket, file_);
    fresh_ = true;
  }
  void Close(char bracket) {
    std::fputc(bracket, file_);
    fresh_ = false;
  }
  void Number(double value) {
    Next();
    std::fprintf(file_, "%.3f", value);
  }
  void Whole(std::uint64_t value) {
    Next();
    std::fprintf(file_, "%" PRIu64, value);
  }
  void Bool(bool value) {
    Next();
    std::fputs(value ? "true" : "false", file_);
  }
  void String(const std::string &text) {
    Next();
    Text(text.c_str());
  }

 private:
  std::FILE *file_;
  bool fresh_ = true;

  void Next() {
    if (!fresh_) std::fputc(',', file_);
    fresh_ = false;
  }
  void Text(const char *text) {
    std::fputc('"', file_);
    for (; *text != 0; ++text) {
      const auto byte = static_cast<unsigned char>(*text);
      if (byte == '"' || byte == '\\')
        std::fprintf(file_, "\\%c", *text);
      else if (byte < 0x20)
        std::fprintf(file_, "\\u%04x", byte);
      else
        std::fputc(byte, file_);
    }
    std::fputc('"', file_);
  }
};

void WriteUnit(Json &json, const Unit &unit) {
  json.Open('{');
  json.Key("steps").Whole(unit.steps);
  json.Key("busy").Number(unit.busy);
  json.Key("waits").Open('{');
  for (std::size_t i = 0; i < kReasons; ++i) {
    if (unit.waits[i] > 0) json.Key(kReasonNames[i]).Number(unit.waits[i]);
  }
  json.Close('}');
  json.Close('}');
}

void WriteCore(Json &json, const CoreRun &core) {
  json.Open('{');
  json.Key("number").Whole(core.log.head->number);
  json.Key("cube").Bool(core.log.head->cube != 0);
  json.Key("begin").Number(core.begin);
  json.Key("end").Number(core.end);
  json.Key("units").Open('{');
  for (std::size_t i = 0; i < kLogUnits; ++i) {
    json.Key(kUnitNames[i]);
    WriteUnit(json, core.units[i]);
  }
  json.Close('}');
  json.Close('}');
}

void WritePath(Json &json, const PathStats &path) {
  json.Open('{');
  json.Key("transfers").Whole(path.transfers);
  json.Key("bytes").Whole(path.bytes);
  json.Key("miss_bytes").Whole(static_cast<std::uint64_t>(path.missed));
  json.Key("busy").Number(path.busy);
  json.Key("sizes").Open('[');
  for (const std::uint64_t count : path.sizes) json.Whole(count);
  json.Close(']');
  json.Key("unaligned").Whole(path.unaligned);
  json.Close('}');
}

void WriteTotals(Json &json, const Log &log, const Engine &engine) {
  const Totals &totals = engine.totals();
  double begin = 0, end = 0;
  for (const CoreRun &core : engine.cores()) {
    begin = end == 0 ? core.begin : std::min(begin, core.begin);
    end = std::max(end, core.end);
  }
  json.Key("cycles").Number(end - begin);
  json.Key("finished").Bool(log.head().finished != 0);
  json.Key("sampled").Bool(totals.sampled);
  json.Key("sample_error").Number(totals.sampleError);
  json.Key("steps").Whole(totals.steps);
  json.Key("vector_repeats").Whole(totals.repeats);
  json.Key("vector_elements").Whole(totals.elements);
  json.Key("conflict_cycles").Number(totals.conflicts);
  json.Key("head_cycles").Number(totals.heads);
  json.Key("cube_tiles").Whole(totals.tiles);
}

void WriteNames(Json &json, const Log &log) {
  json.Key("names").Open('[');
  for (const std::string &name : log.names) json.String(name);
  json.Close(']');
  json.Key("places").Open('[');
  for (const LogPlace &place : log.places) {
    json.Open('[');
    json.String(place.file);
    json.Whole(place.line);
    json.String(place.api);
    json.Close(']');
  }
  json.Close(']');
}

}  // namespace

OutFile::OutFile(const std::string &path) : path_(path), file_(std::fopen(path.c_str(), "w")) {
  if (file_ == nullptr) throw BadFile{"cannot be written: " + path};
}

OutFile::~OutFile() {
  if (file_ != nullptr) std::fclose(file_);
}

void OutFile::Close() {
  const bool whole = std::ferror(file_) == 0;
  const bool closed = std::fclose(file_) == 0;
  file_ = nullptr;
  if (!whole || !closed) throw BadFile{"not all of it could be written: " + path_};
}

void EventFile::Add(const CoreRun &core, const Step &step, double start, double end, int reason,
                    double wait, std::uint64_t bytes) {
  if (written_ >= most_) {
    dropped_ += 1;
    return;
  }
  written_ += 1;
  std::fprintf(file_.get(), "%u %u %.3f %.3f %u %u %d %.3f %" PRIu64 "\n", core.log.head->number,
               step.unit, start, end, step.what, step.place, reason, wait, bytes);
}

void WriteReport(const std::string &path, const Log &log, const Costs &costs, const Engine &engine,
                 EventFile *events) {
  if (events != nullptr) events->Close();
  OutFile file(path);
  Json json(file.get());
  json.Open('{');
  WriteTotals(json, log, engine);
  json.Key("cores").Open('[');
  for (const CoreRun &core : engine.cores()) WriteCore(json, core);
  json.Close(']');
  json.Key("paths").Open('{');
  for (std::size_t i = 0; i < log.names.size(); ++i) {
    if (engine.paths()[i].transfers == 0) continue;
    json.Key(log.names[i]);
    WritePath(json, engine.paths()[i]);
  }
  json.Close('}');
  WriteNames(json, log);
  json.Key("events").Whole(static_cast<std::uint64_t>(events == nullptr ? 0 : events->written()));
  json.Key("events_dropped")
      .Whole(static_cast<std::uint64_t>(events == nullptr ? 0 : events->dropped()));
  json.Key("mixed").Bool(log.head().cubes > 0 && log.head().vectors > 0);
  json.Key("launched").Whole(log.head().cubes + log.head().vectors);
  json.Key("charged").Open('{');  // cycles of all cores by constant
  for (const auto &[name, cost] : costs.names()) {
    if (costs.charged(cost) > 0) json.Key(name).Number(costs.charged(cost));
  }
  json.Close('}');
  json.Close('}');
  file.Close();
}

}  // namespace twin
