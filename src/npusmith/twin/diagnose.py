"""What a compiler said, as records that name the user's files and lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import Place, TwinError
from npusmith.target.absent import UNMODELLED_HEADERS, explain
from npusmith.twin.cache import cache_root
from npusmith.twin.toolchain import INCLUDE

_MESSAGE = re.compile(r"^(.+?):(\d+):(?:(\d+):)? (?:fatal )?error: (.*)$")
_INCLUDED = re.compile(r"^(?:In file included from |\s+from )(.+?):(\d+)(?::\d+)?[:,]?$")
_CAUSE = re.compile(
    r"^(.+?):(\d+)(?::\d+)?[:,]?\s*(?:\s+required from .*|note: in instantiation of .*)?[,:]?$"
)
_INLINED = re.compile(r"^\s+inlined from .* at (.+?):(\d+)(?::\d+)?[:,]?$")
_CONFLICT = re.compile(r" note:\s+(deduced conflicting types .*)$")
# Packages of Debian and Ubuntu: libraries bring these headers from elsewhere.
_PACKAGES = {
    "nlohmann/": "nlohmann-json3-dev",
    "google/protobuf/": "libprotobuf-dev",
    "gtest/": "libgtest-dev",
    "Eigen/": "libeigen3-dev",
}
_LAUNCH_HEADER = re.compile(r"aclrtlaunch_(\w+)\.h")
_TIK2 = re.compile(r"'tik2(?:'|::)")
_RENAMED = "tik2 is an earlier name of AscendC; write AscendC in its place"
_NO_FILE = re.compile(r"(\S+): No such file or directory$")
_LINKER = re.compile(r"(undefined reference to|undefined symbol|multiple definition of)[: ]+(.*)$")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One compiler error, at the user's line that caused it where that is known."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        spot = f"{self.file}:{self.line}: " if self.line else ""
        return f"{spot}{self.message}"


class CompileError(TwinError):
    """A project does not compile; `errors` are the first ones, `log` is all that was said."""

    def __init__(self, errors: tuple[Diagnostic, ...], log: str, where: Path) -> None:
        self.errors = errors
        self.log = log
        first = errors[0] if errors else Diagnostic(str(where), 0, _last_line(log))
        rest = [str(error) for error in errors[1:4]]
        if len(errors) > 4:
            rest.append(f"and {len(errors) - 4} more")
        super().__init__(
            "compile-failed", first.message, Place(first.file, first.line), seen="; ".join(rest)
        )

    def record(self) -> dict[str, object]:
        errors = [{"file": e.file, "line": e.line, "message": e.message} for e in self.errors]
        return {**super().record(), "errors": errors, "log": self.log}


def read_log(log: str, is_users: Callable[[str], bool]) -> tuple[Diagnostic, ...]:
    """The errors of a compile, each once: files that are missing, then the others in order.

    What follows in our own headers from an error in the user's text is left out.
    """
    found: dict[Diagnostic, None] = {}
    cause: tuple[str, int] | None = None  # the user's line that an instantiation came from,
    included: tuple[str, int] | None = None  # ... or else that a header came from
    for text in log.splitlines():
        error = _MESSAGE.match(text)
        linker = _LINKER.search(text)
        conflict = _CONFLICT.search(text)
        if error:
            file, line, message = error.group(1), int(error.group(2)), error.group(4)
            if not is_users(file):
                file, line = cause or included or (file, line)
            found.setdefault(Diagnostic(file, line, explain(_plain(message))))
            cause = included = None
        elif linker:
            said = _plain(f"{linker.group(1)} {linker.group(2)}")
            found.setdefault(Diagnostic("", 0, said))
        elif conflict and found:
            _add_reason(found, _plain(conflict.group(1)))
        else:
            cause = cause or _place(_INLINED.match(text) or _CAUSE.match(text), is_users)
            included = _place(_INCLUDED.match(text), is_users) or included
    users = [item for item in found if not item.file or is_users(item.file)]
    known = users if any(item.file for item in users) else list(found)
    old = next((item for item in known if _TIK2.search(item.message)), None)
    if old is not None:  # everything behind it follows from the namespace
        return (Diagnostic(old.file, old.line, f"{old.message}: {_RENAMED}"),)
    return tuple(sorted(known, key=lambda item: "No such file" not in item.message))


def explain_headers(
    errors: Sequence[Diagnostic], computed: Sequence[Place]
) -> tuple[Diagnostic, ...]:
    """The same errors; of a header that is not there it says where one would be found."""
    return tuple(_with_places(row, computed) for row in errors)


def _with_places(row: Diagnostic, computed: Sequence[Place]) -> Diagnostic:
    found = _NO_FILE.match(row.message)
    if not found:
        return row
    part = next((it for head, it in UNMODELLED_HEADERS.items() if found[1].startswith(head)), "")
    if part:
        said = f"{row.message}: it belongs to {part}; the twin does not model this yet"
        return Diagnostic(row.file, row.line, said)
    package = next((item for head, item in _PACKAGES.items() if found[1].startswith(head)), "")
    if package:
        return Diagnostic(row.file, row.line, f"{row.message}; it comes with {package}")
    kernel = _LAUNCH_HEADER.fullmatch(found[1])
    if kernel:
        said = f"the vendor's build makes it, and no source of the program defines {kernel[1]}"
        return Diagnostic(row.file, row.line, f"{row.message}; {said}")
    if (Path(row.file).parent / found[1]).is_symlink():
        said = f"{found[1]} is a link there, and links are not followed: put the file itself there"
        return Diagnostic(row.file, row.line, f"{row.message}; {said}")
    places = f"{Path(row.file).parent}, or in a folder named by -I or by include_directories"
    text = f"{row.message}; put {found[1]} in {places}"
    if computed:
        spots = ", ".join(f"{Path(place.file).name}:{place.line}" for place in computed[:3])
        text += f" (a folder at {spots} is computed by CMake, which is not run here: give it by -I)"
    return Diagnostic(row.file, row.line, text)


def undefined(log: str) -> tuple[str, ...]:
    """The names that a linker missed, each once."""
    found = (_LINKER.search(line) for line in log.splitlines())
    names = (_plain(match[2]).strip("'") for match in found if match and "undefined" in match[1])
    return tuple(dict.fromkeys(names))


def _place(spot: re.Match[str] | None, is_users: Callable[[str], bool]) -> tuple[str, int] | None:
    """The place that a line names, when it is the user's."""
    if spot is None or not is_users(spot.group(1).strip()):
        return None
    return spot.group(1).strip(), int(spot.group(2))


