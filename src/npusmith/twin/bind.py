"""PyTorch bindings on a machine without an NPU: `build_binding(...)` compiles them unmodified.

A source with `EXEC_NPU_CMD(aclnnX, ...)`, or with the two phases of aclnnX, and PYBIND11_MODULE
becomes a CPU extension against our own headers (include/bind). What it registers for the dispatcher
under its module's name is registered for the CPU. Beside it lies `<module>.json`, which says where
the operators' projects are; `npusmith.device` reads it when the extension calls. PyTorch's headers
are precompiled once per machine, in the cache.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import TwinError
from npusmith.ir.opname import entry_name
from npusmith.target.chips import DEFAULT_CHIP, Chip, find_chip
from npusmith.twin import cache, scan
from npusmith.twin.aclnn import aclnn_header
from npusmith.twin.compile import Unit, compile_units
from npusmith.twin.opdef import OpText
from npusmith.twin.options import PLAIN, BuildOptions
from npusmith.twin.project import Project, beside, headers_beneath, read_text
from npusmith.twin.toolchain import INCLUDE, Compiler, find_compiler, named_compiler

BIND = INCLUDE / "bind"
_KEPT = 400  # bindings, some 2 MB each
_KEPT_HEADERS = 2
_HEADER = "binding.h"
_FLAGS = ("-std=c++17", "-fPIC", "-O0", "-w", "-fvisibility=hidden", "-fdiagnostics-color=never")

# Headers of the vendor's PyTorch that bindings include; here each stands for the same one.
_NPU_HEADERS = (
    "acl/acl.h",
    "acl/acl_base.h",
    "acl/acl_op.h",
    "acl/acl_rt.h",
    "aclnn/acl_meta.h",
    "aclnn/aclnn_base.h",
    "runtime/rt_ffts.h",
    "torch_npu/csrc/aten/NPUNativeFunctions.h",
    "torch_npu/csrc/core/npu/DeviceUtils.h",
    "torch_npu/csrc/core/npu/NPUFormat.h",
    "torch_npu/csrc/core/npu/NPUFunctions.h",
    "torch_npu/csrc/core/npu/NPUStream.h",
    "torch_npu/csrc/framework/OpCommand.h",
    "torch_npu/csrc/framework/interface/EnvVariables.h",
    "torch_npu/csrc/framework/utils/CalcuOpUtil.h",
    "torch_npu/csrc/framework/utils/OpAdapter.h",
    "torch_npu/csrc/framework/utils/OpPreparation.h",
    "torch_npu/csrc/include/ops.h",
)
# PyTorch's own large headers; torch.hpp stands for them unless a binding needs more than that.
_TORCH_HEADERS = (
    "torch/all.h",
    "torch/csrc/autograd/custom_function.h",
    "torch/csrc/autograd/function.h",
    "torch/extension.h",
    "torch/python.h",
    "torch/script.h",
    "torch/torch.h",
    "torch/types.h",
)
_LIBRARIES = ("c10", "torch", "torch_cpu", "torch_python")
_PRECOMPILED = ("algorithm", "cmath", "iostream", "map", "torch.hpp", "pytorch_npu_helper.hpp")
_WHOLE = re.compile(r"\btorch\s*::\s*(?:autograd|nn|optim|jit|serialize|data|class_)\b")
# A binding that registers under its module's own name: two of one operator may then be loaded.
_OWN_SPACE = re.compile(r"\b(?!PYBIND11_MODULE\b)\w+\s*\(\s*TORCH_EXTENSION_NAME\s*,")
# A binding that fills what it passes as an output: those contents then count.
_FILLS = re.compile(
    r"\b(?:zeros|ones|full|zeros_like|ones_like|full_like|new_zeros|new_ones|new_full"
    r"|fill_|zero_|copy_|clone)\s*\("
)


@dataclass(frozen=True, slots=True)
class Binder:
    """A compiler, and the folder in the cache with its precompiled headers."""

    compiler: Compiler
    folder: Path
    includes: tuple[Path, ...]

    def link_flags(self) -> list[str]:
        """PyTorch's libraries by name: whoever imports the binding has loaded them before."""
        libraries = [f"-l{name}" for name in _LIBRARIES]
        return ["-shared", "-Wl,--hash-style=gnu", f"-L{self.library}", *libraries]

    @property
    def library(self) -> Path:
        return self.includes[0].parent / "lib"

    def command(self, module: str, whole: bool, registers: bool) -> list[str]:
        """The compile of a binding, without its inputs and output.

        `whole`: with PyTorch's own large headers. `registers`: what it registers for the dispatcher
        is registered.
        """
        stubs = [self.folder / "npu", *([] if whole else [self.folder / "torch"])]
        where = [f"-I{path}" for path in (BIND, *stubs, *self.includes)]
        command = [self.compiler.path, *_FLAGS, f"-DTORCH_EXTENSION_NAME={module}", *_abi()]
        if whole:
            return [*command, *where]
        rest = [] if registers else ["-include", str(BIND / "unregistered.hpp")]
        if self.compiler.clang:
            return [*command, *where, "-include-pch", str(self.folder / f"{_HEADER}.pch"), *rest]
        return [*command, *where, "-include", str(self.folder / _HEADER), *rest]


