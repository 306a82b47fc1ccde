"""The launcher: builds the box from inside and starts the program in it. Standard library only.

`serve` forks a launcher for each box that is asked for, and sees nothing but the handles of its
pipes. Three processes make a box: the launcher enters new namespaces; its child is process 1 of the
new process namespace, makes the file tree, keeps the clock and reaps; its grandchild puts on
Landlock, limits and the system-call filter and becomes the program, or calls main() of a module of
ours. When process 1 ends the kernel kills all that is left.
Orders come in on one pipe, whose end of file means that whoever gave them is gone; the report goes
out on another as lines: "launcher PID", "missing LAYER", "failed TEXT", "timeout",
"end CODE PEAK_BYTES". A third pipe is held by the launcher alone and ends with it.
"""

from __future__ import annotations

import ctypes
import importlib
import marshal
import os
import resource
import select
import socket
import sys
import time
from typing import Any, NoReturn

from npusmith.sandbox import kernel, landlock, mounts, seccomp

_SIGKILL, _SIGPIPE, _SIGXFSZ = 9, 13, 25
_LIBRARY_BYTES = 4 << 30  # address space above the memory limit: mapped files and reservations
_OPEN_FILES = 1024
_THREADS = 512
_NOWHERE = 0  # the address of a path that nothing can be started from
STDIN, STDOUT, STDERR, ORDERS, REPORT, END = HANDLES = tuple(range(6))  # the pipes of a box
_TICK_MS = 20  # how often process 1 looks for dead children where pidfd is not available

SPACES = (
    ("user-namespace", kernel.CLONE_NEWUSER),
    ("network-namespace", kernel.CLONE_NEWNET),
    ("pid-namespace", kernel.CLONE_NEWPID),
    ("ipc-namespace", kernel.CLONE_NEWIPC),
)


class Report:
    """The pipe back to whoever gave the orders; the program never holds it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        os.set_inheritable(fd, False)

    def line(self, *words: object) -> None:
        text = " ".join(str(word) for word in words).replace("\n", " ") + "\n"
        os.write(self.fd, text.encode())


def serve() -> NoReturn:
    """Called as `serve SRC SOCKET_FD [PRELOAD PATH...]`: a launcher for each message, until whoever
    asks is gone. The module PRELOAD is imported before the first one."""
    asker = socket.socket(fileno=int(sys.argv[2]))
    asker.set_inheritable(False)
    if sys.argv[3:]:
        _preload(*sys.argv[3:])
    while True:
        _, handles, _, _ = socket.recv_fds(asker, 1, len(HANDLES))
        for handle in handles:
            os.set_inheritable(handle, False)  # recv_fds does not, whatever its flags say
        if len(handles) < len(HANDLES):
            _reap(0)  # whoever counts our time counts theirs
            os._exit(0)
        if os.fork() == 0:
            asker.close()
            _launch(handles)
        for handle in handles:
            os.close(handle)
        _reap(os.WNOHANG)


def _reap(how: int) -> None:
    """Take leave of the launchers: of those that have ended, or of all."""
    try:
        while os.waitpid(-1, how)[0]:
            pass
    except ChildProcessError:
        return


def _preload(module: str, *paths: str) -> None:
    """Import what the modules of all boxes need; where that fails, each says so itself."""
    import contextlib
    import gc

    sys.path += paths
    gc.disable()
    with contextlib.suppress(Exception):
        importlib.import_module(module)
    gc.freeze()  # what is shared is not to be copied
    gc.enable()


def _launch(handles: list[int]) -> NoReturn:
    """In a process and a session of its own."""
    report = Report(handles[REPORT])
    try:
        os.setsid()
        for target in (STDIN, STDOUT, STDERR):
            os.dup2(handles[target], target)
            os.close(handles[target])
        launch(handles[ORDERS], report, handles[END])
    except OSError as error:
        report.line("failed", f"the launcher: {error}")
    finally:
        os._exit(0)


def launch(orders_fd: int, report: Report, end_fd: int) -> None:
    """Make one box, and wait until it is empty."""
    report.line("launcher", os.getpid())
    orders = _read_orders(orders_fd)
    if orders is None:
        return
    spaces = _enter_spaces(report, orders["without"])
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # the program may not look into us or process 1
    keeper = os.fork()
    if keeper == 0:
        os.close(end_fd)
        _keep(orders, orders_fd, report, spaces)
    os.close(report.fd)
    os.waitpid(keeper, 0)
    if select.select([orders_fd], [], [], 0)[0]:  # whoever asked is gone and cannot clean up
        from npusmith.sandbox.folder import remove_tree

        remove_tree(orders["home"])


def _read_orders(fd: int) -> dict[str, Any] | None:
    """The orders arrive as one marshalled record; the pipe then stays open and silent."""
    data = b""
    while chunk := os.read(fd, 1 << 16):
        data += chunk
        try:
            orders: dict[str, Any] = marshal.loads(data)
        except (EOFError, ValueError):
            continue
        return orders
    return None


def _enter_spaces(report: Report, without: list[str]) -> int:
    """Enter every namespace that can be had; gives the flags of those entered."""
    user, group = os.geteuid(), os.getegid()  # afterwards both read as "nobody" until mapped
    entered = 0
    for name, flag in SPACES:
        try:
            if name in without:
                raise OSError("left out")
            kernel.unshare(flag)
            if flag == kernel.CLONE_NEWUSER:
                _map_user(user, group)
            entered |= flag
        except OSError:
            report.line("missing", name)
    return entered


def _map_user(user: int, group: int) -> None:
    """Inside, the user is the same as outside, and nobody else exists."""
    rows = (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    )
    for name, text in rows:
        fd = os.open(f"/proc/self/{name}", os.O_WRONLY)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


def _keep(orders: dict[str, Any], orders_fd: int, report: Report, spaces: int) -> NoReturn:
    """Process 1: start the program, wait for it, the clock, or the end of whoever asked."""
    code = 1
    try:
        if spaces & kernel.CLONE_NEWPID:  # elsewhere dying at once would leave descendants behind
            kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        deadline = time.monotonic() + orders["seconds"]
        tree, alone = _enter_tree(orders, report, spaces)
        program = os.fork()
        if program == 0:
            _become(orders, report, spaces, tree, alone)
        _close_output()
        code = _watch(program, orders_fd, report, deadline)
        if not spaces & kernel.CLONE_NEWPID:
            _kill_descendants()
    finally:
        os._exit(code)


def _enter_tree(orders: dict[str, Any], report: Report, spaces: int) -> tuple[bool, bool]:
    """Enter a file tree of the box's own: was it to be had, and has it a /proc of its own?"""
    read = orders["read"]
    alone = bool(spaces & kernel.CLONE_NEWPID)
    tree = own = False
    try:
        if "mount-namespace" in orders["without"]:
            raise OSError("left out")
        places = [*landlock.SYSTEM, *(read or ())]
        devices = landlock.DEVICES
        own = mounts.enter(
            orders["home"], orders["write"], places, devices, whole=read is None, alone=alone,
            trace=orders["trace"],
        )  # fmt: skip
        tree = True
    except OSError:
        report.line("missing", "mount-namespace")
    if not own:
        report.line("missing", "private-proc")
    return tree, own


