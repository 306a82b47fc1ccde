"""Rows in order: a kernel that is one sort or topk along the last dimension.

A row is sorted on chip: `argsort` gives the places, `gather` the elements. A row that does not fit
lies in pieces in workspace; neighbours are sorted together, the even pairs and the odd ones by
turns (odd-even transposition of blocks). Integers of more than 24 bits are sorted by their digits
of 16 bits, the lowest first. topk goes through a row in pieces, each sorted together with the best
elements so far. What else a graph does, other kernels do
(partition.py); other dimensions are turned to the end at the capture (task/decompositions.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Const, Dim, Expr, Program
from npusmith.ir.spec import OpSpec, Port, Source
from npusmith.ir.text import show_expr
from npusmith.lang import parse
from npusmith.plan.emit import buffer_dtype
from npusmith.plan.fixed_sizes import held_sizes
from npusmith.plan.names import tensor_name
from npusmith.plan.refusals import refusal
from npusmith.plan.scalars import product
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph, GraphInput, Node, Ref

_MOST = 4096  # elements that are sorted together
_WORDS = {DType.INT32: 1, DType.INT64: 2}  # of 32 bits, in integers that float32 does not hold
_DIGITS = 2  # of 16 bits in a word
_GATHERED = {2, 4}  # bytes of elements that `gather` takes

Written = tuple[Program, OpSpec, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Order:
    """What is asked for: the first `kept` elements (all: None) in an order."""

    node: Node
    x: GraphInput
    name: str  # of the input, in the program
    mode: str
    kept: int | None
    outputs: tuple[tuple[str, int], ...]  # names, and which of the results they are

    @property
    def dims(self) -> tuple[Expr, ...]:
        return tuple(Dim(self.name, i) for i in range(len(self.x.shape)))

    @property
    def whole(self) -> bool:
        """Whether the elements are integers that float32 does not hold."""
        return self.x.dtype in _WORDS


def write_sort(graph: Graph, name: str, chip: Chip) -> Written | None:
    """The program of a graph that is one sort or topk; None for others."""
    found = _find(graph)
    if found is None:
        return None
    streamed = found.kept is not None and not found.whole
    kernel = _by_digits(found) if found.whole else _best(found) if streamed else _sorted(found)
    most = _row(kernel, found, chip)
    if found.whole and found.x.shape[-1] > most:
        _refuse(graph, found, "rows", found.x.shape[-1], most)
    if streamed and found.kept is not None and found.kept > most // 2:
        _refuse(graph, found, "the elements that are kept", found.kept, most // 2)
    kept = "cols" if found.kept is None else str(found.kept)
    host = [
        f"cols = max(1, {size_text(found.dims[-1:])})",
        f"rows = {size_text(found.dims[:-1])} if {size_text(found.dims[-1:])} > 0 else 0",
        "cores = max(1, min(rows, chip.vector_cores))",
        "rows_per_core = ceil_div(rows, cores)",
    ]
    last: Expr = found.dims[-1] if found.kept is None else Const(found.kept)
    shape = (*found.x.shape[:-1], found.x.shape[-1] if found.kept is None else found.kept)
    outs = tuple(
        Port(called, DType.INT64 if which else found.x.dtype, shape, dims=(*found.dims[:-1], last))
        for called, which in found.outputs
    )
    consts, scratch = [f"ROW = {most}"], {}
    if streamed:
        consts += [f"BEST = {_best_room(found)}", f"PIECE = {most - _best_room(found)}"]
    elif not found.whole:
        consts += [f"PIECE = {most // 2}"]
        host += [f"work = cores * cols if cols > {most} else 0"]
        scratch = {"row_keys": "float32", "row_ids": "int32"}
    heads = [f"{found.name}: input({found.x.dtype.value})"]
    heads += [f"{port.name}: output({port.dtype.value})" for port in outs]
    heads += [f"{key}: scratch({dtype})" for key, dtype in scratch.items()]
    heads += ["rows: int", "rows_per_core: int", "cols: int"]
    given = ", ".join(
        [f"{item}={item}" for item in ("rows", "rows_per_core", "cols")]
        + [f"{key}=work" for key in scratch]
    )
    tensors = ", ".join([found.name, *(port.name for port in outs)])
    lines = [
        f'"""{name}: rows of {found.name} in {found.mode} order"""', "", *consts, "", "",
        "@host", f"def host({tensors}):", *indented([*host, f"launch({name}, cores, {given})"]),
        "", "", "@kernel", f"def {name}({', '.join(heads)}):",
        *indented([line.replace("KEPT", kept) for line in kernel]), "",
    ]  # fmt: skip
    legal: list[Expr] = list(held_sizes(graph, {found.x.name: found.name}))
    if found.whole and not isinstance(found.dims[-1], Const):
        legal.append(Binary(BinOp.LE, found.dims[-1], Const(most)))
    if found.kept is not None and not isinstance(found.dims[-1], Const):
        legal.append(Binary(BinOp.GE, found.dims[-1], Const(found.kept)))
    x = found.x
    port = Port(
        name=found.name, dtype=x.dtype, shape=x.shape, source=Source(x.kind),
        position=x.position, target=x.target,
    )  # fmt: skip
    spec = OpSpec(name, (port,), outs, single_output=len(outs) == 1, legal=tuple(legal))
    notes = (f"rows of at most {most} elements",) if found.whole else ()
    return parse("\n".join(lines), f"{name}.tile.py"), spec, notes


def _best_room(found: _Order) -> int:
    assert found.kept is not None
    return -(-found.kept // 8) * 8


_BUFFER = re.compile(r"\w+ = ub\((ROW|PIECE|BEST)( \* 4)?, (\w+)\)")


def _row(kernel: list[str], found: _Order, chip: Chip) -> int:
    """Elements of a row or a piece of one, such that all buffers fit."""
    each = fixed = 0
    for line in kernel:
        if match := _BUFFER.fullmatch(line):
            size = DType(match[3]).bytes * (4 if match[2] else 1)
            if match[1] == "BEST":
                fixed += size * _best_room(found)
            else:
                each += size
    return min(_MOST, (chip.ub_bytes - fixed) // each // 64 * 64)


def _refuse(graph: Graph, found: _Order, what: str, count: int, most: int) -> None:
    raise refusal(
        graph, found.node, "plan-ub", f"{what}: {count} do not fit on chip to be sorted",
        legal=f"at most {most}", hint="topk takes rows of any length, for few elements of each",
    )  # fmt: skip


def _find(graph: Graph) -> _Order | None:
    calls = [node for node in graph.nodes if not node.op.endswith("getitem")]
    if len(calls) != 1 or word_of(calls[0]) not in ("sort", "topk"):
        return None
    node = calls[0]
    taken = {item.name: item for item in graph.nodes if item is not node}
    first = node.args[0]
    x = next((i for i in graph.inputs if isinstance(first, Ref) and i.name == first.ref), None)
    if x is None or not x.shape or any(name not in taken for name in graph.outputs):
        return None
    used: set[str] = set()
    name = tensor_name(x.name, used)
    several = len(graph.outputs) > 1
    outputs = tuple(
        (tensor_name(f"y{i}" if several else "y", used), _which(taken[out]))
        for i, out in enumerate(graph.outputs)
    )
    mode, kept = _asked(node)
    return _Order(node, x, name, mode, kept, outputs)


def _which(node: Node) -> int:
    number = node.args[1]
    assert isinstance(number, int)
    return number


def _asked(node: Node) -> tuple[str, int | None]:
    """The order, and how many elements are kept: all where None."""
    kept: int | None = None
    largest = False
    if word_of(node) == "topk":
        asked = node.args[1]
        assert isinstance(asked, int)
        kept = asked
        largest = bool(node.args[3] if len(node.args) > 3 else node.kwargs.get("largest", True))
    elif node.op.endswith("stable"):
        largest = bool(node.kwargs.get("descending", False))
    else:
        largest = bool(node.args[2] if len(node.args) > 2 else node.kwargs.get("descending", False))
    return ("descending" if largest else "ascending"), kept


# ----------------------------------------------------------------------------------------- kernels

_ROWS = [
    "first = core_id() * rows_per_core",
    "for row in range(first, min(first + rows_per_core, rows)):",
]


def _stores(found: _Order, values: str, places: str) -> list[str]:
    at = "[row * KEPT]"
    return ["with copy_out:"] + [
        f"    store({name}{at}, {places if which else values}, KEPT)"
        for name, which in found.outputs
    ]


def _wanted(found: _Order, which: int) -> bool:
    return any(number == which for _, number in found.outputs)


def _loaded(found: _Order, length: str) -> tuple[list[str], list[str]]:
    """Buffers for a row, and the statements that make float32 `keys` of its elements `x_in`."""
    dtype = found.x.dtype
    buffers = [f"x_in = ub({length}, {buffer_dtype(dtype).value})"]
    if dtype is DType.FLOAT32:
        return buffers, []
    if dtype.bytes == 2:
        return [*buffers, f"keys = ub({length}, float32)"], ['cast(keys, x_in, "none", n)']
    buffers += [f"small_in = ub({length}, float16)", f"keys = ub({length}, float32)"]
    return buffers, ['cast(small_in, x_in, "none", n)', 'cast(keys, small_in, "none", n)']


def _elements(found: _Order, count: str, source: str = "x_in") -> tuple[list[str], list[str]]:
    """Buffers for the elements `y_out` and places `places` that `order` says, and how they come."""
    dtype = found.x.dtype
    buffers, body = [], []
    if _wanted(found, 0):
        plain = dtype.bytes in _GATHERED
        buffers += ["offsets = ub(ROW, int32)", f"y_out = ub(ROW, {buffer_dtype(dtype).value})"]
        body += [f"muls(offsets, order, {dtype.bytes if plain else 2}, {count})"]
        if plain:
            body += [f"gather(y_out, {source}, offsets, 0, {count})"]
        else:
            buffers += ["chosen = ub(ROW, float16)"]
            body += [f"gather(chosen, small_in, offsets, 0, {count})"]
            body += [f'cast(y_out, chosen, "rint", {count})']
    if _wanted(found, 1):
        buffers += ["places = ub(ROW, int64)"]
        body += [f'cast(places, order, "none", {count})']
    return buffers, body


def _sorted(found: _Order) -> list[str]:
    """Whole rows at a time; of rows that are longer, pieces are sorted two by two."""
    made, widened = _loaded(found, "ROW")
    keys = "x_in" if found.x.dtype is DType.FLOAT32 else "keys"
    more, chosen = _elements(found, "n")
    last, out = _finished(found)
    offsets = [] if any("offsets" in line for line in more) else ["offsets = ub(ROW, int32)"]
    return [
        *made, "tmp = ub(ROW * 4, float32)", "order = ub(ROW, int32)", *more, *offsets,
        *[line for line in last if line not in more],
        "pair = ub(ROW, float32)", "ids = ub(ROW, int32)", "best = ub(ROW, float32)",
        "best_ids = ub(ROW, int32)", *_ROWS,
        *indented([
            "if cols <= ROW:",
            *indented([
                "n = cols",
                "with copy_in:",
                f"    load(x_in, {found.name}[row * cols], n)",
                "with compute:",
                *indented([*widened, f'argsort(order, {keys}, tmp, "{found.mode}", n)', *chosen]),
                *_stores(found, "y_out", "places"),
            ]),
            "else:",
            *indented(["own = core_id() * cols", *_long(found, widened, keys), *out]),
        ]),
    ]  # fmt: skip


def _long(found: _Order, widened: list[str], keys: str) -> list[str]:
    """A row in this core's workspace, in order: sorts of two neighbouring pieces, by turns."""
    return [
        "for at in range(0, cols, ROW):",
        *indented([
            "n = min(ROW, cols - at)",
            "with copy_in:",
            f"    load(x_in, {found.name}[row * cols + at], n)",
            "with compute:",
            *indented([*widened, f"muls(best, {keys}, 1.0, n)", "create_index(best_ids, at, n)"]),
            *_STORE_PAIR,
        ]),
        "pieces = ceil_div(cols, PIECE)",
        "for turn in range(pieces + 1):",
        *indented([
            "for at in range(turn % 2 * PIECE, cols, ROW):",
            *indented([
                "n = min(ROW, cols - at)",
                *_LOAD_PAIR,
                "with compute:",
                *indented([
                    f'argsort(order, pair, tmp, "{found.mode}", n)',
                    "muls(offsets, order, 4, n)",
                    "gather(best, pair, offsets, 0, n)",
                    "gather(best_ids, ids, offsets, 0, n)",
                ]),
                *_STORE_PAIR,
            ]),
        ]),
    ]  # fmt: skip


