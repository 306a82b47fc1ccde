"""What this machine has, and what each missing piece would unlock.

Looks only: nothing is installed, no torch is imported, no device is opened.
"""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from npusmith.cann.toolkit import ROUTES, find_devices, find_toolkit
from npusmith.cli.exits import Exit
from npusmith.cli.reply import Reply
from npusmith.cli.screen import Screen
from npusmith.errors import NpusmithError
from npusmith.report.text import size
from npusmith.sandbox.folder import folder_bytes
from npusmith.target.chips import CHIPS, DEFAULT_CHIP
from npusmith.version import __version__


@dataclass(frozen=True, slots=True)
class Check:
    """One piece: `found` says what was seen, `unlocks` what it is good for."""

    name: str
    ok: bool
    found: str
    unlocks: str
    needed: bool = False  # by `npusmith generate`


def examine() -> Reply:
    """Every check, in the order in which a newcomer would mend things."""
    from npusmith.sandbox.probe import probe
    from npusmith.twin.cache import cache_root

    cache = cache_root()
    checks = [
        _python(),
        _compiler(),
        _package("torch", "tasks: the reference values and the captured graph", needed=True),
        *_sandbox(probe()),
        _cann(),
        _devices(),
        _package("torch_npu", "running model_new.py on a device", needed=False),
    ]
    ready = all(check.ok for check in checks if check.needed)
    data = {
        "npusmith": __version__,
        "ready": ready,
        "checks": [asdict(check) for check in checks],
        "cache": {"path": str(cache), "bytes": folder_bytes(cache)},
        "chips": list(CHIPS),
        "default_chip": DEFAULT_CHIP,
    }
    code = Exit.PASS if ready else Exit.ENVIRONMENT
    return Reply(code, data, lambda screen: _show(screen, checks, ready, cache))


def _show(screen: Screen, checks: list[Check], ready: bool, cache: Path) -> None:
    screen.line(f"npusmith {__version__}", "bold")
    for check in checks:
        mark, style = ("[x]", "green") if check.ok else ("[!]", "red" if check.needed else "yellow")
        screen.line(f"  {mark} {check.name}: {check.found}", style)
        if not check.ok:
            screen.line(f"      would unlock: {check.unlocks}", "dim")
    screen.line(f"  cache: {cache} ({size(folder_bytes(cache))})")
    screen.line(f"  chips: {', '.join(CHIPS)} (default {DEFAULT_CHIP})")
    word = "can" if ready else "cannot"
    screen.line(f"This machine {word} generate and judge operators on the twin.", "bold")


def _python() -> Check:
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return Check("python", True, found, "npusmith", needed=True)


def _compiler() -> Check:
    from npusmith.twin.toolchain import find_compiler

    unlocks = "the twin: compiling and running kernels on the CPU (install g++ 11 or newer)"
    try:
        compiler = find_compiler()
    except NpusmithError as error:
        return Check("compiler", False, error.message, unlocks, True)
    return Check("compiler", True, f"{compiler.path}: {compiler.version}", unlocks, True)


def _package(name: str, unlocks: str, needed: bool) -> Check:
    try:
        return Check(name, True, metadata.version(name), unlocks, needed)
    except metadata.PackageNotFoundError:
        return Check(name, False, "not installed", unlocks, needed)


def _sandbox(facts: dict[str, bool | str]) -> list[Check]:
    """The box itself is needed; each missing layer is a weaker wall around untrusted code."""
    starts = bool(facts.get("starts"))
    said = "programs start in it" if starts else str(facts.get("error", "programs do not start"))
    layers = {name: held for name, held in facts.items() if isinstance(held, bool)}
    layers.pop("starts", None)
    checks = [Check("sandbox", starts, said, "running task files and kernels at all", True)]
    for name, held in layers.items():
        found = "holds" if held else "this kernel or its settings refuse it"
        checks.append(Check(f"sandbox {name}", held, found, _LAYERS.get(name, "a stronger box")))
    return checks


_LAYERS = {
    "user-namespace": "the other namespaces without being root",
    "network-namespace": "task files and kernels cut off from every network",
    "pid-namespace": "task files and kernels that cannot see or signal other processes",
    "ipc-namespace": "shared memory of their own for task files and kernels",
    "landlock": "task files and kernels that can write only where they should",
    "seccomp": "fewer system calls within reach of task files and kernels",
}


def _cann() -> Check:
    unlocks = "building the generated project with the vendor's compiler: npusmith build"
    try:
        toolkit = find_toolkit()
    except NpusmithError as error:
        return Check("CANN", False, f"{error.message} (not needed for the twin)", unlocks)
    return Check("CANN", bool(toolkit.route), f"{toolkit.home}, {ROUTES[toolkit.route]}", unlocks)


def _devices() -> Check:
    unlocks = (
        "running and measuring on hardware: npusmith device; until then figures are the twin's"
    )
    nodes = find_devices()
    found = ", ".join(nodes) if nodes else "no NPU device node"
    return Check("NPU device", bool(nodes), found, unlocks)
