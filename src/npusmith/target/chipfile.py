"""A chip out of a user's TOML file: `read_chip(path, ...) -> Chip`, or chip-file.

name = "mine"
base = "910B2"        # optional: what the file does not say is taken from that chip
vector_cores = 40
cube_cores = 20
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from npusmith.errors import NpusmithError, Place

if TYPE_CHECKING:
    from npusmith.target.chips import Chip

_MOST_BYTES = 1 << 16
_KB, _GB = 1024, 1024**3
_FIXED = {"arch": "dav-2201", "npu_arch": 2201}  # the only core that the twin models
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_SOC = re.compile(r"Ascend910(?:B|_93)[A-Za-z0-9_-]{0,20}")


@dataclass(frozen=True, slots=True)
class _Range:
    """Whole numbers that are legal, and of what they must be a multiple."""

    low: int
    high: int
    step: int = 1

    def __str__(self) -> str:
        words = f"a whole number from {self.low:,} to {self.high:,}"
        return words if self.step == 1 else f"{words}, a multiple of {self.step}"

    def holds(self, value: object) -> bool:
        return (
            isinstance(value, int)
            and not isinstance(value, bool)
            and self.low <= value <= self.high
            and value % self.step == 0
        )


RANGES: dict[str, _Range] = {
    "cube_cores": _Range(1, 512),
    "vector_cores": _Range(2, 1024),
    "clock_mhz": _Range(100, 10_000),
    "hbm_bytes": _Range(1 << 20, 4096 * _GB),
    "l2_bytes": _Range(0, 16 * _GB),  # 0: no L2
    "hbm_gbps": _Range(1, 100_000),
    "ub_total_bytes": _Range(16 * _KB, 2048 * _KB, 32),  # a block address has 16 bits
    "ub_reserved_bytes": _Range(256, 2048 * _KB, 32),
    "l1_bytes": _Range(16 * _KB, 16 * _KB * _KB, 32),
    "l0a_bytes": _Range(4 * _KB, 4096 * _KB, 512),
    "l0b_bytes": _Range(4 * _KB, 4096 * _KB, 512),
    "l0c_bytes": _Range(4 * _KB, 4096 * _KB, 1024),
    "bias_table_bytes": _Range(64, 64 * _KB, 64),
    "fixpipe_bytes": _Range(64, 64 * _KB, 64),
    "block_bytes": _Range(32, 32),  # of dav-2201, as the repeat
    "repeat_bytes": _Range(256, 256),
    "ddr_bytes_per_cycle": _Range(1, 4096),
    "l2_read_bytes_per_cycle": _Range(1, 4096),
    "l2_write_bytes_per_cycle": _Range(1, 4096),
    "ub_out_bytes_per_cycle": _Range(1, 4096),
    "system_workspace_bytes": _Range(0, _GB, 512),
}
_NEEDED = ("cube_cores", "vector_cores", "clock_mhz", "hbm_bytes", "l2_bytes", "hbm_gbps")
KEYS = ("name", "base", "soc_version", "hbm_basis", *RANGES)


def read_chip(path: str | Path, known: Mapping[str, Chip], usual: Chip) -> Chip:
    """The chip that the file describes; raises chip-file, which names the key and what is legal.

    `known`: the chips that a file may name as its base; what all parts share is that of `usual`.
    """
    place = Place(str(path))
    given = _load(Path(path), place)
    base = _base(given.pop("base", None), known, place)
    name = given.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        _wrong(place, "name", name, "a name of at most 40 letters, digits, _ . and -")
    if name.removeprefix("Ascend").upper() in known:
        _wrong(place, "name", name, "a name that is not a known chip's")
    values = {**(asdict(base) if base is not None else shared(usual)), **given}
    _check(given, values, place)
    return replace(usual, **values)


def _load(path: Path, place: Place) -> dict[str, Any]:
    if not path.exists():
        raise NpusmithError("file-missing", f"{path} does not exist", place, seen=str(path))
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        raise NpusmithError(
            "chip-file", f"{path} is no chip file", place, seen="no plain file, or more than 64 KiB"
        )
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NpusmithError(
            "chip-file", f"{path} is not TOML", place, seen=str(error)[:200]
        ) from error


def _base(name: object, known: Mapping[str, Chip], place: Place) -> Chip | None:
    if name is None:
        return None
    key = name.removeprefix("Ascend").upper() if isinstance(name, str) else ""
    if key not in known:
        _wrong(place, "base", name, ", ".join(known))
    return known[key]


def shared(usual: Chip) -> dict[str, Any]:
    """What a file without a base need not say: what all parts share."""
    values = {key: value for key, value in asdict(usual).items() if key not in _NEEDED}
    return values | {"hbm_basis": "given by the user"}


def _check(given: dict[str, Any], values: dict[str, Any], place: Place) -> None:
    for key in given:
        if key in _FIXED and given[key] != _FIXED[key]:
            _wrong(place, key, given[key], str(_FIXED[key]))
        if key not in KEYS and key not in _FIXED:
            _wrong(place, key, given[key], "the keys " + ", ".join(KEYS))
    for key in ("soc_version", "hbm_basis"):
        if not isinstance(values[key], str):
            _wrong(place, key, values[key], "a text")
    if not _SOC.fullmatch(values["soc_version"]):
        _wrong(place, "soc_version", values["soc_version"], "Ascend910B... or Ascend910_93...")
    if not (values["hbm_basis"].isprintable() and len(values["hbm_basis"]) <= 200):
        _wrong(place, "hbm_basis", values["hbm_basis"], "at most 200 characters on one line")
    for key, legal in RANGES.items():
        if key not in values:
            _wrong(place, key, None, str(legal))
        if not legal.holds(values[key]):
            _wrong(place, key, values[key], str(legal))
    _check_pairs(values, place)


def _check_pairs(values: dict[str, Any], place: Place) -> None:
    """What two keys say together."""
    cubes = values["cube_cores"]
    if values["vector_cores"] != 2 * cubes:
        legal = f"{2 * cubes}: two vector cores for each of {cubes} cube cores"
        _wrong(place, "vector_cores", values["vector_cores"], legal)
    total = values["ub_total_bytes"]
    if values["ub_reserved_bytes"] > total // 2:
        _wrong(place, "ub_reserved_bytes", values["ub_reserved_bytes"], f"at most {total // 2:,}")


def _wrong(place: Place, key: str, seen: object, legal: str) -> NoReturn:
    shown = "nothing" if seen is None else ascii(seen)[:100]
    raise NpusmithError(
        "chip-file",
        f"{key} of the chip file is {'missing' if seen is None else 'not legal'}",
        place,
        seen=f"{key} = {shown}",
        legal=legal,
    )