_LOAD_PAIR = [
    "with copy_in:",
    "    load(pair, row_keys[own + at], n)",
    "    load(ids, row_ids[own + at], n)",
]
_STORE_PAIR = [
    "with copy_out:",
    "    store(row_keys[own + at], best, n)",
    "    store(row_ids[own + at], best_ids, n)",
]


def _finished(found: _Order) -> tuple[list[str], list[str]]:
    """What is in order in the workspace, as the outputs."""
    dtype = found.x.dtype
    buffers, body, stores = [], [], ["with copy_out:"]
    for name, which in found.outputs:
        called = "places" if which else "y_out"
        stores.append(f"    store({name}[row * cols + at], {called}, n)")
    if _wanted(found, 0):
        buffers += [f"y_out = ub(ROW, {buffer_dtype(dtype).value})"]
        if dtype is DType.FLOAT32:
            body += ["muls(y_out, pair, 1.0, n)"]
        elif dtype.bytes == 1:
            buffers += ["chosen = ub(ROW, float16)"]
            body += ['cast(chosen, pair, "rint", n)', 'cast(y_out, chosen, "rint", n)']
        else:
            body += ['cast(y_out, pair, "rint", n)']
    if _wanted(found, 1):
        buffers += ["places = ub(ROW, int64)"]
        body += ['cast(places, ids, "none", n)']
    out = [
        "for at in range(0, cols, ROW):",
        *indented([
            "n = min(ROW, cols - at)", *_LOAD_PAIR, "with compute:", *indented(body), *stores,
        ]),
    ]  # fmt: skip
    return buffers, out


