"""The model in float64: the same code, with every narrower float type widened on the way."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from npusmith.errors import TaskError
from npusmith.task.alias import tensors
from npusmith.task.user import Inputs, Tensor, user_code

_NARROW = (torch.float32, torch.float16, torch.bfloat16)


_NEAREST = ("upsample_nearest", "_upsample_nearest_exact")


class _Widen(TorchDispatchMode):  # type: ignore[misc]
    """A cast to a narrower float inside the model becomes a cast to float64.

    Which element is the nearest one stays as float32 has it: PyTorch computes places among the
    inputs in the type of the elements, and 28,817 times 67,205 / 33,606 is rounded to another one.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = pytree.tree_map(_widen, (args, kwargs or {}))
        if func.overloadpacket.__name__.startswith(_NEAREST):
            return _nearest(func, *args, **kwargs)
        return func(*args, **kwargs)


def _nearest(func: Any, x: Tensor, *how: Any, **named: Any) -> Tensor:
    """A resize of `x`, N x C x sizes, by the places that the resize takes in float32."""
    sizes = x.shape[2:]
    for at, size in enumerate(sizes):
        shape = [1] * len(sizes)
        shape[at] = size
        along = torch.arange(size, dtype=torch.float32).view(1, 1, *shape).expand(1, 1, *sizes)
        line = func(along.contiguous(), *how, **named).movedim(2 + at, 0).flatten(1)[:, 0]
        x = x.index_select(2 + at, line.long())
    return x


def _widen(item: Any) -> Any:
    return torch.float64 if isinstance(item, torch.dtype) and item in _NARROW else item


def widen(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor.clone()


@contextmanager
def _wide() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Widen():
            yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def _widened(model: Any) -> Iterator[Any]:
    """The model itself in float64 for a while: a function in it may hold its modules, which a copy
    of it then computes with, too."""
    held = [(item, item.data) for item in (*model.parameters(), *model.buffers())]
    try:
        for item, data in held:
            item.data = widen(data)
        yield model
    finally:
        for item, data in held:
            item.data = data


class Golden:
    """Computes goldens; says in words where it could not."""

    def __init__(self, model: Any, path: str) -> None:
        self.path = path
        self.note = ""
        self.own = model
        try:
            self.model = copy.deepcopy(model).double()
        except Exception as error:
            self.model = None
            self.note = f"no float64 model: {type(error).__name__}: {error}"[:300]

    def run(self, inputs: Inputs, references: list[Tensor]) -> tuple[list[Tensor], str]:
        """float64 outputs, and a note when these are only the references made wider."""
        wide = [widen(tensor) for tensor in references]
        if self.model is None:
            return wide, self.note
        try:
            found = self._computed(self.model, inputs)
        except TaskError as error:
            try:
                with _widened(self.own) as model:
                    found = self._computed(model, inputs)
            except (TaskError, AttributeError):
                return wide, f"golden is the reference: {error.message}"
        if [t.shape for t in found] != [t.shape for t in references]:
            return wide, "golden is the reference: float64 gives other shapes"
        # torch returns the parameter itself for a slice that covers all of it
        pairs = zip((a.detach() for a in found), wide, strict=True)
        return [a.double() if b.is_floating_point() else b for a, b in pairs], ""

    def _computed(self, model: Any, inputs: Inputs) -> list[Tensor]:
        with _wide(), torch.no_grad(), user_code(self.path, "forward()"):
            return tensors(model(*inputs.args(widen)))