def build_binding(
    sources: Sequence[Path],
    ops: Mapping[str, Project],
    folder: Path,
    module_name: str,
    *,
    chip: Chip | None = None,
    options: BuildOptions = PLAIN,
) -> Path:
    """Compile binding sources into `folder/<module_name>.so`; `ops`: operator type -> its project.

    With `folder` on sys.path and torch imported, `import <module_name>` works; a call of
    `EXEC_NPU_CMD(aclnnX, ...)` then runs the project of operator X on the twin of `chip`, compiled
    with `options` as the binding is. Raises TwinError: build-option, compile-failed (a
    CompileError), compiler-missing, toolchain-failed.
    """
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    texts = {Path(source).resolve(): read_text(Path(source)) for source in sources}
    options.check()
    operators = [project.op for project in ops.values()]
    library = compile_binding(texts, module_name, operators, options)
    target = folder / f"{module_name}.so"
    _replace(library, target)
    row = chip or find_chip(DEFAULT_CHIP)
    note = {
        "chip": row.record(),
        "ops": {name: str(project.root) for name, project in ops.items()},
        "include": [str(item.resolve()) for item in options.include],
        "define": options.define,
        "fills": any(_FILLS.search(scan.blank(text)) for text in texts.values()),
    }
    target.with_suffix(".json").write_text(json.dumps(note, indent=1) + "\n")
    return target


def compile_binding(
    texts: Mapping[Path, str],
    module: str,
    ops: Sequence[OpText] = (),
    options: BuildOptions = PLAIN,
) -> Path:
    """The shared object of these sources in the cache; it must not be changed there.

    `ops`: operators for whose aclnn functions there are headers, as the operators' builds make.
    """
    binder = find_binder()
    whole, registers = (
        any(pattern.search(scan.blank(text)) for text in texts.values())
        for pattern in (_WHOLE, _OWN_SPACE)
    )
    parents = list(dict.fromkeys(path.parent for path in texts))
    folders = [item.resolve() for item in options.include]
    near = list(dict.fromkeys(item for path in texts for item in beside(path)))
    near += [item for folder in folders for item in headers_beneath(folder) if item not in near]
    everything = {item: read_text(item) for item in near} | dict(texts)
    named = {path: os.path.relpath(path, parents[0]) for path in (*everything, *parents)}
    # By names as seen from the first source: the same files elsewhere are the same binding.
    parts = [f"{named[path]}\0{text}" for path, text in everything.items()]
    headers = {f"aclnn_{entry_name(op.type)}.h": aclnn_header(op) for op in ops}
    parts += [f"{name}\0{text}" for name, text in headers.items()]
    parts += [*map(str, folders), *options.define]
    key = cache.digest([binder.folder.name, module, str(whole), str(registers), *parts])
    place = cache.cache_root() / "bindings" / key

    def make(folder: Path) -> None:
        files = []
        for number, (path, text) in enumerate(texts.items()):
            # Away from its folder, where a copy of the vendor's helper often lies: ours is taken.
            files.append(folder / f"source{number}.cpp")
            files[-1].write_text(f"#line 1 {json.dumps(str(path))}\n{text}")
        for name, text in headers.items():
            (folder / name).write_text(text)
        where = [f"-D{item}" for item in options.define]
        where += [f"-I{item}" for item in (folder, *parents, *folders)]
        where += [f"-ffile-prefix-map={parent}={named[parent]}" for parent in parents]
        out = ["-o", str(folder / "binding.so"), *binder.link_flags()]
        command = (*binder.command(module, whole, registers), *where, *map(str, files), *out)
        read = (BIND, INCLUDE, binder.folder, *binder.includes, binder.compiler.home, *near)
        compile_units([Unit("binding", command)], folder, parents[0], (*read, binder.library))

    if cache.fetch(place, make):
        cache.keep_newest(place.parent, _KEPT, place)
    return place / "binding.so"


