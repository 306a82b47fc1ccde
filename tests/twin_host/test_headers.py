"""Each host-side header compiles alone."""

from __future__ import annotations

import subprocess

from npusmith.twin.toolchain import INCLUDE, LIBRARY, find_compiler

FOLDERS = ("acl", "exe_graph", "graph", "library", "platform", "register", "tiling")


def test_every_host_header_compiles_alone() -> None:
    headers = [str(file) for name in FOLDERS for file in sorted((INCLUDE / name).rglob("*.h"))]
    assert len(headers) > 25
    command = [find_compiler().path, "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    command += ["-Wno-pragma-once-outside-header", "-Wno-unused-parameter"]
    done = subprocess.run(
        [*command, f"-I{INCLUDE}", f"-I{LIBRARY}", "-x", "c++", *headers],
        capture_output=True,
        text=True,
    )
    messages = [line for line in done.stderr.splitlines() if "pragma once in main file" not in line]
    assert not any(": error:" in line for line in messages), done.stderr[:3000]
