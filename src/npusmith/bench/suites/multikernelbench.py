"""MultiKernelBench: reference/<category>/<task>.py, 300 tasks and 101 with groups of shapes.

The 101 lie in npukernelbench_level0 to 4; each reads the shapes of its groups from a file of JSON
lines beside it. (PCL's NPUKernelBench is another suite.)
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

from npusmith.bench.model import Item
from npusmith.bench.suites import rules
from npusmith.bench.suites.torchsuite import Entry, TorchSuite, read_text, refuse_root

_GROUPED = "npukernelbench_level"


class MultiKernelBench(TorchSuite):
    """Seed 1024 for the model; five random sets or all groups; allclose within 1e-4."""

    name = "multikernelbench"
    rule = staticmethod(rules.multikernelbench)
    rule_name = rules.MULTIKERNELBENCH
    seed = 1024
    official = 0  # all of its sets

    def check(self) -> None:
        parts = {"dataset.py": Path.is_file, "reference": Path.is_dir}
        missing = [name for name, is_there in parts.items() if not is_there(self.root / name)]
        if missing:
            raise refuse_root(self.root, "MultiKernelBench", missing)
        if next(self.entries(), None) is None:
            raise refuse_root(self.root / "reference", "MultiKernelBench", ["tasks */*.py"])

    def entries(self) -> Iterator[Entry]:
        for path in sorted((self.root / "reference").glob("*/*.py")):
            if path.name.startswith("_"):
                continue
            category = path.parent.name
            level = category.removeprefix(_GROUPED) if category.startswith(_GROUPED) else ""
            yield Entry(f"{category}/{path.stem}", category, level, path)

    def prompt_of(self, item: Item) -> str:
        """Its add-shot prompt for six strings, put together from the checkout's own pieces."""
        pieces = self.root / "prompt_generators" / "prompt_utils.py"
        shown = self.root / "prompts" / "cuda_model_add.py"
        answer = self.root / "prompts" / "ascendc_new_model_add.py"
        if not all(path.is_file() for path in (pieces, shown, answer)):
            return ""
        reference = read_text(self.root / item.source)
        names = (Path(item.source).stem, "add")
        return _prompt(read_text(pieces), (reference, read_text(shown), read_text(answer)), names)


def _prompt(pieces: str, sources: tuple[str, str, str], names: tuple[str, str]) -> str:
    """`ascendc_template` read as data: its strings in order, with the values that they name."""
    tree = ast.parse(pieces)
    held = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
    made = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    template = next((node for node in made if node.name == "ascendc_template"), None)
    if template is None:
        return ""
    op, example = (f"{name}_custom" for name in names)
    values = {"op": op, "example_op": example, "underscore_to_pascalcase(op)": _pascal(op)}
    blocks = dict(
        zip(("arc_src", "example_arch_src", "example_new_arch_src"), sources, strict=True)
    )
    parts = [_part(node, values, blocks, held) for node in _lists(template)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _lists(template: ast.FunctionDef) -> list[ast.expr]:
    """What goes into prompt_parts, in order: the first list, then what is appended."""
    found: list[ast.expr] = []
    for node in ast.walk(template):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List):
            found += list(node.value.elts)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "append"
        ):
            found += node.args
    return sorted(found, key=lambda node: node.lineno)


def _part(
    node: ast.expr, values: dict[str, str], blocks: dict[str, str], held: dict[str, str]
) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr():
            return "".join(_part(item, values, blocks, held) for item in node.values)
        case ast.FormattedValue():
            return values.get(ast.unparse(node.value), "")
        case ast.Call(func=ast.Name(id="_code_block"), args=[ast.Name(id=name), *rest]):
            language = ast.literal_eval(rest[0]) if rest else ""
            return f"```{language}\n{blocks.get(name, '').strip()}\n```"
        case ast.Call(func=ast.Attribute(attr="join"), args=[ast.List(elts=items)]):
            return "\n\n".join(_part(item, values, blocks, held) for item in items)
        case ast.Call(func=ast.Attribute(attr="strip", value=inner)):
            return _part(inner, values, blocks, held).strip()
        case ast.Call(func=ast.Attribute(attr="dedent"), args=[inner]):
            return textwrap.dedent(_part(inner, values, blocks, held))
        case ast.Name(id=name):
            return held.get(name, values.get(name, ""))
    return ""


def _pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
