"""Direct-launch sources: compile one, and call its launcher function on the twin.

A launcher is host code of the same file, `void f(uint32_t blocks, void *stream, tensors..., ...)`,
with a `kernel<<<blocks, ub, stream>>>(...)` in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import Place, TwinError
from npusmith.target.chips import Chip
from npusmith.twin import cache, compile, scan, wrapper
from npusmith.twin.launch import Run, call
from npusmith.twin.orders import Array, Orders, Output
from npusmith.twin.project import read_text
from npusmith.twin.toolchain import Toolchain, find_toolchain


@dataclass(frozen=True, slots=True)
class DirectBuild:
    """A compiled direct-launch source with a way in to one launcher."""

    source: Path
    launcher: str
    toolchain: Toolchain
    folder: Path


def build_direct(path: Path, chip: Chip, launcher: str = "") -> DirectBuild:
    """Compile a direct-launch source; `launcher` may be left out when there is one `..._do`.

    Nothing is kept in the cache when it fails: CompileError, TwinError launcher-missing.
    """
    path = path.resolve()
    text = read_text(path)
    name = launcher or _find_launcher(path, text)
    chain = find_toolchain(chip)
    unit = wrapper.direct_unit(path, text, name)
    beside = [file.read_bytes() for file in sorted(path.parent.parent.rglob("*.[ch]*"))]
    key = cache.digest([chain.folder.name, unit, *beside])
    folder = cache.cache_root() / "build" / key
    cache.fetch(folder, lambda folder: _compile(path, unit, chain, folder))
    return DirectBuild(path, name, chain, folder)


def run_direct(
    build: DirectBuild,
    blocks: int,
    inputs: Sequence[Array],
    outputs: Sequence[Output],
    rest: Sequence[int | bytes] = (),
    *,
    seconds: float = 60,
) -> Run:
    """Call the launcher: inputs, outputs, then `rest`: workspace of so many bytes, or a value."""

    def fill(orders: Orders) -> None:
        orders.say("kernel", str(build.folder / "kernel.so"))
        orders.lines.append(f"direct {blocks}")
        for port, array in enumerate(inputs):
            orders.input(port, array)
        for port, output in enumerate(outputs):
            orders.output(port, output)
        for item in rest:
            orders.lines.append(_tail(item))

    return call(build.toolchain, build.folder, fill, seconds)


def _compile(path: Path, unit: str, chain: Toolchain, folder: Path) -> None:
    compile.compile_file(path, unit, chain, folder)


def _find_launcher(path: Path, text: str) -> str:
    code = scan.blank(text)
    found = sorted(set(re.findall(r"\bvoid\s+(\w+_do)\s*\(", code)))
    if len(found) != 1:
        raise TwinError(
            "launcher-missing",
            f"{path.name} has {len(found)} launcher functions",
            Place(str(path)),
            seen=", ".join(found),
        )
    return str(found[0])


def _tail(item: int | bytes) -> str:
    return f"tail workspace {item}" if isinstance(item, int) else f"tail value x{item.hex()}"
