"""Include folders and definitions that a project's CMake files name: `read_names(base)`.

What would have to be computed (generator expressions, variables from elsewhere) is kept by its
place, for the message about a header that is missing then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import Place
from npusmith.twin import cmake

_FILES = ("CMakeLists.txt", "op_host/CMakeLists.txt", "op_kernel/CMakeLists.txt")
_FOLDERS = {"include_directories": 0, "target_include_directories": 1}  # words in front
_NAMES = {"add_compile_definitions": 0, "target_compile_definitions": 1}
_OF_KERNELS = ("add_ops_compile_options", "npu_op_kernel_options")
_OPTIONS = ("add_definitions", "add_compile_options", "target_compile_options", *_OF_KERNELS)


@dataclass(frozen=True, slots=True)
class BuildNames:
    """`host`, `kernel`: definitions NAME or NAME=VALUE; `computed`: places that were not read."""

    folders: tuple[Path, ...] = ()
    host: tuple[str, ...] = ()
    kernel: tuple[str, ...] = ()
    computed: tuple[Place, ...] = ()


def read_names(base: Path, repository: Path) -> BuildNames:
    """What the CMake files of the project in `base` name; folders that are not in the repository
    are left out."""
    folders: dict[Path, None] = {}
    host: dict[str, None] = {}
    kernel: dict[str, None] = {}
    computed: list[Place] = []
    known = {"CMAKE_SOURCE_DIR": str(base), "PROJECT_SOURCE_DIR": str(base)}
    for name in _FILES:
        file = base / name
        known["CMAKE_CURRENT_SOURCE_DIR"] = known["CMAKE_CURRENT_LIST_DIR"] = str(file.parent)
        for command in cmake.follow(cmake.read_text(file), known, every=True):
            if command.unknown:
                if command.name in _FOLDERS:
                    computed.append(Place(str(file), command.line))
                continue
            for folder in _folders(command, file.parent):
                if folder.is_relative_to(repository) and folder.is_dir():
                    folders.setdefault(folder)
            for macro in _definitions(command):
                if not name.startswith("op_kernel") and command.name not in _OF_KERNELS:
                    host.setdefault(macro)
                if not name.startswith("op_host"):
                    kernel.setdefault(macro)
    return BuildNames(tuple(folders), tuple(host), tuple(kernel), tuple(computed))


def _folders(command: cmake.Command, here: Path) -> Iterator[Path]:
    if command.name in _FOLDERS:
        for word in command.words[_FOLDERS[command.name] :]:
            if word not in cmake.SCOPES:
                yield (here / word).resolve()


def _definitions(command: cmake.Command) -> list[str]:
    """Those of the project: one with _ in front is the toolchain's own."""
    if command.name not in _NAMES and command.name not in _OPTIONS:
        return []
    words = command.words[_NAMES.get(command.name, 0) :]
    found = cmake.definitions(words, plain=command.name in _NAMES, generators=False)
    return [item for item in found if not item.startswith("_")]
