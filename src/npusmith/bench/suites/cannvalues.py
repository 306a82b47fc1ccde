"""Inputs of CANN-bench's cases: `draw(shape, dtype, range)` under PyTorch's own random state.

Floats are uniform in the range, integers too with both ends; ["nan", "nan"] makes half of the
elements NaN, ["-inf", "inf"] a twentieth at either end infinite. Without a range floats lie in
[0, 1] and integers in [0, 100]. (docs/spec of the suite, in our words.)
"""

from __future__ import annotations

import math
from typing import Any

import torch

_SPECIAL = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def draw(shape: Any, dtype: Any, span: Any) -> Any:
    """One input: a tensor, a list of them for a list of shapes, None for none."""
    if shape is None or None in shape:
        return None
    if shape and isinstance(shape[0], list):
        many = isinstance(span, list) and len(span) == len(shape) and isinstance(span[0], list)
        return [
            draw(
                part,
                dtype[min(at, len(dtype) - 1)] if isinstance(dtype, list) else dtype,
                span[at] if many else (span[0] if _nested(span) else span),
            )
            for at, part in enumerate(shape)
        ]
    kind = getattr(torch, dtype[0] if isinstance(dtype, list) else dtype)
    low, high = _ends(span, kind)
    if kind.is_floating_point:
        return _floats(shape, kind, low, high)
    if kind is torch.bool:
        ends = sorted(min(1, max(0, int(end))) for end in (low, high))
        return torch.randint(ends[0], ends[1] + 1, shape).to(torch.bool)
    return torch.randint(int(low), int(high) + 1, shape, dtype=kind)


def _nested(span: Any) -> bool:
    return isinstance(span, list) and bool(span) and isinstance(span[0], list)


def _ends(span: Any, kind: torch.dtype) -> tuple[float, float]:
    if span is None or _nested(span):
        return (0.0, 1.0) if kind.is_floating_point else (0.0, 100.0)
    ends = span if isinstance(span, list) else [span, span]
    return _number(ends[0]), _number(ends[-1])


def _number(end: Any) -> float:
    return _SPECIAL[end] if isinstance(end, str) and end in _SPECIAL else float(end)


def _floats(shape: list[int], kind: torch.dtype, low: float, high: float) -> torch.Tensor:
    if math.isfinite(low) and math.isfinite(high):
        limits = torch.finfo(kind)
        low, high = max(low, limits.min), min(high, limits.max)
        return (torch.rand(shape, dtype=torch.float64) * (high - low) + low).to(kind)
    values = (torch.rand(shape) * 2 - 1).to(kind)
    if math.isnan(low) and math.isnan(high):
        values[torch.rand(shape) < 0.5] = math.nan
        return values
    flat = values.reshape(-1)
    count = max(1, flat.numel() // 20)
    flat[:count], flat[-count:] = -math.inf, math.inf
    return flat.reshape(shape)
