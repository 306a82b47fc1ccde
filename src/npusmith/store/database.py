"""A run on disk: one SQLite file in WAL mode that many processes of one machine may share.

`with open_store(folder) as store:` gives what a run needs: settings, items, candidates, units of
work and their records. Every method is one transaction, so a process may be killed at any moment:
what a method returned from is there, what it had not finished is not. Texts are opaque here; what
they mean is known to whoever stores them.

A unit is open, leased or done. `claim` leases open units to an owner; `beat` renews the leases. A
lease ends when its time is over, or at once when its owner was a process of this machine that is
gone. `finish` writes the one record of a unit; a second one is refused.

Raises store-newer, store-damaged, store-busy, disk-full and file-denied.
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import shutil
import socket
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Self

from npusmith.errors import NpusmithError, Place

FILE = "run.db"  # in the folder of a run
LEASE = 60.0  # seconds without a sign of life
_MARK = 0x4E505553  # "NPUS", the application_id of SQLite's header
_BUSY = 60.0  # seconds to wait for another writer
_LITTLE = 4 << 20  # bytes; with less free space an I/O error is a full disk


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of work: a sample of an item, tried once."""

    id: int
    item: str
    sample: int
    trial: int
    attempts: int  # that ended without a record before


@dataclass(frozen=True, slots=True)
class Kept:
    """A record as it lies in the store."""

    unit: int
    item: str
    sample: int
    trial: int
    key: str
    data: str


@dataclass(frozen=True, slots=True)
class Layout:
    """What a kind of file holds: a folder of numbered migrations, and the mark in its header."""

    folder: str = "migrations"
    mark: int = _MARK
    foreign: str = "run-missing"  # the code for a file that is something else


_RUN = Layout()
_BROKEN = (ValueError, TypeError, KeyError, AttributeError, zlib.error)


def open_store(folder: Path, *, create: bool = False) -> Store:
    """The store of a run; an older layout is migrated, a newer one refused."""
    path = folder / FILE
    if not create and not path.is_file():
        raise NpusmithError("run-missing", f"{folder} holds no run", Place(str(folder)))
    return Store(path, open_file(path))


