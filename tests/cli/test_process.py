"""The program from outside: streams, exit codes and documents, as a shell or a script sees them."""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from npusmith import __version__

COMMAND = [sys.executable, "-m", "npusmith"]


def call(*args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *args],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        cwd=cwd,
        timeout=120,
        check=False,
    )


def test_the_version_is_printed() -> None:
    assert call("--version").stdout == f"npusmith {__version__}\n"


@pytest.mark.parametrize("command", ["generate", "run", "check", "doctor", "docs"])
def test_help_names_every_exit_code(command: str) -> None:
    done = call(command, "--help")
    assert done.returncode == 0
    text = " ".join(done.stdout.split())
    assert "Exit codes: 0 = the candidate passed" in text
    assert "130 = interrupted" in text


def test_help_loads_no_heavy_library() -> None:
    code = (
        "import sys\n"
        "from npusmith.cli.main import call\n"
        "call(['generate', '--help'])\n"
        "heavy = {'torch', 'numpy', 'ml_dtypes', 'jinja2'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("group", [(), ("knowledge",), ("conformance",)])
def test_no_command_prints_help_and_no_error(group: tuple[str, ...]) -> None:
    done = call(*group)
    assert (done.returncode, done.stderr) == (2, "")
    assert "Usage: npusmith" in done.stdout and "Exit codes: 0" in done.stdout


def test_help_shows_the_options_of_models_apart() -> None:
    """Panels of the same terms as the sections of docs/cli.md."""
    text = call("generate", "--help").stdout
    own, model, agent = (text.index(f"─ {name} ─") for name in ("Options", "Model", "Agent"))
    assert own < text.index("--search") < model < text.index("--base-url") < agent
    assert agent < text.index("--rounds")


def test_completion_names_commands_and_chips() -> None:
    def completed(words: str) -> list[str]:
        place = str(len(words.split(" ")) - 1)
        done = call(COMP_WORDS=words, COMP_CWORD=place, _NPUSMITH_COMPLETE="complete_bash")
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    assert completed("npusmith gen") == ["generate"]
    assert "910B4-1" in completed("npusmith generate --chip 910B4")


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (("softmax.py",), "npusmith generate softmax.py"),
        (("kernel.asc",), "npusmith run kernel.asc"),
        (("generate",), "npusmith generate --help"),
        (("knowledge", "shw"), "npusmith knowledge --help"),
    ],
)
def test_a_mistake_gets_the_command_that_was_meant(args: tuple[str, ...], hint: str) -> None:
    done = call(*args)
    assert done.returncode == 2 and f"try: {hint}\n" in done.stderr


@pytest.mark.parametrize(
    ("args", "code", "exit_code"),
    [
        (("generate",), "usage", 2),
        (("nonsense",), "usage", 2),
        (("generate", "x.py", "--bogus"), "usage", 2),
        (("generate", "x.py", "--seed", "-1"), "usage", 2),
        (("generate", "x.py", "--writer", "nobody"), "usage", 2),
        (("check", "x.py", "--chip", "9000"), "chip-unknown", 2),
        (("check", "nowhere.py"), "file-missing", 3),
        (("run", "nowhere", "--task", "nowhere.py"), None, 3),
        (("generate", "nowhere.py"), None, 3),
    ],
)
def test_an_error_is_one_document_and_one_exit_code(
    args: tuple[str, ...], code: str | None, exit_code: int, tmp_path: Path
) -> None:
    done = call(*args, "--json", cwd=tmp_path)
    data = json.loads(done.stdout)
    assert done.returncode == exit_code
    assert data["verdict"] == "error" or data["error"]
    assert code is None or data["error"]["code"] == code
    assert {"verdict", "compiled", "correct", "trials", "findings", "project"} <= set(data)
    plain = call(*args, cwd=tmp_path)
    assert plain.returncode == exit_code
    assert f"error[{data['error']['code']}]" in plain.stderr + plain.stdout
    assert "Traceback" not in plain.stderr
    assert not (tmp_path / "out").exists()


