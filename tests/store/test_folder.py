"""Result folders: whole or not there, whatever happens in the middle."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from npusmith.errors import NpusmithError
from npusmith.store import folder as folder_module
from npusmith.store.folder import new_folder
from npusmith.store.record import write_result


def fill(target: Path, text: str = "new") -> None:
    with new_folder(target) as tmp:
        (tmp / "op_kernel").mkdir()
        (tmp / "op_kernel" / "a.cpp").write_text(text)
        write_result(tmp, {"verdict": text})


def content(target: Path) -> str:
    return (target / "op_kernel" / "a.cpp").read_text()


def leavings(parent: Path) -> list[str]:
    return [path.name for path in parent.iterdir() if path.name.startswith(".")]


def test_a_new_result_appears_with_its_parents_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    fill(tmp_path / "out" / "softmax")
    assert content(tmp_path / "out" / "softmax") == "new"
    assert leavings(tmp_path / "out") == []


def test_the_target_does_not_exist_until_the_block_ends(tmp_path: Path) -> None:
    with new_folder(tmp_path / "r") as tmp:
        assert tmp.parent == tmp_path
        assert not (tmp_path / "r").exists()
    assert (tmp_path / "r").is_dir()


def test_a_result_has_the_mode_of_an_ordinary_folder(tmp_path: Path) -> None:
    fill(tmp_path / "r")
    (tmp_path / "ordinary").mkdir()
    assert (tmp_path / "r").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_an_earlier_result_is_replaced_whole(tmp_path: Path) -> None:
    fill(tmp_path / "r", "old")
    (tmp_path / "r" / "extra").write_text("of the old one")
    fill(tmp_path / "r", "new")
    assert content(tmp_path / "r") == "new"
    assert not (tmp_path / "r" / "extra").exists()
    assert leavings(tmp_path) == []


@pytest.mark.parametrize("how", [lambda tmp, target: False, None], ids=["renames", "exchange"])
def test_both_ways_of_replacing_keep_only_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Callable[[Path, Path], bool] | None
) -> None:
    if how is not None:  # a file system without the one-step exchange
        monkeypatch.setattr(folder_module, "_exchange", how)
    fill(tmp_path / "r", "old")
    fill(tmp_path / "r", "new")
    assert content(tmp_path / "r") == "new"
    assert leavings(tmp_path) == []


def test_an_error_in_the_block_keeps_the_earlier_result(tmp_path: Path) -> None:
    fill(tmp_path / "r", "old")
    with pytest.raises(KeyError), new_folder(tmp_path / "r") as tmp:
        (tmp / "half").write_text("x")
        raise KeyError
    assert content(tmp_path / "r") == "old"
    assert leavings(tmp_path) == []


def test_an_error_leaves_no_empty_parent_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyError), new_folder(tmp_path / "a" / "b" / "r"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_somebody_else_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(NpusmithError) as caught:
        fill(tmp_path / "mine")
    assert caught.value.code == "folder-foreign"
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"verdict": "pass"}', '{"made_by": "others 1"}'])
def test_a_result_json_without_our_mark_does_not_make_a_folder_ours(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "result.json").write_text(text)
    with pytest.raises(NpusmithError, match="folder-foreign"):
        fill(tmp_path / "r")


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    fill(tmp_path / "r")
    assert content(tmp_path / "r") == "new"


@pytest.mark.parametrize("kind", ["file", "link", "dead link"])
def test_a_file_or_a_link_in_the_place_of_the_target_is_refused(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "r"
    if kind == "file":
        target.write_text("x")
    else:
        place = tmp_path if kind == "link" else tmp_path / "nowhere"
        target.symlink_to(place)
    with pytest.raises(NpusmithError, match="folder-foreign"):
        fill(target)


def test_a_folder_that_became_foreign_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(NpusmithError, match="folder-foreign"), new_folder(tmp_path / "r") as tmp:
        write_result(tmp, {})
        (tmp_path / "r").mkdir()
        (tmp_path / "r" / "notes").write_text("x")
    assert (tmp_path / "r" / "notes").read_text() == "x"


def test_a_parent_that_is_a_file_is_an_error_with_a_code(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(NpusmithError, match="file-denied"):
        fill(tmp_path / "file" / "r")


@pytest.mark.parametrize("name", ["[ab]*?", "ein wort ö", "-rf"])
def test_odd_names_are_only_names(tmp_path: Path, name: str) -> None:
    fill(tmp_path / name, "old")
    fill(tmp_path / name, "new")
    assert content(tmp_path / name) == "new"


def test_two_writers_of_one_target_do_not_disturb_each_other(tmp_path: Path) -> None:
    with new_folder(tmp_path / "r") as first:
        (first / "a").write_text("first")
        fill(tmp_path / "r", "second")
        assert (first / "a").read_text() == "first"
        assert content(tmp_path / "r") == "second"
        write_result(first, {})
    assert (tmp_path / "r" / "a").read_text() == "first"
    assert leavings(tmp_path) == []


WRITER = """
import sys, time
from pathlib import Path
from npusmith.store.folder import new_folder
from npusmith.store.record import write_result
with new_folder(Path(sys.argv[1])) as tmp:
    write_result(tmp, {"verdict": "half"})
    (tmp / "half").write_text("x")
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_a_writer_that_dies_in_the_middle_leaves_the_earlier_result(
    tmp_path: Path, number: signal.Signals
) -> None:
    fill(tmp_path / "r", "old")
    argv = [sys.executable, "-c", WRITER, str(tmp_path / "r")]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        # A job in the background of a script starts with SIGINT ignored, and would stay so.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as writer:  # fmt: skip
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        writer.send_signal(number)
    assert content(tmp_path / "r") == "old"
    fill(tmp_path / "r", "new")  # sweeps what the dead one left
    assert content(tmp_path / "r") == "new"
    assert leavings(tmp_path) == []


