"""When is an answer right? By the suite's own rule, and by two of ours.

The suite: an element fails when it differs by more than 1e-3 and by more than 1e-3 of the
reference; anything that is not finite fails; 62 tasks bring a rule of their own. It compares
neither shapes nor types nor the lengths of lists, and some of its own rules accept NaN. `strict`
wants the suite's tolerance and all of these; `precise` compares the values by the strict profile of
task/tolerance.py as well. What the suite's own bindings cannot do otherwise passes: a list of one
for a tensor, [1] for [], a float of another width than the reference gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def strict(wanted: Any, found: Any, golden: Sequence[Any] | None = None) -> str:
    """What is wrong with the form of the results, whatever the tolerance; "" when nothing.

    With float64 results: a NaN of the reference that float64 does not have is left out.
    """
    wide = golden if golden is not None else [None] * len(listed(wanted))
    return _each(wanted, found, lambda at, want, got: _form(want, got, wide[at]))


def precise(wanted: Any, found: Any, golden: Sequence[Any] | None) -> str:
    """What the strict profile objects to, against float64 where it is given; "" when nothing."""
    wide = golden if golden is not None else [None] * len(listed(wanted))
    return _each(wanted, found, lambda at, want, got: _values(want, got, wide[at]))


def _each(wanted: Any, found: Any, compare: Callable[[int, Any, Any], str]) -> str:
    wanted, found = listed(wanted), listed(found)
    if len(wanted) != len(found):
        return f"returns {len(found)} tensors, the reference {len(wanted)}"
    for at, (want, got) in enumerate(zip(wanted, found, strict=True)):
        said = compare(at, want, got)
        if said:
            return f"output {at}: {said}"
    return ""


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _form(want: Any, got: Any, golden: Any = None) -> str:
    """Kind, shape, element type, and where values are not numbers."""
    if not isinstance(want, torch.Tensor) or not isinstance(got, torch.Tensor):
        if type(want) is not type(got):
            return f"{type(got).__name__} instead of {type(want).__name__}"
        return "" if want == got else f"{got!r} instead of {want!r}"[:200]
    if want.numel() == 1 and want.dim() + got.dim() == 1:  # [] and [1]
        want, got = want.reshape(1), got.reshape(1)
    alike = want.dtype == got.dtype or _narrower(got, want) or _narrower(want, got)
    if want.shape != got.shape or not alike:
        return (f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}").replace(
            "torch.", ""
        )
    odd = torch.isnan(want) != torch.isnan(got)
    if golden is not None and golden.shape == want.shape:  # as task/tolerance.py leaves them out
        odd &= torch.isnan(want) == torch.isnan(golden)
    return f"{int(odd.sum())} elements are NaN on one side alone" if bool(odd.any()) else ""


def _narrower(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype in _NARROW.get(other.dtype, ())


def _values(want: Any, got: Any, golden: Any) -> str:
    said = _form(want, got, golden)
    if said or not isinstance(want, torch.Tensor):
        return said
    if want.numel() == 1:  # [] and [1]
        want, got = want.reshape(1), got.reshape(1)
        golden = None if golden is None else golden.reshape(1)
    if _narrower(got, want):  # the wide reference is its own golden
        golden, want = want, want.to(got.dtype)
    elif _narrower(want, got):
        got = got.to(want.dtype)
    if want.is_complex():
        wide = None if golden is None else torch.view_as_real(golden)
        return _values(torch.view_as_real(want), torch.view_as_real(got), wide)
    try:
        native, actual = array(want), array(got)
    except NpusmithError:
        return "" if torch.equal(want, got) else "values differ"
    wide = None if golden is None or golden.shape != want.shape else golden.double().numpy()
    seen = tolerance.compare(actual, native, wide, "strict")
    return "" if seen.passed else seen.message
