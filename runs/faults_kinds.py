"""Faults of the kinds that models make, as edits of a correct kernel's text.

Families and their shares are those that AscendKernelGen reports for failed kernels: API signature
and overload 52 %, dtype 20 %, scope and lifetime 16 %, memory 8 %, others 4 %. Kernels that are
right and slow are a family of their own. Each kind is a pattern and what takes its place.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

Match = re.Match[str]
Change = Callable[[Match, random.Random], str | None]

SHARES = {"api": 0.52, "dtype": 0.20, "scope": 0.16, "memory": 0.08, "other": 0.04}
SLOW = "slow"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault: where it can be put, and what is put there (None: not here)."""

    name: str
    family: str
    route: str
    pattern: str
    change: Change

    def sites(self, text: str) -> list[Match]:
        return list(re.finditer(self.pattern, text, re.MULTILINE))


def _fixed(replacement: str) -> Change:
    return lambda match, rng: match.expand(replacement)


def _renamed(names: dict[str, str]) -> Change:
    """The name that a habit of NumPy, PyTorch, Triton or another library suggests."""
    return lambda match, rng: match.group(0).replace(match.group(1), names[match.group(1)], 1)


def _drop(match: Match, rng: random.Random) -> str:
    return ""


def _any_of(names: dict[str, str]) -> str:
    return "|".join(sorted(names, key=len, reverse=True))


_TILE_NAMES = {
    "muls": "mul_scalar", "adds": "add_scalar", "duplicate": "fill", "cast": "convert",
    "mul": "multiply", "reduce_sum": "sum_reduce", "reduce_max": "max_reduce", "exp": "vexp",
    "accumulate_sum": "acc_sum", "accumulate_max": "acc_max", "maxs": "max_scalar",
    "selects": "where_scalar", "select": "where", "compare": "cmp", "compares": "cmp_scalar",
    "sub": "subtract", "sqrt": "vsqrt", "relu": "vrelu", "gather": "take",
}  # fmt: skip
_DIRECT_NAMES = {
    "Muls": "MulScalar", "Adds": "AddScalar", "Duplicate": "Fill", "Mul": "Multiply",
    "ReduceSum": "Sum", "ReduceMax": "RMax", "Exp": "Expf", "Maxs": "MaxScalar", "Add": "VecAdd",
    "DataCopyPad": "DataCopyPadding", "Select": "Where", "CompareScalar": "CompareS",
    "Sqrt": "Sqrtf", "Cast": "Convert", "Max": "VecMax", "Sub": "Subtract", "Relu": "ReluOp",
}  # fmt: skip
_I = r"^([ \t]*)"
_TILE_OPS = r"(?:muls|adds|mul|add|sub|div|exp|sqrt|max|min|abs|maxs|mins|relu|accumulate_\w+)"
_OPS = r"(?:Muls|Adds|Mul|Add|Sub|Div|Exp|Sqrt|Max|Min|Abs|Maxs|Mins|Relu)"


def _smaller_tile(match: Match, rng: random.Random) -> str | None:
    size = int(match.group(2))
    return f"{match.group(1)}{rng.choice((64, 128, 256))}\n" if size >= 1024 else None


def _larger_tile(match: Match, rng: random.Random) -> str | None:
    return f"{match.group(1)}{int(match.group(2)) * 16}\n"


