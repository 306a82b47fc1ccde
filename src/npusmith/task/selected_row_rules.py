"""What operations in core ATen do to rows that a mask selects: `ROW_RULES`, by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from npusmith.task.selected_rows import (
    AllRows,
    NotSelectable,
    Places,
    Rows,
    Rule,
    constant,
    leaves,
    whole,
)

_ATEN = torch.ops.aten
_INF = math.inf
_MOST_WRITERS = 16  # that may write one row
_WITH_INDICES = ("aten.gather.default", "aten.scatter.src", "aten.scatter.value")


def _size_of(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rows = args[0]
    if not isinstance(rows, Rows):
        return NotImplemented
    at = args[1] % rows.full.dim() if len(args) > 1 else rows.axis
    others = math.prod(rows.full.shape) // rows.full.shape[rows.axis] if len(args) == 1 else 1
    return rows.count() * others if at == rows.axis else rows.full.shape[at]


def _index(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    held, indices, _ = _in_order(*args)
    chosen = _chosen(held, indices)
    if chosen is not None:
        return run.selected(*_flattened(whole(held), *chosen), _first_index(indices))
    if not any(isinstance(item, Rows) for item in (held, *indices)):
        return NotImplemented
    if isinstance(held, Rows) and len(indices) > held.axis and indices[held.axis] is not None:
        raise NotSelectable("an index of a selected row")
    column = _column(held, indices)
    if column is not None:
        return run.as_rows(_spread(held, *column))
    return run.as_rows(target(whole(held), [_inside(item) for item in indices]))


def _index_put(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given, indices, values, adds = (*args, False)[:4]
    held, indices, back = _in_order(given, indices)
    chosen = _chosen(held, indices)
    if not any(isinstance(item, Rows) for item in (held, values, *indices)):
        return NotImplemented
    column = _column(held, indices)
    if column is not None and indices[0] is not None:
        if isinstance(values, Rows) and values.mask is not indices[0].mask:
            raise NotSelectable("rows under one mask are assigned under another")
        return run.as_rows(_written(held, indices[0], column[1], values, adds))
    if chosen is None:
        if adds and isinstance(values, Rows) and not isinstance(held, Rows):
            inside = [_inside(item) for item in indices]
            return run.as_rows(target(held, inside, values.filled(0), True))
        raise NotSelectable("an assignment to places that were selected")
    if not run.are_under(values, _first_index(indices)):
        raise NotSelectable("rows under one mask are assigned under another")
    old = whole(held)
    flat, mask = _flattened(old, *chosen)
    shaped = Rows(flat, mask, chosen[1]).shaped_mask()
    new = whole(values).to(old.dtype)
    if adds:
        new = flat + new
    return run.as_rows(torch.where(shaped, new, flat).reshape(old.shape).permute(back))


def _in_order(held: Any, indices: Sequence[Any]) -> tuple[Any, Sequence[Any], list[int]]:
    """Axes in the order in which a mask has them that all its places index, and the way back."""
    same = list(range(whole(held).dim()))
    columns = [
        item.places.column if isinstance(item, Rows) and item.places is not None else None
        for item in indices
    ]
    if not isinstance(held, Tensor) or sorted(columns, key=str) != list(range(len(columns))):
        return held, indices, same
    order = [columns.index(column) for column in range(len(columns))]
    turned = held.permute([*order, *same[len(order) :]])
    back = [order.index(at) for at in range(len(order))]
    return turned, [indices[at] for at in order], [*back, *same[len(order) :]]


def _first_index(indices: Sequence[Any]) -> Any:
    return next(item for item in indices if item is not None)


def _column(held: Any, indices: Sequence[Any]) -> tuple[int, Places] | None:
    """Where the only index is of places along one axis of a mask of several: at which axis."""
    given = [(at, item) for at, item in enumerate(indices) if item is not None]
    if len(given) != 1 or not isinstance(held, Tensor) or not isinstance(given[0][1], Rows):
        return None
    at, rows = given[0]
    places = rows.places
    if places is None or places.column is None or len(places.shape) == 1 or rows.full.dim() != 1:
        return None
    return (at, places) if held.shape[at] == places.shape[places.column] else None


def _spread(held: Tensor, at: int, places: Places) -> Tensor:
    """Rows along an axis, each once for every place of the mask that is in it."""
    assert places.column is not None
    before, after = held.shape[:at], held.shape[at + 1 :]
    sizes = [1] * len(places.shape)
    sizes[places.column] = held.shape[at]
    wide = held.reshape(*before, *sizes, *after).expand(*before, *places.shape, *after)
    return wide.reshape(*before, math.prod(places.shape), *after)


def _written(held: Tensor, rows: Rows, places: Places, values: Any, adds: bool) -> Tensor:
    """An assignment along the first axis to places of a mask: sums, or the last one counts."""
    shape, at, rest = places.shape, places.column or 0, held.shape[1:]
    others = math.prod(shape) // max(shape[at], 1)
    new = whole(values).to(held.dtype).expand(math.prod(shape), *rest)
    mask = rows.mask.view(-1, *[1] * len(rest))
    if adds:
        parts = torch.where(mask, new, constant(0, new)).reshape(*shape, *rest)
        return held + parts.sum([axis for axis in range(len(shape)) if axis != at])
    if others > _MOST_WRITERS:
        raise NotSelectable("an assignment to places of which many may be the same")
    new = new.reshape(*shape, *rest).movedim(at, 0).reshape(shape[at], others, *rest)
    mask = mask.reshape(*shape, *[1] * len(rest)).movedim(at, 0)
    mask = mask.reshape(shape[at], others, *[1] * len(rest))
    for k in range(others):
        held = torch.where(mask[:, k], new[:, k], held)
    return held


def _chosen(held: Any, indices: Sequence[Any]) -> tuple[Tensor, int] | None:
    """The mask by which rows are selected, and the first axis that it is for; None: by none."""
    given = [(at, item) for at, item in enumerate(indices) if item is not None]
    if not given:
        return None
    first, one = given[0]
    if isinstance(one, Rows) and one.places is not None:
        full, shape = whole(held), one.places.shape
        expected = [Places(shape, column) for column in range(len(shape))]
        found = [item.places if isinstance(item, Rows) else None for _, item in given]
        flat = all(item.full.dim() == 1 and item.mask is one.mask for _, item in given)
        beside = [at for at, _ in given] == list(range(first, first + len(given)))
        same = full.shape[first : first + len(shape)] == torch.Size(shape)
        if found == expected and flat and beside and same and not isinstance(held, Rows):
            return one.mask.view(shape), first
        return None
    if len(given) > 1:
        return None
    if isinstance(one, Rows) and one.full.dtype == torch.bool:
        return one.full & one.shaped_mask(), first
    if isinstance(one, Tensor) and one.dtype == torch.bool:
        return (one, first) if not isinstance(held, Rows) or first != held.axis else None
    return None


def _flattened(full: Tensor, mask: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The axes that a mask is for, as one, and the mask as one axis."""
    if mask.dim() == 1:
        return full, mask
    shape = [*full.shape[:axis], mask.numel(), *full.shape[axis + mask.dim() :]]
    return full.reshape(shape), mask.reshape(-1)


