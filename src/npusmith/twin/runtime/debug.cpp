// What kernels print: lines, and dumps of tensors as text.
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include "check.h"
#include "text.h"

namespace twin {

namespace {

struct Prints {
  std::vector<PrintRecord> records;
  std::size_t bytes = 0;
  std::uint64_t dropped = 0;
};

Prints &Printed() {
  static Prints prints;
  return prints;
}

constexpr std::size_t kMostBytes = 1 << 20;  // ours: a report stays readable
constexpr std::size_t kRecordBytes = 64;     // of a record beside its text

void Keep(const Core &core, const Call &call, std::string text) {
  Prints &prints = Printed();
  if (prints.bytes + text.size() + kRecordBytes > kMostBytes) {
    prints.dropped += 1;
    return;
  }
  prints.bytes += text.size() + kRecordBytes;
  prints.records.push_back({core.block, call.api, call.site.file, call.site.line, std::move(text)});
}

template <typename T>
T ElementAt(const std::uint8_t *from, std::int64_t i) {
  T value;
  std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

std::string ValueAt(const std::uint8_t *from, DType type, std::int64_t i) {
  switch (type) {
    case DType::kF32: return Text("%g", static_cast<double>(ElementAt<float>(from, i)));
    case DType::kF16:
      return Text("%g", static_cast<double>(static_cast<float>(ElementAt<half>(from, i))));
    case DType::kBF16:
      return Text("%g", static_cast<double>(static_cast<float>(ElementAt<bfloat16_t>(from, i))));
    case DType::kF64: return Text("%g", ElementAt<double>(from, i));
    case DType::kI8: return Text("%d", ElementAt<std::int8_t>(from, i));
    case DType::kU8: return Text("%d", ElementAt<std::uint8_t>(from, i));
    case DType::kI16: return Text("%d", ElementAt<std::int16_t>(from, i));
    case DType::kU16: return Text("%d", ElementAt<std::uint16_t>(from, i));
    case DType::kI32: return Text("%d", ElementAt<std::int32_t>(from, i));
    case DType::kU32: return Text("%u", ElementAt<std::uint32_t>(from, i));
    case DType::kI64: return Text("%lld", Ll(ElementAt<std::int64_t>(from, i)));
    default: return Text("%" PRIu64, ElementAt<std::uint64_t>(from, i));
  }
}

// Rows end where the innermost axis of the shape ends, or after eight values.
void Print(const Core &core, const Call &call, const std::uint8_t *from, DType type,
           std::uint32_t note, std::int64_t count, const std::uint32_t *shape, int dims) {
  const std::int64_t row = dims > 0 && shape[dims - 1] > 0 ? shape[dims - 1] : 8;
  std::string text = Text("%s desc=%u, %lld elements of %s at %s", call.api, note, Ll(count),
                          NameOf(type), PlaceOf(call.site).c_str());
  for (std::int64_t i = 0; i < count; ++i) {
    text += i % row == 0 ? "\n  " : " ";
    text += ValueAt(from, type, i);
  }
  Keep(core, call, text + "\n");
}

}  // namespace

void PrintLine(const Call &call, const char *format, ...) {
  const Core &core = Enter(call, PIPE_S);
  char text[1024];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  Keep(core, call, text);
}

std::vector<PrintRecord> TakePrints() {
  Prints &prints = Printed();
  if (prints.dropped > 0) {
    PrintRecord rest;
    rest.text = Text("... %lld further prints are not listed\n", Ll(prints.dropped));
    prints.records.push_back(rest);
  }
  prints.bytes = 0;
  prints.dropped = 0;
  return std::exchange(prints.records, {});
}

// Dumps wait for all pipes, and all pipes for them: they show what is there in program order.
void DumpUb(const Call &call, DType type, const View &view, std::uint32_t note, std::int64_t count,
            const std::uint32_t *shape, int dims) {
  Core &core = Enter(call, PIPE_S);
  OrderBarrier(core, PIPE_ALL);
  const Need need{"tensor", &view, count * SizeOf(type), kBlock, Use::kRead};
  const std::uint8_t *from = UsableIn(core, call, need, MemoryOf(view.position));
  if (from != nullptr) Print(core, call, from, type, note, count, shape, dims);
  OrderBarrier(core, PIPE_ALL);
}

void DumpGm(const Call &call, DType type, const Gm &gm, std::uint32_t note, std::int64_t count,
            const std::uint32_t *shape, int dims) {
  Core &core = Enter(call, PIPE_S);
  OrderBarrier(core, PIPE_ALL);
  const std::uint8_t *from = UsableGm(call, "tensor", gm, count * SizeOf(type), false);
  if (from != nullptr) Print(core, call, from, type, note, count, shape, dims);
}

void DumpPointer(const Call &call, DType type, const void *pointer, std::uint32_t note,
                 std::int64_t count) {
  const View view = LocalView(pointer);
  if (view.position != AscendC::TPosition::MAX) {
    return DumpUb(call, type, view, note, count, nullptr, 0);
  }
  auto *base = const_cast<std::uint8_t *>(static_cast<const std::uint8_t *>(pointer));
  DumpGm(call, type, {base, -1, 0}, note, count, nullptr, 0);
}

}  // namespace twin
