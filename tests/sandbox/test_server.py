"""Launchers are forks of one process: what must not pass from one box to the next, and its end."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import npusmith
from npusmith.sandbox import kernel

SOURCE = str(Path(npusmith.__file__).parents[1])
SERVERS = """
import os, signal, sys
sys.path.insert(0, {source!r})
from pathlib import Path
from npusmith.sandbox.box import Policy, run_boxed

def box(*words):
    policy = Policy(seconds=20, processes=True)
    return run_boxed(words, policy, cwd=Path({folder!r})).stdout.decode().strip()

def children(pid):
    return Path(f"/proc/{{pid}}/task/{{pid}}/children").read_text().split()

"""


def run_script(folder: Path, text: str) -> str:
    """What a process of its own prints, which has no server yet."""
    script = SERVERS.format(source=SOURCE, folder=str(folder)) + text
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_boxes_of_one_process_share_a_server_that_ends_with_it(tmp_path):
    text = (
        "box('true'); first = children(os.getpid());"
        "box('true'); print(first == children(os.getpid()), *first)"
    )
    same, server = run_script(tmp_path, text).split()
    assert same == "True"
    assert not Path(f"/proc/{server}").exists()


def test_a_box_starts_after_the_server_was_killed(tmp_path):
    text = (
        "print(box('echo', 'a')); server = int(children(os.getpid())[0]);"
        "os.kill(server, signal.SIGKILL); os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT);"
        "print(box('echo', 'b'))"
    )
    assert run_script(tmp_path, text).split() == ["a", "b"]


def test_a_forked_process_has_a_server_of_its_own(tmp_path):
    text = """
box('true'); mine = children(os.getpid())
if os.fork() == 0:
    print(box('echo', 'in the fork'), children(os.getpid()) != mine, flush=True)
    os._exit(0)
os.wait()
print(box('echo', 'and outside'))
"""
    assert run_script(tmp_path, text).splitlines() == ["in the fork True", "and outside"]


def test_a_process_may_borrow_the_servers_of_the_one_that_started_it(tmp_path):
    text = """
import subprocess
from npusmith.sandbox import server
box('true'); first = children(os.getpid())
handles, words = server.lend()
theirs = '''
import os, sys
sys.path.insert(0, sys.argv[1])
from npusmith.sandbox import server
server.borrow(sys.argv[2])
exec(sys.argv[3])
print(box('echo', 'lent'), children(os.getpid()))
'''
command = [sys.executable, '-c', theirs, sys.path[0], words, {helpers!r}]
print(subprocess.run(command, pass_fds=handles, capture_output=True, text=True).stdout.strip())
print(box('echo', 'own'), children(os.getpid()) == first)
"""
    helpers = SERVERS.format(source=SOURCE, folder=str(tmp_path))
    said = run_script(tmp_path, text.replace("{helpers!r}", repr(helpers)))
    assert said.splitlines() == ["lent []", "own True"]


def test_boxes_of_several_threads_keep_their_pipes_apart(boxed):
    with ThreadPoolExecutor(6) as pool:
        said = list(pool.map(lambda n: boxed(f"print({n})").stdout, range(18)))
    assert said == [b"%d\n" % n for n in range(18)]


def test_a_box_sees_nothing_of_the_one_before(boxed):
    boxed("import os, resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); os.umask(0)")
    left = boxed(
        "import os, resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 64,"
        "os.umask(0o22) == 0o22, os.getsid(0) == os.getpid(), sorted(os.listdir('/proc/self/fd')))"
    )
    assert left.stdout.split()[:3] == [b"True", b"True", b"True"], left.stderr
    # the listing opens one itself
    assert left.stdout.split(None, 3)[3].strip() == b"['0', '1', '2', '3']"


def test_the_path_that_may_be_executed_lies_elsewhere_in_every_launcher():
    found = set()
    for _ in range(4):
        reader, writer = os.pipe()
        if (child := os.fork()) == 0:
            at = kernel.put_somewhere(b"/bin/true")
            whole = ctypes.string_at(at) == b"/bin/true"
            os.write(writer, str(at if whole else 0).encode())
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        found.add(int(os.read(reader, 32)))
        os.close(reader)
        os.close(writer)
    assert len(found) == 4 and min(found) > 1 << 12
