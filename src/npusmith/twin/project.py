"""An Ascend C operator project on disk, read without compiling it: `read_project(root) -> Project`.

Accepted: the layout of msopgen (op_host/*.cpp, op_kernel/*.cpp, one operator, both tiling styles),
from npusmith or anybody else. docs/project.md says what is read and what is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import Place, TwinError
from npusmith.ir.opname import entry_name
from npusmith.sandbox.folder import files_beneath
from npusmith.twin import opdef, scan, template, tiling
from npusmith.twin.architecture import keep_ours
from npusmith.twin.cmake_project import read_names, read_sources
from npusmith.twin.conditions import active, undefined
from npusmith.twin.finding import Finding
from npusmith.twin.headers import (
    NONE,
    SUFFIXES,
    Headers,
    Trees,
    find_headers,
    find_repository,
    find_source,
)
from npusmith.twin.options import PLAIN, BuildOptions

_SOURCES = (".cpp", ".cc", ".asc", ".h", ".hpp")
_KERNELS = (".cpp", ".cc", ".asc")
_MOST_BYTES = 16 << 20  # of one source file
_KERNEL_FILE = re.compile(r"\bKERNEL_FILE\s+([\w./-]+)")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.M)
_LAUNCH = re.compile(r"\b(?:aclrtlaunch_\w+|ACLRT_LAUNCH_KERNEL)\s*\(")
_REGISTERS = re.compile(r"\b(?:OP_ADD|IMPL_OP\w*)\s*\(")
_MOST_HEADERS = 200
_MOST_SIBLINGS = 6  # steps from an operator to those whose host sources it shares
_API_FOLDERS = ("op_api", "op_graph", "framework")  # hand-written aclnn and plugin code
_OTHER_FOLDERS = (*_API_FOLDERS, "examples", "tests")
_API_INCLUDE = re.compile(
    r'^\s*#\s*include\s*[<"](?:opdev|aclnn|aclnn_kernels|level0|level2|fallback)/', re.M
)


@dataclass(frozen=True, slots=True)
class Project:
    """What the twin needs to know of a project; texts are as they were when it was read."""

    root: Path
    op: opdef.OpText
    kernel: Path  # the file that holds the entry
    entry: scan.Entry
    hosts: tuple[Path, ...]  # host sources to compile
    texts: dict[Path, str]  # every source file of the project
    host_struct: str  # the struct or class that tiling fills; "" when not known
    kernel_struct: str  # the struct that the kernel reads
    structs: dict[str, tiling.Struct]  # of the host side
    kernel_structs: dict[str, tiling.Struct]  # of the kernel side
    kernel_texts: dict[Path, str]  # of `texts`, those of the kernel side
    host_headers: Headers = NONE  # what the library around it gives
    kernel_headers: Headers = NONE
    elsewhere: str = ""  # text of host sources that are left out: for other chips
    folders: tuple[Path, ...] = ()  # of headers, as the user or its CMake names them
    trusted: tuple[Path, ...] = ()  # of these, the user's
    host_defines: tuple[str, ...] = ()  # NAME or NAME=VALUE
    kernel_defines: tuple[str, ...] = ()
    computed: tuple[Place, ...] = ()  # include folders of its CMake that could not be read
    split: bool = False  # its CMake files put host sources into several libraries
    findings: tuple[Finding, ...] = ()  # what the vendor's build would refuse
    debug: bool = False  # compiled for a debugger

    @property
    def outside(self) -> tuple[Path, ...]:
        """What its compile may read outside of the project: no folder that its own files name."""
        shared = tuple(file for file in self.hosts if not file.is_relative_to(self.root))
        return (*shared, *self.trusted, *self.host_headers.files, *self.kernel_headers.files)

    @property
    def host_flags(self) -> tuple[str, ...]:
        """The twin links one library: what two of several define is then no clash, and what sources
        for other chips define is missing until it is called."""
        defines = [f"-D{text}" for text in self.host_defines]
        split = ["-Wl,-z,muldefs"] if self.split else []
        missing = ["-Wl,--warn-unresolved-symbols"] if self.elsewhere else []
        return (*defines, *split, *missing)

    @property
    def name(self) -> str:
        return self.entry.name


def read_project(
    root: Path, *, kernel_only: bool = False, options: BuildOptions = PLAIN
) -> Project:
    """Read a project; raises TwinError project-... for what is missing or ambiguous.

    `options.op`: which operator where `root` holds several: in one project, or in folders at any
    depth. `kernel_only`: an answer of NPUKernelBench's mode of that
    name, whose one kernel source was written without the tiling argument; like there, each
    `GM_ADDR workspace` gets one behind it.
    """
    options.check()
    op = options.op
    read = _Files.of(Path(root).resolve(), op)
    if kernel_only:
        read.kernels = {file: _with_tiling(text) for file, text in read.kernels.items()}
    added = _added(read)
    if op:
        named = [name for name in added if op in (name, entry_name(name))]
        if len(named) != 1:
            raise _no_such_op(read.base, op, sorted(added))
        return _project(_own(read, added, named[0]), named[0], added[named[0]], options)
    if len(added) > 1:
        raise TwinError(
            "project-two-ops",
            f"the host sources register {len(added)} operators",
            Place(str(read.base / "op_host")),
            seen=", ".join(sorted(added)),
        )
    _check_json(read.base, added)
    ((name, file),) = added.items()
    return _project(read, name, file, options)


def read_projects(root: Path, options: BuildOptions = PLAIN) -> dict[str, Project]:
    """The operators of a package by their types, each without the others' sources.

    TwinError project-... as of `read_project`, and build-option.
    """
    options.check()
    read = _Files.of(Path(root).resolve())
    added = _added(read)
    _check_json(read.base, added)
    return {
        name: _project(_own(read, added, name), name, file, options) for name, file in added.items()
    }


def _own(read: _Files, added: Mapping[str, Path], name: str) -> _Files:
    """Without what belongs to the other operators: sources that register them, kernels with their
    entries, and folders of their own (`op_host/<op>/`, `op_kernel/<op>/`)."""
    others = {other: file for other, file in added.items() if other != name}
    files = set(others.values()) - {added[name]}
    folders = {file.parent for file in files} - {read.base / "op_host", added[name].parent}
    taken: set[str] = set()
    for other, file in others.items():
        taken.update(opdef.read_op(read.hosts[file], other).entries)
        folders.add(read.base / "op_kernel" / entry_name(other))
    folders -= set(read.base.glob(f"op_*/{entry_name(name)}"))
    taken -= set(opdef.read_op(read.hosts[added[name]], name).entries)  # two may share a kernel

    def is_foreign_kernel(file: Path, text: str) -> bool:
        found = scan.find_entries(scan.blank(text)) if file.suffix in _KERNELS else []
        return bool(found) and all(entry.name in taken for entry in found)

    def kept(texts: dict[Path, str]) -> Iterator[tuple[Path, str]]:
        return (item for item in texts.items() if not folders & set(item[0].parents))

    return _Files(
        read.root,
        read.base,
        {file: text for file, text in kept(read.hosts) if file not in files},
        {file: text for file, text in kept(read.kernels) if not is_foreign_kernel(file, text)},
    )


def _no_such_op(place: Path, op: str, seen: Sequence[str]) -> TwinError:
    return TwinError(
        "project-no-op",
        f"no operator {op} is registered here",
        Place(str(place)),
        seen=f"{', '.join(seen[:8])}{' ...' if len(seen) > 8 else ''}" if seen else "none",
        legal="the type of an OP_ADD, or its name in snake case",
    )


@dataclass(slots=True)
class _Files:
    """The sources of a project, host and kernel side; `base` holds op_host and op_kernel."""

    root: Path
    base: Path
    hosts: dict[Path, str]
    kernels: dict[Path, str]

    @classmethod
    def of(cls, root: Path, op: str = "") -> _Files:
        if not root.is_dir():
            raise TwinError("project-missing", f"{root} is not a folder", Place(str(root)))
        base = _base(root, op)
        hosts, kernels = (
            read_texts(_files(base / "op_host")),
            read_texts(_files(base / "op_kernel")),
        )
        return cls(base if op else root, base, hosts, kernels)  # no more of a library is read

    def host_sources(self) -> tuple[Path, ...]:
        found = tuple(file for file, text in self.hosts.items() if _is_host(file, text))
        if not found:
            raise _missing("project-no-host", self.base / "op_host", "no host source (*.cpp)")
        return found


def _added(read: _Files) -> dict[str, Path]:
    """The types of operators that the host sources register, and where."""
    sources = read.host_sources()
    codes = {file: scan.blank(text) for file, text in read.hosts.items()}
    added = {name: file for file, code in codes.items() for name in opdef.find_ops(code)}
    if not added:
        raise _missing("project-no-op", sources[0], "no OP_ADD in the host sources")
    return added


def _project(read: _Files, name: str, file: Path, options: BuildOptions) -> Project:
    """That operator, which `file` registers."""
    named = read_names(read.base, find_repository(read.base))
    trusted = tuple(folder.resolve() for folder in options.include)
    folders = (*trusted, *named.folders)
    op = opdef.read_op(read.hosts[file], name)
    kernel, entry = _find_entry(read.base, op, read.kernels)
    trees = Trees()
    kernel_headers = find_headers(read.base, [kernel], trees, (kernel.parent, *folders))
    hosts, host_headers = _with_siblings(read, op, kernel_headers.own, trees, folders)
    # the entry's own file first: it says which of several structs tiling is
    if not op.ports:  # the library declares them by functions of its own
        op = opdef.read_op(read.hosts[file], name, "\n".join(hosts.values()))
    kernels = {kernel: read.kernels[kernel], **read.kernels, **read_texts(kernel_headers.own)}
    host_code = "\n".join(scan.blank(text) for text in hosts.values())
    absent = undefined(map(scan.blank, kernels.values()), (*options.define, *named.kernel))
    kernel_code = "\n".join(active(scan.blank(text), absent) for text in kernels.values())
    default = tiling.default_class(host_code, op.type) or tiling.default_class(kernel_code, op.type)
    host_struct = default or tiling.host_type(host_code)
    return Project(
        read.root,
        op,
        kernel,
        entry,
        tuple(file for file, text in hosts.items() if _is_host(file, text)),
        {**hosts, **kernels},
        host_struct,
        tiling.kernel_type(kernel_code) or host_struct,
        tiling.find_structs(hosts),
        tiling.find_structs(kernels, absent),
        kernels,
        host_headers,
        kernel_headers,
        _elsewhere(hosts),
        folders,
        trusted,
        (*options.define, *named.host),
        (*options.define, *named.kernel),
        named.computed,
        _is_split(read.base),
        _check_names(read.base, op, kernel, entry, read.kernels[kernel]),
        options.debug,
    )


def _with_siblings(
    read: _Files,
    op: opdef.OpText,
    kernel_headers: Sequence[Path],
    trees: Trees,
    folders: Sequence[Path],
) -> tuple[dict[Path, str], Headers]:
    """The texts of the host side, and its headers.

    With the host sources of the other operators of the library whose host headers it includes; or
    whose kernel it does, where no source of its own registers a tiling function. Of a folder that
    operators share, without kernels, with those that include its headers. And with the sources that
    are called like the headers, and those that its CMake files name.
    """
    hosts, joined = dict(read.hosts), {read.base}
    repository = find_repository(read.base)
    named = read_texts(read_sources(read.base, repository))
    hosts |= {file: text for file, text in named.items() if _is_shared(file, text)}
    tiled = _registers_tiling("\n".join(map(scan.blank, hosts.values())), op.type)
    reached = () if tiled else kernel_headers
    for _ in range(_MOST_SIBLINGS):
        sources = [file for file, text in hosts.items() if _is_host(file, text)]
        found = find_headers(read.base, sources, trees, folders)
        near = {_side_parent(file, "op_host") for file in found.own}
        near |= {_side_parent(file, "op_kernel") for file in reached}
        new = {base for base in near if base and (base / "op_host").is_dir()} - joined
        shared = {base for base in new if not (base / "op_kernel").is_dir()}
        joined |= new - shared
        reached = ()
        files = [file for base in sorted(new - shared) for file in _files(base / "op_host")]
        files += _including(shared, {file.name for file in found.own})
        files += filter(None, (find_source(trees[repository], file) for file in found.own))
        texts = read_texts(file for file in files if file not in hosts)
        hosts.update(read_texts(file for file in found.own if file not in hosts))
        more = {file: text for file, text in texts.items() if _is_shared(file, text)}
        if not more:
            break
        hosts.update(more)
    return hosts, found


def _including(shared: Collection[Path], names: Collection[str]) -> list[Path]:
    """The host sources in these folders that include a header of one of these names in quotes."""
    files = [file for base in sorted(shared) for file in _files(base / "op_host")]
    included = (set(map(_last, _INCLUDE.findall(read_text(file)))) for file in files)
    return [file for file, own in zip(files, included, strict=True) if own & set(names)]


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _is_shared(file: Path, text: str) -> bool:
    """A host source that serves other operators than its own."""
    return _is_host(file, text) and not opdef.find_ops(scan.blank(text))


def _elsewhere(hosts: Mapping[Path, str]) -> str:
    """What the sources for other chips say, in the folders of these."""
    folders = {folder for file in hosts for folder in file.parents if folder.name == "op_host"}
    files = (file for folder in sorted(folders) for file in _foreign(folder))
    return "\n".join(read_texts(files).values())


def _foreign(folder: Path) -> Iterator[Path]:
    files = [file for file in files_beneath(folder) if file.suffix in _SOURCES and file.is_file()]
    ours = set(keep_ours(folder, files))
    yield from (file for file in files if file not in ours)


def _registers_tiling(code: str, type_name: str) -> bool:
    return bool(re.search(rf"\bIMPL_OP\w*\s*\(\s*{type_name}\s*\)|\bSetTiling\s*\(", code))


def _side_parent(file: Path, side: str) -> Path | None:
    """The project that a header in a folder op_host or op_kernel belongs to."""
    return next((folder.parent for folder in file.parents if folder.name == side), None)


def _with_tiling(text: str) -> str:
    return text.replace("GM_ADDR workspace", "GM_ADDR workspace, GM_ADDR tiling")


def _is_split(base: Path) -> bool:
    file = base / "CMakeLists.txt"
    return file.is_file() and "target_sources(optiling" in read_text(file)


def read_texts(files: Iterable[Path]) -> dict[Path, str]:
    """The text of each file; TwinError project-unreadable."""
    return {file: read_text(file) for file in files}


def read_text(file: Path) -> str:
    """The text of one source file; TwinError project-unreadable."""
    try:
        str(file).encode()  # the compiler's messages and our records name it
        if not file.is_file():
            raise TwinError(
                "project-unreadable", "a source file is not a plain file", Place(str(file))
            )
        if file.stat().st_size > _MOST_BYTES:
            raise TwinError(
                "project-unreadable",
                "a source file is too large to be one",
                Place(str(file)),
                seen=f"{file.stat().st_size} bytes",
            )
        return file.read_bytes().decode("utf-8", errors="strict").replace("\r\n", "\n")
    except (OSError, UnicodeError) as error:
        name = str(file).encode(errors="backslashreplace").decode()
        raise TwinError(
            "project-unreadable", "a source file cannot be read", Place(name), seen=str(error)
        ) from error


def local_headers(path: Path) -> list[Path]:
    """What a source includes by names in quotes, from its own folder and the one around it."""
    around = path.resolve().parent.parent
    found: dict[Path, None] = {}
    queue = [path]
    while queue and len(found) < _MOST_HEADERS:
        file = queue.pop()
        for name in _INCLUDE.findall(read_text(file)):
            header = (file.parent / name).resolve()
            code = header.suffix in (*_SOURCES, *SUFFIXES)  # nobody's key or password
            if code and header.is_file() and header not in found and header.is_relative_to(around):
                found[header] = None
                queue.append(header)
    return list(found)


def headers_beneath(folder: Path) -> list[Path]:
    """The headers in an include folder, at any depth."""
    found = [item for item in files_beneath(folder) if item.suffix in SUFFIXES]
    return [item for item in found if item.is_file() and not item.is_symlink()][:_MOST_HEADERS]


def beside(path: Path) -> list[Path]:
    """What a compile of a source by itself reads: it, the headers of its folder, local_headers."""
    path = path.resolve()
    near = [item for item in sorted(path.parent.iterdir()) if item.suffix in SUFFIXES]
    own = [item for item in near if item.is_file() and item.resolve().parent == path.parent]
    return [path, *own[:_MOST_HEADERS], *local_headers(path)]


def _base(root: Path, op: str = "") -> Path:
    """The folder that holds op_host and op_kernel: the root, or one below it; with `op` that
    operator's, at any depth."""
    depths = ("op_kernel", "*/op_kernel", "*/*/op_kernel")
    for pattern in depths:
        found = sorted(path.parent for path in root.glob(pattern) if path.is_dir())
        if len(found) == 1 and (not op or pattern == "op_kernel"):
            return found[0]
        if found and not op:
            raise TwinError(
                "project-two-ops",
                f"{root} holds {len(found)} projects",
                Place(str(root)),
                seen=", ".join(str(path.relative_to(root)) for path in found[:4]),
            )
    if op:
        return _base_of(root, op)
    raise _missing("project-no-kernel", root, "no folder op_kernel")


