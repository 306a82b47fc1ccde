"""`npusmith profile` from the command line: a generated operator, a wrong one, and bad input."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Any

import pytest

from npusmith import profiling
from npusmith.api import Quiet
from npusmith.errors import NpusmithError
from npusmith.profiling import model_error
from npusmith.target.chips import find_chip

COMMAND = [sys.executable, "-m", "npusmith"]
TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0 + 1.0

def get_inputs():
    return [torch.randn(64, 4096)]

def get_init_inputs():
    return []
"""


def call(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *args], cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated operator and its profile."""
    folder = tmp_path_factory.mktemp("profile")
    (folder / "twice.py").write_text(TASK)
    done = call("generate", "twice.py", "--no-search", "--time", "--json", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "generated.json").write_text(done.stdout)
    done = call("profile", "out/twice", "--task", "twice.py", "--json", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "said.json").write_text(done.stdout)
    return folder


def said(place: Path) -> dict[str, object]:
    data = json.loads((place / "said.json").read_text())
    assert isinstance(data, dict)
    return data


def test_a_right_kernel_is_timed_on_the_twin(place: Path) -> None:
    data = said(place)
    assert data["rung"] == "timed on the twin"
    profile = data["profile"]
    assert isinstance(profile, dict)
    assert 1 < profile["kernel_us"] < profile["task_us"] < 1000
    # each input once, each output once
    assert profile["moved_bytes"] == 2 * 64 * 4096 * 4
    assert profile["roof"]["needed_bytes"] == profile["moved_bytes"]
    assert profile["eager"]["low_us"] <= profile["eager"]["us"] <= profile["eager"]["high_us"]
    assert len(profile["advice"]) <= 3
    assert profile["finished"] is True


def test_generate_gives_the_rung_too_when_time_is_asked_for(place: Path) -> None:
    data = json.loads((place / "generated.json").read_text())
    assert data["rung"] == "timed on the twin"
    profile = said(place)["profile"]
    assert isinstance(profile, dict)
    assert data["kernel_us"] == pytest.approx(profile["kernel_us"], abs=1e-3)
    assert "task time, estimate" in (place / "out/twice/report.html").read_text()


def test_the_folder_has_trace_pictures_and_page(place: Path) -> None:
    out = place / "out/twice.profile"
    names = {path.name for path in out.iterdir()}
    assert {
        "trace.json", "timeline.svg", "roofline.svg", "report.html", "profile.json", "result.json",
    } <= names  # fmt: skip
    trace = json.loads((out / "trace.json").read_text())
    steps = [row for row in trace["traceEvents"] if row["ph"] == "X"]
    assert len(steps) == trace["otherData"]["events"] > 0
    assert trace["otherData"]["events_left_out"] == 0
    assert any("op_kernel" in row["args"].get("source", "") for row in steps)
    copied = sum(row["args"].get("bytes", 0) for row in steps)
    assert copied == 2 * 64 * 4096 * 4
    for name in ("timeline.svg", "roofline.svg"):
        xml.fromstring((out / name).read_text())
    assert '<section id="time">' in (out / "report.html").read_text()


def test_the_same_kernel_has_the_same_numbers_and_a_small_cap_is_said(place: Path) -> None:
    done = call(
        "profile", "out/twice", "--task", "twice.py", "--json", "--trace-events", "10",
        "--trace", "short.json", cwd=place,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout)["profile"]
    before = said(place)["profile"]
    assert isinstance(before, dict)
    assert [again[key] for key in ("cycles", "vector", "task_us")] == [
        before[key] for key in ("cycles", "vector", "task_us")
    ]
    assert any("first 10 of" in note for note in again["notes"])
    trace = json.loads((place / "short.json").read_text())
    assert sum(row["ph"] == "X" for row in trace["traceEvents"]) == 10


@pytest.mark.parametrize("command", ["profile", "run", "generate", "check", "bind"])
def test_every_command_refuses_a_nonsense_chip_file(tmp_path: Path, command: str) -> None:
    (tmp_path / "odd.toml").write_text('name = "odd"\nbase = "910B2"\nclock_mhz = "fast"\n')
    more = ("--pybind", "b.cpp", "--out", "o") if command == "bind" else ()
    done = call(command, "x", *more, "--chip", "odd.toml", "--json", cwd=tmp_path)
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"]) == (2, "chip-file")
    assert error["seen"] == "clock_mhz = 'fast'"
    assert error["legal"] == "a whole number from 100 to 10,000"


def test_a_wrong_kernel_has_a_time_but_not_the_rung(place: Path) -> None:
    other = TASK.replace("* 2.0", "* 3.0")
    (place / "thrice.py").write_text(other)
    done = call(
        "profile", "out/twice", "--task", "thrice.py", "--out", "wrong", "--json", cwd=place
    )
    data = json.loads(done.stdout)
    assert done.returncode == 1
    assert (data["correct"], data["rung"]) == (False, "ran on the twin")
    assert data["profile"]["kernel_us"] > 1


def test_of_a_run_that_was_ended_the_verdict_says_why(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log is cut off, which is no fault of the log."""

    def cut(*args: object) -> None:
        raise NpusmithError("timing-damaged", "the log cannot be timed")

    monkeypatch.setattr(profiling, "time_logs", cut)
    (place / "thrice.py").write_text(TASK.replace("* 2.0", "* 3.0"))

    def profiled(task: str) -> profiling.Profiled:
        return profiling.profile(
            place / "out/twice", place / task, find_chip("910B2"), "strict",
            Quiet(), profiling.Options(out=place / "cut"),
        )  # fmt: skip

    assert profiled("thrice.py").profile is None
    with pytest.raises(NpusmithError, match="timing-damaged"):
        profiled("twice.py")


