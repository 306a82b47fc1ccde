"""A compile reads its own sources: nothing else can be included, and messages show none of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.device.call import read_note
from npusmith.errors import NpusmithError, TwinError
from npusmith.target.chips import Chip
from npusmith.twin import compile
from npusmith.twin.bind import build_binding, compile_binding
from npusmith.twin.direct import build_program
from npusmith.twin.options import BuildOptions
from npusmith.twin.project import beside
from npusmith.twin.toolchain import Compiler, find_toolchain

SECRET = "a line that nobody may see"
MAIN = '#include "acl/acl.h"\n#include "kernel_operator.h"\nint main() { return 0; }\n'


@pytest.fixture(params=["absolute", "relative", "linked"])
def name(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """How a source in `tmp_path`/work names the secret file outside of it."""
    secret = tmp_path / "elsewhere" / "secret.txt"
    secret.parent.mkdir()
    (tmp_path / "work").mkdir()
    secret.write_text(SECRET)
    (tmp_path / "work" / "near.h").symlink_to(secret)
    names = {"absolute": str(secret), "relative": "../elsewhere/secret.txt", "linked": "near.h"}
    return names[request.param]


def told(error: NpusmithError) -> str:
    return str(error) + str(error.record()) + str(getattr(error, "log", ""))


@pytest.mark.parametrize("body", ['#include "{}"\n', 'asm(".incbin \\"{}\\"");\n'])
def test_a_program_cannot_take_in_other_files(
    name: str, tmp_path: Path, chip: Chip, body: str
) -> None:
    file = tmp_path / "work" / "main.asc"
    file.write_text(body.format(name) + MAIN)
    with pytest.raises(TwinError) as caught:
        build_program(file, chip)
    assert caught.value.code == "compile-failed"
    assert SECRET not in told(caught.value)


def test_a_call_graph_and_a_binding_read_what_they_are_told(
    name: str, tmp_path: Path, chip: Chip
) -> None:
    """Both go through compile_units, which has no default for what may be read."""
    file = tmp_path / "work" / "a.cpp"
    file.write_text(f'#include "{name}"\n')
    chain = find_toolchain(chip)
    unit = compile.Unit("a", (chain.compiler.path, "-c", str(file), "-o", str(tmp_path / "a.o")))
    with pytest.raises(compile.diagnose.CompileError) as caught:
        compile.compile_units([unit], tmp_path / "work", tmp_path, (*beside(file), *chain.places))
    assert SECRET not in told(caught.value)


def test_a_binding_cannot_take_in_other_files(name: str, tmp_path: Path) -> None:
    file = tmp_path / "work" / "binding.cpp"
    file.write_text(f'#include "{name}"\n')
    with pytest.raises(compile.diagnose.CompileError) as caught:
        compile_binding({file: file.read_text()}, "m")
    assert SECRET not in told(caught.value)


def test_the_same_binding_elsewhere_is_compiled_once_and_what_it_includes_counts(
    tmp_path: Path,
) -> None:
    text = '#include "../common/far.h"\nconst char *Where() { return __FILE__; }\nint all = kFar;\n'

    def compiled(place: str, far: str) -> Path:
        file = tmp_path / place / "work" / "binding.cpp"
        for folder in (file.parent, tmp_path / place / "common"):
            folder.mkdir(parents=True)
        file.write_text(text)
        (tmp_path / place / "common" / "far.h").write_text(far)
        return compile_binding({file: text}, "m")

    first = compiled("a", "constexpr int kFar = 7;\n")
    assert compiled("b", "constexpr int kFar = 7;\n") == first
    assert str(tmp_path).encode() not in first.read_bytes()
    with pytest.raises(compile.diagnose.CompileError):  # and not what was compiled of the other
        compiled("c", "#error another header\n")


def test_options_reach_a_binding_and_who_calls_its_operators(tmp_path: Path) -> None:
    text = '#include "far.h"\nstatic_assert(kFar == SEVEN);\n'
    file, far = tmp_path / "work" / "binding.cpp", tmp_path / "far"
    for folder in (file.parent, far):
        folder.mkdir()
    file.write_text(text)
    (far / "far.h").write_text("constexpr int kFar = 7;\n")
    options = BuildOptions(include=(far,), define=("SEVEN=7",))
    build_binding([file], {}, tmp_path, "m", options=options)
    assert read_note(tmp_path / "m.json").options == options
    with pytest.raises(TwinError, match="is not a folder"):
        build_binding([file], {}, tmp_path, "m", options=BuildOptions(include=(far / "no",)))


def test_headers_of_the_own_folder_and_those_that_are_named_are_read(
    tmp_path: Path, chip: Chip
) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "common" / "far.h").write_text("constexpr int kFar = 0;\n")
    (tmp_path / "work" / "near.h").write_text("constexpr int kNear = 0;\n")
    file = tmp_path / "work" / "a.cpp"
    file.write_text('#include "../common/far.h"\n#include <near.h>\nint all = kFar + kNear;\n')
    chain = find_toolchain(chip)
    command = (chain.compiler.path, "-I", str(file.parent), "-c", str(file), "-o", "a.o")
    compile.compile_units(
        [compile.Unit("a", command)], file.parent, tmp_path, (*beside(file), *chain.places)
    )
    assert (file.parent / "a.o").exists()


def test_a_compiler_in_the_home_folder_opens_nothing_else_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "g++").touch()
    assert Compiler(str(tmp_path / "bin" / "g++"), "", False).home == tmp_path / "bin"
    assert Compiler("/usr/bin/env", "", False).home == Path("/usr")
