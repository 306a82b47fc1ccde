"""MultiKernelBench's bundled Ascend C examples, each with the model that it is published with.

Six operator projects in the six-string format and two direct launches in JSON, which the writer
`answers:CHECKOUT` reads. Records say what is changed in a published model.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from npusmith.bench.model import Entry, Item
from npusmith.bench.suites.multikernelbench import MultiKernelBench
from npusmith.bench.suites.torchsuite import read_text, refuse_root

ANSWERS = {
    "ascendc": "prompts/ascendc_new_model_{}.py",
    "ascendc_direct_launch": "prompts/ascendc_direct_launch_model_{}.json",
}
_EARLIER = (
    # A tensor of this shape takes 6.4 GB; before 2026-01-22 it was published with the other.
    ("4096, 393216", "16, 16384"),
    ("batch_size = 4096", "batch_size = 16"),
    ("dim = 393216", "dim = 16384"),
)
# Models that were written for other backends; the answers' operators take float only.
_FLOAT = ((", dtype=torch.float16)", ")"),)
_SHOWN = "prompts/cuda_model_{}.py"


class Examples(MultiKernelBench):
    """Judged as the suite's own tasks; an item's last part is its answer's name."""

    name = "multikernelbench-examples"
    scale_mb = 0

    def check(self) -> None:
        for entry in self.entries():
            _, _, name = entry.name.partition("/")
            for path in (entry.path, self.root / ANSWERS[entry.category].format(name)):
                if not path.is_file():
                    raise refuse_root(self.root, "MultiKernelBench", [path.name])

    def entries(self) -> Iterator[Entry]:
        for name in ("add", "layer_norm", "leaky_relu", "matmul_add", "mse_loss", "reduce_sum"):
            yield self._entry("ascendc", name, _SHOWN.format(name))
        yield self._entry("ascendc_direct_launch", "add", _SHOWN.format("add"))
        yield self._entry("ascendc_direct_launch", "relu", "reference/activation/relu.py")

    def _entry(self, category: str, name: str, model: str) -> Entry:
        return Entry(f"{category}/{name}", category, "", self.root / model)

    def text_of(self, path: Path, name: str) -> str:
        """The published model, or what it must be changed to."""
        text = read_text(path)
        for old, new in (*_EARLIER, *_FLOAT):
            text = text.replace(old, new)
        return text

    def _shapes(self, item: Item) -> str:
        text = read_text(self.root / item.source)
        changed = [f"{old} -> {new}" for old, new in (*_EARLIER, *_FLOAT) if old in text]
        return "; ".join(changed) or "as published"
