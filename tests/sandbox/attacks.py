"""What a boxed program may try: a table of small Python texts, each with the boxes that must stop it.

An attack has come through when its text ends without an error and leaves something true in `got`.
It knows: `victim`, a folder of the same user outside with `file`, `secret`, `sub/`, `soft` (a link)
and `own.sock`; `mine`, the folder that it may write; `pid`, a process of the same user outside;
`port` and `abstract`, where that process listens; `call(name, ...)`, a raw system call.

Boxes, by a letter each: f all layers, p the same with processes allowed, w the same with every file
readable; and one kind of layer alone: n namespaces, l Landlock, s the system-call filter.
"""

# ruff: noqa: E501 - a table: a row is a line
from __future__ import annotations

from typing import NamedTuple


class Attack(NamedTuple):
    name: str
    boxes: str
    text: str


BOXES = {
    "f": "every layer",
    "m": "every layer, in a fork of a server",
    "p": "every layer, processes allowed",
    "w": "every layer, all files readable",
    "n": "namespaces alone",
    "l": "Landlock alone",
    "s": "the system-call filter alone",
}

# Changing files outside: the tree has them read-only or not at all, Landlock denies to open them.
WRITES = {
    "write-file": "got = open(victim + '/file', 'w').write('x')",
    "append-file": "got = open(victim + '/file', 'a').write('x')",
    "open-for-writing": "got = os.open(victim + '/file', os.O_RDWR) + 1",
    "truncate-by-name": "os.truncate(victim + '/file', 0); got = 1",
    "truncate-by-open": "got = os.open(victim + '/file', os.O_RDONLY | os.O_TRUNC) + 1",
    "create-file": "open(victim + '/new', 'w'); got = 1",
    "create-nameless": "got = os.open(victim, os.O_TMPFILE | os.O_WRONLY) + 1",
    "make-folder": "os.mkdir(victim + '/new'); got = 1",
    "remove-folder": "os.rmdir(victim + '/sub'); got = 1",
    "unlink": "os.unlink(victim + '/file'); got = 1",
    "rename-inside": "os.rename(victim + '/file', victim + '/new'); got = 1",
    "rename-out": "os.rename(victim + '/file', mine + '/new'); got = 1",
    "rename-over": "open(mine + '/a', 'w'); os.rename(mine + '/a', victim + '/file'); got = 1",
    "exchange": "open(mine + '/b', 'w'); call('renameat2', -100, b(mine + '/b'), -100,"
    " b(victim + '/file'), 2); got = 1",
    "hard-link-in": "os.link(victim + '/file', mine + '/hard'); open(mine + '/hard', 'w'); got = 1",
    "hard-link-out": "open(mine + '/c', 'w'); os.link(mine + '/c', victim + '/new'); got = 1",
    "link-a-handle": "h = os.open(victim + '/file', os.O_PATH);"
    " os.link(f'/proc/self/fd/{h}', mine + '/h2', follow_symlinks=True); got = 1",
    "soft-link-out": "os.symlink('/', victim + '/new'); got = 1",
    "through-own-link": "os.symlink(victim, mine + '/l1'); open(mine + '/l1/file', 'w'); got = 1",
    "through-their-link": "open(victim + '/soft', 'w'); got = 1",
    "make-fifo": "os.mkfifo(victim + '/new'); got = 1",
    "make-socket-node": "os.mknod(victim + '/new', 0o140644); got = 1",
    "by-folder-handle": "h = os.open(victim, os.O_PATH); os.open('file', os.O_WRONLY, dir_fd=h);"
    " got = 1",
    "by-proc-root": "open('/proc/self/root' + victim + '/file', 'w'); got = 1",
    "by-proc-cwd": "open('/proc/self/cwd/' + '../' * 20 + victim + '/file', 'w'); got = 1",
    "by-root-of-process-1": "open('/proc/1/root' + victim + '/file', 'w'); got = 1",
    "by-root-of-their-process": "open(f'/proc/{pid}/root{victim}/file', 'w'); got = 1",
    "by-cwd-of-their-process": "open(f'/proc/{pid}/cwd/file', 'w'); got = 1",
    "reopen-a-handle": "h = os.open(victim + '/file', os.O_PATH);"
    " os.open(f'/proc/self/fd/{h}', os.O_WRONLY); got = 1",
    "write-tmp": "open('/tmp/npusmith-attack', 'w'); got = 1",
    "write-var-tmp": "open('/var/tmp/npusmith-attack', 'w'); got = 1",
    "write-shared-memory": "open('/dev/shm/npusmith-attack', 'w'); got = 1",
    "write-home": "open(home + '/.npusmith-attack', 'w'); got = 1",
    "write-beside-own-folder": "open(mine + '/../npusmith-attack', 'w'); got = 1",
    "write-etc": "open('/etc/npusmith-attack', 'w'); got = 1",
    "write-usr": "open('/usr/npusmith-attack', 'w'); got = 1",
    "kernel-core-pattern": "got = os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY) + 1",
    "kernel-sysrq": "got = os.open('/proc/sysrq-trigger', os.O_WRONLY) + 1",
    "kernel-uevent": "got = os.open('/sys/kernel/uevent_helper', os.O_WRONLY) + 1",
    "kernel-log": "got = os.open('/dev/kmsg', os.O_WRONLY) + 1",
    "memory-device": "got = os.open('/dev/mem', os.O_RDWR) + 1",
    "terminal": "got = os.open('/dev/tty', os.O_RDWR) + 1",
    "memory-of-their-process": "got = os.open(f'/proc/{pid}/mem', os.O_RDWR) + 1",
    "badness-of-their-process": "open(f'/proc/{pid}/oom_score_adj', 'w').write('1000'); got = 1",
    "memory-of-process-1": "got = os.open('/proc/1/mem', os.O_RDWR) + 1",
}

