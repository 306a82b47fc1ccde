"""What others published of the suites, to stand beside our figures: device figures of other tasks,
shapes and rules, so never a comparison of equals."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Published:
    """A row of a paper. Shares are of all tasks that it tried; "-" where it does not say."""

    suite: str
    system: str
    tasks: str
    compiled: str
    correct: str
    speed: str
    where: str
    source: str


_ASCEND_KERNEL_GEN = "arXiv 2601.07160 v2, results by level"
_MULTI = "arXiv 2507.17773, Ascend C, greedy"

PUBLISHED = (
    Published(
        "multikernelbench", "AscendCraft", "52 operators of seven categories, one sample",
        "98.1 %", "90.4 %", "46.2 % at least as fast as eager (82.7 % at 0.2, 57.7 % at 0.8)",
        "910B2, CANN 8.1", "arXiv 2601.22760 v1",
    ),
    Published(
        "multikernelbench", "DeepSeek-V3", "285 tasks, one sample", "10.2 %", "2.5 %",
        "1.1 % faster than eager", "910B2", _MULTI,
    ),
    Published(
        "multikernelbench", "Claude Sonnet 4", "285 tasks, one sample", "5.3 %", "2.1 %",
        "0.4 % faster than eager", "910B2", _MULTI,
    ),
    Published(
        "npukernelbench", "AscendKernelGen (Qwen3-32B, SFT and DPO)", "level 1, pass@1; pass@10",
        "82.2; 99.9 %", "43.3; 93.9 %", "0.61 x the vendor's kernels", "NPU", _ASCEND_KERNEL_GEN,
    ),
    Published(
        "npukernelbench", "AscendKernelGen (Qwen3-32B, SFT and DPO)", "level 2, pass@1; pass@10",
        "62.8; 95.5 %", "14.3; 64.3 %", "1.86 x the vendor's kernels", "NPU", _ASCEND_KERNEL_GEN,
    ),
    Published(
        "npukernelbench", "AscendKernelGen (Qwen3-32B, SFT and DPO)", "level 3, pass@1; pass@10",
        "14.7; 61.1 %", "0.2; 1.7 %", "-", "NPU", _ASCEND_KERNEL_GEN,
    ),
    Published(
        "npukernelbench", "SAGE (GLM-5.2)", "88 tasks, 30 rounds", "-", "95.5 %",
        "86.9 % of the solved ones faster than torch_npu", "910C, CANN 8.5.1",
        "arXiv 2609.35568, abstract",
    ),
    Published(
        "kernelbench", "EvoKernel (GPT-5.2)", "levels 1 and 2 in Ascend C, 30 iterations",
        "98.5 %", "83.0 %", "median 3.60 x its own first draft", "NPU",
        "arXiv 2603.10846, abstract",
    ),
    Published(
        "kernelbench", "DeepSeek-R1", "levels 1, 2, 3, one sample, CUDA", "-", "-",
        "12, 36, 2 % faster than eager", "GPU", "arXiv 2502.10517",
    ),
    Published(
        "cann-bench", "Hawk (GLM-5.1)", "levels 1 and 2, up to 30 iterations", "-", "80.0 %",
        "up to 2.2 x its baselines", "910B2, CANN 8.5.1", "arXiv 2607.01590 v1, abstract",
    ),
)  # fmt: skip


def published(suite: str) -> tuple[Published, ...]:
    """What there is of a suite, by its name in npusmith."""
    return tuple(row for row in PUBLISHED if row.suite == suite)
