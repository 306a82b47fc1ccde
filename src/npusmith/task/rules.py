"""When are results right? The published rules of the suites, by name: `find(Named(...))`.

A rule takes (wanted, found, golden, inputs) and gives what is wrong, "" when nothing. Each is as
its suite has it and no more; several compare neither shapes nor types nor the lengths of lists, and
some accept NaN. What we want besides is in weighing.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from pydantic import Field
from torch.utils import _pytree as pytree

from npusmith.device.tensors import array
from npusmith.errors import NpusmithError
from npusmith.ir.dtypes import DType
from npusmith.task import files, tolerance
from npusmith.task.tolerance import CANN_LIMITS
from npusmith.task.weighing import Pair
from npusmith.task.wire import Record

Rule = Callable[[Any, Any, Any, Any], str]  # wanted, found, golden, inputs

MULTIKERNELBENCH = "shape, allclose within 1e-4 + 1e-4 |reference|, bool exactly"
KERNELBENCH = "shape, allclose within 1e-4 (float32) or 1e-2 (float16, bfloat16), both ways"
NARROW = "CANN-bench's limits of the type against float64, or twice what PyTorch is off by"
CANNBENCH = "mean relative error below t and largest below 10 t by dtype, against float64"
NPUKERNELBENCH = "absolute and relative error above 1e-3, nothing infinite, or the task's own rule"
LIMIT = 1e-3
_TINY = 1e-7
_ANY_ERROR = (Exception,)
_UNDECIDED = "; PyTorch's own values from float64 fail so, too: the task has no sure answer"
_HALVES = (torch.float16, torch.bfloat16)


class Named(Record):
    """A rule as data: suites and the processes that judge for them exchange it."""

    name: Literal["multikernelbench", "kernelbench", "narrow", "npukernelbench", "cann-bench"]
    options: dict[str, Any] = Field(default_factory=dict)


def find(named: Named) -> Rule:
    return cannbench(**named.options) if named.name == "cann-bench" else _PLAIN[named.name]


def apply(rule: Rule, pair: Pair) -> str:
    """What a rule says of a set's outputs, as PyTorch's values."""
    trial = pair.trial
    try:
        sides = (trial.wanted, trial.wide, trial.given)
        wanted, golden, given = (files.get(item, trial.folder) for item in sides)
        said = rule(wanted, files.value(pair.found), golden, given)
        return f"{said}{_UNDECIDED}" if said and _refuses(rule, wanted, golden, given) else said
    except _ANY_ERROR as error:  # of a rule, on values of a kind that it does not expect
        return f"{type(error).__name__}: {error}"[:300]


def _refuses(rule: Rule, wanted: Any, golden: Any, given: Any) -> bool:
    """Whether the rule takes PyTorch's own values from float64 for wrong, too."""

    def narrowed(one: Any, other: Any) -> Any:
        return other.to(one.dtype).reshape(one.shape) if _are(torch.Tensor, one, other) else other

    try:
        exact = pytree.tree_map(narrowed, wanted, golden)
        return bool(rule(wanted, exact, golden, given))
    except _ANY_ERROR:  # there are none, or they have another form
        return False


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


# -------------------------------------------------------------------------------- MultiKernelBench


def multikernelbench(wanted: Any, found: Any, golden: Any = None, inputs: Any = None) -> str:
    """MultiKernelBench since 2026-01-22."""
    if _are(torch.Tensor, wanted, found):
        if torch.bool in (wanted.dtype, found.dtype) and wanted.shape == found.shape:
            return "" if torch.equal(wanted, found) else "outputs differ"
        return _close(wanted, found, 1e-4)
    if _are((list, tuple), wanted, found):
        return _each(wanted, found, multikernelbench)
    same = type(wanted) is type(found) and wanted == found
    return "" if same else f"{type(found).__name__}, the reference gives {type(wanted).__name__}"


def kernelbench(wanted: Any, found: Any, golden: Any = None, inputs: Any = None) -> str:
    """KernelBench compares one tensor; more of them are compared one by one here."""
    if _are((list, tuple), wanted, found):
        return _each(wanted, found, kernelbench)
    if not _are(torch.Tensor, wanted, found):
        return "" if type(wanted) is type(found) and wanted == found else "no tensor"
    return _close(wanted, found, 1e-2 if wanted.dtype in _HALVES else 1e-4)