def _add_reason(found: dict[Diagnostic, None], reason: str) -> None:
    """Why the first candidate of a call was not taken: as a rule a scalar of another type."""
    last = next(reversed(found))
    if last.message.startswith("no matching function") and "deduced" not in last.message:
        del found[last]
        found[Diagnostic(last.file, last.line, f"{last.message}: {reason}")] = None


def in_project(root: Path) -> Callable[[str], bool]:
    """Is this file name the user's, and not ours or the system's?"""
    ours = str(cache_root() / "twin")  # precompiled headers

    def is_users(file: str) -> bool:
        if file.startswith((str(INCLUDE), "/usr/", "npusmith ", ours)):
            return False
        try:
            return Path(file).is_relative_to(root) or Path(file).is_file()
        except OSError:  # #line can name anything, at any length
            return False

    return is_users


def _plain(message: str) -> str:
    """Compiler quotes as plain ones; of our own attribute only what it says."""
    said = message.translate(str.maketrans("‘’“”`", "'''''"))
    if "twin::ConstantDoesNotFit" in said:
        return "this constant does not fit the hardware field it is passed to"
    return said


def _last_line(log: str) -> str:
    lines = [line for line in log.splitlines() if line.strip()]
    return lines[-1] if lines else "the compiler ended without a message"
