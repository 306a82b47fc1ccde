// What the checks that the compiler puts into a kernel's code do.
#include "fence/fence.h"

#include <link.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "check.h"
#include "log/record.h"
#include "text.h"
#include "log/inefficiency.h"

extern "C" {
// Bounds of the present core's stack, read by the thunks too: [0, all) while nothing is fenced.
std::uintptr_t twin_fence_low = 0, twin_fence_high = ~std::uintptr_t{0};
// The code of the kernel as vector cores run it; the cube's is looked up.
std::uintptr_t twin_code_low = 0, twin_code_bytes = 0;
extern const char twin_enter_back[];
}

namespace twin {

namespace {

constexpr std::int64_t kManyRaw = 1024;         // accesses of one core; guess: tables are shorter
constexpr std::uintptr_t kFirstPage = 4096;
constexpr std::uintptr_t kGuard = 1 << 20;      // around stacks and tensors: a touch there faults

struct Segment {
  std::uintptr_t low = 0, high = 0;
  bool writable = false;
};

// A loaded library of the kernel.
struct Code {
  std::uintptr_t base = 0, low = 0, high = 0;  // of the executable part
  std::vector<Segment> segments;
  std::vector<std::uint8_t> ran;  // by offset from low

  bool Holds(std::uintptr_t at) const { return at >= low && at < high; }
};

Code &CodeOf(bool cube) {
  static Code *codes = new Code[2];  // read by what runs at exit
  return codes[cube ? 1 : 0];
}

bool Fenced() { return twin_fence_low != 0; }

Site SiteOf(std::uintptr_t pc) {
  for (const bool cube : {false, true}) {
    const Code &code = CodeOf(cube);
    if (code.Holds(pc)) return {cube ? kCubeCode : kKernelCode, static_cast<int>(pc - code.base)};
  }
  return Me().spot.site;
}

[[noreturn]] void Refuse(std::uintptr_t pc, const char *what, std::uintptr_t address) {
  const Call call{"raw pointer", SiteOf(pc)};
  Report(call, "wild-pointer", Text("device code %s that is not the kernel's", what),
         Text("address 0x%llx", static_cast<unsigned long long>(address)));
  StopCore();
}

// ---- accesses of the kernel's own code

struct Touch {
  std::uintptr_t at;
  std::size_t size;
  bool write;
  std::uintptr_t pc;

