"""Every error of the tile language, from texts that cause it; `# !` marks the line it names."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from npusmith.errors import CODES, LangError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Alloc, Deque, Enque, Free, Program
from npusmith.lang import check, check_all, interpret, parse
from npusmith.target.chips import DEFAULT_CHIP, find_chip

CHIP = find_chip(DEFAULT_CHIP)

BASE = '''"""relu"""
TILE = 64

@host
def host(x, y):
    size = x.size
    launch(k, 1, n=size)

@kernel
def k(x: input(float32), y: output(float32), n: int):
    xt = ub(TILE, float32)
    yt = ub(TILE, float32)
    with copy_in:
        load(xt, x, n)
    with compute:
        relu(yt, xt, n)
    with copy_out:
        store(y, yt, n)
'''


@dataclass(frozen=True)
class Bad:
    """BASE with pieces replaced, in order; `run` says that only a run shows the error."""

    code: str
    edits: tuple[str, ...]  # old, new, old, new ...
    run: bool = False
    size: int = 40

    def __str__(self) -> str:
        return f"{self.code}: {self.edits[-1].strip()[:40]}"

    @property
    def text(self) -> str:
        text = BASE
        for old, new in zip(self.edits[::2], self.edits[1::2], strict=True):
            assert old in text, old
            text = text.replace(old, new, 1)
        return text

    @property
    def line(self) -> int | None:
        marked = [at for at, line in enumerate(self.text.split("\n"), 1) if "# !" in line]
        return marked[0] if marked else None


def bad(code: str, *edits: str) -> Bad:
    return Bad(code, edits)


def runs(code: str, *edits: str, size: int = 40) -> Bad:
    return Bad(code, edits, run=True, size=size)


RELU = "        relu(yt, xt, n)\n"
LOAD = "        load(xt, x, n)\n"
STORE = "        store(y, yt, n)\n"
SIZE = "    size = x.size\n"
LAUNCH = "    launch(k, 1, n=size)\n"
HEAD = "def k(x: input(float32), y: output(float32), n: int):\n"
BUFFER = "    yt = ub(TILE, float32)\n"
COMPUTE = "    with compute:\n"
COPY_IN = "    with copy_in:\n"
COPY_OUT = "    with copy_out:\n"
TILE = "TILE = 64\n"


def line(text: str, indent: int = 8) -> str:
    return " " * indent + text + "\n"


def more(buffer: str, rest: str = "") -> tuple[str, str]:
    """One more buffer declaration."""
    return BUFFER, BUFFER + line(buffer, 4) + rest


CASES: tuple[Bad, ...] = (
    # ---- reading
    bad("lang-syntax", RELU, line("relu(yt, xt n)  # !")),
    bad("lang-syntax", RELU, line("relu(yt, xt, '  # !")),
    bad("lang-syntax", "TILE = 64", "TILE = 64\0"),
    bad("lang-syntax", "TILE = 64", "TILE = 0x_ # !"),
    bad("lang-too-large", "TILE = 64", "TILE = " + "9" * 20_000 + "  # !"),
    bad("lang-syntax", "TILE = 64", "TILE = 64  # \ud800"),
    bad("lang-too-large", "TILE = 64", "# " + "x" * 1_100_000),
    bad("lang-too-large", RELU, line("a = 1" + " + 1" * 5000 + "  # !")),
    bad("lang-too-deep", RELU, line("a = " + "(" * 40 + "1" + ")" * 40 + "  # !")),
    bad("lang-too-deep", RELU, line("a = " + "-" * 150 + "1  # !")),
    bad("lang-too-deep", RELU, line("a = 1" + " + 1" * 150 + "  # !")),
    bad("lang-text", RELU, line("'\\ud800'  # !") + RELU),
    bad("lang-module", "TILE = 64", "TILE = 64\nimport os  # !"),
    bad("lang-module", "TILE = 64", "TILE = 64\nfrom math import inf  # !"),
    bad("lang-module", "TILE = 64", "TILE = 64\nif True:  # !\n    B = 2"),
    bad("lang-module", "TILE = 64", "TILE = 64\nprint(1)  # !"),
    bad("lang-module", "TILE = 64", "TILE = 64\nclass A:  # !\n    pass"),
    bad("lang-const", "TILE = 64", "TILE = other + 2  # !"),
    bad("lang-const", "TILE = 64", "TILE = True  # !"),
    bad("lang-const", "TILE = 64", "TILE = 64\nTILE = 65  # !"),
    bad("lang-const", "TILE = 64", "TILE = 64\nA, B = 65  # !"),
    bad("lang-const", "TILE = 64", "TILE = 64 // 0  # !"),
    bad("lang-const", "TILE = 64", "TILE = 64 + 1.0  # !"),
    bad("lang-const", "TILE = 64", "TILE = 4000000000 * 4000000000  # !"),
    bad("lang-functions", "@kernel\n", ""),
    bad("lang-functions", "@kernel\n", "@kernel()\n"),
    bad("lang-functions", "@host\n", "@kernel\n"),
    bad("lang-functions", TILE, TILE + "def other():  # !\n    pass\n"),
    bad("lang-param", HEAD, "def k(x, y: output(float32), n: int):  # !\n"),
    bad("lang-param", HEAD, "def k(x: input(float32), y: output(float32), n: bool):  # !\n"),
    bad("lang-param", HEAD, "def k(x: input(float32), y: output(float32), n: int = 3):  # !\n"),
    bad("lang-param", HEAD, "def k(x: input(float32), y: output(float32), *n):  # !\n"),
    bad("lang-param", HEAD, "def k(x: inout(float32), y: output(float32), n: int):  # !\n"),
    bad("lang-param", "def host(x, y):", "def host(x: int, y):  # !"),
    bad("lang-param", "def host(x, y):", "def host(y, x):  # !"),
    bad("lang-param", "def host(x, y):", "def host(x):  # !", SIZE, line("size = x.size", 4)),
    bad("lang-dtype", BUFFER, line("yt = ub(TILE, fp32)  # !", 4)),
    bad("lang-dtype", BUFFER, line("yt = ub(TILE, tl.float32)  # !", 4)),
    bad("lang-dtype", BUFFER, line("yt = ub(TILE, 'float32')  # !", 4)),
    bad("lang-dtype", *more("bt = ub(TILE, bool)  # !")),
    bad("lang-statement", RELU, line("while n > 0:  # !") + line("n = n - 1", 12)),
    bad("lang-statement", RELU, line("return n  # !")),
    bad("lang-statement", RELU, line("for i in x:  # !") + "    " + RELU),
    bad("lang-statement", RELU, line("for i in range(2):  # !") + "    " + RELU + line("else:")
        + "    " + RELU),
    bad("lang-statement", RELU, line("for i, j in range(2):  # !") + "    " + RELU),
    bad("lang-statement", RELU, line("n + 1  # !")),
    bad("lang-statement", RELU, line("m: int = 3  # !")),
    bad("lang-statement", RELU, line("def f():  # !") + line("pass", 12)),
    bad("lang-statement", COMPUTE, "    with compute():  # !\n"),
    bad("lang-statement", COMPUTE, "    with compute as c:  # !\n"),
    bad("lang-statement", COMPUTE, "    with computee:  # !\n"),
    bad("lang-expression", RELU, line("a = [i for i in range(3)]  # !")),
    bad("lang-expression", RELU, line("a = n ** 2  # !")),
    bad("lang-expression", RELU, line("a = n << 2  # !")),
    bad("lang-expression", RELU, line("a = ~n  # !")),
    bad("lang-expression", RELU, line("a = 'text'  # !")),
    bad("lang-expression", RELU, line("a = None  # !")),
    bad("lang-expression", RELU, line("a = 2j  # !")),
    bad("lang-expression", RELU, line("a = lambda: 1  # !")),
    bad("lang-expression", RELU, line("a = f'{n}'  # !")),
    bad("lang-expression", RELU, line("a = n is n  # !")),
    bad("lang-expression", RELU, line("a = n in n  # !")),
    bad("lang-expression", RELU, line("a = xt[0]  # !")),
    bad("lang-expression", RELU, line("n **= 2  # !")),
    bad("lang-expression", RELU, line("a = (lambda: 1)()  # !")),
    bad("lang-expression", RELU, line("relu(yt[0:4], xt, n)  # !")),
    bad("lang-expression", RELU, line("a = -True  # !")),
    bad("lang-expression", SIZE, line("size = x.shape  # !", 4)),
    bad("lang-expression", SIZE, line("size = x.shape[size]  # !", 4)),
    bad("lang-expression", SIZE, line("size = x.shape[0:1]  # !", 4)),
    bad("lang-number", RELU, line("a = 9223372036854775808  # !")),
    bad("lang-number", RELU, line("a = 0x" + "f" * 3000 + "  # !")),
    bad("lang-number", RELU, line("a = 1e999  # !")),
    bad("lang-number", RELU, line("a = nan  # !")),
    bad("lang-number", RELU, line("a = float('inf')  # !")),
    bad("lang-assign", RELU, line("xt[0] = 1.0  # !")),
    bad("lang-assign", RELU, line("a = b = 1  # !")),
    bad("lang-assign", RELU, line("a, b = 1  # !")),
    bad("lang-assign", RELU, line("a.b = 1  # !")),
    bad("lang-assign", RELU, line("n = 3  # !") + RELU),
    bad("lang-assign", RELU, line("TILE = 3  # !") + RELU),
    bad("lang-assign", RELU, line("xt = 3  # !") + RELU),
    bad("lang-assign", RELU, line("for i in range(3):") + line("i += 1  # !", 12) + RELU),
    bad("lang-assign", RELU, line("i = 3") + line("for i in range(3):  # !") + "    " + RELU),
    bad("lang-assign", SIZE, SIZE + line("x = 3  # !", 4)),
    bad("lang-unknown-op", RELU, line("rlu(yt, xt, n)  # !")),
    bad("lang-unknown-op", RELU, line("a = mni(n, 3)  # !")),
    bad("lang-unknown-op", RELU, line("frobnicate(yt, xt, n)  # !")),
    bad("lang-foreign", RELU, line("Relu(yt, xt, n)  # !")),
    bad("lang-foreign", RELU, line("tl.load(xt, x, n)  # !")),
    bad("lang-foreign", RELU, line("a = math.exp(2.0)  # !")),
    bad("lang-foreign", RELU, line("a = np.float32(n)  # !")),
    bad("lang-foreign", RELU, line("DataCopy(yt, x, n)  # !")),
    bad("lang-foreign", RELU, line("a = tl.program_id(0)  # !")),
    bad("lang-foreign", RELU, line("a = np.inf  # !")),
    bad("lang-foreign", SIZE, line("size = x.numel()  # !", 4)),
    bad("lang-foreign", RELU, line("print(n)  # !")),
    bad("lang-foreign", RELU, line("xt.SetValue(0, 1.0)  # !")),
    bad("lang-foreign", RELU, line("a = len(x)  # !")),
    bad("lang-op-value", RELU, line("yt = relu(xt)  # !")),
    bad("lang-op-value", RELU, line("a = exp(n)  # !")),
    bad("lang-op-value", RELU, line("relu(yt, exp(xt), n)  # !")),
    bad("lang-op-value", COPY_IN, COPY_IN + line("a = load(x)  # !")),
    bad("lang-operands", RELU, line("relu(yt, xt)  # !")),
    bad("lang-operands", RELU, line("relu(yt, xt, n, n)  # !")),
    bad("lang-operands", RELU, line("relu(dst=yt, src=xt, n=n)  # !")),
    bad("lang-operands", RELU, line("relu(*yt, xt, n)  # !")),
    bad("lang-operands", RELU, line("relu(yt, 3, n)  # !")),
    bad("lang-operands", RELU, line("relu(yt[0][1], xt, n)  # !")),
    bad("lang-operands", RELU, line("a = min(n)  # !")),
    bad("lang-operands", RELU, line("a = core_id(3)  # !")),
    bad("lang-operands", RELU, line("a = min(n, b=3)  # !")),
    bad("lang-operands", LOAD, line("load(xt, x)  # !")),
    bad("lang-operands", LOAD, line("load(x, xt, n)  # !")),
    bad("lang-operands", LOAD, line("load(xt, x, n, rows=2)  # !")),
    bad("lang-operands", LOAD, line("load(xt, x, n, stride=2)  # !")),
    bad("lang-operands", STORE, line("store(yt, y, n)  # !")),
    bad("lang-operands", BUFFER, line("yt = ub(TILE)  # !", 4)),
    bad("lang-operands", RELU, RELU + line("sync_cores(1)  # !", 4)),
    bad("lang-operands", RELU, RELU + line("combine_sum(yt, xt, n)  # !", 4)),
    bad("lang-operands", RELU, RELU + line("combine_sum(yt, xt, x[3], n)  # !", 4)),
    bad("lang-operands", RELU, line("for i in range():  # !") + "    " + RELU),
    bad("lang-mode", RELU, line('cast(yt, xt, "CAST_RINT", n)  # !')),
    bad("lang-mode", RELU, line("cast(yt, xt, rint, n)  # !")),
    bad("lang-mode", STORE, line('store(y, yt, n, atomic="mul")  # !')),
    bad("lang-lowered", RELU, line("alloc(yt)  # !")),
    bad("lang-lowered", RELU, line('barrier("V")  # !')),
    bad("lang-host", SIZE, SIZE + line("for i in range(3):  # !", 4) + line("size = i")),
    bad("lang-host", SIZE, SIZE + line("if size > 3:  # !", 4) + line("size = 3")),
    bad("lang-host", SIZE, line("size = core_id()  # !", 4)),
    bad("lang-host", SIZE, line("size = value(x)  # !", 4)),
    bad("lang-host", RELU, line("a = x.shape[0]  # !") + RELU),
    bad("lang-host", RELU, line("a = chip.ub_bytes  # !") + RELU),
    bad("lang-launch", LAUNCH, ""),
    bad("lang-launch", LAUNCH, LAUNCH + line("size = 2  ", 4)),
    bad("lang-launch", LAUNCH, line("launch(k, 1, n=size, n=size)  # !", 4)),
    bad("lang-launch", LAUNCH, line("launch(k, 1, x=other, n=size)  # !", 4)),
    bad("lang-launch", LAUNCH, line("launch(k, 1, x=y, n=size)  # !", 4)),
    bad("lang-launch", LAUNCH, line("launch(k, 1, x=xt, xt=4, n=size)  # !", 4)),
    bad("lang-launch", LAUNCH, line("launch(k, 1, x=w, n=size)  # !", 4)),
    bad("lang-launch", LAUNCH, line("launch(k, n=size)  # !", 4)),
    bad("lang-launch", LAUNCH, line("launch(k, 1, **size)  # !", 4)),
    bad("lang-launch", LAUNCH, line("launch(other, 1, n=size)  # !", 4)),
    bad("lang-launch", LAUNCH, line("launch(k, 1)  # !", 4)),
    bad("lang-launch", LAUNCH, line("launch(k, 1, n=size, m=3)  # !", 4)),
    bad("lang-launch", HEAD, "def k(x: input(float32), y: output(float32), w: scratch(int8), "
        "n: int):\n", LAUNCH, line("launch(k, 1, n=size)  # !", 4)),
    bad("lang-launch", RELU, line("launch(k, 1, n=n)  # !")),
    bad("lang-buffer-place", RELU, line("zt = ub(64, float32)  # !") + RELU),
    bad("lang-buffer-place", COMPUTE, line("a = 1", 4) + line("zt = ub(8, int8)  # !", 4)
        + COMPUTE),
    bad("lang-buffer-place", BUFFER, line("ub(TILE, float32)  # !", 4)),
    bad("lang-buffer-place", BUFFER, line("a = b = ub(TILE, float32)  # !", 4)),
    # ---- names and types
    bad("lang-name", RELU, line("int64_t = 3  # !") + RELU),
    bad("lang-name", RELU, line("exp = 3  # !") + RELU),
    bad("lang-name", RELU, line("chip = 3  # !") + RELU),
    bad("lang-name", RELU, line("a__b = 3  # !") + RELU),
    bad("lang-name", RELU, line("größe = 3  # !") + RELU),
    bad("lang-name", BUFFER, line("xt = ub(TILE, float32)  # !", 4)),
    bad("lang-name", BUFFER, line("n = ub(TILE, float32)  # !", 4)),
    bad("lang-name", RELU, line("for load in range(3):  # !") + "    " + RELU),
    bad("lang-unknown-name", RELU, line("relu(yt, xt, m)  # !")),
    bad("lang-unknown-name", RELU, line("a = a + 1  # !") + RELU),
    bad("lang-unknown-name", RELU, line("if n > 3:") + line("m = 3", 12)
        + line("relu(yt, xt, m)  # !")),
    bad("lang-unknown-name", RELU, line("for i in range(3):") + line("m = i", 12)
        + line("relu(yt, xt, i)  # !")),
    bad("lang-unknown-name", SIZE, line("size = z.size  # !", 4)),
    bad("lang-unknown-name", SIZE, line("size = chip.cores  # !", 4)),
    bad("lang-unknown-name", LAUNCH, line("launch(k, 1, n=sise)  # !", 4)),
    bad("lang-type", RELU, line("a = n * 2.0  # !") + RELU),
    bad("lang-type", RELU, line("a = n / 2  # !") + RELU),
    bad("lang-type", RELU, line("a = 2.0 // 3.0  # !") + RELU),
    bad("lang-type", RELU, line("muls(yt, xt, 2, n)  # !")),
    bad("lang-type", RELU, line("relu(yt, xt, 2.0)  # !")),
    bad("lang-type", RELU, line("relu(yt[0.0], xt, n)  # !")),
    bad("lang-type", RELU, line("if n:  # !") + "    " + RELU),
    bad("lang-type", RELU, line("a = n and True  # !") + RELU),
    bad("lang-type", RELU, line("a = True + True  # !") + RELU),
    bad("lang-type", RELU, line("a = True < False  # !") + RELU),
    bad("lang-type", RELU, line("a = -(1 < 2)  # !") + RELU),
    bad("lang-type", RELU, line("a = 1 if n > 3 else 2.0  # !") + RELU),
    bad("lang-type", RELU, line("a = 1") + line("a = 2.0  # !") + RELU),
    bad("lang-type", RELU, line("a = max(1, 2.0)  # !") + RELU),
    bad("lang-type", RELU, line("a = ceil_div(1.0, 2)  # !") + RELU),
    bad("lang-type", RELU, line("a = x + 1  # !") + RELU),
    bad("lang-type", RELU, line("a = xt + 1  # !") + RELU),
    bad("lang-type", RELU, line("a = float(n > 3)  # !") + RELU),
    bad("lang-type", LAUNCH, line("launch(k, 1, n=2.0)  # !", 4)),
    bad("lang-type", LAUNCH, line("launch(k, 1.0, n=size)  # !", 4)),
    bad("lang-tensor", LOAD, line("load(xt, y, n)  # !")),
    bad("lang-tensor", STORE, line("store(x, yt, n)  # !")),
    bad("lang-tensor", STORE, line("store(z, yt, n)  # !")),
    bad("lang-tensor", STORE, line("store(xt, yt, n)  # !")),
    bad("lang-tensor", HEAD, "def k(y: output(float32), x: input(float32), n: int):  # !\n"),
    bad("lang-tensor", HEAD, "def k(x: input(float32), y: input(float32), n: int):  # !\n"),
    bad("lang-buffer", RELU, line("relu(yt, x, n)  # !")),
    bad("lang-buffer", RELU, line("relu(yt, xx, n)  # !")),
    bad("lang-buffer", RELU, line("relu(yt, n, n)  # !")),
    bad("lang-buffer", RELU, line("relu(yt, xt, int(value(x)))  # !")),
    bad("lang-buffer-length", BUFFER, line("yt = ub(n, float32)  # !", 4)),
    bad("lang-buffer-length", BUFFER, line("yt = ub(0, float32)  # !", 4)),
    bad("lang-buffer-length", BUFFER, line("yt = ub(64.0, float32)  # !", 4)),
    # ---- operations
    bad("lang-op-dtype", RELU, line("bit_not(yt, xt, n)  # !")),
    bad("lang-op-dtype", LOAD, LOAD, BUFFER, line("yt = ub(TILE, float16)", 4), RELU,
        line("relu(yt, xt, n)  # !"), HEAD, HEAD.replace("y: output(float32)",
        "y: output(float16)")),
    bad("lang-op-dtype", *more("it = ub(TILE, int8)"), RELU, line("duplicate(it, 0, n)  # !")
        + RELU),
    bad("lang-op-dtype", *more("it = ub(TILE, bfloat16)"), RELU,
        line("duplicate(it, 0.0, n)") + line("a = value(it)  # !") + RELU),
    bad("lang-op-dtype", BUFFER, line("yt = ub(TILE, float16)", 4), RELU,
        line('cast(yt, xt, "rint", n)'), STORE, line("store(y, yt, n)  # !")),
    bad("lang-op-dtype", *more("ht = ub(TILE, float16)", line("mt = ub(64, uint8)", 4)), RELU,
        line("duplicate(ht, 0.0, n)") + line('compare(mt, xt, ht, "lt", n)  # !') + RELU),
    bad("lang-cast", *more("it = ub(TILE, int8)"), RELU, line('cast(it, xt, "rint", n)  # !')
        + RELU),
    bad("lang-cast", *more("ht = ub(TILE, bfloat16)"), RELU,
        line('cast(ht, xt, "odd", n)  # !') + RELU),
    bad("lang-op-dtype", *more("it = ub(TILE, int16)"), RELU,
        line("create_index(it, 0, n)") + line("gather(yt, xt, it, 0, n)  # !")),
    bad("lang-overlap", *more("it = ub(TILE, int32)"), RELU,
        line("create_index(it, 0, n)") + line("relu(yt, xt, n)")
        + line("gather(yt, yt, it, 0, n)  # !")),
    bad("lang-tmp", *more("pt = ub(8, float32)"), RELU,
        line("reduce_sum(pt, xt, pt, 8)  # !") + RELU),
    bad("lang-tmp", *more("pt = ub(8, float32)", line("tt = ub(64, float16)", 4)), RELU,
        line("reduce_sum(pt, xt, tt, 8)  # !") + RELU),
    bad("lang-tmp", *more("pt = ub(8, float32)", line("tt = ub(32, float32)", 4)), RELU,
        line("reduce_sum(pt, xt, tt, 64)  # !") + RELU),
    bad("lang-mask", *more("mt = ub(64, int8)"), RELU, line("selects(yt, mt, xt, 0.0, n)  # !")),
    bad("lang-mask", *more("mt = ub(7, uint8)"), RELU,
        line('compares(mt, xt, 0.0, "lt", 64)  # !') + RELU),
    bad("lang-mask", *more("mt = ub(7, uint8)"), RELU,
        line('compares(mt, xt, 0.0, "lt", 1)  # !') + RELU),
    bad("lang-overlap", RELU, line("muls(yt, xt, 1.0, n)") + line("relu(yt[8], yt, 16)  # !")),
    bad("lang-overlap", RELU, line("tanh(yt, xt, n)") + line("tanh(yt, yt, n)  # !")),
    bad("lang-overlap", *more("pt = ub(64, float32)", line("tt = ub(64, float32)", 4)), RELU,
        line("reduce_sum(pt, xt, tt, 64)") + line("reduce_sum(pt, pt, tt, 1)  # !") + RELU),
    bad("lang-atomic", HEAD, HEAD.replace("float32", "int64"), "xt = ub(TILE, float32)",
        "xt = ub(TILE, int64)", BUFFER, "", COMPUTE + RELU, "", STORE,
        line('store(y, xt, n, atomic="add")  # !')),
    bad("lang-combine", RELU, RELU + line("combine_sum(yt, yt, x, 8)  # !", 4)),
    bad("lang-combine", HEAD, HEAD.replace("n: int", "w: scratch(float32), n: int"), LAUNCH,
        line("launch(k, 1, n=size, w=64)", 4), RELU,
        RELU + line("combine_sum(yt, yt, w, 8)  # !", 4)),
    bad("lang-combine", HEAD, HEAD.replace("n: int", "w: scratch(float16), n: int"), LAUNCH,
        line("launch(k, 1, n=size, w=64)", 4), *more("pt = ub(8, float32)"), RELU,
        line("relu(pt, xt, 8)") + RELU + line("combine_sum(pt, pt, w, 8)  # !", 4)),
    bad("lang-combine", HEAD, HEAD.replace("n: int", "w: scratch(bfloat16), n: int"), LAUNCH,
        line("launch(k, 1, n=size, w=64)", 4), *more("pt = ub(8, bfloat16)"), RELU,
        line("duplicate(pt, 0.0, 8)") + RELU + line("combine_max(pt, pt, w, 8)  # !", 4)),
    # ---- stages
    bad("lang-stage", COMPUTE + RELU, line("relu(yt, xt, n)  # !", 4)),
    bad("lang-stage", LOAD, LOAD + line("relu(yt, xt, n)  # !")),
    bad("lang-stage", RELU, RELU + line("load(xt, x, n)  # !")),
    bad("lang-stage", RELU, RELU + line("store(y, yt, n)  # !")),
    bad("lang-stage", RELU, line("with compute:  # !") + "    " + RELU),
    bad("lang-stage", RELU, RELU + line("sync_cores()  # !")),
    bad("lang-stage", STORE, line("store(y, yt, int(value(yt)))  # !")),
    bad("lang-divergent", RELU, RELU + line("if core_id() == 0:", 4) + line("sync_cores()  # !")),
    bad("lang-divergent", RELU, RELU + line("a = core_id() + 1", 4)
        + line("for i in range(a):", 4) + line("sync_cores()  # !")),
    bad("lang-divergent", RELU, RELU + line("b = 0", 4) + line("if value(yt) > 0.0:", 4)
        + line("b = 1") + line("for i in range(b):", 4) + line("sync_cores()  # !")),
    # ---- buffers
    bad("lang-buffer-role", RELU, line("relu(xt, xt, n)  # !") + RELU),
    bad("lang-buffer-role", STORE, STORE + line("store(y, xt, n)"), RELU,
        line("relu(yt, xt, n)  # !")),
    bad("lang-lifetime", COPY_IN + LOAD, line("if n > 3:", 4) + "    " + COPY_IN + "    " + LOAD,
        RELU, line("relu(yt, xt, n)  # !")),
    bad("lang-lifetime", COPY_IN + LOAD, "", STORE, STORE + COPY_IN + LOAD, RELU,
        line("relu(yt, xt, n)  # !")),
    bad("lang-lifetime", COMPUTE + RELU, line("for i in range(2):", 4) + line("with compute:")
        + line("relu(yt, xt, n)  # !", 12) + line("with copy_in:") + line("load(xt, x, n)", 12)),
    bad("lang-lifetime", COPY_OUT + STORE, line("for i in range(2):", 4) + line("with copy_out:")
        + line("store(y, yt, n)  # !", 12)),
    bad("lang-lifetime", STORE, STORE + COPY_OUT + line("store(y, yt, n)  # !")),
    bad("lang-lifetime", STORE, STORE + COMPUTE + line("relu(yt, xt, n)  # !")),
    bad("lang-lifetime", STORE, STORE + COMPUTE + line("accumulate_sum(yt, xt, n)  # !")
        + COPY_OUT + STORE),
    bad("lang-lifetime", COMPUTE + RELU + COPY_OUT + STORE, line("for i in range(2):", 4)
        + line("with compute:") + line("relu(yt, xt, n)", 12)
        + line("with copy_out:") + line("store(y, yt, n)", 12)
        + line("with compute:") + line("relu(yt, xt, n)  # !", 12)),
    bad("lang-lifetime", BUFFER, "", COMPUTE + RELU, "", COPY_OUT + STORE,
        line("for i in range(2):", 4) + line("with copy_out:")
        + line("store(y, xt, n)  # !", 12)),
    bad("lang-ub", "TILE = 64", "TILE = 65536", HEAD, HEAD.rstrip() + "  # !\n"),
    bad("lang-unused", *more("zt = ub(TILE, float32)  # !")),
    bad("lang-unused", *more("zt = ub(TILE, float32)  # !"), LOAD, LOAD + line("load(zt, x, n)")),
    bad("lang-unused", HEAD, HEAD.replace("n: int", "n: int, m: int").rstrip() + "  # !\n", LAUNCH,
        line("launch(k, 1, n=size, m=3)", 4)),
    bad("lang-unused", HEAD, HEAD.replace("y:", "z: input(float32), y:").rstrip() + "  # !\n",
        "def host(x, y)", "def host(x, z, y)"),
    bad("lang-unwritten", HEAD, HEAD.replace("n: int", "w: scratch(float32), n: int"), LAUNCH,
        line("launch(k, 1, n=size, w=64)", 4), HEAD.replace("n: int",
        "w: scratch(float32), n: int"),
        HEAD.replace("n: int", "w: scratch(float32), n: int").rstrip() + "  # !\n",
        STORE, line("store(w, yt, n)")),
    bad("lang-unwritten", *more("zt = ub(TILE, float32)  # !"), RELU, line("add(yt, xt, zt, n)")),
    # ---- ranges known before a run
    bad("lang-range", RELU, line("relu(yt, xt, 65)  # !")),
    bad("lang-range", RELU, line("relu(yt, xt[32], 33)  # !")),
    bad("lang-range", RELU, line("relu(yt, xt, -1)  # !")),
    bad("lang-range", RELU, line("m = min(n, 128)") + line("relu(yt, xt, m)  # !")),
    bad("lang-range", LOAD, line("load(xt, x, 65)  # !")),
    bad("lang-range", LOAD, line("load(xt, x, 9, rows=5, pitch=9)  # !")),
    bad("lang-range", LOAD, line("load(xt, x, 9, rows=2, pitch=8)  # !")),
    bad("lang-range", RELU, line("a = value(xt[64])  # !") + RELU),
    bad("lang-range", RELU, line("relu(yt, xt[-8], n)  # !")),
    bad("lang-align", RELU, line("relu(yt, xt[4], 8)  # !")),
    bad("lang-align", LOAD, line("load(xt[1], x, 8)  # !")),
    bad("lang-gm-range", LOAD, line("load(xt, x[-1], n)  # !")),
    bad("lang-divide", RELU, line("for i in range(0, 3, 0):  # !") + "    " + RELU),
    # ---- only a run shows these
    runs("lang-range", RELU, line("relu(yt, xt, n)  # !"), LOAD, line("load(xt, x, 40)"), size=65),
    runs("lang-range", RELU, line("relu(yt, xt, n - 80)  # !")),
    runs("lang-range", LOAD, line("load(xt, x, 9, rows=n, pitch=9)  # !")),
    runs("lang-range", LOAD, line("load(xt, x, n, rows=2, pitch=n - 1)  # !"), size=8),
    runs("lang-range", RELU, line("a = value(xt[n - 41])  # !") + RELU),
    runs("lang-range", *more("it = ub(64, int32)"), RELU,
         line("duplicate(it, 1, 8)") + line("shift_left(it, it, n, 8)  # !") + RELU),
    runs("lang-range", *more("it = ub(TILE, int32)"), RELU, line("duplicate(it, 0, n)")
        + line("gather(yt, xt, it, 6 * n + 16, n)  # !")),
    runs("lang-range", *more("it = ub(TILE, int32)"), RELU, line("duplicate(it, 0, n)")
        + line("gather(yt, xt, it, 0 - n, n)  # !")),
    runs("lang-range", HEAD, HEAD.replace("n: int", "w: scratch(float32), n: int"), LAUNCH,
         line("launch(k, 1, n=size, w=0 - size)  # !", 4), STORE, STORE + line("store(w, yt, n)")),
    runs("lang-mask", RELU, line("relu(yt, xt, n)"), *more("mt = ub(1, uint8)"), RELU,
         line('compares(mt, xt, 0.0, "lt", n)  # !') + RELU),
    runs("lang-align", RELU, line("relu(yt, xt[n - 39], 1)  # !")),
    runs("lang-align", *more("it = ub(TILE, int32)"), RELU, line("create_index(it, 0, n)")
        + line("gather(yt, xt, it, 0, n)  # !")),
    runs("lang-overlap", RELU, line("muls(yt, xt, 1.0, n)")
        + line("relu(yt[n - 32], yt, 16)  # !")),
    runs("lang-gm-range", LOAD, line("load(xt, x[n], 1)  # !")),
    runs("lang-gm-range", LOAD, line("load(xt, x[0 - n], 1)  # !")),
    runs("lang-gm-range", STORE, line("store(y, yt, n, rows=1, pitch=n)")
        + line("store(y[1], yt, n)  # !")),
    runs("lang-undefined-read", LOAD, line("load(xt, x, n - 1)"), RELU,
        line("relu(yt, xt, n)  # !")),
    runs("lang-undefined-read", *more("it = ub(TILE, int32)"), RELU, line("duplicate(it, 0, n)")
        + line("gather(yt, xt, it, n * 4, n)  # !")),
    runs("lang-undefined-read", LOAD, line("if n > 50:") + "    " + LOAD, RELU,
         line("relu(yt, xt, n)  # !")),
    runs("lang-undefined-read", RELU, line("relu(yt, xt, n - 1)"), STORE,
        line("store(y, yt, n)  # !")),
    runs("lang-undefined-read", RELU, line("relu(yt, xt, n - 1)")
         + line("axpy(yt, xt, 1.0, n)  # !")),
    runs("lang-undefined-read", STORE, line('store(y, yt, n, atomic="add")  # !')),
    runs("lang-undefined-read", *more("tt = ub(64, float32)", line("pt = ub(8, float32)", 4)), RELU,
         line("duplicate(tt, 0.0, n)") + line("reduce_max(pt, xt, tt, n)")
         + line("adds(yt, tt, value(pt), n)  # !")),
    runs("lang-undefined-read", *more("mt = ub(64, uint8)"), RELU,
         line('compares(mt, xt, 0.0, "lt", n - 1)') + line("selects(yt, mt, xt, 0.0, n)  # !")),
    runs("lang-undefined-read", *more("pt = ub(8, float32)"), RELU,
         line("duplicate(pt, 0.0, 1)") + line("a = value(pt[1])  # !")
        + line("muls(yt, xt, a, n)")),
    runs("lang-race", LAUNCH, line("launch(k, 2, n=size)", 4), STORE, line("store(y, yt, n)  # !")),
    runs("lang-race", LAUNCH, line("launch(k, 2, n=size, w=size)", 4), HEAD,
         HEAD.replace("n: int", "w: scratch(float32), n: int"), *more("wt = ub(64, float32)"),
         COPY_OUT + STORE,
         COPY_OUT + line("if core_id() == 0:") + line("store(w, yt, n)", 12)
         + line("else:") + line("store(y, yt, n)", 12)
         + COPY_IN + line("load(wt, w, n)  # !") + COMPUTE + line("a = value(wt)")),
    runs("lang-overflow", RELU, line("a = n * 9223372036854775807  # !") + RELU),
    runs("lang-overflow", RELU, line("a = int(inf)  # !") + RELU),
    runs("lang-overflow", *more("it = ub(64, int16)"), RELU,
        line("duplicate(it, n + 40000, 8)  # !")
         + RELU),
    runs("lang-divide", RELU, line("a = 3 // (n - 40)  # !") + RELU),
    runs("lang-divide", RELU, line("a = 3 % (n - 40)  # !") + RELU),
    runs("lang-divide", RELU, line("a = ceil_div(n, n - 40)  # !") + RELU),
    runs("lang-divide", RELU, line("for i in range(0, n, n - 41):  # !") + "    " + RELU),
    runs("lang-divide", SIZE, SIZE + line("a = size // (size - 40)  # !", 4)),
    runs("lang-dim", SIZE, line("size = x.shape[1]  # !", 4)),
    runs("lang-dim", SIZE, line("size = x.shape[-2]  # !", 4)),
    runs("lang-cores", LAUNCH, line("launch(k, chip.vector_cores + 1, n=size)  # !", 4)),
    runs("lang-unwritten", STORE, line("store(y, yt, n - 1)")),
    runs("lang-overflow", BUFFER, line("yt = ub(TILE, uint8)", 4) + line("ht = ub(TILE, float16)",
        4),
         HEAD, HEAD.replace("y: output(float32)", "y: output(bool)"), RELU,
         line("duplicate(ht, 2.0, n)") + line('cast(yt, ht, "rint", n)') + line("a = value(xt)")),
    runs("lang-combine", HEAD, HEAD.replace("n: int", "w: scratch(float32), n: int"), LAUNCH,
         line("launch(k, 1, n=size, w=7)", 4), *more("pt = ub(8, float32)"), RELU,
         line("relu(pt, xt, 8)") + RELU + line("combine_sum(pt, pt, w, 8)  # !", 4)),
)  # fmt: skip


def _execute(program: Program, size: int) -> None:
    inputs = [np.linspace(-1, 1, size, dtype=np.float32) for _ in program.inputs]
    outputs = [((size,), item.dtype) for item in program.outputs]
    interpret(program, CHIP, inputs, outputs)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_wrong_program_is_refused_with_code_and_line(case: Bad) -> None:
    with pytest.raises(LangError) as caught:
        program = parse(case.text, "bad.tile.py")
        check(program, CHIP, "bad.tile.py")
        assert case.run, "the checks let it pass"
        _execute(program, case.size)
    assert caught.value.code == case.code, str(caught.value)
    if case.line is not None:
        assert caught.value.place.line == case.line, str(caught.value)
    assert caught.value.legal
    assert caught.value.hint


@pytest.mark.parametrize("case", [case for case in CASES if case.run], ids=str)
def test_what_only_a_run_shows_passes_the_checks(case: Bad) -> None:
    assert check_all(parse(case.text), CHIP) == []


def test_arrays_that_do_not_fit_the_program_are_refused() -> None:
    program = parse(BASE)
    good, out = np.zeros(4, np.float32), ((4,), DType.FLOAT32)
    for inputs, outputs in (
        ([good.astype(np.float16)], [out]),
        ([good, good], [out]),
        ([good], [((4,), DType.FLOAT16)]),
        ([good], []),
    ):
        with pytest.raises(LangError) as caught:
            interpret(program, CHIP, inputs, outputs)
        assert caught.value.code == "lang-inputs"


QUEUE_CALLS = (
    (Enque("xt"), Alloc("xt")),
    (Deque("xt"), Alloc("xt")),
    (Free("xt"), Alloc("xt")),
    (Alloc("xt"),),
    (Alloc("xt"), Alloc("xt")),
    (Alloc("xt"), Enque("xt"), Alloc("xt")),
    (Alloc("xt"), Enque("xt"), Deque("xt")),
    (Alloc("xt"), Enque("xt"), Deque("xt"), Deque("xt")),
)


@pytest.mark.parametrize("calls", QUEUE_CALLS, ids=lambda calls: "-".join(
    type(call).__name__ for call in calls))  # fmt: skip
def test_a_queue_in_the_wrong_state_is_an_error(calls: tuple[Alloc, ...]) -> None:
    program = parse(BASE)
    program = replace(program, kernels=(replace(program.kernel, body=calls),))
    with pytest.raises(LangError) as caught:
        _execute(program, 4)
    assert caught.value.code == "lang-queue"


def test_every_error_of_the_language_has_a_case() -> None:
    elsewhere = {"lang-inputs", "lang-queue"}  # no text causes these
    matrices = {"lang-memory", "lang-fractal", "lang-capacity", "lang-transpose", "lang-matrix"}
    matrices.add("lang-flag")  # in test_lang_flags.py
    rows = {row.name for row in CODES.values() if row.area == "lang"}
    # those of cube cores have theirs in test_lang_cube.py
    assert rows - elsewhere - matrices == {case.code for case in CASES}


def test_the_program_that_all_cases_spoil_is_legal() -> None:
    program = parse(BASE)
    assert check_all(program, CHIP) == []
    _execute(program, 40)
