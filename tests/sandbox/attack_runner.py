"""Run the attacks as whoever starts this, and say on stdout which came through: one JSON document.

Started as a script, also as another user: it needs npusmith's sandbox and the standard
library only.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from attacks import ASKS, ATTACKS, BOXES, CHANGES, READS, SET_ID, WRITES

from npusmith.sandbox.box import Policy, run_boxed
from npusmith.sandbox.probe import LAYERS
from npusmith.sandbox.seccomp import ARCHES, NUMBERS
from npusmith.sandbox.server import PythonModule

PYTHON = str(Path("/proc/self/exe").resolve())
SECRET = "npusmith-secret-7183"
SPACES = tuple(name for name in LAYERS if name not in ("landlock", "seccomp"))
WITHOUT = {
    "n": ("landlock", "seccomp"),
    "l": (*SPACES, "seccomp"),
    "s": (*SPACES, "landlock"),
}
# Runs in the box: each text by itself, then a line with what became of it.
INSIDE = """
import ctypes, fcntl, json, mmap, os, resource, signal, socket, subprocess, sys
facts = json.loads(sys.stdin.read())
victim, mine, home, pid, port, abstract = (
    facts[name] for name in ("victim", "mine", "home", "pid", "port", "abstract"))
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def b(text):
    return ctypes.c_char_p(os.fsencode(text))
def number(value, *args):
    ready = [ctypes.c_long(x) if isinstance(x, int) else x for x in args]
    result = libc.syscall(ctypes.c_long(value), *ready)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def call(name, *args):
    value = facts["numbers"].get(name, {"inotify_init1": facts["inotify"][0],
        "inotify_add_watch": facts["inotify"][1], "renameat2": facts["rename"]}.get(name, -1))
    if value < 0:
        raise OSError("this machine has no such call")
    return number(value, *args)
def door(name):
    try:
        call(name, -1, -1, -1, -1, -1)
    except OSError as error:
        return error.errno not in (1, 38, None)  # EPERM, ENOSYS
    return True
def future():
    try:
        return number(facts["future"], -1, 0, 0, 0) + 1
    except OSError as error:
        return error.errno != 38
def x32():
    try:
        return number(0x40000000 | 39) + 1
    except OSError as error:
        return error.errno not in (1, 38)
def peek(pid):
    there = (ctypes.c_ulong * 2)(4096, 8)
    buffer = ctypes.create_string_buffer(8)
    here = (ctypes.c_ulong * 2)(ctypes.addressof(buffer), 8)
    try:
        return call("process_vm_readv", pid, here, 1, there, 1, 0) + 1
    except OSError as error:
        return error.errno == 14  # it looked, and there was nothing at that address
def by_number(path):
    handle = ctypes.create_string_buffer((128).to_bytes(4, "little") + bytes(140))
    number(facts["handle"], -100, b(path), handle, ctypes.byref(ctypes.c_int()), 0)
    top = os.open("/", os.O_RDONLY)
    return call("open_by_handle_at", top, handle, 0) + 1
for name, text in facts["attacks"]:
    here = dict(globals(), got=None)
    try:
        exec(text, here)
        said = f"through: {here['got']!r:.60}" if here["got"] else "empty"
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
    for fd in range(3, 300):
        try:
            os.close(fd)
        except OSError:
            pass
    print(json.dumps([name, said]), flush=True)
