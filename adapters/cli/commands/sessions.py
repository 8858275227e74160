"""``stepfold sessions``: list, search, rename, delete and export them."""

from __future__ import annotations

import json as jsons
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import attrs

from stepfold.adapters.cli.exits import FAILED, OK, Problem
from stepfold.adapters.cli.terminal.words import line_of
from stepfold.adapters.sessions.port import SessionError, SessionInfo, Sessions

VARIABLE = "STEPFOLD_SESSIONS"


def place() -> Path:
    """Return where sessions are kept: of the environment, or in the user's data folder."""
    if given := os.environ.get(VARIABLE):
        return Path(given)
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return Path(base) / "stepfold" / "sessions.db"


@contextmanager
def session_store() -> Iterator[Sessions]:
    """Yield the store: files where its path is a folder, else a database; raises ``SessionError``."""
    from stepfold.adapters.sessions.files import FileSessions
    from stepfold.adapters.sessions.sqlite import SqliteSessions

    path = place()
    store: Sessions = FileSessions(path) if path.is_dir() else SqliteSessions(path)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _told() -> Iterator[Sessions]:
    try:
        with session_store() as store:
            yield store
    except SessionError as error:
        raise Problem(str(error)) from error


def list_command(*, json: bool) -> int:
    """Print every session, the one that was touched last first."""
    with _told() as store:
        for info in store.sessions():
            print(jsons.dumps(attrs.asdict(info), ensure_ascii=False) if json else _line(info))
    return OK


def _line(info: SessionInfo) -> str:
    if info.problem:
        return f"{info.name}: {line_of(info.problem, 200)}"
    when = datetime.fromtimestamp((info.touched_ms or 0) / 1_000, UTC).strftime("%Y-%m-%d %H:%M")
    end = info.end or ("not finished" if info.runs else "no run")
    return f"{info.name:24} {when}  {info.runs:3} runs  {end:16} {line_of(info.prompt, 60)}"


def search_command(words: str, *, json: bool) -> int:
    """Print what says each of *words*; 1 where nothing does."""
    with _told() as store:
        hits = store.search(words)
    for hit in hits:
        if json:
            print(jsons.dumps(attrs.asdict(hit), ensure_ascii=False))
        else:
            print(f"{hit.session}, event {hit.event}: {line_of(hit.text, 200)}")
    return OK if hits else FAILED


def rename_command(name: str, to: str) -> int:
    """Keep a session under another name."""
    with _told() as store:
        store.rename(name, to)
    return OK


def delete_command(name: str) -> int:
    """Remove a session."""
    with _told() as store:
        store.delete(name)
    return OK


def export_command(name: str, record: Path) -> int:
    """Write a session as a recording."""
    with _told() as store:
        content = store.export(name)
    try:
        with record.open("xb") as new:
            new.write(content)
    except FileExistsError:
        raise Problem(f"--record: {record} exists already; wanted a new file") from None
    except OSError as error:
        record.unlink(missing_ok=True)
        raise Problem(f"--record: {record}: {error.strerror or error}") from error
    return OK
