"""What a user adds to a project so that it is read and compiled as their build does it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import Place, TwinError

_NAME = re.compile(r"[A-Za-z]\w*(?:=[^\n]*)?")


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """`op`: which operator, by its type or its entry's name; `include`: folders of headers;
    `define`: NAME or NAME=VALUE; `debug`: compiled so that a debugger sees every line and variable.
    """

    op: str = ""
    include: tuple[Path, ...] = ()
    define: tuple[str, ...] = ()
    debug: bool = False

    def check(self) -> None:
        """TwinError build-option for a folder that is not there, or what is no definition."""
        for folder in self.include:
            if not folder.is_dir():
                raise TwinError("build-option", f"-I {folder} is not a folder", Place(str(folder)))
        for text in self.define:
            if not _NAME.fullmatch(text):
                raise TwinError("build-option", f"-D {text} is not NAME or NAME=VALUE", seen=text)


PLAIN = BuildOptions()
