"""`npusmith build`: packages, and what logs of CANN's build say, with stub toolkits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from toolkits import environment, make_toolkit

from npusmith.cann.build import BuildError, build_package, read_errors
from npusmith.cann.toolkit import find_devices, find_toolkit
from npusmith.errors import CannError

# A log of the 8.1 route, its lines shortened: opbuild, then bisheng on a kernel in the frame.
LOG = """[100%] Built target cust_opapi
/home/u/p/build_out/frame/op_kernel/max_pool2d.cpp:41:9: error: no member named 'SetValu' in 'T'
   41 |     x.SetValu(0);
      |     ~~^
1 error generated.
[ERROR] 2026-01-01-10:00:00 kernel entry `max_pool2d' not implement in `max_pool2d.cpp', please
/home/u/p/build_out/frame/op_kernel/max_pool2d.cpp:41:9: error: no member named 'SetValu' in 'T'
make: *** [Makefile:111: binary] Error 2
"""


def test_the_package_and_its_route_come_back(project: Path, tmp_path: Path) -> None:
    home, calls = make_toolkit(tmp_path, msopgen=True), tmp_path / "calls"
    given = environment(home, calls)
    toolkit = find_toolkit(given)
    assert (toolkit.home, toolkit.route) == (home, "msopgen")
    package = build_package(project, toolkit, given)
    assert package.path == project / "build_out" / "custom_opp_ubuntu_x86_64.run"
    assert "msopgen makes the frame" in package.log.read_text()


def test_errors_of_a_build_name_the_projects_own_files(project: Path) -> None:
    tool, compiler, *rest = read_errors(LOG, project)
    assert tool.message == "kernel entry `max_pool2d' not implement in `max_pool2d.cpp'"
    assert compiler.file == str(project / "op_kernel" / "max_pool2d.cpp")
    assert (compiler.line, compiler.message) == (41, "no member named 'SetValu' in 'T'")
    assert [error.message for error in rest if "SetValu" in error.message] == []


def test_an_error_of_cmake_is_told_with_its_place(project: Path) -> None:
    text = "CMake Error at CMakeLists.txt:8 (find_package):\n  By not providing FindASC.cmake\n\n"
    (error,) = read_errors(text, project)
    assert (error.file, error.line) == ("CMakeLists.txt", 8)
    assert error.message == "By not providing FindASC.cmake"


def test_a_build_that_fails_ends_in_a_code_with_the_first_error(
    project: Path, tmp_path: Path
) -> None:
    home, calls = make_toolkit(tmp_path, asc=True), tmp_path / "calls"
    said = f"{project}/op_host/max_pool2d.cpp:9:3: error: expected ';'"
    given = environment(home, calls, COMPILER_SAYS=said)
    with pytest.raises(BuildError) as caught:
        build_package(project, find_toolkit(given), given)
    assert (caught.value.code, caught.value.message) == ("cann-build", "expected ';'")
    assert (caught.value.place.line, "build.log" in caught.value.seen) == (9, True)
    given = environment(home, calls, NO_PACKAGE="1")
    with pytest.raises(BuildError, match="the build ended without a package"):
        build_package(project, find_toolkit(given), given)


def test_a_toolkit_without_a_way_to_build_is_no_error_of_the_project(
    project: Path, tmp_path: Path
) -> None:
    given = environment(make_toolkit(tmp_path), tmp_path / "calls")
    with pytest.raises(CannError) as caught:
        build_package(project, find_toolkit(given), given)
    assert caught.value.code == "cann-tools"
    assert "neither the CMake package ASC nor msopgen" in caught.value.message


def test_a_project_without_the_script_is_named(tmp_path: Path) -> None:
    toolkit = find_toolkit(environment(make_toolkit(tmp_path), tmp_path))
    with pytest.raises(CannError) as caught:
        build_package(tmp_path, toolkit)
    assert caught.value.code == "cann-script"


def test_a_toolkit_is_where_its_variable_says_or_nowhere(tmp_path: Path) -> None:
    home = make_toolkit(tmp_path)
    for given in ({"HOME": str(tmp_path)}, {"ASCEND_HOME_PATH": str(tmp_path / "gone")}):
        with pytest.raises(CannError, match="no CANN toolkit") as caught:
            find_toolkit(given)
        assert caught.value.code == "cann-missing"
    assert find_toolkit({"ASCEND_TOOLKIT_HOME": str(home)}).home == home
    (tmp_path / "Ascend").mkdir()
    (tmp_path / "Ascend" / "cann").symlink_to(home)
    assert find_toolkit({"HOME": str(tmp_path)}).home.resolve() == home


def test_devices_are_the_numbered_nodes(tmp_path: Path) -> None:
    for name in ("davinci1", "davinci0", "davinci_manager", "null"):
        (tmp_path / name).touch()
    assert find_devices(tmp_path) == ["davinci0", "davinci1"]


def command(*args: str, **given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "npusmith", *args], capture_output=True, text=True, timeout=60,
        env={**given, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


def test_the_command_says_plainly_that_there_is_no_toolkit(project: Path, tmp_path: Path) -> None:
    done = command("build", str(project), "--json", HOME=str(tmp_path), PATH="/usr/bin:/bin")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (5, "cann-missing")


def test_the_command_gives_the_package(project: Path, tmp_path: Path) -> None:
    given = environment(make_toolkit(tmp_path, asc=True), tmp_path / "calls")
    data = json.loads(command("build", str(project), "--json", **given).stdout)
    assert (data["route"], Path(data["package"]).suffix) == ("asc", ".run")
    failed = command("build", str(project), **given, COMPILER_SAYS="x.cpp:1:1: error: bad")
    assert (failed.returncode, "error[cann-build]" in failed.stderr) == (1, True)


@pytest.mark.parametrize(
    ("asc", "msopgen", "found"),
    [
        (True, True, "with the CMake package ASC"),
        (False, True, "with msopgen, without the CMake package ASC"),
        (False, False, "is it the whole toolkit?"),
    ],
)
def test_doctor_says_what_a_toolkit_is_good_for(
    asc: bool, msopgen: bool, found: str, tmp_path: Path
) -> None:
    home = make_toolkit(tmp_path, asc=asc, msopgen=msopgen)
    done = command("doctor", "--json", **environment(home, tmp_path / "calls"))
    (check,) = [row for row in json.loads(done.stdout)["checks"] if row["name"] == "CANN"]
    assert check["found"].startswith(f"{home}, ") and found in check["found"]
    assert check["ok"] is (asc or msopgen)


def test_ctrl_c_ends_the_compilers_too(project: Path, tmp_path: Path) -> None:
    (project / "build.sh").write_text(f"sleep 600 & echo $! > '{tmp_path}/pid'\nwait\n")
    given = environment(make_toolkit(tmp_path, asc=True), tmp_path / "calls")
    process = subprocess.Popen(
        [sys.executable, "-m", "npusmith", "build", str(project)], stderr=subprocess.DEVNULL,
        env={**given, "PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    pid = tmp_path / "pid"
    while not (pid.is_file() and pid.read_text().strip()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    status = Path(f"/proc/{pid.read_text().strip()}/stat")
    assert not status.exists() or status.read_text().split()[2] in "ZX"