def _replace(library: Path, target: Path) -> None:
    """Whoever has the old file open keeps it."""
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(library, fresh)
    fresh.replace(target)


# ---- what is made once


@functools.cache
def find_binder() -> Binder:
    """The compiler for bindings: NPUSMITH_CXX, else clang++ (half the time and a fifth of the
    header's size), else g++. The first call on a machine precompiles PyTorch's headers."""
    wanted = None if os.environ.get("NPUSMITH_CXX") else named_compiler("clang++")
    if wanted is not None:
        try:
            return _binder(wanted)
        except TwinError as error:
            if error.code != "toolchain-failed":  # a clang without a C++ library
                raise
    return _binder(find_compiler())


def _binder(compiler: Compiler) -> Binder:
    includes = (*_torch_includes(), Path(sysconfig.get_paths()["include"]))
    own = [*sorted(BIND.iterdir()), *sorted((INCLUDE / "acl").iterdir())]  # which they include
    texts = [path.read_bytes() for path in own if path.is_file()]
    words = [
        *_PRECOMPILED,
        *_LIBRARIES,
        *_NPU_HEADERS,
        *_TORCH_HEADERS,
        *_FLAGS,
        *_abi(),
        *map(str, includes),
        str(BIND),
    ]
    version = importlib.metadata.version("torch")
    key = cache.digest([compiler.path, compiler.version, version, *words, *texts])
    binder = Binder(compiler, cache.cache_root() / "bind" / key, includes)
    if cache.fetch(binder.folder, lambda folder: _make_headers(binder, folder)):
        cache.keep_newest(binder.folder.parent, _KEPT_HEADERS, binder.folder)
    return binder


def _torch_includes() -> tuple[Path, ...]:
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        raise TwinError("torch-missing", "bindings need PyTorch's headers")
    include = Path(found.origin).parent / "include"
    return include, include / "torch" / "csrc" / "api" / "include"


@functools.cache
def _abi() -> tuple[str, ...]:
    """std::string as the installed PyTorch was compiled with."""
    import torch

    return (f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",)


def _make_headers(binder: Binder, folder: Path) -> None:
    for part, names, line in (
        ("npu", _NPU_HEADERS, "#include <pytorch_npu_helper.hpp>"),
        ("torch", _TORCH_HEADERS, "#include <torch.hpp>"),
    ):
        for name in names:
            path = folder / part / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#pragma once\n{line}\n")
    header = folder / _HEADER
    header.write_text("".join(f"#include <{name}>\n" for name in _PRECOMPILED))
    ending = "pch" if binder.compiler.clang else "gch"
    # The key tells the contents: a header that was only copied again is no reason to refuse.
    untimed = ["-Xclang", "-fno-pch-timestamp"] if binder.compiler.clang else []
    whole = binder.command("binding", True, True)
    command = [part for part in whole if not part.startswith("-DTORCH_")]
    command += [f"-I{folder / 'torch'}", *untimed, "-x", "c++-header", str(header)]
    done = subprocess.run(
        [*command, "-o", f"{header}.{ending}"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise TwinError(
            "toolchain-failed",
            "PyTorch's headers do not compile with this compiler",
            seen=f"{binder.compiler.path}: {done.stderr.strip()[:2000]}",
        )