def _inside(item: Any) -> Any:
    """Indices, those of rows that there are not being 0: they may lead anywhere."""
    if not isinstance(item, Rows):
        return item
    return item.full if item.places is not None else item.filled(0)


def _masked_select(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if any(isinstance(item, Rows) for item in args):
        raise NotSelectable(str(target))
    values, mask = torch.broadcast_tensors(*args)
    return run.selected(values.reshape(-1), mask.reshape(-1), args[1])


def _nonzero(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    (held,) = args
    if isinstance(held, Rows):
        raise NotSelectable(str(target))
    places = torch.arange(held.numel())
    columns = []
    for at, size in enumerate(held.shape):
        inner = math.prod(held.shape[at + 1 :])
        columns.append(places // inner % size if at else places // inner)
    full = torch.stack(columns, 1)
    return run.selected(full, (held != 0).reshape(-1), held, Places(tuple(held.shape)))


def _view_of(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Sizes are those of the result."""
    rows = args[0]
    if not isinstance(rows, Rows):
        return NotImplemented
    found = run.row_axis()
    sizes = run.sizes()
    if found is None:
        raise NotSelectable(str(target))
    shape, axis = rows.full.shape, found[0]
    outer, inner = math.prod(shape[: rows.axis]), math.prod(shape[rows.axis + 1 :])
    new_outer, new_inner = math.prod(sizes[:axis]), math.prod(sizes[axis + 1 :])
    if outer % max(new_outer, 1) or inner % max(new_inner, 1):
        raise NotSelectable("a view across selected rows")
    times, each = outer // max(new_outer, 1), inner // max(new_inner, 1)
    if times * each != 1:
        count = rows.mask.shape[0]
        wide = rows.mask.view(1, count, 1).expand(times, count, each)
        run.remember(wide.reshape(-1))
    return run.as_rows(rows.full.reshape(sizes))


def _expanded(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not isinstance(args[0], Rows) and not run.unknown():
        return NotImplemented
    return run.as_rows(whole(args[0]).expand(run.sizes()))


def _made(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A tensor of a given size, full of one value."""
    if not run.unknown():
        return NotImplemented
    return run.as_rows(target(run.sizes(), *whole(args[1:]), **kwargs))


def _apart(at: int, default: Any = None) -> Rule:
    """Rows do not meet where the axes of this argument are others than theirs."""

    def rule(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        first = _first_rows(args)
        if first is None:
            return NotImplemented
        given = args[at] if len(args) > at else default
        if first.axis in _axes(given, first.full.dim()):
            raise NotSelectable(f"{target} along selected rows")
        places = _places_in(first, target, args)
        if str(target) in _WITH_INDICES:
            args = tuple(_inside(item) if _is_index(item) else item for item in args)
        return run.as_rows(target(*whole(list(args)), **whole(kwargs)), places)

    return rule


def _places_in(rows: Rows, target: Any, args: tuple[Any, ...]) -> Places | None:
    """Which places a part of places is."""
    places = rows.places
    if places is None or target is _ATEN.squeeze.dims:
        only = places is not None and places.column is None and len(places.shape) == 1
        return replace(places, column=0) if places is not None and only else places
    one = target is _ATEN.slice.Tensor and args[3] - args[2] == 1
    if one or target is _ATEN.select.int:
        return replace(places, column=args[2]) if places.column is None else places
    return None


def _is_index(item: Any) -> bool:
    return isinstance(item, Rows) and item.full.dtype in (torch.int32, torch.int64)


def _first_rows(args: Sequence[Any]) -> Rows | None:
    return next((item for item in leaves(list(args)) if isinstance(item, Rows)), None)


def _axes(given: Any, rank: int) -> tuple[int, ...]:
    """Axes of an argument; all where it names none."""
    if given is None or given == []:
        return tuple(range(rank))
    return tuple(at % rank for at in (given if isinstance(given, (list, tuple)) else (given,)))


def _reduced(identity: float, at: int = 1, then: Rule | None = None) -> Rule:
    """A reduction over axes: rows that there are not count as its identity."""

    def rule(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        rows = args[0]
        if not isinstance(rows, Rows):
            return NotImplemented
        given = args[at] if len(args) > at else kwargs.get("dim")
        if rows.axis not in _axes(given, rows.full.dim()):
            return run.as_rows(target(rows.full, *args[1:], **kwargs))
        if then is not None:
            return then(run, target, args, kwargs)
        return run.as_rows(target(rows.filled(identity), *args[1:], **kwargs))

    return rule


def _mean(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rows = args[0]
    given, keeps = args[1] if len(args) > 1 else None, len(args) > 2 and args[2]
    return run.as_rows(_mean_of(rows, given, keeps).to(kwargs.get("dtype") or rows.full.dtype))


def _mean_of(rows: Rows, given: Any, keeps: bool) -> Tensor:
    """In at least single precision."""
    axes = _axes(given, rows.full.dim())
    wide = torch.promote_types(rows.full.dtype, torch.float32)
    others = math.prod(rows.full.shape[at] for at in axes if at != rows.axis)
    total = replace(rows, full=rows.full.to(wide)).filled(0).sum(axes, keepdim=keeps)
    return total / (rows.number(wide) * others)


def _variance(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rows = args[0]
    given = args[1] if len(args) > 1 else kwargs.get("dim")
    keeps = kwargs.get("keepdim", False)
    correction = kwargs.get("correction")
    mean = _mean_of(rows, given, True)
    off = replace(rows, full=(rows.full.to(mean.dtype) - mean).square())
    axes = _axes(given, rows.full.dim())
    others = math.prod(rows.full.shape[at] for at in axes if at != rows.axis)
    number = rows.number(mean.dtype) * others
    degrees = (number - (1 if correction is None else correction)).clamp(min=0)
    found = (off.filled(0).sum(axes, keepdim=keeps) / degrees).to(rows.full.dtype)
    if target is _ATEN.var.correction:
        return run.as_rows(found)
    return run.as_rows((found, _mean_of(rows, given, keeps).to(rows.full.dtype)))


def _norm(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    order = args[1] if len(args) > 1 else 2
    if order < 0:
        raise NotSelectable("a norm of negative order")
    return run.as_rows(target(args[0].filled(0), *args[1:], **kwargs))


def _along(identity: float) -> Rule:
    """A softmax or a sum up to each row, along any axis."""

    def rule(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        rows = args[0]
        if not isinstance(rows, Rows):
            return NotImplemented
        meets = rows.axis in _axes(args[1], rows.full.dim())
        full = rows.filled(identity) if meets else rows.full
        return run.as_rows(target(full, *args[1:], **kwargs))

    return rule


def _product(first: int, rank: int) -> Rule:
    """Matrix products: rows along the axis that is summed up count as zeros."""

    def rule(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if _first_rows(args) is None:
            return NotImplemented
        given = list(args)
        for at, summed in ((first, rank - 1), (first + 1, rank - 2)):
            rows = given[at]
            if isinstance(rows, Rows) and rows.axis == summed:
                given[at] = rows.filled(0)
        return run.as_rows(target(*whole(given), **kwargs))

    return rule


def _joined(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    parts, axis = args[0], (*args, 0)[1]
    first = _first_rows(parts)
    if first is None:
        return NotImplemented
    if axis % first.full.dim() == first.axis:
        masks = [
            part.mask
            if isinstance(part, Rows)
            else torch.ones(part.shape[first.axis], dtype=torch.bool)
            for part in parts
        ]
        run.remember(torch.cat(masks))
    return run.as_rows(target(whole(parts), axis))


def _batched(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Rows along the first axis, which never meet."""
    rows = [item for item in leaves(list(args)) if isinstance(item, Rows)]
    if not rows:
        return NotImplemented
    if args[0] is not rows[0] or len(rows) > 1 or rows[0].axis != 0:
        raise NotSelectable(str(target))
    return run.as_rows(target(rows[0].full, *args[1:], **kwargs))


def _layer_norm(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rows = args[0]
    if not isinstance(rows, Rows):
        return NotImplemented
    if rows.axis >= rows.full.dim() - len(args[1]):
        raise NotSelectable(str(target))
    return run.as_rows(target(rows.full, *args[1:], **kwargs))


def _looked_up(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Rows of a plain tensor at selected places."""
    if _first_rows(args) is None:
        return NotImplemented
    if isinstance(args[0], Rows):
        raise NotSelectable(str(target))
    return run.as_rows(target(*(_inside(item) for item in args), **kwargs))


def _same(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Each element on its own, and as it was but for its type."""
    rows = args[0]
    if not isinstance(rows, Rows):
        return NotImplemented
    return run.as_rows(target(rows.full, **kwargs), rows.places)


def _over(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Whole numbers are divided by 1 where there are no rows: PyTorch raises where it is by 0."""
    divisor = args[1]
    if not isinstance(divisor, Rows) or divisor.full.dtype.is_floating_point:
        return NotImplemented
    return run.on_all(target, (args[0], divisor.filled(1), *args[2:]), kwargs)


def _each(run: AllRows, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Each row on its own, whatever the axes."""
    return run.on_all(target, args, kwargs) if _first_rows(args) else NotImplemented


ROW_RULES: dict[str, Rule] = {
    "aten.sym_size.int": _size_of,
    "aten.sym_numel.default": _size_of,
    "aten.index.Tensor": _index,
    "aten.index_put.default": _index_put,
    "aten.masked_select.default": _masked_select,
    "aten.nonzero.default": _nonzero,
    "aten.view.default": _view_of,
    "aten._unsafe_view.default": _view_of,
    "aten.reshape.default": _view_of,
    "aten.expand.default": _expanded,
    "aten.full.default": _made,
    **dict.fromkeys(
        (
            "aten._to_copy.default",
            "aten.clone.default",
            "aten.alias.default",
        ),
        _same,
    ),
    **dict.fromkeys(
        (
            "aten.full_like.default",
            "aten.permute.default",
            "aten.unsqueeze.default",
        ),
        _each,
    ),
    **dict.fromkeys(
        (
            "aten.div.Tensor_mode",
            "aten.floor_divide.default",
            "aten.remainder.Tensor",
            "aten.fmod.Tensor",
        ),
        _over,
    ),
    "aten.squeeze.dims": _apart(1),
    "aten.select.int": _apart(1),
    "aten.slice.Tensor": _apart(1, 0),
    "aten.flip.default": _apart(1),
    "aten.gather.default": _apart(1),
    "aten.scatter.src": _apart(1),
    "aten.scatter.value": _apart(1),
    "aten.sort.stable": _apart(2, -1),
    "aten.topk.default": _apart(2, -1),
    "aten.argmax.default": _apart(1),
    "aten.argmin.default": _apart(1),
    "aten.max.dim": _apart(1),
    "aten.min.dim": _apart(1),
    "aten.cat.default": _joined,
    "aten.sum.default": _reduced(0),
    "aten.sum.dim_IntList": _reduced(0),
    "aten.mean.default": _reduced(0, 1, _mean),
    "aten.mean.dim": _reduced(0, 1, _mean),
    "aten.amax.default": _reduced(-_INF),
    "aten.amin.default": _reduced(_INF),
    "aten.max.default": _reduced(-_INF),
    "aten.min.default": _reduced(_INF),
    "aten.any.default": _reduced(0),
    "aten.any.dim": _reduced(0),
    "aten.any.dims": _reduced(0),
    "aten.all.default": _reduced(1),
    "aten.all.dim": _reduced(1),
    "aten.prod.default": _reduced(1),
    "aten.prod.dim_int": _reduced(1),
    "aten.logsumexp.default": _reduced(-_INF),
    "aten.var.correction": _reduced(0, 1, _variance),
    "aten.var_mean.correction": _reduced(0, 1, _variance),
    "aten.linalg_vector_norm.default": _reduced(0, 2, _norm),
    "aten._softmax.default": _along(-_INF),
    "aten._log_softmax.default": _along(-_INF),
    "aten.cumsum.default": _along(0),
    "aten.mm.default": _product(0, 2),
    "aten.addmm.default": _product(1, 2),
    "aten.bmm.default": _product(0, 3),
    "aten.convolution.default": _batched,
    "aten._native_batch_norm_legit_no_training.default": _batched,
    "aten.native_layer_norm.default": _layer_norm,
    "aten.embedding.default": _looked_up,
    "aten.index_select.default": _looked_up,
}
