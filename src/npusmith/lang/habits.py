"""What writers bring along from Triton, PyTorch, NumPy and Ascend C, and what to write instead."""

from __future__ import annotations

import ast

from npusmith.lang.words import CALLS, OPERATIONS, mean, signature
from npusmith.target.intrinsics import INTRINSICS

# Roots of dotted names, by the system that they belong to.
_ROOTS: dict[str, str] = {
    "tl": "Triton", "triton": "Triton", "T": "TileLang", "tilelang": "TileLang", "pl": "Pallas",
    "np": "NumPy", "numpy": "NumPy", "math": "Python", "torch": "PyTorch", "F": "PyTorch",
    "nn": "PyTorch", "jnp": "JAX", "cp": "CuPy", "AscendC": "Ascend C", "self": "Python",
    "os": "Python", "sys": "Python",
}  # fmt: skip

_LOAD = "load(buf, x[offset], count) inside `with copy_in:`"
_STORE = "store(y[offset], buf, count) inside `with copy_out:`"
_UB = "name = ub(length, dtype) at the top of the kernel"
_QUEUES = "leave queues to the lowering: name buffers with ub(), and copy in stages"
_SYNC = "leave it out: the lowering inserts what orders the pipes; sync_cores() waits for all cores"
_SUM = "a loop with accumulate_sum(dst, a, n), or reduce_sum(dst, a, tmp, n) along the last axis"
_CHOICE = "`a if cond else b` for scalars; compare(...) and select(...) for buffers"

# What to write instead of a name, whatever root it had.
_INSTEAD: dict[str, str] = {
    "load": _LOAD, "store": _STORE, "DataCopy": f"{_LOAD}, {_STORE}",
    "DataCopyPad": f"{_LOAD}, {_STORE}",
    "program_id": "core_id()", "num_programs": "core_count()", "GetBlockIdx": "core_id()",
    "GetBlockNum": "core_count()", "cdiv": "ceil_div(a, b)", "CeilDiv": "ceil_div(a, b)",
    "arange": "create_index(dst, first, n) for a buffer, range(...) for a loop",
    "zeros": f"{_UB}, then duplicate(dst, 0.0, n)", "ones": f"{_UB}, then duplicate(dst, 1.0, n)",
    "full": f"{_UB}, then duplicate(dst, s, n)", "empty": _UB, "zeros_like": _UB,
    "alloc_ub": _UB, "alloc_shared": _UB, "alloc_fragment": _UB, "LocalTensor": _UB,
    "AllocTensor": _QUEUES, "FreeTensor": _QUEUES, "EnQue": _QUEUES, "DeQue": _QUEUES,
    "TQue": _QUEUES, "TBuf": _QUEUES, "TPipe": _QUEUES, "InitBuffer": _QUEUES,
    "PipeBarrier": _SYNC, "pipe_barrier": _SYNC, "SetFlag": _SYNC, "WaitFlag": _SYNC,
    "SyncAll": "sync_cores()", "syncthreads": _SYNC,
    "GetValue": "value(buf[i])", "SetValue": "set(buf[i], s)",
    "where": _CHOICE, "Select": _CHOICE, "sum": _SUM, "mean": f"{_SUM}, then muls",
    "prod": "accumulate_prod(dst, a, n)", "maximum": "max(dst, a, b, n)",
    "minimum": "min(dst, a, b, n)", "amax": "reduce_max(dst, a, tmp, n)",
    "amin": "reduce_min(dst, a, tmp, n)", "log": "ln(dst, a, n)", "neg": "muls(dst, a, -1.0, n)",
    "subs": "adds(dst, a, -s, n)", "divs": "muls(dst, a, 1.0 / s, n)",
    "pow": "power(dst, a, b, n), or mul for a square", "square": "mul(dst, a, a, n)",
    "softmax": "reduce_max, adds, exp, reduce_sum and muls, row by row",
    "gelu": "erf, adds and mul", "silu": "sigmoid and mul", "clamp": "maxs and mins",
    "clip": "maxs and mins", "fma": "mul_add_dst(dst, a, b, n)",
    "atomic_add": 'store(y[offset], buf, n, atomic="add")',
    "inf": "inf", "nan": "a comparison: nan has no literal", "pi": "the digits as a constant",
    "len": "x.size or x.shape[i], on the host", "abs": "`a if a >= 0.0 else -a` for scalars",
    "round": "int(a + 0.5) for scalars, round(dst, a, n) for buffers",
    "print": "nothing: a tile program has no output besides its tensors",
    "dot": "mmad(c0, a0, b0, m, n, k, accumulate) in a kernel with l1, l0a, l0b and l0c buffers",
    "matmul": "mmad(c0, a0, b0, m, n, k, accumulate) in a kernel with l1, l0a, l0b and l0c buffers",
    "Mmad": "mmad(c0, a0, b0, m, n, k, accumulate)", "LoadData": "load(a0, a1[row, col], m, k)",
    "Fixpipe": "store(y[offset], c0, count, rows=r, pitch=p)",
    "to": 'cast(dst, a, "rint", n)', "astype": 'cast(dst, a, "rint", n)',
    "float32": "float32", "float16": "float16", "bfloat16": "bfloat16",
    "dtype": "the names of element types as they are: float32",
    "shape": "x.shape[i] on the host; pass it to the kernel through launch()",
    "size": "x.size on the host; pass it to the kernel through launch()",
    "numel": "x.size", "ndim": "nothing: the rank of a tensor is fixed by its program",
}  # fmt: skip

