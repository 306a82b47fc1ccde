"""The suites that a benchmark runs: `open_suite(name, root, options)` reads a user's checkout."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from npusmith.bench.model import Suite
from npusmith.bench.suites.options import SuiteOptions
from npusmith.errors import NpusmithError
from npusmith.lang.words import mean

_CLASSES = {
    "multikernelbench": ("multikernelbench", "MultiKernelBench"),
    "multikernelbench-examples": ("examples", "Examples"),
    "npukernelbench": ("npukernelbench", "NpuKernelBench"),
    "kernelbench": ("kernelbench", "KernelBench"),
    "cann-bench": ("cannbench", "CannBench"),
    "folder": ("folder", "Folder"),
}
NAMES = tuple(_CLASSES)

__all__ = ["NAMES", "SuiteOptions", "open_suite"]


def open_suite(
    name: str, root: Path, options: SuiteOptions | Mapping[str, str] | None = None
) -> Suite:
    """The suite of that name in the checkout at `root`.

    Raises NpusmithError: `usage` for a name or an option that there is not, `file-missing` for a
    folder that is no checkout of it, with what was seen there.
    """
    if name not in _CLASSES:
        raise NpusmithError(
            "usage", f"no suite is called {name}", seen=name[:80], legal=", ".join(NAMES),
            hint=mean(name, NAMES),
        )  # fmt: skip
    # each suite imports what it needs of PyTorch; the list of names should not
    file, kind = _CLASSES[name]
    module = importlib.import_module(f"npusmith.bench.suites.{file}")
    return cast(Suite, getattr(module, kind)(Path(root), read_options(options)))


def read_options(options: SuiteOptions | Mapping[str, str] | None) -> SuiteOptions:
    """Options as a command line gives them."""
    if isinstance(options, SuiteOptions):
        return options
    try:
        return SuiteOptions.model_validate(dict(options or {}))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise NpusmithError(
            "usage", f"suite option {where}: {first['msg']}", seen=str(first["input"])[:80],
            legal=", ".join(SuiteOptions.model_fields),
        ) from error  # fmt: skip