def test_doctor_says_what_is_here_as_text_and_as_data() -> None:
    done = call("doctor", "--json")
    data = json.loads(done.stdout)
    names = [check["name"] for check in data["checks"]]
    assert {"python", "compiler", "torch", "sandbox", "CANN", "NPU device"} <= set(names)
    assert all(check["unlocks"] for check in data["checks"])
    assert data["cache"]["bytes"] >= 0
    assert done.returncode == (0 if data["ready"] else 5)
    text = call("doctor").stdout
    assert all(f"] {name}: " in text for name in names)


def test_doctor_without_a_compiler_says_what_it_would_unlock() -> None:
    done = call("doctor", NPUSMITH_CXX="no-such-compiler")
    assert done.returncode == 5
    assert "[!] compiler: " in done.stdout
    assert "would unlock: the twin" in done.stdout
    assert "This machine cannot generate" in done.stdout


def test_docs_finds_a_stale_page_and_mends_it(tmp_path: Path) -> None:
    assert call("docs", "--out", str(tmp_path)).returncode == 0
    assert call("docs", "--out", str(tmp_path), "--check").returncode == 0
    (tmp_path / "chips.md").write_text("old")
    done = call("docs", "--out", str(tmp_path), "--check", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["stale"] == [str(tmp_path / "chips.md")]
    assert (tmp_path / "chips.md").read_text() == "old"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A quick command line that passes."""
    pages = tmp_path_factory.mktemp("pages")
    assert call("docs", "--out", str(pages)).returncode == 0
    return [*COMMAND, "docs", "--check", "--out", str(pages)]


def test_a_reader_that_goes_away_changes_nothing_but_the_output(fresh: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    for more in ((), ("--json",)):
        done = subprocess.run([*fresh, *more], stdout=writer, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stderr == b""
    os.close(writer)


def test_closed_streams_are_no_crash(fresh: list[str]) -> None:
    for closing in (">&-", "2>&-", ">&- 2>&-"):
        line = f"{shlex.join(fresh)} {closing}"
        done = subprocess.run(["sh", "-c", line], capture_output=True, check=False)
        assert done.returncode == 0, (closing, done.stderr)


def test_a_full_device_behind_stdout_is_an_environment_error(fresh: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(fresh, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 5
    assert b"disk-full" in done.stderr


@pytest.mark.parametrize("more", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colour_only_on_a_terminal_that_wants_it(more: dict[str, str]) -> None:
    outer, inner = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    env.pop("NO_COLOR", None)
    subprocess.run(
        [*COMMAND, "doctor"], stdout=inner, stderr=inner, env={**env, **more}, check=False
    )
    os.close(inner)
    text = b""
    while chunk := read(outer):
        text += chunk
    coloured = b"\x1b[32m" in text
    assert coloured is (not more)


def read(handle: int) -> bytes:
    try:
        return os.read(handle, 4096)
    except OSError:  # the other end of a terminal is closed
        return b""


def test_a_stream_that_knows_ascii_only_is_no_crash(tmp_path: Path) -> None:
    done = call("check", "ö\u2603.py", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 3
    assert "\\u2603" in done.stderr


def _takes_ctrl_c() -> None:
    """A shell's background jobs ignore it, and so does all that they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_a_watched_program_runs_again_when_it_is_saved(tmp_path: Path) -> None:
    source = tmp_path / "small.asc"
    source.write_text("int main() { return 3; }\n")
    with subprocess.Popen(
        [*COMMAND, "run", str(source), "--watch"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, preexec_fn=_takes_ctrl_c,
    ) as program:  # fmt: skip
        assert program.stderr is not None
        next(line for line in program.stderr if "waiting for a change" in line)
        source.write_text("int main() { return 0; }\n")
        next(line for line in program.stderr if "waiting for a change" in line)
        program.send_signal(signal.SIGINT)
        try:
            out, _ = program.communicate(timeout=60)
        finally:
            program.kill()
    assert program.returncode == 130
    words = [line for line in out.splitlines() if line in ("RAN", "FAIL")]
    assert words == ["FAIL", "RAN"]


def test_watching_goes_with_no_document(tmp_path: Path) -> None:
    source = tmp_path / "small.asc"
    source.write_text("int main() { return 0; }\n")
    assert call("run", str(source), "--watch", "--json").returncode == 2