def test_bad_input_is_refused_before_anything_runs(place: Path) -> None:
    for args, code, status in (
        (("out/twice", "--task", "twice.py", "--chip", "910Z"), "chip-unknown", 2),
        (("out/gone", "--task", "twice.py"), "file-missing", 3),
        (("out/twice",), "usage", 2),
        (("out/twice", "--task", "twice.py", "--sample", "1"), "usage", 2),
        (("out/twice", "--task", "twice.py", "--out", "."), "folder-foreign", 2),
    ):
        done = call("profile", *args, "--json", cwd=place)
        assert json.loads(done.stdout)["error"]["code"] == code
        assert done.returncode == status


def test_the_models_error_is_read_from_what_calibration_left(tmp_path: Path) -> None:
    path = tmp_path / "fitted.json"
    row = {"rows": 12, "median": 0.081, "mean": 0.12}
    path.write_text(json.dumps({"errors": {"calibration": row, "left_out": row}}))
    assert "left out part median 8%, mean 12% (12 rows)" in model_error(path)
    for text in ("", "[]", '{"errors": {"calibration": 3}}', '{"errors": []}'):
        path.write_text(text)
        assert model_error(path) == ""
    assert model_error(tmp_path / "gone.json") == ""


PROGRAM = """
#include <cstdio>
#include "acl/acl.h"
#include "kernel_operator.h"
using namespace AscendC;
__global__ __vector__ void fill(uint32_t rounds, uint32_t hangs) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 4096);
  LocalTensor<float> x = buffer.Get<float>();
  for (uint32_t at = 0; at < rounds; ++at) Duplicate(x, 1.0f, 1024);
  if (hangs != 0 && GetBlockIdx() == 0) SyncAll();
}
int main() {
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtStream stream;
  aclrtCreateStream(&stream);
  LAUNCHES
  aclrtSynchronizeStream(stream);
  return 0;
}
"""


def profile_program(
    folder: Path, name: str, launches: str, *options: str
) -> tuple[int, dict[str, Any]]:
    (folder / f"{name}.asc").write_text(PROGRAM.replace("LAUNCHES", launches))
    done = call("profile", f"{name}.asc", "--json", *options, cwd=folder)
    return done.returncode, json.loads(done.stdout)


def test_a_program_without_traffic_and_with_two_launches_is_timed(tmp_path: Path) -> None:
    code, data = profile_program(
        tmp_path, "two",
        "if (fopen(\"made\", \"r\") == nullptr) return 1;\n"
        "  fill<<<2, 0, stream>>>(ROUNDS, 0); fill<<<2, 0, stream>>>(30, 0);",
        "--prepare", "touch made", "-D", "ROUNDS=3",
    )  # fmt: skip
    assert code == 0, data
    profile = data["profile"]
    assert len(profile["launches"]) == 2
    short, long = profile["launches"]
    assert short["steps"] < long["steps"] == profile["steps"]
    assert profile["kernel_us"] == pytest.approx(short["kernel_us"] + long["kernel_us"])
    assert profile["moved_bytes"] == 0
    line = PROGRAM[: PROGRAM.index("Duplicate")].count("\n") + 1
    assert [(row["line"], row["unit"]) for row in profile["lines"]][:1] == [(line, "V")]
    rows = json.loads((tmp_path / "out/two.profile/trace.json").read_text())["traceEvents"]
    taken = {row["args"]["bytes"] for row in rows if row["name"] == "UB taken"}
    assert 4096 in taken
    assert (profile["roof"], profile["eager"]) == (None, None)
    assert any("no copy from or to global memory" in note for note in profile["notes"])
    xml.fromstring((tmp_path / "out/two.profile/roofline.svg").read_text())


def test_a_deadlock_is_timed_up_to_where_it_stands(tmp_path: Path) -> None:
    code, data = profile_program(tmp_path, "stuck", "fill<<<2, 0, stream>>>(30, 1);")
    assert code == 1
    assert "deadlock" in {item["code"] for item in data["findings"]}
    assert data["rung"] == "compiled"
    profile = data["profile"]
    assert profile["finished"] is False
    assert profile["kernel_us"] > 0
    assert any(pipe["unit"] == "V" and pipe["steps"] == 60 for pipe in profile["pipes"])
    assert "up to a deadlock" in (tmp_path / "out/stuck.profile/timeline.svg").read_text()


def test_a_program_that_launches_nothing_has_nothing_to_time(tmp_path: Path) -> None:
    code, data = profile_program(
        tmp_path, "none", "volatile bool never = false; if (never) fill<<<1, 0, stream>>>(1, 0);"
    )
    assert (code, data["error"]["code"]) == (1, "timing-log")
