#include "read.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace twin {

namespace {

// Takes numbers and texts one after the other; throws at the end of the file.
class Cursor {
 public:
  Cursor(const std::uint8_t *base, std::uint64_t size, std::uint64_t at)
      : base_(base), size_(size), at_(at) {}

  template <typename T>
  T Take() {
    T value;
    std::memcpy(&value, Bytes(sizeof(T)), sizeof(T));
    return value;
  }
  std::string Text() {
    const auto length = Take<std::uint16_t>();
    return std::string(reinterpret_cast<const char *>(Bytes(length)), length);
  }
  const std::uint8_t *Bytes(std::uint64_t count) {
    if (at_ > size_ || count > size_ - at_) throw BadLog{"it ends too early"};
    at_ += count;
    return base_ + at_ - count;
  }
  template <typename T>
  const T *Array(std::uint64_t count) {
    if (count > size_ / sizeof(T)) throw BadLog{"it ends too early"};
    return reinterpret_cast<const T *>(Bytes(count * sizeof(T)));
  }
  std::uint64_t at() const { return at_; }

 private:
  const std::uint8_t *base_;
  std::uint64_t size_, at_;
};

}  // namespace

Log::Log(const std::string &file) {
  const int handle = open(file.c_str(), O_RDONLY);
  if (handle < 0) throw BadLog{"it cannot be opened"};
  struct stat info {};
  fstat(handle, &info);
  size_ = static_cast<std::uint64_t>(info.st_size);
  void *at = size_ == 0 ? MAP_FAILED : mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, handle, 0);
  close(handle);
  if (at == MAP_FAILED) throw BadLog{"it is empty"};
  base_ = static_cast<const std::uint8_t *>(at);
  if (size_ < sizeof(LogHead) || std::memcmp(head().magic, kLogMagic, sizeof(kLogMagic)) != 0) {
    throw BadLog{"it does not begin as a log does"};
  }
  if (head().tables == 0) throw BadLog{"the launch was cut off"};
  ReadTables();
  std::uint64_t next = sizeof(LogHead);
  for (std::uint32_t i = 0; i < head().coreHeads; ++i) next = ReadCore(next);
  std::sort(cores.begin(), cores.end(),
            [](const CoreLog &a, const CoreLog &b) { return a.head->number < b.head->number; });
  for (std::size_t i = 1; i < cores.size(); ++i) {
    if (cores[i].head->number == cores[i - 1].head->number) throw BadLog{"a core is there twice"};
  }
}

Log::~Log() {
  if (base_ != nullptr) munmap(const_cast<std::uint8_t *>(base_), size_);
}

std::uint64_t Log::ReadCore(std::uint64_t at) {
  Cursor cursor(base_, size_, at);
  CoreLog core{};
  core.head = cursor.Array<CoreHead>(1);
  core.steps = cursor.Array<Step>(core.head->steps);
  core.deps = cursor.Array<StepDep>(core.head->deps);
  core.joins = cursor.Array<StepJoin>(core.head->joins);
  Check(core);
  cores.push_back(core);
  return cursor.at();
}

void Log::ReadTables() {
  Cursor cursor(base_, size_, head().tables);
  for (std::uint32_t i = 0; i < head().names; ++i) names.push_back(cursor.Text());
  for (std::uint32_t i = 0; i < head().places; ++i) {
    const auto line = cursor.Take<std::uint32_t>();
    std::string file = cursor.Text();
    places.push_back({line, std::move(file), cursor.Text()});
  }
  for (std::uint32_t i = 0; i < head().regions; ++i) {
    regions.push_back(cursor.Take<std::uint64_t>());
    cursor.Bytes(2);
    cursor.Text();
  }
}

void Log::Check(const CoreLog &core) const {
  std::uint64_t deps = 0, joins = 0;
  for (std::uint64_t i = 0; i < core.head->steps; ++i) {
    const Step &step = core.steps[i];
    if (step.kind > StepKind::kJoin || step.unit >= kLogUnits || step.what >= names.size()) {
      throw BadLog{"a step is of no known kind, unit or name"};
    }
    if (step.kind == StepKind::kCopy && (step.copy.gm >> 48) > regions.size()) {
      throw BadLog{"a transfer names a region that is not there"};
    }
    if (step.kind == StepKind::kJoin && step.unit != 0) {
      throw BadLog{"a unit other than S waits for other cores"};
    }
    deps += step.deps;
    joins += step.kind == StepKind::kJoin ? step.other.joins : 0;
  }
  if (deps != core.head->deps || joins != core.head->joins) {
    throw BadLog{"its steps do not account for its deps and joins"};
  }
  for (std::uint64_t i = 0; i < deps; ++i) {
    if (core.deps[i].unit >= kLogUnits) throw BadLog{"a step waits for no known unit"};
  }
}

}  // namespace twin
