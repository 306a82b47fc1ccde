"""Include folders and definitions that a project's CMake files name: `read_cmake(base)`.

Read as text, without running CMake: variables count where `set` gives them plain words. What would
have to be computed (generator expressions, functions, variables from elsewhere) is kept by its
place, for the message about a header that is missing then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import Place

_FILES = ("CMakeLists.txt", "op_host/CMakeLists.txt", "op_kernel/CMakeLists.txt")
_MOST_BYTES = 1 << 20
_COMMENT = re.compile(r"#\[\[.*?\]\]|#[^\n]*", re.S)
_CALL = re.compile(r"\b(\w+)\s*\(([^()]*)\)")
_WORD = re.compile(r'"([^"]*)"|([^\s"]+)')
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_DEFINE = re.compile(r"-D([A-Za-z]\w*(?:=.*)?)$")  # one with _ in front is the toolchain's own
_NAME = re.compile(r"[A-Za-z]\w*(?:=.*)?$")
_FOLDERS = {"include_directories": 0, "target_include_directories": 1}  # words in front
_NAMES = {"add_compile_definitions": 0, "target_compile_definitions": 1}
_OPTIONS = (
    "add_definitions", "add_compile_options", "target_compile_options", "add_ops_compile_options",
    "npu_op_kernel_options",
)  # fmt: skip
_KEYWORDS = frozenset({"PRIVATE", "PUBLIC", "INTERFACE", "SYSTEM", "BEFORE", "AFTER", "ALL"})


@dataclass(frozen=True, slots=True)
class BuildNames:
    """`host`, `kernel`: definitions NAME or NAME=VALUE; `computed`: places that were not read."""

    folders: tuple[Path, ...] = ()
    host: tuple[str, ...] = ()
    kernel: tuple[str, ...] = ()
    computed: tuple[Place, ...] = ()


def read_cmake(base: Path, repository: Path) -> BuildNames:
    """What the CMake files of the project in `base` name; folders that are not in the repository
    are left out."""
    folders: dict[Path, None] = {}
    host: dict[str, None] = {}
    kernel: dict[str, None] = {}
    computed: list[Place] = []
    known = {"CMAKE_SOURCE_DIR": str(base), "PROJECT_SOURCE_DIR": str(base)}
    for name in _FILES:
        file = base / name
        text = _text(file)
        known["CMAKE_CURRENT_SOURCE_DIR"] = known["CMAKE_CURRENT_LIST_DIR"] = str(file.parent)
        for call in _CALL.finditer(text):
            verb, words = call[1].lower(), _words(call[2])
            if verb == "set" and len(words) > 1 and not any("$" in word for word in words):
                known[words[0]] = " ".join(words[1:])
                continue
            try:
                found = [_VARIABLE.sub(lambda name: known[name[1]], word) for word in words]
            except KeyError:
                if verb in _FOLDERS:
                    computed.append(Place(str(file), text.count("\n", 0, call.start()) + 1))
                continue
            if verb in _FOLDERS:
                for word in found[_FOLDERS[verb] :]:
                    place = file.parent / word
                    place = place.resolve()
                    inside = place.is_relative_to(repository) and place.is_dir()
                    if word not in _KEYWORDS and inside:
                        folders.setdefault(place)
            for name_ in _definitions(verb, found):
                if not name.startswith("op_kernel") and verb not in _OPTIONS[3:]:
                    host.setdefault(name_)
                if not name.startswith("op_host"):
                    kernel.setdefault(name_)
    return BuildNames(tuple(folders), tuple(host), tuple(kernel), tuple(computed))


def _definitions(verb: str, words: list[str]) -> Iterator[str]:
    if verb in _NAMES:
        for word in words[_NAMES[verb] :]:
            name = word.removeprefix("-D")
            if word not in _KEYWORDS and _NAME.match(name):
                yield name
    elif verb in _OPTIONS:
        for word in words:
            if found := _DEFINE.match(word):
                yield found[1]


def _words(text: str) -> list[str]:
    return [quoted or plain for quoted, plain in _WORD.findall(text)]


def _text(file: Path) -> str:
    if file.is_symlink() or not file.is_file():
        return ""
    with file.open("rb") as stream:
        return _COMMENT.sub("", stream.read(_MOST_BYTES).decode("utf-8", "replace"))