def _base_of(root: Path, op: str) -> Path:
    """The one project below root that registers this operator."""
    bases = sorted(path.parent for path in root.rglob("op_kernel") if path.is_dir())
    bases = [base for base in bases if not {"tests", "examples"} & set(base.parts)]
    near = [base for base in bases if base.name == entry_name(op)] or bases
    found = [base for base in near if op in _registered(base)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise _no_such_op(root, op, [base.name for base in bases])
    raise TwinError(
        "project-two-ops",
        f"{len(found)} projects below {root} register {op}",
        Place(str(root)),
        seen=", ".join(str(path.relative_to(root)) for path in found[:4]),
    )


def _registered(base: Path) -> set[str]:
    """Types and entry names of what the host sources of a project register."""
    files = files_beneath(base / "op_host")
    codes = (scan.blank(read_text(file)) for file in files if file.suffix == ".cpp")
    types = [name for code in codes for name in opdef.find_ops(code)]
    return {*types, *map(entry_name, types)}


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        code = "project-no-host" if folder.name == "op_host" else "project-no-kernel"
        raise _missing(code, folder, f"no folder {folder.name}")
    found = sorted(
        file
        for file in files_beneath(folder)
        if file.suffix in _SOURCES
        and file.is_file()
        and not any(part in _OTHER_FOLDERS for part in file.relative_to(folder).parts[:-1])
    )
    found = keep_ours(folder, found)
    for file in found:
        _check_link(folder.parent, file)
    return found


def _check_link(base: Path, file: Path) -> None:
    """The compiler sees the project only: what a link leads out of it would be missing there."""
    target = file.resolve()
    if not target.is_relative_to(base.resolve()):
        raise TwinError(
            "project-link", f"{file.name} is a link out of the project", Place(str(file)),
            seen=str(target),
        )  # fmt: skip


def _is_host(file: Path, text: str) -> bool:
    """A host source, and not one that implements the aclnn interface by hand, itself or by the
    header that is called like it, or launches kernels that another build makes."""
    if file.suffix not in (".cpp", ".cc") or _API_INCLUDE.search(text):
        return False
    if _LAUNCH.search(scan.blank(text)) and not _REGISTERS.search(text):
        return False
    header = file.with_suffix(".h")
    own = re.search(rf'#\s*include\s*"(?:[\w./]*/)?{re.escape(header.name)}"', text)
    return not (own and header.is_file() and _API_INCLUDE.search(read_text(header)))


def _missing(code: str, where: Path, what: str) -> TwinError:
    return TwinError(code, what, Place(str(where)))


def _check_json(base: Path, ops: Collection[str]) -> None:
    """msopgen's JSON files, where there are any, must describe what the host registers."""
    described: set[str] = set()
    for file in sorted(base.glob("*.json")):
        text = read_text(file)
        if '"input_desc"' not in text and '"output_desc"' not in text:
            continue  # CMakePresets.json and the like
        try:
            rows = json.loads(text)
        except ValueError as error:
            raise TwinError(
                "project-json", "the operator JSON is not JSON", Place(str(file)), seen=str(error)
            ) from error
        rows = rows if isinstance(rows, list) else [rows]
        names = [str(row.get("op")) for row in rows if isinstance(row, dict)]
        if not set(ops) & set(names):
            raise _undescribed(ops, file, names)
        described.update(names)
    if described and (missing := set(ops) - described):
        raise _undescribed(missing, base, sorted(described))


def _undescribed(ops: Collection[str], place: Path, seen: Sequence[str]) -> TwinError:
    message = f"the operator JSON does not describe {', '.join(sorted(ops))}"
    return TwinError("project-json", message, Place(str(place)), seen=", ".join(seen))


def _find_entry(base: Path, op: opdef.OpText, texts: dict[Path, str]) -> tuple[Path, scan.Entry]:
    sources = {file: text for file, text in texts.items() if file.suffix in _KERNELS}
    if not sources:
        others = [file.relative_to(base) for file in _foreign(base / "op_kernel")]
        what = _listed("; left out, for other chips:", others)
        raise _missing("project-no-kernel", base / "op_kernel", f"no kernel source (*.cpp){what}")
    templates = _has_template_tiling(base, texts, sources)
    found = [
        (file, entry)
        for file, text in sources.items()
        for entry in scan.find_entries(active(scan.blank(text)))
        if entry.defined and (templates or not entry.template)
    ]
    if not found:
        others = [file.relative_to(base) for file in _foreign(base / "op_kernel")]
        raise TwinError(
            "project-no-entry",
            "no kernel source defines a __global__ function",
            Place(str(next(iter(sources)))),
            seen=_listed("looked at", [file.relative_to(base) for file in sources])
            + _listed("; left out, for other chips:", others),
        )
    named = [row for row in found if row[1].name in op.entries]
    # variants for other chips have files of their own names (opFile.value) and the same entry
    filed = [row for row in named if row[0].stem == op.files[0]]
    for rows in (filed, named, found):
        alternatives = {(file, entry.name) for file, entry in rows}
        if len(alternatives) == 1:  # of one file: variants under #if, or a template and its caller
            return next((row for row in rows if not row[1].template), rows[0])
    raise TwinError(
        "project-no-entry",
        f"which of {len(found)} __global__ functions belongs to {op.type} is not clear",
        Place(str(base / "op_kernel")),
        seen=", ".join(f"{entry.name} in {file.relative_to(base)}" for file, entry in found[:6]),
        legal=f"one entry, or one called {' or '.join(op.entries)}",
    )


def _has_template_tiling(base: Path, texts: Mapping[Path, str], sources: Iterable[Path]) -> bool:
    """Do these files, or what they include from the library around them, declare instances?"""
    if any(template.is_template(active(scan.blank(text))) for text in texts.values()):
        return True
    if not any("__global__" in texts[file] and "template" in texts[file] for file in sources):
        return False
    outside = read_texts(find_headers(base, sources, Trees()).own)
    return any(template.is_template(active(scan.blank(text))) for text in outside.values())


def _listed(what: str, files: Sequence[Path]) -> str:
    """The first of them by name; nothing for none."""
    names = [str(file) for file in files[:6]]
    more = [f"and {len(files) - 6} more"] if len(files) > 6 else []
    return f"{what} {', '.join([*names, *more])}" if names else ""


def _check_names(
    base: Path, op: opdef.OpText, kernel: Path, entry: scan.Entry, text: str
) -> tuple[Finding, ...]:
    """The twin runs the one entry that is there; the vendor's build looks for it by its name."""
    wanted, files = op.entries, tuple(dict.fromkeys([*op.files, *_kernel_files(base)]))
    wrong = []
    if entry.name not in wanted:
        wrong.append(f"kernel entry `{wanted[-1]}' not implement in `{kernel.name}'")
    if kernel.stem not in files:
        wrong.append(f"operator: {files[-1]} source file does not found")
    if not wrong:
        return ()
    return (
        Finding(
            code="entry-name",
            message=f"the build of {op.type} would end: {'; '.join(wrong)}",
            file=str(kernel),
            line=scan.line_of(text, entry.offset),
            seen=f"{entry.name} in {kernel.name}",
            legal=f"{' or '.join(wanted)} in {' or '.join(f'{name}.cpp' for name in files)}",
        ),
    )


def _kernel_files(base: Path) -> list[str]:
    """Files of kernels that the project's CMake names itself, without ending."""
    places = [base / "CMakeLists.txt", base / "op_kernel" / "CMakeLists.txt"]
    texts = [read_text(place) for place in places if place.is_file()]
    return [Path(name).stem for text in texts for name in _KERNEL_FILE.findall(text)]
