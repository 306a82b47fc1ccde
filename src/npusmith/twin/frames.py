"""Messages on a pipe, `send(fd, head, blobs)` and `receive(fd)`: a JSON object, then raw bytes.

Whoever reads believes nothing: lengths are bounded, and a broken frame is a ValueError.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Head: TypeAlias = dict[str, Any]
Wait: TypeAlias = Callable[[int, bool], None]  # until fd can be read (False) or written (True)
Blob: TypeAlias = "bytes | bytearray | memoryview"

_START = struct.Struct("<4sI")
_MARK = b"npsm"
_HEAD_BYTES = 16 << 20
_BYTES = 16 << 30  # of all blobs of one message
_CHUNK = 1 << 20


def send(fd: int, head: Head, blobs: Sequence[Any] = (), wait: Wait | None = None) -> None:
    """Write one message whole; `blobs` are objects with a buffer of bytes."""
    views = [memoryview(blob).cast("B") for blob in blobs]
    text = json.dumps({**head, "sizes": [len(view) for view in views]}).encode()
    _write(fd, memoryview(_START.pack(_MARK, len(text)) + text), wait)
    for view in views:
        _write(fd, view, wait)


def receive(fd: int, wait: Wait | None = None) -> tuple[Head, list[bytearray]]:
    """The next message; EOFError at the end of the pipe, ValueError for anything else."""
    mark, size = _START.unpack(_read(fd, _START.size, wait))
    if mark != _MARK or size > _HEAD_BYTES:
        raise ValueError("no message")
    head = _parse(_read(fd, size, wait))
    sizes = head.pop("sizes", None)
    if not isinstance(sizes, list) or not all(type(item) is int and item >= 0 for item in sizes):
        raise ValueError("a message without sizes")
    if sum(sizes) > _BYTES:
        raise ValueError("a message that is too long")
    return head, [_read(fd, item, wait) for item in sizes]


def _parse(text: bytearray) -> Head:
    try:
        head = json.loads(text)
    except RecursionError as error:
        raise ValueError("a message nested too deeply") from error
    if not isinstance(head, dict):
        raise ValueError("a message without a head")
    return head


def _read(fd: int, size: int, wait: Wait | None) -> bytearray:
    data = bytearray()
    while len(data) < size:  # grows with what arrives, not with what was announced
        if wait is not None:
            wait(fd, False)
        try:
            part = os.read(fd, min(_CHUNK, size - len(data)))
        except BlockingIOError:
            continue
        if not part:
            raise EOFError("the other side is gone")
        data += part
    return data


def _write(fd: int, data: memoryview, wait: Wait | None) -> None:
    while data:
        if wait is not None:
            wait(fd, True)
        try:
            data = data[os.write(fd, data[:_CHUNK]) :]
        except BlockingIOError:
            continue
