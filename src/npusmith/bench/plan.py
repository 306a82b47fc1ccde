"""What a run is, frozen in its store: `Plan`, and how workers open what it names."""

from __future__ import annotations

import hashlib
import importlib
import json
import platform
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from npusmith import version
from npusmith.bench.model import Limits, Suite, Writer
from npusmith.errors import NpusmithError
from npusmith.target.chips import find_chip

SUITES = "npusmith.bench.suites:open_suite"
# What a verdict depends on; a change of these files makes other units.
_JUDGE = (
    "errors.py", "codes", "ir", "target", "lang", "lower", "twin", "timing", "task", "sandbox",
    "device", "bench/suites", "bench/model.py",
)  # fmt: skip


class Plan(BaseModel):
    """A run. Two runs whose `terms` are equal may share a store."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: str
    root: Path
    options: dict[str, str] = {}  # of the suite
    writer: str  # as it was asked for
    writer_name: str = ""
    writer_version: str = ""
    samples: int = 1
    trials: int = 1
    categories: tuple[str, ...] = ()  # empty: all
    levels: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    limits: Limits = Limits()
    judge: str = ""  # digest of npusmith's version and sources
    versions: dict[str, str] = {}
    suites: str = SUITES  # module:function that opens a suite ...
    writers: str = ""  # ... and one that opens a writer; whoever starts a run says which

    @property
    def terms(self) -> dict[str, object]:
        """What records depend on, besides their item and candidate."""
        names = ("suite", "options", "writer_name", "writer_version", "limits", "judge", "trials")
        data = self.model_dump(mode="json")
        return {name: data[name] for name in names}

    def open_suite(self) -> Suite:
        """The suite, with the selection and the limit of inputs among its options.

        Raises usage for an option that the plan has a field of its own for.
        """
        chosen = {
            "categories": ",".join(self.categories),
            "levels": ",".join(self.levels),
            "names": ",".join(self.names),
            "input_mb": f"{self.limits.input_mb:g}",
        }
        for name in sorted(set(chosen) & set(self.options)):
            raise NpusmithError(
                "usage", f"{name} is no option of the suite here: it has one of its own",
                seen=f"{name}={self.options[name]}"[:80],
                legal="--categories, --levels, --tasks, --max-input-mb",
            )  # fmt: skip
        options = self.options | chosen
        suite: Suite = _function(self.suites)(self.suite, self.root, options)
        return suite

    def open_writer(self) -> Writer:
        """The writer that the run asks."""
        writer: Writer = _function(self.writers)(self.writer, self.limits.chip)
        return writer


def folder_of(plan: Plan) -> Path:
    """Of a run whose user names none."""
    return Path("out", re.sub(r"[^\w.-]+", "-", f"{plan.suite}-{plan.writer}").strip("-"))


def freeze(plan: Plan) -> Plan:
    """The plan with the versions of everything that its records depend on."""
    writer = plan.open_writer()
    return plan.model_copy(
        update={
            "root": plan.root.resolve(),
            "writer_name": writer.name,
            "writer_version": writer.version,
            "judge": judge_of(plan.limits.chip),
            "versions": versions(),
        }
    )


def judge_of(chip: str) -> str:
    """The judge with what a chip's own file says; chips of the table are part of the sources."""
    if not chip.endswith(".toml"):
        return judge_digest()
    record = json.dumps(find_chip(chip).record(), sort_keys=True)
    return hashlib.sha256(f"{judge_digest()}\0{record}".encode()).hexdigest()


@lru_cache(maxsize=1)
def judge_digest() -> str:
    """Of npusmith's version, and of the files that judge."""
    root = Path(version.__file__).parent
    whole = hashlib.sha256(version.__version__.encode())
    for part in _JUDGE:
        path = root / part
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".gch":
                whole.update(file.relative_to(root).as_posix().encode() + b"\0")
                whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()


def versions() -> dict[str, str]:
    """Of the programs that judge."""
    from importlib import metadata

    found = {"npusmith": version.__version__, "python": platform.python_version()}
    for name in ("torch", "numpy"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "absent"
    return found | {"machine": f"{platform.system()} {platform.machine()}"}


def _function(spec: str) -> Callable[..., Any]:
    module, _, name = spec.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function