TILE = (
    # ---- API signature and overload
    Kind(
        "renamed operation", "api", "tile", rf"\b({_any_of(_TILE_NAMES)})\(", _renamed(_TILE_NAMES)
    ),
    Kind(
        "count left out",
        "api",
        "tile",
        rf"\b({_TILE_OPS}\([^\n]*), (?:n|cols|TILE|wide|8|1)\)$",
        _fixed(r"\1)"),
    ),
    Kind(
        "scratch left out",
        "api",
        "tile",
        r"\b(reduce_\w+\(\w+, \w+), \w+, (\w+)\)",
        _fixed(r"\1, \2)"),
    ),
    Kind(
        "value of an operation",
        "api",
        "tile",
        rf"\b({_TILE_OPS})\((\w+), ([^\n]*)\)$",
        _fixed(r"\2 = \1(\3)"),
    ),
    Kind("scalar in the vector form", "api", "tile", r"\b(mul|add|max)s\(", _fixed(r"\1(")),
    Kind(
        "vector in the scalar form",
        "api",
        "tile",
        r"\b(mul|add|max)\((\w+, \w+, \w+, \w+\))",
        _fixed(r"\1s(\2"),
    ),
    Kind(
        "offset as an operand",
        "api",
        "tile",
        r"\b(load\(\w+, \w+)\[([^\]\n]+)\]",
        _fixed(r"\1, \2"),
    ),
    Kind(
        "operands of a load turned",
        "api",
        "tile",
        r"\bload\((\w+), (\w+(?:\[[^\]\n]+\])?), ",
        _fixed(r"load(\2, \1, "),
    ),
    Kind(
        "operands of a store turned",
        "api",
        "tile",
        r"\bstore\((\w+(?:\[[^\]\n]+\])?), (\w+), ",
        _fixed(r"store(\2, \1, "),
    ),
    Kind(
        "load without a count",
        "api",
        "tile",
        r"\b(load\(\w+, \w+\[[^\]\n]+\]), \w+\)",
        _fixed(r"\1)"),
    ),
    Kind("module prefix", "api", "tile", rf"^([ \t]+)({_TILE_OPS})\(", _fixed(r"\1np.\2(")),
    Kind(
        "mode left out",
        "api",
        "tile",
        r'\b((?:cast|compares?)\([^\n]*), "\w+", (\w+)\)',
        _fixed(r"\1, \2)"),
    ),
    Kind(
        "mode of Ascend C",
        "api",
        "tile",
        r'\b(cast\([^\n]*), "(rint|none)", ',
        lambda m, r: f'{m.group(1)}, "CAST_{m.group(2).upper()}", ',
    ),
    Kind("foreign division", "api", "tile", r"\bceil_div\(", _fixed("cdiv(")),
    Kind("foreign core number", "api", "tile", r"\bcore_id\(\)", _fixed("program_id(0)")),
    Kind("foreign core count", "api", "tile", r"\bcore_count\(\)", _fixed("num_programs(0)")),
    Kind("element by index", "api", "tile", r"\bvalue\((\w+)\)", _fixed(r"\1[0]")),
    Kind("launch without cores", "api", "tile", r"\b(launch\(\s*\w+),\s*cores,", _fixed(r"\1,")),
    Kind(
        "cores of another name", "api", "tile", r"\bchip\.vector_cores\b", _fixed("chip.num_cores")
    ),
    Kind(
        "scalar before source",
        "api",
        "tile",
        r"\b(muls|adds|maxs)\((\w+), (\w+), ([\w.]+), ",
        _fixed(r"\1(\2, \4, \3, "),
    ),
    # ---- dtype
    Kind(
        "buffer of another type",
        "dtype",
        "tile",
        r"^([ \t]+\w+t = ub\(\w+, )float32\)",
        _fixed(r"\1float16)"),
    ),
    Kind(
        "half buffer made float",
        "dtype",
        "tile",
        r"^([ \t]+\w+ = ub\(\w+, )(?:float16|bfloat16)\)",
        _fixed(r"\1float32)"),
    ),
    Kind(
        "int for a float",
        "dtype",
        "tile",
        r"\b(duplicate\(\w+, |muls\(\w+, \w+, |adds\(\w+, \w+, |selects\([^\n]*, )(\d+)\.0, ",
        _fixed(r"\1\2, "),
    ),
    Kind("int where a sum begins", "dtype", "tile", r"^([ \t]+\w+ = )0\.0$", _fixed(r"\g<1>0")),
    Kind(
        "scratch of another type",
        "dtype",
        "tile",
        r"^([ \t]+(?:tmp|part|square|et|factor) = ub\(\w+, )float32\)",
        _fixed(r"\1float16)"),
    ),
    Kind(
        "name of a type",
        "dtype",
        "tile",
        r"^([ \t]+\w+ = ub\(\w+, )float(32|16)\)",
        _fixed(r"\1fp\2)"),
    ),
    Kind("mask as float", "dtype", "tile", r"(mask = ub\([^\n]*, )uint8\)", _fixed(r"\1float32)")),
    Kind("int divided", "dtype", "tile", r"(1\.0 / )float\((\w+(?:\.size)?)\)", _fixed(r"\1\2")),
    Kind("rows by true division", "dtype", "tile", r"(x\.size) // (\w+)", _fixed(r"\1 / \2")),
    # ---- scope and lifetime
    Kind(
        "load in a compute stage",
        "scope",
        "tile",
        r"^([ \t]+)with copy_in:",
        _fixed(r"\1with compute:"),
    ),
    Kind(
        "store in a compute stage",
        "scope",
        "tile",
        r"^([ \t]+)with copy_out:",
        _fixed(r"\1with compute:"),
    ),
    Kind(
        "stage left out",
        "scope",
        "tile",
        r"^([ \t]+)with compute:\n(?:\1[ \t]+\"[^\n]*\n)?\1[ \t]+",
        _fixed(r"\1"),
    ),
    Kind(
        "buffer not declared",
        "scope",
        "tile",
        r"^[ \t]+(?:tmp|zt|yt|part|et|one|wide) = ub\([^\n]*\n",
        _drop,
    ),
    Kind(
        "loaded buffer written",
        "scope",
        "tile",
        r"^([ \t]+(?:muls|adds|exp|add|maxs|relu)\()(\w+), xt, ([^\n]*)$",
        lambda m, r: f"{m.group(1)}xt, xt, {m.group(3)}" if m.group(2) != "xt" else None,
    ),
    Kind(
        "variable not assigned",
        "scope",
        "tile",
        r"^[ \t]+(?:top|total|n|first|last) = [^\n]*\n",
        _drop,
    ),
    Kind(
        "op outside of a stage",
        "scope",
        "tile",
        r"^([ \t]+)with compute:\n[ \t]+(duplicate\([^\n]*)$",
        _fixed(r"\1\2"),
    ),
    # ---- memory
    Kind("tile beyond UB", "memory", "tile", r"^((?:TILE|COLS) = )(\d+)\n", _larger_tile),
    Kind(
        "buffer too short",
        "memory",
        "tile",
        r"^([ \t]+\w+t = ub\()(?:TILE|COLS), ",
        _fixed(r"\g<1>8, "),
    ),
    Kind(
        "misaligned view",
        "memory",
        "tile",
        rf"^([ \t]+{_TILE_OPS}\(\w+, \w+), ",
        _fixed(r"\1[1], "),
    ),
    Kind(
        "scratch too short",
        "memory",
        "tile",
        r"^([ \t]+tmp = ub\()(?:TILE|COLS), ",
        _fixed(r"\g<1>16, "),
    ),
    # ---- others
    Kind("tail not cut", "other", "tile", r"\bn = min\(TILE, [^\n]*\)$", _fixed("n = TILE")),
    Kind(
        "share rounded down",
        "other",
        "tile",
        r"per_core=ceil_div\(([\w.]+), cores\)",
        _fixed(r"per_core=\1 // cores"),
    ),
    Kind("cores not in step", "other", "tile", r"^[ \t]+sync_cores\(\)\n", _drop),
    Kind(
        "sum not begun",
        "other",
        "tile",
        r"^[ \t]+with compute:\n[ \t]+duplicate\((?:acc|total|best), [^\n]*\n",
        _drop,
    ),
    # ---- right and slow
    Kind("small tiles", SLOW, "tile", r"^((?:TILE) = )(\d+)\n", _smaller_tile),
    Kind("one core", SLOW, "tile", r"^([ \t]+cores = )max\([^\n]*$", _fixed(r"\g<1>1")),
    Kind("few cores", SLOW, "tile", r"\bchip\.vector_cores\b", _fixed("8")),
    Kind(
        "twice loaded",
        SLOW,
        "tile",
        r"^([ \t]+)(with copy_in:\n)([ \t]+load\([^\n]*\n)",
        _fixed(r"\1\2\3\3"),
    ),
)

