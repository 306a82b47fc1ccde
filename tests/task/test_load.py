"""open_task: what can be said of a task file without running it."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

import pytest

from npusmith.errors import TaskError
from npusmith.task.load import MAX_BYTES, identifier, open_task

GOOD = '''"""A doc line."""
from torch import nn
class Model(nn.Module):
    pass
def get_inputs():
    raise SystemExit("never run")
def get_init_inputs():
    return []
'''


def put(folder: Path, data: str | bytes, name: str = "task.py") -> Path:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def refusal(path: Path) -> TaskError:
    with pytest.raises(TaskError) as caught:
        open_task(path)
    return caught.value


def test_a_good_file_gives_its_facts_and_is_not_run(tmp_path):
    task = open_task(put(tmp_path, GOOD + "raise SystemExit\n", "19_ReLU-v2.py"))
    assert task.name == "op_19_relu_v2"
    assert task.summary == "A doc line."
    assert task.has_inputs and not task.has_groups
    assert len(task.digest) == 64 and task.path.is_absolute()


def test_a_class_of_any_name_is_asked_for_behind_a_colon(tmp_path):
    text = GOOD.replace("class Model", "class Block").replace("def get_init_inputs", "def others")
    path = put(tmp_path, text, "nets.py")
    task = open_task(Path(f"{path}:Block"))
    assert task.path == path and task.given == Path(f"{path}:Block")
    assert task.name == "nets_block"
    assert task.text.startswith(text)  # places in errors stay true
    space: dict[str, object] = {}
    exec(task.text.removeprefix(text), {"Block": 7}, space)
    assert space["Model"] == 7 and space["get_init_inputs"]() == []
    assert task.digest != open_task(Path(f"{put(tmp_path, GOOD)}:Model")).digest
    assert open_task(task.given) == task


def test_a_class_that_is_not_there_and_a_file_with_a_colon_in_its_name(tmp_path):
    path = put(tmp_path, GOOD, "nets.py")
    error = refusal(Path(f"{path}:Block"))
    assert error.code == "task-parts" and "no class Block" in str(error)
    assert refusal(Path(f"{tmp_path}/none.py:Block")).code == "file-missing"
    assert open_task(put(tmp_path, GOOD, "a.py:b")).model == ""


@pytest.mark.parametrize(
    ("stem", "name"),
    [("softmax", "softmax"), ("A b.c", "a_b_c"), ("1_x", "op_1_x"), ("_", "op"), ("größe", "gr_e")],
)
def test_the_name_is_an_identifier(stem, name):
    assert identifier(stem) == name
    assert identifier(stem).isidentifier()


def test_a_byte_order_mark_is_allowed(tmp_path):
    assert open_task(put(tmp_path, codecs.BOM_UTF8 + GOOD.encode())).text == GOOD


def test_parts_may_be_imported_assigned_or_conditional(tmp_path):
    text = (
        "try:\n    from x import Model\nexcept ImportError:\n    Model = None\n"
        "if True:\n    def get_input_groups(): pass\nget_init_inputs = list\n"
    )
    task = open_task(put(tmp_path, text))
    assert task.has_groups and not task.has_inputs


def test_a_name_inside_a_function_does_not_count(tmp_path):
    text = GOOD.replace("class Model(nn.Module):\n    pass", "def f():\n    class Model: pass")
    assert refusal(put(tmp_path, text)).code == "task-parts"


@pytest.mark.parametrize("part", ["class Model", "def get_inputs", "def get_init_inputs"])
def test_a_missing_part_is_named(tmp_path, part):
    error = refusal(put(tmp_path, GOOD.replace(part, part + "_x")))
    assert error.code == "task-parts"
    assert part.split()[1] in error.message


def test_a_syntax_error_has_its_line(tmp_path):
    error = refusal(put(tmp_path, GOOD + "def broken(:\n"))
    assert (error.code, error.place.line) == ("task-syntax", 9)
    assert "def broken(:" in error.seen


@pytest.mark.parametrize("text", ["a\0b", "(" * 5000, "-" * 200_000 + "1"])
def test_text_that_breaks_parsers_is_a_syntax_error(tmp_path, text):
    assert refusal(put(tmp_path, text)).code == "task-syntax"


def test_latin_1_is_refused_with_line_and_byte(tmp_path):
    error = refusal(put(tmp_path, GOOD.encode() + "# größe\n".encode("latin-1")))
    assert (error.code, error.place.line) == ("task-encoding", 9)
    assert "0xf6" in error.seen


def test_a_huge_file_is_refused_unread(tmp_path):
    path = put(tmp_path, GOOD)
    os.truncate(path, 100 << 20)
    error = refusal(path)
    assert error.code == "task-size" and "104,857,600" in error.message
    os.truncate(path, MAX_BYTES)
    assert refusal(path).code == "task-syntax"  # zero bytes are no Python, but few enough


def test_a_folder_a_pipe_and_nothing_are_told_apart(tmp_path):
    assert refusal(tmp_path).code == "task-file"
    os.mkfifo(tmp_path / "pipe.py")
    assert refusal(tmp_path / "pipe.py").code == "task-file"
    assert refusal(tmp_path / "none.py").code == "file-missing"


def test_every_example_opens():
    examples = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
    assert len(examples) >= 15
    assert all(open_task(path).summary for path in examples)
