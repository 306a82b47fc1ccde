"""Direct-launch sources: compile one, and call its launcher function or its main on the twin.

A launcher is host code of the same file, `void f(uint32_t blocks, void *stream, tensors..., ...)`,
with a `kernel<<<blocks, ub, stream>>>(...)` in it. A program has a main function that allocates,
copies and launches through acl.h, and checks itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import Place, TwinError
from npusmith.sandbox.folder import files_beneath
from npusmith.target.chips import Chip
from npusmith.twin import (
    cache,
    cmake_target,
    compile,
    conditions,
    launchsyntax,
    scan,
    wrapper,
)
from npusmith.twin.headers import headers_of
from npusmith.twin.kind import Kinds, entry_kinds, file_kinds
from npusmith.twin.launch import LaunchOptions, Run, call
from npusmith.twin.options import PLAIN, BuildOptions
from npusmith.twin.orders import Array, Orders, Output
from npusmith.twin.project import read_text
from npusmith.twin.toolchain import Toolchain, find_toolchain

_OPTIONS = LaunchOptions()
_WORKSPACE = 64 << 20  # bytes for a launcher's scratch pointer
_WHOLE = re.compile(r"-?\d{1,18}")
_POINTER = re.compile(r"\*|\bGM_ADDR\b")
_NUMBER = re.compile(r"(?:const\s+)?(?:(?:std::)?u?int(?:32|64)_t|int|unsigned|size_t)\s+\w+$")


@dataclass(frozen=True, slots=True)
class DirectBuild:
    """A compiled direct-launch source with a way in to one launcher."""

    source: Path
    launcher: str
    toolchain: Toolchain
    folder: Path
    text: str  # of the source and of those that are linked with it, without what macros leave out
    kinds: Kinds


def build_direct(path: Path, chip: Chip, launcher: str = "") -> DirectBuild:
    """Compile a direct-launch source; `launcher` may be left out when there is one `..._do`.

    Nothing is kept in the cache when it fails: CompileError, TwinError launcher-missing.
    """
    path = path.resolve()
    text = read_text(path)
    name = launcher or _find_launcher(path, text)
    return _build(path, name, wrapper.direct_unit(path, text, name), chip)


def run_direct(
    build: DirectBuild,
    blocks: int,
    inputs: Sequence[Array],
    outputs: Sequence[Output],
    rest: Sequence[int | bytes] = (),
    options: LaunchOptions = _OPTIONS,
) -> Run:
    """Call the launcher: inputs, outputs, then `rest`: workspace of so many bytes, or a value.

    Where there is a log, each launched kernel has one.
    """

    def fill(orders: Orders) -> None:
        _say_kernels(orders, build)
        orders.lines.append(options.watch.line(build.source.parent))
        orders.lines.append(f"direct {blocks}")
        for port, array in enumerate(inputs):
            orders.input(port, array)
        for port, output in enumerate(outputs):
            orders.output(port, output)
        for item in rest:
            orders.lines.append(_tail(item))

    return call(build.toolchain, build.folder, fill, options)


def build_program(path: Path, chip: Chip, options: BuildOptions = PLAIN) -> DirectBuild:
    """Compile a source with a main function: CompileError, TwinError program-missing.

    The macros of `options` are variables of the CMakeLists.txt beside the source; what that one
    defines counts, too. Raises TwinError build-option.
    """
    options.check()
    path = path.resolve()
    text = read_text(path)
    if not has_main(text):
        raise TwinError("program-missing", f"{path.name} has no main function", Place(str(path)))
    pairs = [item.partition("=") for item in options.define]
    variables = {name: value if sign else "1" for name, sign, value in pairs}

    def flags_of(source: Path) -> cmake_target.Flags:
        return cmake_target.read_flags(source, variables, chip.name, path.parent)

    def macros_of(source: Path) -> tuple[str, ...]:
        defined = (*flags_of(source).definitions, *options.define)
        return tuple({item.partition("=")[0]: item for item in defined}.values())

    flags, macros = flags_of(path), macros_of(path)
    unit = wrapper.program_unit(path, text, macros)
    sources = [file for file in flags.sources if file.is_relative_to(path.parent)]
    sources += _launched(path, launchsyntax.launch_headers(text), sources)
    others = {
        file: wrapper.part_unit(file, read_text(file), macros_of(file))
        for file in sources
        if not has_main(read_text(file))
    }
    near = [item for item in flags.includes if item.is_relative_to(path.parent.parent)]
    includes = (*(item.resolve() for item in options.include), *near)
    numbers = _numbers(macros)
    return _build(path, "main", unit, chip, includes, others, numbers, debug=options.debug)


def _launched(path: Path, kernels: Sequence[str], sources: Sequence[Path]) -> list[Path]:
    """The sources below the program's folder that define kernels which no other source does."""
    missing = set(kernels) - {name for file in sources for name in _entries(file)}
    found = []
    for file in files_beneath(path.parent) if missing else ():
        if file.suffix in (".cpp", ".cc", ".asc") and file.is_file() and file != path:
            new = missing.intersection(_entries(file))
            found += [file] if new else []
            missing -= new
    return found


