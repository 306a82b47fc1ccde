"""An answer on the wire, as events of a stream or as one JSON document; ValueError for neither."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

_MOST_TOKENS = 1 << 30  # of a call; what counts more is not believed


@dataclass(slots=True)
class Parts:
    """What the pieces add up to; `ended`: the server said that this was all."""

    pieces: list[str] = field(default_factory=list)
    usage: tuple[int, int] | None = None  # tokens of prompt and answer
    model: str = ""
    finish: str = ""
    ended: bool = False
    error: str = ""
    calls: dict[int, list[str]] = field(default_factory=dict)  # arguments of tools, in pieces

    @property
    def text(self) -> str:
        """What was said; where a model only called tools that nobody offered, what it gave them."""
        said = "".join(self.pieces)
        return said if said.strip() or not self.calls else _given(self.calls)


def read_events(chunks: Iterable[bytes]) -> Parts:
    """Server-sent events up to [DONE], or to the end with a finish reason."""
    parts = Parts()
    for line in _lines(chunks):
        if not line.startswith("data:"):
            continue  # comments, event names, empty lines between events
        data = line[5:].strip()
        if data == "[DONE]":
            parts.ended = True
            break
        if data:
            _take(parts, _parse(data), "delta")
    parts.ended = parts.ended or bool(parts.finish)
    parts.finish = parts.finish or "stop"
    return parts


def read_whole(chunks: Iterable[bytes]) -> Parts:
    """One JSON document, from servers that do not stream."""
    parts = Parts()
    _take(parts, _parse(b"".join(chunks).decode()), "message")
    parts.ended = True
    parts.finish = parts.finish or "stop"
    return parts


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    left = ""
    for chunk in chunks:
        left += decoder.decode(chunk)
        *whole, left = left.split("\n")
        yield from (line.rstrip("\r") for line in whole)
    left += decoder.decode(b"", final=True)
    if left:
        yield left


def _parse(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError("not JSON") from error
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    return data


def _take(parts: Parts, data: dict[str, Any], key: str) -> None:
    """Adds one document. Anything may stand in it, so nothing is taken for what it should be."""
    if data.get("error"):
        parts.error = json.dumps(data["error"])
    parts.model = str(data.get("model") or parts.model)
    usage = data.get("usage")
    if isinstance(usage, dict):
        counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
        if all(isinstance(item, int) and 0 <= item < _MOST_TOKENS for item in counts):
            parts.usage = (int(counts[0] or 0), int(counts[1] or 0))
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return
    said = choice.get(key)
    content = said.get("content") if isinstance(said, dict) else None
    if isinstance(content, str):
        parts.pieces.append(content)
    for call in said.get("tool_calls") or () if isinstance(said, dict) else ():
        _take_call(parts, call)
    if isinstance(choice.get("finish_reason"), str):
        parts.finish = str(choice["finish_reason"])


def _take_call(parts: Parts, call: Any) -> None:
    function = call.get("function") if isinstance(call, dict) else None
    given = function.get("arguments") if isinstance(function, dict) else None
    at = call.get("index", 0) if isinstance(call, dict) else 0
    if isinstance(given, str) and isinstance(at, int):
        parts.calls.setdefault(at, []).append(given)


def _given(calls: dict[int, list[str]]) -> str:
    """The longest text among the arguments of calls, in a fence: a program, if there is one."""
    texts: list[str] = []
    for pieces in calls.values():
        try:
            data = json.loads("".join(pieces))
        except (ValueError, RecursionError):
            continue
        values = data.values() if isinstance(data, dict) else ()
        texts += [item for item in values if isinstance(item, str)]
    longest = max(texts, key=len, default="")
    if not longest or "```" in longest:
        return longest
    return f"```\n{longest.rstrip()}\n```\n"
