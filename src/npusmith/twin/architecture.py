"""Which folders and files of a project are for other chips: `keep_ours(folder, files)`.

Operator libraries keep variants for chips apart by names: `op_kernel/arch35/`,
`op_host/ascend310p/`, `gelu_tiling_arch35.cpp`; beside `gelu.cpp`, `gelu_apt.cpp` is the kernel of
register-based chips. Atlas A2 and A3 (dav-2201) are arch22, in older trees arch32.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePath

_OURS = ("22", "32")
_ARCH = re.compile(r"(?:^|_)(?:arch|v)(\d\d)(?=_|$)")
_SOC = re.compile(r"(?:^|_)(?:ascend(?!910_?(?:b|93)(?!\d))\w+|kirin\w+|mc\d\d\w*)$")
_ENDS = re.compile(r"_(?:regbase(?=_|$)|950$|310p$)")
_TWIN = "_apt"


def keep_ours(folder: Path, files: Iterable[Path]) -> list[Path]:
    """Those of the files below op_host or op_kernel that are not for other chips alone."""
    ours = [file for file in files if not is_foreign(file.relative_to(folder))]
    twins = {file.with_stem(file.stem + _TWIN) for file in ours}
    return [file for file in ours if file not in twins]


def is_foreign(path: PurePath) -> bool:
    """`path` relative to op_host or op_kernel: is it for other chips than dav-2201?"""
    *folders, file = path.parts
    stem = file.partition(".")[0]
    if any(_of_other(part) or _SOC.search(part) for part in folders):
        return True
    return _of_other(stem) or _ENDS.search(stem) is not None


def _of_other(name: str) -> bool:
    return any(number not in _OURS for number in _ARCH.findall(name))
