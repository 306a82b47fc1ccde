"""The journal of a model-driven writer: every prompt, reply, candidate and verdict, by its place.

A session is one attempt at one task; its turns are numbered. A turn is written when it is asked,
when it is answered and when it is judged, each in one transaction. Whoever goes on after a kill
finds the last of these, and does what comes next: nothing that was answered is asked again, nothing
that was judged is judged again. Texts are opaque here.
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import NpusmithError, Place
from npusmith.store.database import Store, open_store, pack, unpack, whole


@dataclass(frozen=True, slots=True)
class Turn:
    """`reply` and `outcome` are "" until they are there."""

    number: int
    data: str
    request: str
    reply: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Spent:
    """Of a whole journal; calls under way count with the most that they may take."""

    turns: int
    tokens: int
    usd: float


class Journal(Store):
    """A store with turns in it; many processes may share one."""

    def begin(self, session: str, terms: str) -> str:
        """Opens a session, or finds it again; gives the terms that it was begun with."""
        with self._writing() as link:
            link.execute(
                "INSERT OR IGNORE INTO sessions (name, terms) VALUES (?, ?)", (session, terms)
            )
        return str(self._rows("SELECT terms FROM sessions WHERE name = ?", session)[0][0])

    @contextmanager
    def alone(self, session: str) -> Iterator[None]:
        """Holds the session; raises store-busy where a living process does."""
        folder = self.path.parent / "locks"
        folder.mkdir(exist_ok=True)
        path = folder / hashlib.sha256(session.encode()).hexdigest()[:16]
        with path.open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                message = f"another process is at {session} of {self.path}"
                raise NpusmithError("store-busy", message, Place(str(self.path))) from error
            yield

    def end(self, session: str, ending: str) -> None:
        """Notes why the session ended."""
        with self._writing() as link:
            link.execute("UPDATE sessions SET ending = ? WHERE name = ?", (ending, session))

    def sessions(self) -> list[tuple[str, str]]:
        """Names and endings; an open session has none."""
        rows = self._rows("SELECT name, ending FROM sessions ORDER BY name")
        return [(str(name), str(ending)) for name, ending in rows]

    def ask(
        self,
        session: str,
        number: int,
        data: str,
        request: str,
        cost: tuple[int, float],
        limits: tuple[int | None, float | None],
    ) -> bool:
        """Keeps a turn before it is asked; False where the budget does not pay for it."""
        tokens, usd = cost
        with self._writing() as link:
            spent = link.execute(
                "SELECT coalesce(sum(tokens), 0), coalesce(sum(usd), 0) FROM turns"
            ).fetchone()
            if limits[0] is not None and spent[0] + tokens > limits[0]:
                return False
            if limits[1] is not None and spent[1] + usd > limits[1]:
                return False
            link.execute(
                "INSERT INTO turns (session, number, data, request, tokens, usd)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (session, number, data, pack(request), tokens, usd),
            )
        return True

    def reply(self, session: str, number: int, reply: str, cost: tuple[int, float]) -> None:
        """Keeps what came back, and what it took."""
        with self._writing() as link:
            link.execute(
                "UPDATE turns SET reply = ?, tokens = ?, usd = ?"
                " WHERE session = ? AND number = ? AND reply IS NULL",
                (pack(reply), *cost, session, number),
            )

    def judge(self, session: str, number: int, outcome: str) -> None:
        """Keeps what was found of the reply."""
        with self._writing() as link:
            link.execute(
                "UPDATE turns SET outcome = ? WHERE session = ? AND number = ? AND outcome IS NULL",
                (pack(outcome), session, number),
            )

    def turns(self, session: str) -> list[Turn]:
        """In their order."""
        rows = self._rows(
            "SELECT number, data, request, reply, outcome FROM turns WHERE session = ?"
            " ORDER BY number", session,
        )  # fmt: skip
        with whole(self.path, f"the turns of {session}"):
            return [
                Turn(row[0], row[1], *(unpack(part) if part else "" for part in row[2:]))
                for row in rows
            ]

    def spent(self) -> Spent:
        ((turns, tokens, usd),) = self._rows(
            "SELECT count(*), coalesce(sum(tokens), 0), coalesce(sum(usd), 0) FROM turns"
        )
        return Spent(int(turns), int(tokens), float(usd))

    def known(self, key: str) -> str:
        """What was found of the same candidate before; "" when it is new."""
        rows = self._rows("SELECT data FROM judged WHERE key = ?", key)
        with whole(self.path, "a judged candidate"):
            return unpack(rows[0][0]) if rows else ""

    def learn(self, key: str, data: str) -> None:
        with self._writing() as link:
            link.execute("INSERT OR IGNORE INTO judged VALUES (?, ?)", (key, pack(data)))


def open_journal(folder: Path) -> Journal:
    """The journal in that folder; made where there is none."""
    store = open_store(folder, create=True)
    return Journal(store.path, store.link)
