// What is known of each byte on a core, and how it spreads through operations.
#include "order/shadow.h"

#include <algorithm>

#include "log/record.h"
#include "text.h"
#include "order/traffic.h"
#include "vector/walk.h"

namespace twin {

namespace {

constexpr std::uint8_t kMixed = 0xFF;
constexpr auto kNeverByte = static_cast<std::uint8_t>(Known::kNever);

Film &FilmOf(Core &core, Memory memory) {
  auto &film = core.shadow.films[static_cast<std::size_t>(memory)];
  if (film != nullptr) return *film;
  film = std::make_shared<Film>();
  const auto bytes = static_cast<std::size_t>(BytesOf(memory));
  film->chunks.assign((bytes + Film::kChunk - 1) / Film::kChunk, kNeverByte);
  film->bytes.resize(film->chunks.size() * Film::kChunk);
  return *film;
}

// act(chunk, from, to): bytes of every chunk that [low, high) touches.
template <typename Act>
void OverChunks(std::int64_t low, std::int64_t high, Act act) {
  for (std::int64_t at = low; at < high;) {
    const std::int64_t chunk = at / Film::kChunk;
    const std::int64_t to = std::min((chunk + 1) * Film::kChunk, high);
    act(static_cast<std::size_t>(chunk), at, to);
    at = to;
  }
}

void SetPart(Film &film, std::size_t chunk, std::int64_t from, std::int64_t to,
             std::uint8_t value) {
  std::uint8_t &whole = film.chunks[chunk];
  if (whole == value) return;
  const std::int64_t base = static_cast<std::int64_t>(chunk) * Film::kChunk;
  std::uint8_t *bytes = film.bytes.data();
  if (whole != kMixed) {
    std::fill(bytes + base, bytes + base + Film::kChunk, whole);
    whole = kMixed;
  }
  std::fill(bytes + from, bytes + to, value);
  const std::uint8_t *end = bytes + base + Film::kChunk;
  if (std::all_of(static_cast<const std::uint8_t *>(bytes + base), end,
                  [value](std::uint8_t byte) { return byte == value; })) {
    whole = value;
  }
}

void Set(Film &film, std::int64_t low, std::int64_t high, Known known) {
  const auto value = static_cast<std::uint8_t>(known);
  OverChunks(low, high, [&](std::size_t chunk, std::int64_t from, std::int64_t to) {
    if (to - from == Film::kChunk) film.chunks[chunk] = value;
    else SetPart(film, chunk, from, to, value);
  });
}

bool Clean(const Film &film, std::int64_t low, std::int64_t high) {
  bool clean = true;
  OverChunks(low, high, [&](std::size_t chunk, std::int64_t from, std::int64_t to) {
    const std::uint8_t whole = film.chunks[chunk];
    if (whole == 0) return;
    if (whole != kMixed) {
      clean = false;
      return;
    }
    const std::uint8_t *bytes = film.bytes.data();
    clean = clean && std::all_of(bytes + from, bytes + to, [](std::uint8_t b) { return b == 0; });
  });
  return clean;
}

std::uint8_t ByteOf(const Film &film, std::int64_t at) {
  const std::uint8_t whole = film.chunks[static_cast<std::size_t>(at / Film::kChunk)];
  return whole == kMixed ? film.bytes[static_cast<std::size_t>(at)] : whole;
}

// The state of one element. What a raw pointer wrote is no longer poison, and counts as data.
Known Element(const Film &film, const std::uint8_t *base, std::int64_t at, std::int64_t bytes) {
  std::uint8_t worst = 0;
  for (std::int64_t i = 0; i < bytes; ++i) worst = std::max(worst, ByteOf(film, at + i));
  const bool never = worst == kNeverByte;
  return never && !StillPoison(base + at, bytes) ? Known::kData : static_cast<Known>(worst);
}

// What a result computed from it is.
Known Result(Known known) { return known == Known::kNever ? Known::kTainted : known; }

}  // namespace

bool StillPoison(const std::uint8_t *at, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; ++i) {
    const bool odd = reinterpret_cast<std::uintptr_t>(at + i) % 2 != 0;
    if (at[i] != (odd ? 0x7F : 0xFF)) return false;
  }
  return true;
}

