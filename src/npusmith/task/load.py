"""A task file, read but not run: `open_task(path)` gives its text and the facts that `ast` can see.

A task is one Python file in KernelBench's format: `Model(nn.Module)`, `get_inputs()`,
`get_init_inputs()`, and optionally `get_input_groups()`. Nothing in it is executed here.

A model class of any other name is named behind a colon, as in `nets.py:Block`.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import Place, TaskError

MAX_BYTES = 1 << 20
MODEL, INPUTS, INIT, GROUPS = "Model", "get_inputs", "get_init_inputs", "get_input_groups"


@dataclass(frozen=True, slots=True)
class Task:
    """A task file as text. `name` is a C++ identifier made from the file's name."""

    path: Path
    name: str
    text: str  # of the file; a class of another name is called Model at its end
    digest: str  # sha256 of the file's bytes and of what stands behind them
    summary: str  # first line of the file's docstring
    has_inputs: bool
    has_groups: bool
    model: str = ""  # the class, where it was named behind a colon

    @property
    def given(self) -> Path:
        """What `open_task` opens as this task again."""
        return self.path.with_name(f"{self.path.name}:{self.model}") if self.model else self.path


def open_task(path: Path) -> Task:
    """Read and check a task file; TaskError says what is wrong, and in which line."""
    stem = stem_of(path)
    path, model = split_class(path)
    data = _read_bytes(path)
    text = _decode(path, data)
    tree = _parse(path, text)
    names = set(_names(tree.body))
    _require(path, names, model, _modules(tree.body))
    behind = _behind(model, names)
    return Task(
        path=path.absolute(),
        name=identifier(stem),
        text=text + behind,
        digest=hashlib.sha256(data + behind.encode()).hexdigest(),
        summary=(ast.get_docstring(tree) or "").partition("\n")[0],
        has_inputs=INPUTS in names,
        has_groups=GROUPS in names,
        model=model,
    )


def split_class(path: Path) -> tuple[Path, str]:
    """`nets.py:Block` -> `nets.py` and `Block`; without a class, the path and an empty name."""
    name, colon, model = path.name.rpartition(":")
    if not colon or not name or not model.isidentifier() or path.exists():
        return path, ""
    return path.with_name(name), model


def stem_of(path: Path) -> str:
    """What files and folders of a task are called by: `nets_Block` for `nets.py:Block`."""
    file, model = split_class(path)
    return f"{file.stem}_{model}" if model else file.stem


def _behind(model: str, names: set[str]) -> str:
    """The lines that make a task of a file with a class of another name; lines before them stay."""
    if not model:
        return ""
    init = "" if INIT in names else f"\n\ndef {INIT}():\n    return []\n"
    return f"\n\n{MODEL} = {model}\n{init}"


def identifier(stem: str) -> str:
    """A lower-case C++ identifier: "19_ReLU" becomes "op_19_relu"."""
    name = re.sub(r"[^0-9a-zA-Z]+", "_", stem).strip("_").lower()
    return name if name[:1].isalpha() else f"op_{name}".rstrip("_")


def _read_bytes(path: Path) -> bytes:
    place = Place(str(path))
    if not path.exists():
        raise TaskError("file-missing", f"{path} does not exist", place)
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "not a regular file"
        raise TaskError("task-file", f"{path} is {kind}", place, seen=kind)
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise TaskError("task-size", f"{path.name} is {size:,} bytes long", place)
    try:
        return path.read_bytes()
    except OSError as error:
        raise TaskError("task-file", f"{path} cannot be read", place, seen=str(error)) from error


def _decode(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")  # a byte order mark is allowed, as Python allows it
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        seen = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        message = f"{path.name} is not UTF-8"
        raise TaskError("task-encoding", message, Place(str(path), line), seen=seen) from error


def _parse(path: Path, text: str) -> ast.Module:
    try:
        return ast.parse(text, filename=str(path))
    except SyntaxError as error:
        place = Place(str(path), error.lineno or 0)
        seen = (error.text or "").strip()
        raise TaskError("task-syntax", error.msg, place, seen=seen) from error
    except (ValueError, RecursionError, MemoryError) as error:
        message = f"{path.name} cannot be parsed: {error or type(error).__name__}"
        raise TaskError("task-syntax", message, Place(str(path))) from error


def _require(path: Path, names: set[str], model: str, others: Sequence[str]) -> None:
    """`others`: classes of the file that look like models, for the next step."""
    place = Place(str(path))
    if (model or MODEL) not in names:
        hint = f"name the class: {path.name}:{others[-1]}" if others else ""
        message = f"{path.name} defines no class {model or MODEL}"
        raise TaskError("task-parts", message, place, seen=", ".join(others[:8]), hint=hint)
    if INIT not in names and not model:
        raise TaskError("task-parts", f"{path.name} defines no {INIT}()", place)
    if INPUTS not in names and GROUPS not in names:
        raise TaskError("task-parts", f"{path.name} defines no {INPUTS}()", place)


def _modules(body: list[ast.stmt]) -> list[str]:
    """Classes of the file whose base is called Module, in their order."""
    return [
        node.name
        for node in body
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).rpartition(".")[2] == "Module" for base in node.bases)
    ]


def _names(body: list[ast.stmt]) -> Iterator[str]:
    """Names that the module's own statements bind, those under `if` and `try` included."""
    for node in body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name
            case ast.Assign():
                yield from (target.id for target in node.targets if isinstance(target, ast.Name))
            case ast.Import() | ast.ImportFrom():
                yield from (alias.asname or alias.name for alias in node.names)
            case ast.If():
                yield from _names([*node.body, *node.orelse])
            case ast.Try():
                yield from _names([*node.body, *node.orelse, *node.finalbody])
                for handler in node.handlers:
                    yield from _names(handler.body)
            case ast.With():
                yield from _names(node.body)