def _best(found: _Order) -> list[str]:
    """Pieces of a row, each behind the best elements so far: of equal ones these come first."""
    dtype = found.x.dtype
    made, widened = _loaded(found, "PIECE")
    made = [line for line in made if not line.startswith("keys")]
    widened = [line.replace("(keys,", "(keys[BEST],") for line in widened]
    last = widened or ["muls(keys[BEST], x_in, 1.0, n)"]
    back = {
        DType.FLOAT32: ["muls(y_out, best, 1.0, KEPT)"],
        DType.INT8: ['cast(small, best, "none", KEPT)', 'cast(y_out, small, "rint", KEPT)'],
    }
    back[DType.UINT8] = back[DType.BOOL] = back[DType.INT8]
    buffers = ["keys = ub(ROW, float32)", "ids = ub(ROW, int32)", "best = ub(BEST, float32)",
               "best_ids = ub(BEST, int32)", "tmp = ub(ROW * 4, float32)", "order = ub(ROW, int32)",
               "offsets = ub(BEST, int32)"]  # fmt: skip
    after = []
    if _wanted(found, 0):
        buffers += [f"y_out = ub(BEST, {buffer_dtype(dtype).value})"]
        buffers += ["small = ub(BEST, float16)"] if dtype.bytes == 1 else []
        after += back.get(dtype, ['cast(y_out, best, "rint", KEPT)'])
    if _wanted(found, 1):
        buffers += ["places = ub(BEST, int64)"]
        after += ['cast(places, best_ids, "none", KEPT)']
    return [
        *made, *buffers, *_ROWS,
        *indented([
            "for at in range(0, cols, PIECE):",
            *indented([
                "n = min(PIECE, cols - at)",
                "base = BEST if at == 0 else 0",
                "total = n + BEST - base",
                "kept = min(BEST, total)",
                "with copy_in:",
                f"    load(x_in, {found.name}[row * cols + at], n)",
                "with compute:",
                *indented([
                    *last,
                    "create_index(ids[BEST], at, n)",
                    f'argsort(order, keys[base], tmp, "{found.mode}", total)',
                    "muls(offsets, order, 4, kept)",
                    "gather(best, keys[base], offsets, 0, kept)",
                    "gather(best_ids, ids[base], offsets, 0, kept)",
                    "muls(keys, best, 1.0, kept)",
                    "muls(ids, best_ids, 1, kept)",
                ]),
            ]),
            "with compute:",
            *indented(after),
            *_stores(found, "y_out", "places"),
        ]),
    ]  # fmt: skip


