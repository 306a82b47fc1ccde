"""The prompt of PCL's NPUKernelBench, put together from the texts of the user's checkout.

Its generator is read as data (the f-strings of generate_codes_with_sft.py, the examples beside it);
nothing of it runs here and no word of the prompt is ours.
"""

from __future__ import annotations

import ast
import math
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from npusmith.bench.suites.npucases import Cell
from npusmith.bench.suites.torchsuite import read_text
from npusmith.errors import NpusmithError, Place

_HOME = "kernel_generator"
_MARKERS = ("## Functional Description", "## Function Description", "## Operator Function")
_CORES = "context->SetBlockDim(platform_ascendc::PlatformAscendCManager::GetInstance()->{}());"
_WIDE = 50  # pandas cuts a value of a table that is longer


@dataclass(frozen=True, slots=True)
class Question:
    """What a prompt is about."""

    operator: str  # CamelCase
    kernel: str  # snake_case
    description: str  # api_desc.md
    kernel_text: str  # the empty entry
    host_text: str
    cases: tuple[Mapping[str, Cell], ...]  # one in static mode, all of them in dynamic mode
    static: bool


def build_prompt(root: Path, question: Question, response: str) -> str:
    """The user prompt that the suite sends; NpusmithError file-unusable where it cannot be read."""
    home = root / _HOME
    tree = _parse(home / "generate_codes_with_sft.py")
    sample = _constants(_parse(home / f"{response}_sft_sample.py"))
    name = response.upper()
    values = {
        "code_requirement": sample.get(f"{name}_CODE_REQUIREMENT", ""),
        "example_content": sample.get(f"{name}_EXAMPLE_CODE", ""),
        "self.enhance_api_description()": _description(question),
        "self.test_case_data": _table(question),
        "self.generate_answer_template(*template_contents)": _template(tree, question, response),
    }
    return textwrap.dedent(_fill(_strings(home, tree, "build_code_generation_prompts")[0], values))


def _parse(path: Path) -> ast.Module:
    try:
        return ast.parse(read_text(path))
    except SyntaxError as error:
        raise NpusmithError(
            "file-unusable", f"{path.name}: {error.msg}", Place(str(path))
        ) from error


def _constants(tree: ast.Module) -> dict[str, str]:
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name) and isinstance(node.value.value, str):
                    found[target.id] = node.value.value
    return found


def _strings(home: Path, tree: ast.Module, function: str) -> list[ast.JoinedStr]:
    """The long f-strings of a function, in order."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            found = [item for item in ast.walk(node) if isinstance(item, ast.JoinedStr)]
            long = [item for item in found if (item.end_lineno or 0) - item.lineno > 3]
            if long:
                return sorted(long, key=lambda item: item.lineno)
    raise NpusmithError("file-unusable", f"{home} has no prompt in {function}()", Place(str(home)))


def _fill(text: ast.JoinedStr, values: Mapping[str, str]) -> str:
    parts = []
    for item in text.values:
        if isinstance(item, ast.Constant):
            parts.append(str(item.value))
        elif isinstance(item, ast.FormattedValue):
            name = ast.unparse(item.value)
            if name not in values:
                raise NpusmithError("file-unusable", f"the suite's prompt uses {name}", seen=name)
            parts.append(values[name])
    return "".join(parts)


def _template(tree: ast.Module, question: Question, response: str) -> str:
    found = _strings(Path(_HOME), tree, "generate_answer_template")
    kernel, host = question.kernel_text, question.host_text
    for getter in ("GetCoreNumAiv", "GetCoreNumAic"):
        host = host.replace(_CORES.format(getter), "")
    values = {
        "cpp_code": re.sub(r"(workspace[^)]*\))", "workspace)", kernel),
        "kernel_impl": kernel,
        "host_impl": host,
        "self.task_obj.kernel_name": question.kernel,
        "self.task_obj.op_name": question.operator,
    }
    return textwrap.dedent(_fill(found[0 if response == "kernel_only" else -1], values))


def _description(question: Question) -> str:
    """api_desc.md with the case's type written into it, as the suite does in static mode."""
    text = question.description
    case = question.cases[0] if question.cases else {}
    if not question.static or "dtype" not in case:
        return text
    line = f"\n## Supported Data Types\n- {case['dtype']}\n\n"
    for marker in _MARKERS:
        if marker in text:
            return text.replace(marker, line + marker, 1)
    return line + text


def _table(question: Question) -> str:
    """The row, or the rows, as pandas prints them."""
    if not question.cases:
        return ""
    if question.static:
        case = question.cases[0]
        left = max(map(len, case))
        shown = {name: _cell(value) for name, value in case.items()}
        right = max(map(len, shown.values()))
        lines = [f"{name:<{left}}    {value:>{right}}" for name, value in shown.items()]
        return "\n".join([*lines, f"Name: {case.get('case_id', 0)}, dtype: object"])
    heads = list(question.cases[0])
    rows = [[_cell(case[head]) for head in heads] for case in question.cases]
    widths = [max(len(head), *(len(row[at]) for row in rows)) for at, head in enumerate(heads)]
    first = len(str(len(rows) - 1))
    pairs = list(zip(heads, widths, strict=True))
    lines = [" " * first + "".join(f"  {head:>{width}}" for head, width in pairs)]
    for number, row in enumerate(rows):
        cells = zip(row, widths, strict=True)
        lines.append(f"{number:<{first}}" + "".join(f"  {text:>{width}}" for text, width in cells))
    return "\n".join(lines)


def _cell(value: Cell) -> str:
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        text = f"{value:.6f}".rstrip("0")
        return f"{text}0" if text.endswith(".") else text
    text = str(value)
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 3]}..."
