"""What a user may ask of a suite, as `--suite-option name=value` gives it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

SEEDS = 1 << 31  # numpy takes no negative ones, and none past 32 bits


def _split(value: Any) -> Any:
    """Names with commas between them, as a command line has them."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Names = Annotated[tuple[str, ...], BeforeValidator(_split)]


class SuiteOptions(BaseModel):
    """Which items, and in what form; every suite takes all of these and uses what it has.

    categories, levels, names: only these, all of them by default. `names` match an item's name or
    its last part.
    input_mb: items with larger inputs are skipped, and the reason says how large they are.
    scale_mb: 0, or shapes are reduced by the rule of scale.py until the inputs take this much. None
    is what the suite has for a default.
    shapes: of PCL's NPUKernelBench, `static`: one item for each case; `dynamic`: one item for each
    operator, and every case must pass. Of KernelBench and MultiKernelBench, `full`: the checkout's
    own at full size, as far as `input_mb` allows; of MultiKernelBench, `original`: the shapes
    before 2026-01-22 at full size; otherwise the checkout's own, reduced.
    response: what the prompt of PCL's NPUKernelBench asks for.
    cases: how many cases of an operator are used (NPUKernelBench, CANN-bench); 0: all.
    dtype: MultiKernelBench's models and inputs in this type instead of float32.
    true_mb: right candidates of reduced items are run once more at the item's own shapes, by some
    of their cores (trueshape.py), where those touch at most this much; 0: not at all.
    other_shapes: right operators of npusmith's form are judged at other shapes as well
    (othershapes.py), as `run` does.
    answered: of PCL's NPUKernelBench, only operators that the checkout has an answer for.
    eager: beside the times of right candidates an estimate of eager's, from a capture of the item.
    training: models are called in training mode, as MultiKernelBench and KernelBench call them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    categories: Names = ()
    levels: Names = ()
    names: Names = ()
    input_mb: float = 256
    scale_mb: float | None = None
    shapes: Literal["static", "dynamic", "scaled", "original", "full"] = "static"
    response: Literal["kernel_only", "full"] = "kernel_only"
    cases: int = 1
    dtype: Literal["", "float16", "bfloat16"] = ""
    true_mb: float = 20_000
    other_shapes: bool = True
    answered: bool = False
    eager: bool = True
    training: bool = True
