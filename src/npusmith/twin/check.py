"""`check_source(path, chip)`: does a project, a kernel or a direct-launch source compile?

Nothing is run. What is wrong comes back as findings; without one of level error it compiles.
"""

from __future__ import annotations

from pathlib import Path

from npusmith.errors import NpusmithError, Place, TwinError
from npusmith.ir.dtypes import DType
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.chips import Chip
from npusmith.twin import compile, opdef, scan, wrapper
from npusmith.twin.diagnose import CompileError
from npusmith.twin.finding import Finding
from npusmith.twin.headers import headers_of
from npusmith.twin.kind import file_kinds
from npusmith.twin.options import PLAIN, BuildOptions
from npusmith.twin.project import Project, read_project, read_text
from npusmith.twin.toolchain import find_toolchain

_BY_GE = {dtype.ge: dtype for dtype in DType}


def check_source(path: Path, chip: Chip, options: BuildOptions = PLAIN) -> list[Finding]:
    """Compile a project folder (for every column of its types) or a single source file."""
    found: list[Finding] = []
    try:
        path = path.resolve()
        if path.is_dir() or _in_project(path):
            project = read_project(path if path.is_dir() else path.parent.parent, options=options)
            for dtypes in type_columns(project):
                compile.build(project, chip, dtypes)
            found += project.findings
        else:
            check_file(path, chip, options)
    except CompileError as error:
        return _findings(error)
    except TwinError as error:
        return [_finding(error)]
    return found


def _in_project(path: Path) -> bool:
    """A file of op_kernel/ is checked with its project around it, where the op_host/ beside it
    registers an operator; host code that launches kernels itself may lie there as well."""
    hosts = path.parent.parent / "op_host"
    if path.parent.name != "op_kernel" or not hosts.is_dir():
        return False
    return any(opdef.find_ops(scan.blank(read_text(file))) for file in hosts.rglob("*.cpp"))


def type_columns(project: Project) -> list[tuple[DType, ...]]:
    """The combinations of types for which CANN would compile the kernel, in OpDef order.

    A port whose types are not written out, or are not the chip's, counts as float32.
    """
    ports = project.op.ports
    width = max((len(port.types) for port in ports), default=1) or 1
    columns = [
        tuple(_type_at(port, column) for port in ports)
        for column in range(width)
        if all(not port.types or _known(port, column) for port in ports)
    ]
    return list(dict.fromkeys(columns)) or [(DType.FLOAT32,) * len(ports)]


def _known(port: opdef.PortText, column: int) -> bool:
    return column < len(port.types) and port.types[column] in _BY_GE


def _type_at(port: opdef.PortText, column: int) -> DType:
    return _BY_GE[port.types[column]] if port.types else DType.FLOAT32


def check_file(path: Path, chip: Chip, options: BuildOptions = PLAIN) -> None:
    """A kernel or direct-launch source by itself: compiled and linked with the runtime.

    TwinError project-no-entry for one without a kernel, compile-failed, build-option.
    """
    options.check()
    text = read_text(path)
    if not scan.find_entries(scan.blank(text)):
        raise TwinError(
            "project-no-entry", f"{path.name} declares no __global__ function", Place(str(path))
        )
    with temporary_folder("npusmith-check-") as name:
        headers = headers_of(path, folders=tuple(item.resolve() for item in options.include))
        unit = wrapper.part_unit(path, text, options.define, direct=False)
        kinds = file_kinds(path, text, headers.files)
        compile.compile_file(path, unit, find_toolchain(chip), kinds, Path(name), headers=headers)


def _findings(error: CompileError) -> list[Finding]:
    if not error.errors:
        return [_finding(error)]
    return [
        Finding(code=error.code, message=row.message, file=row.file, line=row.line)
        for row in error.errors
    ]


def _finding(error: NpusmithError) -> Finding:
    place = error.place
    return Finding(
        code=error.code,
        message=error.message,
        file=place.file,
        line=place.line,
        seen=error.seen,
        legal=error.legal,
        hint=error.hint,
    )
