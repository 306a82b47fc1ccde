"""A small corpus for the stages: the programs of tests/kernels, and wrong ones beside them."""

from __future__ import annotations

from pathlib import Path

from npusmith.train.corpus.sample import Kind, Sample, Split

KERNELS = Path(__file__).parents[1] / "kernels"


def programs() -> list[tuple[str, str]]:
    """Names and texts."""
    found = sorted(KERNELS.glob("*.tile.py"))
    return [(path.name.partition(".")[0], path.read_text(encoding="utf-8")) for path in found]


def samples() -> list[Sample]:
    """A task and a preference of each short program."""
    found = []
    for name, text in programs():
        if len(text) < 1000:
            told = {
                "family": name, "split": Split.TRAIN,
                "prompt": f"write\n```python\n# {name}, get_inputs\n```\n",
                "completion": text, "verified_by": "python -m pytest tests/kernels",
            }  # fmt: skip
            found.append(Sample(kind=Kind.CODE, **told))
            wrong = text.replace(" + ", " - ").replace("copy_out", "copy_in")
            told |= {"chosen": text, "rejected": wrong}
            found.append(Sample(kind=Kind.PREFERENCE, **told))
    return found


def write_corpus(folder: Path) -> Path:
    """The folder, with its train.jsonl."""
    lines = [sample.line() + "\n" for sample in samples()]
    (folder / "train.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder
