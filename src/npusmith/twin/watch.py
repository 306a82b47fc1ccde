"""What a run on the twin looks out for beside wrong values, and how the project is compiled."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from npusmith.twin.debugger import Debugger
from npusmith.twin.options import PLAIN, BuildOptions

_AUTO_SYNC_OFF = re.compile(r"--cce-auto-sync\s*=\s*off\b")
_BUILD_FILES = ("CMakeLists.txt", "op_kernel/CMakeLists.txt")
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Watch:
    """`auto_sync`: the compiler adds barriers; None: as the project's build files say (on in CANN).

    `notes`: also report what costs time and what auto-sync hides. `shuffle`: a seed of another
    order of the blocks, to find results that depend on it; 0 is their own order. `build`: what the
    user adds to a project. `debugger`: runs under it, and the user looks on.
    """

    auto_sync: bool | None = None
    notes: bool = False
    shuffle: int = 0
    build: BuildOptions = PLAIN
    debugger: Debugger | None = None

    def line(self, root: Path) -> str:
        """The order for the runner (runtime/host/request.h)."""
        auto = has_auto_sync(root) if self.auto_sync is None else self.auto_sync
        return f"check {int(auto)} {int(self.notes)} {self.shuffle}"


def has_auto_sync(root: Path) -> bool:
    """Whether the project's CMake files leave --cce-auto-sync on, as it is by default."""
    return not any(_AUTO_SYNC_OFF.search(_text(root / name)) for name in _BUILD_FILES)


def _text(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        lines = file.read(_MOST_BYTES).decode("utf-8", "replace").splitlines()
    return "\n".join(line.partition("#")[0] for line in lines)