def test_a_writer_killed_between_two_renames_gets_its_old_result_back(tmp_path: Path) -> None:
    fill(tmp_path / "r", "old")
    hidden = tmp_path / ".result-r-abcdefgh"
    hidden.mkdir()
    (tmp_path / "r").rename(hidden / ".npusmith-old")
    with pytest.raises(KeyError), new_folder(tmp_path / "r"):
        raise KeyError
    assert content(tmp_path / "r") == "old"
    assert leavings(tmp_path) == []


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    place = tmp_path / "tiny"
    place.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=256k", "npusmith-test", str(place)]
    mount = shutil.which("mount")
    if mount is None or subprocess.run(argv, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_keeps_the_earlier_result_and_leaves_nothing(tiny: Path) -> None:
    fill(tiny / "r", "old")
    with pytest.raises(NpusmithError) as caught, new_folder(tiny / "r") as tmp:
        write_result(tmp, {"verdict": "pass"})
        (tmp / "big").write_bytes(b"x" * 400_000)
    assert caught.value.code == "disk-full"
    assert content(tiny / "r") == "old"
    assert leavings(tiny) == []


LIMITED = """
import sys
from pathlib import Path
from npusmith.errors import NpusmithError
from npusmith.store.folder import new_folder
try:
    with new_folder(Path(sys.argv[1])) as tmp:
        (tmp / "big").write_bytes(b"x" * 4096)
except NpusmithError as error:
    print(error.code)
"""


def test_a_file_size_limit_counts_as_a_full_disk(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

    argv = [sys.executable, "-c", LIMITED, str(tmp_path / "r")]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        argv, preexec_fn=limit, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "disk-full\n"
    assert list(tmp_path.iterdir()) == []


def test_a_sleeping_writer_is_not_swept(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", WRITER, str(tmp_path / "r")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        fill(tmp_path / "r")
        assert len(leavings(tmp_path)) == 1
        writer.kill()
