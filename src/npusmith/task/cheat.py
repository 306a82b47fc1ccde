"""Does the Python part of a candidate compute by itself? `find_cheats(text, entry) -> findings`.

MultiKernelBench's rule in our words: whatever `forward` reaches in its file may allocate, view,
cast, move data and call the compiled module. Functions of torch, functional calls, computing
methods of tensors and computing submodules are cheating. Arithmetic operators are too, but sizes
need them as well: they are told apart as a warning. What hides a computation from a reader (exec,
hooks, a replaced forward, the interpreter's own insides) is refused wherever it stands.

This is the second layer: it names the line. What convicts a candidate that found other words is
that its outputs do not come out of its launches (task/isolated/origin).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from npusmith.errors import CODES
from npusmith.twin.finding import Finding


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ALLOCATING = _words(
    """
    empty empty_like empty_strided zeros zeros_like ones ones_like full full_like tensor arange
    linspace as_tensor Size device dtype no_grad inference_mode float32 npu cuda is_tensor finfo
    iinfo Tensor Generator manual_seed is_floating_point
    """
)
_COMPUTING = _words(
    """
    sum mean max min prod cumsum cumprod argmax argmin var std matmul mm bmm addmm add sub mul div
    fmod remainder relu sigmoid tanh gelu silu elu leaky_relu exp log log2 log10 sqrt rsqrt pow abs
    sin cos clamp ceil floor round reciprocal neg sign softmax log_softmax norm layer_norm
    batch_norm group_norm conv1d conv2d conv3d conv_transpose2d linear dropout softplus hardtanh
    hardswish eq ne lt gt le ge where einsum masked_fill scatter scatter_add gather topk sort dot
    outer cdist absolute amax amin all any argsort square subtract multiply divide true_divide
    negative maximum minimum logsumexp erf expm1 log1p lerp addcmul addcdiv addmv baddbmm mv inner
    ger tril triu cummax cummin diff clip clamp_min clamp_max index_add index_reduce scatter_reduce
    masked_scatter nan_to_num logit mish selu celu hardsigmoid hardshrink softshrink threshold prelu
    rms_norm instance_norm interpolate max_pool1d max_pool2d max_pool3d avg_pool2d renorm trace svd
    median mode quantile kthvalue unique bincount histc logical_and logical_or logical_not
    bitwise_and bitwise_or bitwise_xor cross kron tensordot vdot var_mean std_mean apply_ map_
    """
)
_DUNDERS = _words(
    """
    __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __truediv__
    __rtruediv__ __itruediv__ __floordiv__ __mod__ __pow__ __rpow__ __matmul__ __rmatmul__ __neg__
    __abs__ __gt__ __lt__ __ge__ __le__ __and__ __or__ __xor__ __invert__ __array__ __array_ufunc__
    """
)
_PLAIN_MODULES = _words(
    """
    Module Parameter ParameterList ParameterDict ModuleList ModuleDict Sequential Identity Flatten
    Unflatten Buffer init
    """
)
_HIDING_NAMES = _words("exec eval compile __import__ globals locals vars delattr __builtins__")
_HIDING_MODULES = _words(
    """
    builtins importlib gc inspect ctypes cffi struct mmap pickle marshal dill cloudpickle copyreg
    operator threading multiprocessing concurrent subprocess socket signal code codeop ast dis types
    runpy imp numba cupy scipy jax tensorflow npusmith _thread atexit weakref
    """
)
_HIDING_TORCH = (
    "torch.compile", "torch.jit", "torch.fx", "torch._C", "torch._dynamo", "torch.ops.aten",
    "torch.ops.prims", "torch._refs", "torch._prims", "torch.library", "torch.overrides",
    "torch.utils._python_dispatch", "torch.utils.cpp_extension", "torch._inductor", "torch.func",
    "torch.vmap", "torch._tensor", "torch.multiprocessing", "torch.load", "torch.export",
)  # fmt: skip
_HIDING_MEMBERS = _words(
    """
    register_forward_hook register_forward_pre_hook register_module_forward_hook _forward_hooks
    register_module_forward_pre_hook _forward_pre_hooks __torch_function__ __torch_dispatch__
    __subclasses__ __globals__ __builtins__ __code__ __closure__ __dict__ __mro__ __bases__
    __getattribute__ __wrapped__ f_globals f_locals f_back tb_frame gi_frame _getframe meta_path
    path_hooks _call_impl __subclasshook__ __init_subclass__ __set_name__ __class_getitem__ modules
    fork execv execve popen system
    """
)
_REPLACED = _words("forward __call__ __class__ _call_impl __getattr__ __new__ _wrapped_call_impl")
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
_BUILT_IN = ("sum", "pow", "abs", "divmod")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MOST = 20  # findings told


@dataclass(slots=True)
class _File:
    """Names of the file: what it defines at its outer level, and what names stand for."""

    defined: dict[str, list[ast.AST]] = field(default_factory=dict)  # functions and assigned values
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)  # local name -> full name, aliases too
    members: dict[str, list[ast.expr]] = field(default_factory=dict)  # of self -> what was assigned
    starred: list[tuple[str, int]] = field(default_factory=list)


def find_cheats(text: str, entry: str = "ModelNew", file: str = "") -> list[Finding]:
    """The findings of the Python part; a text that does not parse has none (it will not run)."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names = _read(tree)
    found: dict[tuple[str, int], Finding] = {}
    for node in _reached(names, entry):
        for code, line, what in _judge(node, names):
            found.setdefault((code, line), _finding(code, what, file, line))
    for node in ast.walk(tree):
        for line, what in _hiding(node, names):
            found.setdefault(("cheat-hidden", line), _finding("cheat-hidden", what, file, line))
    return [found[key] for key in sorted(found, key=lambda key: key[1])][:_MOST]