void ShadowWrites(Core &core, Memory memory, std::int64_t low, std::int64_t high) {
  if (Dry()) return;
  core.shadow.pending.push_back({memory, low, high});
}

void ShadowDone(Core &core) { core.shadow.pending.clear(); }

void ShadowIssue(Core &core) {
  auto &pending = core.shadow.pending;
  for (const auto &written : pending) {
    Set(FilmOf(core, written.memory), written.low, written.high, Known::kData);
  }
  pending.clear();
}

void ShadowSet(Core &core, Memory memory, std::int64_t low, std::int64_t high, Known known) {
  if (Dry()) return;
  Set(FilmOf(core, memory), low, high, known);
}

bool ShadowClean(Core &core, Memory memory, std::int64_t low, std::int64_t high) {
  if (Dry()) return true;
  return Clean(FilmOf(core, memory), low, high);
}

Known ShadowOf(Core &core, Memory memory, std::int64_t low, std::int64_t high) {
  if (Dry()) return Known::kData;
  const Film &film = FilmOf(core, memory);
  if (Clean(film, low, high)) return Known::kData;
  return Element(film, core.Hold(memory).base, low, high - low);
}

bool ShadowTouched(Core &core, Memory memory, std::int64_t low, std::int64_t high) {
  if (Dry()) return true;
  const Film &film = FilmOf(core, memory);
  bool touched = false;
  OverChunks(low, high, [&](std::size_t chunk, std::int64_t from, std::int64_t to) {
    const std::uint8_t whole = film.chunks[chunk];
    const std::uint8_t *bytes = film.bytes.data();
    touched = touched || (whole != kMixed ? whole != kNeverByte
                                          : std::any_of(bytes + from, bytes + to, [](auto byte) {
                                              return byte != kNeverByte;
                                            }));
  });
  return touched;
}

void ShadowForget(Core &core, Memory memory, std::int64_t addr) {
  if (Dry()) return;
  std::int64_t low = addr, high = BytesOf(memory);
  for (const Buffer &buffer : core.buffers) {
    const bool here = MemoryOf(buffer.position) == memory && buffer.state != BufferState::kGone &&
                      addr >= buffer.addr && addr < buffer.addr + buffer.bytes;
    if (!here) continue;
    low = buffer.addr;
    high = std::min(buffer.addr + buffer.bytes, high);
  }
  if (low < 0 || low >= high) return;
  Set(FilmOf(core, memory), low, high, Known::kData);
}

void ShadowMove(Core &core, Memory memory, std::int64_t to, std::int64_t from,
                std::int64_t bytes) {
  if (Dry()) return;
  Film &film = FilmOf(core, memory);
  if (Clean(film, from, from + bytes)) return Set(film, to, to + bytes, Known::kData);
  const std::uint8_t *base = core.Hold(memory).base;
  std::vector<Known> states;
  for (std::int64_t i = 0; i < bytes; ++i) states.push_back(Element(film, base, from + i, 1));
  for (std::int64_t i = 0; i < bytes; ++i) {
    Set(film, to + i, to + i + 1, Result(states[static_cast<std::size_t>(i)]));
  }
}

void ShadowLoad(Core &core, Memory memory, std::int64_t to, const std::uint8_t *gm,
                std::int64_t bytes) {
  if (Dry()) return;
  Film &film = FilmOf(core, memory);
  Set(film, to, to + bytes, Known::kData);
  GmLook(gm, bytes, [&](std::int64_t low, std::int64_t high, Known known) {
    if (known != Known::kNever) return Set(film, to + low, to + high, Result(known));
    // Host code fills device memory unseen, maybe a part of it: what is no poison is data. A number
    // of two bytes may look like it by chance.
    constexpr std::int64_t kPiece = 4;
    for (std::int64_t at = low; at < high; at += kPiece) {
      const std::int64_t end = std::min(at + kPiece, high);
      if (StillPoison(gm + at, end - at)) Set(film, to + at, to + end, Result(known));
    }
  });
}

