"""What a CMakeLists.txt says of one source: macros, include folders, what it is linked with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from npusmith.twin import cmake

_FILE = "CMakeLists.txt"
_TARGETS = ("add_executable", "add_library", "ascendc_library", "ascendc_fatbin_library")
_SOURCES = (".cpp", ".cc", ".asc")
_HERE = (
    cmake.HERE, "CMAKE_SOURCE_DIR", "PROJECT_SOURCE_DIR", "CMAKE_CURRENT_LIST_DIR",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Flags:
    """Macros in the form NAME or NAME=VALUE, folders for #include, the target's other sources."""

    definitions: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()
    sources: tuple[Path, ...] = ()


def read_flags(
    source: Path, variables: Mapping[str, str], chip: str = "", folder: Path | None = None
) -> Flags:
    """How the CMakeLists.txt beside a source, or in `folder`, compiles it, with the variables of
    `cmake -D`.

    Definitions of targets count where the target has the source, or names no source of its own.
    `chip`: what the frame for kernel launches calls SOC_VERSION.
    """
    source = source.resolve()
    folder = folder or source.parent
    known = {"CMAKE_ASC_ARCHITECTURES": "dav-2201", "CMAKE_ASC_RUN_MODE": "npu"}
    known |= {"RUN_MODE": "npu", "SOC_VERSION": f"Ascend{chip}"}
    known |= dict.fromkeys(_HERE, str(folder)) | dict(variables)
    targets = _Targets(source, folder)
    for command in cmake.follow(cmake.read_text(folder / _FILE), known, every=False):
        if command.words:
            targets.take(command.name, list(command.words))
    return targets.flags()


@dataclass(slots=True)
class _Targets:
    """What the commands of a file add to its targets, and to all of them."""

    source: Path
    folder: Path
    everywhere: list[str] = field(default_factory=list)
    includes: list[str] = field(default_factory=list)
    by_target: dict[str, list[str]] = field(default_factory=dict)
    includes_of: dict[str, list[str]] = field(default_factory=dict)
    sources: dict[str, list[str]] = field(default_factory=dict)
    links: dict[str, list[str]] = field(default_factory=dict)

    def take(self, name: str, words: list[str]) -> None:
        """Note one command."""
        if name in _TARGETS:
            self.sources[words[0]] = words[1:]
        elif name == "target_sources":
            self.sources.setdefault(words[0], []).extend(words[1:])
        elif name == "target_link_libraries":
            self.links.setdefault(words[0], []).extend(words[1:])
        elif name in ("add_definitions", "add_compile_definitions", "add_compile_options"):
            self.everywhere += _defined(words, name.endswith("compile_definitions"))
        elif name == "include_directories":
            self.includes += words
        elif name.removeprefix("ascendc_") in ("compile_definitions", "compile_options") or (
            name in ("target_compile_definitions", "target_compile_options")
        ):
            found = _defined(words[1:], name.endswith("definitions"))
            self.by_target.setdefault(words[0], []).extend(found)
        elif name in ("target_include_directories", "ascendc_include_directories"):
            self.includes_of.setdefault(words[0], []).extend(words[1:])

    def flags(self) -> Flags:
        """What counts for the source."""
        definitions, includes = list(self.everywhere), list(self.includes)
        for target in {**self.by_target, **self.includes_of, **self.sources}:
            if self._has_source(target):
                definitions += self.by_target.get(target, [])
                includes += self.includes_of.get(target, [])
        folders = (self.folder / item for item in includes if item not in cmake.SCOPES)
        near = dict.fromkeys(path.resolve() for path in folders if path.is_dir())
        return Flags(tuple(dict.fromkeys(definitions)), tuple(near), tuple(self._linked()))

    def _linked(self) -> dict[Path, None]:
        """The other sources of the target that names the source, and of libraries in this file."""
        left = [name for name, held in self.sources.items() if self._names(held)]
        seen: dict[str, None] = {}
        while left:
            target = left.pop()
            if target not in seen:
                seen[target] = None
                left += [item for item in self.links.get(target, ()) if item in self.sources]
        files = (self.folder / item for target in seen for item in self.sources[target])
        kept = (file.resolve() for file in files if file.suffix in _SOURCES and file.is_file())
        return dict.fromkeys(file for file in kept if file != self.source)

    def _names(self, held: Sequence[str]) -> bool:
        return any((self.folder / item).resolve() == self.source for item in held)

    def _has_source(self, target: str) -> bool:
        own = [Path(item).name for item in self.sources.get(target, ())]
        return self.source.name in own or not any(Path(item).suffix for item in own)


def _defined(words: Sequence[str], plain: bool) -> list[str]:
    """Those of the project: one with _ in front is the toolchain's own."""
    found = cmake.definitions(words, plain=plain, generators=True)
    return [item for item in found if not item.startswith("_")]
