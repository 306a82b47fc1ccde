"""Where the first run of a candidate leaves its log for the timing model, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_LAUNCHES = 64  # of one run; later ones are not timed


@dataclass(frozen=True, slots=True)
class Recording:
    """`path`: the log of the first launch; the second is `path`.1, and so on."""

    path: Path
    most_steps: int | None = None  # of a core; None: the recorder's own limit

    def options(self) -> dict[str, Any]:
        """What `twin.run` is given."""
        limit = {} if self.most_steps is None else {"most_steps": self.most_steps}
        return {"record": self.path, **limit}

    def logs(self) -> list[Path]:
        """The logs that are there, in the order of the launches."""
        return find_logs(self.path)


def find_logs(path: Path) -> list[Path]:
    """`path`, `path`.1, ... as far as they are plain files without a gap."""
    names = [path, *(path.with_name(f"{path.name}.{at}") for at in range(1, MOST_LAUNCHES))]
    found = []
    for name in names:
        if name.is_symlink() or not name.is_file():
            break
        found.append(name)
    return found
