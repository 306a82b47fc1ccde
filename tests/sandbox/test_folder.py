"""Cleaning up changes nothing outside of its own folder, and no nesting is too deep for it."""

from __future__ import annotations

import ast
import os
import stat
import threading
from pathlib import Path

import pytest

import npusmith
from npusmith.sandbox.folder import (
    ENDLESS,
    files_beneath,
    folder_bytes,
    remove_tree,
    temporary_folder,
)  # fmt: skip

NAME = "d" * 8
DEEP = 6_000  # levels: far beyond recursion, handles and the length of a path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def nest(top: Path, levels: int) -> None:
    """Folders in folders; step by step, since no path reaches the last one."""
    at = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(NAME, dir_fd=at)
        inner = os.open(NAME, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(os.open("last", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)


@pytest.mark.parametrize("levels", [1_000, DEEP])
def test_deeply_nested_folders_are_removed_and_measured(tmp_path, levels):
    folder = tmp_path / "deep"
    folder.mkdir()
    nest(folder, levels)
    assert folder_bytes(folder) == ENDLESS
    assert files_beneath(folder) == []  # none that could be opened by its path
    remove_tree(folder)
    assert not folder.exists()


def test_what_took_away_its_own_permissions_is_removed(tmp_path):
    folder = tmp_path / "folder"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").touch()
    for path in (folder / "a" / "b", folder / "a", folder):
        path.chmod(0)
    remove_tree(folder)
    assert not folder.exists()


def test_the_parent_keeps_its_mode_when_the_folder_vanishes_meanwhile(tmp_path):
    """Two processes clean up at an interrupt: the box's launcher and whoever asked."""
    parent = tmp_path / "T"
    parent.mkdir()
    parent.chmod(0o1777)
    for number in range(20):
        folder = parent / str(number)
        (folder / "x").mkdir(parents=True)
        for name in range(30):
            (folder / "x" / str(name)).touch()
        both = [threading.Thread(target=remove_tree, args=(folder,)) for _ in range(2)]
        for one in both:
            one.start()
        for one in both:
            one.join()
        assert not folder.exists()
    remove_tree(parent / "never there")
    assert mode(parent) == 0o1777


def test_links_and_other_names_of_a_file_keep_their_modes(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    kept = outside / "kept"
    kept.write_text("kept")
    kept.chmod(0o440)
    outside.chmod(0o555)
    folder = tmp_path / "folder"
    (folder / "shut").mkdir(parents=True)
    (folder / "shut" / "soft").symlink_to(kept)
    (folder / "shut" / "dir").symlink_to(outside)
    (folder / "shut" / "hard").hardlink_to(kept)
    (folder / "shut").chmod(0)
    remove_tree(folder)
    assert not folder.exists()
    assert (mode(kept), mode(outside), kept.read_text()) == (0o440, 0o555, "kept")
    assert kept.stat().st_nlink == 1
    outside.chmod(0o755)


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (tmp_path / "folder").symlink_to(outside)
    remove_tree(tmp_path / "folder")
    assert (outside / "kept").exists()


def test_names_that_look_like_ours_are_in_nobody_s_way(tmp_path):
    folder = tmp_path / "folder"
    (folder / "a" / "b" / "c").mkdir(parents=True)
    for number in range(1, 5):
        place = folder / f".removed-{number}"
        place.touch() if number % 2 else (place / "full" / "er").mkdir(parents=True)
    remove_tree(folder)
    assert not folder.exists()


def test_a_temporary_folder_is_gone_after_an_error_too(tmp_path):
    with pytest.raises(KeyError), temporary_folder("x-", within=tmp_path) as folder:
        (folder / "a").mkdir(mode=0)
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_there_is_one_way_to_remove_a_folder():
    """shutil's and tempfile's recurse, follow or chmod what lies outside, by version of Python."""
    root = Path(npusmith.__file__).parent
    found = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if getattr(node, "attr", getattr(node, "id", "")) in ("rmtree", "TemporaryDirectory")
    ]
    assert found == []
