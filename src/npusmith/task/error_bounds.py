"""How far right answers lie apart: `Bound(...).find(model, inputs, references, goldens)`.

Where terms cancel, the order of a sum decides how many digits are left, and PyTorch's own order is
but one. So the model runs a few times in its own types with noise behind every operation: one
rounding of the result, and for sums one rounding of the sum of their terms' magnitudes, which is
what some order of summation may lose. The largest move of an element is its bound.
(Stochastic arithmetic: J. Vignes, CESTAC; the term for sums: N. Higham, 2002, section 4.2.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache, lru_cache
from typing import Any

import torch
from torch._decomp import get_decompositions
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from npusmith.errors import TaskError
from npusmith.ir.dtypes import DType
from npusmith.task.tolerance import CANN_LIMITS
from npusmith.task.user import Inputs, Tensor, run_model

# Two roundings of one size may undo each other: in 8 random runs once in some 4,000 elements.
# So the first run moves everything up, and the second one operation up and the next one down.
RUNS = 8
MORE_RUNS = 32  # where elements of 16-bit types jump
_FAR = 8  # times: more than roundings that add up
MOST_ELEMENTS = 64 << 20  # of outputs; beyond this a bound costs more than it tells
MOST_MOVED = 1 << 28  # of all operations of a run, the same: some five seconds
MOST_PATIENT = 1 << 31  # ... where bounds alone are missing for a candidate to be right
FEW_VALUES = 512  # of so few, that PyTorch is near says nothing about how near others are
DEEP = 512  # terms of a sum, which PyTorch adds up in blocks: another order loses 16 times as much
MANY = 256  # operations that round, as in loops over time: that PyTorch's walk ends near is luck
LONG = 4_096  # of a loop with so many, each run takes seconds: two have to do
NEAR = 1 / 16  # of a rule: where PyTorch is nearer everywhere, no bound is needed ...
# ... but for what it adds up or multiplies in a wider type (acc_type of ATen's CPU kernels): how
# near that is says nothing of kernels in float32.
# Likewise of fused attention: it adds up tile by tile, and skips what infinities would spoil.
_WIDER = """
cumsum cumprod logcumsumexp var std var_mean std_mean
native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training mkldnn_rnn_layer
_scaled_dot_product_flash_attention_for_cpu _native_multi_head_attention
"""
# Floating-point results that jump; what gives anything else of floating-point values does, too ...
_JUMPING = """
floor ceil round trunc frac floor_divide remainder fmod sign sgn heaviside hardshrink threshold
"""
# ... but for these, whose values do not jump, and whose indices hardly anybody uses.
_SMOOTH = """
max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d adaptive_max_pool3d isnan isinf
"""
_POOL = 1 << 18
_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_PIECE = 1 << 15  # elements at a time, which stay in the cache
aten = torch.ops.aten
_UNIT = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
# half of the smallest number above 0: subnormal numbers are rounded by as much
_LEAST = {torch.float32: 2.0**-149, torch.float16: 2.0**-25, torch.bfloat16: 2.0**-134}
# Sums of products of their arguments: applied to magnitudes they give the sum of the terms'.
_SUMS = """
sum mean mm bmm addmm baddbmm mv dot addmv convolution cumsum avg_pool1d avg_pool2d avg_pool3d
_adaptive_avg_pool2d _adaptive_avg_pool3d scatter_add index_add linear matmul einsum trace
upsample_linear1d upsample_bilinear2d upsample_trilinear3d mkldnn_convolution
"""
# What rounds nothing: it moves values, picks them or changes their sign.
_EXACT = """
clone copy_ _to_copy neg abs maximum minimum max min amax amin relu relu_ clamp clamp_min clamp_max
clamp_ where cat stack gather index index_select constant_pad_nd flip roll sort topk masked_fill
masked_fill_ fill fill_ zero_ tril triu sign floor ceil round trunc repeat scatter index_put
index_put_ _unsafe_index _index_put_impl_ hardtanh max_pool2d_with_indices
max_pool3d_with_indices lift_fresh lift_fresh_copy embedding _unsafe_view unsafe_split unsafe_chunk
alias detach reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d
zeros ones zeros_like ones_like full full_like arange eye empty empty_like new_zeros new_ones
new_full new_empty scalar_tensor heaviside sgn cummax cummin fmax fmin median kthvalue
"""
_WALK = 16  # what MARGIN of tolerance.py, and the largest of RUNS, are good for
# Of whole numbers these are exact: places beside a place, which then name elements.
_WHOLE = frozenset(("add", "sub", "rsub"))
# Products of their elements: every factor is one rounding.
_PRODUCTS = frozenset(("prod", "cumprod"))
_SUMMING, _ROUNDLESS = frozenset(_SUMS.split()), frozenset(_EXACT.split())
_ONE_STEP = _SUMMING | _ROUNDLESS
_WIDE = frozenset(_WIDER.split())
_STEEP, _LEVEL = frozenset(_JUMPING.split()), frozenset(_SMOOTH.split())
# Operations of several steps, between which a kernel rounds as well.
_STEPS = (
    aten.native_layer_norm, aten.native_group_norm, aten.native_batch_norm,
    aten._native_batch_norm_legit_no_training, aten._native_batch_norm_legit,
    aten._scaled_dot_product_flash_attention_for_cpu,
    aten._softmax, aten._safe_softmax, aten._log_softmax,
    aten.var, aten.std, aten.var_mean, aten.logsumexp,
    # places among the inputs are float32: the 4,096th is known to 2**-12 of the way to the next
    aten.upsample_linear1d, aten.upsample_bilinear2d, aten.upsample_trilinear3d,
    aten.upsample_bicubic2d, aten.grid_sampler_2d,
)  # fmt: skip


@cache
def _steps() -> dict[Any, Callable[..., Any]]:
    return dict(get_decompositions(_STEPS))


class _Noise(TorchDispatchMode):  # type: ignore[misc]
    """While it is on, every operation that rounds moves its result by about one rounding."""

    def __init__(self, seed: int, most: int) -> None:
        super().__init__()
        self._pool, self._most = _pool(seed), most
        self._turns = seed == 1
        self._turned = False
        self._at = self._moved = 0
        self.calls = 0
        self._table = _steps()

    @property
    def is_spent(self) -> bool:
        """Whether more elements moved than a bound is worth."""
        return self._moved > self._most

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.partition("::")[2]
        steps = self._table.get(func)
        if steps is None and name not in _ONE_STEP and func.has_kernel_for_dispatch_key(_COMPOSITE):
            steps = func.decompose  # what a decomposition calls has not been taken apart
        if steps is not None:
            with self:
                found = steps(*args, **kwargs)
            return pytree.tree_map(self._stored, found)
        weights = self._weights(func, name, args, kwargs)
        result = func(*args, **kwargs)
        if name in _ROUNDLESS or func.is_view or (name in _WHOLE and _whole(args, result)):
            return result
        moved = pytree.tree_map(lambda item: self._move(item, weights), result)
        if func._schema.is_mutable and isinstance(result, torch.Tensor):
            return result.copy_(moved)
        return moved

    def _stored(self, item: Any) -> Any:
        """What several steps in float32 give, rounded to 16 bits at their end."""
        short = isinstance(item, torch.Tensor) and item.dtype in (torch.float16, torch.bfloat16)
        return self._move(item, None) if short else item

    def _weights(self, func: Any, name: str, args: Any, kwargs: Any) -> Tensor | None:
        """The sum of the terms' magnitudes for a sum; the like for a product of many factors.

        Of running ones each element is rounded: n roundings walk away by about their root.
        """
        if func._schema.is_mutable:
            return None
        if name in _PRODUCTS:
            return func(*args, **kwargs).abs() * _factors(args) ** 0.5
        if name == "linspace":  # the step is rounded, and start and end cancel in the middle
            found = func(*args, **kwargs)
            ends = max(abs(float(item)) for item in args[:2])
            unit = _UNIT.get(found.dtype, 0.0)
            return torch.full(found.shape, ends * unit / _UNIT[torch.float32])
        if name not in _SUMMING:
            return None
        sizes = pytree.tree_map(_magnitude, (args, kwargs))
        walk = max(1.0, _factors(args) ** 0.5 / _WALK) if name == "cumsum" else 1.0
        try:
            found = func(*sizes[0], **sizes[1]) * walk
        except RuntimeError:
            return None
        if not _is_finite(found) and not _are_finite((args, kwargs)):
            found.nan_to_num_(0.0, 0.0, 0.0)  # no sum that overflows
        return found

    def _move(self, item: Any, weights: Tensor | None) -> Any:
        if not isinstance(item, torch.Tensor) or item.dtype not in _UNIT or not item.numel():
            return item
        if item.layout != torch.strided:  # its parts are moved where they are computed with
            return item
        wide = item.float()
        step = wide.abs().mul_(_UNIT[item.dtype])
        if not float(step.min()) >= _LEAST[item.dtype]:
            tiny = (step < _LEAST[item.dtype]) & (wide != 0)
            step[tiny] = _LEAST[item.dtype]  # a zero is no rounded number
        if weights is not None and weights.shape == item.shape:
            # sums of 16-bit types are kept in float32
            step.add_(weights.float(), alpha=_UNIT[torch.float32])
        step.mul_(self._signs(item))
        if not _is_finite(step):
            step.nan_to_num_(0.0, 0.0, 0.0)
            if weights is not None and weights.shape == item.shape:
                # whether a sum is infinite or infinities cancel: its order says, and fused steps do
                step[weights.isinf()] = torch.nan
        return step.add_(wide).to(item.dtype)

    def _signs(self, like: Tensor) -> Tensor:
        """Numbers of both signs and of about one, other ones each time."""
        self.calls += 1
        self._moved += like.numel()
        if self.is_spent:
            raise RuntimeError("more elements than a bound is worth")
        self._at = (self._at * 5 + 7919) % (_POOL - 1)
        self._turned ^= self._turns
        count = like.numel()
        if count <= _POOL:  # the pool is stored twice
            found = self._pool[self._at : self._at + count]
        else:
            found = self._pool[:_POOL].roll(self._at).repeat(-(-count // _POOL))[:count]
        return (-found if self._turned else found).reshape(like.shape)


@lru_cache(maxsize=MORE_RUNS)
def _pool(seed: int) -> Tensor:
    """The numbers by which a run moves, stored twice."""
    generator = torch.Generator().manual_seed(seed)
    # above one unit, so that no move is lost when the result is rounded to its own type
    size = torch.rand(_POOL, generator=generator) + 1.05
    sign = torch.rand(_POOL, generator=generator) < 0.5
    return (size if seed < 2 else torch.where(sign, -size, size)).repeat(2)


def _is_finite(item: Tensor) -> bool:
    """Of float32, in one pass that stores nothing: a NaN is the minimum and the maximum."""
    return bool(torch.stack(torch.aminmax(item)).isfinite().all())


def _are_finite(items: Any) -> bool:
    real = (item for item in pytree.tree_leaves(items) if _is_real(item) and item.numel())
    return all(map(_is_finite, real))


def _factors(args: Any) -> int:
    """Of each product or running sum: along a dimension, or all elements."""
    along = len(args) > 1 and isinstance(args[1], int) and args[0].dim() > 0
    return int(args[0].shape[args[1]] if along else args[0].numel())


def _terms(name: str, args: Any) -> int:
    """Of each sum of a product or convolution."""
    if name in ("mm", "bmm", "matmul", "linear"):
        return int(args[0].shape[-1])
    if name in ("addmm", "baddbmm"):
        return int(args[1].shape[-1])
    if name in ("convolution", "mkldnn_convolution"):
        return int(args[1][0].numel())
    return 0


class _Looking(TorchDispatchMode):  # type: ignore[misc]
    """While it is on, it is noted what PyTorch's nearness to the truth says nothing about.

    `wider`: something is kept in a wider type than its own, or is a sum that overflows; `rounded`,
    `decided`: values are rounded so often, and something is decided by them: which one is the
    largest, say.
    """

    def __init__(self) -> None:
        super().__init__()
        self.wider = self.decided = False
        self.rounded = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.partition("::")[2]
        result = func(*args, **kwargs)
        given, made = (
            [*map(_is_real, pytree.tree_leaves(item))] for item in ((args, kwargs), result)
        )
        overflows = name in _SUMMING and not _are_finite(result) and _are_finite((args, kwargs))
        steep = name in _STEEP or kwargs.get("rounding_mode") or not all(made)
        decision = any(given) and steep and name not in _LEVEL
        self.wider |= name in _WIDE or _terms(name, args) >= DEEP or overflows
        self.decided |= bool(self.rounded and decision)
        self.rounded += any(made) and not (name in _ROUNDLESS or func.is_view)
        return result


def _whole(args: Any, result: Any) -> bool:
    """Are all of these whole numbers, and small enough to be exact?"""
    if not isinstance(result, torch.Tensor) or result.dtype not in _UNIT or not result.numel():
        return False
    for item in (*args, result):  # of 3 + 0.1 * 7 only the result is none
        if isinstance(item, torch.Tensor) and item.is_floating_point() and item.numel():
            few = item.reshape(-1)[:8]
            if not bool((few == few.trunc()).all()) or not bool((item == item.trunc()).all()):
                return False
        elif isinstance(item, float) and not item.is_integer():
            return False
    return float(result.abs().max()) < 1 / _UNIT[result.dtype]


def _is_real(item: Any) -> bool:
    return isinstance(item, torch.Tensor) and item.is_floating_point()


def _magnitude(item: Any) -> Any:
    """In float32 for 16 bits: where terms cancel, their magnitudes may add up to more than these
    hold."""
    if not _is_real(item):
        return item
    return item.abs() if item.dtype == torch.float64 else item.abs().float()


def is_near(native: Tensor, golden: Tensor) -> bool:
    """Is PyTorch so near to the truth that every other order of evaluation is near enough?"""
    if native.dtype not in _UNIT:
        return True
    if native.numel() <= FEW_VALUES:
        return False
    pieces = zip(native.reshape(-1).split(_PIECE), golden.reshape(-1).split(_PIECE), strict=True)
    return all(_is_near(*pair) for pair in pieces) and not _repeats(native)


def _repeats(native: Tensor) -> bool:
    """Whether the same few values stand again and again, as for every row of a batch."""
    found = native.reshape(-1)[:_PIECE].nan_to_num().unique()
    return int(found.numel()) <= FEW_VALUES


def _is_near(native: Tensor, golden: Tensor) -> bool:
    limits = CANN_LIMITS[DType(str(native.dtype).removeprefix("torch."))]
    gap = (native.double() - golden).abs_().nan_to_num_(0.0, 0.0, 0.0)
    if float(gap.max()) <= min(limits.small_error, 10 * NEAR * limits.mean * limits.small):
        return True
    size = golden.abs()
    allowed = torch.where(size < limits.small, limits.small_error, 10 * NEAR * limits.mean * size)
    if native.dtype == torch.float32:
        allowed = allowed.minimum(NEAR * (1e-4 + 1e-4 * size))
    return not bool((gap > allowed).any())


def find_bounds(
    model: Any,
    inputs: Inputs,
    references: Sequence[Tensor],
    goldens: Sequence[Tensor],
    path: str,
    run: Callable[..., list[Tensor]] = run_model,
    *,
    patient: bool = False,
    calls: list[int] | None = None,
) -> list[Tensor]:
    """For each output how far its elements move, in float32; nothing where none is needed.

    patient: where a run may take a minute. `calls`: gets the number of operations of each run, and
    more than LONG of one that was too much.
    """
    pairs = list(zip(references, goldens, strict=True))
    elements = sum(item.numel() for item in references)
    if elements > MOST_ELEMENTS:
        return []
    if all(is_near(*pair) for pair in pairs) and not _is_open(model, inputs, references, path, run):
        return []
    threads, fused = torch.get_num_threads(), torch.backends.mha.get_fastpath_enabled()
    torch.set_num_threads(1)  # many short calls: a second thread would mostly wait
    torch.backends.mha.set_fastpath_enabled(False)  # one call for all of nn.MultiheadAttention
    whole = isinstance(model, torch.nn.Module) and any(
        isinstance(item, torch.nn.LSTM) for item in model.modules()
    )
    one_by_one = torch.backends.mkldnn.flags(enabled=False) if whole else nullcontext()
    try:
        with one_by_one:  # ... and one call for all steps of nn.LSTM
            return _moves(model, inputs, references, path, run, patient, calls)
    finally:
        torch.set_num_threads(threads)
        torch.backends.mha.set_fastpath_enabled(fused)


def _is_open(
    model: Any,
    inputs: Inputs,
    references: Sequence[Tensor],
    path: str,
    run: Callable[..., list[Tensor]],
) -> bool:
    """May right answers lie apart although PyTorch's is near the truth?

    Its own may be nearer than others can be, and values that are rounded in another way may be on
    the other side of a threshold.
    """
    with _Looking() as seen:
        try:
            run(model, inputs.args(), path)
        except TaskError:
            return False
    counted = any(item.dtype not in _UNIT for item in references)
    return seen.wider or seen.decided or seen.rounded > MANY or bool(seen.rounded and counted)


def _moves(
    model: Any,
    inputs: Inputs,
    references: Sequence[Tensor],
    path: str,
    run: Callable[..., list[Tensor]],
    patient: bool = False,
    calls: list[int] | None = None,
) -> list[Tensor]:
    calls = [] if calls is None else calls
    largest = [torch.zeros(item.shape) for item in references]

    def ran(seeds: range) -> bool:
        """Note how far these runs move; False where noise breaks what the model checks.

        And where it takes too long.
        """
        for seed in seeds:
            noise = _Noise(seed, MOST_PATIENT if patient else MOST_MOVED)
            try:
                with noise:
                    moved = run(model, inputs.args(), path)
                calls.append(noise.calls)
            except TaskError:
                if noise.is_spent:
                    calls.append(LONG + 1)
                return False
            for most, one, other in zip(largest, moved, references, strict=True):
                if one.shape == other.shape and one.dtype == other.dtype:
                    torch.maximum(most, _gap(one, other), out=most)
        return True

    if not ran(range(2)):
        return []
    if calls[0] > LONG:
        return [_beside(item) for item in largest]
    if not ran(range(2, RUNS // 2)):
        return []
    before = [item.clone() for item in largest]
    if not ran(range(RUNS // 2, RUNS)):
        return []
    if _jumped(before, largest, references):
        ran(range(RUNS, MORE_RUNS))
    elif _rest(largest, references):
        ran(range(RUNS, 2 * RUNS))
    return largest


def _beside(found: Tensor) -> Tensor:
    """At least as far as the elements of a row move on average: two runs see few ways."""
    return torch.maximum(found, found.mean(-1, keepdim=True)) if found.dim() else found


def _gap(one: Tensor, other: Tensor) -> Tensor:
    """How far elements moved; integers and truth values, too."""
    if one.dtype not in _UNIT:
        if one.is_complex() or one.dtype == torch.float64:
            return torch.zeros(one.shape)
        return (one.double() - other.double()).abs_().float()
    gap = (one.float() - other.float()).abs_()
    if not gap.numel() or _is_finite(gap):
        return gap
    gap.nan_to_num_(0.0, 0.0, 0.0)
    gap[(other.isfinite() & ~one.isfinite()) | (one.isnan() & ~other.isnan())] = float("inf")
    return gap


def _jumped(
    before: Sequence[Tensor], after: Sequence[Tensor], references: Sequence[Tensor]
) -> bool:
    """Did elements of 16 bits, or integers, move far only in the later runs?

    A rounding then decides between values: which of three scores of an attention is the largest,
    say. Few runs see few of the ways in which that may end.
    """
    for one, two, other in zip(before, after, references, strict=True):
        if other.dtype not in _UNIT and bool((two > one).any()):
            return True
        if other.dtype in _UNIT and other.dtype != torch.float32:
            far = two > _FAR * _UNIT[other.dtype] * other.float().abs()
            if bool((far & (two > _FAR * one)).any()):
                return True
    return False


def _rest(found: Sequence[Tensor], references: Sequence[Tensor]) -> bool:
    """Do a few elements stay while most move by a rounding to 16 bits? Two undid each other."""
    for move, other in zip(found, references, strict=True):
        if other.dtype in _UNIT and other.numel():
            size = other.float().abs()
            coarse = move > _UNIT[torch.float16] / 4 * size
            if 2 * int(coarse.sum()) > other.numel() and bool(((move == 0) & (size > 0)).any()):
                return True
    return False
