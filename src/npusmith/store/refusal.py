"""Which of our codes a refusal of the operating system is."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from npusmith.errors import NpusmithError, Place

_CODES: dict[int, str] = {
    errno.ENOSPC: "disk-full",
    errno.EDQUOT: "disk-full",
    errno.EFBIG: "disk-full",  # the file-size limit of the process
    errno.EACCES: "file-denied",
    errno.EPERM: "file-denied",
    errno.EROFS: "file-denied",
    errno.ENOTDIR: "file-denied",
    errno.EEXIST: "file-denied",
    errno.ENAMETOOLONG: "file-denied",
    errno.ENOENT: "file-missing",
    errno.EISDIR: "file-unusable",
    errno.ELOOP: "file-unusable",
    errno.ENXIO: "file-unusable",
    errno.EIO: "file-unusable",
}


def refusal(error: OSError) -> str:
    """A key of errors.CODES, or "" when the error says nothing about files or room."""
    return _CODES.get(error.errno or 0, "")


@contextmanager
def named_errors(target: Path) -> Iterator[None]:
    """Raises what the system refuses as an error with a code; the OSError stays its cause."""
    try:
        yield
    except OSError as error:
        code = refusal(error)
        if not code:
            raise
        message = f"writing {target} failed: {error.strerror}"
        raise NpusmithError(code, message, Place(str(error.filename or target))) from error