def _entries(file: Path) -> dict[str, scan.Entry]:
    entries = scan.find_entries(scan.blank(read_text(file)))
    return {entry.name: entry for entry in entries if entry.defined and not entry.template}


def _launch_headers(sources: Iterable[Path]) -> dict[str, str]:
    """The headers of launch functions that these sources include, for kernels that they define."""
    sources = list(sources)
    wanted = {name for file in sources for name in launchsyntax.launch_headers(read_text(file))}
    known = {name: entry for file in sources for name, entry in _entries(file).items()}
    return {f"aclrtlaunch_{name}.h": _declared(known[name]) for name in sorted(wanted & set(known))}


def _declared(entry: scan.Entry) -> str:
    return f'#pragma once\nextern "C" void {entry.name}({", ".join(entry.params)});\n'


def _numbers(definitions: Iterable[str]) -> dict[str, int]:
    """The macros of `NAME` and `NAME=VALUE` that are whole numbers."""
    pairs = (item.partition("=") for item in definitions)
    values = ((name, value if sign else "1") for name, sign, value in pairs)
    return {name: int(value) for name, value in values if _WHOLE.fullmatch(value)}


def run_program(
    build: DirectBuild,
    arguments: Sequence[str] = (),
    options: LaunchOptions = _OPTIONS,
    *,
    work: Path | None = None,
) -> Run:
    """Call main with these arguments; its launches are checked, its status must be 0.

    `work`: its working directory, which it may change; else an empty one.
    """

    def fill(orders: Orders) -> None:
        _say_kernels(orders, build)
        orders.lines.append(options.watch.line(build.source.parent))
        orders.lines.append("program")
        for argument in arguments:
            orders.say("argument", argument)

    return call(build.toolchain, build.folder, fill, options, work)


def has_main(text: str) -> bool:
    """Does this source define a main function?"""
    return (
        re.search(r"\bint(?:32_t)?\s+main\s*\([^;{}]{0,200}\)\s*\{", scan.blank(text)) is not None
    )


def pointers_of(build: DirectBuild) -> int:
    """How many pointers the launcher takes behind blocks and stream."""
    return sum(_POINTER.search(param) is not None for param in _parameters(build)[2:])


def tail_of(build: DirectBuild, tensors: int, elements: int) -> list[int | bytes]:
    """What to pass behind the tensors of a launcher that a task calls.

    Pointers are workspace; one number is the element count of the first output. TwinError
    launcher-arguments for anything else: only the author knows what to pass then.
    """
    params = _parameters(build)[2:]
    rest: list[int | bytes] = []
    counts = 0
    for param in params[tensors:]:
        if _POINTER.search(param):
            rest.append(_WORKSPACE)
        elif _NUMBER.match(param):
            rest.append(elements.to_bytes(8, "little", signed=True))
            counts += 1
        else:
            counts = 2
    if len(params) < tensors or counts > 1:
        raise TwinError(
            "launcher-arguments",
            f"{build.launcher} takes other arguments than a task has",
            Place(str(build.source)),
            seen=", ".join(params),
        )
    return rest


def _parameters(build: DirectBuild) -> tuple[str, ...]:
    code = scan.blank(read_text(build.source))
    found = re.search(rf"\bvoid\s+{re.escape(build.launcher)}\s*\(", code)
    end = scan.closing(code, found.end() - 1, 1 << 14) if found else -1
    return scan.split_args(code[found.end() : end]) if found and end > 0 else ()


def _build(
    path: Path,
    name: str,
    unit: str,
    chip: Chip,
    includes: tuple[Path, ...] = (),
    others: Mapping[Path, str] | None = None,
    numbers: Mapping[str, int] | None = None,
    *,
    debug: bool = False,
) -> DirectBuild:
    """`others`: sources that are linked with it, each with its unit; `numbers`: macros."""
    chain = find_toolchain(chip, debug=debug)
    others = others or {}
    headers = headers_of(path, others, includes)
    texts = [file.read_bytes() for file in headers.files]
    words = [chain.folder.name, repr((debug, headers)), unit, *others.values()]
    key = cache.digest([*words, *texts])
    folder = cache.cache_root() / "build" / key
    codes = (scan.blank(read_text(source), strings=False) for source in (path, *others))
    text = "\n".join(conditions.active(code, numbers) for code in codes)
    kinds = file_kinds(path, text, headers.files)

    made = _launch_headers((path, *others))

    def make(folder: Path) -> None:
        for header, declared in made.items():
            (folder / header).write_text(declared)
        compile.compile_file(
            path, unit, chain, kinds, folder, host=True, headers=headers, others=others
        )

    cache.fetch(folder, make)
    return DirectBuild(path, name, chain, folder, text, kinds)


def _say_kernels(orders: Orders, build: DirectBuild) -> None:
    """The libraries of a source, and on which cores its kernels run."""
    orders.say("kernel", str(build.folder / "kernel.so"))
    kinds = build.kinds
    if not kinds.cube:
        return
    orders.say("cube", str(build.folder / "cube.so"))
    orders.lines.append(f"type {int(kinds.default)}")
    for name, kind in entry_kinds(build.text).items():
        orders.say("entrytype", name, int(kind))


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
