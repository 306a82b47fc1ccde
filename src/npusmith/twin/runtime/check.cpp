// Checks of operands: position, buffer state, alignment, bounds, overlap.
#include "check.h"

#include <algorithm>

#include "text.h"

namespace twin {

namespace {

// Which memory an instruction of this pipe reaches by default; cube operations name theirs.
bool CheckPosition(const Call &call, const Need &need, Memory memory) {
  const bool somewhere = need.view->position != AscendC::TPosition::MAX &&
                         need.view->position != AscendC::TPosition::GM;
  if (somewhere && MemoryOf(need.view->position) == memory) return true;
  if (need.view->position == AscendC::TPosition::MAX) {
    Report(call, "tensor-empty", Text("%s of %s has no memory", need.role, call.api));
  } else {
    Report(call, "position", Text("%s of %s is at %s", need.role, call.api,
                                  NameOf(need.view->position)));
  }
  return false;
}

// Only vector cores have UB, only cube cores have the other memories. What a vector core copies to
// L1 and its Matmul object reads there is work of the cube core of its block (doc: TSCM).
bool CheckCore(const Core &core, const Call &call, const Need &need, Memory memory) {
  const bool cube = core.seat.kind == Kind::kCube;
  if (cube == (memory != Memory::kUb)) return true;
  const bool served = need.view->position == AscendC::TPosition::TSCM;
  if (served && memory == Memory::kL1 && ThisLaunch().CoresOf(Kind::kCube) > 0) return true;
  Report(call, "wrong-core",
         Text("%s works on %s, which a %s core has not", call.api, NameOf(memory),
              cube ? "cube" : "vector"),
         Text("on %s", NameOf(core.seat).c_str()),
         cube ? "on a vector core: if ASCEND_IS_AIV" : "on a cube core: if ASCEND_IS_AIC");
  return false;
}

// Memory of PopStackBuffer is valid until somebody else gets it.
bool CheckStack(const Core &core, const Call &call, const Need &need, const Buffer &buffer) {
  const bool again = buffer.generation != need.view->generation;
  const bool buried = core.spaces[static_cast<std::size_t>(Memory::kUb)].top > buffer.addr;
  if (!again && !buried) return true;
  Report(call, "stack-nested",
         Text("%s of %s came from PopStackBuffer, %s", need.role, call.api,
              again ? "which was called again since" : "and InitBuffer took the same bytes since"),
         Text("PopStackBuffer at %s%s", PlaceOf(buffer.made).c_str(),
              again ? Text(", again at %s", PlaceOf(buffer.moved).c_str()).c_str() : ""));
  return false;
}

bool CheckState(const Core &core, const Call &call, const Need &need) {
  if (need.view->buffer == kNoBuffer) return true;
  const Buffer &buffer = core.buffers[static_cast<std::size_t>(need.view->buffer)];
  if (buffer.queue == kStackQueue) return CheckStack(core, call, need, buffer);
  const bool stale = buffer.generation != need.view->generation;
  const bool held = buffer.state == BufferState::kAllocated ||
                    buffer.state == BufferState::kDequeued || buffer.state == BufferState::kStatic;
  if (held && !stale) return true;
  const char *when = buffer.state == BufferState::kQueued && !stale ? "after EnQue and before DeQue"
                     : buffer.state == BufferState::kGone           ? "after TPipe::Reset"
                                                                    : "after FreeTensor";
  Report(call, "queue-state", Text("%s of %s is used %s", need.role, call.api, when),
         Text("buffer of %s made at %s is %s since %s", NameOf(buffer.position),
              PlaceOf(buffer.made).c_str(), NameOf(buffer.state), PlaceOf(buffer.moved).c_str()));
  return false;
}

bool CheckAlignment(const Call &call, const Need &need) {
  if (need.view->addr % need.align == 0) return true;
  Report(call, "ub-align",
         Text("%s of %s starts at %s byte %lld, not a multiple of %lld", need.role, call.api,
              NameOf(MemoryOf(need.view->position)), Ll(need.view->addr), Ll(need.align)),
         Text("address %% %lld = %lld", Ll(need.align), Ll(need.view->addr % need.align)),
         Text("address %% %lld == 0", Ll(need.align)));
  return false;
}

// A tensor may have been given a smaller size than the buffer that it was cut from.
bool InBuffer(const Core &core, const Need &need) {
  const View &view = *need.view;
  if (view.buffer == kNoBuffer) return false;
  if (view.addr + need.bytes > BytesOf(MemoryOf(view.position))) return false;
  const Buffer &buffer = core.buffers[static_cast<std::size_t>(view.buffer)];
  return view.addr >= buffer.addr && view.addr + need.bytes <= buffer.addr + buffer.bytes;
}

// A tensor at an address of the kernel's own has no buffer: what lies behind it is nobody's until
// the next buffer or tensor begins, and instructions that work in fractals or blocks may end there.
bool InNoMansLand(const Core &core, const Need &need) {
  const View &view = *need.view;
  const Memory memory = MemoryOf(view.position);
  const std::int64_t low = view.addr + view.bytes, high = view.addr + need.bytes;
  if (view.buffer != kNoBuffer || view.bytes <= 0 || high > BytesOf(memory)) return false;
  const auto inside = [&](std::int64_t at) { return at >= low && at < high; };
  for (const Buffer &buffer : core.buffers) {
    const bool there = buffer.state != BufferState::kGone && MemoryOf(buffer.position) == memory;
    if (there && buffer.addr < high && buffer.addr + buffer.bytes > low) return false;
  }
  return std::none_of(core.placed.begin(), core.placed.end(), [&](const Core::Placed &other) {
    return other.memory == memory && other.bytes > 0 && inside(other.addr);
  });
}

bool CheckBounds(const Core &core, const Call &call, const Need &need) {
  const View &view = *need.view;
  const std::int64_t most = BytesOf(MemoryOf(view.position));
  if (need.bytes <= view.bytes && view.addr >= 0 && view.addr + need.bytes <= most) return true;
  std::string seen = Text("touches %lld B, the tensor has %lld B from there on", Ll(need.bytes),
                          Ll(std::max<std::int64_t>(view.bytes, 0)));
  if (InBuffer(core, need) || InNoMansLand(core, need)) {
    Report(call, "ub-size", Text("%s of %s ends outside its tensor", need.role, call.api), seen, "",
           "", Level::kWarning);
    return true;
  }
  if (view.buffer != kNoBuffer) {
    const Buffer &buffer = core.buffers[static_cast<std::size_t>(view.buffer)];
    const std::string made = PlaceOf(buffer.made);
    seen += buffer.made.line == 0  // of a pipe before the last one: nothing else is known
                ? Text("; buffer of %s", made.c_str())
                : Text("; buffer of %lld B made at %s", Ll(buffer.bytes), made.c_str());
  }
  Report(call, "ub-bounds", Text("%s of %s ends outside its tensor", need.role, call.api), seen,
         Text("at most %lld B", Ll(std::max<std::int64_t>(view.bytes, 0))));
  return false;
}

const Region *RegionOf(const std::uint8_t *base) {
  const LaunchSpec *spec = ThisLaunch().spec;
  if (spec == nullptr) return nullptr;
  static thread_local std::size_t last = 0;
  const auto &regions = spec->regions;
  const auto holds = [base](const Region &region) {
    return base >= region.base && base < region.base + region.bytes;
  };
  if (last < regions.size() && holds(regions[last])) return &regions[last];
  for (last = 0; last < regions.size(); ++last) {
    if (holds(regions[last])) return &regions[last];
  }
  return nullptr;
}

const Region *Nearest(const std::uint8_t *base) {
  const Region *best = nullptr;
  const LaunchSpec *spec = ThisLaunch().spec;
  if (spec == nullptr) return nullptr;
  for (const Region &region : spec->regions) {
    if (base >= region.base && (best == nullptr || region.base > best->base)) best = &region;
  }
  return best;
}

void ReportOutside(const Call &call, const char *role, const std::uint8_t *base,
                   std::int64_t bytes, Level level) {
  const Region *near = Nearest(base);
  std::string seen = near == nullptr
      ? Text("%lld B below every tensor", Ll(bytes))
      : Text("%lld B from byte %lld of %s, which has %lld B", Ll(bytes), Ll(base - near->base),
             near->name.c_str(), Ll(static_cast<std::int64_t>(near->bytes)));
  const char *what = level == Level::kError ? "leaves global memory of the operator"
                                            : "is rounded up past the end of its tensor";
  Report(call, "gm-bounds", Text("%s of %s %s", role, call.api, what), seen, "", "", level);
}

}  // namespace

namespace {

// Scratch is written before it is read, all inside one call.
bool IsScratch(const char *role) {
  return std::strncmp(role, "sharedTmp", 9) == 0 || std::strncmp(role, "work", 4) == 0;
}

void Touch(Core &core, const Call &call, const Need &need, Memory memory) {
  if (need.use == Use::kLook || need.bytes <= 0) return;
  if (std::strcmp(need.role, "ubWorkspace") == 0) return;  // a barrier orders it itself
  const bool named = std::strncmp(need.role, "dst", 3) == 0 || IsScratch(need.role);
  const bool write = need.use == Use::kByRole ? named : need.use != Use::kRead;
  const bool read = need.use == Use::kByRole ? !named : need.use != Use::kWrite;
  const auto tell = [&](bool writes) {
    OrderTouch(core, call, memory, need.view->addr, need.bytes, need.rows.run, need.rows.pitch,
               writes);
  };
  if (read) tell(false);
  if (!write) return;
  tell(true);
  ShadowWrites(core, memory, need.view->addr, need.view->addr + need.bytes);
}

}  // namespace

std::uint8_t *UsableIn(Core &core, const Call &call, const Need &need, Memory memory) {
  CheckOverflow(core);
  if (!CheckCore(core, call, need, memory) || !CheckPosition(call, need, memory)) return nullptr;
  // The hardware knows neither owners nor lengths of tensors: what lies in the memory is used.
  CheckState(core, call, need);
  if (!CheckAlignment(call, need)) return nullptr;
  const bool there = need.view->addr >= 0 && need.view->addr + need.bytes <= BytesOf(memory);
  if (!CheckBounds(core, call, need)) {
    core.outside = true;
    if (!there) return nullptr;
  }
  Touch(core, call, need, memory);
  return core.Hold(memory).base + need.view->addr;
}

std::uint8_t *Usable(Core &core, const Call &call, const Need &need) {
  return UsableIn(core, call, need, Memory::kUb);
}

namespace {

// The allocation in which the bytes lie, or null after reporting.
const Region *UsableRegion(const Call &call, const char *role, const Gm &gm, std::int64_t bytes,
                           bool write) {
  const Region *region = gm.base == nullptr ? nullptr : RegionOf(gm.base);
  const std::int64_t past =
      region == nullptr ? 0 : bytes - (region->base + region->bytes - gm.base);
  const bool padded = past > 0 && region != nullptr && past <= Ll(region->pad);
  if (region == nullptr || (past > 0 && (write || !padded))) {
    // What is rounded up to a block stays inside an allocation that is padded; where somebody packs
    // tensors one behind the other, it does not.
    const bool rounded = padded && past < kBlock;
    ReportOutside(call, role, gm.base, bytes, rounded ? Level::kWarning : Level::kError);
    if (!padded) return nullptr;
  }
  if (write && !region->writable) {
    Report(call, "gm-readonly", Text("%s writes into %s", call.api, region->name.c_str()),
           Text("%lld B from byte %lld", Ll(bytes), Ll(gm.base - region->base)));
    return nullptr;
  }
  if (padded && !write) {
    Report(call, "gm-padding", Text("%s of %s reads past the end of its tensor", role, call.api),
           Text("%lld B past %s, inside its allocation", Ll(past), region->name.c_str()), "", "",
           Level::kWarning);
  }
  if (gm.bytes >= 0 && bytes > gm.bytes) {  // the hardware does not know that size
    Report(call, "gm-size", Text("%s of %s ends outside its GlobalTensor", role, call.api),
           Text("touches %lld B, SetGlobalBuffer left %lld B from there on", Ll(bytes),
                Ll(gm.bytes)),
           "", "", Level::kWarning);
  }
  return region;
}

}  // namespace

std::uint8_t *LookGm(const Call &call, const char *role, const Gm &gm, std::int64_t bytes,
                     bool write) {
  return UsableRegion(call, role, gm, bytes, write) == nullptr ? nullptr : gm.base;
}

std::uint8_t *UsableGm(const Call &call, const char *role, const Gm &gm, std::int64_t bytes,
                       bool write, Spread rows) {
  const Region *region = UsableRegion(call, role, gm, bytes, write);
  if (region == nullptr) return nullptr;
  Core &core = Me();
  const std::int64_t inside = std::min<std::int64_t>(bytes, region->base + region->bytes - gm.base);
  const Way scalar = gm.bypass ? Way::kPastCache : Way::kCache;
  if (write) NotePolled(core, gm.base, inside);
  OrderTouchGm(core, call, *region, gm.base, inside, rows.run, rows.pitch, write,
               core.unit == PIPE_S ? scalar : Way::kPipe);
  return gm.base;
}

bool InRange(const Call &call, const char *what, std::int64_t value, std::int64_t least,
             std::int64_t most) {
  if (value >= least && value <= most) return true;
  Report(call, "param-range", Text("%s of %s is %lld", what, call.api, Ll(value)),
         Text("%lld", Ll(value)), Text("%lld .. %lld", Ll(least), Ll(most)));
  return false;
}

std::int64_t Fit(const Call &call, const char *what, std::int64_t value, std::int64_t most) {
  if (value >= 0 && value <= most) return value;
  Report(call, "param-range",
         Text("%s is %lld; the hardware field would hold %lld", what, Ll(value),
              Ll(value & most)),
         Text("%lld", Ll(value)), Text("0 .. %lld", Ll(most)));
  return value & most;
}

bool Disjoint(const Call &call, const char *first, const View &a, std::int64_t aBytes,
              const char *second, const View &b, std::int64_t bBytes, Level level) {
  if (a.addr + aBytes <= b.addr || b.addr + bBytes <= a.addr) return true;
  if (aBytes <= 0 || bBytes <= 0 || Me().outside) return true;
  Report(call, "overlap", Text("%s and %s of %s overlap", first, second, call.api),
         Text("UB bytes %lld..%lld and %lld..%lld", Ll(a.addr), Ll(a.addr + aBytes), Ll(b.addr),
              Ll(b.addr + bBytes)),
         "", "", level);
  return false;
}

void UseReserve(Core &core, const Call &call, std::int64_t bytes) {
  std::int64_t used = 0;
  for (const Buffer &buffer : core.buffers) {
    const bool here = MemoryOf(buffer.position) == Memory::kUb;
    if (here && buffer.state != BufferState::kGone)
      used = std::max(used, buffer.addr + buffer.bytes);
  }
  if (used <= TWIN_UB_BYTES) return;
  // one buffer over all of UB, of which a kernel leaves the top alone, harms nothing
  const bool holds = ShadowTouched(core, Memory::kUb, TWIN_UB_BYTES, kUbUsable);
  Report(call, "ub-reserved",
         Text("%s uses the top of UB as scratch, where buffers of this kernel %s", call.api,
              holds ? "hold something" : "reach, which hold nothing there"),
         Text("buffers end at byte %lld", Ll(used)), Text("at most %d", TWIN_UB_BYTES), "",
         holds ? Level::kError : Level::kWarning);
  auto *words = reinterpret_cast<std::uint16_t *>(core.Ub() + TWIN_UB_BYTES);
  std::fill(words, words + std::min(bytes, kUbUsable - TWIN_UB_BYTES) / 2, std::uint16_t{0x7FFF});
}

bool HasScratch(Core &core, const Call &call, const View *scratch, std::int64_t bytes) {
  if (scratch != nullptr) {
    return Usable(core, call, {"sharedTmpBuffer", scratch, bytes, kBlock, Use::kWrite}) !=
           nullptr;
  }
  const std::int64_t left = kUbUsable - core.spaces[0].top;
  if (left >= bytes) return true;
  Report(call, "scratch-size",
         Text("%s needs scratch from what is left of UB, and %lld B are left", call.api, Ll(left)),
         Text("InitBuffer took %lld B", Ll(core.spaces[0].top)),
         Text("at least %lld B left", Ll(bytes)));
  return false;
}

}  // namespace twin
