"""PyTorch's own code that looks at values, without the look: a capture has none.

Distributions and a few functions check their arguments and go on, factorisations what they have
found; what they compute does not depend on it. PyTorch's own reference checks as ever.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.nn import functional
from torch.overrides import TorchFunctionMode

SAME_SIZES = "data-dependent expression Eq(u"  # of rows that two masks select


@contextlib.contextmanager
def left_out(same_masks: bool = False) -> Iterator[None]:
    """While it is entered, no value is looked at to check it.

    `same_masks`: a comparison that is written twice is one mask, so that the rows that it selects
    are as many; raises ValueError where such a mask is changed in place.
    """
    memo = _Memo() if same_masks else contextlib.nullcontext()
    with patch.object(Distribution, "_validate_args", False), _Formulas(), memo:
        yield
        if isinstance(memo, _Memo):
            memo.check()


class _Formulas(TorchFunctionMode):  # type: ignore[misc]
    """Calls in the table, by their formulas."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        return _FORMULAS.get(func, func)(*args, **(kwargs or {}))


def _gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """torch.nn.functional.gaussian_nll_loss, for variances that are not negative."""
    spread = var if isinstance(var, Tensor) else torch.full_like(input, var)
    if spread.dim() < input.dim() and spread.shape == input.shape[:-1]:
        spread = spread.unsqueeze(-1)
    spread = spread.clamp(min=eps)
    loss = 0.5 * (spread.log() + (input - target) ** 2 / spread)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """torch.cov of rows that are variables."""
    if fweights is not None or aweights is not None:
        return torch.cov(input, correction=correction, fweights=fweights, aweights=aweights)
    rows = input.reshape(1, -1) if input.dim() < 2 else input
    off = rows - rows.mean(1, keepdim=True)
    found = off @ off.t() / max(rows.shape[1] - correction, 0)
    return found.squeeze()


def _corrcoef(input: Tensor) -> Tensor:
    """torch.corrcoef of rows that are variables."""
    found = _cov(input)
    if found.dim() == 0:
        return found / found
    spread = found.diagonal().sqrt()
    return (found / spread[:, None] / spread[None]).clamp(-1, 1)


def _unchecked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A factorisation that says whether it failed instead of raising."""
    return lambda *args, **given: function(*args, **given)[0]


_FORMULAS: dict[Callable[..., Any], Callable[..., Any]] = {
    torch.linalg.cholesky: _unchecked(torch.linalg.cholesky_ex),
    torch.linalg.inv: _unchecked(torch.linalg.inv_ex),
    torch.linalg.solve: _unchecked(torch.linalg.solve_ex),
    torch.inverse: _unchecked(torch.linalg.inv_ex),
    Tensor.inverse: _unchecked(torch.linalg.inv_ex),
    functional.gaussian_nll_loss: _gaussian_nll_loss,
    torch.cov: _cov,
    Tensor.cov: _cov,
    torch.corrcoef: _corrcoef,
    Tensor.corrcoef: _corrcoef,
}

_OF_MASKS = frozenset(
    getattr(home, name)
    for home in (torch, Tensor)
    for name in (
        *("gt", "lt", "ge", "le", "eq", "ne", "isnan", "isfinite", "isinf", "logical_not"),
        *("logical_and", "logical_or", "bitwise_not", "bitwise_and", "bitwise_or", "__gt__"),
        *("__lt__", "__ge__", "__le__", "__eq__", "__ne__", "__invert__", "__and__", "__or__"),
        *("bool", "squeeze", "select", "flatten", "view", "reshape", "any", "all", "__getitem__"),
    )
    if hasattr(home, name)
)


class _Memo(TorchFunctionMode):  # type: ignore[misc]
    """Masks that are computed in the same way from the same tensors are one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[Any, tuple[Tensor, int, Any]] = {}  # result, its version, arguments

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        if func not in _OF_MASKS:
            return func(*args, **given)
        key = (func, _key(args), _key(sorted(given.items())))
        if key in self._known:
            return self._known[key][0]
        found = func(*args, **given)
        if isinstance(found, Tensor) and found.dtype == torch.bool:
            self._known[key] = (found, found._version, args)  # arguments live on: ids are theirs
        return found

    def check(self) -> None:
        if any(mask._version != version for mask, version, _ in self._known.values()):
            raise ValueError("a mask by which rows are selected is changed in place")


def _key(item: Any) -> Any:
    if isinstance(item, Tensor):
        return ("tensor", id(item), item._version)
    if isinstance(item, (list, tuple)):
        return tuple(_key(part) for part in item)
    if isinstance(item, slice):
        return ("slice", _key((item.start, item.stop, item.step)))
    return (type(item), item if isinstance(item, (int, float, str, type(None))) else id(item))
