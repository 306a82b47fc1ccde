"""`build_package(project, toolkit) -> Package`: build.sh of a project, its log and its errors.

What the script and the compilers printed goes to build.log in the project; errors are read from it
and name the project's own files, also where a frame of msopgen was compiled.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from npusmith.cann.process import call
from npusmith.cann.toolkit import Toolkit
from npusmith.errors import CannError, Place
from npusmith.twin.diagnose import Diagnostic, read_log

LOG = "build.log"
_OUT = "build_out"
_SECONDS = 3600.0
_OWN = re.compile(r"^build\.sh: error: (.+)$", re.M)  # what our build.sh says before it ends
_OWN_CODES = {3: "cann-missing", 4: "cann-tools", 5: "cann-tools"}
_PLACES = re.compile(r"(?:^|/)((?:op_host|op_kernel)/.+)$")
# Tools of CANN and CMake that name no line, or name it in their own way.
_TOOLS = (
    re.compile(r"(kernel entry `\w+' not implement in `[\w.]+')"),
    re.compile(r"(operator: \w+ source file.* does not found)"),
    re.compile(r"^CMake Error at (?P<file>[^:\n]+):(?P<line>\d+)", re.M),
    re.compile(r"^\[ERROR\][: ]*(.+)$", re.M),
)


class BuildError(CannError):
    """A project that CANN does not build; `errors` are the first ones."""

    def __init__(self, errors: tuple[Diagnostic, ...], log: Path, code: int) -> None:
        self.errors = errors
        first = errors[0] if errors else Diagnostic("", 0, f"the build ended with code {code}")
        more = [str(error) for error in errors[1:4]]
        super().__init__(
            "cann-build", first.message, Place(first.file, first.line),
            seen="; ".join([*more, f"log: {log}"]),
        )  # fmt: skip

    def record(self) -> dict[str, object]:
        errors = [{"file": e.file, "line": e.line, "message": e.message} for e in self.errors]
        return {**super().record(), "errors": errors}


@dataclass(frozen=True, slots=True)
class Package:
    """What a build left."""

    path: Path  # the installer
    toolkit: Toolkit
    log: Path
    seconds: float


def build_package(
    project: Path, toolkit: Toolkit, environment: Mapping[str, str] | None = None
) -> Package:
    """Build the operator package; CannError cann-script, cann-missing, cann-tools, cann-build."""
    project = project.resolve()
    script = project / "build.sh"
    if not script.is_file():
        raise CannError("cann-script", f"{project} has no build.sh", Place(str(script)))
    start = time.monotonic()
    given = dict(os.environ if environment is None else environment)
    given.setdefault("ASCEND_HOME_PATH", str(toolkit.home))
    log = project / LOG
    code = call(["bash", str(script)], project, given, log, _SECONDS)
    text = log.read_text(encoding="utf-8", errors="replace")
    found = sorted((project / _OUT).glob("custom_opp_*.run"))
    if code or not found:
        raise _failure(project, code, text, log)
    return Package(found[0], toolkit, log, round(time.monotonic() - start, 3))


def _failure(project: Path, code: int, text: str, log: Path) -> CannError:
    said = _OWN.findall(text)
    if said and code in _OWN_CODES:
        return CannError(_OWN_CODES[code], said[-1], Place(str(project)))
    errors = read_errors(text, project)
    if not errors and said:
        errors = (Diagnostic("", 0, said[-1]),)
    return BuildError(errors, log, code)


def read_errors(text: str, project: Path) -> tuple[Diagnostic, ...]:
    """The errors in a log of CANN's build, each once: tools that say why, then compilers."""
    found: dict[Diagnostic, None] = {}
    for pattern in _TOOLS:
        for match in pattern.finditer(text):
            named = match.groupdict()
            message = _next_line(text, match.end()) if named else match.group(1)
            if any(error.message in message for error in found):
                continue
            file, line = named.get("file") or "", int(named.get("line") or 0)
            found.setdefault(Diagnostic(file, line, message.strip()))
    said = {error.message for error in found}
    for error in read_log(text, lambda name: _PLACES.search(name) is not None):
        if error.message not in said:
            found.setdefault(Diagnostic(_own_file(error.file, project), error.line, error.message))
    return tuple(found)


def _next_line(text: str, start: int) -> str:
    """CMake puts the message on the line after the place."""
    lines = [line for line in text[start : start + 2000].splitlines()[1:] if line.strip()]
    return lines[0] if lines else "CMake stopped"


def _own_file(name: str, project: Path) -> str:
    """The project's file behind a copy of it in a frame."""
    tail = _PLACES.search(name)
    own = project / tail.group(1) if tail else project / name
    return str(own) if own.is_file() else name