def _finding(code: str, what: str, file: str, line: int) -> Finding:
    message = f"the Python part uses {what}"
    return Finding(code=code, level=CODES[code].level, message=message, file=file, line=line)


# ------------------------------------------------------------------------------------------ names


def _read(tree: ast.Module) -> _File:
    names = _File()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                local = alias.asname or alias.name.partition(".")[0]
                names.imports[local] = alias.name if alias.asname else local
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names.imports[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                if alias.name == "*":
                    names.starred.append((node.module or "", node.lineno))
    for node in ast.walk(tree):  # `f = torch.exp` gives a second name
        for target, value in _assigned(node):
            full = _full(value, names)
            if isinstance(target, ast.Name) and "." in full and not full.startswith("self."):
                names.imports.setdefault(target.id, full)
            elif _of_self(target):
                names.members.setdefault(target.attr, []).append(value)  # type: ignore[attr-defined]
    for node in tree.body:
        if isinstance(node, _FUNCTIONS):
            names.defined.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            names.classes[node.name] = node
        for target, value in _assigned(node):
            if isinstance(target, ast.Name):
                names.defined.setdefault(target.id, []).append(value)
    return names


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets with their values, pairs of tuples taken apart."""
    value = getattr(node, "value", None)
    if isinstance(node, ast.Assign) and value is not None:
        for target in node.targets:
            pairs = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            if pairs and len(target.elts) == len(value.elts):  # type: ignore[attr-defined]
                yield from zip(target.elts, value.elts, strict=True)  # type: ignore[attr-defined]
            else:
                yield target, value
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and value is not None:
        yield node.target, value


def _of_self(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def _full(node: ast.expr, names: _File) -> str:
    """The dotted name of an expression, imports and getattr resolved; "" when it is no name."""
    parts: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif _is_getattr(node) and isinstance(node.args[1], ast.Constant):  # type: ignore[attr-defined]
            parts.append(str(node.args[1].value))  # type: ignore[attr-defined]
            node = node.args[0]  # type: ignore[attr-defined]
        else:
            break
    if not isinstance(node, ast.Name):
        return ""
    parts.append(names.imports.get(node.id, node.id))
    return ".".join(reversed(parts))


def _is_getattr(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "getattr"
        and len(node.args) >= 2
    )


def _reached(names: _File, entry: str) -> Iterator[ast.AST]:
    """Every node that a call of the class may execute: what its methods but __init__ name."""
    queue: list[ast.AST] = []
    seen: set[str] = set()

    def enter(name: str) -> None:
        if name in seen:
            return
        seen.add(name)
        queue.extend(names.defined.get(name, ()))
        if name in names.classes:
            queue.extend(_methods(names.classes[name]))
            for base in names.classes[name].bases:
                queue.append(base)

    enter(entry)
    while queue:
        for node in ast.walk(queue.pop()):
            yield node
            if isinstance(node, ast.Name):
                enter(node.id)
            if not isinstance(node, ast.Attribute) or not _of_self(node):
                continue
            if f".{node.attr}" not in seen:
                seen.add(f".{node.attr}")
                queue.extend(_late(names.members.get(node.attr, []), names))


def _methods(kind: ast.ClassDef) -> Iterator[ast.AST]:
    """What of a class runs in calls: its methods, if forward can come to them."""
    table = {item.name: item for item in kind.body if isinstance(item, _FUNCTIONS)}
    roots = [name for name in table if name != "__init__" and (name == "forward" or "__" in name)]
    used, queue = set(roots), list(roots)
    while queue:
        for node in ast.walk(table[queue.pop()]):
            name = node.attr if isinstance(node, ast.Attribute) else ""
            if name in table and name not in used and name != "__init__":
                used.add(name)
                queue.append(name)
    yield from (table[name] for name in used)
    yield from (item.value for item in kind.body if isinstance(item, (ast.Assign, ast.AnnAssign))
                if item.value is not None)  # fmt: skip


def _late(values: list[ast.expr], names: _File) -> Iterator[ast.AST]:
    """Of what __init__ assigned: that which runs when it is called, and names of the file."""
    for value in values:
        for node in ast.walk(value):
            torch = isinstance(node, ast.Attribute) and _torch_computes(_full(node, names))
            if torch or isinstance(node, (ast.Lambda, ast.Name)):
                yield node


# --------------------------------------------------------------------------------------- computing


def _judge(node: ast.AST, names: _File) -> Iterator[tuple[str, int, str]]:
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, _ARITHMETIC):
        if isinstance(node.op, ast.MatMult):
            yield "cheat-compute", node.lineno, "the operator @"
        elif not _constant(node):
            yield "cheat-arithmetic", node.lineno, f"the operator {type(node.op).__name__}"
    if isinstance(node, (ast.Attribute, ast.Name)):
        full = _full(node, names)
        if _torch_computes(full) and _is_function(full):
            yield "cheat-compute", node.lineno, full
        elif isinstance(node, ast.Attribute) and not full.startswith("self."):
            yield from _method(node, full, names)
    if not isinstance(node, ast.Call):
        return
    name = _full(node.func, names)
    if _torch_computes(name) or _numpy_computes(name):
        yield "cheat-compute", node.lineno, name
        return
    if isinstance(node.func, ast.Attribute):
        yield from _method(node.func, name, names)
    if name in _BUILT_IN:
        yield "cheat-arithmetic", node.lineno, f"{name}()"
    if _is_getattr(node):
        yield from _by_name(node, names)


def _method(node: ast.Attribute, name: str, names: _File) -> Iterator[tuple[str, int, str]]:
    if _of_self(node):
        made = names.members.get(node.attr, [])
        kinds = [_full(item.func if isinstance(item, ast.Call) else item, names) for item in made]
        for kind in kinds:
            if kind.startswith("torch.nn.") and kind.rpartition(".")[2] not in _PLAIN_MODULES:
                yield "cheat-compute", node.lineno, f"self.{node.attr}, a {kind}"
        return
    root = name.partition(".")[0]
    imported = root in {item.partition(".")[0] for item in names.imports.values()}
    computes = node.attr in _DUNDERS or node.attr.rstrip("_") in _COMPUTING
    if computes and not imported:
        yield "cheat-compute", node.lineno, f"the method {node.attr}()"


def _by_name(node: ast.Call, names: _File) -> Iterator[tuple[str, int, str]]:
    """getattr(x, "relu") is x.relu; a name that is put together may be anything's."""
    name = node.args[1]
    if not isinstance(name, ast.Constant):
        if not (isinstance(node.args[0], ast.Name) and node.args[0].id == "self"):
            yield "cheat-hidden", node.lineno, "getattr with a name that is not written out"
    elif str(name.value) in _DUNDERS or str(name.value).rstrip("_") in _COMPUTING:
        full = _full(node, names)
        yield "cheat-compute", node.lineno, full or f"the method {name.value!s}()"


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
    return name.startswith("torch.") and not _allocates(name)


def _allocates(name: str) -> bool:
    parts = name.split(".")[1:]
    return parts[0] in _ALLOCATING and (parts[0] != "Tensor" or len(parts) == 1)


def _is_function(name: str) -> bool:
    """Of a name that is not called here: does it stand for a computation?"""
    short = name.rpartition(".")[2]
    return short.rstrip("_") in _COMPUTING or short in _DUNDERS


def _numpy_computes(name: str) -> bool:
    plain = ("dtype", "empty", "zeros", "ones", "prod", "int64", "int32", "float32")
    return name.startswith("numpy.") and name.partition(".")[2] not in plain


# ------------------------------------------------------------------------------------------ hiding


def _hiding(node: ast.AST, names: _File) -> Iterator[tuple[int, str]]:
    """What keeps a reader from seeing what is computed."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from _imported(node)
    elif isinstance(node, ast.Name) and node.id in _HIDING_NAMES:
        yield node.lineno, node.id
    elif isinstance(node, ast.Attribute):
        full = _full(node, names)
        if node.attr in _HIDING_MEMBERS and not (node.attr == "modules" and full != "sys.modules"):
            yield node.lineno, f".{node.attr}"
        elif full.startswith(_HIDING_TORCH):
            yield node.lineno, full
    elif isinstance(node, _FUNCTIONS) and node.name in _HIDING_MEMBERS:
        yield node.lineno, f"a method {node.name}"
    elif isinstance(node, ast.ClassDef):
        yield from _kind(node, names)
    elif isinstance(node, ast.Call):
        yield from _set(node)
    for target, _ in _assigned(node):
        yield from _replaced(target, names)


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[int, str]]:
    listed = [alias.name for alias in node.names]
    module = getattr(node, "module", None) or ""
    for name in listed:
        full = f"{module}.{name}" if module else name
        root = full.partition(".")[0]
        if root in _HIDING_MODULES:
            yield node.lineno, f"the module {root}"
        elif full.startswith(_HIDING_TORCH) or full == "sys.modules":
            yield node.lineno, full
        elif name == "*" and root in ("torch", "numpy", "sys", "os"):
            yield node.lineno, f"everything of {module}"


def _kind(node: ast.ClassDef, names: _File) -> Iterator[tuple[int, str]]:
    for item in node.keywords:
        yield node.lineno, f"a class with {item.arg or 'arguments'}"
    for base in node.bases:
        full = _full(base, names)
        if full in ("torch.Tensor", "torch.nn.Parameter", "type", "torch.autograd.Function"):
            yield node.lineno, f"a class made of {full}"


def _set(node: ast.Call) -> Iterator[tuple[int, str]]:
    """setattr on anything but a plain name of self; type() that makes a class."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    name = node.func.id if isinstance(node.func, ast.Name) else name
    if name in ("setattr", "__setattr__"):
        word = node.args[1] if len(node.args) > 2 else node.args[0] if node.args else None
        plain = isinstance(word, (ast.Constant, ast.JoinedStr)) and not (
            isinstance(word, ast.Constant) and str(word.value) in _REPLACED | _HIDING_MEMBERS
        )
        if not plain:
            yield node.lineno, "setattr"
    elif name == "type" and len(node.args) == 3:
        yield node.lineno, "a class that type() makes"


def _replaced(target: ast.expr, names: _File) -> Iterator[tuple[int, str]]:
    """`x.forward = ...`, and members of modules and classes that are given another value."""
    if isinstance(target, ast.Subscript):
        if _full(target.value, names) == "sys.modules":
            yield target.lineno, "sys.modules"
        return
    if not isinstance(target, ast.Attribute):
        return
    full = _full(target, names)
    root = full.partition(".")[0]
    known = {item.partition(".")[0] for item in names.imports.values()} | set(names.classes)
    if target.attr in _REPLACED:
        yield target.lineno, f"another {target.attr}"
    elif root in known:
        yield target.lineno, f"another {full}"
