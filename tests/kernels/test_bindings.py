"""Bindings that came with a project from anywhere, and projects with odd files in them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from judging import CHIP, Bench

from npusmith.errors import NpusmithError, TaskError
from npusmith.ir.dtypes import DType
from npusmith.ir.spec import OpSpec, Port, Source
from npusmith.lower import BINDINGS, CONSTANTS, read_bindings
from npusmith.task.judge import judge

ROW = {"name": "x", "dtype": "float32", "source": "user", "position": 0, "target": ""}


def bindings(*rows: dict[str, object]) -> bytes:
    return json.dumps({"operator": "affine_custom", "inputs": rows}).encode()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"operator": "' + b"a" * (2 << 20) + b'", "inputs": []}',
        bindings(ROW | {"position": 1e300}),
        bindings(ROW | {"position": "0"}),
        bindings(ROW | {"dtype": "float31"}),
        bindings(ROW | {"more": 1}),
        bindings({"name": "x"}),
    ],
)
def test_bindings_that_are_none_are_refused_by_code(tmp_path: Path, text: bytes) -> None:
    (tmp_path / BINDINGS).write_bytes(text)
    with pytest.raises(NpusmithError) as caught:
        read_bindings(tmp_path)
    assert caught.value.code in ("binding-unknown", "file-unusable")
    assert len(caught.value.render()) < 1000


@pytest.mark.parametrize(
    "changes",
    [{"data": "AAAA"}, {"data": "no base64"}, {"shape": [-1]}, {"shape": [1 << 80]}, {"dtype": ""}],
)
def test_constants_that_are_none_are_refused_by_code(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    (tmp_path / BINDINGS).write_bytes(bindings(ROW))
    row = {"target": "c", "dtype": "float32", "shape": [1], "data": "AACAPw=="}
    (tmp_path / CONSTANTS).write_text(json.dumps([row]))
    spec = read_bindings(tmp_path)
    assert spec is not None and spec.constants[0].array.tolist() == [1.0]
    (tmp_path / CONSTANTS).write_text(json.dumps([row | changes]))
    with pytest.raises(NpusmithError) as caught:
        read_bindings(tmp_path)
    assert caught.value.code == "binding-unknown"


@pytest.mark.parametrize(
    "ports",
    [
        (Port("x", DType.FLOAT32, (), Source.USER, -1),),
        (Port("x", DType.FLOAT32, (), Source.USER, 1),),
        (Port("x", DType.FLOAT32, (), Source.PARAMETER, 0, "no.such.weight"),),
        (),
        (Port("x", DType.FLOAT32, (), Source.USER, 0),) * 2,
    ],
)
def test_bindings_to_what_the_task_does_not_have_are_refused(
    bench: Bench, ports: tuple[Port, ...]
) -> None:
    with pytest.raises(TaskError) as caught:
        judge(bench.project, bench.prepared, CHIP, "strict", spec=OpSpec("x", ports, ()))
    assert caught.value.code == "binding-unknown"


def test_an_odd_file_in_a_project_is_a_failed_verdict(bench: Bench) -> None:
    for name, make in {
        b"pipe.h": os.mkfifo,
        b"not\xffutf8.h": lambda path: Path(os.fsdecode(path)).touch(),
    }.items():
        project = bench.copy(f"odd_{len(name)}")
        odd = os.fsencode(project) + b"/op_kernel/" + name
        make(odd)
        verdict = bench.judge(project)
        if name.endswith(b"pipe.h"):
            assert verdict.verdict == "pass"  # not a source file: nobody includes it
        else:
            assert verdict.error is not None and verdict.error["code"] == "project-unreadable"


@pytest.mark.parametrize("name", ["line\nbreak.h", "quo\"te'.h", "$(touch owned).h", "a b;c.h"])
def test_a_file_s_name_is_never_a_command(bench: Bench, name: str) -> None:
    project = bench.copy(f"named_{len(name)}")
    (project / "op_kernel" / name).write_text("// nothing\n")
    (project / "op_host" / name).with_suffix(".cpp").write_text("// nothing\n")
    assert bench.judge(project).verdict == "pass"
    assert not list(project.rglob("owned"))
