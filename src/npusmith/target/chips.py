"""Chip descriptions: sizes and rates with their sources. 910B2 is the default.

Sources: DK = vendor developer guide pages; INI = platform configuration shipped with CANN 8.x;
PERF = vendor micro-benchmark notes.
"""

from __future__ import annotations

from dataclasses import dataclass

from npusmith.errors import NpusmithError


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


_GB = 1024**3
_MB = 1024**2

CHIPS: dict[str, Chip] = {
    chip.name: chip
    for chip in (
        # INI for cores, clock, HBM and L2
        Chip("910B1", "Ascend910B1", "dav-2201", 2201, 24, 48, 1850, 64 * _GB, 192 * _MB),
        Chip("910B2", "Ascend910B2", "dav-2201", 2201, 24, 48, 1800, 64 * _GB, 192 * _MB),
        Chip("910B3", "Ascend910B3", "dav-2201", 2201, 20, 40, 1800, 64 * _GB, 192 * _MB),
        Chip("910B4", "Ascend910B4", "dav-2201", 2201, 20, 40, 1500, 32 * _GB, 96 * _MB),
    )
}

DEFAULT_CHIP = "910B2"


def find_chip(name: str) -> Chip:
    """The chip of that name (`Ascend` in front is allowed); raises chip-unknown."""
    key = name.removeprefix("Ascend").upper()
    if key not in CHIPS:
        raise NpusmithError(
            "chip-unknown", f"no chip is called {name!r}", seen=name, legal=", ".join(CHIPS)
        )
    return CHIPS[key]
