"""A rich console that takes strangers' text: no markup, no control characters, no broken pipe."""

from __future__ import annotations

import os
from typing import TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from npusmith.report.text import plain

_PIPE = 200  # characters of a line where nobody says how wide it is


class Screen:
    """Lines and tables on one stream; colour only on a terminal and never with NO_COLOR."""

    def __init__(self, stream: TextIO) -> None:
        self.console = _Console(file=stream, highlight=False, markup=False, emoji=False)
        if not self.console.is_terminal and "COLUMNS" not in os.environ:
            self.console.width = _PIPE  # whoever reads a pipe has lines of any length

    @property
    def narrow(self) -> bool:
        return self.console.width < 72

    @property
    def live(self) -> bool:
        """Whether a line may be drawn again in place."""
        return self.console.is_terminal and not self.console.is_dumb_terminal

    def line(self, text: str = "", style: str = "") -> None:
        """One line, never cut: a path must stay whole for whoever copies it."""
        self.console.print(Text(plain(text), style=style), soft_wrap=True)

    def pair(self, label: str, text: str, style: str = "") -> None:
        """`label` in a column of its own, text after it."""
        self.console.print(
            Text.assemble((f"  {label:<10} ", "dim"), (plain(text), style)), soft_wrap=True
        )

    def table(self, heads: tuple[str, ...], rows: list[tuple[str, ...]], most: int) -> None:
        """A table; a narrow terminal gets only its first `most` columns."""
        columns = range(most if self.narrow else len(heads))
        table = Table(box=None, pad_edge=False, header_style="dim")
        for index in columns:
            table.add_column(heads[index], justify="right" if index else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(plain(row[index])) for index in columns))
        self.console.print(Padding(table, (0, 0, 0, 2), expand=False))


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """A reader that went away is no failure of ours: go on quietly, keep the exit code."""
        self.quiet = True
        drop(self.file.fileno())


def drop(handle: int) -> None:
    """Sends what is still to be written to nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, handle)
    os.close(null)