# Modes, owners, times, attributes: Landlock does not look at them; the filter and the tree do.
CHANGES = {
    "chmod": "os.chmod(victim + '/file', 0o777); got = 1",
    "chmod-folder": "os.chmod(victim, 0o777); got = 1",
    "chmod-by-link": "os.symlink(victim + '/file', mine + '/l2'); os.chmod(mine + '/l2', 0); got=1",
    "fchmod": "os.fchmod(os.open(victim + '/file', os.O_RDONLY), 0o777); got = 1",
    "fchmodat": "call('fchmodat', -100, b(victim + '/file'), 0o777); got = 1",
    "fchmodat2": "call('fchmodat2', -100, b(victim + '/file'), 0o777, 0); got = 1",
    "chmod-by-handle": "h = os.open(victim + '/file', os.O_PATH);"
    " os.chmod(f'/proc/self/fd/{h}', 0o777); got = 1",
    "utime": "os.utime(victim + '/file', (1, 1)); got = 1",
    "utime-by-handle": "os.utime(os.open(victim + '/file', os.O_RDONLY), (1, 1)); got = 1",
    "utime-of-link": "os.utime(victim + '/soft', (1, 1), follow_symlinks=False); got = 1",
    "utime-touch": "call('utimensat', -100, b(victim + '/file'), None, 0); got = 1",
    "chown": "os.chown(victim + '/file', os.getuid(), os.getgid()); got = 1",
    "lchown": "os.lchown(victim + '/soft', os.getuid(), os.getgid()); got = 1",
    "fchown": "os.fchown(os.open(victim + '/file', os.O_RDONLY), os.getuid(), -1); got = 1",
    "set-attribute": "os.setxattr(victim + '/file', 'user.x', b'1'); got = 1",
    "set-attribute-by-handle": "os.setxattr(os.open(victim + '/file', os.O_RDONLY), 'user.x', b'1');"
    " got = 1",
    "remove-attribute": "os.removexattr(victim + '/file', 'user.kept'); got = 1",
    "inode-flags": "fcntl.ioctl(os.open(victim + '/file', os.O_RDONLY), 0x40086602,"
    " (0x80080).to_bytes(8, 'little')); got = 1",
    "project-id": "fcntl.ioctl(os.open(victim + '/file', os.O_RDONLY), 0x401C5820, bytes(28));"
    " got = 1",
}

LINKED = {
    "chmod-hard-link": "os.link(victim + '/file', mine + '/h3'); os.chmod(mine + '/h3', 0); got=1",
}

