"""A submission as Python modules: `build_module(submission, chip, folder) -> ModuleBuild`.

An operator project gets a binding whose EXEC_NPU_CMD runs the project on the twin. Kernels for
direct launch become a library that the binding is loaded on top of; they run inside of the Python
process, on tensors that memory.cpp has put between pages that fault.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import TwinError
from npusmith.target.chips import Chip
from npusmith.twin import compile, forbid, wrapper
from npusmith.twin.bind import BIND, build_binding, compile_binding
from npusmith.twin.check import type_columns
from npusmith.twin.formats import Kind, Submission, unpack
from npusmith.twin.kind import file_kinds
from npusmith.twin.project import read_projects, read_text
from npusmith.twin.toolchain import Toolchain, find_toolchain

MEMORY = "npusmith_memory"  # the module that makes tensors device memory


@dataclass(frozen=True, slots=True)
class ModuleBuild:
    """What a process needs to import the candidate's model."""

    submission: Submission
    root: Path  # the unpacked files
    modules: Path  # the folder with the compiled Python modules
    libraries: tuple[Path, ...]  # to be loaded before them, names visible to all
    builds: tuple[Path, ...]  # folders of the cache that calls will read
    toolchain: Toolchain

    @property
    def model(self) -> Path:
        return self.root / self.submission.model


def build_module(
    submission: Submission, chip: Chip, folder: Path, *, ahead: bool = True
) -> ModuleBuild:
    """Unpack and compile into `folder`, which must exist; TwinError of every kind.

    `ahead`: an operator is compiled for all types that it declares, not for those that are called.
    """
    root, modules = folder / "candidate", folder / "modules"
    root.mkdir()
    modules.mkdir()
    unpack(submission, root)
    if submission.kind is Kind.MSOPGEN:
        return _build_operator(submission, chip, root, modules, ahead)
    return _build_direct(submission, chip, root, modules)


def _build_operator(
    submission: Submission, chip: Chip, root: Path, modules: Path, ahead: bool
) -> ModuleBuild:
    projects = read_projects(root)
    built = [
        compile.build(project, chip, dtypes)
        for project in (projects.values() if ahead else ())
        for dtypes in type_columns(project)
    ]
    sources = [root / name for name in submission.bindings]
    build_binding(sources, projects, modules, submission.module, chip=chip)
    builds = tuple(item.folder for item in built)
    return ModuleBuild(submission, root, modules, (), builds, find_toolchain(chip))


def _build_direct(submission: Submission, chip: Chip, root: Path, modules: Path) -> ModuleBuild:
    chain = find_toolchain(chip)
    kernels = {root / name: read_text(root / name) for name in submission.kernels}
    includes = [root / name for name in submission.includes]
    units = {path: wrapper.file_unit(path, text) for path, text in kernels.items()}
    library = _compile_kernels(chain, units, kernels, includes, root, modules)
    _make_binding(submission, root, includes, modules)
    memory = compile_binding({BIND / "memory.cpp": read_text(BIND / "memory.cpp")}, MEMORY)
    shutil.copyfile(memory, modules / f"{MEMORY}.so")
    libraries = (chain.folder / "libtwin.so", library)
    return ModuleBuild(submission, root, modules, libraries, (), chain)


def _compile_kernels(
    chain: Toolchain,
    units: Mapping[Path, str],
    kernels: Mapping[Path, str],
    includes: list[Path],
    root: Path,
    folder: Path,
) -> Path:
    """One library of all kernel sources, with its functions visible to the binding."""
    files = []
    for number, (path, text) in enumerate(units.items()):
        if file_kinds(path, kernels[path]).cube:
            raise TwinError("module-cube", f"{path.name} launches a kernel on cube cores")
        files.append(folder / f"kernel{number}.cpp")
        files[-1].write_text(text)
    where = [f"-I{item}" for item in dict.fromkeys([*(p.parent for p in units), *includes])]
    out = folder / "libkernels.so"
    # The binding calls launch functions of any name.
    command = (
        *chain.kernel_command(), "-fvisibility=default", "-fdiagnostics-color=never",
        *where, *map(str, files), "-o", str(out), *chain.kernel_link_flags(sealed=False),
        f"-Wl,-rpath,{chain.folder}",
    )  # fmt: skip
    unit = compile.Unit("kernels", command)
    compile.compile_units([unit], folder, folder.parent, (root, *chain.places))
    forbid.check_text(kernels)
    return out


def _make_binding(submission: Submission, root: Path, includes: list[Path], modules: Path) -> None:
    sources = [root / name for name in submission.bindings]
    beside = {source.parent for source in sources}
    for folder in includes:  # the binding's own folder is the one that is searched
        for header in sorted(folder.glob("*.h*")) if folder not in beside else ():
            for place in beside:
                if not (place / header.name).exists():
                    shutil.copyfile(header, place / header.name)
    build_binding(sources, {}, modules, submission.module)