void ShadowStore(Core &core, Memory memory, std::int64_t from, const std::uint8_t *gm,
                 std::int64_t bytes) {
  if (Dry()) return;
  const Film &film = FilmOf(core, memory);
  if (Clean(film, from, from + bytes)) return;
  const std::uint8_t *base = core.Hold(memory).base;
  for (std::int64_t i = 0; i < bytes;) {
    const Known known = Element(film, base, from + i, 1);
    std::int64_t end = i + 1;
    while (end < bytes && Element(film, base, from + end, 1) == known) ++end;
    if (known != Known::kData) GmMark(gm + i, end - i, known);
    i = end;
  }
}

namespace {

bool Clean(const Film &film, const Plan &plan, const Operand &operand) {
  const std::int64_t bytes = Footprint(plan, operand.lane, SizeOf(operand.type));
  return Clean(film, operand.lane.view.addr, operand.lane.view.addr + bytes);
}

// act(repeat, lane) for every active lane, in order.
template <typename Act>
void OverLanes(const Plan &plan, Act act) {
  const std::int64_t repeats = plan.repeats + (plan.tail > 0);
  for (std::int64_t r = 0; r < repeats; ++r) {
    const std::int64_t lanes = r < plan.repeats ? plan.last + 1 : plan.tail;
    for (std::int64_t i = 0; i < lanes; ++i) {
      if (r >= plan.repeats || plan.full || Active(plan.mask, i)) act(r, i);
    }
  }
}

bool Straight(const Plan &plan, const Operand &operand) {
  const std::int64_t blocks = plan.lanes * SizeOf(operand.type) / kBlock;
  return (plan.full || plan.repeats == 0) && operand.lane.block == 1 &&
         (operand.lane.repeat == blocks || plan.repeats + (plan.tail > 0) <= 1);
}

void SpreadClean(Film &film, const Plan &plan, const Operand &dst) {
  if (Clean(film, plan, dst)) return;
  const std::int64_t size = SizeOf(dst.type), addr = dst.lane.view.addr;
  if (Straight(plan, dst)) {
    return Set(film, addr, addr + (plan.repeats * plan.lanes + plan.tail) * size, Known::kData);
  }
  OverLanes(plan, [&](std::int64_t r, std::int64_t lane) {
    const std::int64_t at = LaneAddress(dst, r, lane);
    Set(film, at, at + size, Known::kData);
  });
}

}  // namespace

void ShadowLanes(Core &core, const Plan &plan, const Operand *operands, int count) {
  if (Dry()) return;
  Film &film = FilmOf(core, Memory::kUb);
  ShadowDone(core);
  const int first = operands[0].updates ? 0 : 1;
  bool clean = true;
  for (int i = first; i < count; ++i) clean = clean && Clean(film, plan, operands[i]);
  if (clean) return SpreadClean(film, plan, operands[0]);
  const std::uint8_t *base = core.Ub();
  const std::int64_t size = SizeOf(operands[0].type);
  OverLanes(plan, [&](std::int64_t r, std::int64_t lane) {
    Known worst = Known::kData;
    for (int i = first; i < count; ++i) {
      const Known known =
          Element(film, base, LaneAddress(operands[i], r, lane), SizeOf(operands[i].type));
      worst = std::max(worst, known);
    }
    const std::int64_t at = LaneAddress(operands[0], r, lane);
    Set(film, at, at + size, Result(worst));
  });
}

void ShadowSelect(Core &core, const Plan &plan, const Operand *operands, int count,
                  const std::uint8_t *bits, bool reuse) {
  if (Dry()) return;
  Film &film = FilmOf(core, Memory::kUb);
  ShadowDone(core);
  bool clean = true;
  for (int i = 1; i < count; ++i) clean = clean && Clean(film, plan, operands[i]);
  if (clean) return SpreadClean(film, plan, operands[0]);
  const std::uint8_t *base = core.Ub();
  const std::int64_t size = SizeOf(operands[0].type);
  OverLanes(plan, [&](std::int64_t r, std::int64_t lane) {
    const std::int64_t bit = reuse ? lane : r * plan.lanes + lane;
    const int side = (bits[bit / 8] >> (bit % 8)) & 1 ? 1 : 2;
    const Known known = side < count
                            ? Element(film, base, LaneAddress(operands[side], r, lane), size)
                            : Known::kData;
    const std::int64_t at = LaneAddress(operands[0], r, lane);
    Set(film, at, at + size, Result(known));
  });
}

