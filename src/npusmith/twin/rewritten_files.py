"""Copies of a kernel's files in which what only the vendor's compiler takes is rewritten.

`Copies.of(root, texts)` lays every file out below `root` under its own absolute path, so that what
one includes by a relative path is the copy again. Each copy says by `#line` whose it is: messages,
findings and coverage name the user's file, and lines stay lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from npusmith.twin import accept, launchsyntax


@dataclass(frozen=True, slots=True)
class Copies:
    """`files`: the originals of what lies below `root`."""

    root: Path
    files: frozenset[Path]

    @classmethod
    def of(cls, root: Path, texts: Mapping[Path, str], *, launches: bool = False) -> Copies:
        """Copies of all of them; none where no text has to be rewritten.

        `launches`: of kernels are calls; without it they become nothing (launchsyntax.py).
        """
        new = {
            file: launchsyntax.rewrite(accept.rewrite(text), str(file), drop=not launches)
            for file, text in texts.items()
        }
        if new == texts:
            return cls(root, frozenset())
        for file, text in new.items():
            copy = _below(root, file)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(f"#line 1 {json.dumps(str(file))}\n{text}")
        return cls(root, frozenset(new))

    def place(self, file: Path) -> Path:
        """Where the compiler reads a file."""
        return _below(self.root, file) if file in self.files else file

    def folders(self, folders: Iterable[Path]) -> list[Path]:
        """What the compiler searches in place of these: copies before files that have none."""
        folders = list(folders)
        copies = [_below(self.root, folder) for folder in folders] if self.files else []
        return [*(folder for folder in copies if folder.is_dir()), *folders]


def _below(root: Path, path: Path) -> Path:
    return root / path.relative_to(path.anchor)
