// The log of a launch (log.h): steps are kept in memory until all cores of a block have ended.
#include "log/record.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <string_view>

#include "core.h"

namespace twin {

namespace {

constexpr std::size_t kScalarUnit = 0;
// Of all steps, waits and dependences together: the sandbox lets a run write files of 1 GiB.
constexpr std::uint64_t kMostBytes = 900ull << 20;

// A list that grows without moving what it holds.
template <typename T>
class Pile {
 public:
  std::size_t Size() const { return size_; }
  T &At(std::size_t index) { return parts_[index / kPart][index % kPart]; }
  T &Back() { return At(size_ - 1); }
  void Push(const T &item) {
    if (size_ == parts_.size() * kPart) {
      parts_.emplace_back();
      parts_.back().reserve(kPart);
    }
    parts_[size_ / kPart].push_back(item);
    size_ += 1;
  }
  // Takes the last items away again.
  void Shrink(std::size_t size) {
    for (; size_ > size; --size_) {
      parts_.back().pop_back();
      if (parts_.back().empty()) parts_.pop_back();
    }
  }
  void Write(std::FILE *file) const {
    for (const auto &part : parts_) std::fwrite(part.data(), sizeof(T), part.size(), file);
  }

 private:
  static constexpr std::size_t kPart = 1 << 10;
  std::vector<std::vector<T>> parts_;
  std::size_t size_ = 0;
};

}  // namespace

// One core's part of the log while it grows.
struct CoreLog {
  Core *core = nullptr;  // null when it has ended
  CoreHead head{};
  Pile<Step> steps;
  Pile<StepDep> deps;
  Pile<StepJoin> joins;
  Step present{};  // the step begun last, not among `steps` yet
  bool open = false;
  bool full = false;
  std::size_t unit = 0;                 // of the present step
  std::size_t depsBefore = 0, joinsBefore = 0;
  Ticks ticks{};                        // of the steps so far, the present one included
  std::array<Ticks, kUnits> told{};     // what of clocks.seen earlier steps have waited for
};

namespace {

// A region as a copy's address is looked up in.
struct Span {
  const std::uint8_t *base;
  std::uint64_t bytes;
  std::uint64_t number;
};

struct Recorder {
  std::FILE *file = nullptr;
  const LaunchSpec *spec = nullptr;
  std::uint32_t coreHeads = 0;
  std::uint64_t bytes = 0;  // kept so far
  std::vector<std::string> names;
  std::array<std::pair<const char *, std::uint16_t>, 256> recent{};  // literals, by their address
  std::vector<Span> spans;  // by address
  std::size_t lastSpan = 0;
  std::map<int, std::shared_ptr<CoreLog>> held;  // not written yet, by number of the core
};

thread_local Recorder recorder;  // used only while a launch is recorded
thread_local CoreLog *last = nullptr;  // whose present step was begun last

// "LayerNormGrad" is "layer_norm_grad" in the log, as instructions are in lower case.
std::string Snake(std::string_view name) {
  std::string text;
  bool small = false;  // was the last one no capital?
  for (const char c : name) {
    const bool capital = c >= 'A' && c <= 'Z';
    if (capital && small) text += '_';
    text += capital ? static_cast<char>(c - 'A' + 'a') : c;
    small = !capital;
  }
  return text;
}

std::uint16_t NameNumber(const char *name) {
  const auto address = reinterpret_cast<std::uintptr_t>(name);
  auto &slot = recorder.recent[(address ^ address >> 8) % recorder.recent.size()];
  if (slot.first == name) return slot.second;
  auto &names = recorder.names;
  const std::string text = Snake(name);
  const auto found = std::find(names.begin(), names.end(), text);
  slot = {name, static_cast<std::uint16_t>(found - names.begin())};
  if (found == names.end()) names.push_back(text);
  return slot.second;
}

// Region number << 48 | offset; 0 for what lies in none.
std::uint64_t GmWord(const std::uint8_t *gm) {
  const auto holds = [gm](const Span &span) {
    return gm >= span.base && gm < span.base + span.bytes;
  };
  const auto &spans = recorder.spans;
  if (gm == nullptr || spans.empty()) return 0;
  if (!holds(spans[recorder.lastSpan])) {
    const auto after = std::upper_bound(
        spans.begin(), spans.end(), gm,
        [](const std::uint8_t *at, const Span &span) { return at < span.base; });
    if (after == spans.begin() || !holds(*(after - 1))) return 0;
    recorder.lastSpan = static_cast<std::size_t>(after - 1 - spans.begin());
  }
  const Span &span = spans[recorder.lastSpan];
  return span.number << 48 | static_cast<std::uint64_t>(gm - span.base);
}

std::vector<Span> SpansOf(const std::vector<Region> &regions) {
  std::vector<Span> spans;
  for (std::size_t at = 0; at < regions.size(); ++at) {
    spans.push_back({regions[at].base, regions[at].bytes, at + 1});
  }
  std::sort(spans.begin(), spans.end(),
            [](const Span &a, const Span &b) { return a.base < b.base; });
  return spans;
}

template <typename T>
T Fit(std::int64_t value) {
  return static_cast<T>(std::clamp<std::int64_t>(value, 0, std::numeric_limits<T>::max()));
}

void PushDep(CoreLog &log, std::size_t unit, std::uint32_t tick) {
  if (tick == 0) return;
  log.deps.Push({static_cast<std::uint32_t>(unit), tick});
}

// What the present step's unit has seen since its last step is what the step waits for.
void TakeDeps(CoreLog &log) {
  if (log.core == nullptr) return;
  const Clocks &clocks = log.core->clocks;
  const Ticks &seen = clocks.seen[log.unit], &issuer = clocks.seen[kScalarUnit];
  Ticks &told = log.told[log.unit];
  const bool scalar = log.unit == kScalarUnit;
  for (std::size_t unit = 0; unit < kUnits; ++unit) {
    if (seen[unit] <= told[unit]) continue;
    told[unit] = seen[unit];
    // The scalar unit issues in order: what it has waited for itself is over.
    const bool implied = scalar ? unit == kScalarUnit : issuer[unit] >= seen[unit];
    if (implied) continue;
    // a step does not wait for itself
    PushDep(log, unit, unit == log.unit ? std::min(seen[unit], log.ticks[unit] - 1) : seen[unit]);
  }
}

std::uint64_t TilesOf(const MmadStep &mmad, DType type) {
  const auto depth = static_cast<std::uint64_t>(ElementsOfBlock(type));
  const auto tiles = [](std::uint64_t size, std::uint64_t tile) {
    return (size + tile - 1) / tile;
  };
  return tiles(mmad.m, 16) * tiles(mmad.n, 16) * tiles(mmad.k, depth);
}

// The log is full: what the step was is only counted.
void Drop(CoreLog &log) {
  CoreHead &head = log.head;
  const Step &step = log.present;
  log.full = true;
  log.deps.Shrink(log.depsBefore);
  log.joins.Shrink(log.joinsBefore);
  head.dropped += 1;
  if (step.kind == StepKind::kCopy && step.copy.gm != 0) {
    head.droppedBytes += std::uint64_t{step.copy.rows} * step.copy.bytes;
  }
  const bool vector = step.kind == StepKind::kVector || step.kind == StepKind::kLibrary;
  if (vector) head.droppedRepeats += step.vector.repeats;
  if (step.kind == StepKind::kMmad) {
    head.droppedCube += TilesOf(step.mmad, static_cast<DType>(step.type));
  }
}

// Scalar work of the same call, again and again, is one step.
bool Repeats(CoreLog &log) {
  if (log.steps.Size() == 0) return false;
  const Step &before = log.steps.Back(), &now = log.present;
  return now.kind == StepKind::kScalar && before.kind == StepKind::kScalar &&
         now.unit == before.unit && now.what == before.what && now.place == before.place &&
         now.type == before.type && now.flags == 0 && before.flags == 0 && now.deps == 0;
}

// The present step is over: it joins the others.
void Close(CoreLog &log) {
  if (!log.open) return;
  log.open = false;
  TakeDeps(log);
  const std::size_t deps = log.deps.Size() - log.depsBefore;
  log.present.deps = Fit<std::uint16_t>(static_cast<std::int64_t>(deps));
  const bool room = !log.full && log.steps.Size() < recorder.spec->mostSteps &&
                    recorder.bytes < kMostBytes;
  if (!room) return Drop(log);
  if (Repeats(log)) {
    log.steps.Back().count += log.present.count;
    log.steps.Back().other.times += log.present.other.times;
    log.steps.Back().other.held = log.present.other.held;
    return;
  }
  const std::size_t joins = log.joins.Size() - log.joinsBefore;
  recorder.bytes += sizeof(Step) + deps * sizeof(StepDep) + joins * sizeof(StepJoin);
  log.steps.Push(log.present);
}

// A step of a unit whose clock has ticked.
void Begin(CoreLog &log, std::size_t unit) {
  Close(log);
  log.open = true;
  log.unit = unit;
  log.depsBefore = log.deps.Size();
  log.joinsBefore = log.joins.Size();
  Step &step = log.present = Step{};
  step.kind = StepKind::kScalar;
  step.unit = static_cast<std::uint8_t>(unit);
  step.what = NameNumber("call");
  step.place = PlaceNumber(log.core->spot);
  step.count = log.core->clocks.now[unit] - log.ticks[unit];
  step.other.times = 1;
  log.ticks[unit] = log.core->clocks.now[unit];
  last = &log;
}

// The present step as one of another kind, its payload empty; null when nothing is recorded.
Step *Describe(StepKind kind, const char *what) {
  if (!Recording() || last == nullptr || !last->open) return nullptr;
  Step &step = last->present;
  step.kind = kind;
  step.what = NameNumber(what);
  step.flags = 0;
  step.vector = VectorStep{};
  return &step;
}

VectorOperand OperandOf(const Operand &operand) {
  VectorOperand out;
  out.addr = Fit<std::uint16_t>(operand.lane.view.addr / kBlock);
  out.repeat = Fit<std::uint16_t>(operand.lane.repeat);
  out.block = Fit<std::uint8_t>(operand.lane.block);
  out.there = 1;
  return out;
}

std::int64_t ActiveOf(const Plan &plan) {
  const int lanes = __builtin_popcountll(plan.mask[0]) + __builtin_popcountll(plan.mask[1]);
  return plan.repeats * lanes + plan.tail;
}

// ---- the file

template <typename T>
void Put(const T &value) {
  std::fwrite(&value, sizeof value, 1, recorder.file);
}

void PutText(const std::string &text) {
  Put(Fit<std::uint16_t>(static_cast<std::int64_t>(text.size())));
  std::fwrite(text.data(), 1, std::min<std::size_t>(text.size(), 0xFFFF), recorder.file);
}

void WriteCore(CoreLog &log) {
  log.head.steps = log.steps.Size();
  log.head.deps = log.deps.Size();
  log.head.joins = log.joins.Size();
  Put(log.head);
  log.steps.Write(recorder.file);
  log.deps.Write(recorder.file);
  log.joins.Write(recorder.file);
  recorder.coreHeads += 1;
}

// Cores of a block are written when all of them have ended: one of them may do work for another.
void WriteBlock(std::uint32_t group) {
  const Session &session = ThisLaunch();
  std::vector<int> numbers;
  for (const auto &[number, log] : recorder.held) {
    if (log->head.group == group && log->core == nullptr) numbers.push_back(number);
  }
  if (numbers.size() < static_cast<std::size_t>(session.cube) + session.vectors) return;
  for (const int number : numbers) {
    WriteCore(*recorder.held[number]);
    recorder.held.erase(number);
  }
}

std::uint32_t WritePlaces() {
  const std::uint32_t places = PlaceCount();
  for (std::uint32_t at = 0; at < places; ++at) {
    const Call &call = PlaceAt(at);
    Put(static_cast<std::uint32_t>(call.site.line));
    PutText(call.site.file);
    PutText(call.api);
  }
  return places;
}

void WriteRegions() {
  for (const Region &region : recorder.spec->regions) {
    Put(region.bytes);
    Put(static_cast<std::uint8_t>(region.writable));
    Put(static_cast<std::uint8_t>(region.scratch));
    PutText(region.name);
  }
}

LogHead HeadOf(bool completed) {
  const Session &session = ThisLaunch();
  LogHead head{};
  std::copy(std::begin(kLogMagic), std::end(kLogMagic), head.magic);
  head.names = static_cast<std::uint32_t>(recorder.names.size());
  head.regions = static_cast<std::uint32_t>(recorder.spec->regions.size());
  head.coreHeads = recorder.coreHeads;
  head.blocks = recorder.spec->blocks;
  head.cubes = session.CoresOf(Kind::kCube);
  head.vectors = session.CoresOf(Kind::kVector);
  head.kernelType = static_cast<std::uint32_t>(recorder.spec->type);
  head.finished = completed;
  return head;
}

}  // namespace

RecordMode recordMode;

void RecordBegin(Core &core, pipe_t unit) {
  const std::size_t at = UnitOf(unit);
  if (core.log != nullptr && at < kUnits) Begin(*core.log, at);
}

void RecordScalar(const char *what, std::uint8_t flags) {
  Step *step = Describe(StepKind::kScalar, what);
  if (step == nullptr) return;
  step->other.times = 1;
  step->flags = flags;
}

void RecordHeld(const Core &core) {
  if (!Recording() || last == nullptr || !last->open) return;
  std::int64_t held = 0;
  for (const Buffer &buffer : core.buffers) {
    const bool taken = buffer.state != BufferState::kFree && buffer.state != BufferState::kGone;
    if (taken && MemoryOf(buffer.position) == Memory::kUb) held += buffer.bytes;
  }
  last->present.other.held = Fit<std::uint32_t>(held);
}

void RecordVector(const char *what, const Plan &plan, const Operand *operands, int count,
                  bool setsMask) {
  Step *step = Describe(StepKind::kVector, what);
  if (step == nullptr) return;
  VectorStep &vector = step->vector;
  vector.repeats = Fit<std::uint32_t>(plan.repeats + (plan.tail > 0));
  vector.elements = Fit<std::uint32_t>(ActiveOf(plan));
  vector.dst = OperandOf(operands[0]);
  if (count > 1) vector.src0 = OperandOf(operands[1]);
  if (count > 2) vector.src1 = OperandOf(operands[2]);
  vector.srcType = static_cast<std::uint8_t>(operands[count > 1 ? 1 : 0].type);
  step->type = static_cast<std::uint8_t>(operands[0].type);
  step->flags = setsMask ? kSetsMask : 0;
}

void RecordVectorRaw(const char *what, DType type, std::int64_t repeats, std::int64_t elements,
                     std::int64_t dst, std::int64_t src0, std::int64_t src1, bool setsMask) {
  Step *step = Describe(StepKind::kVector, what);
  if (step == nullptr) return;
  const auto operand = [](std::int64_t addr) {
    if (addr < 0) return VectorOperand{};
    return VectorOperand{Fit<std::uint16_t>(addr / kBlock), kRepeat / kBlock, 1, 1};
  };
  VectorStep &vector = step->vector;
  vector.repeats = Fit<std::uint32_t>(repeats);
  vector.elements = Fit<std::uint32_t>(elements);
  vector.dst = operand(dst);
  vector.src0 = operand(src0);
  vector.src1 = operand(src1);
  vector.srcType = step->type = static_cast<std::uint8_t>(type);
  step->flags = setsMask ? kSetsMask : 0;
}

void RecordLibrary(const char *what, DType type, std::int64_t elements) {
  Step *step = Describe(StepKind::kLibrary, what);
  if (step == nullptr) return;
  const std::int64_t bytes = elements * SizeOf(type);
  step->vector.repeats = Fit<std::uint32_t>((bytes + kRepeat - 1) / kRepeat);
  step->vector.elements = Fit<std::uint32_t>(elements);
  step->vector.srcType = step->type = static_cast<std::uint8_t>(type);
}

void RecordCopy(const char *path, DType type, std::int64_t rows, std::int64_t bytes,
                const std::uint8_t *gm, std::int64_t gmPitch, std::int64_t local,
                std::uint8_t flags) {
  Step *step = Describe(StepKind::kCopy, path);
  if (step == nullptr) return;
  CopyStep &copy = step->copy;
  copy.rows = Fit<std::uint32_t>(rows);
  copy.bytes = Fit<std::uint32_t>(bytes);
  copy.gm = GmWord(gm);
  copy.gmPitch = Fit<std::uint32_t>(gmPitch);
  copy.local = Fit<std::uint32_t>(local);
  step->type = static_cast<std::uint8_t>(type);
  step->flags = flags;
}

void RecordMmad(DType type, std::int64_t m, std::int64_t n, std::int64_t k, bool accumulates,
                bool hf32) {
  Step *step = Describe(StepKind::kMmad, "mmad");
  if (step == nullptr) return;
  step->mmad = MmadStep{};
  step->mmad.m = Fit<std::uint32_t>(m);
  step->mmad.n = Fit<std::uint32_t>(n);
  step->mmad.k = Fit<std::uint32_t>(k);
  step->mmad.accumulates = accumulates;
  step->mmad.hf32 = hf32;
  step->type = static_cast<std::uint8_t>(type);
}

void RecordExtra(Core &core, pipe_t unit) {
  const std::size_t at = UnitOf(unit);
  if (core.log == nullptr || at >= kUnits) return;
  core.clocks.now[at] += 1;
  Begin(*core.log, at);
}

void RecordAfter(Core &core, pipe_t unit) {
  const std::size_t at = UnitOf(unit);
  if (core.log != nullptr && at < kUnits) RecordWaitTick(core, unit, core.log->ticks[at]);
}

void RecordWaitTick(Core &core, pipe_t unit, std::uint32_t tick) {
  CoreLog *log = core.log.get();
  const std::size_t at = UnitOf(unit);
  if (log == nullptr || !log->open || at >= kUnits) return;
  PushDep(*log, at, at == log->unit ? std::min(tick, log->ticks[at] - 1) : tick);
}

void RecordKeep(Core &core, pipe_t unit) {
  CoreLog *log = core.log.get();
  if (log != nullptr && log->open && log->unit == UnitOf(unit)) TakeDeps(*log);
}

void RecordForget(Core &core, pipe_t unit) {
  const std::size_t at = UnitOf(unit);
  if (core.log != nullptr && at < kUnits) Advance(core.log->told[at], core.clocks.seen[at]);
}

std::uint32_t RecordJoin(Core &core, const char *what, int number, const Ticks &own) {
  CoreLog *log = core.log.get();
  if (log == nullptr || !log->open || log->full) return kNoJoin;
  Step &step = log->present;
  step.what = NameNumber(what);
  if (number < 0 || number == static_cast<int>(log->head.number)) return kNoJoin;
  if (step.kind != StepKind::kJoin) step.other = {0, 1, {}};
  step.kind = StepKind::kJoin;
  step.other.joins += 1;
  StepJoin join{static_cast<std::uint32_t>(number), {}};
  std::copy_n(own.begin(), kLogUnits, join.ticks);
  log->joins.Push(join);
  return static_cast<std::uint32_t>(log->joins.Size() - 1);
}

void RecordJoinLate(int number, std::uint32_t join, const Ticks &ticks) {
  const auto found = recorder.held.find(number);
  if (found == recorder.held.end() || join >= found->second->joins.Size()) return;
  std::copy_n(ticks.begin(), kLogUnits, found->second->joins.At(join).ticks);
}

void RecordCoreBegin(Core &core) {
  if (!Recording()) return;
  core.log = std::make_shared<CoreLog>();
  core.log->core = &core;
  CoreHead &head = core.log->head;
  head.number = static_cast<std::uint32_t>(OrderNumber(core));
  head.cube = core.seat.kind == Kind::kCube;
  head.sub = static_cast<std::uint16_t>(core.seat.sub);
  head.group = static_cast<std::uint32_t>(core.seat.group);
  recorder.held[OrderNumber(core)] = core.log;
}

void RecordResume(Core &core) {
  if (Recording()) last = core.log.get();
}

void RecordCoreEnd(Core &core, bool ended) {
  if (core.log == nullptr) return;
  const std::shared_ptr<CoreLog> log = std::move(core.log);
  Close(*log);
  log->head.ended = ended;
  log->core = nullptr;
  last = nullptr;
  WriteBlock(log->head.group);
}

void RecordLaunch() {
  const LaunchSpec *spec = ThisLaunch().spec;
  recordMode.on = false;
  recordMode.dry = spec->dry;
  if (spec->log.empty()) return;
  recorder = Recorder();
  last = nullptr;
  recorder.spec = spec;
  recorder.spans = SpansOf(spec->regions);
  recorder.file = std::fopen(spec->log.c_str(), "wb");
  recordMode.on = recorder.file != nullptr;
  if (Recording()) Put(LogHead{});  // useless until the launch is over
}

void RecordFinish(bool completed) {
  const bool on = Recording();
  recordMode.on = recordMode.dry = false;
  if (!on) return;
  for (auto &[number, log] : recorder.held) {
    Close(*log);
    WriteCore(*log);
  }
  LogHead head = HeadOf(completed);
  head.tables = static_cast<std::uint64_t>(std::ftell(recorder.file));
  for (const std::string &name : recorder.names) PutText(name);
  head.places = WritePlaces();
  WriteRegions();
  std::rewind(recorder.file);
  Put(head);
  std::fclose(recorder.file);
  recorder = Recorder();
}

}  // namespace twin
