"""The suites' own rules for one trial: (wanted, found) -> what is wrong, "" when nothing.

Each is the published rule and no more; ours are in conformance/rules.py (form, precise).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from npusmith.conformance import rules as ours
from npusmith.device.tensors import array
from npusmith.errors import NpusmithError
from npusmith.ir.dtypes import DType
from npusmith.task import tolerance
from npusmith.task.tolerance import CANN_LIMITS

Rule = Callable[[Any, Any, Any, Any], str]  # wanted, found, golden, inputs

MULTIKERNELBENCH = "shape, allclose within 1e-4 + 1e-4 |reference|, bool exactly"
KERNELBENCH = "shape, allclose within 1e-4 (float32) or 1e-2 (float16, bfloat16), both ways"
NARROW = "CANN-bench's limits of the type against float64, or twice what PyTorch is off by"
CANNBENCH = "mean relative error below t and largest below 10 t by dtype, against float64"
_NARROW = (torch.float16, torch.bfloat16)


def multikernelbench(wanted: Any, found: Any, golden: Any = None, inputs: Any = None) -> str:
    """MultiKernelBench since 2026-01-22."""
    if isinstance(wanted, torch.Tensor) and isinstance(found, torch.Tensor):
        if torch.bool in (wanted.dtype, found.dtype) and wanted.shape == found.shape:
            return "" if torch.equal(wanted, found) else "outputs differ"
        return _close(wanted, found, 1e-4)
    if isinstance(wanted, (list, tuple)) and isinstance(found, (list, tuple)):
        if len(wanted) != len(found):
            return f"{len(found)} outputs, the reference has {len(wanted)}"
        pairs = zip(wanted, found, strict=True)
        said = (multikernelbench(want, got) for want, got in pairs)
        return next((words for words in said if words), "")
    same = type(wanted) is type(found) and wanted == found
    return "" if same else f"{type(found).__name__}, the reference gives {type(wanted).__name__}"


def kernelbench(wanted: Any, found: Any, golden: Any = None, inputs: Any = None) -> str:
    """KernelBench compares one tensor; more of them are compared one by one here."""
    if isinstance(wanted, (list, tuple)) and isinstance(found, (list, tuple)):
        if len(wanted) != len(found):
            return f"{len(found)} outputs, the reference has {len(wanted)}"
        pairs = zip(wanted, found, strict=True)
        return next((words for words in (kernelbench(*pair) for pair in pairs) if words), "")
    if not isinstance(wanted, torch.Tensor) or not isinstance(found, torch.Tensor):
        return "" if type(wanted) is type(found) and wanted == found else "no tensor"
    return _close(wanted, found, 1e-2 if wanted.dtype in _NARROW else 1e-4)


def narrow(wanted: Any, found: Any, golden: Any = None, inputs: Any = None) -> str:
    """Suites of float32 tasks, in a 16-bit type: they have no tolerance for that themselves.

    What PyTorch loses in the type and float64 does not is left out (1e-8 is 0 in half).
    """
    return ours.precise(wanted, found, None if golden is None else ours.listed(golden))


def _close(wanted: torch.Tensor, found: torch.Tensor, limit: float) -> str:
    if wanted.shape != found.shape:
        return f"shape {list(found.shape)}, the reference has {list(wanted.shape)}"
    if wanted.dtype != found.dtype:  # allclose raises, and the suites count that as wrong
        return f"{found.dtype}, the reference has {wanted.dtype}".replace("torch.", "")
    if torch.allclose(wanted, found, atol=limit, rtol=limit):
        return ""
    if not wanted.is_floating_point():
        return f"{int((wanted != found).sum())} elements differ"
    gap = (wanted.double() - found.double()).abs()
    worst = float(gap.nan_to_num(posinf=float("inf"), nan=float("inf")).max())
    return f"off by up to {worst:.3g}, more than {limit:g} allows"


def cannbench(
    thresholds: Mapping[str, float],
    outputs: Sequence[Mapping[str, str]],
    inputs: Sequence[str],
    attrs: Mapping[str, Any],
) -> Rule:
    """CANN-bench's rule with an operator's own thresholds; `outputs` are the rows of proto.yaml.

    An output with `compare: false` is not compared; where it holds indices into an input, the
    values that they point at must be those that the reference's point at.
    """

    def rule(wanted: Any, found: Any, golden: Any, given: Any) -> str:
        wanted, found = _listed(wanted), _listed(found)
        wide = _listed(golden) if golden is not None else []
        wide = wide if len(wide) == len(wanted) else [None] * len(wanted)
        if len(wanted) != len(found):
            return f"{len(found)} outputs, the reference has {len(wanted)}"
        for at, (want, got) in enumerate(zip(wanted, found, strict=True)):
            row = outputs[at] if at < len(outputs) else {}
            if row.get("compare") == "false":
                source = given[inputs.index(row["input"])] if row.get("input") in inputs else None
                said = _pointed(want, got, source, attrs.get(row.get("dim_attr", ""), -1))
            else:
                said = _cann(want, got, wide[at], thresholds)
            if said:
                return f"output {at}: {said}"
        return ""

    return rule


def _pointed(want: Any, got: Any, source: Any, dim: Any) -> str:
    """Indices are right where they point at the same values; ties may be broken either way."""
    if source is None:
        return ""
    if want.shape != got.shape or got.is_floating_point():
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    size = source.shape[int(dim)]
    if got.numel() and not bool(((got >= 0) & (got < size)).all()):
        return "an index lies outside of the input"
    keep = want.dim() == source.dim()
    one, other = (item.long() if keep else item.long().unsqueeze(int(dim)) for item in (want, got))
    first, second = (source.gather(int(dim), item) for item in (one, other))
    same = (first == second) | (first.isnan() & second.isnan())
    return "" if bool(same.all()) else f"{int((~same).sum())} indices point at other values"


def _cann(want: Any, got: Any, golden: Any, thresholds: Mapping[str, float]) -> str:
    if isinstance(want, (list, tuple)) and isinstance(got, (list, tuple)):
        if len(want) != len(got):
            return f"{len(got)} tensors instead of {len(want)}"
        wider = _listed(golden) if golden is not None else [None] * len(want)
        rows = zip(want, got, wider, strict=True)
        return next((said for row in rows if (said := _cann(*row, thresholds))), "")
    if not isinstance(want, torch.Tensor) or not isinstance(got, torch.Tensor):
        return "" if type(want) is type(got) and want == got else "no tensor"
    name = str(want.dtype).removeprefix("torch.")
    if want.shape != got.shape or want.dtype != got.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {name}{list(want.shape)}"
    limit = thresholds.get(name)
    if limit == 0:
        return "" if torch.equal(want, got) else "must be equal bit for bit"
    if not want.is_floating_point():
        far = (want.double() - got.double()).abs() > (limit or 0)
        return f"{int(far.sum())} elements differ" if bool(far.any()) else ""
    wide = golden if isinstance(golden, torch.Tensor) and golden.shape == want.shape else None
    try:
        exact = None if wide is None else wide.double().numpy()
        seen = tolerance.compare(array(got), array(want), exact, "cann-bench")
    except NpusmithError:
        return "" if torch.equal(want, got) else "values differ"
    if seen.passed or limit is None:
        return "" if seen.passed else seen.message
    return _relaxed(want if wide is None else wide, got, limit)


def _relaxed(want: torch.Tensor, got: torch.Tensor, limit: float) -> str:
    """An operator's own threshold: mean relative error below it, the largest below ten times."""
    one, other = want.double(), got.double()
    usual = one.isfinite() & other.isfinite()
    odd = ~usual & ~((one == other) | (one.isnan() & other.isnan()))
    if bool(odd.any()):
        return f"{int(odd.sum())} elements differ in being NaN or infinite"
    small = CANN_LIMITS[DType(str(got.dtype).removeprefix("torch."))].small
    error = (one - other).abs()[usual] / (one.abs()[usual].clamp(min=small) + 1e-7)
    if not error.numel():
        return ""
    mean, largest = float(error.mean()), float(error.max())
    if mean < limit and largest < 10 * limit:
        return ""
    return (
        f"relative error {mean:.3g} on average, {largest:.3g} at most; {limit:g} is the threshold"
    )


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
