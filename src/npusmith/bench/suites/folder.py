"""A folder of the user's own tasks in KernelBench's format; folders below it are categories."""

from __future__ import annotations

from collections.abc import Iterator

from npusmith.bench.model import Entry
from npusmith.bench.suites.torchsuite import TorchSuite, refuse_root
from npusmith.task import rules


class Folder(TorchSuite):
    """Judged by KernelBench's rule; all other .py files are listed as broken tasks."""

    name = "folder"
    rule = rules.Named(name="kernelbench")
    rule_name = rules.KERNELBENCH
    seed = 1024

    def check(self) -> None:
        if not self.root.is_dir() or next(self.entries(), None) is None:
            raise refuse_root(self.root, "tasks", ["*.py files with a class Model"])

    def entries(self) -> Iterator[Entry]:
        for path in sorted(self.root.rglob("*.py")):
            inside = path.relative_to(self.root)
            if any(part.startswith((".", "_")) for part in inside.parts):
                continue
            category = inside.parent.as_posix() if inside.parent.parts else "tasks"
            yield Entry(inside.with_suffix("").as_posix(), category, "", path)
