"""Which logs of a submission's run are kept: those of the first set of inputs, and only files."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.device.call import _recording
from npusmith.task.calls import keep_logs
from npusmith.task.recording import MOST_LAUNCHES, Recording


def write(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).write_text(name)
    return folder


def kept(recording: Recording) -> list[str]:
    return [path.read_text() for path in recording.logs()]


def test_the_calls_of_the_first_set_are_kept_in_their_order(tmp_path: Path) -> None:
    logs = write(tmp_path / "logs", "0", "1", "2")
    recording = Recording(tmp_path / "log")
    keep_logs(logs, tmp_path, recording, alone=False)
    assert kept(recording) == ["0", "1", "2"]


@pytest.mark.parametrize(("alone", "found"), [(True, ["direct", "direct.1"]), (False, [])])
def test_launches_inside_the_process_count_when_there_is_one_set(
    tmp_path: Path, alone: bool, found: list[str]
) -> None:
    logs = write(tmp_path / "logs", "direct", "direct.1", "direct.3")
    recording = Recording(tmp_path / "log")
    keep_logs(tmp_path, logs, recording, alone=alone)
    assert kept(recording) == found


def test_a_link_that_the_candidate_left_is_not_followed(tmp_path: Path) -> None:
    logs = write(tmp_path / "logs", "direct.1")
    (tmp_path / "secret").write_text("secret")
    (logs / "direct").symlink_to(tmp_path / "secret")
    recording = Recording(tmp_path / "log")
    keep_logs(tmp_path, logs, recording, alone=True)
    assert kept(recording) == []
    recording.path.unlink(missing_ok=True)
    recording.path.symlink_to(tmp_path / "secret")
    assert recording.logs() == []


def test_a_call_takes_the_next_free_number_up_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _recording() == {}
    monkeypatch.setenv("NPUSMITH_LOGS", str(tmp_path))
    assert _recording() == {"record": tmp_path / "0"}
    (tmp_path / "0").touch()
    assert _recording() == {"record": tmp_path / "1"}
    for at in range(MOST_LAUNCHES):
        (tmp_path / str(at)).touch()
    assert _recording() == {}


def test_options_are_those_of_a_run() -> None:
    path = Path("log")
    assert Recording(path).options() == {"record": path}
    assert Recording(path, 100).options() == {"record": path, "most_steps": 100}