void ShadowFold(Core &core, const Call &call, const Plan &plan, const Operand &src,
                const Folded &folded) {
  if (Dry()) return;
  Film &film = FilmOf(core, Memory::kUb);
  if (Clean(film, plan, src)) return;  // then the result counts as data by itself
  ShadowDone(core);
  const std::uint8_t *base = core.Ub();
  struct Seen {
    Known worst = Known::kData;
    bool data = false;
  };
  std::int64_t open = folded.dst;
  Seen seen;
  const auto close = [&] {
    // data and padding in one reduction: the padding was meant to be neutral
    const bool mixed = seen.worst == Known::kPadding && seen.data;
    if (mixed && !Again(call, "padding-read")) {
      Report(call, "padding-read",
             Text("%s takes in padding that no paddingValue was given for", call.api), "", "", "",
             Level::kWarning);
    }
    Set(film, open, open + folded.bytes, mixed ? Known::kData : Result(seen.worst));
  };
  OverLanes(plan, [&](std::int64_t r, std::int64_t lane) {
    const std::int64_t at =
        folded.group == 0
            ? folded.dst
            : folded.dst + r * folded.pitch + lane / folded.group * folded.bytes;
    if (at != open) close();
    if (at != open) seen = Seen();
    open = at;
    const Known known = Element(film, base, LaneAddress(src, r, lane), SizeOf(src.type));
    seen.worst = std::max(seen.worst, known);
    seen.data = seen.data || known == Known::kData;
  });
  close();
}

void ShadowTake(Core &core, Taken &taken, std::int64_t to, std::int64_t from,
                std::int64_t bytes) {
  if (Dry()) return;
  const Film &film = FilmOf(core, Memory::kUb);
  if (Clean(film, from, from + bytes)) return;
  const Known known = Result(Element(film, core.Ub(), from, bytes));
  for (std::int64_t i = 0; i < bytes; ++i) taken.emplace_back(to + i, known);
}

void ShadowGive(Core &core, const Taken &taken) {
  if (Dry()) return;
  if (taken.empty()) return;
  ShadowIssue(core);  // what the call writes is data, except for these
  Film &film = FilmOf(core, Memory::kUb);
  for (const auto &[at, known] : taken) Set(film, at, at + 1, known);
}

bool ShadowReadIndex(Core &core, const Call &call, const char *role, std::int64_t addr,
                     std::int64_t bytes) {
  if (Dry()) return true;
  if (ShadowOf(core, Memory::kUb, addr, addr + bytes) < Known::kTainted) return true;
  if (Again(call, "uninit-read")) return false;
  Report(call, "uninit-read", Text("%s takes %s that were never written", call.api, role),
         Text("UB byte %lld", Ll(addr)));
  return false;
}

void ShadowReadScalar(Core &core, const Call &call, Memory memory, std::int64_t addr,
                      std::int64_t bytes) {
  if (Dry()) return;
  const Known known = ShadowOf(core, memory, addr, addr + bytes);
  if (known == Known::kData) return;
  if (known == Known::kPadding) {
    if (Again(call, "padding-read")) return;
    Report(call, "padding-read",
           Text("%s reads padding that no paddingValue was given for", call.api),
           Text("%s byte %lld", NameOf(memory), Ll(addr)), "", "", Level::kWarning);
    return;
  }
  if (Again(call, "uninit-read")) return;
  Report(call, "uninit-read",
         Text("%s reads %s", call.api,
              known == Known::kNever ? "what was never written"
                                     : "a value computed from what was never written"),
         Text("%s byte %lld", NameOf(memory), Ll(addr)));
}

}  // namespace twin
