"""Kernels and host code that try to look right, or fast, without doing the work on the chip.

Each attempt is the Add project with a few lines more. None may end as a completed run without an
error: either it does not compile, or the run says what it did.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from npusmith.errors import Level, TwinError
from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.twin import Run, build, read_project, run
from npusmith.twin.launch import LaunchOptions

F32 = DType.FLOAT32
RUNTIME = Path(__file__).parents[2] / "src" / "npusmith" / "twin" / "runtime"
Edit = Callable[..., Path]
KERNEL, HOST = "op_kernel/add_custom.cpp", "op_host/add_custom.cpp"
TOP = "class KernelAdd {"
PROCESS = "  __aicore__ inline void Process() {\n"
SIZE = 1 << 16

RAW_COPY = """
    auto from = (const volatile float *)xGm.GetPhyAddr();
    auto to = (volatile float *)zGm.GetPhyAddr();
    for (uint32_t i = 0; i < length; ++i) to[i] = from[i] + from[i];
    return;
"""
UB_LOOP = """
    TBuf<QuePosition::VECCALC> room;
    pipe.InitBuffer(room, 8192);
    auto ub = (volatile float *)room.Get<float>().GetPhyAddr();
    for (int i = 0; i < 2048; ++i) ub[i] = ub[i] * 2;
