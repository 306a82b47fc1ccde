"""MultiKernelBench's formats are read as data; what is wrong with one has a code and a place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npusmith.errors import TwinError
from npusmith.twin.formats import STRINGS, Kind, is_submission, read_submission, unpack

PROJECT = Path(__file__).parents[1] / "projects" / "add"
MODEL = "import torch, custom_ops_lib\nclass ModelNew(torch.nn.Module):\n    pass\n"
BINDING = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n"

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(name: str, text: str) -> Path:
        file = tmp_path / name
        file.write_text(text)
        return file

    return make


def six(**changes: str) -> str:
    """A submission of six strings; `changes` are source text of the right-hand sides."""
    host = (PROJECT / "op_host/add_custom.cpp").read_text()
    values = {
        "project_json_src": '[{"op": "AddCustom", "input_desc": []}]',
        "host_tiling_src": "struct Plan {};",
        "host_operator_src": host,
        "kernel_src": (PROJECT / "op_kernel/add_custom.cpp").read_text(),
        "python_bind_src": BINDING,
        "model_src": MODEL,
    }
    texts = {name: repr(value) for name, value in values.items()} | changes
    return "".join(f"{name} = {text}\n" for name, text in texts.items() if text)


def direct(**changes: Any) -> str:
    sources = [
        {"path": "ModelNew.py", "content": MODEL},
        {"path": "kernel/launch.h", "content": ""},
        {"path": "kernel/k.cpp", "content": "int k;"},
        {"path": "kernel/pybind11.cpp", "content": "PYBIND11_MODULE(ops, m) {}"},
    ]
    return json.dumps({"format_version": "0.1", "sources": sources} | changes)


def refused(path: Path) -> TwinError:
    with pytest.raises(TwinError) as caught:
        read_submission(path)
    return caught.value


def test_six_strings_become_the_files_of_a_project(write: Write, tmp_path: Path) -> None:
    file = write("answer.py", six())
    assert is_submission(file)
    found = read_submission(file)
    assert found.kind is Kind.MSOPGEN
    assert found.module == "custom_ops_lib"
    unpack(found, tmp_path / "out")
    assert (tmp_path / "out/op_kernel/add_custom.cpp").read_text() == found.files[
        "op_kernel/add_custom.cpp"
    ]
    assert "op_host/add_custom_tiling.h" in found.files
    assert found.model_text == MODEL


def test_a_fenced_answer_is_read_like_a_plain_one(write: Write) -> None:
    assert read_submission(write("a.py", f"```python\n{six()}\n```")).kind is Kind.MSOPGEN


def test_a_json_submission_finds_binding_kernel_module_and_includes(write: Write) -> None:
    found = read_submission(write("a.json", direct()))
    assert found.kind is Kind.DIRECT
    assert found.bindings == ("kernel/pybind11.cpp",)
    assert found.kernels == ("kernel/k.cpp",)
    assert found.includes == ("kernel",)
    assert found.module == "ops"
    assert found.entry == "ModelNew"


def test_nothing_of_a_submission_is_executed(write: Write, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    read_submission(write("a.py", f"open({str(marker)!r}, 'w')\n{six()}"))
    assert not marker.exists()


@pytest.mark.parametrize("name", STRINGS)
def test_each_of_the_six_strings_is_required(write: Write, name: str) -> None:
    error = refused(write("a.py", six(**{name: ""})))
    assert error.code == "format-part"
    assert name in error.message


def test_a_string_that_is_computed_is_refused_at_its_line(write: Write) -> None:
    error = refused(write("a.py", six(kernel_src="open('/etc/passwd').read()")))
    assert error.code == "format-part"
    assert error.place.line == 4


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "kernel_src = '''never ends\n"),
        ("a.py", "kernel_src = " + "(" * 5000),
        ("a.json", '{"sources": [}'),
        ("a.json", '{"sources": ' + "[" * 100_000),
        ("a.json", "{"),
    ],
)
def test_text_that_is_no_python_or_json_is_a_syntax_error(
    write: Write, name: str, text: str
) -> None:
    assert refused(write(name, text)).code == "format-syntax"


@pytest.mark.parametrize(
    "changes",
    [
        {"sources": []},
        {"sources": "kernel.cpp"},
        {"sources": [{"path": "a.cpp"}]},
        {"sources": [{"path": 3, "content": ""}]},
        {"entry": []},
        {"entry": {"model": "Other.py::ModelNew"}},
        {"build": {"module_name": "a; import os"}},
        {"build": {"module_name": 7}},
        {"build": {"kernel_sources": ["missing.cpp"]}},
        {"build": {"include_dirs": "kernel"}},
    ],
)
def test_a_json_submission_with_a_wrong_part_is_refused(
    write: Write, changes: dict[str, Any]
) -> None:
    assert refused(write("a.json", direct(**changes))).code == "format-part"


def test_a_submission_without_a_binding_or_a_kernel_is_refused(write: Write) -> None:
    model = {"path": "ModelNew.py", "content": MODEL}
    binding = {"path": "b.cpp", "content": "PYBIND11_MODULE(ops, m) {}"}
    for sources in ([model], [model, binding]):
        assert refused(write("a.json", direct(sources=sources))).code == "format-part"


@pytest.mark.parametrize(
    "path",
    [
        "../x.cpp", "/etc/x.cpp", "a/../../x.cpp", "a//x.cpp", "./x.cpp", "a\\x.cpp", "C:/x.cpp",
        "x\x00.cpp", "x\n.cpp", "", "a/" * 120 + "x.cpp", "\ud800.cpp", "kernel", "kernel/k.cpp",
    ],
)  # fmt: skip
def test_a_source_stays_below_the_projects_folder(write: Write, path: str) -> None:
    sources = json.loads(direct())["sources"]
    sources.append({"path": path, "content": ""})
    assert refused(write("a.json", direct(sources=sources))).code == "format-path"


def test_include_folders_stay_below_it_too(write: Write) -> None:
    error = refused(write("a.json", direct(build={"include_dirs": ["../.."]})))
    assert error.code == "format-path"


def test_a_tiling_header_outside_of_op_host_is_not_taken_over(write: Write) -> None:
    host = '#include "../../../evil.h"\n' + (PROJECT / "op_host/add_custom.cpp").read_text()
    found = read_submission(write("a.py", six(host_operator_src=repr(host))))
    assert all(".." not in name for name in found.files)
