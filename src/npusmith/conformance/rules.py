"""When is an answer right? By the suite's own rule, and by ours.

The suite: an element fails when it differs by more than 1e-3 and by more than 1e-3 of the
reference; anything that is not finite fails; 62 tasks bring a rule of their own. It compares
neither shapes nor types nor the lengths of lists. Ours compares all of these, and values by the
strict profile of task/tolerance.py. What the suite's own bindings cannot do otherwise passes: a
list of one for a tensor, [1] for [], a float of another width than the reference gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from npusmith.device.tensors import array
from npusmith.errors import NpusmithError
from npusmith.task import tolerance

LIMIT = 1e-3
_TINY = 1e-7
_HALVES = (torch.float16, torch.bfloat16)
_NARROW = {torch.float64: (torch.float32, *_HALVES), torch.float32: _HALVES}


def check_precision(
    wanted: Any, found: Any, max_abs_error: float, max_rel_error: float
) -> tuple[int, Any, Any]:
    """The suite's comparison: (1 or 0, absolute differences, relative differences)."""
    wanted = wanted if isinstance(wanted, list) else [wanted]
    found = found if isinstance(found, list) else [found]
    passed = True
    absolute, relative = [], []
    for want, got in zip(wanted, found, strict=False):  # a short list passes there too
        if got.dtype == torch.bool:
            want, got = want.int(), got.int()
        distance = (want - got).abs()
        share = distance / (want.abs() + _TINY)
        finite = all(bool(torch.isfinite(part).all()) for part in (want, got, distance, share))
        far = (distance > max_abs_error) & (share > max_rel_error)
        passed = passed and finite and not bool(far.any())
        absolute.append(distance.reshape(-1))
        relative.append(share.reshape(-1))
    return int(passed), torch.cat(absolute), torch.cat(relative)


def official(prepare: Any, param: Any, wanted: Any, found: Any) -> bool:
    """The suite's verdict for one case."""
    check = getattr(prepare, "custom_check_precision", None)
    if check is not None:
        return bool(check(param, wanted, found)[0])
    return bool(check_precision(wanted, found, LIMIT, LIMIT)[0])


def strict(wanted: Any, found: Any, golden: Sequence[Any] | None) -> str:
    """What our rule objects to; "" when nothing."""
    wanted, found = listed(wanted), listed(found)
    if len(wanted) != len(found):
        return f"returns {len(found)} tensors, the reference {len(wanted)}"
    for at, (want, got) in enumerate(zip(wanted, found, strict=True)):
        said = _one(want, got, golden[at] if golden is not None else None)
        if said:
            return f"output {at}: {said}"
    return ""


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _one(want: Any, got: Any, golden: Any) -> str:
    if not isinstance(want, torch.Tensor) or not isinstance(got, torch.Tensor):
        return "" if want == got else f"{got!r} instead of {want!r}"[:200]
    if want.numel() == 1 and want.dim() + got.dim() == 1:  # [] and [1]
        want, got = want.reshape(1), got.reshape(1)
        golden = None if golden is None else golden.reshape(1)
    if want.is_floating_point() and got.dtype in _NARROW.get(want.dtype, ()):  # its own golden
        golden, want = want, want.to(got.dtype)
    elif got.is_floating_point() and want.dtype in _NARROW.get(got.dtype, ()):
        got = got.to(want.dtype)
    if want.shape != got.shape or want.dtype != got.dtype:
        return (f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}").replace(
            "torch.", ""
        )
    if want.is_complex():
        wide = None if golden is None else torch.view_as_real(golden)
        return _one(torch.view_as_real(want), torch.view_as_real(got), wide)
    try:
        native, actual = array(want), array(got)
    except NpusmithError:
        return "" if torch.equal(want, got) else "values differ"
    wide = None if golden is None or golden.shape != want.shape else golden.double().numpy()
    seen = tolerance.compare(actual, native, wide, "strict")
    return "" if seen.passed else seen.message
