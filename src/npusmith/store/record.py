"""result.json: strict JSON text, and the mark that says npusmith wrote a folder."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

from npusmith.version import __version__

RESULT = "result.json"
_MARK = "made_by"
_CODE = ("op_kernel/**/*", "op_host/**/*", "*.json")  # of a project
_MOST_BYTES = 64 << 20  # of a result.json; whatever is larger is not ours
# DEL, C1 and the marks that reorder text, as in report/text.py; JSON escapes what is below a space
_OBEYED = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def to_json(data: object, *, indent: int | None = 2) -> str:
    """JSON text of plain data; strict: figures that JSON has no number for become strings.

    What a terminal would obey is escaped: such a document is often read on one.
    """
    text = json.dumps(_strict(data), indent=indent, allow_nan=False, ensure_ascii=False)
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def write_result(folder: Path, data: Mapping[str, object]) -> Path:
    """Writes result.json with the mark that lets a later run replace the folder."""
    path = folder / RESULT
    marked = {_MARK: f"npusmith {__version__}", **data}
    path.write_text(to_json(marked) + "\n", encoding="utf-8")
    return path


def read_result(folder: Path) -> dict[str, object] | None:
    """What write_result was given; None when the folder holds no result of npusmith."""
    path = folder / RESULT
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:  # a pipe would never end
            return None
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not str(data.pop(_MARK, "")).startswith("npusmith "):
        return None
    return data


def code_digest(folder: Path) -> str:
    """Of the files that decide what an operator computes: kernels, host code, bindings."""
    total = hashlib.sha256()
    found = (
        path
        for pattern in _CODE
        for path in folder.glob(pattern)
        if path.is_file() and path.name != RESULT
    )
    for name, path in sorted((path.relative_to(folder).as_posix(), path) for path in found):
        data = path.read_bytes()
        total.update(f"{name}\0{len(data)}\0".encode())
        total.update(data)
    return total.hexdigest()[:24]


def _strict(data: object) -> object:
    if isinstance(data, float) and not math.isfinite(data):
        # the names that pydantic reads back as floats
        return "NaN" if math.isnan(data) else "Infinity" if data > 0 else "-Infinity"
    if isinstance(data, Mapping):
        return {str(key): _strict(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_strict(item) for item in data]
    return data