# A file of our own that lends our rights to whoever starts it.
SET_ID = {
    "setuid-chmod": "open(mine + '/s1', 'w'); os.chmod(mine + '/s1', 0o4755); got = 1",
    "setgid-chmod": "open(mine + '/s2', 'w'); os.chmod(mine + '/s2', 0o2755); got = 1",
    "setuid-fchmod": "os.fchmod(os.open(mine + '/s3', os.O_CREAT | os.O_WRONLY), 0o4700); got = 1",
    "setuid-at-creation": "os.open(mine + '/s4', os.O_CREAT | os.O_WRONLY, 0o4755); got = 1",
    "setuid-nameless": "os.open(mine, os.O_TMPFILE | os.O_WRONLY, 0o4755); got = 1",
    "setuid-mknod": "os.mknod(mine + '/s5', 0o104755); got = 1",
    "setuid-openat2": "how = (ctypes.c_uint64 * 3)(0o101, 0o4755, 0);"
    " call('openat2', -100, b(mine + '/s6'), how, 24); got = 1",
    "setuid-fchmodat2": "open(mine + '/s7', 'w');"
    " call('fchmodat2', -100, b(mine + '/s7'), 0o4755, 0); got = 1",
}

# Reading what the policy does not name.
READS = {
    "read-secret": "got = open(victim + '/secret').read()",
    "map-secret": "h = os.open(victim + '/secret', os.O_RDONLY); got = mmap.mmap(h, 6, prot=1)[:]",
    "read-by-own-link": "os.symlink(victim + '/secret', mine + '/r1'); got = open(mine + '/r1').read()",
    "read-by-hard-link": "os.link(victim + '/secret', mine + '/r2'); got = open(mine + '/r2').read()",
    "read-by-handle": "h = os.open(victim + '/secret', os.O_PATH); got = open(f'/proc/self/fd/{h}').read()",
    "read-by-proc-root": "got = open('/proc/self/root' + victim + '/secret').read()",
    "read-by-their-root": "got = open(f'/proc/{pid}/root{victim}/secret').read()",
    "read-by-process-1": "got = open('/proc/1/root' + victim + '/secret').read()",
    "read-by-parents": "got = open('../' * 30 + victim + '/secret').read()",
    "read-as-library": "ctypes.CDLL(victim + '/lib.so'); got = 1",
    "read-as-module": "sys.path.append(victim); import victim_module; got = 1",
    "list-victim": "got = os.listdir(victim)",
    "list-tmp": "got = any('npusmith-outside' in n for n in os.listdir('/tmp'))",
    "list-opt": "got = os.listdir('/opt') or 1",
    "list-certificates": "got = os.listdir('/etc/ssl')",
    "list-var": "got = os.listdir('/var')",
    "read-shadow": "got = open('/etc/shadow').read()",
    "read-hosts": "got = open('/etc/hosts').read()",
    "read-machine-id": "got = open('/sys/class/dmi/id/product_name').read()",
    "read-firmware": "got = os.listdir('/sys/firmware')",
    "command-line-of-theirs": "got = open(f'/proc/{pid}/cmdline').read()",
    "environment-of-theirs": "got = open(f'/proc/{pid}/environ').read()",
    "maps-of-theirs": "got = open(f'/proc/{pid}/maps').read()",
    "handles-of-theirs": "got = os.listdir(f'/proc/{pid}/fd')",
    "mounts-of-theirs": "got = open(f'/proc/{pid}/mountinfo').read()",
    "list-processes": "got = str(pid) in os.listdir('/proc')",
    "command-lines": "got = any(b'npusmith-bystander' in open(f'/proc/{n}/cmdline', 'rb').read()"
    " for n in os.listdir('/proc') if n.isdigit() and int(n) != os.getpid())",
    "kernel-memory": "got = os.open('/proc/kcore', os.O_RDONLY) + 1",
    "file-by-number": "got = by_number(victim + '/secret')",
}

# The tree of the box's own shows its few names to whoever has no other layer.
LISTS = {
    "list-root": "got = os.listdir('/')",
    "list-home": "got = os.listdir(home)",
    "list-devices": "got = os.listdir('/dev')",
}

# Asking about files: Landlock does not mind.
ASKS = {
    "stat-secret": "got = os.stat(victim + '/secret').st_size",
    "stat-link": "got = os.lstat(victim + '/soft').st_mode",
    "read-link": "got = os.readlink(victim + '/soft')",
    "access-secret": "got = os.access(victim + '/secret', os.F_OK)",
    "read-attribute": "got = os.getxattr(victim + '/file', 'user.kept')",
    "watch-folder": "h = call('inotify_init1', 0); got = call('inotify_add_watch', h, b(victim), 2)",
    "change-folder": "os.chdir(victim); got = 1",
    "space-of-disk": "got = os.statvfs(victim).f_bavail",
}

