"""What this machine has of CANN: `find_toolkit()`, `find_devices()`. Looks only, starts nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import CannError, Place
from npusmith.target.cann import PLACES, VARIABLES

_MODULES = ("compiler", "tools")  # where the CMake modules for operators lie, below the toolkit
_FUNCTION = b"npu_op_package"  # that our CMake files call
_DEVICES = Path("/dev")
# How build.sh uses a toolkit.
ROUTES = {
    "asc": "with the CMake package ASC",
    "msopgen": "with msopgen, without the CMake package ASC",
    "": "without the CMake package ASC and msopgen: is it the whole toolkit?",
}


@dataclass(frozen=True, slots=True)
class Toolkit:
    """An installed CANN toolkit; `route`: how build.sh will use it, "" where it cannot."""

    home: Path
    route: str

    def program(self, name: str, path: str = "") -> Path | None:
        """A program of the toolkit, from PATH or from its own folders."""
        places = [Path(place) for place in path.split(os.pathsep) if place]
        own = (self.home / part for part in _PROGRAMS)
        found = (place / name for place in (*places, *own))
        return next((file for file in found if os.access(file, os.X_OK)), None)


_PROGRAMS = ("bin", "python/site-packages/bin", "tools/profiler/bin")


def find_toolkit(environment: Mapping[str, str] | None = None) -> Toolkit:
    """The toolkit that build.sh will use; CannError cann-missing."""
    given = os.environ if environment is None else environment
    named = next((given[name] for name in VARIABLES if given.get(name)), "")
    home = Path(given.get("HOME", "/nonexistent"))
    defaults = [home / place[2:] if place.startswith("~") else Path(place) for place in PLACES]
    for place in [Path(named)] if named else defaults:
        if place.is_dir():
            return Toolkit(place, _route(place, given.get("PATH", "")))
    raise CannError(
        "cann-missing", "no CANN toolkit is installed here", Place(named),
        seen=f"{named} is no folder" if named else "none of its variables and default places",
    )  # fmt: skip


def _route(home: Path, path: str) -> str:
    if any(_calls_it(home / part / "tikcpp" / "ascendc_kernel_cmake") for part in _MODULES):
        return "asc"
    return "msopgen" if Toolkit(home, "").program("msopgen", path) is not None else ""


def _calls_it(folder: Path) -> bool:
    return any(_FUNCTION in file.read_bytes() for file in sorted(folder.rglob("*.cmake")))


def find_devices(folder: Path = _DEVICES) -> list[str]:
    """Names of the device nodes of NPUs."""
    return sorted(path.name for path in folder.glob("davinci[0-9]*"))