"""

# what stands at the top of the kernel's file, what at the start of Process(), the code
ATTEMPTS: dict[str, tuple[str, str, str]] = {
    "a loop over global memory by pointers": ("", RAW_COPY, "raw-pointer"),
    "rows of global memory as structs": (
        "struct Row { float v[1024]; };",
        "for (int i = 0; i < 2; ++i) ((Row *)zGm.GetPhyAddr())[i] = ((Row *)xGm.GetPhyAddr())[i];",
        "raw-pointer",
    ),
    "memcpy between tensors": (
        "#include <cstring>", "memcpy(zGm.GetPhyAddr(), xGm.GetPhyAddr(), 8192);", "raw-pointer",
    ),
    "__builtin_memcpy between tensors": (
        "", "__builtin_memcpy(zGm.GetPhyAddr(), xGm.GetPhyAddr(), 4 * length);", "raw-pointer",
    ),
    "arithmetic on UB in plain C++": ("", UB_LOOP, "raw-pointer"),
    "memory at a number": (
        "", "volatile long at = 0x500000000000; *(volatile long *)at = 1;", "wild-pointer",
    ),
    "memory of the runtime": (
        "",
        "volatile long *p = (long *)xGm.GetPhyAddr() - (1l << 30); length = *p;",
        "wild-pointer",
    ),
    "the return address": (
        "struct Frame { volatile long a[1]; };\n"
        "static void __attribute__((noinline)) Smash(long to) { Frame f; volatile long *p = f.a;"
        " for (int i = 0; i < 8; ++i) p[i] = to; }",
        "Smash(0x400000);",
        "wild-pointer",
    ),
    "a call of a number": (
        "", "volatile long at = 0x400000; ((void (*)(int))at)(0);", "wild-pointer",
    ),
    "a heap of static memory": (
        "static float heap[1 << 16];",
        "volatile float *p = heap; for (int i = 0; i < 100; ++i) p[i] = i;",
        "device-cpp",
    ),
    "a table in global memory that nobody passed": (
        "static volatile __gm__ float table[4096];", "table[length & 3] = 2;", "device-cpp",
    ),
    "a counter that cores share": ("static int seen;", "((volatile int &)seen)++;", "device-cpp"),
    "constants that are written": (
        "static const float table[4] = {1, 2, 3, 4};",
        "const_cast<volatile float *>(table)[length & 3] = 5;",
        "kernel-crash",
    ),
    "an index that runs away from constants": (
        "static const float table[4] = {1, 2, 3, 4};",
        "volatile long far = 1l << 40; const_cast<volatile float *>(table)[far] = 5;",
        "wild-pointer",
    ),
    "exponentials of the C library": (
        "#include <cmath>",
        "for (int i = 0; i < 8; ++i) zGm.SetValue(i, std::exp(xGm.GetValue(i)));",
        "device-cpp",
    ),
    "the same as a builtin": (
        "", "for (int i = 0; i < 8; ++i) zGm.SetValue(i, __builtin_expf(xGm.GetValue(i)));",
        "device-cpp",
    ),
    "_exit": ('extern "C" void _exit(int);', "_exit(0);", "device-cpp"),
    "exit by another name": (
        'extern "C" void quick_exit(int);', "if (length) quick_exit(0);", "device-cpp",
    ),
    "a system call": (
        'extern "C" long syscall(long, ...);', "syscall(231, 0);", "device-cpp",
    ),
    "a report of its own": (
        'extern "C" { int open(const char *, int, ...); long write(int, const void *, long); }',
        'int f = open("report", 577, 0600); write(f, "{}", 2);',
        "device-cpp",
    ),
    "what is loaded, by dlsym": (
        'extern "C" void *dlsym(void *, const char *);',
        'length += dlsym(0, "x") != 0;',
        "device-cpp",
    ),
    "pages of its own": (
        'extern "C" void *mmap(void *, unsigned long, int, int, int, long);',
        "length += mmap(0, 4096, 3, 34, -1, 0) == 0;",
        "device-cpp",
    ),
    "the environment": (
        'extern "C" { extern char **environ; }', "length += !environ;", "device-cpp",
    ),
    "the memory map": (
        "#include <fstream>",
        'std::ifstream maps("/proc/self/maps"); char c; maps.get(c); length += c == 0;',
        "device-cpp",
    ),
    "a thread": (
        "#include <pthread.h>",
        "unsigned long t; pthread_create(&t, 0, 0, 0);",
        "device-cpp",
    ),
    "a handler of signals": (
        'extern "C" void (*signal(int, void (*)(int)))(int);', "signal(11, (void (*)(int))1);",
        "device-cpp",
    ),
    "atexit": ('extern "C" int atexit(void (*)());', "atexit([] {});", "device-cpp"),
    "a long jump": (
        'extern "C" int _setjmp(void *); extern "C" void longjmp(void *, int);',
        "long room[64]; if (_setjmp(room) == 0) longjmp(room, 1);",
        "cheat-platform",
    ),
    "new through a template": (
        "template <class T> T *Make(int n) { return new T[n]; }",
        "volatile float *p = Make<float>(64); p[0] = 1;",
        "device-cpp",
    ),
    "malloc through a macro": (
        "#define GLUE(a, b) a##b\nextern \"C\" void *malloc(unsigned long);",
        "volatile char *p = (char *)GLUE(mal, loc)(64); p[0] = 1;",
        "device-cpp",
    ),
    "malloc as a builtin": (
        "", "volatile char *p = (char *)__builtin_malloc(64); p[0] = 1;", "cheat-platform",
    ),
    "a vector": (
        "#include <vector>", "std::vector<float> v(length); v[0] = 1; length = v.size();",
        "device-cpp",
    ),
    "assembly": ("", 'asm volatile("nop");', "cheat-platform"),
    "assembly that is pasted together": (
        "#define GLUE(a, b) a##b", 'GLUE(__as, m__) volatile("nop");', "cheat-platform",
    ),
    "assembly at the top": ('__asm__(".globl x");', "", "cheat-platform"),
    "a constructor by attribute": (
        "__attribute__((constructor)) static void Early() {}", "", "cheat-platform",
    ),
    "a constructor by attribute in brackets": (
        "[[gnu::constructor]] static void Early() {}", "", "cheat-platform",
    ),
    "a global object with a constructor": (
        "struct Early { Early() { value = GetBlockNum(); } volatile long value; };\n"
        "static Early early;",
        "length += early.value == -1;",
        "device-cpp",
    ),
    "a function without checks": (
        "__attribute__((no_sanitize_address)) static float Peek(float *p) { return *p; }",
        "length += Peek((float *)xGm.GetPhyAddr()) > 1e30f;",
        "cheat-platform",
    ),
    "a function without checks, by a macro": (
        "#define HIDE(x) __attribute__((x))\n"
        "HIDE(no_sanitize(\"kernel-address\")) static float Peek(float *p) { return *p; }",
        "",
        "cheat-platform",
    ),
    "checks of its own": (
        'extern "C" void __asan_load4_noabort(unsigned long) {}', "", "cheat-platform",
    ),
    "checks of its own, pasted together": (
        "#define GLUE(a, b) a##b\nextern \"C\" void GLUE(__as, an_load4_noabort)(unsigned long) {}",
        "",
        "device-cpp",
    ),
    "a function in another section": (
        '__attribute__((section(".init_array"))) static void (*const early)() = nullptr;', "",
        "cheat-platform",
    ),
    "an alias": (
        'extern "C" void F() {} extern "C" void G() __attribute__((alias("F")));', "",
        "cheat-platform",
    ),
    "options of the compiler": ('#pragma GCC optimize("no-sanitize")', "", "cheat-platform"),
    "options by operator": ('_Pragma("GCC push_options")', "", "cheat-platform"),
    "code for this machine": (
        "", "\n#ifdef __x86_64__\n    length = length * 1;\n#endif\n", "cheat-platform",
    ),
    "code for this system": (
        "", "\n#if defined(__linux__)\n    length = length * 1;\n#endif\n", "cheat-platform",
    ),
    "code for this compiler": (
        "", "\n#if __GNUC__ > 4\n    length = length * 1;\n#endif\n", "cheat-platform",
    ),
    "code for systems that have a header": (
        "#if __has_include(<unistd.h>)\n#define HERE 1\n#endif", "", "cheat-platform",
    ),
    "code for the twin": ("#ifdef TWIN_VECTOR_CORES\n#define HERE 1\n#endif", "", "cheat-platform"),
    "the runtime's list of findings": (
        "namespace twin { struct R { void *p[3]; }; R TakeFindings(); }", "twin::TakeFindings();",
        "cheat-platform",
    ),
    "the runtime's list of findings, pasted together": (
        "#define GLUE(a, b) a##b\n"
        "namespace GLUE(tw, in) { struct R { void *p[3]; }; R TakeFindings(); }",
        "GLUE(tw, in)::TakeFindings();",
        "device-cpp",
    ),
    "a jump to an address": (
        "", "void *at = (void *)0x400000; goto *at;", "cheat-platform",
    ),
    "its frame": ("", "length += __builtin_frame_address(0) == nullptr;", "cheat-platform"),
    "vector units of this machine": (
        "typedef float V4 __attribute__((vector_size(16)));", "V4 a = {1, 2}; length += a[0] > 5;",
        "cheat-platform",
    ),
    "lines of another file": ('#line 1 "/usr/include/math.h"', "", "cheat-platform"),
    "lines of another file, in two parts": (
        '#li\\\nne 1 "/usr/include/math.h"', "", "cheat-platform",
    ),
}  # fmt: skip


def attempt(
    edited: Edit, chip: Chip, changes: dict[str, list[tuple[str, str]]]
) -> tuple[list[str], Run | None]:
    """The codes of level error of what became of it, and the run."""
    x = np.random.default_rng(3).standard_normal(SIZE).astype(np.float32)
    try:
        built = build(read_project(edited("add", changes)), chip, (F32, F32, F32))
    except TwinError as error:
        return [error.code], None
    result = run(built, [x, x], [(x.shape, F32)], options=LaunchOptions(seconds=20))
    return [finding.code for finding in result.findings if finding.level is Level.ERROR], result


@pytest.mark.parametrize("name", ATTEMPTS)
def test_a_kernel_does_not_get_around_the_chip(edited: Edit, chip: Chip, name: str) -> None:
    top, line, code = ATTEMPTS[name]
    changes = {KERNEL: [(TOP, f"{top}\n\n{TOP}"), (PROCESS, f"{PROCESS}    {line}\n")]}
    codes, _ = attempt(edited, chip, changes)
    assert code in codes


# near twins of attempts: what stands at the top, and at the start of Process()
FAIR: dict[str, tuple[str, str]] = {
    "counters in global memory": (
        "static volatile __gm__ unsigned turns[16] = {0};",
        "turns[0] = turns[0] + 1;",
    ),
    "a header with an object of its own": ("#include <iostream>", ""),
    "a few scalars of global memory by pointer": (
        "",
        "auto from = (const volatile float *)xGm.GetPhyAddr(); length += from[3] > 1e30f;",
    ),
    "a table of constants that is read": (
        "static const float table[4] = {1, 2, 3, 4};",
        "length += table[length & 3] > 5;",
    ),
    "an array of the function's own": (
        "",
        "volatile long a[4] = {}; a[length & 3] = 1; length += a[0] > 1;",
    ),
}


@pytest.mark.parametrize("name", FAIR)
def test_a_near_twin_passes(edited: Edit, chip: Chip, name: str) -> None:
    top, line = FAIR[name]
    changes = {KERNEL: [(TOP, f"{top}\n\n{TOP}"), (PROCESS, f"{PROCESS}    {line}\n")]}
    codes, done = attempt(edited, chip, changes)
    assert codes == [] and done is not None and done.completed


def test_every_code_of_the_fence_is_attempted() -> None:
    text = (RUNTIME / "fence" / "fence.cpp").read_text()
    reported = set(re.findall(r'Report\(\s*[^"]*?"([a-z-]+)"', text))
    # a kernel with a variable of its own is refused when it is built, before it could write there
    assert reported == {code for _, _, code in ATTEMPTS.values()} & reported | {"global-write"}
