"""Runs under gdb: what `npusmith run --gdb` starts instead of the runner alone.

gdb lives in the sandbox with the runner. Its own Python takes debug_stops.py, which stops it at
findings and shows lines, variables and tensors.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import TwinError
from npusmith.twin import scan
from npusmith.twin.project import read_text

SESSION_SECONDS = 86400.0  # a person looks on: no limit that one would meet
_STOPS = Path(__file__).with_name("debug_stops.py")
_SUFFIXES = (".asc", ".cpp", ".cc", ".h", ".hpp")
_INSTALL = "install gdb with Python (Debian, Ubuntu: apt install gdb), or run without --gdb"


@dataclass(frozen=True, slots=True)
class Debugger:
    """`gdb`: the program. `core`: stop where this block begins, too. `sources`: folders with the
    files that it shows; `entries`: the kernels in them."""

    gdb: str
    sources: tuple[Path, ...] = ()
    core: int | None = None
    entries: tuple[str, ...] = ()

    def command(self, runner: Sequence[str], folder: Path) -> list[str]:
        """The command that runs the runner under gdb; its script is written into `folder`."""
        script = folder / "stops.py"
        ours = str(Path(__file__).parent)
        settings = {"core": self.core, "ours": ours, "entries": self.entries}
        text = _STOPS.read_text(encoding="utf-8")
        script.write_text(f"SETTINGS = {json.dumps(settings)!r}\n{text}", encoding="utf-8")
        # nothing that the kernel's files bring is run, and there are no threads to look for
        first = ("set auto-load off", "set libthread-db-search-path /nonexistent", "set sysroot /")
        words = [word for line in first for word in ("-iex", line)]
        return [self.gdb, "-q", "-nx", *words, "-x", str(script), "--args", *runner]


def find_debugger(sources: Sequence[Path], core: int | None = None) -> Debugger:
    """TwinError debugger-missing when this machine has no gdb, or one without Python."""
    gdb = shutil.which("gdb")
    if gdb is None:
        raise TwinError("debugger-missing", "gdb is not on this machine", hint=_INSTALL)
    probe = [gdb, "-q", "-nx", "-batch", "-ex", "python print(6 * 7)"]
    said = subprocess.run(probe, capture_output=True, text=True, check=False, timeout=60)
    if said.stdout.strip() != "42":
        raise TwinError("debugger-missing", "this gdb has no Python", seen=gdb, hint=_INSTALL)
    folders = tuple(source.resolve() for source in sources)
    return Debugger(gdb, folders, core, _entries(folders))


def _entries(folders: Sequence[Path]) -> tuple[str, ...]:
    """The names of the kernels in these folders."""
    files = sorted(file for folder in folders for file in folder.rglob("*"))
    texts = [read_text(file) for file in files if file.suffix in _SUFFIXES and file.is_file()]
    found = (entry.name for text in texts for entry in scan.find_entries(scan.blank(text)))
    return tuple(sorted(set(found)))
