"""Kernels of cube cores: what passes make of them, and forms that the corpus does not have, run on
the twin bit for bit as the interpreter says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npusmith.errors import LowerError
from npusmith.ir.nodes import Const, Program, Role
from npusmith.lang import parse
from npusmith.lower import lower
from npusmith.lower.project import project_files
from npusmith.target.chips import Chip
from npusmith.twin import check_source

Shape = tuple[int, ...]


def product(name: str, dtype: str, turned_a: bool, turned_b: bool, out: str) -> str:
    """A kernel `name` that writes c_<name>; a is m x k or k x m, b k x n or n x k."""
    total = "int32" if dtype == "int8" else "float32"
    sides_a, sides_b = ("BK, BM" if turned_a else "BM, BK"), ("BN, BK" if turned_b else "BK, BN")
    load_a = "a[at * m + row], rows, rows=deep, pitch=m" if turned_a else (
        "a[row * k + at], deep, rows=rows, pitch=k")  # fmt: skip
    load_b = "b[col * k + at], deep, rows=cols, pitch=k" if turned_b else (
        "b[at * n + col], cols, rows=deep, pitch=n")  # fmt: skip
    return f"""
@kernel
def {name}(a: input({dtype}), b: input({dtype}), c_{name}: output({out}), m: int, n: int, k: int):
    a1 = l1({sides_a}, {dtype})
    b1 = l1({sides_b}, {dtype})
    a0 = l0a(BM, BK, {dtype})
    b0 = l0b(BK, BN, {dtype})
    c0 = l0c(BM, BN, {total})
    wide = ceil_div(n, BN)
    for tile in range(core_id(), ceil_div(m, BM) * wide, core_count()):
        row = tile // wide * BM
        col = tile % wide * BN
        rows = min(BM, m - row)
        cols = min(BN, n - col)
        for at in range(0, k, BK):
            deep = min(BK, k - at)
            with copy_in:
                load(a1, {load_a})
                load(b1, {load_b})
            with split:
                load(a0, a1, rows, deep{", transposed=True" if turned_a else ""})
                load(b0, b1, deep, cols{", transposed=True" if turned_b else ""})
            with compute:
                mmad(c0, a0, b0, rows, cols, deep, at > 0)
        with copy_out:
            store(c_{name}[row * n + col], c0, cols, rows=rows, pitch=n)
