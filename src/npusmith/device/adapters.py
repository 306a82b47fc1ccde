"""aclnn functions whose arguments are not in the order of the operator's definition.

The rule is: inputs, attributes, outputs that are not also inputs, each in the order of the
definition. Some hand-written functions of PCL's NPUKernelBench take them in another order.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Adapter:
    """`order`: for each argument of the operator, its position among those of the function."""

    op: str
    order: tuple[int, ...]
    words: tuple[int, tuple[str, ...]] | None = None  # an argument given as a number for a word

    def sort(self, values: list[object]) -> list[object]:
        """The function's arguments as the operator has them."""
        found = [values[at] for at in self.order]
        if self.words is not None:
            at, words = self.words
            number = found[at]
            found[at] = words[number] if isinstance(number, int) else number
        return found


ADAPTERS: dict[str, Adapter] = {
    # (input, weight, bias, mean, var, training, momentum, eps, out, save_mean, save_rstd);
    # the definition has epsilon, momentum, is_training
    "aclnnBatchNorm": Adapter("BatchNormV3", (0, 1, 2, 3, 4, 7, 6, 5, 8, 9, 10)),
    "aclnnLayerNorm": Adapter("LayerNormV4", (0, 1, 2, 3, 4, 5, 6, 7)),
    # (gradOutput, self, target, reduction, out); the definition has predict, label, dout
    "aclnnMseLossBackward": Adapter(
        "MseLossGradV2", (1, 2, 0, 3, 4), words=(3, ("none", "mean", "sum"))
    ),
    # (self, k, dim, largest, sorted, values, indices); the definition has sorted, dim, largest
    "aclnnTopKV3": Adapter("TopKV3", (0, 1, 4, 2, 3, 5, 6)),
}
