"""The chip as a C++ header: the only place from which the twin's C++ learns sizes."""

from __future__ import annotations

from npusmith.target.chips import Chip


def _facts(chip: Chip) -> tuple[tuple[str, int | str, str], ...]:
    return (
        ("TWIN_CHIP_NAME", f'"{chip.name}"', "name of the row in target/chips.py"),
        ("TWIN_NPU_ARCH", chip.npu_arch, "value of __NPU_ARCH__"),
        ("TWIN_CUBE_CORES", chip.cube_cores, "AIC"),
        ("TWIN_VECTOR_CORES", chip.vector_cores, "AIV"),
        ("TWIN_UB_TOTAL_BYTES", chip.ub_total_bytes, "unified buffer of one vector core"),
        ("TWIN_UB_BYTES", chip.ub_bytes, "of which a kernel may divide"),
        ("TWIN_UB_SYSTEM_BYTES", 256, "at the top, never a kernel's"),
        ("TWIN_BLOCK_BYTES", chip.block_bytes, "unit of on-chip moves"),
        ("TWIN_REPEAT_BYTES", chip.repeat_bytes, "one vector repeat"),
        ("TWIN_SYSTEM_WORKSPACE_BYTES", chip.system_workspace_bytes, "before a user's workspace"),
        ("TWIN_L1_BYTES", chip.l1_bytes, "of one cube core, as are L0A, L0B, L0C and the tables"),
        ("TWIN_L0A_BYTES", chip.l0a_bytes, ""),
        ("TWIN_L0B_BYTES", chip.l0b_bytes, ""),
        ("TWIN_L0C_BYTES", chip.l0c_bytes, ""),
        ("TWIN_BIAS_TABLE_BYTES", chip.bias_table_bytes, ""),
        ("TWIN_FIXPIPE_BYTES", chip.fixpipe_bytes, ""),
        ("TWIN_L2_BYTES", f"{chip.l2_bytes}ull", "of the whole chip"),
        ("TWIN_HBM_BYTES", f"{chip.hbm_bytes}ull", "of the whole chip"),
        ("TWIN_DDR_BYTES_PER_CYCLE", chip.ddr_bytes_per_cycle, "of one core"),
        ("TWIN_L2_BYTES_PER_CYCLE", chip.l2_read_bytes_per_cycle, "of one core, reading"),
    )


def chip_header(chip: Chip) -> str:
    """Text of `twin/chip.h` for one chip."""
    lines = [
        f"// Facts of {chip.soc_version}, generated from npusmith/target/chips.py.",
        "#pragma once",
        "",
    ]
    lines += [
        f"#define {name} {value}" + (f"  // {note}" if note else "")
        for name, value, note in _facts(chip)
    ]
    return "\n".join(lines) + "\n"