def _by_digits(found: _Order) -> list[str]:
    """Integers by their digits, the lowest first: a sort keeps the order of equal ones."""
    dtype = found.x.dtype
    words = _WORDS[dtype]
    buffers = [f"x_in = ub(ROW, {dtype.value})", "word = ub(ROW, int32)", "high = ub(ROW, int32)",
               "low = ub(ROW, int32)", "digit = ub(ROW, float32)", "key = ub(ROW, float32)",
               "tmp = ub(ROW * 4, float32)", "found = ub(ROW, int32)", "order = ub(ROW, int32)",
               "offsets = ub(ROW, int32)"]  # fmt: skip
    body = ["create_index(order, 0, n)"]
    for place in range(words * _DIGITS):
        at, upper = divmod(place, _DIGITS)
        if not upper:
            read = "value(x_in[i])" if words == 1 else f"right_shift(value(x_in[i]), {32 * at})"
            body += _word(read) if words > 1 else ["muls(word, x_in, 1, n)"]
            body += ["shift_right(high, word, 16, n)", "shift_left(low, high, 16, n)",
                     "sub(low, word, low, n)", 'cast(digit, low, "rint", n)']  # fmt: skip
        else:
            if at < words - 1:  # its sign is a bit as any other
                body += ["shift_right(low, high, 15, n)", "shift_left(low, low, 16, n)",
                         "sub(high, high, low, n)"]  # fmt: skip
            body += ['cast(digit, high, "rint", n)']
        body += ["muls(offsets, order, 4, n)", "gather(key, digit, offsets, 0, n)",
                 f'argsort(found, key, tmp, "{found.mode}", n)', "muls(found, found, 4, n)",
                 "gather(low, order, found, 0, n)", "muls(order, low, 1, n)"]  # fmt: skip
    if _wanted(found, 0):
        buffers += [f"y_out = ub(ROW, {buffer_dtype(dtype).value})"]
        if words == 1:
            body += ["muls(offsets, order, 4, KEPT)", "gather(y_out, x_in, offsets, 0, KEPT)"]
        else:
            body += ["for i in range(KEPT):", "    set(y_out[i], value(x_in[value(order[i])]))"]
    if _wanted(found, 1):
        buffers += ["places = ub(ROW, int64)"]
        body += ['cast(places, order, "none", KEPT)']
    return [
        *buffers, *_ROWS,
        *indented([
            "n = cols",
            "with copy_in:",
            f"    load(x_in, {found.name}[row * cols], n)",
            "with compute:",
            *indented(body),
            *_stores(found, "y_out", "places"),
        ]),
    ]  # fmt: skip


def _word(read: str) -> list[str]:
    """32 bits of every 64-bit element."""
    return ["for i in range(n):", f"    set(word[i], {read})"]


# ------------------------------------------------------------------------------------------- text


def size_text(items: Sequence[Expr]) -> str:
    """The product of some dimensions, as text of the host function."""
    return show_expr(product(items))


def indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def word_of(node: Node) -> str:
    """PyTorch's name of an operation."""
    parts = node.op.split(".")
    return parts[1] if parts[0] == "aten" and len(parts) > 1 else ""
