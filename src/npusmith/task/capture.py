"""`capture(path)`: a task file's graph. Also `python -m npusmith.task.capture [--json] FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

from npusmith.errors import NpusmithError
from npusmith.sandbox.folder import temporary_folder
from npusmith.task.graph import Argument, Graph, Ref
from npusmith.task.load import open_task
from npusmith.task.trials import Sets, prepare


def capture(path: Path | str) -> Graph:
    """The graph that a task's forward computes; TaskError when it cannot be had."""
    task = open_task(Path(path))
    with temporary_folder("npusmith-capture-") as folder:
        return prepare(task, Path(folder), sets=Sets(seeds=(), edges=False, shapes=False)).graph


def listing(graph: Graph) -> str:
    """One line per input and node, for people."""
    lines = [
        f"{item.kind} {item.name}: {item.dtype.value}{list(item.shape)} {item.target}".rstrip()
        for item in graph.inputs
    ]
    for node in graph.nodes:
        words = [_text(item) for item in node.args]
        words += [f"{name}={_text(item)}" for name, item in node.kwargs.items()]
        kind = node.dtype.value + str(list(node.shape)) if node.dtype else "-"
        where = f"    # {node.source}" if node.source else ""
        lines.append(f"{node.name} = {node.op}({', '.join(words)}): {kind}{where}")
    return "\n".join([*lines, f"return {', '.join(graph.outputs)}"])


def _text(item: Argument) -> str:
    if isinstance(item, tuple):
        return f"[{', '.join(map(_text, item))}]"
    return item.ref if isinstance(item, Ref) else repr(item)


def main(argv: list[str]) -> int:
    """`[--json] FILE...`: print the graph of each task file."""
    try:
        for name in (word for word in argv if word != "--json"):
            graph = capture(name)
            print(graph.model_dump_json(indent=1) if "--json" in argv else listing(graph))
    except NpusmithError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
