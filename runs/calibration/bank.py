"""A tuning record of the matmul bank as a launch of kernels/matmul.asc.

The record says how the problem is dealt to cores, the tiles in L1 and L0 and which buffers are
double; what it does not say is ours: loops run over all of K inside a tile of C; the side whose K
fits L1 whole is the outer one, so that it is fetched once (both: the way with fewer fetches).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

_L1, _L0, _L0C = 512 << 10, 64 << 10, 128 << 10
_FRACTAL = 512  # bytes of 16 x 16 half


@dataclass(frozen=True, slots=True)
class Plan:
    """Field for field the kernel's struct Plan; sizes in blocks of 16."""

    batch: int
    m: int
    k: int
    n: int
    trans_a: int
    trans_b: int
    nz: int
    out_nd: int
    out_float: int
    blocks_b: int
    blocks_m: int
    blocks_n: int
    l0_m: int
    l0_n: int
    l0_k: int
    whole_b: int
    l1_k_a: int
    l1_m_a: int
    l1_k_b: int
    l1_n_b: int
    depth_a1: int
    depth_b1: int
    depth_a0: int
    depth_b0: int
    depth_c0: int
    m_outer: int

    def packed(self) -> bytes:
        """As the launcher takes it."""
        values = [getattr(self, field.name) for field in fields(self)]
        return struct.pack(f"<{len(values)}i", *values)

    @property
    def blocks(self) -> int:
        return self.blocks_b * self.blocks_m * self.blocks_n

    @property
    def products(self) -> int:
        """Mmad instructions of the whole launch, about."""
        tiles = -(-self.m // self.l0_m) * -(-self.n // self.l0_n)
        return self.batch * tiles * -(-self.k // self.l0_k)

    @property
    def steps(self) -> int:
        """Steps of the log, about: loads row by row, an Mmad and its flags."""
        loads = min(self.l0_m, self.l0_k) + min(self.l0_n, self.l0_k)
        return self.products * (loads + 12)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Bytes of A, B and C."""
        a, b = self.batch * self.m * self.k, self.batch * self.k * self.n
        return (
            a * _FRACTAL,
            b * _FRACTAL,
            self.batch * self.m * self.n * _FRACTAL * (2 if self.out_float else 1),
        )

    def double(self) -> bool:
        """Are L1 and L0 all double-buffered?"""
        return self.depth_a1 == self.depth_b1 == self.depth_a0 == self.depth_b0 == 2

    def refusal(self) -> str:
        """Why the kernel cannot run it as it stands; empty: it can."""
        a1 = min(self.l1_k_a, self.k) * self.l1_m_a * self.l0_m * self.depth_a1 * _FRACTAL
        b1 = min(self.l1_k_b, self.k) * self.l1_n_b * self.l0_n * self.depth_b1 * _FRACTAL
        k_b = self.k if self.whole_b else self.l0_k
        if a1 + b1 > _L1:
            return f"tiles of {a1 + b1} B in L1"
        if self.l0_m * self.l0_k * self.depth_a0 * _FRACTAL > _L0:
            return "tile in L0A"
        if self.l0_n * k_b * self.depth_b0 * _FRACTAL > _L0:
            return "tile in L0B"
        if self.l0_m * self.l0_n * self.depth_c0 * 2 * _FRACTAL > _L0C:
            return "tile in L0C"
        return ""


def plan_of(row: Mapping[str, str]) -> Plan:
    """The launch of one row of matmul.csv."""
    m, k, n = (int(row[name]) // 16 for name in "mkn")
    per_m, per_n = -(-m // int(row["blocks_m"])), -(-n // int(row["blocks_n"]))
    l0_m, l0_n = min(int(row["l0c_m"]), per_m), min(int(row["l0c_n"]), per_n)
    plan = Plan(
        batch=int(row["b"]),
        m=m,
        k=k,
        n=n,
        trans_a=int(row["trans_a"]),
        trans_b=int(row["trans_b"]),
        nz=int(row["inputs"] == "nz"),
        out_nd=int(row["out_nd"]),
        out_float=int(row["out_fp32"]),
        blocks_b=int(row["blocks_b"]),
        blocks_m=int(row["blocks_m"]),
        blocks_n=int(row["blocks_n"]),
        l0_m=l0_m,
        l0_n=l0_n,
        l0_k=_deep(row["ka"], k),
        whole_b=int(row["kb"] == "full"),
        l1_k_a=_deep(row["al1_k"], k, 16),
        l1_m_a=int(row["al1_m"]),
        l1_k_b=_deep(row["bl1_k"], k, 16),
        l1_n_b=int(row["bl1_n"]),
        depth_a1=int(row["pp_a1"]),
        depth_b1=int(row["pp_b1"]),
        depth_a0=int(row["pp_a0"]),
        depth_b0=int(row["pp_b0"]),
        depth_c0=int(row["pp_c0"]),
        m_outer=0,
    )
    return replace(plan, m_outer=int(_rows_outside(plan)))


def _deep(text: str, k: int, unit: int = 1) -> int:
    return k if text == "full" else min(k, int(text) // unit)


def _rows_outside(plan: Plan) -> bool:
    if plan.whole_b:  # what stays in L0B must not be asked for in turns
        return False
    whole_a, whole_b = plan.l1_k_a >= plan.k, plan.l1_k_b >= plan.k
    if whole_a != whole_b:
        return whole_a
    if not whole_a:
        return False
    m, n = -(-plan.m // plan.blocks_m), -(-plan.n // plan.blocks_n)
    tiles_m, tiles_n = -(-m // (plan.l0_m * plan.l1_m_a)), -(-n // (plan.l0_n * plan.l1_n_b))
    rows = m + n * (tiles_m if tiles_n > 1 else 1)
    columns = n + m * (tiles_n if tiles_m > 1 else 1)
    return rows < columns
