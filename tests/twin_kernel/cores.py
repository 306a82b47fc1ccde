"""Kernels compiled for both kinds of core, and launched as any kernel type."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from native import KERNEL_FLAGS, Outcome, Runtime, Tensor, _digest, compile_cpp

from npusmith.twin.finding import Finding
from npusmith.twin.kind import Kind

_FLAGS = {"vector": (), "cube": ("-DTWIN_CUBE",)}


class Cores:
    """Two shared objects of the same entries `void name(void **args)`."""

    def __init__(self, runtime: Runtime, paths: dict[str, Path]) -> None:
        self._twin = ctypes.CDLL(str(runtime.library), mode=ctypes.RTLD_GLOBAL)
        self._twin.shim_findings.restype = ctypes.c_char_p
        self._libraries = {name: ctypes.CDLL(str(path)) for name, path in paths.items()}

    def launch(
        self, entry: str, tensors: Sequence[Tensor], kind: Kind, *, blocks: int = 1, key: int = 0
    ) -> Outcome:
        count = len(tensors)
        pointers = (ctypes.c_void_p * max(count, 1))(*[item.data.ctypes.data for item in tensors])
        sizes = (ctypes.c_uint64 * max(count, 1))(*[item.data.nbytes for item in tensors])
        names = (ctypes.c_char_p * max(count, 1))(*[item.name.encode() for item in tensors])
        writable = (ctypes.c_int * max(count, 1))(*[int(item.writable) for item in tensors])
        entries = [
            ctypes.cast(getattr(self._libraries[name], entry), ctypes.c_void_p)
            for name in ("vector", "cube")
        ]
        finished = self._twin.shim_launch_cores(
            *entries, int(kind), pointers, sizes, names, writable, count, blocks,
            ctypes.c_uint64(key),
        )  # fmt: skip
        records = json.loads(self._twin.shim_findings().decode())
        return Outcome(bool(finished), tuple(Finding(**record) for record in records))


def build_cores(runtime: Runtime, text: str, name: str) -> Cores:
    """Compile a kernel source twice; cached by its text and the runtime's key."""
    folder = runtime.folder / _digest([text.encode(), name.encode(), b"cores"])
    folder.mkdir(exist_ok=True)
    source = folder / f"{name}.cpp"
    paths = {kind: folder / f"{kind}.so" for kind in _FLAGS}
    if not all(path.exists() for path in paths.values()):
        source.write_text(text)

        def compile_one(kind: str) -> None:
            fresh = folder / f"{kind}.{os.getpid()}.so"
            flags = (*runtime.flags, *KERNEL_FLAGS, *_FLAGS[kind], "-fvisibility=hidden")
            compile_cpp(["g++", *flags, "-shared", "-o", str(fresh), str(source)])
            fresh.replace(paths[kind])

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(compile_one, _FLAGS))
    return Cores(runtime, paths)
