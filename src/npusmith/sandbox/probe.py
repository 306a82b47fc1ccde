"""Which layers of the sandbox work on this machine; `npusmith doctor` shows it."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

from npusmith.errors import SandboxError
from npusmith.sandbox import landlock
from npusmith.sandbox.box import Policy, run_boxed
from npusmith.sandbox.folder import temporary_folder

LAYERS = (
    "user-namespace",
    "mount-namespace",
    "private-proc",
    "network-namespace",
    "pid-namespace",
    "ipc-namespace",
    "landlock",
    "seccomp",
)


def probe() -> dict[str, bool | str]:
    """Start an empty program in the box and say what held: a row per layer, and the versions."""
    facts: dict[str, bool | str] = {"kernel": platform.release(), "machine": platform.machine()}
    with temporary_folder("npusmith-probe-") as folder:
        policy = Policy(write=(Path(folder),), seconds=10)
        try:
            boxed = run_boxed([sys.executable, "-I", "-S", "-c", ""], policy, cwd=Path(folder))
        except SandboxError as error:
            return {**facts, "starts": False, "error": error.message}
    facts["starts"] = boxed.ok
    facts |= {layer: layer not in boxed.missing for layer in LAYERS}
    facts["landlock-version"] = str(landlock.abi())
    return facts