def _close_output() -> None:
    """Only the program holds the output pipes, so that their end means its end."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def _watch(program: int, orders_fd: int, report: Report, deadline: float) -> int:
    poller = select.poll()
    poller.register(orders_fd, select.POLLIN)  # readable only at its end of file
    tick = _TICK_MS
    if (alarm := _pidfd(program)) is not None:
        poller.register(alarm, select.POLLIN)
        tick = 60_000
    while True:
        left = deadline - time.monotonic()
        ready = [fd for fd, _ in poller.poll(min(tick, max(0, int(left * 1000) + 1)))]
        if _reaped(program, report):
            return 0
        if orders_fd in ready:
            return 0
        if time.monotonic() >= deadline:
            report.line("timeout")
            return 0


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _reaped(program: int, report: Report) -> bool:
    """Reap what has ended; True and a report when it was the program itself."""
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return False
        if pid == program:
            code = os.waitstatus_to_exitcode(status)
            report.line("end", code, usage.ru_maxrss * 1024)
            return True


def _kill_descendants() -> None:
    """Without a process namespace: orphans come to us, so kill children until there are none."""
    while True:
        for pid in _children():
            _kill(pid)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _kill(pid: int) -> None:
    try:
        os.kill(pid, _SIGKILL)
    except ProcessLookupError:
        return  # it ended meanwhile


def _children() -> list[int]:
    """Our children by /proc, which may have been mounted in an outer process namespace."""
    me = os.readlink("/proc/self")  # noqa: PTH115 - pathlib costs the launcher 5 ms
    names = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    facts = [_status(name) for name in names]
    own = [item for item in facts if item.get(b"PPid") == [os.fsencode(me)]]
    # NSpid lists a process' number in each namespace; the last one is ours.
    return [int((item.get(b"NSpid") or item[b"Pid"])[-1]) for item in own]


def _status(name: str) -> dict[bytes, list[bytes]]:
    try:
        with open(f"/proc/{name}/status", "rb") as file:  # noqa: PTH123
            rows = [line.partition(b":") for line in file]
    except OSError:
        return {}  # it ended meanwhile
    return {row[0]: row[2].split() for row in rows}


def _become(
    orders: dict[str, Any], report: Report, spaces: int, tree: bool, alone: bool
) -> NoReturn:
    """Put on every layer, then turn into the program, or call the module."""
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
        os.setsid()
        os.chdir(orders["cwd"])
        _set_limits(orders, spaces)
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        kernel.drop_capabilities()
        # where others' processes have names, a tracer could take hold of those
        trace = orders["trace"] and alone
        settings = {name: orders[name] for name in ("write", "read", "network")}
        settings |= {"alone": alone, "trace": trace}
        _layer(report, "landlock", landlock.restrict, settings, orders)
        rules = {name: orders[name] for name in ("processes", "network")}
        rules |= {"pid": os.getpid(), "tree": tree, "trace": trace}
        if orders["module"]:
            _layer(report, "seccomp", seccomp.load, {**rules, "path_at": _NOWHERE}, orders)
            _call(orders["module"], orders["env"])
        path_at = kernel.put_somewhere(os.fsencode(orders["program"]))
        argv, env = _vector(orders["argv"]), _vector([f"{k}={v}" for k, v in orders["env"].items()])
        _default_signals()
        _layer(report, "seccomp", seccomp.load, {**rules, "path_at": path_at}, orders)
        kernel.libc.execve(ctypes.c_void_p(path_at), argv, env)
        report.line("failed", f"{orders['program']}: {os.strerror(ctypes.get_errno())}")
    except BaseException as error:
        report.line("failed", f"{type(error).__name__}: {error}")
    finally:
        os._exit(127)


def _call(module: str, env: dict[str, str]) -> NoReturn:
    """As a new Python that has what the server has loaded: import the module, call its main()."""
    code = 1
    try:
        os.closerange(3, _OPEN_FILES)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # as an exec does
        os.environ.clear()
        os.environ.update(env)
        sys.argv[1:] = []
        _start_anew()
        code = _ended(module)
    finally:
        os._exit(code)


def _start_anew() -> None:
    """What a process draws or looks up once, and forks of one process would share."""
    for name in ("random", "numpy.random"):
        if name in sys.modules:
            sys.modules[name].seed()
    if "tempfile" in sys.modules:
        sys.modules["tempfile"].__dict__["tempdir"] = None


def _ended(module: str) -> int:
    """The exit code of a Python whose main program is main() of that module."""
    code: object = 0
    try:
        importlib.import_module(module).main()
    except SystemExit as error:
        code = error.code
    except BaseException:
        import traceback

        code = traceback.format_exc().rstrip()
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # nobody listens, or the work has closed it
            continue
    return (code or 0) & 0xFF


def _layer(
    report: Report, name: str, put_on: Any, settings: dict[str, Any], orders: dict[str, Any]
) -> None:
    try:
        if name in orders["without"]:
            raise OSError("left out")
        put_on(**settings)
    except OSError:
        report.line("missing", name)


def _vector(words: list[str]) -> Any:
    encoded = [os.fsencode(word) for word in words]
    return (ctypes.c_char_p * (len(words) + 1))(*encoded, None)


def _set_limits(orders: dict[str, Any], spaces: int) -> None:
    cpu = int(orders["seconds"] * (os.cpu_count() or 1)) + 5
    limits = {
        resource.RLIMIT_DATA: orders["memory"],
        resource.RLIMIT_AS: orders["memory"] + _LIBRARY_BYTES,
        resource.RLIMIT_FSIZE: orders["file"],
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_CPU: cpu,
        resource.RLIMIT_CORE: 0,
    }
    if spaces & kernel.CLONE_NEWUSER:  # elsewhere the user's other processes would count too
        limits[resource.RLIMIT_NPROC] = _THREADS
    for name, value in limits.items():
        hard = resource.getrlimit(name)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (value, value))
    # The soft limit of CPU time sends a signal that tells, the hard one only kills.
    soft = resource.getrlimit(resource.RLIMIT_CPU)[0]
    resource.setrlimit(resource.RLIMIT_CPU, (max(soft - 1, 1), soft))


def _default_signals() -> None:
    """Python ignores these, and what is ignored stays ignored across an exec."""
    for number in (_SIGPIPE, _SIGXFSZ):
        kernel.libc.signal(number, None)
