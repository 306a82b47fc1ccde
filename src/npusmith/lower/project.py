"""The operator project on disk: what a CANN user would check in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from npusmith.ir.nodes import Program
from npusmith.ir.spec import OpSpec, Port
from npusmith.ir.text import show_expr
from npusmith.lower.binding import binding_file, direct_binding, direct_kernel
from npusmith.lower.bindings import BINDINGS, CONSTANTS, bindings_of, bindings_text, constants_text
from npusmith.lower.host import check_ports, host_file
from npusmith.lower.kernel import KernelText, kernel_file, write_kernel
from npusmith.lower.model import model_file
from npusmith.lower.render import render
from npusmith.lower.served import equal_sizes, restrictions
from npusmith.lower.tiling import Tiling, plan_tiling, tiling_file
from npusmith.lower.usage import waits
from npusmith.target import cann
from npusmith.target.chips import Chip

_BUILD = (
    ("CMakeLists.txt", "cmake.j2"),
    ("op_host/CMakeLists.txt", "cmake_host.j2"),
    ("op_kernel/CMakeLists.txt", "cmake_kernel.j2"),
    ("build.sh", "build.sh.j2"),
    ("setup.py", "setup.py.j2"),
)


def write_project(program: Program, chip: Chip, out: Path, spec: OpSpec) -> list[Path]:
    """Write the files of a lowered program under `out`; returns their paths.

    The tile program itself, `<op>.tile.py`, is the caller's to write.
    """
    texts = project_files(program, chip, spec)
    written = []
    for name, text in texts.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if path.suffix == ".sh":
            path.chmod(0o755)
        written.append(path)
    return written


def project_files(program: Program, chip: Chip, spec: OpSpec) -> dict[str, str]:
    """The same as texts by relative path, in the order in which a reader would open them."""
    tiling = plan_tiling(program, spec)
    kernel = write_kernel(program, spec, tiling)
    files = _operator_files(program, chip, spec, tiling, kernel) | {
        f"direct/{spec.name}.asc": direct_kernel(spec, tiling, kernel),
        "direct/pybind.cpp": direct_binding(program, spec, tiling, chip),
        "direct/CMakeLists.txt": render("cmake_direct.j2", op=spec, chip=chip),
        "pybind.cpp": binding_file([spec]),
        "model_new.py": model_file(spec),
        BINDINGS: bindings_text(spec),
    }
    if spec.constants:
        files[CONSTANTS] = constants_text(spec.constants)
    files |= _build_files([spec], spec.name, chip)
    files["README.md"] = render(
        "readme.md.j2", op=spec, syncs=waits(program), served=_served(spec)
    )  # fmt: skip
    return files


def package_files(
    operators: Sequence[tuple[Program, OpSpec]], package: str, chip: Chip, *, left: int | None
) -> dict[str, str]:
    """Several operators as one package with one binding; the module that calls them is not here.

    left: calls of PyTorch in that module; None: it is an operator and its backward.
    """
    files: dict[str, str] = {}
    for program, spec in operators:
        tiling = plan_tiling(program, spec)
        files |= _operator_files(program, chip, spec, tiling, write_kernel(program, spec, tiling))
        files[bindings_of(spec.name)] = bindings_text(spec)
    specs = [spec for _, spec in operators]
    files |= {"pybind.cpp": binding_file(specs)} | _build_files(specs, package, chip)
    about = [(spec, _served(spec), waits(program)) for program, spec in operators]
    readme = render("readme_package.md.j2", package=package, operators=about, left=left)
    return files | {"README.md": readme}


def _operator_files(
    program: Program, chip: Chip, spec: OpSpec, tiling: Tiling, kernel: KernelText
) -> dict[str, str]:
    check_ports(program, spec)
    return {
        f"op_kernel/{spec.name}.cpp": kernel_file(spec, tiling, kernel),
        f"op_kernel/{tiling.header}": tiling_file(spec, tiling),
        f"op_host/{spec.name}.cpp": host_file(program, spec, tiling, chip),
        f"{spec.name}.json": operator_json(spec),
    }


def _build_files(specs: Sequence[OpSpec], package: str, chip: Chip) -> dict[str, str]:
    return {
        name: render(
            template, ops=specs, package=package, chip=chip,
            variables=cann.VARIABLES, places=cann.PLACES,
        )
        for name, template in _BUILD
    }  # fmt: skip


def _served(spec: OpSpec) -> list[str]:
    """Ranks, types and sizes, as lines of the README; none where nothing is known."""
    if spec.legal is None:
        return []
    ports = [
        f"`{port.name}`: {f'rank {len(port.shape)}' if port.shape else 'one element'}, "
        f"{port.dtype.value}"
        for port in spec.inputs
    ]
    return [*ports, *(f"`{show_expr(expr)}`" for expr in (*restrictions(spec), *equal_sizes(spec)))]


def operator_json(spec: OpSpec) -> str:
    """The operator prototype that msopgen reads."""
    entry = {
        "op": spec.op_type,
        "language": "cpp",
        "input_desc": [_described(port) for port in spec.inputs],
        "output_desc": [_described(port) for port in spec.outputs],
    }
    return json.dumps([entry], indent=4) + "\n"


def _described(port: Port) -> dict[str, object]:
    return {
        "name": port.name,
        "param_type": "required",
        "format": ["ND"],
        "type": [port.dtype.json],
    }
