"""Compiling: errors at the user's lines, the cache, and several builds at once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from npusmith.errors import TwinError
from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.twin import CompileError, build, cache, read_project, run, toolchain

F32 = DType.FLOAT32
TYPES = (F32, F32, F32)
Edit = Callable[..., Path]
KERNEL, HOST = "op_kernel/add_custom.cpp", "op_host/add_custom.cpp"


def broken(root: Path, chip: Chip) -> CompileError:
    with pytest.raises(CompileError) as caught:
        build(read_project(root), chip, TYPES)
    return caught.value


def test_a_kernel_error_is_at_the_users_line(edited: Edit, chip: Chip) -> None:
    root = edited("add", {KERNEL: [("Add(z, x, y, n);", "Add(z, x, missing, n);")]})
    error = broken(root, chip)
    assert error.code == "compile-failed"
    assert error.place.file == str(root / KERNEL)
    assert error.place.line == 44
    assert "'missing' was not declared" in error.message
    assert error.record()["log"]


def test_host_and_kernel_errors_come_together(edited: Edit, chip: Chip) -> None:
    root = edited(
        "add",
        {
            KERNEL: [("Add(z, x, y, n);", "Add(z, x, missing, n);")],
            HOST: [("context->SetBlockDim", "context->SetBlocks")],
        },
    )
    error = broken(root, chip)
    assert {Path(row.file).name for row in error.errors} == {"add_custom.cpp"}
    assert {Path(row.file).parent.name for row in error.errors} == {"op_host", "op_kernel"}


def test_an_error_inside_our_headers_is_laid_at_the_users_call(edited: Edit, chip: Chip) -> None:
    root = edited("add", {KERNEL: [("uint32_t length;\n", "uint32_t length;\n  TQue<1, 2> q;\n")]})
    error = broken(root, chip)
    assert error.place.file == str(root / KERNEL)
    assert error.place.line > 0


def test_a_name_that_nobody_defines_is_found_at_link_time(edited: Edit, chip: Chip) -> None:
    root = edited(
        "add",
        {
            KERNEL: [
                ("constexpr int32_t BUFFERS = 2;", "constexpr int32_t BUFFERS = 2;\nint Far(int);"),
                ("op.Process();", "if (Far(core)) op.Process();"),
            ]
        },
    )
    assert "undefined reference to 'Far(int)'" in broken(root, chip).message


def test_differing_tiling_structs_are_an_error_with_both_fields(edited: Edit, chip: Chip) -> None:
    root = edited("scale")
    header = (root / "op_kernel/scale_custom_tiling.h").read_text()
    (root / "op_host/scale_tiling.h").write_text(
        header.replace("uint32_t perCore;\n  uint32_t tile;", "uint32_t tile;\n  uint32_t perCore;")
    )
    host = root / "op_host/scale_custom.cpp"
    host.write_text(
        host.read_text().replace("../op_kernel/scale_custom_tiling.h", "scale_tiling.h")
    )
    with pytest.raises(TwinError) as caught:
        build(read_project(root), chip, TYPES)
    assert caught.value.code == "tiling-mismatch"
    assert "uint32_t tile at byte 8; kernel: uint32_t perCore at byte 8" in caught.value.seen


def test_the_number_of_types_must_fit_the_ports(edited: Edit, chip: Chip) -> None:
    with pytest.raises(TwinError) as caught:
        build(read_project(edited("add")), chip, (F32,))
    assert caught.value.code == "dtypes-mismatch"


def test_a_second_build_compiles_nothing_and_a_changed_header_compiles_again(
    edited: Edit, chip: Chip
) -> None:
    root = edited("add")
    assert not build(read_project(root), chip, TYPES).cached
    assert build(read_project(root), chip, TYPES).cached
    header = root / "op_host/add_custom_tiling.h"
    header.write_text(header.read_text().replace("MAX_CORES = 48", "MAX_CORES = 56"))
    assert not build(read_project(root), chip, TYPES).cached


def test_a_changed_file_outside_of_the_two_folders_compiles_again(edited: Edit, chip: Chip) -> None:
    include = '#include "../common/factor.h"\n#include "kernel_operator.h"'
    root = edited("add", {KERNEL: [('#include "kernel_operator.h"', include)]})
    (root / "common").mkdir()
    (root / "common/factor.h").write_text("constexpr int FACTOR = 1;\n")
    assert not build(read_project(root), chip, TYPES).cached
    assert build(read_project(root), chip, TYPES).cached
    (root / "common/factor.h").write_text("constexpr int FACTOR = 2;\n")
    assert not build(read_project(root), chip, TYPES).cached


def _build_and_run(root: Path, chip: Chip, results: multiprocessing.Queue[bool]) -> None:
    built = build(read_project(root), chip, TYPES)
    x = np.ones(100, np.float32)
    results.put(bool((run(built, [x, x], [(x.shape, F32)]).outputs[0] == 2).all()))


def test_parallel_builds_of_one_project_all_work(edited: Edit, chip: Chip) -> None:
    root = edited("add")
    results: multiprocessing.Queue[bool] = multiprocessing.Queue()
    workers = [
        multiprocessing.Process(target=_build_and_run, args=(root, chip, results)) for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    assert [results.get(timeout=120) for _ in workers] == [True] * 3
    for worker in workers:
        worker.join()


def _make_slowly(folder: Path) -> None:
    (folder / "half").write_text("not whole")
    os.kill(os.getpid(), signal.SIGSTOP)  # until the test kills us here
    sys.exit(1)


def test_a_killed_build_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    target = tmp_path / "thing"
    worker = multiprocessing.Process(target=cache.fetch, args=(target, _make_slowly))
    worker.start()
    while not (target / "half").exists():
        time.sleep(0.01)
    worker.kill()
    worker.join()

    def make(folder: Path) -> None:
        assert not (folder / "half").exists()
        (folder / "whole").touch()

    assert cache.fetch(target, make) is True
    assert cache.fetch(target, make) is False


def test_a_build_that_fails_is_not_kept(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        raise TwinError("toolchain-failed", "no")

    with pytest.raises(TwinError):
        cache.fetch(tmp_path / "thing", fail)
    assert cache.fetch(tmp_path / "thing", lambda folder: None) is True


def test_only_the_entries_used_last_are_kept(tmp_path: Path) -> None:
    for at in range(4):
        cache.fetch(tmp_path / str(at), lambda folder: None)
        os.utime(tmp_path / str(at) / "complete", (at, at))
    (tmp_path / "unfinished").mkdir()
    assert cache.fetch(tmp_path / "0", lambda folder: None) is False  # a use counts
    cache.keep_newest(tmp_path, 2, tmp_path / "1")
    left = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert left == {"0", "1", "3", "unfinished"}


def test_large_entries_go_first_but_for_those_that_may_be_in_use(tmp_path: Path) -> None:
    for at in range(12):
        cache.fetch(tmp_path / str(at), lambda folder: (folder / "data").write_bytes(b"0" * 4096))
        os.utime(tmp_path / str(at) / "complete", (at + 1, at + 1))
    cache.keep_newest(tmp_path, 12, tmp_path / "0", most_bytes=9 * 4096 + 2048)
    left = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert left == {str(at) for at in (0, *range(3, 12))}
    cache.keep_newest(tmp_path, 12, tmp_path / "11", most_bytes=1)
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 8


def test_a_cache_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, chip: Chip
) -> None:
    monkeypatch.setenv("NPUSMITH_CACHE", "/proc/npusmith")
    with pytest.raises(TwinError) as caught:
        build(read_project(Path(__file__).parents[1] / "projects/add"), chip, TYPES)
    assert caught.value.code == "cache-unusable"


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch, chip: Chip) -> None:
    monkeypatch.setenv("NPUSMITH_CXX", "no-such-compiler")
    with pytest.raises(TwinError) as caught:
        build(read_project(Path(__file__).parents[1] / "projects/add"), chip, TYPES)
    assert caught.value.code == "compiler-missing"
    assert "no-such-compiler" in caught.value.seen


def test_a_changed_kernel_leaves_the_compiled_host_side_as_it_is(edited: Edit, chip: Chip) -> None:
    root = edited("add", {})
    first = build(read_project(root), chip, TYPES)
    (root / KERNEL).write_text((root / KERNEL).read_text() + "// changed\n")
    second = build(read_project(root), chip, TYPES)
    assert not second.cached
    assert not (second.folder / "host.log").exists()  # no compiler ran for it
    assert second.host.read_bytes() == first.host.read_bytes()


def test_a_changed_header_of_the_host_side_compiles_it_again(edited: Edit, chip: Chip) -> None:
    root = edited("add", {})
    build(read_project(root), chip, TYPES)
    header = next((root / "op_host").glob("*.h"))
    header.write_text(header.read_text() + "// changed\n")
    again = build(read_project(root), chip, TYPES)
    assert (again.folder / "host.log").exists()


def test_a_first_compile_of_the_runtime_says_that_it_takes_a_while(
    chip: Chip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "c++").write_text("#!/bin/sh\necho 'c++ 99'\n[ $1 = --version ]\n")
    (tmp_path / "c++").chmod(0o700)
    monkeypatch.setenv("NPUSMITH_CXX", str(tmp_path / "c++"))
    monkeypatch.setenv("NPUSMITH_CACHE", str(tmp_path / "cache"))
    with pytest.raises(TwinError) as caught:
        toolchain.find_toolchain(chip)
    assert caught.value.code == "toolchain-failed"
    assert f"compiling the twin for {chip.name}: once for a machine" in caplog.text
