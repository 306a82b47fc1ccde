"""Chip descriptions: sizes and rates with their sources. 910B2 is the default.

A chip is a row of CHIPS, or a TOML file of the user's: `find_chip("910B3")`,
`find_chip("mine.toml")`. The file is read in target/chipfile.py.

Sources: DK = vendor developer guide pages; INI = platform configuration shipped with CANN 8.x;
PERF = vendor micro-benchmark notes.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from npusmith.errors import NpusmithError

_FAMILY = re.compile(r"ascend910(?:b|_93)")


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip. Sizes in bytes, clock in MHz, bandwidths in bytes per core clock cycle per core."""

    name: str
    soc_version: str  # what host code and msopgen call it
    arch: str  # compile architecture
    npu_arch: int  # __NPU_ARCH__
    cube_cores: int  # AIC
    vector_cores: int  # AIV
    clock_mhz: int
    hbm_bytes: int
    l2_bytes: int
    hbm_gbps: int  # 10^9 bytes a second that streaming reaches, of the whole chip
    hbm_basis: str  # where that rate comes from: measured, documented, derived, guess
    ub_total_bytes: int = 192 * 1024  # DK: unified buffer of one AIV
    # DK: 256 B at the top are the system's, and 8 KB below are used by some API internals
    ub_reserved_bytes: int = 256 + 8 * 1024
    l1_bytes: int = 512 * 1024  # DK
    l0a_bytes: int = 64 * 1024  # INI
    l0b_bytes: int = 64 * 1024  # INI
    l0c_bytes: int = 128 * 1024  # INI
    bias_table_bytes: int = 1024  # DK
    fixpipe_bytes: int = 2048  # DK
    block_bytes: int = 32  # DK: unit of on-chip moves
    repeat_bytes: int = 256  # DK: one vector repeat
    ddr_bytes_per_cycle: int = 32  # INI
    l2_read_bytes_per_cycle: int = 110  # INI
    l2_write_bytes_per_cycle: int = 86  # INI
    ub_out_bytes_per_cycle: int = 64  # INI
    system_workspace_bytes: int = 16 * 1024 * 1024  # DK: GetLibApiWorkSpaceSize

    @property
    def ub_bytes(self) -> int:
        """Bytes of UB that a kernel may divide among its buffers."""
        return self.ub_total_bytes - self.ub_reserved_bytes

    @property
    def family(self) -> str:
        """`ascend910b` or `ascend910_93`, as AddConfig and msopgen spell it."""
        found = _FAMILY.match(self.soc_version.lower())
        return found[0] if found else self.soc_version.lower()

    def record(self) -> str | dict[str, Any]:
        """What `of_record` makes this chip from again: its name, or all of it."""
        return self.name if CHIPS.get(self.name) == self else asdict(self)


_GB = 1024**3
_MB = 1024**2
_B1 = "measured: data_copy example of asc-devkit on 910B1, all cores, 1.48-1.49 TB/s"
_B2 = "measured: eager sigmoid, gelu, exp of 8192x8192 fp32 on 910B2, 1.49-1.52 TB/s"
_AS_B1 = "guess: as 910B1, no measurement of this part"
_AS_B2 = "guess: as 910B2, no measurement of this part"
_HALF = "guess: half of 910B2, as its memory; no measurement of this part"


def _row(name: str, cubes: int, clock: int, hbm_gb: int, l2_mb: int, rate: int, basis: str) -> Chip:
    """INI for cores, clock, HBM and L2; every part of the family has two AIV for each AIC."""
    return Chip(
        name, f"Ascend{name}", "dav-2201", 2201, cubes, 2 * cubes, clock, hbm_gb * _GB,
        l2_mb * _MB, rate, basis,
    )  # fmt: skip


CHIPS: dict[str, Chip] = {
    chip.name: chip
    for chip in (
        _row("910B1", 24, 1850, 64, 192, 1490, _B1),
        _row("910B2", 24, 1800, 64, 192, 1510, _B2),
        _row("910B2C", 24, 1800, 64, 192, 1510, _AS_B2),  # guess: INI gives no memory size
        _row("910B3", 20, 1800, 64, 192, 1510, _AS_B2),
        _row("910B4", 20, 1500, 32, 96, 755, _HALF),
        _row("910B4-1", 20, 1500, 32, 168, 755, _HALF),
        # of one die: a module has two
        _row("910_9391", 24, 1850, 64, 192, 1490, _AS_B1),
        _row("910_9392", 24, 1850, 64, 192, 1490, _AS_B1),
        _row("910_9381", 24, 1800, 64, 192, 1510, _AS_B2),
        _row("910_9382", 24, 1800, 64, 192, 1510, _AS_B2),
        _row("910_9372", 20, 1800, 64, 192, 1510, _AS_B2),
        _row("910_9362", 20, 1500, 32, 168, 755, _HALF),
    )
}

DEFAULT_CHIP = "910B2"


def lasting_name(chip: str) -> str:
    """What another process finds it by: a name of the table, or the whole path of its file."""
    name = find_chip(chip).name
    return name if name in CHIPS else str(Path(chip).resolve())


def find_chip(name: str) -> Chip:
    """The chip of that name (`Ascend` in front is allowed), or that a .toml file describes.

    Raises chip-unknown, chip-file.
    """
    if name.endswith(".toml"):
        from npusmith.target.chipfile import read_chip

        return read_chip(name, CHIPS, CHIPS[DEFAULT_CHIP])
    key = name.removeprefix("Ascend").upper()
    if key not in CHIPS:
        raise NpusmithError(
            "chip-unknown", f"no chip is called {name!r}", seen=name,
            legal=", ".join(CHIPS) + ", or a file of yours that ends with .toml",
        )  # fmt: skip
    return CHIPS[key]


def of_record(record: object) -> Chip:
    """The chip that `Chip.record` wrote down; chip-unknown, TypeError for anything else."""
    if isinstance(record, dict):
        return Chip(**record)
    return find_chip(str(record))
