"""The compiler, and what is compiled once per machine, compiler, chip and header text.

`find_toolchain(chip)` gives a `Toolchain`: libtwin.so (the runtime), the runner, and a precompiled
header each for kernels and for host code, all in the cache.
"""

from __future__ import annotations

import functools
import logging
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import TwinError
from npusmith.target.absent import absent_header
from npusmith.target.chips import Chip
from npusmith.target.elementwise import elementwise_header
from npusmith.target.header import chip_header
from npusmith.twin import cache
from npusmith.twin.includes import used_text

_KEPT_CHAINS = 8  # some 80 MB each: chips, compilers, versions of npusmith
_KEPT_OBJECTS = 600  # of the runtime; a change of one source compiles that one

_LOG = logging.getLogger(__name__)  # a warning shows on stderr unless a program says otherwise

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
LIBRARY = INCLUDE / "library"  # what operator libraries share beside the documented headers
RUNTIME = HERE / "runtime"
TIMER = HERE / "timer"

# Values must not depend on what the compiler fuses; aliasing casts are everyday work in kernels.
_COMMON = ("-std=c++17", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-w")
# The loops over elements are in libtwin. Large frames touch each page: an overflow is seen as one.
_KERNEL = ("-O1", "-fvisibility=hidden", "-fstack-clash-protection")
# The fence around a kernel (runtime/fence): every access of its own code asks the runtime first,
# every return and call through a pointer goes by a thunk, every block of code says that it ran; and
# a line table for those who read which ones did.
_FENCE = (
    "-fsanitize=kernel-address", "--param=asan-instrumentation-with-call-threshold=0",
    "--param=asan-stack=0", "-fsanitize-coverage=trace-pc", "-g1",
)  # fmt: skip
_THUNKS = (
    "-mindirect-branch=thunk-extern",
    "-mfunction-return=thunk-extern",
    "-fcf-protection=none",
)
_WRAPPED = ("memcpy", "memmove", "memset", "memcmp", "snprintf")  # the fence checks their ranges
_EXPORTS = "exports.map"  # what a kernel's library shows: its entry
_CUBE = (*_KERNEL, "-DTWIN_CUBE")  # the same kernel as a cube core runs it
_DEBUG = ("-O0", "-g")  # other flags than those of the precompiled header: g++ reads it anew
_HOST = ("-O0", "-fvisibility=hidden", "-fsanitize-coverage=trace-pc", "-g1")  # runs once a call
_RUNTIME = ("-O3", "-march=native", "-fno-math-errno", "-pthread")
_SUPPORT = ("-O1", "-pthread")  # the host side of the runtime runs once for each call
_TIMER = ("-O2",)  # no -march: the same cycles on every machine

# <iostream> makes an object when the library is loaded, so kernels get no more than the names that
# host functions in their headers use.
_KERNEL_HEADER = """#include <math.h>
#include <istream>
#include <ostream>
#include "kernel_operator.h"
#include "twin/entry.h"
namespace std {
extern istream cin;
extern ostream cout, cerr, clog;
}
"""
_EXPORTED = "{ global: twin_entry; twin_params; local: *; };\n"
_HOST_HEADER = """#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"
#include "tiling/tiling_api.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>
"""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler: `clang` tells how it names precompiled headers."""

    path: str
    version: str
    clang: bool

    @property
    def home(self) -> Path:
        """The folder of its programs and headers; never one that holds a user's files as well."""
        real = Path(self.path).resolve()
        prefix = real.parent.parent
        return real.parent if Path.home().is_relative_to(prefix) else prefix


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Everything that a project's compile and run needs; `folder` is read-only from now on."""

    compiler: Compiler
    folder: Path
    chip: Chip
    debug: bool = False  # kernels are compiled for a debugger

    @property
    def runner(self) -> Path:
        return self.folder / "runner"

    @property
    def timer(self) -> Path:
        """The program that says how long a recorded launch would take (timing/simulate.py)."""
        return self.folder / "timer"

    @property
    def places(self) -> tuple[Path, ...]:
        """What a boxed compile reads besides its own sources."""
        return INCLUDE, self.folder, self.compiler.home

    def kernel_command(self) -> list[str]:
        """The compile of a kernel translation unit, without its input and output."""
        return self._command("kernel.h", (*_KERNEL, *fence(self.compiler), *self._last()))

    def cube_command(self) -> list[str]:
        """The same unit as cube cores run it."""
        return self._command("cube.h", (*_CUBE, *fence(self.compiler), *self._last()))

    def _last(self) -> tuple[str, ...]:
        return _DEBUG if self.debug else ()

    def host_command(self) -> list[str]:
        """The same for host code."""
        return self._command("host.h", _HOST)

    def link_flags(self) -> list[str]:
        return ["-shared", f"-L{self.folder}", "-ltwin", "-Wl,-z,defs", "-Wl,--hash-style=gnu"]

    def kernel_link_flags(self, *, sealed: bool) -> list[str]:
        """For the library of a kernel; `sealed`: nothing of it but the entry can be seen."""
        wraps = [f"-Wl,--wrap={name}" for name in _WRAPPED] if fence(self.compiler) else []
        exports = [f"-Wl,--version-script={self.folder / _EXPORTS}"] if sealed else []
        return [*self.link_flags(), *wraps, *exports, "-Wl,-z,now", "-Wl,-z,relro"]

    def _command(self, header: str, flags: Sequence[str]) -> list[str]:
        return [*_base_command(self.compiler, self.folder, flags), *_use_header(self, header)]


def fence(compiler: Compiler) -> tuple[str, ...]:
    """The flags that put the fence around a kernel; only g++ has them all."""
    if compiler.clang:
        return ()
    return (*_FENCE, *(_THUNKS if platform.machine() == "x86_64" else ()))


def find_compiler() -> Compiler:
    """NPUSMITH_CXX, else g++, else clang++; TwinError compiler-missing."""
    wanted = os.environ.get("NPUSMITH_CXX")
    for name in (wanted,) if wanted else ("g++", "clang++"):
        found = shutil.which(name)
        if found:
            return _describe(found)
    raise TwinError("compiler-missing", "no C++ compiler was found", seen=wanted or "g++, clang++")


def named_compiler(name: str) -> Compiler | None:
    """The compiler of that name, if this machine has it."""
    found = shutil.which(name)
    return _describe(found) if found else None


@functools.cache
def _describe(path: str) -> Compiler:
    text = subprocess.run(
        [path, "--version"], capture_output=True, text=True, check=False, timeout=60
    ).stdout
    return Compiler(path, text.split("\n")[0], "clang" in text.lower())


def find_toolchain(chip: Chip, *, debug: bool = False) -> Toolchain:
    """The cached toolchain for a chip; the first call on a machine compiles it (some minutes).

    `debug`: its kernels are compiled so that a debugger sees every line and variable.
    """
    compiler = find_compiler()
    key = cache.digest(
        [compiler.path, compiler.version, *_machine(), *_made(chip).values(), *_texts()]
    )
    chain = Toolchain(compiler, cache.cache_root() / "twin" / key, chip, debug)
    if cache.fetch(chain.folder, lambda folder: _make(chain, folder)):
        cache.keep_newest(chain.folder.parent, _KEPT_CHAINS, chain.folder)
        cache.keep_newest(cache.cache_root() / "objects", _KEPT_OBJECTS, chain.folder)
    return chain


def _made(chip: Chip) -> dict[str, str]:
    """Headers that are generated, by their names under twin/."""
    return {
        "chip.h": chip_header(chip),
        "absent.h": absent_header(),
        "elementwise.h": elementwise_header(),
    }


def _machine() -> tuple[str, ...]:
    """What -march=native depends on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    marks = sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))})
    return (platform.machine(), *marks)


def _texts() -> list[bytes]:
    """Headers, runtime and flags, in a stable order."""
    files = sorted(
        path
        for folder in (INCLUDE, RUNTIME, TIMER)
        for path in folder.rglob("*")
        if path.suffix in (".h", ".cpp")
    )
    flags = " ".join(
        (
            *_COMMON, *_KERNEL, *_FENCE, *_THUNKS, *_CUBE, *_HOST, *_RUNTIME, *_SUPPORT, *_TIMER,
            _KERNEL_HEADER, _HOST_HEADER,
        )
    )  # fmt: skip
    return [flags.encode(), str(INCLUDE).encode(), *(path.read_bytes() for path in files)]


def _base_command(compiler: Compiler, folder: Path, flags: Sequence[str]) -> list[str]:
    return [compiler.path, *_COMMON, *flags, f"-I{folder}", f"-I{INCLUDE}"]


def _use_header(chain: Toolchain, header: str) -> list[str]:
    if chain.compiler.clang:
        return ["-include-pch", str(chain.folder / f"{header}.pch")]
    return ["-include", str(chain.folder / header)]


def _make(chain: Toolchain, folder: Path) -> None:
    _LOG.warning(
        "compiling the twin for %s: once for a machine, one to three minutes", chain.chip.name
    )
    (folder / "twin").mkdir()
    for name, text in _made(chain.chip).items():
        (folder / "twin" / name).write_text(text)
    (folder / "kernel.h").write_text(_KERNEL_HEADER)
    (folder / "cube.h").write_text(_KERNEL_HEADER)
    (folder / "host.h").write_text(_HOST_HEADER)
    sources = sorted(
        (source for part in (RUNTIME, TIMER) for source in part.rglob("*.cpp")),
        key=lambda path: -path.stat().st_size,
    )
    (folder / _EXPORTS).write_text(_EXPORTED)
    fenced = fence(chain.compiler)
    headers = (("kernel.h", (*_KERNEL, *fenced)), ("cube.h", (*_CUBE, *fenced)), ("host.h", _HOST))
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        made = pool.map(lambda source: _object(chain, source), sources)
        precompiled = pool.map(lambda job: _run(_precompile(chain, *job)), headers)
        objects = dict(zip(sources, made, strict=True))
        list(precompiled)
    cxx = chain.compiler.path
    timer = [objects.pop(source) for source in sources if source.parent == TIMER]
    _run([cxx, "-o", str(folder / "timer"), *map(str, timer)])
    runner = objects.pop(RUNTIME / "runner.cpp")
    library = ["-shared", "-pthread", "-o", str(folder / "libtwin.so"), *map(str, objects.values())]
    _run([cxx, *library])
    # The runner finds its library beside itself, wherever the cache lies.
    link = ["-o", str(folder / "runner"), str(runner), f"-L{folder}", "-ltwin", "-ldl"]
    _run([cxx, *link, "-Wl,-rpath,$ORIGIN"])


def _object(chain: Toolchain, source: Path) -> Path:
    """The compiled source; kept beside the toolchains, so that only what changed is compiled."""
    text = used_text(source, (INCLUDE, RUNTIME, TIMER), _made(chain.chip))
    flags = " ".join((*_COMMON, *_flags(source)))
    compiler = (chain.compiler.path, chain.compiler.version)
    key = cache.digest([*compiler, *_machine(), flags, str(source.relative_to(HERE)), text])
    out = cache.cache_root() / "objects" / key / "object.o"
    cache.fetch(out.parent, lambda _: _run(_compile_one(chain, source, out)))
    return out


def _compile_one(chain: Toolchain, source: Path, out: Path) -> list[str]:
    flags = (*_flags(source), f"-I{RUNTIME}")
    return [*_base_command(chain.compiler, chain.folder, flags), "-c", str(source), "-o", str(out)]


def _flags(source: Path) -> tuple[str, ...]:
    support = source.name == "runner.cpp" or source.parent.name == "host"
    return _TIMER if source.parent == TIMER else _SUPPORT if support else _RUNTIME


def _precompile(chain: Toolchain, header: str, flags: Sequence[str]) -> list[str]:
    ending = "pch" if chain.compiler.clang else "gch"
    source = chain.folder / header
    command = [*_base_command(chain.compiler, chain.folder, flags), "-x", "c++-header"]
    return [*command, str(source), "-o", f"{source}.{ending}"]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TwinError(
            "toolchain-failed",
            "the twin's own runtime does not compile with this compiler",
            seen=f"{command[0]}: {done.stderr.strip()[:2000]}",
        )