_BY_ASCEND = {row.ascend: row for row in reversed(INTRINSICS.values())}

# Modes by other names.
MODE_NAMES = {
    "less": "lt", "<": "lt", "greater": "gt", ">": "gt", "equal": "eq", "==": "eq", "!=": "ne",
    "not_equal": "ne", "<=": "le", "less_equal": "le", ">=": "ge", "greater_equal": "ge",
    "nearest": "rint", "even": "rint", "half_even": "rint", "down": "floor", "up": "ceil",
    "zero": "trunc", "truncate": "trunc", "half_up": "round", "exact": "none", "": "rint",
}  # fmt: skip

# Dtype names of other systems.
DTYPE_NAMES = {
    "half": "float16", "fp16": "float16", "f16": "float16", "float": "float32", "fp32": "float32",
    "f32": "float32", "double": "float32", "float64": "float32", "bf16": "bfloat16",
    "bfloat16_t": "bfloat16", "int": "int32", "long": "int64", "char": "int8",
}  # fmt: skip

# Statements of Python that the language lacks.
STATEMENTS: dict[type[ast.AST], tuple[str, str]] = {
    ast.While: ("while", "for i in range(n): the number of turns is known before the loop"),
    ast.Return: ("return", "nothing: results leave through store() (kernel) or launch() (host)"),
    ast.Break: ("break", "a loop bound: for i in range(min(a, b))"),
    ast.Continue: ("continue", "an if around the rest of the loop"),
    ast.Try: ("try", "nothing: errors of a program are found before it runs"),
    ast.Raise: ("raise", "nothing: errors of a program are found before it runs"),
    ast.Assert: ("assert", "a note in quotes"),
    ast.FunctionDef: ("def", "its statements in place: only @host and @kernel are functions"),
    ast.AsyncFunctionDef: ("async def", "@host and @kernel functions"),
    ast.AsyncFor: ("async for", "for i in range(n)"),
    ast.AsyncWith: ("async with", "with copy_in:, with compute: or with copy_out:"),
    ast.ClassDef: ("class", "@host and @kernel functions"),
    ast.Delete: ("del", "nothing: buffers live as long as the kernel"),
    ast.Global: ("global", "module constants, readable everywhere"),
    ast.Nonlocal: ("nonlocal", "module constants, readable everywhere"),
    ast.Import: ("import", "nothing: all words of the language are known"),
    ast.ImportFrom: ("import", "nothing: all words of the language are known"),
    ast.AnnAssign: ("an annotated assignment", "name = value, without the annotation"),
    ast.Match: ("match", "if and elif"),
}

# Expressions of Python that the language lacks.
EXPRESSIONS: dict[type[ast.AST], tuple[str, str]] = {
    ast.ListComp: ("a list comprehension", "for i in range(n): with one operation per buffer"),
    ast.SetComp: ("a set comprehension", "for i in range(n):"),
    ast.DictComp: ("a dict comprehension", "for i in range(n):"),
    ast.GeneratorExp: ("a generator", "for i in range(n): and an accumulating variable"),
    ast.List: ("a list", "one name per value, or a buffer"),
    ast.Tuple: ("a tuple", "one value per statement"),
    ast.Dict: ("a dict", "one name per value"),
    ast.Set: ("a set", "one name per value"),
    ast.Lambda: ("a lambda", "the expression in place"),
    ast.Await: ("await", "nothing: the lowering orders what has to wait"),
    ast.Yield: ("yield", "store() in a copy_out stage"),
    ast.YieldFrom: ("yield", "store() in a copy_out stage"),
    ast.JoinedStr: ("an f-string", "a plain string as a note"),
    ast.NamedExpr: ("`:=`", "an assignment of its own"),
    ast.Starred: ("`*`", "each operand by itself"),
    ast.Slice: ("a slice", "x[start], with the number of elements as count"),
}

OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Pow: ("**", "a * a for scalars, power(dst, a, b, n) for buffers"),
    ast.MatMult: ("@", "mmad(c0, a0, b0, m, n, k, accumulate) for matrices on a cube core"),
    ast.LShift: ("<<", "* with a power of two"),
    ast.RShift: (">>", "// with a power of two"),
    ast.BitAnd: ("&", "`and` for conditions, % with a power of two for ints"),
    ast.BitOr: ("|", "`or` for conditions"),
    ast.BitXor: ("^", "!= for conditions"),
    ast.Invert: ("~", "`not` for conditions"),
    ast.Is: ("is", "=="),
    ast.IsNot: ("is not", "!="),
    ast.In: ("in", "a == b or a == c"),
    ast.NotIn: ("not in", "a != b and a != c"),
}


def dotted(node: ast.AST) -> tuple[str, ...]:
    """`a.b.c` as its parts; () for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ()


def system_of(parts: tuple[str, ...]) -> str:
    """The system that a dotted name belongs to; "" when it is nobody's."""
    return _ROOTS.get(parts[0], "") if len(parts) > 1 else ""


def is_foreign(name: str) -> bool:
    """Is it a function of another system (and of ours only under another name)?"""
    return name in _BY_ASCEND or name in _INSTEAD


def instead(name: str) -> str:
    """What to write for a function that the language lacks."""
    if name in _BY_ASCEND:
        return signature(_BY_ASCEND[name])
    if name in _INSTEAD:
        return _INSTEAD[name]
    if name in INTRINSICS:
        return f"{signature(INTRINSICS[name])} inside `with compute:`"
    return CALLS.get(name, "") or mean(name, OPERATIONS)