  bool In(std::uintptr_t low, std::uintptr_t high) const {
    return at >= low && at < high && size <= high - at;
  }
  // Of 8 bytes, which is what the scalar unit moves at once.
  std::int64_t Words() const { return static_cast<std::int64_t>((size + 7) / 8); }
  Call call() const { return {"a raw pointer", SiteOf(pc)}; }
};

// Constants and variables of the file; the variables are not to be written.
bool InFile(const Touch &touch) {
  for (const bool cube : {false, true}) {
    for (const Segment &segment : CodeOf(cube).segments) {
      if (!touch.In(segment.low, segment.high)) continue;
      if (touch.write && segment.writable) {
        Report(touch.call(), "global-write", "device code writes a global or static variable");
      }
      return true;
    }
  }
  return false;
}

// Each word counts as work of the scalar unit, as GetValue and SetValue do.
Core &Charge(const char *step, const Touch &touch) {
  Core &core = Me();
  for (std::int64_t left = touch.Words(); left > 0; --left) {
    core.calls += 1;
    core.unit = PIPE_S;
    core.outside = false;
    OrderIssue(core, PIPE_S);
    if (core.log != nullptr) RecordBegin(core, PIPE_S);
    RecordScalar(step);
  }
  return core;
}

void CountRaw(Core &core, const Touch &touch, const std::string &where) {
  const bool first = core.raw == 0, few = core.raw < kManyRaw;
  core.raw += touch.Words();
  if (first) {
    Report(touch.call(), "raw-pointer", Text("%s is read or written without an API", where.c_str()),
           "", "", "", Level::kNote);
  }
  if (!few || core.raw < kManyRaw) return;
  Report(touch.call(), "raw-pointer",
         Text("a core moves data through raw pointers, such as here in %s", where.c_str()),
         Text("%lld words so far", Ll(core.raw)));
}

bool OnCore(const Touch &touch) {
  Core &core = Me();
  for (std::size_t at = 0; at < kMemories; ++at) {
    const Space &space = core.spaces[at];
    const auto base = reinterpret_cast<std::uintptr_t>(space.base);
    const auto memory = static_cast<Memory>(at);
    if (base == 0 || !touch.In(base, base + static_cast<std::uintptr_t>(BytesOf(memory)))) continue;
    Charge(touch.write ? "write" : "read", touch);
    const auto addr = static_cast<std::int64_t>(touch.at - base);
    if (touch.write) ShadowForget(core, memory, addr);
    CountRaw(core, touch, NameOf(memory));
    return true;
  }
  return false;
}

bool InTensor(const Touch &touch) {
  const LaunchSpec *spec = ThisLaunch().spec;
  for (const Region &region : spec->regions) {
    const auto base = reinterpret_cast<std::uintptr_t>(region.base);
    if (touch.at + kGuard < base || touch.at >= base + region.bytes + region.pad + kGuard) continue;
    if (!touch.In(base, base + region.bytes)) return true;  // the run finds or faults
    if (touch.write && !region.writable) return true;
    Core &core = Charge(touch.write ? "gm_write" : "gm_read", touch);
    OrderTouchGm(core, touch.call(), region, reinterpret_cast<std::uint8_t *>(touch.at),
                 static_cast<std::int64_t>(touch.size), 0, 0, touch.write, Way::kCache);
    if (!region.table) CountRaw(core, touch, region.name);
    return true;
  }
  return false;
}

bool InArguments(const Touch &touch) {
  const LaunchSpec *spec = ThisLaunch().spec;
  const auto base = reinterpret_cast<std::uintptr_t>(spec->args);
  return !touch.write && touch.In(base, base + spec->argCount * sizeof(void *));
}

// Pages that fault by themselves: the crash is told with its place.
bool Faults(const Touch &touch) {
  return touch.at < kFirstPage ||
         (touch.at < twin_fence_low && touch.at + kGuard >= twin_fence_low);
}

__attribute__((noinline)) void Look(const Touch &touch) {
  if (ThisLaunch().spec == nullptr) return;
  if (InTensor(touch) || OnCore(touch) || InFile(touch) || InArguments(touch)) return;
  if (!Faults(touch)) Refuse(touch.pc, touch.write ? "writes memory" : "reads memory", touch.at);
}

inline void Check(std::uintptr_t at, std::size_t size, bool write, void *pc) {
  if (at >= twin_fence_low && at < twin_fence_high && size <= twin_fence_high - at) return;
  Look({at, size, write, reinterpret_cast<std::uintptr_t>(pc) - 1});
}

// ---- where the code lies

int NoteLibrary(dl_phdr_info *info, std::size_t, void *data) {
  auto *code = static_cast<Code *>(data);
  Code found;
  found.base = info->dlpi_addr;
  for (int at = 0; at < info->dlpi_phnum; ++at) {
    const auto &header = info->dlpi_phdr[at];
    if (header.p_type != PT_LOAD) continue;
    const std::uintptr_t low = info->dlpi_addr + header.p_vaddr;
    found.segments.push_back({low, low + header.p_memsz, (header.p_flags & PF_W) != 0});
    if ((header.p_flags & PF_X) == 0) continue;
    found.low = low;
    found.high = low + header.p_memsz;
  }
  const auto holds = [&](const Segment &each) {
    return code->base >= each.low && code->base < each.high;
  };
  if (std::none_of(found.segments.begin(), found.segments.end(), holds)) return 0;
  *code = found;
  return 1;
}

}  // namespace

void FenceCode(const void *address, bool cube) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (CodeOf(false).Holds(at) || CodeOf(true).Holds(at)) return;
  Code &code = CodeOf(cube);
  code = Code();
  code.base = at;
  if (dl_iterate_phdr(NoteLibrary, &code) == 0) {
    code = Code();
    return;
  }
  code.ran.assign(code.high - code.low, 0);
  if (cube) return;
  twin_code_low = code.low;
  twin_code_bytes = code.high - code.low;
}