os.write(1, b'["end", "end"]\\n')
"""
PATHS = {"x86_64": ((294, 254), 303, 316), "aarch64": ((26, 27), 264, 276)}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="npusmith-attacks-") as name:
        folder = Path(name).resolve()
        marker = Path("/tmp", f"npusmith-outside-{os.getpid()}")
        marker.touch()
        print(json.dumps({box: attack(folder, box) for box in BOXES}))
        marker.unlink(missing_ok=True)


def attack(folder: Path, box: str) -> dict[str, Any]:
    """Every attack of one box; what came of each, and whether the outside is as it was."""
    place = folder / box
    victim, mine = make_victim(place), place / "mine"
    mine.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as tcp, bystander() as process:
        own, hidden, name = listeners(victim, tcp)
        facts = describe(victim, mine, process.pid, tcp.getsockname()[1], name)
        facts["attacks"] = [(row.name, row.text) for row in ATTACKS if box in row.boxes]
        before = fingerprint(victim, process.pid)
        said, missing = run(box, mine, facts)
        after = fingerprint(victim, process.pid)
        alive = process.poll() is None
        own.close()
        hidden.close()
        process.kill()
    set_id = [path.name for path in mine.rglob("*") if path.lstat().st_mode & 0o6000]
    return {
        "said": said, "missing": missing, "alive": alive, "set_id": set_id,
        "changed": [[a, b] for a, b in zip(before, after, strict=False) if a != b]
        + ([] if len(before) == len(after) else [[len(before), len(after)]]),
    }  # fmt: skip


def run(box: str, mine: Path, facts: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
    homes = (Path(sys.prefix), Path(sys.base_prefix))
    policy = Policy(
        write=(mine,), read=None if box == "w" else homes, seconds=60, memory_bytes=512 << 20,
        file_bytes=64 << 20, processes=box == "p",
    )  # fmt: skip
    work = [PYTHON, "-I", "-S", "-B", "-c", INSIDE]
    if box == "m":
        (mine / "attack_inside.py").write_text(f"def main():\n    exec({INSIDE!r}, {{}})\n")
        work = PythonModule("attack_inside", "json", (str(mine),))
    boxed = run_boxed(
        work, policy, stdin=json.dumps(facts).encode(), cwd=mine, without=WITHOUT.get(box, ()),
    )  # fmt: skip
    said = {}
    for line in boxed.stdout.decode(errors="replace").splitlines():
        name, what = json.loads(line) if line.startswith("[") else ("exec", f"through: {line}")
        said[name] = what
    if said.pop("end", "") != "end":
        said["harness"] = f"through: it ended early: {boxed.returncode} {boxed.stderr[-500:]!r}"
    return said, list(boxed.missing)


def unboxed() -> dict[str, str]:
    """The attacks on files and on the bystander without any box, each on a fresh victim."""
    harmless = {**CHANGES, **READS, **ASKS, **SET_ID, **WRITES}
    system = ("write-", "kernel-", "memory-", "badness-", "list-", "read-", "terminal", "by-root-")
    names = [name for name in harmless if not name.startswith(system) or name == "write-file"]
    said = {}
    with tempfile.TemporaryDirectory(prefix="npusmith-attacks-") as folder, bystander() as process:
        for name in names:
            victim, mine = make_victim(Path(folder, name)), Path(folder, name, "mine")
            mine.mkdir()
            facts = describe(victim, mine, process.pid, 0, "")
            facts["attacks"] = [(name, harmless[name])]
            done = subprocess.run(
                [PYTHON, "-I", "-S", "-B", "-c", INSIDE], cwd=mine, check=False,
                input=json.dumps(facts), text=True, capture_output=True,
            )  # fmt: skip
            said[name] = json.loads((done.stdout or '["", ""]').splitlines()[0])[1] or done.stderr
        process.kill()
    return said


def make_victim(place: Path) -> Path:
    victim = place / "victim"
    (victim / "sub").mkdir(parents=True)
    (victim / "file").write_text("file\n")
    (victim / "secret").write_text(SECRET)
    (victim / "victim_module.py").write_text("here = 1\n")
    (victim / "soft").symlink_to(victim / "file")
    libraries = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
    (victim / "lib.so").write_bytes(Path(next(x for x in libraries if "libm" in x)).read_bytes())
    try:
        os.setxattr(victim / "file", "user.kept", b"1")
    except OSError:
        print("no attributes on this file system", file=sys.stderr)
    return victim


def bystander() -> subprocess.Popen[bytes]:
    text = "import time; time.sleep(600); 'npusmith-bystander'"
    return subprocess.Popen([PYTHON, "-I", "-S", "-c", text], start_new_session=True)


def listeners(victim: Path, tcp: socket.socket) -> tuple[socket.socket, socket.socket, str]:
    name = f"npusmith-attacks-{os.getpid()}-{tcp.getsockname()[1]}"
    own, hidden = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    own.bind(str(victim / "own.sock"))
    hidden.bind("\0" + name)
    for item in (own, hidden):
        item.listen(64)
    return own, hidden, name


def describe(victim: Path, mine: Path, pid: int, port: int, abstract: str) -> dict[str, Any]:
    machine = os.uname().machine
    inotify, handle, rename = PATHS[machine]
    column = ARCHES[machine].column
    return {
        "victim": str(victim), "mine": str(mine), "home": str(Path.home()), "pid": pid,
        "port": port, "abstract": abstract, "inotify": inotify, "handle": handle,
        "rename": rename, "future": 470,
        "numbers": {name: row[column] for name, row in NUMBERS.items()},
    }  # fmt: skip


def fingerprint(victim: Path, pid: int) -> list[list[Any]]:
    """All that an attack may have changed outside."""
    facts: list[list[Any]] = []
    for path in sorted([victim, *victim.rglob("*"), *victim.parent.iterdir()]):
        info = path.lstat()
        kept = [info.st_mode, info.st_uid, info.st_gid, info.st_nlink, info.st_mtime_ns]
        if path.name == "mine":
            kept = kept[:3]
        extra = [] if path.is_symlink() else sorted(os.listxattr(path))
        body = path.read_bytes().hex()[:64] if path.is_file() else ""
        facts.append([str(path), *kept, extra, body])
    limits = Path(f"/proc/{pid}/limits").read_text()
    facts.append([os.getpriority(os.PRIO_PROCESS, pid), os.getpriority(os.PRIO_PROCESS, 0)])
    facts.append([sorted(os.sched_getaffinity(pid)), os.sched_getscheduler(pid), limits])
    for place in ("/tmp", "/var/tmp", "/dev/shm", "/etc", "/usr", str(Path.home())):
        facts.append([place, Path(place, "npusmith-attack").exists()])
        facts.append([place, Path(place).stat().st_mode])
    return facts


if __name__ == "__main__":
    main()
