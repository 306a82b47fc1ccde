"""MultiKernelBench's two submission formats, read as data: `read_submission(path) -> Submission`.

- `ascendc`: Python text with six strings: project_json_src, host_tiling_src, host_operator_src,
  kernel_src, python_bind_src and model_src;
- `ascendc_direct_launch`: one JSON object with sources, of which one .py has the model. With
  `"backend": "ascendc"` the sources are an operator project and its binding instead.

Nothing of a submission is executed here. `unpack` writes its files below a folder and nowhere else.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any

from npusmith.errors import Place, TwinError
from npusmith.ir.opname import entry_name
from npusmith.twin import scan
from npusmith.twin.opdef import find_ops
from npusmith.twin.project import read_text

STRINGS = (
    "project_json_src",
    "host_tiling_src",
    "host_operator_src",
    "kernel_src",
    "python_bind_src",
    "model_src",
)
_CPP = (".cpp", ".cc", ".asc")
_MODEL = "ModelNew"
_MODULE = "custom_ops_lib"  # what the six-string format's model imports
_MOST_FILES = 200
_MOST_BYTES = 16 << 20  # of all sources
_MOST_NAME = 200
_FENCE = re.compile(r"\s*```(?:json|python|py)?[ \t]*\n(.*?)\n```", re.DOTALL)
_PYBIND = re.compile(r"\bPYBIND11_MODULE\s*\(\s*(\w+)\s*,")


class Kind(str, Enum):
    """The two formats, as MultiKernelBench calls its backends."""

    MSOPGEN = "ascendc"
    DIRECT = "ascendc_direct_launch"


@dataclass(frozen=True, slots=True)
class Submission:
    """A candidate that is a Python module with an operator or kernels below it."""

    kind: Kind
    path: Path
    files: Mapping[str, str]  # path below the project's folder -> text
    model: str  # the file with the class ...
    entry: str  # ... of this name
    bindings: tuple[str, ...]
    kernels: tuple[str, ...]  # direct launch only: an operator project is found by its folders
    includes: tuple[str, ...]
    module: str  # what the model imports

    @property
    def model_text(self) -> str:
        return self.files[self.model]


def is_submission(path: Path) -> bool:
    """Is this file one of the two formats, by its ending and its look?"""
    if path.suffix not in (".json", ".py", ".txt") or not path.is_file():
        return False
    head = path.read_bytes()[: 1 << 20].decode(errors="replace")
    return bool(re.search(r"^\s*kernel_src\s*=", head, re.M) or re.search(r'"sources"\s*:', head))


def read_submission(path: Path) -> Submission:
    """Read either format; TwinError format-syntax, format-part or format-path."""
    text = read_text(path)
    fence = _FENCE.match(text)
    text = fence.group(1) if fence else text
    submission = _read_json(path, text) if text.lstrip().startswith("{") else _read_py(path, text)
    _check_files(path, submission.files)
    return submission


def unpack(submission: Submission, folder: Path) -> None:
    """Write the files; `folder` should be new."""
    for name, text in submission.files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


# ---- six strings


def _read_py(path: Path, text: str) -> Submission:
    values = _strings(path, text)
    missing = [name for name in STRINGS if name not in values]
    if missing:
        task = f"where {path.name} is a task: npusmith generate {path.name}"
        raise TwinError(
            "format-part", f"{path.name} has no {missing[0]}", Place(str(path)),
            seen=", ".join(sorted(values)) or "no strings at all", hint="" if values else task,
        )  # fmt: skip
    host = values["host_operator_src"]
    ops = find_ops(scan.blank(host))
    name = entry_name(ops[0]) if ops else "op"
    files = {
        f"{name}.json": values["project_json_src"],
        f"op_host/{_tiling_header(host, name)}": values["host_tiling_src"],
        f"op_host/{name}.cpp": host,
        f"op_kernel/{name}.cpp": values["kernel_src"],
        "csrc/op.cpp": values["python_bind_src"],
        "model.py": values["model_src"],
    }
    return Submission(
        Kind.MSOPGEN, path, files, "model.py", _MODEL, ("csrc/op.cpp",), (), (), _MODULE
    )


def _tiling_header(host: str, name: str) -> str:
    """The file name under which the host source includes its tiling header."""
    found = re.search(r'^\s*#\s*include\s*"([^"/]+\.h)"', host, re.M)
    return found.group(1) if found else f"{name}_tiling.h"


def _strings(path: Path, text: str) -> dict[str, str]:
    try:
        tree = ast.parse(text, filename=str(path))
    except SyntaxError as error:
        place = Place(str(path), error.lineno or 0)
        raise TwinError("format-syntax", f"not Python: {error.msg}", place) from error
    except (ValueError, RecursionError, MemoryError) as error:
        message = f"{path.name} cannot be parsed: {error or type(error).__name__}"
        raise TwinError("format-syntax", message, Place(str(path))) from error
    values: dict[str, str] = {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        for target in targets:
            if isinstance(target, ast.Name) and target.id in STRINGS:
                values[target.id] = _constant(path, target.id, node)
    return values


def _constant(path: Path, name: str, node: ast.stmt) -> str:
    value = getattr(node, "value", None)
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    raise TwinError(
        "format-part",
        f"{name} is not a plain string",
        Place(str(path), node.lineno),
        seen=ast.unparse(node)[:80],
    )


# ---- direct launch


def _read_json(path: Path, text: str) -> Submission:
    try:
        root = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 0)
        message = f"not JSON: {error}"[:200]
        raise TwinError("format-syntax", message, Place(str(path), line)) from error
    files = _sources(path, root)
    build = _object(path, root, "build")
    entry = _object(path, root, "entry").get("model", "ModelNew.py::ModelNew")
    model, _, name = str(entry).partition("::")
    if model not in files:
        raise _part(path, f"no source {model!r}, which entry.model names", files)
    bindings = _listed(path, build, "binding_sources", files) or tuple(
        file for file, body in files.items() if file.endswith(_CPP) and _PYBIND.search(body)
    )
    if not bindings:
        raise _part(path, "no source has a PYBIND11_MODULE", files)
    kind = Kind.MSOPGEN if root.get("backend") == Kind.MSOPGEN.value else Kind.DIRECT
    kernels = _listed(path, build, "kernel_sources", files) or tuple(
        file for file in files if file.endswith(_CPP) and file not in bindings
    )
    if not kernels:
        raise _part(path, "no kernel source beside the binding", files)
    return Submission(
        kind, path, files, model, name or _MODEL, bindings, kernels,
        _includes(path, build, files), _module(path, build, files, bindings),
    )  # fmt: skip


def _sources(path: Path, root: Any) -> dict[str, str]:
    listed = root.get("sources") if isinstance(root, dict) else None
    if not isinstance(listed, list) or not listed:
        raise TwinError("format-part", f"{path.name} has no list of sources", Place(str(path)))
    files: dict[str, str] = {}
    for row in listed:
        name, text = (row.get("path"), row.get("content")) if isinstance(row, dict) else (0, 0)
        if not isinstance(name, str) or not isinstance(text, str):
            raise TwinError(
                "format-part", "a source needs a path and a content, both strings",
                Place(str(path)), seen=repr(row)[:80],
            )  # fmt: skip
        if name in files:
            raise _path(path, name, "it is there twice")
        files[name] = text
    return files


def _object(path: Path, root: dict[str, Any], key: str) -> dict[str, Any]:
    value = root.get(key, {})
    if not isinstance(value, dict):
        raise TwinError("format-part", f"{key} is not an object", Place(str(path)))
    return value


def _listed(
    path: Path, build: dict[str, Any], key: str, files: Mapping[str, str]
) -> tuple[str, ...]:
    names = build.get(key) or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TwinError("format-part", f"build.{key} is not a list of names", Place(str(path)))
    for name in names:
        if name not in files:
            raise _part(path, f"build.{key} names {name!r}, which is no source", files)
    return tuple(names)


def _includes(path: Path, build: dict[str, Any], files: Mapping[str, str]) -> tuple[str, ...]:
    """Folders to search: those that were asked for, and those of the headers."""
    asked = build.get("include_dirs") or []
    if not isinstance(asked, list) or not all(isinstance(name, str) for name in asked):
        raise TwinError("format-part", "build.include_dirs is not a list", Place(str(path)))
    for name in asked:
        if name != ".":
            _check_name(path, name)
    headers = (str(PurePosixPath(name).parent) for name in files if name.endswith((".h", ".hpp")))
    return tuple(dict.fromkeys([*asked, *headers]))


def _module(
    path: Path, build: dict[str, Any], files: Mapping[str, str], bindings: Iterable[str]
) -> str:
    names = [name for file in bindings for name in _PYBIND.findall(files[file])]
    plain = [name for name in names if name != "TORCH_EXTENSION_NAME"]
    module = build.get("module_name") or (plain[0] if plain else "benchmark_ops")
    if not isinstance(module, str) or not re.fullmatch(r"[A-Za-z_]\w{0,100}", module, re.ASCII):
        raise TwinError(
            "format-part", "build.module_name is not a name", Place(str(path)), seen=repr(module)
        )
    return module


def _part(path: Path, message: str, files: Mapping[str, str]) -> TwinError:
    return TwinError("format-part", message, Place(str(path)), seen=", ".join(files)[:200])


# ---- names of files


def _check_files(path: Path, files: Mapping[str, str]) -> None:
    for name in files:
        _check_name(path, name)
    folders = {str(parent) for name in files for parent in PurePosixPath(name).parents}
    for name in files:
        if str(PurePosixPath(name)) in folders:
            raise _path(path, name, "it is a file and a folder")
    if len(files) > _MOST_FILES or sum(map(len, files.values())) > _MOST_BYTES:
        raise TwinError(
            "format-part", f"{path.name} holds too many sources", Place(str(path)),
            seen=f"{len(files)} files",
        )  # fmt: skip


def _check_name(path: Path, name: str) -> None:
    """A name stays below the project's folder, whatever system looks at it."""
    parts = name.split("/")
    if not name or len(name) > _MOST_NAME:
        raise _path(path, name, "it is empty or too long")
    if name.startswith("/") or "\\" in name or re.match(r"[A-Za-z]:", name):
        raise _path(path, name, "it is not relative")
    if any(part in ("", ".", "..") for part in parts):
        raise _path(path, name, "it has an empty part, . or ..")
    if not all(part.isprintable() for part in parts) or "\ufffd" in name:
        raise _path(path, name, "it has control characters")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise _path(path, name, "it is not text") from error


def _path(path: Path, name: str, why: str) -> TwinError:
    seen = name[:80].encode(errors="backslashreplace").decode()
    message = f"a source has a name that cannot be used: {why}"
    return TwinError("format-path", message, Place(str(path)), seen=repr(seen))
