// Scalar access to UB and global memory, tiling data.

#include "check.h"
#include "log/record.h"
#include "text.h"
#include "log/inefficiency.h"

namespace twin {

namespace {

View At(const View &view, std::int64_t index, int size) {
  View element = view;
  element.addr += index * size;
  element.bytes -= index * size;
  return element;
}

Gm At(const Gm &gm, std::int64_t index, int size) {
  return {gm.base + index * size, gm.bytes < 0 ? gm.bytes : gm.bytes - index * size, gm.uncached,
          gm.bypass};
}

}  // namespace

void ReadElement(const Call &call, const View &view, std::int64_t index, int size, void *out) {
  Core &core = Enter(call, PIPE_S);
  RecordScalar("read");
  CountInefficiency(core, Inefficiency::kScalar);
  const View element = At(view, index, size);
  const std::uint8_t *from = Usable(core, call, {"tensor", &element, size, size, Use::kRead});
  if (from == nullptr) {
    std::memset(out, 0xFF, static_cast<std::size_t>(size));
    return;
  }
  ShadowReadScalar(core, call, MemoryOf(view.position), element.addr, size);
  if (Dry() && StillPoison(from, size)) {  // nothing was computed: zero is the plainest value
    std::memset(out, 0, static_cast<std::size_t>(size));
    return;
  }
  std::memcpy(out, from, static_cast<std::size_t>(size));
}

void WriteElement(const Call &call, const View &view, std::int64_t index, int size,
                  const void *in) {
  Core &core = Enter(call, PIPE_S);
  RecordScalar("write");
  CountInefficiency(core, Inefficiency::kScalar);
  const View element = At(view, index, size);
  std::uint8_t *to = Usable(core, call, {"tensor", &element, size, size, Use::kWrite});
  if (to != nullptr) std::memcpy(to, in, static_cast<std::size_t>(size));
}

void ReadGm(const Call &call, const Gm &gm, std::int64_t index, int size, void *out) {
  Enter(call, PIPE_S);
  RecordScalar("gm_read");
  const std::uint8_t *from = Poll(call, At(gm, index, size), size);
  if (from == nullptr) from = UsableGm(call, "tensor", At(gm, index, size), size, false);
  if (from == nullptr) {
    std::memset(out, 0xFF, static_cast<std::size_t>(size));
    return;
  }
  std::memcpy(out, from, static_cast<std::size_t>(size));
}

void WriteGm(const Call &call, const Gm &gm, std::int64_t index, int size, const void *in) {
  Enter(call, PIPE_S);
  RecordScalar("gm_write");
  std::uint8_t *to = UsableGm(call, "tensor", At(gm, index, size), size, true);
  if (to != nullptr) std::memcpy(to, in, static_cast<std::size_t>(size));
}

Site LastSite() { return Me().spot.site; }

void *UbPointer(std::int64_t addr) {
  Core &core = Me();
  ShadowForget(core, Memory::kUb, addr);
  return core.Ub() + addr;
}

void *LocalPointer(AscendC::TPosition position, std::int64_t addr) {
  Core &core = Me();
  ShadowForget(core, MemoryOf(position), addr);
  return core.Hold(MemoryOf(position)).base + addr;
}

std::int64_t UbAddress(const void *pointer) {
  const auto *at = static_cast<const std::uint8_t *>(pointer);
  const std::uint8_t *ub = Me().Ub();
  return at >= ub && at < ub + kUbBytes ? at - ub : -1;
}

View RawView(const void *pointer) {
  View view;
  view.addr = UbAddress(pointer);
  if (view.addr < 0) return View();
  view.bytes = kUbBytes - view.addr;
  view.position = AscendC::TPosition::VECCALC;
  return view;
}

View LocalView(const void *pointer) {
  using P = AscendC::TPosition;
  View view;
  const auto *at = static_cast<const std::uint8_t *>(pointer);
  for (const P position : {P::VECIN, P::A1, P::A2, P::B2, P::CO1}) {
    const Memory memory = MemoryOf(position);
    const std::uint8_t *base = Me().spaces[static_cast<std::size_t>(memory)].base;
    if (base == nullptr || at < base || at >= base + BytesOf(memory)) continue;
    view.addr = at - base;
    view.bytes = BytesOf(memory) - view.addr;
    view.position = position;
  }
  return view;
}

void CheckGm(const Call &call, const Gm &gm, std::int64_t bytes) {
  Enter(call, PIPE_S);
  LookGm(call, "tensor", gm, bytes, false);
}

void CleanCache(const Call &call, const Gm &gm, std::int64_t bytes, bool whole) {
  Core &core = Enter(call, PIPE_S);
  RecordScalar("cache_clean");
  if (LookGm(call, "tensor", gm, bytes, false) != nullptr)
    OrderClean(core, whole ? nullptr : gm.base);
}

void CopyTiling(const Call &call, void *target, const void *source, std::int64_t bytes) {
  Enter(call, PIPE_S);
  RecordScalar("tiling");
  const Gm gm{const_cast<std::uint8_t *>(static_cast<const std::uint8_t *>(source)), -1, 0};
  const LaunchSpec *spec = ThisLaunch().spec;
  for (const Region &region : spec->regions) {
    const bool inside = gm.base >= region.base && gm.base < region.base + region.bytes;
    if (!inside || region.base + region.bytes - gm.base >= bytes) continue;
    Report(call, "tiling-size",
           Text("the kernel's tiling struct has %lld B, the host wrote %lld B", Ll(bytes),
                Ll(region.base + region.bytes - gm.base)));
    StopCore();
  }
  if (UsableGm(call, "tiling", gm, bytes, false) == nullptr) StopCore();
  std::memcpy(target, source, static_cast<std::size_t>(bytes));
}

void SetWorkspace(void *workspace) {
  ThisLaunch().workspace = static_cast<std::uint8_t *>(workspace);
}

void *Workspace() { return ThisLaunch().workspace; }

void AssertFailed(const Call &call, const char *text, const char *message) {
  Enter(call, PIPE_S);
  Report(call, "kernel-assert", Text("ASSERT(%s) failed", text), message);
  StopCore();
}

// No clock on the twin: a number that grows with the work done, the same on every run.
std::int64_t Cycles() { return Me().calls; }

}  // namespace twin
