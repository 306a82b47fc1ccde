"""Operands of vector operations against the rows of the intrinsic table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Combine, Load, Op, Program, Store, TensorRole, View
from npusmith.ir.walk import statements
from npusmith.lang.log import Log
from npusmith.lang.words import closest, signature
from npusmith.target.cube import OUTFLOWS
from npusmith.target.intrinsics import (
    ARITH,
    CASTS,
    COMBINES,
    INTRINSICS,
    ROW_FORMS,
    RUNNING_STEP,
    SORT_STEP,
    Form,
    Intrinsic,
    Operand,
)
from npusmith.target.meaning import row_levels

ATOMIC_DTYPES = (
    DType.FLOAT32,
    DType.FLOAT16,
    DType.BFLOAT16,
    DType.INT32,
    DType.INT16,
    DType.INT8,
)


def paired(op: Op) -> Iterator[tuple[Operand, View]]:
    """The buffers of an operation with the part that each plays."""
    return zip(INTRINSICS[op.name].views, op.views, strict=True)


def written(op: Op) -> list[View]:
    """What the operation writes; scratch is clobbered."""
    return [view for kind, view in paired(op) if kind in (Operand.DST, Operand.TMP)]


def read(op: Op) -> list[View]:
    """What the operation reads."""
    row = INTRINSICS[op.name]
    return [
        view
        for kind, view in paired(op)
        if kind in (Operand.SRC, Operand.MASK, Operand.INDEX)
        or (kind is Operand.DST and row.reads_dst)
    ]


def well_formed(op: Op) -> str:
    """What is wrong with the number of operands; "" when nothing is (always so for parsed text)."""
    if op.name not in INTRINSICS:
        near = closest(op.name, list(INTRINSICS))
        return f"there is no operation {op.name!r}" + (f": {near!r}?" if near else "")
    row = INTRINSICS[op.name]
    scalars = row.operands.count(Operand.SCALAR)
    if len(op.views) != len(row.views) or len(op.scalars) != scalars:
        return f"the operands are not those of {signature(row)}"
    if op.mode not in (row.modes or ("",)):
        return f"{op.name} has no mode {op.mode!r}"
    return ""


def _source(row: Intrinsic, dtypes: Iterable[DType]) -> DType:
    """The dtype that the operation computes in: of its first source, else of its destination."""
    pairs = list(zip(row.views, dtypes, strict=True))
    sources = [dtype for kind, dtype in pairs if kind is Operand.SRC]
    return sources[0] if sources else pairs[0][1]


def scalar_is_float(op: Op, dtypes: list[DType]) -> bool:
    """Does the operation take a float as its scalar?"""
    row = INTRINSICS[op.name]
    return not row.int_scalar and _source(row, dtypes).is_float


def extent(row: Intrinsic, kind: Operand, count: int, source: DType, cols: int = 1) -> int:
    """How many elements an operand covers when the operation has `count` elements.

    `cols`: the elements of a short row, of which there are `count`.
    """
    if row.form is Form.SORT_ROWS:
        whole = -(-cols // SORT_STEP) * SORT_STEP
        return count * (4 * whole if kind is Operand.TMP else row_pitch(cols, DType.FLOAT32))
    if row.form in ROW_FORMS:
        return _short_rows(row, kind, count, cols)
    whole = -(-count // source.per_repeat) * source.per_repeat if row.whole_repeats else count
    match kind:
        case Operand.DST if row.form is Form.LANES:
            return min(1, count)
        case Operand.DST if row.form is Form.BLOCKS:
            return -(-count // source.per_block)
        case Operand.DST if row.whole_repeats:
            return whole // 8  # a compare writes one bit per element
        case Operand.DST | Operand.TMP if row.form is Form.RUNNING:
            return -(-count // RUNNING_STEP) * RUNNING_STEP
        case Operand.MASK:
            return -(-count // 8)
        case Operand.SRC if row.form is Form.GATHER:
            return min(1, count)  # how far it reaches is in the index
        case Operand.SRC:
            return whole
        case _:
            return count


def _short_rows(row: Intrinsic, kind: Operand, rows: int, cols: int) -> int:
    """Numbers come by the block; scratch holds 8 parts of each, twice where rows take two turns.

    In front of them it holds what rows of whole blocks are folded to.
    """
    whole = -(-rows // 8) * 8
    if kind is Operand.TMP and row.form is Form.FOLD_ROWS:
        levels = row_levels(cols)
        rest = levels[-1] if levels else cols
        return rows * sum(levels) + whole * (16 if rest > 64 else 8)
    if kind is Operand.TMP:
        return whole * 8
    numbers = (kind is Operand.DST) == (row.form is Form.FOLD_ROWS)
    return whole if numbers else rows * row_pitch(cols, DType.FLOAT32)


def reach_code(row: Intrinsic, kind: Operand) -> str:
    """The error of an operand that is too short."""
    if kind is Operand.MASK or (kind is Operand.DST and row.whole_repeats):
        return "lang-mask"
    return "lang-tmp" if kind is Operand.TMP else "lang-range"


def row_pitch(count: int, dtype: DType) -> int:
    """Elements from one row to the next in a buffer that holds rows of `count` elements."""
    return -(-count // dtype.per_block) * dtype.per_block


def may_share(row: Intrinsic) -> bool:
    """May source and destination be the same view?"""
    # doc: the math library forbids overlapping operands
    apart = row.form not in (Form.MAP, Form.ROWS)
    return not apart and not row.library and not row.whole_repeats


# ----------------------------------------------------------------------------------------- checks


def check_operands(program: Program, file: str) -> Log:
    """Dtypes, pairs and modes of every operation and copy."""
    log = Log(file, program.kernel.name)
    dtypes = {item.name: item.dtype for item in program.kernel.buffers}
    for stmt in statements(program.kernel.body):
        match stmt:
            case Op():
                _check_op(stmt, dtypes, log)
            case Load() | Store():
                _check_copy(stmt, program, dtypes, log)
            case Combine():
                _check_combine(stmt, program, dtypes, log)
            case _:
                pass
    return log


def _names(dtypes: Iterable[DType]) -> str:
    return ", ".join(dtype.value for dtype in dtypes)


def _check_op(op: Op, dtypes: dict[str, DType], log: Log) -> None:
    row = INTRINSICS[op.name]
    source = _source(row, [dtypes[view.buffer] for view in op.views])
    for kind, view in paired(op):
        dtype = dtypes[view.buffer]
        match kind:
            case Operand.MASK:
                if dtype is not DType.UINT8:
                    message = f"the mask {view.buffer!r} is {dtype.value}"
                    log.add("lang-mask", message, op)
            case Operand.INDEX:
                _check_index(op, view, dtype, log)
            case Operand.TMP:
                _check_tmp(op, view, dtype, source, log)
            case Operand.DST:
                _check_dtype(op, view.buffer, dtype, row.dtypes, log)
            case _:
                legal = row.src_dtypes or row.dtypes
                _check_dtype(op, view.buffer, dtype, legal, log)
                if dtype in legal and dtype is not source:
                    message = f"{op.name} on {_names((source, dtype))}"
                    log.add("lang-op-dtype", message, op, legal="sources of one dtype")
    _check_pair(op, row, dtypes[op.views[0].buffer], source, log)


def _check_dtype(op: Op, buffer: str, dtype: DType, legal: tuple[DType, ...], log: Log) -> None:
    if dtype not in legal:
        message = f"{op.name} does not take {dtype.value} ({buffer!r})"
        log.add("lang-op-dtype", message, op, legal=_names(legal))


def _check_pair(op: Op, row: Intrinsic, dst: DType, source: DType, log: Log) -> None:
    if op.name == "cast":
        modes = CASTS.get((source, dst))
        if modes is None:
            targets = _names(to for at, to in CASTS if at is source)
            message = f"{source.value} cannot be cast to {dst.value}"
            log.add(
                "lang-cast", message, op, legal=f"from {source.value} to {targets or 'nothing'}"
            )
        elif op.mode not in modes:
            message = f"{source.value} to {dst.value} has no mode {op.mode!r}"
            log.add("lang-cast", message, op, legal=", ".join(modes), hint=f'write "{modes[0]}"')
    elif not row.src_dtypes and dst in row.dtypes and source in row.dtypes and dst is not source:
        message = f"{op.name} reads {source.value} and writes {dst.value}"
        log.add("lang-op-dtype", message, op, legal="source and destination of one dtype")


def _check_index(op: Op, view: View, dtype: DType, log: Log) -> None:
    if dtype is not DType.INT32:
        log.add("lang-op-dtype", f"the index {view.buffer!r} is {dtype.value}", op, legal="int32")
    if op.views[0].buffer in (item.buffer for item in op.views[1:]):
        message = f"{op.name} takes elements from anywhere in its source, and writes"
        hint = "a destination of its own"
        log.add("lang-overlap", f"{message} {op.views[0].buffer!r} as well", op, hint=hint)


def _check_tmp(op: Op, view: View, dtype: DType, source: DType, log: Log) -> None:
    others = [item.buffer for kind, item in paired(op) if kind is not Operand.TMP]
    if view.buffer in others:
        log.add("lang-tmp", f"tmp {view.buffer!r} is also another operand", op)
    elif dtype is not source:
        log.add("lang-tmp", f"tmp is {dtype.value} and the source {source.value}", op)


def on_chip(dtype: DType) -> DType:
    """The dtype of a buffer that holds elements of a tensor."""
    return DType.UINT8 if dtype is DType.BOOL else dtype


def _check_copy(stmt: Load | Store, program: Program, dtypes: dict[str, DType], log: Log) -> None:
    load = isinstance(stmt, Load)
    view, span = (stmt.dst, stmt.src) if isinstance(stmt, Load) else (stmt.src, stmt.dst)
    tensor = program.kernel.tensor(span.tensor)
    want = on_chip(tensor.dtype)
    cube = program.kernel.is_cube and not load
    if dtypes[view.buffer] is not want and not (cube and (dtypes[view.buffer], want) in OUTFLOWS):
        message = f"{tensor.name!r} is {tensor.dtype.value}, {view.buffer!r} is "
        message += dtypes[view.buffer].value
        hint = f"{view.buffer} = ub(length, {want.value}), and a cast" if want else ""
        log.add("lang-op-dtype", message, stmt, legal=f"a {want.value} buffer", hint=hint)
    if load and tensor.role is TensorRole.OUTPUT:
        log.add("lang-tensor", f"{tensor.name!r} is an output and cannot be loaded", stmt)
    if not load and tensor.role is TensorRole.INPUT:
        log.add("lang-tensor", f"{tensor.name!r} is an input and cannot be stored to", stmt)
    if isinstance(stmt, Store) and stmt.atomic and tensor.dtype not in ATOMIC_DTYPES:
        log.add("lang-atomic", f"there is no atomic store of {tensor.dtype.value}", stmt)
    if (stmt.rows is None) != (stmt.pitch is None):
        log.add("lang-operands", "rows and pitch are given together", stmt)


def _check_combine(stmt: Combine, program: Program, dtypes: dict[str, DType], log: Log) -> None:
    dtype = dtypes[stmt.dst.buffer]
    tensor = program.kernel.tensor(stmt.scratch)
    if stmt.op not in COMBINES:
        log.add("lang-combine", f"there is no combine_{stmt.op}", stmt, legal=", ".join(COMBINES))
    if tensor.role is not TensorRole.SCRATCH:
        message = f"{tensor.name!r} is an {tensor.role.value}, not a scratch tensor"
        hint = f"a parameter {tensor.name}_ws: scratch({dtype.value})"
        log.add("lang-combine", message, stmt, hint=hint)
    if dtype not in ARITH:
        log.add("lang-combine", f"combine_{stmt.op} does not take {dtype.value}", stmt)
    elif {dtypes[stmt.src.buffer], tensor.dtype} != {dtype}:
        names = _names((dtype, dtypes[stmt.src.buffer], tensor.dtype))
        log.add("lang-combine", f"destination, source and scratch differ: {names}", stmt)
