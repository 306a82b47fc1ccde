"""Does the Python part of a candidate compute by itself? `find_cheats(text, entry) -> findings`.

MultiKernelBench's rule in our words: whatever `forward` reaches in its file may allocate, view,
cast, move data and call the compiled module. Functions of torch, functional calls, computing
methods of tensors and computing submodules are cheating. Arithmetic operators are too, but sizes
need them as well: they are told apart as a warning.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from npusmith.errors import CODES
from npusmith.twin.finding import Finding

_ALLOCATE = """
empty empty_like empty_strided zeros zeros_like ones ones_like full full_like tensor arange linspace
as_tensor Size device dtype
"""
_COMPUTE = """
sum mean max min prod cumsum cumprod argmax argmin var std matmul mm bmm addmm add sub mul div fmod
remainder add_ sub_ mul_ div_ relu sigmoid tanh gelu silu elu leaky_relu relu_ sigmoid_ tanh_ exp
log log2 log10 sqrt rsqrt pow abs sin cos clamp clamp_ ceil floor round reciprocal neg sign softmax
log_softmax norm layer_norm batch_norm group_norm conv1d conv2d conv3d conv_transpose2d linear
dropout softplus hardtanh hardswish eq ne lt gt le ge where einsum masked_fill masked_fill_ scatter
scatter_ scatter_add gather topk sort dot outer cdist
"""
_PLAIN = """
Module Parameter ParameterList ParameterDict ModuleList ModuleDict Sequential Identity Flatten
Unflatten Buffer
"""
_ALLOCATING = frozenset(_ALLOCATE.split())
_COMPUTING = frozenset(_COMPUTE.split())
_PLAIN_MODULES = frozenset(_PLAIN.split())
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
_MOST = 20  # findings told


@dataclass(slots=True)
class _File:
    """Names of the file: functions, classes, and what imports and `self.x = ...` stand for."""

    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    methods: dict[str, ast.FunctionDef] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)  # local name -> full name
    members: dict[str, str] = field(default_factory=dict)  # of self -> full name of its class


def find_cheats(text: str, entry: str = "ModelNew", file: str = "") -> list[Finding]:
    """The findings of the Python part; a text that does not parse has none (it will not run)."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names = _read(tree, entry)
    found: dict[tuple[str, int], Finding] = {}
    for node in _reached(names):
        for code, line, what in _judge(node, names):
            found.setdefault((code, line), _finding(code, what, file, line))
    return [found[key] for key in sorted(found, key=lambda key: key[1])][:_MOST]


def _finding(code: str, what: str, file: str, line: int) -> Finding:
    message = f"the Python part uses {what}"
    return Finding(code=code, level=CODES[code].level, message=message, file=file, line=line)


def _read(tree: ast.Module, entry: str) -> _File:
    names = _File()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                local = alias.asname or alias.name.partition(".")[0]
                names.imports[local] = alias.name if alias.asname else local
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names.imports[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names.functions[node.name] = node
        elif isinstance(node, ast.ClassDef) and node.name == entry:
            for item in node.body:
                if isinstance(item, ast.FunctionDef):
                    names.methods[item.name] = item
    for node in ast.walk(names.methods.get("__init__", ast.Module([], []))):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            kind = _full(node.value.func, names)
            for target in node.targets:
                if _of_self(target):
                    names.members[target.attr] = kind  # type: ignore[attr-defined]
    return names


def _of_self(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def _full(node: ast.expr, names: _File) -> str:
    """The dotted name of an expression, imports resolved; "" when it is not a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(names.imports.get(node.id, node.id))
    return ".".join(reversed(parts))


def _reached(names: _File) -> Iterator[ast.AST]:
    """Every node that a call of forward may execute."""
    queue = [item for name in ("forward", "__call__") if (item := names.methods.get(name))]
    seen: set[str] = set()
    while queue:
        function = queue.pop()
        for node in ast.walk(function):
            yield node
            called = ""
            if isinstance(node, ast.Name):
                called, table = node.id, names.functions
            elif isinstance(node, ast.Attribute) and _of_self(node):
                called, table = node.attr, names.methods
            if called and called in table and called not in seen:
                seen.add(called)
                queue.append(table[called])


def _judge(node: ast.AST, names: _File) -> Iterator[tuple[str, int, str]]:
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, _ARITHMETIC):
        if isinstance(node.op, ast.MatMult):
            yield "cheat-compute", node.lineno, "the operator @"
        elif not _constant(node):
            yield "cheat-arithmetic", node.lineno, f"the operator {type(node.op).__name__}"
    if not isinstance(node, ast.Call):
        return
    name = _full(node.func, names)
    if _torch_computes(name):
        yield "cheat-compute", node.lineno, name
        return
    if not isinstance(node.func, ast.Attribute):
        return
    member = names.members.get(node.func.attr, "") if _of_self(node.func) else ""
    if member.startswith("torch.nn.") and member.rpartition(".")[2] not in _PLAIN_MODULES:
        yield "cheat-compute", node.lineno, f"self.{node.func.attr}, a {member}"
    root = name.partition(".")[0]
    imported = root in {item.partition(".")[0] for item in names.imports.values()}
    if node.func.attr in _COMPUTING and not imported and not _of_self(node.func):
        yield "cheat-compute", node.lineno, f"the method {node.func.attr}()"


def _constant(node: ast.AST) -> bool:
    """Arithmetic of numbers only, `1 << 20` and the like."""
    return all(
        isinstance(item, (ast.BinOp, ast.Constant, ast.operator, ast.UnaryOp, ast.unaryop))
        for item in ast.walk(node)
    )


def _torch_computes(name: str) -> bool:
    if name.startswith("torch.nn.functional."):
        return True
    if name.startswith(("torch.nn.", "torch_npu.")):
        short = name.rpartition(".")[2]
        return name.startswith("torch_npu.npu_") or (
            name.startswith("torch.nn.") and short not in _PLAIN_MODULES
        )
    if not name.startswith("torch."):
        return False
    rest = name.split(".")[1:]
    plain = ("no_grad", "device", "Size", "float32", "npu", "cuda", "is_tensor", "finfo", "iinfo")
    return rest[0] not in _ALLOCATING and rest[0] not in plain
