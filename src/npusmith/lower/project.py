"""The operator project on disk: what a CANN user would check in."""

from __future__ import annotations

import json
from pathlib import Path

from npusmith.ir.nodes import Program
from npusmith.ir.spec import OpSpec, Port
from npusmith.ir.text import show_expr
from npusmith.lower.binding import binding_file, direct_binding, direct_kernel
from npusmith.lower.bindings import BINDINGS, CONSTANTS, bindings_text, constants_text
from npusmith.lower.host import check_ports, host_file
from npusmith.lower.kernel import kernel_file, write_kernel
from npusmith.lower.model import model_file
from npusmith.lower.render import render
from npusmith.lower.served import equal_sizes, restrictions
from npusmith.lower.tiling import plan_tiling, tiling_file
from npusmith.lower.usage import waits
from npusmith.target import cann
from npusmith.target.chips import Chip

_BUILD = (
    ("CMakeLists.txt", "cmake.j2"),
    ("op_host/CMakeLists.txt", "cmake_host.j2"),
    ("op_kernel/CMakeLists.txt", "cmake_kernel.j2"),
    ("direct/CMakeLists.txt", "cmake_direct.j2"),
    ("build.sh", "build.sh.j2"),
    ("setup.py", "setup.py.j2"),
    ("README.md", "readme.md.j2"),
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
    check_ports(program, spec)
    tiling = plan_tiling(program, spec)
    syncs, kernel = waits(program), write_kernel(program, spec, tiling)
    files = {
        f"op_kernel/{spec.name}.cpp": kernel_file(spec, tiling, kernel),
        f"op_kernel/{tiling.header}": tiling_file(spec, tiling),
        f"op_host/{spec.name}.cpp": host_file(program, spec, tiling, chip),
        f"{spec.name}.json": operator_json(spec),
        f"direct/{spec.name}.asc": direct_kernel(spec, tiling, kernel),
        "direct/pybind.cpp": direct_binding(program, spec, tiling, chip),
        "pybind.cpp": binding_file(spec),
        "model_new.py": model_file(spec),
        BINDINGS: bindings_text(spec),
    }
    if spec.constants:
        files[CONSTANTS] = constants_text(spec)
    for name, template in _BUILD:
        files[name] = render(
            template, op=spec, chip=chip, syncs=syncs, served=_served(spec),
            variables=cann.VARIABLES, places=cann.PLACES,
        )  # fmt: skip
    return files


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
