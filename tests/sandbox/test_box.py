"""What a boxed program gets, and what it does not get."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from npusmith.errors import SandboxError
from npusmith.sandbox.box import OUTPUT_BYTES, Policy, run_boxed
from npusmith.sandbox.probe import LAYERS, probe

FACTS = probe()
# Not there at all, there but not to be changed, or forbidden: by the layer that is met first.
REFUSALS = (b"FileNotFoundError", b"Read-only file system", b"PermissionError")


def refused(text: bytes) -> bool:
    return any(word in text for word in REFUSALS)


def needs(*layers: str) -> pytest.MarkDecorator:
    lacking = [layer for layer in layers if not FACTS.get(layer)]
    return pytest.mark.skipif(bool(lacking), reason=f"this machine lacks {lacking}")


def test_the_answer_and_the_exit_code_come_back(boxed):
    result = boxed("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (result.returncode, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
    assert not result.ok and not result.timed_out and not result.out_of_memory
    assert result.peak_bytes > 1 << 20 and result.seconds > 0


def test_input_larger_than_a_pipe_arrives_whole(boxed):
    result = boxed("import sys; print(len(sys.stdin.buffer.read()))", stdin=b"x" * 3_000_000)
    assert result.stdout == b"3000000\n"


def test_a_program_that_ignores_its_input_does_not_hang(boxed):
    assert boxed("print(1)", stdin=b"x" * 3_000_000).stdout == b"1\n"


def test_a_flood_of_output_is_cut_in_the_middle(boxed):
    result = boxed("print('first'); print('x' * 5_000_000); print('last')")
    assert result.ok
    assert result.stdout.startswith(b"first") and result.stdout.endswith(b"last\n")
    assert OUTPUT_BYTES <= len(result.stdout) < OUTPUT_BYTES + 100
    assert b"bytes dropped" in result.stdout


def test_the_environment_is_clean(boxed, monkeypatch):
    monkeypatch.setenv("MODEL_API_KEY", "secret")
    result = boxed("import os; print(sorted(os.environ))", env={"EXTRA": "1"})
    names = set(eval(result.stdout))
    assert "MODEL_API_KEY" not in names
    assert {"PATH", "HOME", "TMPDIR", "LANG", "EXTRA"} <= names


@needs("landlock")
def test_the_environment_of_other_processes_cannot_be_read(boxed):
    result = boxed(f"open('/proc/{__import__('os').getpid()}/environ').read()")
    assert result.returncode == 1 and refused(result.stderr)


def test_the_private_folder_is_writable_and_then_gone(boxed):
    result = boxed(
        "import os, tempfile; f = tempfile.mkdtemp(); open(f + '/a', 'w').write('a');"
        "os.chmod(f, 0); print(os.environ['HOME'])"
    )
    assert result.ok, result.stderr
    assert not Path(result.stdout.decode().strip()).exists()


def test_a_named_folder_is_writable(boxed, tmp_path):
    assert boxed("open('made', 'w').write('yes'); import os; os.rename('made', 'moved')").ok
    assert (tmp_path / "moved").read_text() == "yes"


@needs("landlock")
def test_writing_elsewhere_is_denied_with_its_line(boxed):
    outside = Path(tempfile.gettempdir()) / f"npusmith-elsewhere-{os.getpid()}"
    result = boxed(f"x = 1\nopen({str(outside)!r}, 'w')")
    assert b"line 2" in result.stderr and refused(result.stderr)
    assert not outside.exists()


@needs("landlock")
def test_a_file_outside_cannot_be_removed_or_linked(boxed, tmp_path):
    outside = tempfile.NamedTemporaryFile()  # noqa: SIM115 - closed by the test's end
    for call in (f"os.unlink({outside.name!r})", f"os.link({outside.name!r}, 'copy')"):
        result = boxed(f"import os; {call}")
        assert result.returncode == 1
        assert refused(result.stderr) or b"cross-device link" in result.stderr
    assert Path(outside.name).exists() and not (tmp_path / "copy").exists()


@needs("landlock")
def test_reading_can_be_limited_to_what_is_named(boxed, tmp_path_factory):
    secret = tmp_path_factory.mktemp("elsewhere") / "key"
    secret.write_text("secret")
    homes = (Path(sys.prefix), Path(sys.base_prefix))
    text = f"print(open({str(secret)!r}).read())"
    assert boxed(text).stdout == b"secret\n"
    assert refused(boxed(text, read=homes).stderr)
    assert boxed(text, read=(*homes, secret)).stdout == b"secret\n"
    accounts = "print(len(open('/etc/group').read()) > 0)"
    assert boxed(accounts).stdout == b"True\n"
    assert refused(boxed(accounts, read=homes).stderr)


@needs("seccomp")
@pytest.mark.parametrize(
    "call",
    [
        "import os; os.fork()",
        "import os; os.posix_spawn('/bin/true', ['true'], {})",
        "import subprocess; subprocess.run(['/bin/true'])",
        "import os; os.execv('/bin/true', ['true'])",
        "import os; os.kill(os.getppid(), 9)",
        "import os; os.kill(-1, 9)",
        "import socket; socket.socket()",
        "import socket; socket.socket(socket.AF_UNIX)",
        "import socket; socket.create_connection(('127.0.0.1', 9))",
    ],
)
def test_a_denied_call_is_a_permission_error(boxed, call):
    result = boxed(call)
    assert result.returncode == 1
    assert b"PermissionError" in result.stderr


@needs("seccomp")
@pytest.mark.parametrize("name", ["ptrace", "unshare", "bpf", "keyctl", "mount", "io_uring_setup"])
def test_kernel_doors_stay_shut_even_where_processes_are_allowed(boxed, name):
    from npusmith.sandbox.seccomp import ARCHES, NUMBERS

    number = NUMBERS[name][ARCHES[str(FACTS["machine"])].column]
    result = boxed(
        f"import ctypes; c = ctypes.CDLL(None, use_errno=True); c.syscall({number}, 0, 0, 0, 0, 0);"
        "print(ctypes.get_errno())",
        processes=True,
    )
    assert result.stdout == b"1\n", result.stderr  # EPERM


def test_threads_are_allowed(boxed):
    result = boxed(
        "import threading as t; a = t.Thread(target=print, args=(1,)); a.start(); a.join()"
    )
    assert result.stdout == b"1\n"


def test_a_program_can_end_itself_by_a_signal(boxed):
    result = boxed("import os; os.abort()")
    assert result.returncode == -signal.SIGABRT and result.signal == signal.SIGABRT


def test_processes_are_allowed_on_request(boxed):
    text = "import subprocess; print(subprocess.run(['echo', 'hi'], capture_output=True).stdout)"
    assert boxed(text, processes=True).stdout == b"b'hi\\n'\n"


def test_time_is_limited(boxed):
    result = boxed("import time; time.sleep(600)", seconds=0.3)
    assert result.timed_out and not result.ok and result.returncode != 0


@pytest.mark.parametrize(
    "text", ["a = bytearray(8 << 30)", "a = []\nwhile 1: a.append('x' * 10**7)"]
)
def test_memory_is_limited(boxed, text):
    result = boxed(text, memory_bytes=256 << 20)
    assert result.out_of_memory and not result.timed_out and not result.ok


def test_what_ended_in_time_is_not_late_because_a_tick_took_long(boxed, monkeypatch):
    """A writer is told of a graph by a tick, and may take minutes while the references are made."""
    monkeypatch.setattr("npusmith.sandbox.box.GRACE_SECONDS", 0.1)
    ticks = []

    def tick():
        ticks.append(time.monotonic())
        if ticks[-1] > ticks[0] + 0.3 and len(ticks) < 100:  # it has its orders by now
            ticks.extend([ticks[0]] * 100)
            time.sleep(2.5)

    result = boxed("import time; time.sleep(0.5); print('done')", seconds=2.0, tick=tick)
    assert (result.stdout, result.timed_out, len(ticks) > 100) == (b"done\n", False, True)
    ticks.clear()
    assert boxed("import time; time.sleep(60)", seconds=1.0, tick=tick).timed_out


def test_file_size_is_limited(boxed, tmp_path):
    result = boxed("open('big', 'wb').write(b'x' * 3_000_000)", file_bytes=1_000_000)
    assert b"File too large" in result.stderr
    assert (tmp_path / "big").stat().st_size <= 1_000_000


def test_nothing_that_was_started_stays_behind(boxed):
    text = "import subprocess as s; s.Popen('setsid sleep 7654.321 & sleep 7654.321 &', shell=True)"
    assert boxed(text, processes=True).ok
    assert boxed(text + "; import time; time.sleep(60)", processes=True, seconds=0.5).timed_out
    assert not sleepers("7654.321")


def sleepers(mark: str) -> list[str]:
    """Processes that have `mark` in their command line."""
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in found.stdout.splitlines() if f"sleep {mark}" in line]


def test_a_missing_program_and_a_missing_folder_are_told_apart(tmp_path):
    with pytest.raises(SandboxError) as caught:
        run_boxed(["no-such-program"], Policy(), cwd=tmp_path)
    assert caught.value.code == "sandbox-program"
    with pytest.raises(SandboxError) as caught:
        run_boxed(["true"], Policy(write=(tmp_path / "none",)), cwd=tmp_path)
    assert caught.value.code == "sandbox-folder"


def test_a_file_that_is_no_program_is_an_error(tmp_path):
    fake = tmp_path / "fake"
    fake.write_bytes(b"\x7fELF nothing")
    fake.chmod(0o755)
    with pytest.raises(SandboxError) as caught:
        run_boxed([fake], Policy(), cwd=tmp_path)
    assert caught.value.code == "sandbox-start"


def test_the_probe_names_every_layer():
    assert FACTS["starts"] is True
    assert set(LAYERS) <= set(FACTS)
