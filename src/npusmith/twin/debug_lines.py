"""From offsets in a compiled kernel to the user's functions and lines: `places(library, offsets)`.

The debug line table says it, functions that were inlined included (binutils' addr2line).
"""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from npusmith.sandbox.box import Policy, run_boxed
from npusmith.sandbox.folder import temporary_folder
from npusmith.twin.toolchain import INCLUDE

_SECONDS = 30.0
_MEMORY = 2 << 30
_ADDRESS = re.compile(r"^0x([0-9a-f]+)$")
_LINE = re.compile(r"^(.*):(\d+)(?: \(discriminator \d+\))?$")
_MARK = "<__sanitizer_cov_trace_pc"
_CODE = re.compile(r"^\s*([0-9a-f]+):\s")
_OURS = ("npusmith ", "/usr/", str(INCLUDE))


@dataclass(frozen=True, slots=True, order=True)
class Spot:
    """A line of the user's, and the function that it stands in."""

    file: str
    line: int
    function: str = ""


def places(library: Path, offsets: Iterable[int]) -> dict[int, tuple[Spot, ...]]:
    """The user's places of each offset, innermost first; none where the tool is missing."""
    wanted = sorted(set(offsets))
    if not wanted or shutil.which("addr2line") is None:
        return {}
    command = ("addr2line", "-i", "-f", "-C", "-a", "-e", str(library))
    return dict(_read(_run(command, library, "\n".join(map(hex, wanted)))))


def block_offsets(library: Path) -> list[int]:
    """Where blocks of code begin: each calls the runtime first, and is known by what follows."""
    if shutil.which("objdump") is None:
        return []
    lines = _run(("objdump", "-d", "--no-show-raw-insn", str(library)), library)
    follows = (
        _CODE.match(after)
        for before, after in itertools.pairwise(lines)
        if _MARK in before and "@plt>:" not in before
    )
    return [int(match.group(1), 16) for match in follows if match]


def _run(command: Sequence[str], library: Path, stdin: str = "") -> list[str]:
    """The lines that a tool says about a library that nobody trusts."""
    with temporary_folder("npusmith-places-") as folder:
        out = folder / "said"
        policy = Policy(
            write=(out.parent,),
            read=(library.parent,),
            seconds=_SECONDS,
            memory_bytes=_MEMORY,
            processes=True,
        )
        script = f"{shlex.join(command)} >{shlex.quote(str(out))}"
        run_boxed(["/bin/sh", "-c", script], policy, stdin=stdin.encode(), cwd=out.parent)
        return out.read_text(errors="replace").splitlines() if out.exists() else []


def _read(lines: Sequence[str]) -> Iterator[tuple[int, tuple[Spot, ...]]]:
    offset, spots, function = -1, list[Spot](), ""
    for text in lines:
        if address := _ADDRESS.match(text):
            if offset >= 0:
                yield offset, tuple(spots)
            offset, spots, function = int(address.group(1), 16), [], ""
        elif not function:
            function = text
        else:
            spots += _spot(text, function)
            function = ""
    if offset >= 0:
        yield offset, tuple(spots)


def _spot(text: str, function: str) -> list[Spot]:
    """The place when it is the user's; inlined names come mangled or plain, without arguments."""
    found = _LINE.match(text)
    if found is None or not _is_users(found.group(1)):
        return []
    return [Spot(found.group(1), int(found.group(2)), _plain(function))]


def _is_users(file: str) -> bool:
    return not Path(file).name.startswith("npusmith ") and not file.startswith(_OURS)


def _plain(function: str) -> str:
    return function.partition("(")[0].removeprefix("twin_kernel_")


def first_places(library: Path, offsets: Iterable[int]) -> Mapping[int, Spot]:
    """The innermost place of the user's for each offset that has one."""
    return {offset: spots[0] for offset, spots in places(library, offsets).items() if spots}
