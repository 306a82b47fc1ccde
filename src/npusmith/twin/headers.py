"""Headers that a project includes from the library around it: `find_headers(...) -> Headers`.

A library's build passes include folders that the project's own files do not show. What stands there
instead is the tree: a name that is neither beside the file nor in a named folder nor in the twin's
documented headers is the header of the repository whose path ends in that name, the nearest one
first. An installed library keeps kernels as `<op>/<file>`, so `op_kernel` and `op_host` in a path
may be left out (`../add_rms_norm/base.h`).

Files of tests are not looked at, those of other chips last.
"""

from __future__ import annotations

import functools
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from npusmith.twin.architecture import is_foreign
from npusmith.twin.toolchain import INCLUDE, LIBRARY

SUFFIXES = (".h", ".hpp", ".hh", ".hxx", ".inc", ".inl", ".ipp", ".tpp", ".def")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+\.\w+)>)', re.M)
_MOST_FILES = 2000  # of one project's closure
_MOST_ENTRIES = 200_000  # of a repository's tree
_MOST_UP = 12  # folders between a project and its repository
_SKIPPED = frozenset({"tests", "test", "examples", "build", "build_out", "out", "stub", "stubs"})
_OTHERS = frozenset({"third_party", "3rdparty", "thirdparty"})  # submodules, as a rule
_SYSTEM = Path("/usr/include")
_COMPILERS = frozenset(
    {"stddef.h", "stdarg.h", "stdbool.h", "stdalign.h", "float.h", "limits.h", "iso646.h"}
)
_SHARED = frozenset({"inc", "include", "common"})
_SIDES = ("op_kernel", "op_host")
_LIBRARY_NAME = re.compile(r"(?:op_common/)?(?:op_host/)?(.+)")  # of a package or of its tree
DEEP = "a/b/c/d"  # below the folder of forwards, so that `../../x.h` stays inside of it


Tree = dict[str, tuple[Path, ...]]


@dataclass(frozen=True, slots=True)
class Headers:
    """`forwards`: names as they are included, and the files meant; `files`: outside the project;
    `folders`: where the compiler looks anyway, in order."""

    forwards: tuple[tuple[str, Path], ...] = ()
    files: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()

    @property
    def own(self) -> tuple[Path, ...]:
        """Without those for other chips, which a file may include all the same."""
        return tuple(file for file in self.files if not is_foreign(Path(*file.parts[-3:])))

    def write(self, folder: Path, place: Callable[[Path], Path] = lambda file: file) -> Path:
        """The forwards as files below `folder`; the folder that the compiler searches.

        `place`: where the compiler reads a file instead (copies.py).
        """
        search = folder / DEEP
        search.mkdir(parents=True, exist_ok=True)
        for name, file in self.forwards:
            target = Path(os.path.normpath(search / name))
            if not target.is_relative_to(folder):
                continue  # more steps up than a library has
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(f'#include "{place(file)}"\n')
        return search


NONE = Headers()


def find_headers(
    base: Path, sources: Iterable[Path], trees: Trees, folders: Sequence[Path] = ()
) -> Headers:
    """What these sources of the project in `base` include, in files outside of it.

    `folders`: where the compiler looks anyway, in order. A file counts only below the repository
    or one of them: a project may not name what is its reader's own.
    """
    repository = find_repository(base)
    around = [base.parent.parent] if base.is_file() else []  # of a source that stands by itself
    open_ = (repository, INCLUDE, *around, *folders)
    forwards: dict[str, Path] = {}
    outside: dict[Path, None] = {}
    seen = set(sources)
    todo = deque(sources)
    while todo and len(seen) < _MOST_FILES:
        file = todo.popleft()
        for name in _names(file):
            near = _beside(name, (file.parent, *folders))
            if near is None:
                if (INCLUDE / name).is_file() or _is_systems(name):
                    continue  # documented: no library has another one
                near = forwards.get(name) or _chosen(trees, repository, file, name)
                if near is None:
                    continue
                forwards.setdefault(name, near)
            if not any(map(near.is_relative_to, open_)):
                continue
            if near in seen or near.suffix not in (*SUFFIXES, ".cpp", ".cc"):
                continue
            seen.add(near)
            todo.append(near)
            if not near.is_relative_to(base) and not near.is_relative_to(INCLUDE):
                outside[near] = None
    return Headers(tuple(sorted(forwards.items())), tuple(outside), tuple(folders))


def headers_of(path: Path, others: Iterable[Path] = (), folders: Sequence[Path] = ()) -> Headers:
    """What a source that stands by itself includes, and those that are linked with it."""
    return find_headers(path, [path, *others], Trees(), folders)


def find_repository(base: Path) -> Path:
    """The folder with .git around a project; else the highest of those with a CMakeLists.txt
    right above each other; else the project itself."""
    above = list(base.parents)[:_MOST_UP]
    for folder in (base, *above):
        if (folder / ".git").exists():
            return folder
    top = base
    for folder in above:
        if not (folder / "CMakeLists.txt").is_file():
            break
        top = folder
    return top


def _names(file: Path) -> Iterator[str]:
    try:
        text = file.read_text(errors="replace")
    except OSError:
        return
    for quoted, angled in _INCLUDE.findall(text):
        yield (quoted or angled).strip()


