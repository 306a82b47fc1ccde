"""The main jobs through the program, on real tasks, and what disturbs them in the middle."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "npusmith"]
KEYS = {"verdict", "compiled", "correct", "trials", "max_abs_error", "findings", "project"}

TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0 + 1.0

def get_inputs():
    return [torch.randn(5, 1003)]

def get_init_inputs():
    return []
"""
ENDLESS = TASK.replace("    return [torch", "    while True:\n        pass\n    return [torch")


def listen() -> None:
    """A job in the background of a script starts with SIGINT ignored, and would stay so."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def call(*args: str, cwd: Path, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *args], cwd=cwd, capture_output=True, text=True, timeout=300, check=False,
        **more,  # type: ignore[call-overload]
    )  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a task and what `generate --json` left and said."""
    folder = tmp_path_factory.mktemp("generate")
    (folder / "twice.py").write_text(TASK)
    done = call("generate", "twice.py", "--search", "3", "--json", cwd=folder)
    (folder / "said.json").write_text(done.stdout)
    (folder / "heard.txt").write_text(done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def said(place: Path) -> dict[str, object]:
    data = json.loads((place / "said.json").read_text())
    assert isinstance(data, dict)
    return data


def test_generate_says_one_document_with_the_verdict(place: Path) -> None:
    data = said(place)
    assert set(data) >= KEYS
    assert (data["verdict"], data["compiled"], data["correct"]) == ("pass", True, True)
    assert data["rung"] == "race-free on the twin"
    trials = data["trials"]
    assert isinstance(trials, list)
    assert len([item for item in trials if item["kind"] == "random"]) >= 5


def test_generate_tells_its_steps_on_stderr(place: Path) -> None:
    heard = (place / "heard.txt").read_text()
    assert all(
        f" s  {name}" in heard for name in ("read", "reference", "write", "lower", "compile")
    )


def test_generate_leaves_everything_where_it_says(place: Path) -> None:
    out = place / "out" / "twice"
    names = {path.name for path in out.iterdir()}
    assert {"result.json", "report.html", "op_host", "op_kernel", "model_new.py"} <= names
    assert list(out.glob("*.tile.py"))
    assert (place / str(said(place)["project"])).resolve() == out.resolve()
    assert (place / str(said(place)["program"])).is_file()
    assert [path.name for path in (place / "out").iterdir()] == ["twice"]


def test_no_result_names_a_folder_that_is_gone(place: Path) -> None:
    out = place / "out" / "twice"
    for name in ("result.json", "report.html"):
        assert ".result-" not in (out / name).read_text(encoding="utf-8"), name


def test_result_json_says_what_the_document_said(place: Path) -> None:
    kept = json.loads((place / "out" / "twice" / "result.json").read_text())
    assert {key: kept[key] for key in KEYS} == {key: said(place)[key] for key in KEYS}


def test_the_search_is_told_evaluation_by_evaluation(place: Path) -> None:
    kept = json.loads((place / "out" / "twice" / "result.json").read_text())
    trials = kept["provenance"]["search"]
    assert 1 <= len(trials) <= 3
    assert min(trial["us"] for trial in trials if trial["us"]) <= trials[0]["us"]
    assert "best of" in kept["provenance"]["notes"][-1]


def test_a_schedule_is_replayed_and_one_of_another_task_is_refused(place: Path) -> None:
    result = json.loads(Path(place, "out/twice/result.json").read_text())
    assert set(result["provenance"]["schedule"]) == {"graph", "chip", "schedule"}
    changed = result["provenance"]["schedule"]
    changed["schedule"] |= {"tile": 256, "cores": 3}
    (place / "schedule.json").write_text(json.dumps(changed))
    replay = ("--schedule", "schedule.json", "--out", "replayed")
    done = call("generate", "twice.py", *replay, cwd=place)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "schedule   loops; tile 256; at most 3 cores" in done.stdout
    program = next(Path(place, "replayed").glob("*.tile.py")).read_text()
    assert "min(chip.vector_cores, 3)" in program

    again = ("--schedule", "replayed/result.json", "--out", "again")
    assert call("generate", "twice.py", *again, cwd=place).returncode == 0
    assert next(Path(place, "again").glob("*.tile.py")).read_text() == program

    (place / "thrice.py").write_text(TASK.replace("* 2.0", "* 3.0"))
    done = call("generate", "thrice.py", *replay, cwd=place)
    assert done.returncode != 0
    assert "error[plan-schedule-task]" in done.stderr + done.stdout


def test_generate_again_replaces_its_own_result(place: Path) -> None:
    (place / "out" / "twice" / "mark").write_text("of the first run")
    done = call("generate", "twice.py", "--no-search", cwd=place)
    assert done.returncode == 0
    assert "correct    yes: race-free on the twin; a device was not used" in done.stdout
    assert not (place / "out" / "twice" / "mark").exists()


def test_run_judges_the_project_that_generate_left(place: Path) -> None:
    done = call("run", "out/twice", "--task", "twice.py", "--json", cwd=place)
    data = json.loads(done.stdout)
    assert set(data) >= KEYS
    assert (done.returncode, data["verdict"]) == (0, "pass")


def test_run_fails_a_project_whose_kernel_was_spoilt(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "out" / "twice", tmp_path / "spoilt")
    (kernel,) = (tmp_path / "spoilt" / "op_kernel").glob("*.cpp")
    text = kernel.read_text()
    assert "2.0f" in text
    kernel.write_text(text.replace("2.0f", "2.5f"))
    done = call("run", "spoilt", "--task", str(place / "twice.py"), "--json", cwd=tmp_path)
    data = json.loads(done.stdout)
    assert (done.returncode, data["verdict"], data["correct"]) == (1, "fail", False)
    assert data["rung"] == "ran on the twin"


def test_check_takes_the_tile_program_the_kernel_and_the_project(place: Path) -> None:
    out = place / "out" / "twice"
    program = next(out.glob("*.tile.py"))
    kernel = next((out / "op_kernel").glob("*.cpp"))
    for file in (program, kernel, out):
        done = call("check", str(file), "--json", cwd=place)
        data = json.loads(done.stdout)
        assert (done.returncode, data["rung"]) == (0, "compiled"), (file, data)


def test_check_fails_a_tile_program_with_its_code_and_line(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("import os\nos.system('true')\n")
    done = call("check", "bad.py", "--json", cwd=tmp_path)
    data = json.loads(done.stdout)
    assert done.returncode == 1
    assert data["error"]["line"] >= 1
    assert data["error"]["hint"]


def test_check_takes_an_operator_of_a_library_with_folders_and_definitions(tmp_path: Path) -> None:
    projects = Path(__file__).parents[1] / "projects"
    shutil.copytree(projects / "add", tmp_path / "lib" / "math" / "add_custom")
    shutil.copytree(projects / "scale", tmp_path / "lib" / "math" / "scale_custom")
    kernel = tmp_path / "lib" / "math" / "add_custom" / "op_kernel" / "add_custom.cpp"
    kernel.write_text('#include "more.h"\nstatic_assert(GIVEN == 3);\n' + kernel.read_text())
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "more.h").write_text("")
    given = ("--op", "add_custom", "-I", "inc", "-D", "GIVEN=3", "--json")
    done = call("check", "lib", *given, cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["rung"]) == (0, "compiled"), done.stdout
    done = call("check", "lib", "--op", "nobody", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["findings"][0]["code"] == "project-no-op"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_in_the_middle_leaves_no_result_and_one_document(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    argv = [*COMMAND, "generate", "endless.py", "--json"]
    with subprocess.Popen(
        argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=listen,
    ) as running:  # fmt: skip
        assert running.stderr
        for line in running.stderr:
            if " read" in line:  # that step has ended, the endless one has begun
                break
        time.sleep(0.5)
        running.send_signal(number)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert json.loads(out)["error"]["code"] == "interrupted"
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.rglob("*") if path.name != "endless.py"] == []


def test_a_file_size_limit_in_the_middle_keeps_the_earlier_result(place: Path) -> None:
    before = (place / "out" / "twice" / "result.json").read_bytes()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))

    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = call("generate", "twice.py", "--json", cwd=place, preexec_fn=limit, env=env)
    data = json.loads(done.stdout)
    assert done.returncode != 0
    assert data["error"]
    assert (place / "out" / "twice" / "result.json").read_bytes() == before
    assert [path.name for path in (place / "out").iterdir()] == ["twice"]


def test_a_foreign_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(TASK)
    done = call("generate", "twice.py", "--out", ".", "--json", cwd=tmp_path)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "folder-foreign"
    assert (tmp_path / "twice.py").read_text() == TASK
