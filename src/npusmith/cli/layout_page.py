"""docs/layout.md: what each folder is for, what it imports, and what others take from it.

Arrows and names come from the import lines of the package's own sources, signatures from their
definitions. Nothing is imported for it.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from npusmith import version
from npusmith.cli.markdown import prose
from npusmith.cli.markdown import row as table_row

ROOT = Path(version.__file__).parent
_MANY = 3  # folders, at least, that take a name before the page lists it
_LONG = 90  # characters of a signature
_IMPORT = re.compile(r"^\s*from npusmith\.([\w.]+) import (\([^)]*\)|[^\n]+)", re.MULTILINE)

# What each folder, or module beside them, is for; in the order in which one stands on another.
PARTS = {
    "errors": "one family of errors: code, place, what was seen, what is legal, what to try",
    "ir": "what a kernel is, as data: frozen nodes, text form, rewrites",
    "target": "chips and the table of intrinsics, with sources",
    "sandbox": "untrusted code runs here, with limits",
    "store": "runs and results on disk, whole or not there",
    "lang": "the tile language: parser, checker, interpreter",
    "lower": "named passes: tile program to Ascend C project",
    "twin": "builds and runs any Ascend C project on the CPU, and checks it",
    "device": "what PyTorch extensions call on the twin",
    "task": "a task, the capture of its graph, the judge",
    "timing": "the timing model, roofs, eager estimates, advice",
    "plan": "the compiler: graph to tile program, and the search over its schedule",
    "report": "pages and pictures of a verdict",
    "bench": "suites, runner, metrics, reports; any writer",
    "writers": "the deterministic writer, and responses on disk",
    "knowledge": "three-part items, search, learning by measured effect",
    "pipeline": "the main jobs as straight lines",
    "profiling": "a candidate's time and what limits it",
    "agent": "the writer that a model drives",
    "lm": "a writer with tokens and weights of our own, in NumPy",
    "cann": "the user's own toolkit and NPU",
    "train": "corpus, reward, stages of training",
    "api": "what `import npusmith` gives",
    "cli": "commands: parse, call, print",
}


@dataclass(frozen=True, slots=True)
class Taken:
    """A name that several folders take from another one."""

    module: str
    name: str
    by: frozenset[str]


def layout_page(stamp: str) -> str:
    """The page."""
    arrows, taken = read_imports()
    lines = [
        "# Layout: folders, arrows, and what crosses them\n",
        stamp,
        "A folder imports only what stands above it here, which a test checks. "
        f"Names are listed that {_MANY} other folders or more take. What crosses edges as "
        "data: [contracts](contracts.md).\n",
    ]
    for part, what in PARTS.items():
        uses = [name for name in PARTS if name in arrows[part]]
        lines.append(f"## {part}\n")
        lines.append(f"{prose(what.capitalize())}. Imports: {', '.join(uses) or 'nothing'}.\n")
        rows = [item for item in taken if item.module.split(".")[0] == part]
        if rows:
            lines += ["| from | what | taken by |", "|---|---|---|"]
            lines += [_row(item) for item in rows]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def read_imports() -> tuple[dict[str, set[str]], list[Taken]]:
    """What each part imports, and the names that many take."""
    arrows: dict[str, set[str]] = defaultdict(set)
    users: dict[tuple[str, str], set[str]] = defaultdict(set)
    for path in sorted(ROOT.rglob("*.py")):
        own = path.relative_to(ROOT).parts[0].removesuffix(".py")
        for module, names in _imports(path.read_text(encoding="utf-8")):
            other = module.split(".")[0]
            if other != own:
                arrows[own].add(other)
                for name in names:
                    users[module, name].add(own)
    found = [
        Taken(module, name, frozenset(by))
        for (module, name), by in sorted(users.items())
        if len(by) >= _MANY
    ]
    return arrows, found


def _imports(text: str) -> Iterator[tuple[str, list[str]]]:
    for found in _IMPORT.finditer(text):
        names = re.sub(r"#[^\n]*", "", found[2])
        yield found[1], re.findall(r"(\w+)(?: as \w+)?", names)


def _row(item: Taken) -> str:
    shown, doc = _definition(item.module, item.name)
    by = ", ".join(name for name in PARTS if name in item.by)
    what = f"`{shown}`" + (f": {prose(doc)}" if doc else "")
    return table_row(f"`{item.module}`", what, by)


def _definition(module: str, name: str) -> tuple[str, str]:
    """A name with its parameters, and the first sentence of its docstring."""
    for node in _tree(module).body:
        match node:
            case ast.ImportFrom(module=str(other)) if any(
                (alias.asname or alias.name) == name for alias in node.names
            ):
                inner = next(item for item in node.names if (item.asname or item.name) == name)
                return _definition(other.removeprefix("npusmith."), inner.name)
            case ast.FunctionDef() if node.name == name:
                return _signature(node), _first(node)
            case ast.ClassDef() if node.name == name:
                return name, _first(node)
    return name, ""


def _signature(node: ast.FunctionDef) -> str:
    given = node.args
    names = [item.arg for item in (*given.posonlyargs, *given.args)]
    names += ["*", *(item.arg for item in given.kwonlyargs)] if given.kwonlyargs else []
    back = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    text = f"{node.name}({', '.join(names)}){back}"
    return text if len(text) <= _LONG else f"{node.name}({', '.join(names)})"


def _first(node: ast.FunctionDef | ast.ClassDef) -> str:
    text = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[.])\s", text)[0]


@cache
def _tree(module: str) -> ast.Module:
    path = ROOT.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))