"""


LAYOUTS = {"nn": (False, False), "nt": (False, True), "tn": (True, False), "tt": (True, True)}


def square_products(dtype: str, out: str) -> str:
    """All four layouts of one element type; m = n = k, so that one pair of inputs serves them."""
    names = [f"c_{name}" for name in LAYOUTS]
    launches = "\n".join(f"    launch({name}, 3, m=m, n=m, k=m)" for name in LAYOUTS)
    kernels = "".join(product(name, dtype, *turned, out) for name, turned in LAYOUTS.items())
    host = f"@host\ndef host(a, b, {', '.join(names)}):\n    m = a.shape[0]\n{launches}\n"
    return f"BM = 64\nBN = 96\nBK = 64\n\n{host}{kernels}"


@pytest.mark.parametrize(
    ("dtype", "out"),
    [("float16", "bfloat16"), ("bfloat16", "float16"), ("float32", "float32"), ("int8", "int32")],
)
def test_both_sides_of_a_product_may_be_transposed(
    dtype: str, out: str, samples: Any, chip: Chip, tmp_path: Path
) -> None:
    program = parse(square_products(dtype, out))
    for side in (1, 17, 49, 131):
        shape = (side, side)
        folder = tmp_path / str(side)
        samples.compare(program, [shape] * 2, [shape] * 4, chip, folder)


CHAIN = '''
"""(a @ b) @ c on cube cores alone: the first product goes through workspace, all cores wait"""
BM = 16

@host
def host(a, b, c, y):
    launch(chain, 4, m=a.shape[0], k=a.shape[1], n=b.shape[1], p=c.shape[1],
           t=a.shape[0] * b.shape[1])

@kernel
def chain(
    a: input(float16), b: input(float16), c: input(float16), y: output(float32),
    t: scratch(float16), m: int, k: int, n: int, p: int
):
    a1 = l1(BM, 64, float16)
    b1 = l1(64, 64, float16)
    a0 = l0a(BM, 64, float16)
    b0 = l0b(64, 64, float16)
    c0 = l0c(BM, 64, float32)
    for row in range(core_id() * BM, m, core_count() * BM):
        rows = min(BM, m - row)
        with copy_in:
            load(a1, a[row * k], k, rows=rows, pitch=k)
            load(b1, b, n, rows=k, pitch=n)
        with split:
            load(a0, a1, rows, k)
            load(b0, b1, k, n)
        with compute:
            mmad(c0, a0, b0, rows, n, k, False)
        with copy_out:
            store(t[row * n], c0, n, rows=rows, pitch=n, relu=True)
    sync_cores()
    for first in range(core_id() * BM, m, core_count() * BM):
        row = m - min(m, first + BM)
        rows = min(BM, m - first)
        with copy_in:
            load(a1, t[row * n], n, rows=rows, pitch=n)
            load(b1, c, p, rows=n, pitch=p)
        with split:
            load(a0, a1, rows, n)
            load(b0, b1, n, p)
        with compute:
            mmad(c0, a0, b0, rows, p, n, False)
        with copy_out:
            store(y[row * p], c0, p, rows=rows, pitch=p)
'''

AGAIN = '''
"""a core stores workspace, loads it, and stores it again; pieces of one matrix; no elements"""
@host
def host(a, y):
    launch(again, 1, m=a.shape[0], t=a.shape[0] * a.shape[0])

@kernel
def again(a: input(float16), y: output(float32), t: scratch(float16), m: int):
    a1 = l1(48, 48, float16)
    b1 = l1(48, 48, float16)
    a0 = l0a(48, 48, float16)
    b0 = l0b(48, 48, float16)
    c0 = l0c(48, 48, float32)
    with copy_in:
        load(a1, a, m, rows=16, pitch=m)
        load(a1[16, 0], a[16 * m], m, rows=m - 16, pitch=m)
        load(b1, a, m, rows=m, pitch=m)
        load(b1, a, m - m, rows=m, pitch=m)
    with split:
        load(a0, a1, m, m)
        load(b0, b1, m, m, transposed=True)
    with compute:
        mmad(c0, a0, b0, m, m, m, False)
        mmad(c0, a0, b0, m, m, m, True)
    with copy_out:
        store(t, c0, m, rows=m, pitch=m)
    for turn in range(2):
        with copy_in:
            load(a1, t, m, rows=m, pitch=m)
            load(b1, a, m, rows=m, pitch=m)
        with split:
            load(a0, a1, m, m)
            load(b0, b1, m, m)
        with compute:
            mmad(c0, a0, b0, m, m, m, False)
        with copy_out:
            store(t, c0, m, rows=m, pitch=m)
    with copy_in:
        load(a1, t, m, rows=m, pitch=m)
        load(b1, a, m, rows=m, pitch=m)
    with split:
        load(a0, a1, m, m)
        load(b0, b1, m, m)
    with compute:
        mmad(c0, a0, b0, m, m, m, False)
    with copy_out:
        store(y, c0, 16, rows=m, pitch=m)
        store(y[16], c0[0, 16], m - 16, rows=32, pitch=m)
        store(y[32 * m + 16], c0[32, 16], m - 16, rows=m - 32, pitch=m)
'''

BYTES = '''
"""int8 with a bias of int32, both sides transposed in squares; a left operand that stays"""
BM = 64
BN = 32

@host
def host(a, b, v, y):
    launch(bytes, 2, m=a.shape[1], k=a.shape[0], n=b.shape[1])

@kernel
def bytes(
    a: input(int8), b: input(int8), v: input(int32), y: output(int32), m: int, k: int, n: int
):
    a1 = l1(96, BM, int8)
    b1 = l1(96, BN, int8)
    v1 = l1(1, BN, int32)
    a0 = l0a(BM, 96, int8)
    b0 = l0b(96, BN, int8)
    v0 = bias_table(1, BN, int32)
    c0 = l0c(BM, BN, int32)
    for row in range(core_id() * BM, m, core_count() * BM):
        rows = min(BM, m - row)
        with copy_in:
            load(a1, a[row], rows, rows=k, pitch=m)
        with split:
            load(a0, a1, rows, k, transposed=True)
        for col in range(0, n, BN):
            cols = min(BN, n - col)
            with copy_in:
                load(b1, b[col], cols, rows=k, pitch=n)
                load(v1, v[col], cols)
            with split:
                load(b0, b1, k, cols)
                load(v0, v1, 1, cols)
            with compute:
                mmad(c0, a0, b0, rows, cols, k, False, bias=v0)
            with copy_out:
                store(y[row * n + col], c0, cols, rows=rows, pitch=n, relu=True)
'''

FAR = '''
"""rows further apart than a copy that lays out fractals can say"""
@host
def host(a, b, y):
    launch(far, 1, m=a.shape[0], pitch=a.shape[1], n=b.shape[1], k=b.shape[0])

@kernel
def far(
    a: input(float16), b: input(float16), y: output(float32), m: int, pitch: int, n: int, k: int
):
    a1 = l1(16, 32, float16)
    b1 = l1(32, 16, float16)
    a0 = l0a(16, 32, float16)
    b0 = l0b(32, 16, float16)
    c0 = l0c(16, 16, float32)
    with copy_in:
        load(a1, a[5], k, rows=m, pitch=pitch)
        load(b1, b, n, rows=k, pitch=n)
    with split:
        load(a0, a1, m, k)
        load(b0, b1, k, n)
    with compute:
        mmad(c0, a0, b0, m, n, k, False)
    with copy_out:
        store(y, c0, n, rows=m, pitch=n)
'''


@pytest.mark.parametrize(
    ("text", "shapes", "outputs"),
    [
        (CHAIN, [(70, 41), (41, 33), (33, 50)], [(70, 50)]),
        (AGAIN, [(41, 41)], [(41, 41)]),
        (BYTES, [(70, 131), (70, 45), (45,)], [(131, 45)]),
        (FAR, [(5, 70_000), (23, 7)], [(5, 7)]),
    ],
    ids=["chain", "again", "bytes", "far"],
)
def test_an_unusual_program_means_the_same_on_the_twin(
    text: str, shapes: Any, outputs: Any, samples: Any, chip: Chip, tmp_path: Path
) -> None:
    samples.compare(parse(text), shapes, outputs, chip, tmp_path)


# ------------------------------------------------------------------------------------- passes


def files(name: str, samples: Any, chip: Chip) -> dict[str, str]:
    program = samples.program(name)
    spec = samples.spec(program, *samples.shapes(name)[0])
    return project_files(lower(program, chip), chip, spec)


def lowered(samples: Any, chip: Chip, name: str = "matmul") -> Program:
    return lower(samples.program(name), chip)


def test_matrices_have_the_positions_of_their_memories(samples: Any, chip: Chip) -> None:
    roles = {item.name: item.role for item in lowered(samples, chip).kernel.buffers}
    assert roles == {"a1": Role.A1, "b1": Role.B1, "a0": Role.A2, "b0": Role.B2, "c0": Role.CO1}


def test_each_memory_is_divided_by_itself(samples: Any, chip: Chip) -> None:
    depths = {item.name: item.depth for item in lowered(samples, chip).kernel.buffers}
    assert depths == {"a1": 2, "b1": 2, "a0": 2, "b0": 2, "c0": 1}  # L0C holds one 128 x 256


def test_what_does_not_fit_is_refused_where_nobody_has_checked(samples: Any, chip: Chip) -> None:
    program = samples.program("matmul")
    wide = tuple(replace(item, cols=Const(4096)) for item in program.kernel.buffers)
    program = replace(program, kernels=(replace(program.kernel, buffers=wide),))
    with pytest.raises(LowerError) as caught:
        lower(program, chip)
    assert caught.value.code == "lower-capacity"


@pytest.mark.parametrize(
    ("name", "kind", "cores"),
    [
        ("matmul", "AIC_ONLY", "cubeCores"),
        ("linear_gelu", "MIX_AIC_1_2", "cubeCores"),
        ("two_kernels", "MIX_AIV_1_0", "vectorCores"),
        ("add", "AIV_ONLY", "vectorCores"),
    ],
)
def test_a_kernel_says_on_which_cores_it_runs(
    name: str, kind: str, cores: str, samples: Any, chip: Chip
) -> None:
    made = files(name, samples, chip)
    kernel = next(text for path, text in made.items() if path.startswith("op_kernel/"))
    host = next(text for path, text in made.items() if path.startswith("op_host/"))
    assert re.findall(r"KERNEL_TYPE_(\w+)", kernel) == [kind]
    assert cores in host
    direct = next(text for path, text in made.items() if path.endswith(".asc"))
    assert re.findall(r"KERNEL_TYPE_(\w+)", direct) == [kind]


def test_kernels_of_both_kinds_wait_for_all_cores_between_them(samples: Any, chip: Chip) -> None:
    made = files("linear_gelu", samples, chip)
    kernel = next(text for path, text in made.items() if path.startswith("op_kernel/"))
    entry = kernel[kernel.index("#ifndef") :]
    parts = ["ASCEND_IS_AIC", "SyncAll<false>", "ASCEND_IS_AIV"]
    places = [entry.index(part) for part in parts]
    assert places == sorted(places)
    assert "(2 * GetBlockNum())" in kernel


def test_cube_cores_alone_wait_by_a_flag_of_their_own(samples: Any, chip: Chip) -> None:
    program = parse(square_products("float16", "float32"))
    spec = samples.spec(program, [(8, 8)] * 2, [(8, 8)] * 4)
    made = project_files(lower(program, chip), chip, spec)
    kernel = next(text for path, text in made.items() if path.endswith("_custom.cpp"))
    assert kernel.count("_kernel::SyncCubes();") == 3
    assert "SyncAll" not in kernel
    assert re.findall(r"KERNEL_TYPE_(\w+)", kernel) == ["MIX_AIC_1_0"]


def test_the_direct_launch_of_both_kinds_compiles(samples: Any, chip: Chip, tmp_path: Path) -> None:
    for path, text in files("linear_gelu", samples, chip).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (source,) = tmp_path.glob("direct/*.asc")
    assert check_source(source, chip) == []