DIRECT = (
    # ---- API signature and overload
    Kind(
        "renamed operation",
        "api",
        "direct",
        rf"\b({_any_of(_DIRECT_NAMES)})\(",
        _renamed(_DIRECT_NAMES),
    ),
    Kind("count left out", "api", "direct", rf"\b({_OPS}\([^;\n]*), \w+\);", _fixed(r"\1);")),
    Kind(
        "scratch left out",
        "api",
        "direct",
        r"\b(Reduce\w+\(\w+, \w+), \w+, (\w+)(, false)?\);",
        _fixed(r"\1, \2);"),
    ),
    Kind("scalar in the vector form", "api", "direct", r"\b(Mul|Add|Max)s\(", _fixed(r"\1(")),
    Kind(
        "vector in the scalar form",
        "api",
        "direct",
        r"\b(Mul|Add|Max)\((\w+Local, \w+Local, \w+Local)",
        _fixed(r"\1s(\2"),
    ),
    Kind(
        "pad parameters left out",
        "api",
        "direct",
        r"\bDataCopyPad\((\w+Local, [^;\n]*), padParams\d*\);",
        _fixed(r"DataCopyPad(\1);"),
    ),
    Kind(
        "copy parameters of another type",
        "api",
        "direct",
        r"\bDataCopyExtParams (\w+\{)",
        _fixed(r"DataCopyParams \1"),
    ),
    Kind(
        "buffers not counted", "api", "direct", r"\b(InitBuffer\(\w+Queue), \d, ", _fixed(r"\1, ")
    ),
    Kind(
        "type of a tensor left out",
        "api",
        "direct",
        r"\.(DeQue|AllocTensor|Get)<\w+>\(\)",
        _fixed(r".\1()"),
    ),
    Kind(
        "round mode left out",
        "api",
        "direct",
        r"\b(Cast\([^;\n]*), RoundMode::\w+, (\w+)\);",
        _fixed(r"\1, \2);"),
    ),
    Kind(
        "round mode of another name",
        "api",
        "direct",
        r"RoundMode::CAST_(\w+)",
        _fixed(r"RoundMode::\1"),
    ),
    Kind(
        "pipe of another name",
        "api",
        "direct",
        r"PipeBarrier<PIPE_V>",
        _fixed("PipeBarrier<PIPE_VEC>"),
    ),
    Kind(
        "event of another name",
        "api",
        "direct",
        r"HardEvent::(V|S)_(\w+)>",
        _fixed(r"HardEvent::\1_TO_\2>"),
    ),
    Kind(
        "core number of another name", "api", "direct", r"\bGetBlockIdx\(\)", _fixed("GetBlockId()")
    ),
    Kind(
        "core count of another name", "api", "direct", r"\bGetBlockNum\(\)", _fixed("GetBlockDim()")
    ),
    Kind(
        "member of another name", "api", "direct", r"\.SetGlobalBuffer\(", _fixed(".SetGlobalAddr(")
    ),
    Kind("element by index", "api", "direct", r"\.GetValue\(0\)", _fixed("[0]")),
    Kind("free of another name", "api", "direct", r"\.FreeTensor\(", _fixed(".Free(")),
    Kind("std function", "api", "direct", r"= ScalarMin\(", _fixed("= std::minimum(")),
    Kind(
        "operands of a copy turned",
        "api",
        "direct",
        r"\bDataCopyPad\((\w+Local), (\w+Gm(?:\[[^\]\n]+\])?), ",
        _fixed(r"DataCopyPad(\2, \1, "),
    ),
    Kind(
        "compare mode of another name", "api", "direct", r"CMPMODE::(\w+)", _fixed(r"CmpMode::\1")
    ),
    # ---- dtype
    Kind(
        "tensor of another type",
        "dtype",
        "direct",
        r"LocalTensor<float> (\w+) = (\w+)\.(DeQue|AllocTensor)<float>",
        _fixed(r"LocalTensor<half> \1 = \2.\3<half>"),
    ),
    Kind(
        "type of one side",
        "dtype",
        "direct",
        r"LocalTensor<float> (\w+ = \w+\.\w+<float>)",
        _fixed(r"LocalTensor<half> \1"),
    ),
    Kind(
        "int for a float",
        "dtype",
        "direct",
        r"\b((?:Muls|Adds|Duplicate|Maxs|CompareScalar|Select)\([^;\n]*?, )(-?\d+)\.0f",
        _fixed(r"\1\2"),
    ),
    Kind(
        "size of another type",
        "dtype",
        "direct",
        r"(static_cast<uint32_t>\(\w+ \* sizeof\()float\)",
        _fixed(r"\1half)"),
    ),
    Kind(
        "global tensor of another type",
        "dtype",
        "direct",
        r"GlobalTensor<float> (\w+);",
        _fixed(r"GlobalTensor<half> \1;"),
    ),
    Kind(
        "padding of another type",
        "dtype",
        "direct",
        r"DataCopyPadExtParams<float> ",
        _fixed("DataCopyPadExtParams<half> "),
    ),
    Kind(
        "half tensor made float",
        "dtype",
        "direct",
        r"LocalTensor<(?:half|bfloat16_t)> (\w+ = \w+\.\w+<\w+>)",
        _fixed(r"LocalTensor<float> \1"),
    ),
    # ---- scope and lifetime
    Kind("tensor not freed", "scope", "direct", _I + r"(\w+)\.FreeTensor\(\w+\);\n", _drop),
    Kind(
        "tensor freed twice",
        "scope",
        "direct",
        r"^[ \t]*\w+\.FreeTensor\(\w+\);\n",
        lambda m, r: m.group(0) * 2,
    ),
    Kind("tensor not handed on", "scope", "direct", r"^[ \t]*\w+\.EnQue\(\w+\);\n", _drop),
    Kind("allocated for taken over", "scope", "direct", r"\.DeQue<", _fixed(".AllocTensor<")),
    Kind(
        "member not declared",
        "scope",
        "direct",
        r"^    (?:TQue|TBuf|GlobalTensor)<[^\n]*> \w+;\n",
        _drop,
    ),
    Kind(
        "tensor not taken",
        "scope",
        "direct",
        r"^[ \t]*LocalTensor<\w+> \w+ = \w+\.(?:DeQue|Get)<\w+>\(\);\n",
        _drop,
    ),
    Kind(
        "freed before its use",
        "scope",
        "direct",
        r"^([ \t]*)LocalTensor<\w+> (\w+) = (\w+Queue)\.DeQue<\w+>\(\);\n",
        lambda m, r: f"{m.group(0)}{m.group(1)}{m.group(3)}.FreeTensor({m.group(2)});\n",
    ),
    # ---- memory
    Kind(
        "buffer too short",
        "memory",
        "direct",
        r"(InitBuffer\((?:\w+, \d|\w+), )(?:\d{3,}|[A-Z]\w*)( \* sizeof)",
        _fixed(r"\g<1>64\2"),
    ),
    Kind(
        "buffer beyond UB",
        "memory",
        "direct",
        r"(InitBuffer\((?:\w+, \d|\w+), )(\d{3,}|[A-Z]\w*)( \* sizeof)",
        lambda m, r: f"{m.group(1)}{m.group(2)} * 16{m.group(3)}",
    ),
    Kind(
        "misaligned tensor", "memory", "direct", rf"^([ \t]*{_OPS}\(\w+Local), ", _fixed(r"\1[1], ")
    ),
    Kind(
        "copy without padding",
        "memory",
        "direct",
        r"DataCopyPad\((\w+Local), (\w+Gm(?:\[[^\]\n]+\])?), \w+, \w+\);",
        _fixed(r"DataCopy(\1, \2, 13);"),
    ),
    # ---- others
    Kind("event left out", "other", "direct", r"^[ \t]*Sync<HardEvent::\w+>\(\);\n", _drop),
    Kind("barrier left out", "other", "direct", r"^[ \t]*PipeBarrier<PIPE_V>\(\);\n", _drop),
    Kind("tail not cut", "other", "direct", r"= ScalarMin\(TILE, [^;\n]*\);", _fixed("= TILE;")),
    Kind("atomic left on", "other", "direct", r"^[ \t]*SetAtomicNone\(\);\n", _drop),
    # ---- right and slow
    Kind("one buffer", SLOW, "direct", r"(InitBuffer\(\w+Queue, )2, ", _fixed(r"\g<1>1, ")),
    Kind(
        "barriers of all pipes",
        SLOW,
        "direct",
        r"PipeBarrier<PIPE_V>\(\);",
        _fixed("PipeBarrier<PIPE_ALL>();"),
    ),
    Kind(
        "pipes in turn",
        SLOW,
        "direct",
        r"^([ \t]*)(CopyOut0\([^;\n]*\);\n)",
        _fixed(r"\1\2\1PipeBarrier<PIPE_ALL>();\n"),
    ),
)

KINDS = (*TILE, *DIRECT)
