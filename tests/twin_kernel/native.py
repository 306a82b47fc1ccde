"""Builds the runtime library and small kernels, and launches kernels through ctypes."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import npusmith
from npusmith.target.absent import absent_header
from npusmith.target.chips import DEFAULT_CHIP, find_chip
from npusmith.target.header import chip_header
from npusmith.twin.finding import Finding

ROOT = Path(npusmith.__file__).parent / "twin"
INCLUDE = ROOT / "include"
RUNTIME = ROOT / "runtime"
SHIM = Path(__file__).parent / "shim.cpp"
RUNTIME_FLAGS = ("-O3", "-fno-math-errno", "-ffp-contract=off", "-fno-trapping-math")
KERNEL_FLAGS = ("-O1",)
COMMON = (
    "-std=c++17",
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-Wno-unused-variable",
)
HEADERS = ("kernel_operator.h",)


def _digest(parts: Sequence[bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()[:16]


def _sources() -> list[Path]:
    return [path for path in sorted(RUNTIME.glob("*.cpp")) if path.name != "runner.cpp"]


def _header_bytes() -> list[bytes]:
    headers = [*sorted(INCLUDE.rglob("*.h")), *sorted(RUNTIME.glob("*.h"))]
    return [str(path).encode() + path.read_bytes() for path in headers]


def _cache() -> Path:
    return Path(tempfile.gettempdir()) / f"npusmith-twin-tests-{os.getuid()}"


def compile_cpp(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Runtime:
    """The built library: where it lies and what kernels are compiled with."""

    folder: Path
    key: str

    @property
    def library(self) -> Path:
        return self.folder / "libtwin.so"

    @property
    def flags(self) -> tuple[str, ...]:
        return (*COMMON, f"-I{self.folder}", f"-I{INCLUDE}")


def build_runtime() -> Runtime:
    """libtwin plus the test shim, cached by the contents of everything that went into it."""
    chip = chip_header(find_chip(DEFAULT_CHIP))
    sources = [*_sources(), SHIM]
    flags = " ".join((*COMMON, *RUNTIME_FLAGS))
    parts = [
        chip.encode(),
        absent_header().encode(),
        flags.encode(),
        *_header_bytes(),
        *(p.read_bytes() for p in sources),
    ]
    runtime = Runtime(_cache() / _digest(parts), _digest(parts))
    if runtime.library.exists():
        return runtime
    (runtime.folder / "twin").mkdir(parents=True, exist_ok=True)
    (runtime.folder / "twin" / "chip.h").write_text(chip)
    (runtime.folder / "twin" / "absent.h").write_text(absent_header())

    def compile_one(source: Path) -> str:
        target = str(runtime.folder / f"{source.stem}.{os.getpid()}.o")
        compile_cpp(["g++", *runtime.flags, *RUNTIME_FLAGS, "-c", str(source), "-o", target])
        return target

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compile_one, sources))
    fresh = runtime.folder / f"fresh.{os.getpid()}.so"
    compile_cpp(["g++", "-shared", "-o", str(fresh), *objects])
    fresh.replace(runtime.library)
    for item in objects:
        Path(item).unlink()
    return runtime


@dataclass(frozen=True)
class Outcome:
    """What one launch left behind."""

    finished: bool
    findings: tuple[Finding, ...]

    @property
    def codes(self) -> list[str]:
        return [item.code for item in self.findings]


@dataclass(frozen=True)
class Tensor:
    """An argument of a kernel; inputs are not writable."""

    data: np.ndarray
    name: str = "tensor"
    writable: bool = True
    blank: bool = False  # filled with poison here: to be written before it is read
    scratch: bool = False  # a workspace: nobody looks at it afterwards
    pad: int = 0  # of its bytes, those at the end that are padding of the allocation

    def __post_init__(self) -> None:
        if self.blank:
            self.data.view(np.uint16)[...] = 0x7FFF

    @property
    def flags(self) -> int:
        return int(self.writable) | int(self.blank) << 1 | int(self.scratch) << 2 | self.pad << 8


class Kernels:
    """A shared object full of entries `void name(void **args)`."""

    def __init__(self, runtime: Runtime, path: Path) -> None:
        self._twin = ctypes.CDLL(str(runtime.library), mode=ctypes.RTLD_GLOBAL)
        self._twin.shim_findings.restype = ctypes.c_char_p
        self._library = ctypes.CDLL(str(path))

    def launch(
        self,
        entry: str,
        tensors: Sequence[Tensor],
        *,
        blocks: int = 1,
        key: int = 0,
        auto_sync: bool = True,
        notes: bool = False,
        shuffle: int = 0,
    ) -> Outcome:
        count = len(tensors)
        pointers = (ctypes.c_void_p * max(count, 1))(*[item.data.ctypes.data for item in tensors])
        sizes = (ctypes.c_uint64 * max(count, 1))(*[item.data.nbytes for item in tensors])
        names = (ctypes.c_char_p * max(count, 1))(*[item.name.encode() for item in tensors])
        writable = (ctypes.c_int * max(count, 1))(*[item.flags for item in tensors])
        self._twin.shim_options(int(auto_sync), int(notes), ctypes.c_uint32(shuffle))
        function = ctypes.cast(getattr(self._library, entry), ctypes.c_void_p)
        finished = self._twin.shim_launch(
            function, pointers, sizes, names, writable, count, blocks, ctypes.c_uint64(key)
        )
        records = json.loads(self._twin.shim_findings().decode())
        return Outcome(bool(finished), tuple(Finding(**record) for record in records))


def build_kernels(runtime: Runtime, text: str, name: str) -> Kernels:
    """Compile a kernel source; the result is cached by its text and the runtime's key."""
    folder = runtime.folder / _digest([text.encode(), name.encode()])
    folder.mkdir(exist_ok=True)
    source, target = folder / f"{name}.cpp", folder / f"{name}.so"
    if not target.exists():
        source.write_text(text)
        fresh = folder / f"fresh.{os.getpid()}.so"
        compile_cpp(
            ["g++", *runtime.flags, *KERNEL_FLAGS, "-shared", "-o", str(fresh), str(source)]
        )
        fresh.replace(target)
    return Kernels(runtime, target)


def compile_errors(runtime: Runtime, body: str) -> str:
    """What the compiler says about a kernel; empty when it compiles."""
    text = f'#include "kernel_operator.h"\nusing namespace AscendC;\n{body}\n'
    command = ["g++", *runtime.flags, *KERNEL_FLAGS, "-x", "c++", "-c", "-o", os.devnull, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr
