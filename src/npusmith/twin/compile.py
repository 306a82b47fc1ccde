"""`build(project, chip, dtypes) -> Build`: compile a project's host and kernel side, in parallel.

Both compiles run in the sandbox: they read the project, the system and what is ours (not the
references that the project will be judged by), and write into the build folder only. A
build is kept in the cache under the contents of everything that went into it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import shlex
import shutil
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import Place, TwinError
from npusmith.ir.dtypes import DType
from npusmith.sandbox.box import Policy, run_boxed
from npusmith.target.chips import Chip
from npusmith.twin import (
    accept,
    cache,
    diagnose,
    dialect,
    forbid,
    imports,
    launchsyntax,
    rewritten_files,
    scan,
    wrapper,
)
from npusmith.twin.headers import NONE, Headers, find_repository
from npusmith.twin.kind import VECTOR, Kind, Kinds, read_kinds
from npusmith.twin.project import Project, beside, read_text, read_texts
from npusmith.twin.rewritten_files import Copies
from npusmith.twin.toolchain import INCLUDE, LIBRARY, Toolchain, find_toolchain

_SECONDS = 240.0  # for the slower of the two compiles
_MEMORY = 6 << 30
_KEPT_BUILDS = 200
_LOG_BYTES = 1 << 20  # read of what one compiler said; a macro can make it say gigabytes


@dataclass(frozen=True, slots=True)
class Build:
    """A compiled project: two shared objects for the runner."""

    project: Project
    chip: Chip
    dtypes: tuple[DType, ...]
    toolchain: Toolchain
    folder: Path
    seconds: float
    cached: bool  # nothing had to be compiled
    kinds: Kinds = VECTOR

    @property
    def kernel(self) -> Path:
        """As vector cores run it; not there for a kernel of cube cores only."""
        return self.folder / "kernel.so"

    @property
    def cube(self) -> Path:
        """As cube cores run it; not there for a kernel of vector cores only."""
        return self.folder / "cube.so"

    @property
    def host(self) -> Path:
        return self.folder / "host.so"


@dataclass(frozen=True, slots=True)
class Unit:
    """One shared object to compile: sources in, `<name>.so`, `<name>.log` and `<name>.d` out."""

    name: str
    command: tuple[str, ...]

    def script(self, folder: Path) -> str:
        """Shell text that leaves the exit status in <name>.status."""
        log, status = folder / f"{self.name}.log", folder / f"{self.name}.status"
        line = " ".join(map(shlex.quote, self.command))
        return f"({line} >{shlex.quote(str(log))} 2>&1; echo $? >{shlex.quote(str(status))})"

    def preprocessed(self) -> Unit:
        """The same source through the preprocessor alone, into `<name>_text.i`."""
        words = list(self.command)
        out = words.index("-o")
        name = f"{self.name}_text"
        words[out + 1] = str(Path(words[out + 1]).with_name(f"{name}.i"))
        words = [word for word in words[: out + 2] if word != "-MD"]
        if "-MF" in words:
            at = words.index("-MF")
            del words[at : at + 2]
        return Unit(name, (*words, "-E", "-fpch-preprocess"))


def build(project: Project, chip: Chip, dtypes: Sequence[DType]) -> Build:
    """Compile a project for the types of its inputs and outputs, in OpDef order.

    Raises TwinError: compile-failed (a CompileError with every message), tiling-mismatch,
    dtypes-mismatch, compiler-missing.
    """
    start = time.monotonic()
    chain = find_toolchain(chip, debug=project.debug)
    text = wrapper.kernel_unit(project, tuple(dtypes))
    texts = [f"{path}\0{body}" for path, body in sorted(project.texts.items())]
    kinds = read_kinds(project.texts, project.kernel)
    names = (project.host_headers.forwards, project.kernel_headers.forwards)
    forwards = repr((*names, project.folders, project.host_flags, project.elsewhere, project.debug))
    key = cache.digest([chain.folder.name, _rules(), repr(kinds), text, forwards, *texts])
    folder = cache.cache_root() / "build" / key
    if folder.exists() and not _extras_same(folder):
        (folder / "complete").unlink(missing_ok=True)
    made = cache.fetch(folder, lambda folder: _compile(project, chain, kinds, text, folder))
    if made:
        cache.keep_newest(folder.parent, _KEPT_BUILDS, folder)
    seconds = time.monotonic() - start
    return Build(project, chip, tuple(dtypes), chain, folder, seconds, not made, kinds)


@functools.cache
def _rules() -> bytes:
    """What is refused and rewritten: a build that was kept passed the rules of its day."""
    modules = (accept, rewritten_files, dialect, forbid, imports, launchsyntax)
    return b"".join(Path(str(module.__file__)).read_bytes() for module in modules)


def _compile(project: Project, chain: Toolchain, kinds: Kinds, text: str, folder: Path) -> None:
    tree = Copies.of(folder / "kernel_tree", project.kernel_texts)
    search = project.kernel_headers.write(folder / "kernel_headers", tree.place)
    near = [*tree.folders([project.kernel.parent, *project.folders]), search]
    units = _kernel_units(chain, kinds, text, folder, near)
    hosts = _host_folder(project, chain)
    known = _take_host(hosts, folder)
    if not known:
        command = [*chain.host_command(), *project.host_flags]
        link = chain.link_flags()
        search = project.host_headers.write(folder / "host_headers")
        places = [*project.folders, search]
        units.append(_unit("host", chain, command, list(project.hosts), folder, places, link))
    read = (project.root, *project.outside, *chain.places)
    dialect.check(project.kernel_texts, find_repository(project.root))
    compile_units([*units, *_texts(units)], folder, project.root, read, project.computed)
    if not known:
        _check_unresolved(project, folder / "host.log")
    for unit in _texts(units):
        dialect.check_preprocessed(
            folder / f"{unit.name}.i", project.root, (str(chain.folder),), str(tree.root)
        )
    if not known:
        _keep_host(project, hosts, folder)
    entries, texts = [wrapper.ENTRY], project.kernel_texts
    shared = forbid.global_variables(texts)
    libraries = (folder / f"{unit}.so" for unit in ("kernel", "cube"))
    wrong = [name for library in libraries for name in _refused(library, shared)]
    device = _Device(chain, kinds, entries, folder, near, read)
    _check_device(device, texts, project.kernel, wrong)
    _note_extras(project, folder)


def _check_unresolved(project: Project, log: Path) -> None:
    """CompileError for functions that the host side lacks and no source for other chips has."""
    text = log.read_text(errors="replace")
    words = frozenset(re.findall(r"\w+", project.elsewhere))
    missing = [
        name for name in diagnose.undefined(text) if not words.intersection(_last_words(name))
    ]
    if missing:
        said = tuple(diagnose.Diagnostic("", 0, f"undefined reference to '{n}'") for n in missing)
        raise diagnose.CompileError(said, text, project.root)


def _last_words(name: str) -> list[str]:
    """`optiling::Do(gert::Context*)` -> Do; of `vtable for a::B` it is B."""
    return re.findall(r"(\w+)(?:\[abi:\w+\])?(?=\(|$)", name)[:1]


# ---- the host side by itself: a loop that repairs a kernel leaves it as it is


def _host_folder(project: Project, chain: Toolchain) -> Path:
    """Where this project's compiled host side is kept: by its sources, wherever those lie."""
    sources = [f"{path}\0{project.texts[path]}" for path in project.hosts]
    forwards = repr((project.host_headers.forwards, project.folders, project.elsewhere))
    key = cache.digest([chain.folder.name, *project.host_flags, forwards, *sources])
    return cache.cache_root() / "host" / key


def _take_host(kept: Path, folder: Path) -> bool:
    """Copy a kept host side that is still what its sources and headers say; False without one."""
    if not (kept / "complete").exists() or not _extras_same(kept):
        return False
    try:
        for file in (kept / "host.so", *kept.glob("*.d")):
            shutil.copyfile(file, folder / file.name)
    except OSError:  # another process is cleaning up
        return False
    return True


def _keep_host(project: Project, kept: Path, folder: Path) -> None:
    def copy(target: Path) -> None:
        for file in (folder / "host.so", *folder.glob("host*.d")):
            shutil.copyfile(file, target / file.name)
        _note_read(target, folder, {str(path) for path in project.hosts})

    (kept / "complete").unlink(missing_ok=True)
    cache.fetch(kept, copy)
    cache.keep_newest(kept.parent, _KEPT_BUILDS, kept)


def _kernel_units(
    chain: Toolchain,
    kinds: Kinds,
    text: str,
    folder: Path,
    quotes: Sequence[Path],
    *,
    host: bool = False,
    others: Sequence[str] = (),
) -> list[Unit]:
    """The kernel's text, once for each kind of core that it runs on.

    `others`: texts that are compiled by themselves and linked with it.

    `host`: host code is in it too; where both kinds of cores run it, every function is visible, so
    that a launch finds its kernel in the other library by name.
    """
    sources = [folder / "kernel.cpp", *(folder / f"part{at}.cpp" for at in range(len(others)))]
    for source, written in zip(sources, (text, *others), strict=True):
        source.write_text(written)
    wanted = [("kernel", chain.kernel_command())] if kinds.vector else []
    wanted += [("cube", chain.cube_command())] if kinds.cube else []
    if not host:  # <iostream> has an object that is constructed when the library is loaded
        wanted = [(name, [*command, "-D_GLIBCXX_IOSTREAM"]) for name, command in wanted]
    if host and kinds.cube:
        wanted = [(name, _visible(name, command, folder)) for name, command in wanted]
    link = chain.kernel_link_flags(sealed=not host)
    return [_unit(name, chain, line, sources, folder, quotes, link) for name, line in wanted]


def _texts(units: Sequence[Unit]) -> list[Unit]:
    """What the preprocessor makes of each kernel unit, for dialect.py; g++ can do it in passing."""
    kernels = [unit for unit in units if unit.name in ("kernel", "cube")]
    return [unit.preprocessed() for unit in kernels if "-include" in unit.command]


def _visible(name: str, command: list[str], folder: Path) -> list[str]:
    """The command with all names visible: not with the precompiled header, whose names are not."""
    new = [*command, "-fvisibility=default"]
    if "-include" in new:
        header = new.index("-include") + 1
        plain = folder / f"{name}_plain.h"
        shutil.copyfile(new[header], plain)
        new[header] = str(plain)
    return new


@dataclass(frozen=True, slots=True)
class _Device:
    """The device side of a project, as it is compiled once more to see its calls.

    quotes: folders of its own headers. read: what the compiler may read besides.
    """

    chain: Toolchain
    kinds: Kinds
    entries: Sequence[str]
    folder: Path
    quotes: Sequence[Path]
    read: Sequence[Path]


def _check_device(
    device: _Device, texts: Mapping[Path, str], kernel: Path, wrong: Sequence[str] = ()
) -> None:
    """Look for C++ that AI cores do not have; the precise look costs a second compile.

    `wrong`: what the kernel's library asks for and may not have.
    """
    forbid.check_text(texts)
    if not device.chain.compiler.clang and (wrong or forbid.suspicious(texts)):
        _check_calls(device)
    if wrong:
        said = "device code uses what AI cores do not have"
        raise TwinError("device-cpp", said, Place(str(kernel)), seen=", ".join(wrong[:4]))


def _check_calls(device: _Device) -> None:
    """TwinError device-cpp with the line of a call that the device does not have.

    g++ fails on its own call graph of what a precompiled header defines: it gets the plain one.
    """
    chain, folder = device.chain, device.folder
    command = chain.kernel_command() if device.kinds.vector else chain.cube_command()
    header = command.index("-include") + 1
    plain = folder / "plain.h"
    shutil.copyfile(command[header], plain)
    command[header] = str(plain)
    source, out = str(folder / "kernel.cpp"), str(folder / "graph.o")
    # An unused `new` counts as well, and a recursion that could be a loop; a function that is
    # called once keeps its name.
    keep = ("-fno-allocation-dce", "-fno-inline-functions-called-once")
    graph = ("-fcallgraph-info", "-fno-optimize-sibling-calls", *keep)
    flags = (*graph, *(f"-I{place}" for place in device.quotes), "-c", source, "-o", out)
    unit = Unit("graph", (*command, *flags))
    compile_units([unit], folder, device.quotes[0], device.read)
    forbid.check_graph(folder / "graph.ci", device.entries)


def _refused(library: Path, shared: Collection[str]) -> tuple[str, ...]:
    return imports.refused(library, shared) if library.exists() else ()


def _unit(
    name: str,
    chain: Toolchain,
    command: Sequence[str],
    sources: Sequence[Path],
    folder: Path,
    quotes: Sequence[Path],
    link: Sequence[str],
) -> Unit:
    # Headers of libraries that the twin has come last: the project's own of that name counts.
    where = [f"-iquote{path}" for path in quotes] + [f"-I{path}" for path in (*quotes, LIBRARY)]
    # Several sources share one command: then the compiler names a .d for each, in this folder.
    deps = ["-MD", *(["-MF", str(folder / f"{name}.d")] if len(sources) == 1 else [])]
    files = [str(source) for source in sources]
    out = ["-o", str(folder / f"{name}.so")]
    limit = ["-fdiagnostics-color=never"]
    limit += ["-ferror-limit=30"] if chain.compiler.clang else ["-fmax-errors=30"]
    return Unit(name, (*command, *limit, *where, *deps, *files, *out, *link))


def compile_file(
    path: Path,
    text: str,
    chain: Toolchain,
    kinds: Kinds,
    folder: Path,
    *,
    host: bool = False,
    headers: Headers = NONE,
    others: Mapping[Path, str] | None = None,
) -> None:
    """Compile one wrapped source file by itself into `folder`: kernel.so, cube.so or both.

    `host`: it holds host code, too, which is always in kernel.so. `headers`: of all sources.
    `others`: sources that are linked with it, wrapped as well.
    """
    others = others or {}
    if host and not kinds.vector:
        kinds = Kinds(Kind.MIX_AIC_1_1, kinds.by_key)
    near = (file for source in (path, *others) for file in beside(source))
    read = (*near, *headers.files, *chain.places)
    tree = Copies.of(folder / "tree", read_texts(headers.files), launches=True)
    search = headers.write(folder / "headers", tree.place)
    quotes = (*tree.folders([path.parent, *headers.folders]), search, folder)
    units = _kernel_units(
        chain, kinds, text, folder, quotes, host=host, others=tuple(others.values())
    )
    compile_units(units, folder, path.parent, read)
    for source, unit in ((path, text), *others.items()):
        entries = [entry.name for entry in scan.find_entries(scan.blank(unit))]
        device = _Device(chain, kinds, entries, folder, quotes, read)
        _check_device(device, {source: read_text(source)}, source)


def compile_units(
    units: Sequence[Unit],
    folder: Path,
    root: Path,
    read: Sequence[Path],
    computed: Sequence[Place] = (),
) -> None:
    """Run the compiles side by side in one sandbox; CompileError with the errors of all of them.

    `read`: what the compiler may read besides the system's own. A source can include any file that
    it names, and the message shows the file's lines. `computed`: include folders that only CMake
    knows.
    """
    policy = Policy(
        write=(folder,), read=tuple(read), seconds=_SECONDS, memory_bytes=_MEMORY, processes=True
    )
    script = " & ".join(unit.script(folder) for unit in units) + " & wait"
    boxed = run_boxed(["/bin/sh", "-c", script], policy, cwd=folder)
    logs, failed = [], False
    for unit in units:
        status = folder / f"{unit.name}.status"
        failed = failed or not status.exists() or status.read_text().strip() != "0"
        log = folder / f"{unit.name}.log"
        logs.append(_head(log) if log.exists() else "")
    if boxed.timed_out:
        said = f"the project did not compile within {_SECONDS:g} s"
        raise TwinError("compile-timeout", said, Place(str(root)))
    if failed:
        text = "".join(logs) + boxed.stderr.decode(errors="replace")
        errors = diagnose.read_log(text, diagnose.in_project(root))
        raise diagnose.CompileError(diagnose.explain_headers(errors, computed), text, root)


def _head(log: Path) -> str:
    """The beginning of a log: the first errors are the ones that count."""
    with log.open("rb") as file:
        text = file.read(_LOG_BYTES).decode(errors="replace")
        return text + ("\n... the rest is left out ...\n" if file.read(1) else "")


# ---- files that a build read besides the project's own sources


def _note_extras(project: Project, folder: Path) -> None:
    _note_read(folder, folder, {str(path) for path in project.texts})


def _note_read(target: Path, folder: Path, known: set[str]) -> None:
    """Leave in `target` a hash of each file that the compile read, save `known` and our own."""
    extras: dict[str, str] = {}
    for deps in target.glob("*.d"):
        for word in _dependencies(deps.read_bytes().decode(errors="surrogateescape")):
            path = Path(word)
            ours = path.is_relative_to(INCLUDE) or path.is_relative_to(folder.parent.parent)
            if word in known or ours or word.startswith(("/usr/", "/lib")):
                continue
            extras[word] = _hash(path)
    (target / "extras.json").write_text(json.dumps(extras))


def _dependencies(text: str) -> list[str]:
    """The file names of a make rule, without make's own escapes."""
    words = re.findall(r"(?:\\.|[^\s\\])+", text.replace("\\\n", " "))
    return [re.sub(r"\\([\s#:])", r"\1", word).replace("$$", "$") for word in words[1:]]


def _extras_same(folder: Path) -> bool:
    note = folder / "extras.json"
    if not note.exists():
        return True  # not complete: whoever holds the lock decides
    return all(_hash(Path(path)) == seen for path, seen in json.loads(note.read_text()).items())


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