def open_file(path: Path, layout: Layout = _RUN) -> sqlite3.Connection:
    """A SQLite file of ours, made where there is none, with the newest layout."""
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe would be read for ever
        raise NpusmithError("file-unusable", f"{path} is not a plain file", Place(str(path)))
    with named_file(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        link = sqlite3.connect(path, timeout=_BUSY, isolation_level=None)
        try:
            _prepare(link, path, layout)
        except BaseException:
            link.close()
            raise
    return link


class File:
    """An open SQLite file: how it is read and written, and what its errors are called."""

    def __init__(self, path: Path, link: sqlite3.Connection) -> None:
        self.path = path
        self._link = link

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._link.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with named_file(self.path):
            self._link.execute("BEGIN IMMEDIATE")
            try:
                yield self._link
                self._link.execute("COMMIT")
            except BaseException:
                if self._link.in_transaction:  # a full disk has ended it already
                    self._link.execute("ROLLBACK")
                raise

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with named_file(self.path):
            return self._link.execute(query, values).fetchall()


class Store(File):
    """An open store; see the module's text."""

    @property
    def link(self) -> sqlite3.Connection:
        """For what adds tables of its own: see turns.py."""
        return self._link

    # ---- settings

    def setting(self, name: str) -> str:
        """The value, or "" when it was never set."""
        rows = self._rows("SELECT value FROM run WHERE name = ?", name)
        return str(rows[0][0]) if rows else ""

    def settle(self, name: str, value: str) -> str:
        """Sets the value unless there is one; gives the one that holds."""
        with self._writing() as link:
            link.execute("INSERT OR IGNORE INTO run VALUES (?, ?)", (name, value))
        return self.setting(name)

    def replace(self, name: str, value: str) -> None:
        with self._writing() as link:
            link.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", (name, value))

    # ---- items and their units

    def add_item(
        self, name: str, digest: str, data: str, skipped: str, samples: int, trials: int
    ) -> str:
        """Adds an item with its units; what is there stays. Gives the digest that is stored."""
        wanted = 0 if skipped else samples * trials
        old = self._rows(
            "SELECT digest, (SELECT count(*) FROM units WHERE item = name AND sample < ?"
            " AND trial < ?) FROM items WHERE name = ?", samples, trials, name,
        )  # fmt: skip
        if old and (old[0][0] != digest or old[0][1] >= wanted):
            return str(old[0][0])
        with self._writing() as link:
            link.execute(
                "INSERT OR IGNORE INTO items SELECT ?, coalesce(max(place), 0) + 1, ?, ?, ?"
                " FROM items", (name, digest, skipped, data),
            )  # fmt: skip
            units = (
                (name, sample, trial)
                for sample in range(samples if wanted else 0)
                for trial in range(trials)
            )
            link.executemany(
                "INSERT OR IGNORE INTO units (item, sample, trial) VALUES (?, ?, ?)", units
            )
        return digest

    def items(self) -> Iterator[str]:
        """The data of the items, in the order in which they came."""
        return (str(row[0]) for row in self._each("SELECT data FROM items ORDER BY place"))

    def item(self, name: str) -> str:
        return str(self._rows("SELECT data FROM items WHERE name = ?", name)[0][0])

    # ---- work

    def claim(self, owner: str, most: int, lease: float = LEASE) -> list[Unit]:
        """Leases at most `most` open units to the owner, the oldest first.

        A second trial waits for the candidate that the first one stores.
        """
        now = time.time()
        with self._writing() as link:
            self._reap(link)
            found = link.execute(
                "SELECT id, item, sample, trial, attempts FROM units AS u WHERE done = 0"
                " AND lease < ? AND (trial = 0 OR EXISTS (SELECT 1 FROM proposals AS p"
                " WHERE p.item = u.item AND p.sample = u.sample)) ORDER BY id LIMIT ?",
                (now, most),
            ).fetchall()
            link.executemany(
                "UPDATE units SET owner = ?, lease = ? WHERE id = ?",
                [(owner, now + lease, row[0]) for row in found],
            )
        return [Unit(*row) for row in found]

    def beat(self, owner: str, lease: float = LEASE) -> None:
        """Renews the owner's leases."""
        with self._writing() as link:
            link.execute(
                "UPDATE units SET lease = ? WHERE done = 0 AND owner = ?",
                (time.time() + lease, owner),
            )

    def release(self, owner: str) -> None:
        """Opens what the owner still holds."""
        with self._writing() as link:
            link.execute("UPDATE units SET owner = '', lease = 0 WHERE done = 0 AND owner = ?",
                         (owner,))  # fmt: skip

    def fail(self, unit: int, owner: str) -> None:
        """Counts an attempt that left no record, and opens the unit again."""
        with self._writing() as link:
            link.execute(
                "UPDATE units SET attempts = attempts + 1, owner = '', lease = 0"
                " WHERE id = ? AND done = 0 AND owner = ?", (unit, owner),
            )  # fmt: skip

    def propose(self, item: str, sample: int, digest: str, data: str, body: str) -> bool:
        """Keeps a candidate; False when another one was there before."""
        with self._writing() as link:
            link.execute("INSERT OR IGNORE INTO candidates VALUES (?, ?)", (digest, pack(body)))
            link.execute(
                "INSERT OR IGNORE INTO proposals VALUES (?, ?, ?, ?)", (item, sample, digest, data)
            )
            (kept,) = link.execute(
                "SELECT candidate FROM proposals WHERE item = ? AND sample = ?", (item, sample)
            ).fetchone()
        return bool(kept == digest)

    def proposal(self, item: str, sample: int) -> tuple[str, str] | None:
        """What `propose` was given: digest and data."""
        rows = self._rows(
            "SELECT candidate, data FROM proposals WHERE item = ? AND sample = ?", item, sample
        )
        return (str(rows[0][0]), str(rows[0][1])) if rows else None

    def proposals(self, item: str) -> list[tuple[int, str, str]]:
        """Sample, digest and data of each candidate of an item."""
        return [
            (int(row[0]), str(row[1]), str(row[2]))
            for row in self._rows(
                "SELECT sample, candidate, data FROM proposals WHERE item = ?", item
            )
        ]

    def candidate(self, digest: str) -> str:
        """The body of a candidate."""
        rows = self._rows("SELECT body FROM candidates WHERE digest = ?", digest)
        if not rows:
            raise _damaged(self.path, f"candidate {digest[:12]} is not there")
        with whole(self.path, f"candidate {digest[:12]}"):
            return unpack(rows[0][0])

    def finish(self, unit: int, key: str, candidate: str, data: str, detail: str) -> bool:
        """Writes the record of a unit, once.

        False: it has one, or the candidate that was judged is not the one that is stored.
        """
        with self._writing() as link:
            row = link.execute(
                "SELECT done, (SELECT candidate FROM proposals AS p WHERE p.item = u.item"
                " AND p.sample = u.sample) FROM units AS u WHERE id = ?", (unit,),
            ).fetchone()  # fmt: skip
            if row is None or row[0] or row[1] != candidate:
                return False
            link.execute(
                "INSERT INTO records VALUES (?, ?, ?, ?, ?)",
                (unit, key, _digest(data, detail), data, pack(detail)),
            )
            link.execute("UPDATE units SET done = 1, owner = '', lease = 0 WHERE id = ?", (unit,))
        return True

    def counts(self) -> tuple[int, int]:
        """Units in all, and those without a record."""
        row = self._rows(
            "SELECT (SELECT count(*) FROM units), (SELECT count(*) FROM units WHERE done = 0)"
        )[0]
        return int(row[0]), int(row[1])

    # ---- reading

    def records(self, item: str = "") -> Iterator[Kept]:
        """All records, or those of one item, in the order of their units."""
        query = (
            "SELECT r.unit, u.item, u.sample, u.trial, r.key, r.data FROM records AS r"
            " JOIN units AS u ON u.id = r.unit"
        )
        rows = (
            self._each(f"{query} WHERE u.item = ? ORDER BY r.unit", item)
            if item
            else self._each(f"{query} ORDER BY r.unit")
        )
        return (Kept(*row) for row in rows)

    def detail(self, key: str) -> str:
        """The second half of a record."""
        rows = self._rows("SELECT detail FROM records WHERE key = ?", key)
        with whole(self.path, f"the detail of record {key[:12]}"):
            return unpack(rows[0][0]) if rows else "{}"

    # ---- trust

    def verify(self) -> list[str]:
        """What is wrong with the file and its rows, in words; empty when nothing is."""
        try:
            wrong = [str(row[0]) for row in self._each("PRAGMA integrity_check")]
            wrong = [] if wrong == ["ok"] else wrong
            wrong += [f"{row[0]}: a row refers to nothing" for row in
                      self._each("PRAGMA foreign_key_check")]  # fmt: skip
            wrong += self._verify_units()
            for key, digest, data, detail in self._each(
                "SELECT key, digest, data, detail FROM records"
            ):
                try:
                    same = _digest(data, unpack(detail)) == digest
                except _BROKEN:
                    same = False
                if not same:
                    wrong.append(f"record {key[:12]}: its text is not what was written")
        except NpusmithError as error:
            if error.code != "store-damaged":
                raise
            return [error.message]
        return wrong

    def _verify_units(self) -> list[str]:
        wrong = []
        for what, query in _RULES.items():
            (count,) = self._rows(f"SELECT count(*) FROM {query}")[0]
            if count:
                wrong.append(f"{count} {what}")
        return wrong

    # ---- below

    def _reap(self, link: sqlite3.Connection) -> None:
        """Ends the leases of processes of this machine that are gone."""
        held = link.execute(
            "SELECT DISTINCT owner FROM units WHERE done = 0 AND owner <> ''"
        ).fetchall()
        for (owner,) in held:
            if _gone(owner):
                link.execute(
                    "UPDATE units SET owner = '', lease = 0 WHERE done = 0 AND owner = ?", (owner,)
                )

    def _each(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        with named_file(self.path):
            # Not `yield from`: an iterator left behind would close a cursor of a closed file.
            for row in self._link.execute(query, values):  # noqa: UP028
                yield row


_RULES = {
    "units are done without a record": (
        "units WHERE done = 1 AND NOT EXISTS (SELECT 1 FROM records WHERE unit = id)"
    ),
    "records are of units that are not done": (
        "records JOIN units ON id = unit WHERE done = 0"
    ),
    "records are of a unit without a candidate": (
        "records JOIN units AS u ON u.id = unit WHERE NOT EXISTS (SELECT 1 FROM proposals AS p"
        " WHERE p.item = u.item AND p.sample = u.sample)"
    ),
}  # fmt: skip


def myself() -> str:
    """The owner that this process is: machine, process and the process's start."""
    return f"{_machine()} {os.getpid()} {_started(os.getpid())}"


def _gone(owner: str) -> bool:
    """Whether the owner was a process of this machine that has ended."""
    parts = owner.split(" ")
    if len(parts) != 3 or parts[0] != _machine() or not parts[1].isdigit():
        return False
    return _started(int(parts[1])) != parts[2]


def _machine() -> str:
    """The machine as it was booted; another boot means that all its processes are gone."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    spaces = Path("/proc/self/ns/pid")
    # a process number means something within its process namespace only
    space = spaces.stat().st_ino if spaces.exists() else 0
    return f"{socket.gethostname()}/{boot}/{space}".replace(" ", "_")


def _started(process: int) -> str:
    """When a process began, in ticks since boot; "" when there is none."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()  # its name may hold spaces
    return "" if fields[0] in "ZX" else fields[19]


def _prepare(link: sqlite3.Connection, path: Path, layout: Layout) -> None:
    """Pragmas, and the migrations that are missing, in one transaction."""
    link.execute(f"PRAGMA busy_timeout = {int(_BUSY * 1000)}")
    steps = _migrations(layout.folder)
    version = _version(link, path, layout)
    if version > len(steps):
        message = f"{path} has layout {version}; this npusmith knows {len(steps)}"
        raise NpusmithError("store-newer", message, Place(str(path)))
    _use_log(link)
    link.execute("PRAGMA synchronous = NORMAL")  # a killed process loses nothing
    link.execute("PRAGMA foreign_keys = ON")
    if version < len(steps):
        _migrate(link, path, layout, steps)


def _use_log(link: sqlite3.Connection) -> None:
    """WAL mode. SQLite does not wait for other processes here, so that we do."""
    until = time.monotonic() + _BUSY
    while True:
        try:
            link.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _version(link: sqlite3.Connection, path: Path, layout: Layout) -> int:
    # In this order: another process may be making the tables, and its mark comes with them.
    (tables,) = link.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (mark,) = link.execute("PRAGMA application_id").fetchone()
    (version,) = link.execute("PRAGMA user_version").fetchone()
    if tables and mark != layout.mark:
        raise NpusmithError(layout.foreign, f"{path} is no store of npusmith", Place(str(path)))
    return int(version)


def _migrate(link: sqlite3.Connection, path: Path, layout: Layout, steps: Sequence[str]) -> None:
    link.execute("BEGIN IMMEDIATE")
    try:
        version = _version(link, path, layout)  # another process may have been quicker
        for number, text in enumerate(steps[version:], version + 1):
            for statement in _statements(text):
                link.execute(statement)
            link.execute(f"PRAGMA user_version = {number}")
        link.execute(f"PRAGMA application_id = {layout.mark}")
        link.execute("COMMIT")
    except BaseException:
        if link.in_transaction:
            link.execute("ROLLBACK")
        raise


def _migrations(name: str) -> list[str]:
    """The texts, first to last; their names begin with 0001, 0002, ..."""
    folder = resources.files("npusmith.store") / name
    found = sorted(path.name for path in folder.iterdir() if path.name.endswith(".sql"))
    assert [int(name[:4]) for name in found] == list(range(1, len(found) + 1))
    return [(folder / name).read_text(encoding="utf-8") for name in found]


def _statements(text: str) -> Iterable[str]:
    """A script in pieces: executescript would commit before it begins."""
    bare = re.sub(r"--[^\n]*", "", text)
    return (part.strip() for part in bare.split(";") if part.strip())


def pack(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 6)


def unpack(body: Any) -> str:
    return zlib.decompress(body).decode("utf-8", "surrogatepass")


def _digest(data: str, detail: str) -> str:
    whole = f"{data}\0{detail}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(whole).hexdigest()


def _damaged(path: Path, what: str) -> NpusmithError:
    return NpusmithError("store-damaged", f"{path} is damaged: {what}", Place(str(path)))


@contextmanager
def whole(path: Path, what: str) -> Iterator[None]:
    """Raises store-damaged for a value of a store that is not of the form in which it was kept.

    Inside stand only the lines that read the value: a ValueError there is the value's.
    """
    try:
        yield
    except _BROKEN as error:  # pydantic's and JSON's errors are ValueErrors
        raise _damaged(path, f"{what}: {str(error)[:300]}") from error


@contextmanager
def named_file(path: Path) -> Iterator[None]:
    """Raises what SQLite refuses as an error with a code."""
    try:
        yield
    except sqlite3.Error as error:
        code = _code(error, path)
        if not code:
            raise
        raise NpusmithError(code, f"{path}: {str(error)[:300]}", Place(str(path))) from error
    except UnicodeDecodeError as error:  # of a name in the file
        raise _damaged(path, str(error)) from error


def _code(error: sqlite3.Error, path: Path) -> str:
    number = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the family
    if number == 0 and isinstance(error, sqlite3.OperationalError):
        return "store-damaged"  # Python's own: a text that is no text
    if number == sqlite3.SQLITE_FULL or (number == sqlite3.SQLITE_IOERR and _crowded(path)):
        return "disk-full"
    return {
        sqlite3.SQLITE_BUSY: "store-busy",
        sqlite3.SQLITE_LOCKED: "store-busy",
        sqlite3.SQLITE_CORRUPT: "store-damaged",
        # Our statements fit our layout: a table or column that lacks, or a key that is there twice
        sqlite3.SQLITE_ERROR: "store-damaged",
        sqlite3.SQLITE_CONSTRAINT: "store-damaged",
        sqlite3.SQLITE_MISMATCH: "store-damaged",
        sqlite3.SQLITE_NOTADB: "store-damaged",
        sqlite3.SQLITE_IOERR: "store-damaged",
        sqlite3.SQLITE_READONLY: "file-denied",
        sqlite3.SQLITE_CANTOPEN: "file-denied",
        sqlite3.SQLITE_PERM: "file-denied",
    }.get(number, "")


def _crowded(path: Path) -> bool:
    """No room: SQLite calls a full disk an I/O error in some places."""

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    sizes = [part.stat().st_size for part in path.parent.glob(f"{path.name}*")]
    if limit != resource.RLIM_INFINITY and max(sizes, default=0) + _LITTLE > limit:
        return True
    return shutil.disk_usage(path.parent).free < _LITTLE
