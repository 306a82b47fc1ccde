"""Real traffic on disk: `Recorder` writes each call as a line of JSON, `Replay` answers from it.

Equal requests are answered in the order in which they were recorded. Errors are recorded too, so
that a replayed run takes the same turns. No header, and so no key, is in the file.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from npusmith.agent.talk import Answer, Model, Request
from npusmith.errors import CODES, NpusmithError, Place
from npusmith.store.refusal import named_errors

_MOST_BYTES = 1 << 30


class Recorder:
    """A Model that writes down what another one says; several processes may share the file."""

    def __init__(self, model: Model, path: Path) -> None:
        self.name, self._model, self._path = model.name, model, path
        with named_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            _mend(path)

    def ask(self, request: Request) -> Answer:
        try:
            answer = self._model.ask(request)
        except NpusmithError as error:
            self._write(request, {"error": {"code": error.code, "message": error.message}})
            raise
        self._write(request, {"answer": answer.model_dump(mode="json")})
        return answer

    def _write(self, request: Request, rest: dict[str, Any]) -> None:
        row = {"key": request.digest, "request": request.model_dump(mode="json"), **rest}
        data = json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with named_errors(self._path), self._path.open("ab", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(data)


class Replay:
    """A Model that says again what was recorded; replay-missing for what was not."""

    def __init__(self, path: Path, name: str = "replay") -> None:
        self.name, self._path = name, path
        self._rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._told: dict[str, int] = defaultdict(int)
        self._lock = threading.Lock()
        for number, line in enumerate(_lines(path), 1):
            row = _row(path, number, line)
            self._rows[row["key"]].append(row)

    def ask(self, request: Request) -> Answer:
        key = request.digest
        with self._lock:
            at = self._told[key]
            self._told[key] += 1
        if at >= len(self._rows[key]):
            raise NpusmithError(
                "replay-missing", f"{self._path} does not hold this call",
                Place(str(self._path)), seen=f"request {key[:12]}, time {at + 1}",
            )  # fmt: skip
        row = self._rows[key][at]
        if "error" in row:
            raise NpusmithError(row["error"]["code"], row["error"]["message"])
        return Answer.model_validate(row["answer"])


def _mend(path: Path) -> None:
    """Takes away half a line that a killed process left."""
    if not path.is_file() or not path.stat().st_size:
        return
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        data = file.read()
        if not data.endswith(b"\n"):
            file.truncate(data.rfind(b"\n") + 1)
            os.fsync(file.fileno())


def _lines(path: Path) -> list[str]:
    place = Place(str(path))
    if not path.is_file():
        raise NpusmithError("file-missing", f"{path} does not exist", place)
    if path.stat().st_size > _MOST_BYTES:
        raise NpusmithError("file-unusable", f"{path} is too large", place)
    text = path.read_bytes().decode("utf-8", "replace")
    whole = text if text.endswith("\n") else text[: text.rfind("\n") + 1]
    return [line for line in whole.split("\n") if line.strip()]


def _row(path: Path, number: int, line: str) -> dict[str, Any]:
    """One line, checked: somebody may have edited the file."""
    try:
        row = json.loads(line)
        assert isinstance(row["key"], str)
        if "error" in row:
            assert row["error"]["code"] in CODES and isinstance(row["error"]["message"], str)
        else:
            Answer.model_validate(row["answer"])
    except (
        ValueError,
        KeyError,
        TypeError,
        AssertionError,
        RecursionError,
        ValidationError,
    ) as error:
        seen = f"{type(error).__name__}: {error}"[:200]
        place = Place(str(path), number)
        raise NpusmithError("file-unusable", f"{path} is no recording", place, seen=seen) from error
    return dict(row)
