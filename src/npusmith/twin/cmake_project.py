"""What a project's CMake files name: include folders, definitions, sources that lie elsewhere.

What would have to be computed (generator expressions, variables from elsewhere) is kept by its
place, for the message about a header that is missing then. Of the CMake files in the folders
around a project only variables count: its headers are found by the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import Place
from npusmith.twin import cmake

_FILES = ("CMakeLists.txt", "op_host/CMakeLists.txt", "op_kernel/CMakeLists.txt")
_FOLDERS = {"include_directories": 0, "target_include_directories": 1}  # words in front
_SOURCES = (".cpp", ".cc")
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
        for command in _commands(file, known):
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


def read_sources(base: Path, repository: Path) -> tuple[Path, ...]:
    """The sources outside of the project that its files give to targets by `target_sources`."""
    above = _above(base, repository)
    top = str((above or [base])[0])
    known = {"CMAKE_SOURCE_DIR": top, "PROJECT_SOURCE_DIR": top}
    for folder in above:
        list(_commands(folder / _FILES[0], known))  # for the variables that they set
    found: dict[Path, None] = {}
    for name in _FILES:
        for command in _commands(base / name, known):
            if command.name == "target_sources" and not command.unknown:
                paths = ((base / name).parent / word for word in command.words[1:])
                found |= dict.fromkeys(path.resolve() for path in paths)
    files = (file for file in found if file.suffix in _SOURCES and file.is_file())
    outside = (file for file in files if not file.is_relative_to(base))
    return tuple(file for file in outside if file.is_relative_to(repository))


def _above(base: Path, repository: Path) -> list[Path]:
    """The folders around a project up to the one that has `project(...)`, outermost first; none
    for a project that has it itself."""
    found: list[Path] = []
    folder = base
    while not any(item.name == "project" for item in _commands(folder / _FILES[0], {})):
        folder = folder.parent
        if not folder.is_relative_to(repository):
            return []
        found.insert(0, folder)
    return found


def _commands(file: Path, known: dict[str, str]) -> Iterator[cmake.Command]:
    known[cmake.HERE] = known["CMAKE_CURRENT_LIST_DIR"] = str(file.parent)
    return cmake.follow(cmake.read_text(file), known, every=True)


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
