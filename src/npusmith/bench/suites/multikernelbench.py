"""MultiKernelBench: reference/<category>/<task>.py, 300 tasks and 101 with groups of shapes.

The 101 lie in npukernelbench_level0 to 4; each reads the shapes of its groups from a file of JSON
lines beside it. (PCL's NPUKernelBench is another suite.)

Its present shapes take up to 8.6 GB a tensor: they are reduced (scale.py) unless the options say
`shapes=full`. `shapes=original` reads every task from the last revision before the shapes grew, out
of the checkout's own history. `dtype=float16` or `bfloat16` gives models and inputs that type.
"""

from __future__ import annotations

import ast
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

from npusmith.bench.model import Entry, Item
from npusmith.bench.suites.judging import Plan
from npusmith.bench.suites.options import SuiteOptions
from npusmith.bench.suites.torchsuite import TorchSuite, read_text, refuse_root
from npusmith.bench.suites.trials import Order
from npusmith.errors import NpusmithError, Place
from npusmith.task import rules

_GROUPED = "npukernelbench_level"
ORIGINAL = "6254b8d"  # 2025-12-15; "Update task shapes" follows it on 2026-01-22
_ORIGINAL_MB = 1024  # of the largest inputs there: 537 MB

_NARROWED = """

# ---- added: the same model and inputs in {dtype}
def _narrow(item):
    if isinstance(item, torch.Tensor):
        return item.to(torch.{dtype}) if item.dtype == torch.float32 else item
    return type(item)(map(_narrow, item)) if isinstance(item, (list, tuple)) else item


def _narrowed(build, inputs):
    def init(self, *args, **kwargs):
        build(self, *args, **kwargs)
        self.to(torch.{dtype})

    return init, lambda: _narrow(inputs())


Model.__init__, get_inputs = _narrowed(Model.__init__, get_inputs)
"""


class MultiKernelBench(TorchSuite):
    """Seed 1024 for the model; five random sets or all groups; allclose within 1e-4."""

    name = "multikernelbench"
    rule = rules.Named(name="multikernelbench")
    rule_name = rules.MULTIKERNELBENCH
    seed = 1024
    official = 0  # all of its sets
    scale_mb = 40  # 10 million float32: some 20 tiles for each of 48 cores

    def __init__(self, root: Path, options: SuiteOptions) -> None:
        if options.shapes == "original":
            most = max(options.input_mb, _ORIGINAL_MB)
            options = options.model_copy(update={"input_mb": most})
        super().__init__(root, options)

    def check(self) -> None:
        parts = {"dataset.py": Path.is_file, "reference": Path.is_dir}
        missing = [name for name, is_there in parts.items() if not is_there(self.root / name)]
        if missing:
            raise refuse_root(self.root, "MultiKernelBench", missing)
        there = {path.name for path in (self.root / "reference").iterdir() if path.is_dir()}
        gone = sorted(set(self.options.categories) - there)
        if gone and self.options.categories:
            raise refuse_root(self.root / "reference", "MultiKernelBench", gone)
        if next(self.entries(), None) is None:
            raise refuse_root(self.root / "reference", "MultiKernelBench", ["tasks */*.py"])

    def entries(self) -> Iterator[Entry]:
        for path in sorted((self.root / "reference").glob("*/*.py")):
            if path.name.startswith("_"):
                continue
            category = path.parent.name
            level = category.removeprefix(_GROUPED) if category.startswith(_GROUPED) else ""
            yield Entry(f"{category}/{path.stem}", category, level, path)

    def text_of(self, path: Path, name: str) -> str:
        """The reference, of the revision and in the type that the options ask for."""
        original = self.options.shapes == "original"
        text = text_before(self.root, path) if original else read_text(path)
        dtype = self.options.dtype
        grouped = "def get_input_groups" in text  # its files of shapes name types of their own
        return text + _NARROWED.format(dtype=dtype) if dtype and not grouped else text

    def marks(self) -> tuple[str, ...]:
        original = ("original",) if self.options.shapes == "original" else ()
        return (*original, self.options.dtype) if self.options.dtype else original

    def shapes_of(self, item: Item) -> str:
        if self.options.shapes == "original":
            return f"those before 2026-01-22 ({ORIGINAL}), full size"
        return super().shapes_of(item)

    def _text(self, item: Item) -> str:
        return self.text_of(self.root / item.source, item.name)

    def dtype_of(self, entry: Entry, found: list[str]) -> str:
        return self.options.dtype or super().dtype_of(entry, found)

    def plan_of(self, item: Item, order: Order) -> Plan:
        if not self.options.dtype:
            return super().plan_of(item, order)
        return Plan(
            order, rules.Named(name="narrow"), rules.NARROW, self.official, eager=self.options.eager
        )

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


def text_before(root: Path, path: Path) -> str:
    """A file as it was before the shapes grew, out of the checkout's history."""
    name = path.relative_to(root).as_posix()
    command = ["git", "-C", str(root), "show", f"{ORIGINAL}:{name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout
    raise NpusmithError(
        "file-missing", f"{name} is not to be had as it was at {ORIGINAL}", Place(str(root)),
        seen=done.stderr.strip()[:200], legal="a checkout with its history",
        hint=f"git -C {root} fetch --unshallow",
    )  # fmt: skip


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
    """The suite's own underscore_to_pascalcase, for the words of its prompt and nothing else."""
    return "".join(part.capitalize() for part in name.split("_"))
