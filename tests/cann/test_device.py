"""`npusmith device` on a machine of stubs: the same trials, the same rule, msprof's times."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from npus import bind_stub, make_machine
from toolkits import environment, make_toolkit

from npusmith.cann.calibrate import write_row
from npusmith.cann.device import DeviceOptions, add_device, find_machine, measure
from npusmith.errors import CannError
from npusmith.lower import read_bindings
from npusmith.pipeline import generate
from npusmith.report.ladder import reached
from npusmith.target.chips import find_chip
from npusmith.task.load import open_task
from npusmith.task.prepared import Prepared
from npusmith.task.trials import SEEDS, prepare
from npusmith.task.verdict import Rung, Verdict
from npusmith.timing.rung import time_logs

sys.path.insert(0, str(Path(__file__).parents[2] / "runs"))

from calibration.cases import Case
from calibration.device import device_cases

from npusmith.task.trials import Sets

TASK = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.exp(x)


def get_inputs():
    return [torch.rand(64)]


def get_init_inputs():
    return []
"""
TABLE = Path(__file__).parent / "op_summary.csv"
CHIP = find_chip("910B2")


class Quiet:
    def step(self, name: str, detail: str = "") -> None: ...


@dataclass(frozen=True)
class Judged:
    """A project that npusmith wrote, and the twin's verdict of it."""

    root: Path
    verdict: Verdict
    prepared: Prepared


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    root = tmp_path_factory.mktemp("written")
    (root / "exp_task.py").write_text(TASK)
    (root / "work").mkdir()
    verdict = generate(root / "exp_task.py", root / "project", CHIP, "default", Quiet())
    task = open_task(root / "exp_task.py")
    prepared = prepare(task, root / "work", sets=Sets(seeds=SEEDS[:2], edges=False, shapes=False))
    return Judged(root, verdict, prepared)


@pytest.fixture
def work(judged: Judged, tmp_path: Path) -> Path:
    shutil.copytree(judged.root / "project", tmp_path / "project")
    (tmp_path / "exp_task.py").write_text(TASK)
    return tmp_path


def run(
    judged: Judged, work: Path, body: str, table: Path | None = TABLE, *, right: bool = True
) -> Verdict:
    """The device's part alone; `right`: what the twin said."""
    machine, project = make_machine(work, table), work / "project"
    bind_stub(project, "exp_task_custom", body)
    known = {"project": str(project), "correct": right, "verdict": "pass" if right else "fail"}
    verdict = judged.verdict.model_copy(deep=True, update=known)
    spec = read_bindings(project)
    assert spec is not None
    add_device(verdict, judged.prepared, spec, machine, Quiet(), work, "Ascend910B2")
    return verdict


def test_the_whole_way_ends_at_the_last_rung_with_times(work: Path) -> None:
    machine = make_machine(work, TABLE)
    bind_stub(work / "project", "exp_task_custom", "return torch.exp(x)")
    verdict = measure(
        work / "project",
        work / "exp_task.py",
        CHIP,
        "default",
        Quiet(),
        machine,
        options=DeviceOptions(calibrate=work / "rows.csv"),
    )
    held = verdict.device
    assert held is not None and held.right and verdict.correct
    (case,) = device_cases(work / "rows.csv")
    assert isinstance(case, Case) and case.steps > 0
    (timed,) = time_logs(case.logs, CHIP)  # the log that was kept is the launch's
    assert round(timed.task_us, 3) == verdict.task_us
    assert (verdict.rung, reached(verdict)) == (Rung.DEVICE, "right on a device")
    assert [trial.name for trial in held.trials] == [
        trial.name for trial in verdict.trials if not trial.skipped
    ]
    assert (held.device, held.route, held.median_us, held.cores) == ("Ascend910B2", "asc", 3.215, 2)
    assert held.task_us == [9.84, 3.08, 3.12, 3.31]
    calls = (work / "calls").read_text().splitlines()
    assert f"installer --install-path={work}/project/build_out/opp" in calls
    assert calls[-1].startswith("msprof --application=bash ")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return torch.exp(x) * 1.01", "expected"),
        ("return torch.exp(x).double()", "float64"),
        ("return torch.exp(x)[:1]", "[1]"),
        ("raise RuntimeError('aclnnExpTaskCustom failed with 561002')", "failed with 561002"),
        ("return torch.exp(x) + len(calls) * 1e-7", "two runs on the same inputs"),
    ],
)
def test_what_is_wrong_on_the_device_fails_with_the_set_of_inputs(
    body: str, said: str, judged: Judged, work: Path
) -> None:
    verdict = run(judged, work, body)
    held = verdict.device
    assert held is not None and not held.right
    assert (verdict.verdict, verdict.correct) == ("fail", False)
    assert verdict.rung is not Rung.DEVICE and held.median_us is None
    assert said in " ".join(trial.message for trial in held.trials)


def test_a_program_that_dies_on_the_device_fails_with_a_code(judged: Judged, work: Path) -> None:
    verdict = run(judged, work, "os._exit(9)")
    assert verdict.error is not None and verdict.error["code"] == "device-run"
    assert (verdict.verdict, "ended with code 9" in str(verdict.error["message"])) == ("fail", True)


