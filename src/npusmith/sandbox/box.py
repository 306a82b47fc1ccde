"""Run what nobody trusts: `run_boxed(argv or PythonModule, policy, ...)` gives a `Boxed` record.

A program, or a module of ours that handles what strangers wrote, runs in namespaces of its own,
under Landlock, a system-call filter and resource limits, with a clean environment and a private
temporary folder. A layer that this kernel lacks is named in `Boxed.missing`; whoever shows the
result shows that too.
"""

from __future__ import annotations

import codecs
import contextlib
import marshal
import os
import select
import selectors
import shutil
import signal
import sys
import time
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from npusmith.errors import SandboxError
from npusmith.sandbox import enter
from npusmith.sandbox.folder import temporary_folder
from npusmith.sandbox.server import PythonModule, start_launcher

OUTPUT_BYTES = 1 << 20  # kept of stdout and of stderr; the middle of anything longer is dropped
GRACE_SECONDS = 5.0  # how much later than the box itself we lose patience
TICK_SECONDS = 0.05
_CHUNK = 1 << 16
_OUR_INPUT = 0
_PATHS = ("PATH", "LD_LIBRARY_PATH")  # where programs are is passed on; nothing else is
# What a shortage of memory looks like on stderr when the program itself noticed it.
_SHORT = (
    b"MemoryError", b"bad_alloc", b"not enough memory", b"annot allocate memory",
    b"can't allocate memory", b"out of memory", b"memory exhausted",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Policy:
    """What a boxed program may do; everything else is denied.

    write: folders it may change (they must exist); a private temporary folder is added.
    read: None for every file, or only these files and folders besides the system's own; nothing
    else is there at all for the program.
    memory_bytes: private memory of each process. file_bytes: size of each file it writes.
    processes: may it start other programs (a compiler driver must)? Threads are always allowed.
    trace: may it trace them, as a debugger does? Never without a /proc of its own.
    """

    write: tuple[Path, ...] = ()
    read: tuple[Path, ...] | None = None
    seconds: float = 60.0
    memory_bytes: int = 4 << 30
    file_bytes: int = 1 << 30
    processes: bool = False
    network: bool = False
    trace: bool = False


@dataclass(frozen=True, slots=True)
class Boxed:
    """How a boxed program ended. `returncode` is -signal when a signal ended it."""

    returncode: int
    signal: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    out_of_memory: bool
    seconds: float
    missing: tuple[str, ...]  # layers that this kernel could not give
    peak_bytes: int = 0  # largest resident size of the program

    @property
    def ok(self) -> bool:
        return self.returncode == 0 and not self.timed_out


def run_boxed(
    work: Sequence[str | Path] | PythonModule,
    policy: Policy,
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path,
    without: Collection[str] = (),
    tick: Callable[[], None] | None = None,
    live: bool = False,
) -> Boxed:
    """Run `work` under `policy` and wait for its end; nothing that it started outlives this call.

    work: a program with its arguments, or a module of ours whose main() is called.
    without: layers of sandbox.probe.LAYERS to leave out, as on a machine that lacks them.
    tick: called every now and then while the program runs; what it raises ends the program.
    live: it reads our standard input and its output appears on ours as it comes, as plain text.
    Raises SandboxError when the program cannot be started at all.
    """
    module = work if isinstance(work, PythonModule) else None
    argv = [sys.executable] if isinstance(work, PythonModule) else work
    program = _find_program(str(argv[0]))
    with temporary_folder("npusmith-box-") as name:
        home = name.resolve()
        spec = _spec(program, argv, policy, {**_environment(home), **(env or {})}, home, cwd)
        spec |= {"without": list(without), "module": module.name if module else ""}
        return _Run(spec, policy.seconds, stdin, tick, module, live=live).wait()


def _find_program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise SandboxError("sandbox-program", f"{name} is not a program on this machine", seen=name)
    return str(Path(found).absolute())


def _environment(home: Path) -> dict[str, str]:
    paths = {name: os.environ[name] for name in _PATHS if name in os.environ}
    return {"PATH": os.defpath, **paths, "HOME": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8"}


def _spec(
    program: str,
    argv: Sequence[str | Path],
    policy: Policy,
    env: dict[str, str],
    home: Path,
    cwd: Path,
) -> dict[str, object]:
    reads = None
    if policy.read is not None:
        libraries = map(Path, filter(None, env.get("LD_LIBRARY_PATH", "").split(":")))
        wanted = (*policy.read, Path(program), *libraries)
        reads = [str(path.absolute()) for path in wanted]
    for folder in (*policy.write, cwd):
        if not folder.exists():
            raise SandboxError("sandbox-folder", f"{folder} does not exist", seen=str(folder))
    return {
        "program": program,
        "argv": [str(part) for part in argv],
        "env": env,
        "cwd": str(cwd.resolve()),
        "home": str(home),
        "write": [str(path.absolute()) for path in (*policy.write, home)],
        "read": reads,
        "seconds": float(policy.seconds),
        "memory": policy.memory_bytes,
        "file": policy.file_bytes,
        "processes": policy.processes,
        "network": policy.network,
        "trace": policy.trace,
    }


@dataclass(slots=True)
class _Tap:
    """Keeps the head and the tail of a stream, and drops what lies between."""

    limit: int
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    dropped: int = 0
    decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def put(self, data: bytes) -> None:
        room = self.limit // 2 - len(self.head)
        self.head += data[: max(room, 0)]
        self.tail += data[max(room, 0) :]
        extra = len(self.tail) - self.limit // 2
        if extra > 0:
            del self.tail[:extra]
            self.dropped += extra

    def text(self) -> bytes:
        cut = f"\n... {self.dropped} bytes dropped ...\n".encode() if self.dropped else b""
        return bytes(self.head) + cut + bytes(self.tail)


class _Run:
    """One boxed program while it runs: our ends of the pipes between it, its launcher and us."""

    def __init__(
        self,
        spec: dict[str, object],
        seconds: float,
        stdin: bytes,
        tick: Callable[[], None] | None,
        module: PythonModule | None,
        *,
        live: bool = False,
    ) -> None:
        self.seconds, self.tick, self.live = seconds, tick, live
        self.stdin = memoryview(stdin)
        self.orders = memoryview(marshal.dumps(spec))
        self.out, self.err, self.status = _Tap(OUTPUT_BYTES), _Tap(OUTPUT_BYTES), _Tap(_CHUNK)
        self.started = time.monotonic()
        self.ends = _start_launcher(module)
        # The launcher reads its orders from the lifeline; its end of file means that we are gone.
        self.lifeline = self.ends[enter.ORDERS]

    def wait(self) -> Boxed:
        """Feed and drain the pipes until all of them are closed or time is up."""
        try:
            late = self._pump()
        finally:
            self._end()
        return self._result(late)

    def _pump(self) -> bool:
        # what our standard input may be, epoll does not take: a plain file
        with selectors.PollSelector() if self.live else selectors.DefaultSelector() as selector:
            self._watch(selector)
            limit = self.started + self.seconds + GRACE_SECONDS
            readers = 3
            while readers:
                left = max(limit - time.monotonic(), 0)
                events = selector.select(min(left, TICK_SECONDS) if self.tick else left)
                if self.tick:
                    self.tick()
                if not events and time.monotonic() >= limit:
                    events = selector.select(0)  # a tick may take long, and it ended meanwhile
                    if not events:
                        return True
                for key, _ in events:
                    readers -= self._serve(selector, key)
        return False

    def _watch(self, selector: selectors.BaseSelector) -> None:
        taps = {enter.STDOUT: self.out, enter.STDERR: self.err, enter.REPORT: self.status}
        for name, tap in taps.items():
            selector.register(self.ends[name], selectors.EVENT_READ, tap)
        if self.live:
            selector.register(_OUR_INPUT, selectors.EVENT_READ)
        for name in (enter.ORDERS,) if self.live else (enter.ORDERS, enter.STDIN):
            os.set_blocking(self.ends[name], False)
            selector.register(self.ends[name], selectors.EVENT_WRITE)

    def _serve(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> int:
        """Move one chunk; 1 when a stream that we read has ended."""
        if isinstance(key.data, _Tap):
            data = os.read(key.fd, _CHUNK)
            key.data.put(data)
            if self.live and key.data is not self.status:
                _show(key.data.decoder.decode(data))
            if not data:
                selector.unregister(key.fd)
            return int(not data)
        if self.live and key.fd == _OUR_INPUT:
            data = os.read(_OUR_INPUT, _CHUNK)
            if not data or not _pass_on(self.ends[enter.STDIN], data):
                selector.unregister(_OUR_INPUT)
                os.close(self.ends.pop(enter.STDIN))
            return 0
        if key.fd == self.lifeline:
            self.orders = self.orders[_write(key.fd, self.orders) :]
            done = not self.orders
        else:
            self.stdin = self.stdin[_write(key.fd, self.stdin) :]
            done = not self.stdin
        if done:
            selector.unregister(key.fd)
            if key.fd != self.lifeline:
                os.close(self.ends.pop(enter.STDIN))
        return 0

    def _end(self) -> None:
        """Leave nothing running: the box ends itself when the lifeline closes."""
        os.close(self.ends.pop(enter.ORDERS))
        end = self.ends[enter.END]
        if not _ended(end):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._launcher(), signal.SIGKILL)
            _ended(end)
        for handle in self.ends.values():
            os.close(handle)

    def _launcher(self) -> int:
        """Its process, which leads a group of its own, by its own word."""
        words = self.status.text().decode().split()
        if words[:1] != ["launcher"]:
            raise ProcessLookupError
        return int(words[1])

    def _result(self, late: bool) -> Boxed:
        lines = [line.split(" ") for line in self.status.text().decode().splitlines()]
        failures = [" ".join(line[1:]) for line in lines if line[0] == "failed"]
        if failures:
            raise SandboxError("sandbox-start", failures[0])
        end = next((line for line in lines if line[0] == "end"), None)
        timed_out = late or any(line[0] == "timeout" for line in lines)
        if end is None and not timed_out:
            raise SandboxError("sandbox-start", "the launcher ended early", seen=self._tail())
        code, peak = (-signal.SIGKILL, 0) if end is None else (int(end[1]), int(end[2]))
        timed_out = timed_out or code == -signal.SIGXCPU
        return Boxed(
            returncode=code,
            signal=max(-code, 0),
            stdout=self.out.text(),
            stderr=self.err.text(),
            timed_out=timed_out,
            out_of_memory=code != 0 and not timed_out and self._starved(code),
            seconds=time.monotonic() - self.started,
            missing=tuple(line[1] for line in lines if line[0] == "missing"),
            peak_bytes=peak,
        )

    def _starved(self, code: int) -> bool:
        # A kill that we did not send comes from the kernel's out-of-memory killer.
        tail = self.err.text()[-8192:]
        return code == -signal.SIGKILL or any(word in tail for word in _SHORT)

    def _tail(self) -> str:
        return self.err.text()[-500:].decode(errors="replace").strip()


def _start_launcher(module: PythonModule | None) -> dict[int, int]:
    """Our ends of its pipes, by their numbers in enter.HANDLES."""
    ours: dict[int, int] = {}
    theirs: list[int] = []
    try:
        for name in enter.HANDLES:
            reader, writer = os.pipe()
            we_write = name in (enter.STDIN, enter.ORDERS)
            ours[name] = writer if we_write else reader
            theirs.append(reader if we_write else writer)
        start_launcher(theirs, module)
    except BaseException:
        for handle in ours.values():
            os.close(handle)
        raise
    finally:
        for handle in theirs:
            os.close(handle)
    return ours


def _ended(fd: int) -> bool:
    """Does that pipe come to its end soon?"""
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(GRACE_SECONDS * 1000))


def _pass_on(fd: int, data: bytes) -> bool:
    """Write all of it; False when nobody reads."""
    try:
        while data:
            data = data[os.write(fd, data) :]
    except BrokenPipeError:
        return False
    return True


def _show(text: str) -> None:
    """On our standard output, without what would steer a terminal."""
    plain = (c for c in text if c in "\t\n" or not unicodedata.category(c).startswith("C"))
    sys.stdout.write("".join(plain))
    sys.stdout.flush()


def _write(fd: int, data: memoryview) -> int:
    try:
        return os.write(fd, data[:_CHUNK])
    except BlockingIOError:
        return 0
    except BrokenPipeError:  # the other side no longer listens: the rest is not wanted
        return len(data)
