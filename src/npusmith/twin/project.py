"""An Ascend C operator project on disk, read without compiling it: `read_project(root) -> Project`.

Accepted: the layout of msopgen (op_host/*.cpp, op_kernel/*.cpp, one operator, both tiling styles),
from npusmith or anybody else. docs/project.md says what is read and what is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import Place, TwinError
from npusmith.sandbox.folder import files_beneath
from npusmith.twin import opdef, scan, template, tiling
from npusmith.twin.finding import Finding

_SOURCES = (".cpp", ".cc", ".asc", ".h", ".hpp")
_KERNELS = (".cpp", ".cc", ".asc")
_MOST_BYTES = 16 << 20  # of one source file
_KERNEL_FILE = re.compile(r"\bKERNEL_FILE\s+([\w./-]+)")
_HEADERS = (".h", ".hpp", ".hh", ".hxx", ".inc", ".inl", ".ipp", ".tpp", ".def")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.M)
_MOST_HEADERS = 200
_API_FOLDERS = ("op_api", "op_graph", "framework")  # hand-written aclnn and plugin code
_API_INCLUDE = re.compile(
    r'^\s*#\s*include\s*[<"](?:opdev|aclnn|aclnn_kernels|level0|level2)/', re.M
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
    split: bool = False  # its CMake files put host sources into several libraries
    findings: tuple[Finding, ...] = ()  # what the vendor's build would refuse

    @property
    def kernel_texts(self) -> dict[Path, str]:
        """The texts of the kernel side."""
        side = self.kernel.parent
        return {file: text for file, text in self.texts.items() if file.is_relative_to(side)}

    @property
    def host_flags(self) -> tuple[str, ...]:
        """The twin links one library: what two of several define is then no clash."""
        return ("-Wl,-z,muldefs",) if self.split else ()

    @property
    def name(self) -> str:
        return self.entry.name


def read_project(root: Path, *, kernel_only: bool = False) -> Project:
    """Read a project; raises TwinError project-... for what is missing or ambiguous.

    `kernel_only`: an answer of NPUKernelBench's mode of that name, whose one kernel source was
    written without the tiling argument; like there, each `GM_ADDR workspace` gets one behind it.
    """
    read = _Files.of(Path(root).resolve())
    if kernel_only:
        read.kernels = {file: _with_tiling(text) for file, text in read.kernels.items()}
    added = _added(read)
    if len(added) > 1:
        raise TwinError(
            "project-two-ops",
            f"the host sources register {len(added)} operators",
            Place(str(read.base / "op_host")),
            seen=", ".join(sorted(added)),
        )
    _check_json(read.base, added)
    ((name, file),) = added.items()
    return _project(read, name, file)


def read_projects(root: Path) -> dict[str, Project]:
    """The operators of a package by their types, each without the others' sources.

    TwinError project-... as of `read_project`.
    """
    read = _Files.of(Path(root).resolve())
    added = _added(read)
    _check_json(read.base, added)
    ops = {name: opdef.read_op(read.hosts[file], name) for name, file in added.items()}
    entries = {
        file: {entry.name for entry in scan.find_entries(scan.blank(text))}
        for file, text in read.kernels.items()
        if file.suffix in _KERNELS
    }
    found = {}
    for name, file in added.items():
        foreign = {item for other, item in added.items() if other != name} - {file}
        taken = {entry for other, op in ops.items() if other != name for entry in op.entries}
        own = _Files(
            read.root, read.base,
            {item: text for item, text in read.hosts.items() if item not in foreign},
            {
                item: text for item, text in read.kernels.items()
                if not entries.get(item) or entries[item] - taken
            },
        )  # fmt: skip
        found[name] = _project(own, name, file)
    return found


@dataclass(slots=True)
class _Files:
    """The sources of a project, host and kernel side; `base` holds op_host and op_kernel."""

    root: Path
    base: Path
    hosts: dict[Path, str]
    kernels: dict[Path, str]

    @classmethod
    def of(cls, root: Path) -> _Files:
        if not root.is_dir():
            raise TwinError("project-missing", f"{root} is not a folder", Place(str(root)))
        base = _base(root)
        hosts, kernels = (
            read_texts(_files(base / "op_host")),
            read_texts(_files(base / "op_kernel")),
        )
        return cls(root, base, hosts, kernels)

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


def _project(read: _Files, name: str, file: Path) -> Project:
    """That operator, which `file` registers."""
    op = opdef.read_op(read.hosts[file], name)
    kernel, entry = _find_entry(read.base, op, read.kernels)
    host_code = "\n".join(scan.blank(text) for text in read.hosts.values())
    kernel_code = "\n".join(scan.blank(text) for text in read.kernels.values())
    host_struct = tiling.default_class(host_code, op.type) or tiling.host_type(host_code)
    return Project(
        read.root,
        op,
        kernel,
        entry,
        read.host_sources(),
        {**read.hosts, **read.kernels},
        host_struct,
        tiling.kernel_type(kernel_code) or host_struct,
        tiling.find_structs(read.hosts),
        tiling.find_structs(read.kernels),
        _is_split(read.base),
        _check_names(read.base, op, kernel, entry, read.kernels[kernel]),
    )


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
        return file.read_bytes().decode("utf-8", errors="strict")
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
            code = header.suffix in (*_SOURCES, *_HEADERS)  # nobody's key or password
            if code and header.is_file() and header not in found and header.is_relative_to(around):
                found[header] = None
                queue.append(header)
    return list(found)


def headers_beneath(folder: Path) -> list[Path]:
    """The headers in an include folder, at any depth."""
    found = [item for item in files_beneath(folder) if item.suffix in _HEADERS]
    return [item for item in found if item.is_file() and not item.is_symlink()][:_MOST_HEADERS]


def beside(path: Path) -> list[Path]:
    """What a compile of a source by itself reads: it, the headers of its folder, local_headers."""
    path = path.resolve()
    near = [item for item in sorted(path.parent.iterdir()) if item.suffix in _HEADERS]
    own = [item for item in near if item.is_file() and item.resolve().parent == path.parent]
    return [path, *own[:_MOST_HEADERS], *local_headers(path)]


def _base(root: Path) -> Path:
    """The folder that holds op_host and op_kernel: the root, or one below it."""
    depths = ("op_kernel", "*/op_kernel", "*/*/op_kernel")
    for pattern in depths:
        found = sorted(path.parent for path in root.glob(pattern) if path.is_dir())
        if len(found) == 1:
            return found[0]
        if found:
            raise TwinError(
                "project-two-ops",
                f"{root} holds {len(found)} projects",
                Place(str(root)),
                seen=", ".join(str(path.relative_to(root)) for path in found[:4]),
            )
    raise _missing("project-no-kernel", root, "no folder op_kernel")


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        code = "project-no-host" if folder.name == "op_host" else "project-no-kernel"
        raise _missing(code, folder, f"no folder {folder.name}")
    found = sorted(
        file
        for file in files_beneath(folder)
        if file.suffix in _SOURCES
        and file.is_file()
        and not any(part in _API_FOLDERS for part in file.relative_to(folder).parts[:-1])
    )
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
    """A host source, and not one that implements the aclnn interface by hand."""
    return file.suffix in (".cpp", ".cc") and not _API_INCLUDE.search(text)


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
        raise _missing("project-no-kernel", base / "op_kernel", "no kernel source (*.cpp)")
    templates = any(template.is_template(scan.blank(text)) for text in texts.values())
    found = [
        (file, entry)
        for file, text in sources.items()
        for entry in scan.find_entries(scan.blank(text))
        if entry.defined and (templates or not entry.template)
    ]
    if not found:
        raise TwinError(
            "project-no-entry",
            "no kernel source defines a __global__ function",
            Place(str(next(iter(sources)))),
        )
    named = [row for row in found if row[1].name in op.entries]
    # variants for other chips have files of their own names (opFile.value) and the same entry
    filed = [row for row in named if row[0].stem == op.files[0]]
    for rows in (filed, named, found):
        if len(rows) == 1:
            return rows[0]
    raise TwinError(
        "project-no-entry",
        f"which of {len(found)} __global__ functions belongs to {op.type} is not clear",
        Place(str(base / "op_kernel")),
        seen=", ".join(entry.name for _, entry in found[:6]),
        legal=f"one entry, or one called {' or '.join(op.entries)}",
    )


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
