"""Progress on stderr: one line a step with its time; on a terminal the running one turns."""

from __future__ import annotations

from time import perf_counter
from types import TracebackType

from rich.status import Status
from rich.text import Text

from npusmith.cli.screen import Screen
from npusmith.report.text import plain

_QUIET = 10.0  # seconds between lines of a stream that is no terminal


class Steps:
    """The pipeline's Progress: `step` is called where a step begins, leaving ends the last one."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._label = ""
        self._start = 0.0
        self._told = 0.0
        self._status: Status | None = None

    def __enter__(self) -> Steps:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end("" if kind is None else "stopped")

    def step(self, name: str, detail: str = "") -> None:
        """Ends the running step and begins the next."""
        self._end("")
        self._label = plain(f"{name}  {detail}" if detail else name).replace("\n", " ")
        self._start = perf_counter()
        if self._screen.live:
            self._status = self._screen.console.status(Text(self._label))
            self._status.start()

    def tell(self, detail: str) -> None:
        """What the running step is at: drawn in place, or a line every ten seconds."""
        if self._status is not None:
            self._status.update(Text(plain(f"{self._label}  {detail}").replace("\n", " ")))
        elif perf_counter() - self._told > _QUIET:
            self._told = perf_counter()
            self._screen.line(f"          {detail}".replace("\n", " "), "dim")

    def _end(self, note: str) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
        if self._label:
            spent = f"{perf_counter() - self._start:6.2f} s  "
            self._screen.line(f"{spent}{self._label}{'  (' + note + ')' if note else ''}", "dim")
        self._label = ""