def _beside(name: str, folders: Iterable[Path]) -> Path | None:
    for folder in folders:
        try:
            if (folder / name).is_file():
                return (folder / name).resolve()
        except (OSError, ValueError):  # a name of any length
            return None
    return None


def _chosen(trees: Trees, repository: Path, user: Path, name: str) -> Path | None:
    """The library's own header; where that needs what is not there, and the twin has one, ours."""
    theirs, ours = _of_library(trees[repository], user, name), _ours(trees, user, name)
    if theirs is None or (ours is not None and not _is_whole(trees, repository, theirs)):
        return ours
    return theirs


def _is_whole(trees: Trees, repository: Path, header: Path) -> bool:
    """Is everything there that this header of the repository includes?"""
    seen, todo = {header}, [header]
    while todo and len(seen) < _MOST_FILES:
        file = todo.pop()
        for name in _names(file):
            if (INCLUDE / name).is_file() or _is_systems(name):
                continue
            near = _beside(name, (file.parent,)) or _of_library(trees[repository], file, name)
            if near is None and _ours(trees, file, name) is None:
                return False
            if near is not None and near not in seen:
                seen.add(near)
                todo.append(near)
    return True


def _is_systems(name: str) -> bool:
    """<math.h> and its like, of the compiler and of the system."""
    return name in _COMPILERS or _beside(name, _system_folders()) is not None


@functools.cache
def _system_folders() -> tuple[Path, ...]:
    return (_SYSTEM, *sorted(_SYSTEM.glob("*-linux-*")))  # Debian keeps some by architecture


def _of_library(tree: Tree, user: Path, name: str) -> Path | None:
    """Another operator's private header does not stand for one that libraries share."""
    own = 2 if (LIBRARY / _LIBRARY_NAME.sub(r"\1", name)).is_file() else -1
    found = _search(tree, user, name, own)
    while found is None and own < 0 and name.count("/") > 1 and not name.startswith(".."):
        name = name.partition("/")[2]  # a build may lay the tree out under other names
        found = _search(tree, user, name, own)
    return found


def find_source(tree: Tree, header: Path) -> Path | None:
    """The source of that name which is most likely to define what a header declares."""
    found = [path for end in (".cpp", ".cc") for path in tree.get(header.stem + end, ())]
    found = [path for path in found if not is_foreign(Path(*path.parts[-3:]))]
    found = [path for path in found if not _OTHERS & set(path.parts)]
    return max(found, key=lambda path: (_common(path, header), -len(path.parts)), default=None)


def _search(tree: Tree, user: Path, name: str, least: int = -1) -> Path | None:
    parts = tuple(part for part in PurePosixPath(name).parts if part not in ("..", "."))
    if not parts:
        return None
    found = [
        (rank, path)
        for path in tree.get(parts[-1], ())
        if (rank := _rank(path, parts, user, name.startswith("../"))) and rank[1] >= least
    ]
    return max(found, default=(None, None))[1]


def _rank(
    path: Path, parts: tuple[str, ...], user: Path, installed: bool
) -> tuple[bool, int, int, int] | None:
    """Better ranks are greater; None where the path does not end in these parts.

    `installed`: the name has the form that kernels have in an installed library, `../op/file.h`.

    The folder in front of the parts is what a build would search: most likely one around the user,
    then one for shared headers, then the include folder of a submodule, then the nearest of another
    operator, then anything of a submodule.
    """
    plain = tuple(part for part in path.parts if part not in _SIDES) if installed else ()
    whole = path.parts if path.parts[-len(parts) :] == parts else plain
    if whole[-len(parts) :] != parts:
        return None
    front = whole[: -len(parts)]
    around = user.parts if whole is path.parts else tuple(p for p in user.parts if p not in _SIDES)
    shared = _SHARED & set(front)
    kind = 3 if around[: len(front)] == front else 2 if shared else 0
    if _OTHERS & set(front) - set(around):  # the name of the library goes with its folder
        kind = 1 if len(parts) > 1 and front[-1] == "include" else -1
    foreign = is_foreign(Path(*path.parts[-3:]))
    return not foreign, kind, _common(path, user), -len(path.parts)


def _ours(trees: Trees, user: Path, name: str) -> Path | None:
    """What the twin has of the headers that libraries share, by any of the ways to name them."""
    found = _LIBRARY_NAME.match(name)
    return _search(trees[INCLUDE], user, found[1]) if found else None


def _common(one: Path, other: Path) -> int:
    return sum(1 for _ in _same(one.parts, other.parts))


def _same(one: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    for left, right in zip(one, other, strict=False):
        if left != right:
            return
        yield left


class Trees(dict[Path, Tree]):
    """The headers below folders by their last names; each is listed when it is first asked for."""

    def __missing__(self, folder: Path) -> Tree:
        self[folder] = _list(folder)
        return self[folder]


def _list(repository: Path) -> Tree:
    found: dict[str, list[Path]] = {}
    count = 0
    for folder, below, files in os.walk(repository):
        below[:] = sorted(
            name for name in below if name not in _SKIPPED and not name.startswith(".")
        )
        count += len(files)
        if count > _MOST_ENTRIES:
            break
        for name in files:
            if name.endswith((*SUFFIXES, ".cpp", ".cc")):
                found.setdefault(name, []).append(Path(folder) / name)
    return {name: tuple(sorted(paths)) for name, paths in found.items()}
