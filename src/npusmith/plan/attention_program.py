"""Attention in two kernels that run side by side: products on cube cores, an online softmax beside.

A block of rows goes through its keys, some hundred at a time. The cube core stores their scores to
workspace; its two vector cores keep the largest score of each row and the sum of weights below it,
and store the weights; the cube core multiplies these by values; the vector cores add that up,
scaled to the largest score so far. Scores of the next keys are ready before weights of the last
ones are awaited, so that both sides are busy: two places of each kind are enough.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Const, Expr, Program
from npusmith.ir.spec import OpSpec
from npusmith.ir.text import show_expr
from npusmith.lang import parse
from npusmith.lower.render import render, template_text
from npusmith.plan.attention_layout import Attention, Matrices, find_attention
from npusmith.plan.read import Meaning
from npusmith.plan.scalars import ONE, ZERO, product
from npusmith.plan.stores import ports
from npusmith.target.chips import Chip

_TEMPLATE = "attention.tile.j2"
_HIGH = 128  # rows of a block
_LOWER = (64, 32)  # of blocks where there are few
_MORE = 32  # rows' worth of time that a block takes besides
# Rows of a vector core at a time, and keys of a block: few where some are for nothing.
_WIDE = ((16, 512), (8, 512), (16, 256), (8, 256), (8, 128), (8, 64))
_TALL = ((16, 256), (8, 256), (8, 128), (8, 64))
_UNIT = 16  # rows and columns of a fractal
_BLOCK = 8  # floats
_HEAD = 128  # elements of a head


@dataclass(frozen=True, slots=True)
class _Shape:
    """Of tiles: rows and keys of a chunk of scores, rows of a chunk of results."""

    chunk: int
    wide: int
    out_chunk: int
    copies: int  # of weights

    @property
    def tmp(self) -> int:
        """Elements that folds of rows need, and spreads of numbers."""
        return self.chunk * (_UNIT + self.wide // 6 + 1) + 4 * _BLOCK * self.out_chunk

    def bytes(self, cols: int, found: Attention) -> int:
        """Of the unified buffer."""
        size, share = self.chunk * self.wide, _HIGH // 2
        each: float = 2 * 4 + self.copies * found.planes * found.query.dtype.bytes
        if found.mask is not None:
            each += 2 * found.mask.dtype.bytes + (2 if found.mask.dtype is DType.BOOL else 0)
        each += 4.125 if found.causal else 0
        each += 4 if found.causal or found.mask is not None or found.planes > 1 else 0
        rows = (
            self.out_chunk * cols * (2 * 4 + 2 * found.out.dtype.bytes)
        )  # twice where there is room
        spread = 4 * max(size, self.out_chunk * cols)
        more = 4 * self.wide if found.causal else 0
        return ceil(size * each) + rows + spread + 4 * (share * (cols + 7) + self.tmp) + more


def write_attention(
    meaning: Meaning, name: str, chip: Chip
) -> tuple[Program, OpSpec, tuple[str, ...]]:
    """The program of a graph that is one attention. Raises plan-cube and plan-ub."""
    taken = {*re.findall(r"[a-z_]+[a-z_0-9]*", template_text(_TEMPLATE)), name, f"{name}_softmax"}
    found = find_attention(meaning, taken)
    depth, cols = (_room(size) for _, size in (found.depth, found.cols))
    shape = _shape(cols, found, chip)
    program = parse(_text(found, name, depth, cols, shape))
    inputs, outputs = ports(found.space, [found.target])
    legal = [*found.space.legal]
    for (size, _), most in ((found.depth, depth), (found.cols, cols)):
        legal += [Binary(BinOp.LE, size, Const(most)), Binary(BinOp.GE, size, ONE)]
    legal.append(Binary(BinOp.GE, found.keys[0], ONE))
    legal = [item for item in legal if not _is_number(item)]
    spec = OpSpec(name, inputs, outputs, legal=tuple(dict.fromkeys(legal)))
    note = f"blocks of {_HIGH} rows and {shape.wide} keys, {shape.chunk} rows at a time"
    return program, spec, (*found.space.notes, note)


def _room(size: int) -> int:
    """Elements of a head for which there is room: most models have no more than 128."""
    return max(-(-size // _UNIT) * _UNIT, _HEAD)


def _is_number(test: Expr) -> bool:
    return isinstance(test, Binary) and isinstance(test.left, Const)


def _shape(cols: int, found: Attention, chip: Chip) -> _Shape:
    if found.depth[1] > 2 * _HIGH or found.cols[1] > 2 * _HIGH:
        raise PlanError("plan-ub", "heads of more than 256 elements")
    for chunk, wide in _TALL if found.causal else _WIDE:
        for copies in (2, 1):
            shape = _Shape(chunk, wide, chunk if cols <= _HIGH else _BLOCK, copies)
            if shape.bytes(cols, found) <= chip.ub_bytes:
                return shape
    raise PlanError("plan-ub", "rows of attention do not fit in the unified buffer")


def _text(found: Attention, name: str, depth: int, cols: int, shape: _Shape) -> str:
    dtype = found.query.dtype
    parts = {"query": found.query, "key": found.key, "value": found.value, "out": found.out}
    parts |= {"mask": found.mask} if found.mask is not None else {}
    defined = _sizes(found, parts)
    inputs = dict.fromkeys((found.query.tensor, found.key.tensor, found.value.tensor))
    starts = {key: _start(key, part) for key, part in parts.items()}
    indices, used = _indices(found)
    # the longest rows first, so that cores end together; else neighbours share their keys in L2
    row = "(row_blocks - 1 - unit // batches)" if found.causal else "unit % row_blocks"
    scalars = ["units", "row_blocks", "rows", "high", "keys", "cols", *used]
    scalars += ["batches"] if found.causal else []
    own = [f"{key}_step" for key in ("query", "key", "value")]
    cube = [*scalars, "depth", *own, *_names(starts, ("query", "key", "value"))]
    other = ["mask", "out"] if found.mask is not None else ["out"]
    vector = [
        *scalars,
        *(f"{key}_step" for key in other if parts[key].rows != ZERO),
        *_names(starts, other),
    ]
    mask = "" if found.mask is None else found.mask.dtype.value
    one_row = found.mask is not None and found.mask.rows == ZERO
    mask_name = "" if found.mask is None else found.mask.tensor
    host = [f"{key} = {text}" for key, text in defined.items()]
    tensors = [item.name for item in found.space.inputs]
    unused = [item for item in tensors if item not in {*inputs, mask_name}]
    types = {item.name: item.item.dtype.value for item in found.space.inputs}
    tile = _HIGH if dtype is not DType.FLOAT32 else _HIGH // 2
    return render(
        _TEMPLATE, doc=_doc(found, name), name=name, host=host,
        tensors=[*tensors, found.out.tensor],
        high=_HIGH, wide=shape.wide, chunk=shape.chunk, out_chunk=shape.out_chunk, depth=depth,
        cols=cols, tile=tile, scale=repr(found.scale),
        products_args=_given(cube), softmax_args=_given(vector),
        products_scalars=_declared(cube),
        softmax_scalars=_declared(vector),
        inputs=", ".join(f"{item}: input({types[item]})" for item in (*inputs, *unused)),
        mask_input=f"{mask_name}: input({mask}), " if mask else "",
        dtype=dtype.value, apart=dtype is DType.FLOAT32, indices=indices, row=row, starts=starts,
        query=found.query.tensor, key=found.key.tensor, value=found.value.tensor,
        out=found.out.tensor, out_type=found.out.dtype.value, mask_name=mask_name, one_row=one_row,
        mask="uint8" if mask == "bool" else mask, causal=found.causal,
        safe=found.safe, planes=found.planes,
        weight_copies=shape.copies, tmp=shape.tmp,
    )  # fmt: skip


def _doc(found: Attention, name: str) -> str:
    words = [found.query.tensor, found.key.tensor, found.value.tensor]
    text = f"{name}: {found.out.tensor}, attention of {words[0]} to {words[1]} and {words[2]}"
    if found.mask is not None:
        text += f" with mask {found.mask.tensor}"
    return text + (", each row to the keys up to its own place" if found.causal else "")


def _sizes(found: Attention, parts: Mapping[str, Matrices]) -> dict[str, str]:
    """Host variables, in order."""
    defined = {
        "rows": found.rows[0], "keys": found.keys[0], "depth": found.depth[0],
        "cols": found.cols[0],
    }  # fmt: skip
    defined |= {f"batch{i}": size for i, (size, _) in enumerate(found.batch)}
    for key, part in parts.items():
        if part.rows != ZERO:
            defined[f"{key}_step"] = part.rows
        if part.start != ZERO:
            defined[f"{key}_start"] = part.start
        for i, step in enumerate(part.batch):
            if step != ZERO:
                defined[f"{key}_batch{i}"] = step
    text = {key: show_expr(value) for key, value in defined.items()}
    text["_batches"] = show_expr(product(size for size, _ in found.batch))
    lines = {key.lstrip("_"): value for key, value in text.items()}
    for high in (_HIGH, *_LOWER):
        count = f"batches * ceil_div(rows, {high})"
        lines[f"time{high}"] = f"ceil_div({count}, chip.cube_cores) * {high + _MORE}"
    best = str(_LOWER[-1])
    ways = (_HIGH, *_LOWER)
    for at in range(len(ways) - 2, -1, -1):
        tests = " and ".join(f"time{ways[at]} <= time{other}" for other in ways[at + 1 :])
        best = f"{ways[at]} if {tests} else {best}"
    lines["high"] = best
    lines["row_blocks"] = "ceil_div(rows, high)"
    lines["units"] = "batches * row_blocks"
    lines["cores"] = "max(min(units, chip.cube_cores), 1)"
    return lines


def _indices(found: Attention) -> tuple[list[str], list[str]]:
    """Where along each axis of the batch a unit stands, and the sizes that this takes."""
    count, lines, used = len(found.batch), [], []
    rest = "unit % batches" if found.causal else "unit // row_blocks"
    for i in range(count - 1, 0, -1):
        rest = f"({rest})" if found.causal else rest
        lines.append(f"index{i} = {rest} % batch{i}")
        used.append(f"batch{i}")
        rest = f"{rest} // batch{i}"
    if count:
        lines.append(f"index0 = {rest}")
    return lines, used


def _start(key: str, part: Matrices) -> str:
    terms = [f"{key}_start"] if part.start != ZERO else []
    terms += [f"index{i} * {key}_batch{i}" for i, step in enumerate(part.batch) if step != ZERO]
    if key == "query":
        terms.append("row_at * query_step")
    if key == "mask" and part.rows != ZERO:
        terms.append("row_at * mask_step")
    if key == "out":
        terms.append("(row_at + first) * out_step")
    return " + ".join(terms) or "0"


def _names(starts: Mapping[str, str], keys: Sequence[str]) -> list[str]:
    found = (word for key in keys for word in re.findall(r"\w+", starts[key]))
    return [word for word in dict.fromkeys(found) if word.endswith("_start") or "_batch" in word]


def _given(names: list[str]) -> str:
    return ", ".join(f"{name}={name}" for name in dict.fromkeys(names))


def _declared(names: list[str]) -> str:
    return ", ".join(f"{name}: int" for name in dict.fromkeys(names))
