"""Builds the runtime library and small kernels, and launches kernels through ctypes."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import npusmith
from npusmith.target.chips import DEFAULT_CHIP, find_chip
from npusmith.twin.finding import Finding
from npusmith.twin.toolchain import find_toolchain

ROOT = Path(npusmith.__file__).parent / "twin"
INCLUDE = ROOT / "include"
RUNTIME = ROOT / "runtime"
SHIM = Path(__file__).parent / "shim.cpp"
HEADER = INCLUDE / "kernel_operator.h"
KERNEL_FLAGS = ("-O1",)
COMMON = (
    "-std=c++17",
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-Wno-unused-variable",
)


def _digest(parts: Sequence[bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()[:16]


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
    chain: Path  # the toolchain's folder

    @property
    def library(self) -> Path:
        return self.folder / "libshim.so"

    @property
    def flags(self) -> tuple[str, ...]:
        return (*COMMON, f"-I{self.folder}", f"-I{self.chain}", f"-I{INCLUDE}")


def build_runtime() -> Runtime:
    """The toolchain's libtwin with the test shim on it, cached by what went into both."""
    chain = find_toolchain(find_chip(DEFAULT_CHIP))
    flags = " ".join((*COMMON, *KERNEL_FLAGS))
    key = _digest([str(chain.folder).encode(), flags.encode(), SHIM.read_bytes()])
    runtime = Runtime(_cache() / key, key, chain.folder)
    if runtime.library.exists():
        return runtime
    runtime.folder.mkdir(parents=True, exist_ok=True)
    # Kernels find this one first, and with it what was compiled of it.
    header = runtime.folder / HEADER.name
    header.write_text(f'#pragma once\n#include "{HEADER}"\n')
    _make(runtime, f"{HEADER.name}.gch", [*KERNEL_FLAGS, "-x", "c++-header", str(header)])
    link = [f"-I{RUNTIME}", f"-L{chain.folder}", "-ltwin", f"-Wl,-rpath,{chain.folder}"]
    _make(runtime, runtime.library.name, ["-O1", "-shared", str(SHIM), *link])
    return runtime


def _make(runtime: Runtime, name: str, words: Sequence[str]) -> None:
    """Compile into a file of the folder that no other process sees before it is whole."""
    fresh = runtime.folder / f"{os.getpid()}.{name}"
    compile_cpp(["g++", *runtime.flags, *words, "-o", str(fresh)])
    fresh.replace(runtime.folder / name)


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
        self._twin.shim_prints.restype = ctypes.c_char_p
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

    def printed(self) -> str:
        """What the kernels have printed since the last call, each piece behind its core."""
        return bytes(self._twin.shim_prints()).decode()


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