std::vector<std::uint32_t> TakeBlocks(bool cube) {
  Code &code = CodeOf(cube);
  std::vector<std::uint32_t> blocks;
  for (std::size_t at = 0; at < code.ran.size(); ++at) {
    if (code.ran[at] == 0) continue;
    blocks.push_back(static_cast<std::uint32_t>(code.low - code.base + at));
  }
  std::fill(code.ran.begin(), code.ran.end(), 0);
  return blocks;
}

void FenceRaise(const void *bottom, const void *top) {
  twin_fence_low = reinterpret_cast<std::uintptr_t>(bottom);
  twin_fence_high = reinterpret_cast<std::uintptr_t>(top);
}

void FenceLower() {
  twin_fence_low = 0;
  twin_fence_high = ~std::uintptr_t{0};
}

}  // namespace twin

// ---- what the compiler's code calls

#define TWIN_CALLER __builtin_return_address(0)
#define TWIN_CHECKS(size)                                                              \
  extern "C" void __asan_load##size##_noabort(std::uintptr_t at) {                     \
    twin::Check(at, size, false, TWIN_CALLER);                                         \
  }                                                                                    \
  extern "C" void __asan_store##size##_noabort(std::uintptr_t at) {                    \
    twin::Check(at, size, true, TWIN_CALLER);                                          \
  }
TWIN_CHECKS(1)
TWIN_CHECKS(2)
TWIN_CHECKS(4)
TWIN_CHECKS(8)
TWIN_CHECKS(16)
extern "C" void __asan_loadN_noabort(std::uintptr_t at, std::size_t size) {
  twin::Check(at, size, false, TWIN_CALLER);
}
extern "C" void __asan_storeN_noabort(std::uintptr_t at, std::size_t size) {
  twin::Check(at, size, true, TWIN_CALLER);
}
extern "C" void __asan_handle_no_return() {}
// Tables of globals, for checks of their bounds that are not made here: the fence asks by address.
extern "C" void __asan_register_globals(void *, std::size_t) {}
extern "C" void __asan_unregister_globals(void *, std::size_t) {}
extern "C" void __asan_before_dynamic_init(const char *) {}
extern "C" void __asan_after_dynamic_init() {}

extern "C" void __sanitizer_cov_trace_pc() {
  const auto pc = reinterpret_cast<std::uintptr_t>(TWIN_CALLER);
  for (const bool cube : {false, true}) {
    twin::Code &code = twin::CodeOf(cube);
    if (code.Holds(pc)) code.ran[pc - code.low] = 1;
  }
}

// Block moves of the kernel's code: the link turns the C library's names into these.
extern "C" void *__wrap_memcpy(void *to, const void *from, std::size_t size) {
  if (size == 0) return to;
  twin::Check(reinterpret_cast<std::uintptr_t>(from), size, false, TWIN_CALLER);
  twin::Check(reinterpret_cast<std::uintptr_t>(to), size, true, TWIN_CALLER);
  return std::memmove(to, from, size);
}
extern "C" void *__wrap_memmove(void *to, const void *from, std::size_t size) {
  if (size == 0) return to;
  twin::Check(reinterpret_cast<std::uintptr_t>(from), size, false, TWIN_CALLER);
  twin::Check(reinterpret_cast<std::uintptr_t>(to), size, true, TWIN_CALLER);
  return std::memmove(to, from, size);
}
extern "C" void *__wrap_memset(void *to, int value, std::size_t size) {
  if (size > 0) twin::Check(reinterpret_cast<std::uintptr_t>(to), size, true, TWIN_CALLER);
  return std::memset(to, value, size);
}
extern "C" int __wrap_memcmp(const void *a, const void *b, std::size_t size) {
  if (size == 0) return 0;
  twin::Check(reinterpret_cast<std::uintptr_t>(a), size, false, TWIN_CALLER);
  twin::Check(reinterpret_cast<std::uintptr_t>(b), size, false, TWIN_CALLER);
  return std::memcmp(a, b, size);
}

// Messages of ASSERT and printf. A format that stores through its arguments writes nothing.
extern "C" int __wrap_snprintf(char *to, std::size_t size, const char *format, ...) {
  if (size > 0) twin::Check(reinterpret_cast<std::uintptr_t>(to), size, true, TWIN_CALLER);
  for (const char *at = std::strchr(format, '%'); at != nullptr; at = std::strchr(at + 1, '%')) {
    at += 1 + std::strspn(at + 1, "0123456789.-+ #*$'hljztLqI");
    if (*at == 'n') return 0;
    if (*at == '\0') break;
  }
  va_list args;
  va_start(args, format);
  const int length = std::vsnprintf(to, size, format, args);
  va_end(args);
  return length;
}

// ---- returns, and calls through pointers

extern "C" void twin_check_target(std::uintptr_t target) {
  if (!twin::Fenced() || twin::ThisLaunch().spec == nullptr) return;
  if (twin::CodeOf(false).Holds(target) || twin::CodeOf(true).Holds(target)) return;
  if (target == reinterpret_cast<std::uintptr_t>(twin_enter_back)) return;
  twin::Refuse(target, "jumps to code", target);
}

#if defined(__x86_64__)
asm(R"(
  .text
  .globl twin_enter
  .type twin_enter, @function
twin_enter:
  push %rbx
  mov %rdi, %rax
  mov %rsi, %rdi
  call *%rax
  .globl twin_enter_back
  .hidden twin_enter_back
twin_enter_back:
  pop %rbx
  ret
  .size twin_enter, .-twin_enter

  # At a function's end: rax, rdx, xmm0 and xmm1 may hold what it returns, r11 is free.
  .globl __x86_return_thunk
  .type __x86_return_thunk, @function
__x86_return_thunk:
  mov twin_code_low@GOTPCREL(%rip), %r11
  mov (%r11), %r11
  neg %r11
  add (%rsp), %r11
  push %rax
  mov twin_code_bytes@GOTPCREL(%rip), %rax
  cmp (%rax), %r11
  pop %rax
  jae 1f
  ret
1:
  mov (%rsp), %r11
  push %rax
  push %rdx
  sub $40, %rsp
  movups %xmm0, (%rsp)
  movups %xmm1, 16(%rsp)
  mov %r11, %rdi
  call twin_check_target@PLT
  movups (%rsp), %xmm0
  movups 16(%rsp), %xmm1
  add $40, %rsp
  pop %rdx
  pop %rax
  ret
  .size __x86_return_thunk, .-__x86_return_thunk

  # Instead of a call through a register: the target is on the stack, all arguments are alive.
twin_jump_checked:
  push %rax
  push %rdi
  push %rsi
  push %rdx
  push %rcx
  push %r8
  push %r9
  push %r10
  push %r11
  sub $128, %rsp
  movups %xmm0, (%rsp)
  movups %xmm1, 16(%rsp)
  movups %xmm2, 32(%rsp)
  movups %xmm3, 48(%rsp)
  movups %xmm4, 64(%rsp)
  movups %xmm5, 80(%rsp)
  movups %xmm6, 96(%rsp)
  movups %xmm7, 112(%rsp)
  mov 200(%rsp), %rdi
  push %rbx
  mov %rsp, %rbx
  and $-16, %rsp
  call twin_check_target@PLT
  mov %rbx, %rsp
  pop %rbx
  movups (%rsp), %xmm0
  movups 16(%rsp), %xmm1
  movups 32(%rsp), %xmm2
  movups 48(%rsp), %xmm3
  movups 64(%rsp), %xmm4
  movups 80(%rsp), %xmm5
  movups 96(%rsp), %xmm6
  movups 112(%rsp), %xmm7
  add $128, %rsp
  pop %r11
  pop %r10
  pop %r9
  pop %r8
  pop %rcx
  pop %rdx
  pop %rsi
  pop %rdi
  pop %rax
  ret

  .macro TWIN_THUNK reg
  .globl __x86_indirect_thunk_\reg
  .type __x86_indirect_thunk_\reg, @function
__x86_indirect_thunk_\reg:
  push %\reg
  jmp twin_jump_checked
  .endm
  .irp reg, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
  TWIN_THUNK \reg
  .endr
)");
#else
// Without thunks returns are not checked; data accesses are.
extern "C" const char twin_enter_back[1] = {};
extern "C" void twin_enter(void (*entry)(void **), void **args) { entry(args); }
#endif