def narrow(wanted: Any, found: Any, golden: Any = None, inputs: Any = None) -> str:
    """Suites of float32 tasks, in a 16-bit type: they have no tolerance for that themselves.

    What PyTorch loses in the type and float64 does not is left out (1e-8 is 0 in half).
    """
    wanted, found = listed(wanted), listed(found)
    wide = listed(golden) if golden is not None else []
    wide = wide if len(wide) == len(wanted) else [None] * len(wanted)
    if len(wanted) != len(found):
        return f"{len(found)} outputs, the reference has {len(wanted)}"
    for at, (want, got, exact) in enumerate(zip(wanted, found, wide, strict=True)):
        bent = not _are(torch.Tensor, want, got) or (want.shape, want.dtype) != (
            got.shape, got.dtype,
        )  # fmt: skip
        if said := _instead(want, got) if bent else _profile(want, got, exact, "strict"):
            return f"output {at}: {said}"
    return ""


def _are(kind: Any, wanted: Any, found: Any) -> bool:
    return isinstance(wanted, kind) and isinstance(found, kind)


def _each(wanted: Any, found: Any, rule: Callable[[Any, Any], str]) -> str:
    if len(wanted) != len(found):
        return f"{len(found)} outputs, the reference has {len(wanted)}"
    return next(filter(None, map(rule, wanted, found)), "")


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


# ---------------------------------------------------------------------------------- NPUKernelBench


def check_precision(
    wanted: Any, found: Any, max_abs_error: float, max_rel_error: float
) -> tuple[int, Any, Any]:
    """The suite's comparison: (1 or 0, absolute differences, relative differences).

    An element fails when it differs by more than both; anything that is not finite fails.
    """
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


def npukernelbench(wanted: Any, found: Any, golden: Any = None, inputs: Any = None) -> str:
    """PCL's NPUKernelBench, for tasks without a rule of their own."""
    if check_precision(wanted, found, LIMIT, LIMIT)[0]:
        return ""
    return f"an element is off by more than {LIMIT:g} and {LIMIT:g} of the reference, or infinite"


_PLAIN: dict[str, Rule] = {
    rule.__name__: rule for rule in (multikernelbench, kernelbench, narrow, npukernelbench)
}


# --------------------------------------------------------------------------------------- CANN-bench


def _instead(want: Any, got: Any) -> str:
    seen = [
        f"{item.dtype}{list(item.shape)}" if isinstance(item, torch.Tensor) else type(item).__name__
        for item in (got, want)
    ]
    return " instead of ".join(seen).replace("torch.", "")


def _profile(want: torch.Tensor, got: torch.Tensor, golden: Any, profile: str) -> str:
    """One tensor by a profile of tolerance.py; types that the chip lacks must be equal."""
    wide = isinstance(golden, torch.Tensor) and golden.shape == want.shape
    try:
        exact = golden.double().numpy() if wide else None
        seen = tolerance.compare(array(got), array(want), exact, profile)
    except NpusmithError:
        return "" if torch.equal(want, got) else "values differ"
    return "" if seen.passed else seen.message


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
        wanted, found = listed(wanted), listed(found)
        wide = listed(golden) if golden is not None else []
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
        return _instead(want, got)
    size = source.shape[int(dim)]
    if got.numel() and not bool(((got >= 0) & (got < size)).all()):
        return "an index lies outside of the input"
    keep = want.dim() == source.dim()
    one, other = (item.long() if keep else item.long().unsqueeze(int(dim)) for item in (want, got))
    first, second = (source.gather(int(dim), item) for item in (one, other))
    same = (first == second) | (first.isnan() & second.isnan())
    return "" if bool(same.all()) else f"{int((~same).sum())} indices point at other values"


def _cann(want: Any, got: Any, golden: Any, thresholds: Mapping[str, float]) -> str:
    if _are((list, tuple), want, got):
        if len(want) != len(got):
            return f"{len(got)} tensors instead of {len(want)}"
        wider = listed(golden) if golden is not None else [None] * len(want)
        rows = zip(want, got, wider, strict=True)
        return next((said for row in rows if (said := _cann(*row, thresholds))), "")
    if not _are(torch.Tensor, want, got):
        return "" if type(want) is type(got) and want == got else "no tensor"
    if want.shape != got.shape or want.dtype != got.dtype:
        return _instead(want, got)
    limit = thresholds.get(str(want.dtype).removeprefix("torch."))
    if limit == 0:
        return "" if torch.equal(want, got) else "must be equal bit for bit"
    if not want.is_floating_point():
        far = (want.double() - got.double()).abs() > (limit or 0)
        return f"{int(far.sum())} elements differ" if bool(far.any()) else ""
    said = _profile(want, got, golden, "cann-bench")
    if not said or limit is None:
        return said
    wide = golden if isinstance(golden, torch.Tensor) and golden.shape == want.shape else want
    return _relaxed(wide, got, limit)


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