# Other processes: the process namespace hides them, the filter denies the calls.
OTHERS = {
    "prlimit": "call('prlimit64', pid, 7, (ctypes.c_uint64 * 2)(64, 64), None); got = 1",
    "prlimit-read": "call('prlimit64', pid, 7, None, (ctypes.c_uint64 * 2)()); got = 1",
    "priority": "call('setpriority', 0, pid, 19); got = 1",
    "affinity": "os.sched_setaffinity(pid, {0}); got = 1",
    "scheduler": "os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)); got = 1",
    "scheduler-attributes": "call('sched_setattr', pid, (ctypes.c_uint32 * 12)(48, 3), 0); got = 1",
    "scheduler-parameters": "call('sched_setparam', pid, (ctypes.c_int * 1)(0)); got = 1",
    "io-priority": "call('ioprio_set', 1, pid, 3 << 13); got = 1",
    "ptrace": "call('ptrace', 0x4206, pid, 0, 0); got = 1",
    "read-their-memory": "got = peek(pid)",
    "compare-handles": "call('kcmp', os.getpid(), pid, 1, 0, 0); got = 1",
    "move-their-pages": "call('migrate_pages', pid, 8, (ctypes.c_ulong * 1)(1), (ctypes.c_ulong * 1)(1));"
    " got = 1",
    "take-their-handle": "h = os.pidfd_open(pid); got = call('pidfd_getfd', h, 1, 0) + 1",
    "advise-their-memory": "h = os.pidfd_open(pid);"
    " call('process_madvise', h, (ctypes.c_ulong * 2)(4096, 4096), 1, 21, 0); got = 1",
}
# With processes allowed a shell must end its children: only the process namespace is in the way.
SIGNALS = {
    "kill": "os.kill(pid, 0); got = 1",
    "kill-group": "os.kill(-pid, 0); got = 1",
    "tkill": "call('tkill', pid, 0); got = 1",
    "tgkill": "call('tgkill', pid, pid, 0); got = 1",
    "queue-signal": "call('rt_sigqueueinfo', pid, 0, (ctypes.c_int * 32)(0, 0, -1)); got = 1",
    "pidfd-signal": "signal.pidfd_send_signal(os.pidfd_open(pid), 0); got = 1",
}
# Priorities of all processes of a user or a group, in the box or not.
CROWDS = {
    "priority-of-user": "call('setpriority', 2, os.getuid(), 19); got = 1",
    "priority-of-group": "call('setpriority', 1, 1, 19); got = 1",
    "io-priority-of-user": "call('ioprio_set', 3, os.getuid(), 3 << 13); got = 1",
    "limits-of-process-1": "call('prlimit64', os.getppid(), 0, (ctypes.c_uint64 * 2)(9, 9), None); got = 1",
}

# Starting programs.
SPAWNS = {
    "fork": "got = os.fork() + 1",
    "vfork": "got = call('vfork') + 1",
    "clone": "got = call('clone', 17, 0, 0, 0, 0) + 1",
    "clone3": "got = call('clone3', (ctypes.c_uint64 * 11)(), 88) + 1",
    "posix-spawn": "got = os.posix_spawn('/bin/true', ['true'], {})",
    "subprocess": "got = subprocess.run(['/bin/true']).returncode == 0",
    "exec": "os.execv('/bin/echo', ['echo', 'THROUGH'])",
    "execveat": "call('execveat', -100, b('/bin/echo'), None, None, 0)",
    "exec-by-handle": "os.execve(os.open('/bin/echo', os.O_RDONLY), ['echo', 'THROUGH'], {})",
    "signal-process-1": "os.kill(os.getppid(), 0); got = 1",
    "signal-everybody": "os.kill(-1, 0); got = 1",
}

# The network, and sockets of this machine.
NET = {
    "tcp": "socket.create_connection(('127.0.0.1', port), 2); got = 1",
    "tcp-v6": "socket.socket(socket.AF_INET6).connect(('::ffff:127.0.0.1', port)); got = 1",
    "udp": "got = socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', port))",
    "abstract-socket": "s = socket.socket(socket.AF_UNIX); s.connect('\\0' + abstract); got = 1",
}
SOCKETS = {
    "socket-of-a-path": "s = socket.socket(socket.AF_UNIX); s.connect(victim + '/own.sock'); got = 1",
    "listen": "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); got = 1",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); got = 1",
    "raw": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); got = 1",
    "packet": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0); got = 1",
    "vsock": "socket.socket(socket.AF_VSOCK); got = 1",
    "crypto-socket": "socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET); got = 1",
}

