"""What is done when a call fails in a way that may pass: pause, and try again."""

from __future__ import annotations

from collections.abc import Callable

from npusmith.agent.talk import Answer
from npusmith.errors import NpusmithError

PAUSE = 0.5  # seconds before the second attempt; doubled each time
_MOST_PAUSE = 60.0
_TEXTUAL = {"model-cut", "model-garbled", "model-empty"}  # worth one more try, not six


class Again(Exception):
    """An attempt that failed in a way that may pass; `after`: seconds that the server asks for."""

    def __init__(self, code: str, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.after = code, message, after


def insist(
    once: Callable[[], Answer],
    attempts: int,
    sleep: Callable[[float], None],
    seen: str,
    pause: float = PAUSE,
) -> Answer:
    """The answer of the first attempt that has one; raises the last one's error."""
    for attempt in range(attempts):
        try:
            return once()
        except Again as error:
            last = error
        if last.code in _TEXTUAL and attempt:
            break
        if attempt + 1 < attempts:
            wanted = pause * 2**attempt if last.after is None else last.after
            sleep(min(max(wanted, 0.0), _MOST_PAUSE))
    raise NpusmithError(last.code, last.message, seen=seen)
