"""The texts that a report shows: what lies in the result folder, as it lies there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from npusmith.report.color import Line, colour, language
from npusmith.report.text import plain
from npusmith.sandbox.folder import files_beneath

_KERNEL = ("op_kernel", "op_host")
_ENDINGS = (".cpp", ".h", ".hpp")
_MOST_CHARS = 400_000


@dataclass(frozen=True, slots=True)
class Source:
    """One file, coloured. `key` is its anchor in the page, `cut` the characters left out."""

    key: str
    name: str
    lines: tuple[Line, ...]
    cut: int = 0

    @property
    def anchors(self) -> frozenset[str]:
        """Those of its lines."""
        return frozenset(f"{self.key}-L{number + 1}" for number in range(len(self.lines)))


def read_sources(folder: Path) -> tuple[Source, ...]:
    """Tile programs first, then kernels, then host code."""
    paths = [*sorted(folder.glob("*.tile.py"))]
    for part in _KERNEL:
        found = (path for path in files_beneath(folder / part) if path.suffix in _ENDINGS)
        paths += [path for path in found if path.is_file() and not path.is_symlink()]
    return tuple(
        make_source(f"f{index}", path.relative_to(folder).as_posix(), _text(path))
        for index, path in enumerate(paths)
    )


def make_source(key: str, name: str, text: str) -> Source:
    """The text of a file, safe to show."""
    shown = plain(text[:_MOST_CHARS]).rstrip("\n")
    return Source(key, name, colour(shown, language(name)), max(0, len(text) - _MOST_CHARS))


def find_line(sources: tuple[Source, ...], file: str, line: int) -> str:
    """The anchor of a finding's line; "" when the page does not hold it.

    The file was seen from elsewhere (a build folder): its last parts decide.
    """
    wanted = PurePosixPath(file.replace("\\", "/")).parts
    for source in sources:
        parts = PurePosixPath(source.name).parts
        if wanted[-len(parts) :] == parts and 1 <= line <= len(source.lines):
            return f"{source.key}-L{line}"
    return ""


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