# Memory that no limit of a process counts, or that outlives it.
MEMORY = {
    "memfd": "got = os.memfd_create('x') + 1",
    "memfd-secret": "got = call('memfd_secret', 0) + 1",
    "shared-anonymous": "got = mmap.mmap(-1, 4096)",
    "sysv-memory": "got = call('shmget', 0, 4096, 0o1600) + 1",
    "sysv-messages": "got = call('msgget', 0, 0o1600) + 1",
    "sysv-semaphores": "got = call('semget', 0, 1, 0o1600) + 1",
    "posix-messages": "got = call('mq_open', b('npusmith-attack'), 0o102, 0o600, None) + 1",
    "userfaultfd": "got = call('userfaultfd', 1) + 1",
}
ZERO = {
    "shared-zero-device": "got = mmap.mmap(os.open('/dev/zero', os.O_RDWR), 4096)",
    "shared-zero-pages": "got = len(mmap.mmap(os.open('/dev/zero', os.O_RDONLY), 1 << 20, prot=1)[:])",
}
LIMITS = {
    "much-memory": "got = len(bytearray(1 << 30))",
    "raise-own-limits": "resource.setrlimit(resource.RLIMIT_DATA, (-1, -1)); got = 1",
    "many-handles": "got = [os.open(mine, os.O_RDONLY) for _ in range(5000)]",
    "large-file": "got = os.pwrite(os.open(mine + '/big', os.O_CREAT | os.O_WRONLY), b'x', 1 << 30)",
    "dump-core": "resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20)); got = 1",
    "capabilities": "got = int([x for x in open('/proc/self/status') if 'CapEff' in x][0].split()[1], 16)",
    "another-user": "os.setuid(12345 if os.getuid() != 12345 else 1); got = 1",
    "another-group": "os.setgroups([1]); got = 1",
}

# Doors of the kernel: bogus arguments, so that only a call that is open says something else than no.
DOORS = (
    "acct", "add_key", "bpf", "chroot", "clock_adjtime", "clock_settime", "delete_module",
    "fanotify_init", "fanotify_mark", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick",
    "init_module", "io_uring_enter", "io_uring_register", "io_uring_setup", "kexec_file_load",
    "kexec_load", "keyctl", "listmount", "lookup_dcookie", "mount", "mount_setattr", "move_mount",
    "open_by_handle_at", "open_tree", "perf_event_open", "pivot_root", "process_mrelease",
    "quotactl", "reboot", "request_key", "setdomainname", "sethostname", "setns", "settimeofday",
    "statmount", "swapoff", "swapon", "syslog", "umount2", "unshare", "vhangup", "file_setattr",
    "setxattrat", "open_tree_attr", "quotactl_fd", "modify_ldt", "iopl", "ioperm",
)  # fmt: skip
MORE_DOORS = {
    "new-user-namespace": "call('unshare', 0x10000000); got = 1",
    "new-mounts": "call('unshare', 0x00020000); got = 1",
    "type-into-terminal": "fcntl.ioctl(1, 0x5412, b'x'); got = 1",
    "call-of-the-future": "got = future()",
    "call-of-x32": "got = x32()",
}


def _rows() -> tuple[Attack, ...]:
    kinds = (
        (WRITES, "fpwnl"), (CHANGES, "fpwns"), (SET_ID, "fpws"), (READS, "fpnl"), (ASKS, "fpn"), (LISTS, "fpl"),
        (ZERO, "fpwnl"), (LINKED, "fpwnl"),
        (OTHERS, "fpwns"), (SIGNALS, "fpwns"), (CROWDS, "fpws"), (SPAWNS, "fws"), (NET, "fpwns"),
        (SOCKETS, "fpws"), (MEMORY, "fpws"), (LIMITS, "fpwnls"), (MORE_DOORS, "fpws"),
    )  # fmt: skip
    rows = [Attack(name, boxes, text) for table, boxes in kinds for name, text in table.items()]
    rows += [Attack(f"door-{name}", "fpws", f"got = door({name!r})") for name in DOORS]
    # What holds for a program holds for a module that a fork of a server calls.
    return tuple(row._replace(boxes=row.boxes.replace("f", "fm")) for row in rows)


ATTACKS = _rows()