def test_without_msprof_the_values_stand_and_a_note_says_so(judged: Judged, work: Path) -> None:
    verdict = run(judged, work, "return torch.exp(x)", table=None)
    held = verdict.device
    assert held is not None and verdict.rung is Rung.DEVICE and held.median_us is None
    assert "device-times: msprof is not installed" in held.notes[0]
    with pytest.raises(CannError, match="nothing was measured"):
        write_row(verdict, work / "rows.csv", work / "exp_task.py")


def test_a_kernel_that_is_wrong_on_the_twin_does_not_come_near_the_device(work: Path) -> None:
    kernel = work / "project" / "op_kernel" / "exp_task_custom.cpp"
    text = kernel.read_text()
    assert "Exp(" in text
    kernel.write_text(text.replace("Exp(", "Abs("))
    machine = make_machine(work, TABLE)
    verdict = measure(work / "project", work / "exp_task.py", CHIP, "default", Quiet(), machine)
    assert (verdict.correct, verdict.device) == (False, None)
    assert not (work / "calls").exists()


def test_what_is_wrong_on_the_twin_never_reaches_the_last_rung(judged: Judged, work: Path) -> None:
    verdict = run(judged, work, "return torch.exp(x)", right=False)
    assert verdict.device is not None and verdict.device.right
    assert (verdict.correct, verdict.rung is Rung.DEVICE) == (False, False)


def test_a_measured_kernel_becomes_a_row_of_the_calibration(judged: Judged, work: Path) -> None:
    verdict, table = run(judged, work, "return torch.exp(x)"), work / "rows.csv"
    log = work / "log"
    log.write_bytes(b"0" * 96)
    write_row(verdict, table, log)
    write_row(verdict, table, log)
    with table.open() as file:
        first, second = csv.DictReader(file)
    assert first == second
    assert (first["name"], first["chip"], first["cores"]) == ("exp_task/64", "910B2", "2")
    assert (first["task_us"], first["mte2_us"], first["mac_us"]) == ("3.215", "0.455", "")
    (work / "rows.logs" / "exp_task_64.log").read_bytes()
    (case, _) = device_cases(table)
    assert isinstance(case, Case)
    assert (case.chip, case.published["task"], case.steps, case.cold) == ("910B2", 3.215, 2, False)
    published = Path(__file__).parents[2] / "runs" / "calibration" / "kernels.csv"
    assert table.read_text().splitlines()[0] == published.read_text().splitlines()[0]


def test_a_machine_says_what_it_lacks(work: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    given = environment(make_toolkit(bare, asc=True), bare / "calls")
    with pytest.raises(CannError) as caught:
        find_machine(0, given, bare)
    assert (caught.value.code, caught.value.seen) == ("device-missing", "no davinci node")
    machine = make_machine(work, torch=False)
    with pytest.raises(CannError) as caught:
        measure(work / "project", work / "exp_task.py", CHIP, "default", Quiet(), machine)
    assert caught.value.code == "device-torch" and "torch_npu" in caught.value.seen
    with pytest.raises(CannError) as caught:
        measure(bare, work / "exp_task.py", CHIP, "default", Quiet(), machine)
    assert caught.value.code == "cann-script"


def test_a_binding_that_does_not_build_names_its_line(work: Path) -> None:
    machine = make_machine(work, TABLE)
    text = "import sys\nsys.exit('pybind.cpp:7:10: fatal error: aclnn_x.h: No such file')\n"
    (work / "project" / "setup.py").write_text(text)
    with pytest.raises(CannError) as caught:
        measure(work / "project", work / "exp_task.py", CHIP, "default", Quiet(), machine)
    assert (caught.value.code, caught.value.place.line) == ("cann-build", 7)


def test_the_environment_comes_from_the_toolkits_script(tmp_path: Path) -> None:
    home = make_toolkit(tmp_path, asc=True)
    (home / "set_env.sh").write_text("export ASCEND_HOME_PATH=/there LD_LIBRARY_PATH='/a b'\n")
    (tmp_path / "davinci3").touch()
    given = environment(home, tmp_path / "calls", ASCEND_TOOLKIT_HOME=str(home))
    del given["ASCEND_HOME_PATH"]
    machine = find_machine(3, given, tmp_path)
    assert machine.environment["LD_LIBRARY_PATH"] == "/a b"
    assert machine.environment["ASCEND_HOME_PATH"] == "/there"
    (home / "set_env.sh").write_text("exit 1\n")
    assert find_machine(3, given, tmp_path).environment["ASCEND_HOME_PATH"] == str(home)


def test_the_command_ends_with_a_code_without_a_device(work: Path) -> None:
    given = environment(make_toolkit(work, asc=True), work / "calls", PYTHONPATH=":".join(sys.path))
    argv = ["device", str(work / "project"), "--task", str(work / "exp_task.py")]
    for more, code in (({}, "device-missing"), ({"ASCEND_HOME_PATH": "/gone"}, "cann-missing")):
        done = subprocess.run(
            [sys.executable, "-m", "npusmith", *argv], env={**given, **more}, timeout=60,
            capture_output=True, text=True,
        )  # fmt: skip
        assert (done.returncode, f"error[{code}]" in done.stderr) == (5, True), done.stderr
