"""Which outputs are combined of elements one after another (element_stores.py)."""

from __future__ import annotations

from npusmith.plan.axes import Dim, Dims, extent, leaves
from npusmith.plan.dag import EXACT, Value
from npusmith.plan.reader import Combined, Reader, Tensor


def is_combined(r: Reader, found: Combined, few: int) -> bool:
    """Whether values are put into an output one after another.

    A few for each of many elements are compared with the places of these, between other operations.
    """
    assert r.node is not None
    whole, most = not found.x.dtype.is_float, _most_places(r, found)
    if r.node.name not in r.graph.outputs or (found.word == "mean" and whole):
        return False
    if most and extent(_spots(found)) > most:
        return False
    return len(r.graph.eager) == 1 or extent(_leaves(found.row)) > few


def combined_value(r: Reader, found: Combined) -> Value:
    """The value of such an output."""
    if most := _most_places(r, found):
        r.limit(_spots(found), most)
    args = found.x.value, found.values.value, found.place.value
    text = found.word if found.own else f"{found.word} apart"
    value = r.dag.make("put", *args, text=text, kind=found.x.value.kind)
    r.combined[value] = found
    return value


def _most_places(r: Reader, found: Combined) -> int:
    """Places that are told apart: of a float32; 0: all, an index tensor is read as it is."""
    read = r.known.get(found.place.value.text) if found.place.value.op == "load" else None
    after = found.x.dims[found.at + found.count :]
    along = _leaves((*found.x.dims[: found.at], *found.row, *after))
    return 0 if isinstance(read, Tensor) and _leaves(read.dims) == along else EXACT


def _spots(found: Combined) -> Dim:
    """The axes that a place runs along."""
    return _leaves(found.x.dims[found.at : found.at + found.count])


def _leaves(dims: Dims) -> Dim:
    return tuple(leaf for dim in dims for leaf in leaves(dim))
