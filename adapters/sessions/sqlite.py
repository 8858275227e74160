"""Sessions in one SQLite database, in WAL mode: many readers beside writers, nothing to set up."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, Final, TypeVar

from stepfold.adapters.codec import CodecError
from stepfold.adapters.recording import Outcome, Recording, RecordingError, parse_recording
from stepfold.adapters.recording.writing import Writer
from stepfold.adapters.sessions.port import (
    Hit,
    SessionError,
    SessionInfo,
    Summing,
    checked_name,
    matches,
    said,
)
from stepfold.effects.ports import Start
from stepfold.engine import State
from stepfold.engine.effects import Effect
from stepfold.engine.events import Event

T = TypeVar("T")
VERSION: Final = 1  # of the tables
WAIT_SECONDS: Final = 30.0  # for another process that writes
TABLES: Final = """
create table session (
    id integer primary key, name text not null unique, header blob not null,
    began_ms integer, touched_ms integer, runs integer not null, events integer not null,
    model text not null, prompt text not null, end text
) strict;
create table entry (
    session integer not null references session on delete cascade,
    n integer not null, run integer not null, line blob not null, text text not null,
    primary key (session, n)
) strict, without rowid;
"""


class SqliteSessions:
    """
    Keeps sessions in one file.

    A session's lines are those of a recording, so ``export`` only puts them
    together.  One log at a time has a session: a file beside the database is
    locked for it, which the system lets go of when the process dies.

    Args:
        path: Of the database; made if it is not there, its folder too.

    Raises:
        SessionError: It is no such database, or of a newer version.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._db = self._told(self._opened)

    def _opened(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            db.execute("pragma journal_mode = wal")
            db.execute("pragma foreign_keys = on")
            with _writing(db):
                (version,) = db.execute("pragma user_version").fetchone()
                if version > VERSION:
                    raise SessionError(
                        f"{self.path}: its tables have version {version}, and {VERSION} is known here"
                    )
                if version == 0:
                    for statement in filter(str.strip, TABLES.split(";")):
                        db.execute(statement)
                    db.execute(f"pragma user_version = {VERSION}")
        except BaseException:
            db.close()
            raise
        return db

    def open(self, name: str) -> SqliteLog:
        """Return the log of *name*; see ``Sessions``."""
        checked_name(name)
        lock = self._locked(name)
        try:
            row = self._one("select id from session where name = ?", name)
            kept = None if row is None else self.recording(name)
            return SqliteLog(self, name, None if row is None else row[0], kept, lock)
        except BaseException:
            os.close(lock)
            raise

    def sessions(self) -> list[SessionInfo]:
        """Return all sessions, the one that was touched last first."""
        rows = self._all(
            "select name, began_ms, touched_ms, runs, events, model, prompt, end from session"
            " order by touched_ms desc, name"
        )
        return [SessionInfo(*row) for row in rows]

    def search(self, words: str, limit: int = 100) -> list[Hit]:
        """Return what says each of *words*; see ``Sessions``."""
        wanted = words.casefold().split()
        where = " and ".join(["instr(text, ?)"] * len(wanted)) or "text != ''"
        rows = self._all(
            "select name, n, run, line from entry join session on id = session"
            f" where {where} order by touched_ms desc, name, n limit ?",
            *wanted,
            limit,
        )
        hits = [Hit(name, n, run, said(_event(line))) for name, n, run, line in rows]
        return [hit for hit in hits if matches(hit.text, words)]

    def rename(self, name: str, to: str) -> None:
        """Keep *name* under another name; see ``Sessions``."""
        checked_name(to)
        with self._alone(name) as id:
            try:
                self._told(lambda: self._db.execute("update session set name = ? where id = ?", (to, id)))
            except SessionError as problem:
                if isinstance(problem.__cause__, sqlite3.IntegrityError):
                    raise SessionError(f"session {to!r}: there is one already") from None
                raise

    def delete(self, name: str) -> None:
        """Remove a session; see ``Sessions``."""
        with self._alone(name) as id:
            self._told(lambda: self._db.execute("delete from session where id = ?", (id,)))

    def recording(self, name: str) -> Recording:
        """Return what a session holds; see ``Sessions``."""
        try:
            recording = parse_recording(self.export(name), f"session {name!r}")
        except RecordingError as problem:
            raise SessionError(str(problem)) from problem
        assert recording is not None
        return recording

    def export(self, name: str) -> bytes:
        """Return a session as the contents of a recording's file; see ``Sessions``."""
        row = self._one("select id, header from session where name = ?", checked_name(name))
        if row is None:
            raise SessionError(f"session {name!r}: there is none")
        lines = self._all("select line from entry where session = ? order by n", row[0])
        return b"".join([row[1], *(line for (line,) in lines)])

    def close(self) -> None:
        """Let go of the database; its logs have connections of their own."""
        self._db.close()

    # -------------------------------------------------------------- the database

    def _one(self, statement: str, *values: Any) -> Any:
        return self._told(lambda: self._db.execute(statement, values).fetchone())

    def _all(self, statement: str, *values: Any) -> list[Any]:
        return self._told(lambda: self._db.execute(statement, values).fetchall())

    def _told(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except (sqlite3.Error, OSError) as problem:
            words = getattr(problem, "strerror", None) or problem
            raise SessionError(f"{self.path}: {words}") from problem

    def _locked(self, name: str) -> int:
        """Return a file that is locked for *name*."""
        folder = self.path.with_name(f"{self.path.name}-locks")
        path = folder / name.encode(errors="surrogatepass").hex()
        try:
            folder.mkdir(exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise SessionError(f"{folder}: {problem.strerror or problem}") from problem
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            os.close(file)
            raise SessionError(
                f"session {name!r}: another log, of this or another process, has it"
            ) from problem
        return file

    @contextmanager
    def _alone(self, name: str) -> Iterator[int]:
        """Yield the id of *name* while no other log has it."""
        row = self._one("select id from session where name = ?", checked_name(name))
        if row is None:
            raise SessionError(f"session {name!r}: there is none")
        lock = self._locked(name)
        try:
            yield row[0]
        finally:
            os.close(lock)


class SqliteLog:
    """The log of one session in a database; ``SqliteSessions.open`` makes it."""

    def __init__(
        self, store: SqliteSessions, name: str, id: int | None, kept: Recording | None, lock: int
    ) -> None:
        self.name = name
        self._path = store.path
        self._db = sqlite3.connect(
            store.path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._db.execute("pragma foreign_keys = on")
        self._id = id
        self._lock: int | None = lock
        self._held = False
        self._events = list(kept.events) if kept is not None else []
        self._writer = Writer(outcomes=True, digests=False, deltas=False, redact=None, kept=kept)
        self._summing = Summing()
        for event, outcome in zip(self._events, kept.outcomes if kept else (), strict=True):
            self._summing.add(event, outcome)

    def hold(self) -> None:
        """Belong to one run; ``RuntimeError`` where it belongs to another."""
        if self._held:
            raise RuntimeError(f"log: another run is writing {self.name!r}; one log holds one run at a time")
        self._held = True

    def release(self) -> None:
        """Belong to nobody."""
        self._held = False

    async def begin(self, start: Start) -> Start:
        """Keep the start of a new session; return the one that is kept; raises as ``append``."""
        if self._writer.begun is None:
            header = self._writer.header(start)
            self._id = self._commit(
                "insert into session (name, header, runs, events, model, prompt) values (?, ?, 0, 0, ?, ?)"
                " returning id",
                (self.name, header, start.config.model, start.prompt),
            )
            self._writer.begin(start)
        assert self._writer.begun is not None
        return self._writer.begun

    async def append(self, event: Event, *, durable: bool) -> None:
        """
        Keep one event.

        Raises:
            OSError: It was not kept, or not made safe.
            CodecError: It does not go into JSON.
        """
        self._append(event, self._writer.entry(event), {}, durable)

    async def append_outcome(
        self, event: Event, before: State, after: State, effects: tuple[Effect, ...], *, durable: bool
    ) -> None:
        """Keep one event with what its step came to; raises as ``append``."""
        line = self._writer.entry(event, before, after, effects)
        end = after.end if after.end is not before.end else None
        self._append(event, line, {} if end is None else {"ended": end.reason.value}, durable)

    def _append(self, event: Event, line: bytes, outcome: Outcome, durable: bool) -> None:
        if self._id is None:
            raise RuntimeError("begin comes before append")
        if self._lock is None:
            raise OSError(errno.EIO, "the log is closed", str(self._path))
        summing = copy(self._summing)
        summing.add(event, outcome)
        with self._safe(), _writing(self._db, safe=durable):
            self._db.execute(
                "insert into entry values (?, ?, ?, ?, ?)",
                (self._id, summing.events, summing.runs, line, said(event).casefold()),
            )
            self._db.execute(
                "update session set began_ms = ?, touched_ms = ?, runs = ?, events = ?, end = ? where id = ?",
                (
                    summing.began_ms,
                    summing.touched_ms,
                    summing.runs,
                    summing.events,
                    summing.end,
                    self._id,
                ),
            )
        self._summing = summing
        self._writer.written()
        self._events.append(event)

    def _commit(self, statement: str, values: tuple[Any, ...]) -> int:
        with self._safe(), _writing(self._db, safe=True):
            (id,) = self._db.execute(statement, values).fetchone()
        return int(id)

    @contextmanager
    def _safe(self) -> Iterator[None]:
        """Tell what the database says as an error of the system's."""
        try:
            yield
        except UnicodeEncodeError as problem:
            raise CodecError(f"it does not go into the database: {problem}") from problem
        except sqlite3.Error as problem:
            raise OSError(errno.EIO, str(problem), str(self._path)) from problem

    async def read(self) -> list[Event]:
        """Return all events."""
        return list(self._events)

    async def close(self) -> None:
        """Let go of the session."""
        if self._lock is not None:
            self._db.close()
            os.close(self._lock)
            self._lock = None


@contextmanager
def _writing(db: sqlite3.Connection, *, safe: bool = True) -> Iterator[None]:
    """Write in one transaction, all of it or nothing; *safe*: it waits for the disk."""
    db.execute(f"pragma synchronous = {'full' if safe else 'normal'}")
    db.execute("begin immediate")
    try:
        yield
    except BaseException:
        db.execute("rollback")
        raise
    db.execute("commit")


def _event(line: bytes) -> Event:
    import orjson

    from stepfold.adapters.codec import event_from

    return event_from(orjson.loads(line)["event"])
