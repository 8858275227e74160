"""Sessions as plain files: one recording each, in one folder."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from stepfold.adapters.jsonl_log import JsonlLog
from stepfold.adapters.recording import Entries, Recording, RecordingError, read_recording
from stepfold.adapters.recording.reading import opened
from stepfold.adapters.sessions.port import (
    Hit,
    SessionError,
    SessionInfo,
    Summing,
    checked_name,
    matches,
    said,
)
from stepfold.engine.events import RunStarted

SUFFIX: Final = ".jsonl"


class FileSessions:
    """
    Keeps each session in a file of its name, which is a recording that every command takes.

    What a file system may not like in a name stands in the file's name as
    ``%2F`` does.  Files with other names are left alone.

    Args:
        folder: Made with the first session.
        fsync: As for ``JsonlLog``.
    """

    def __init__(self, folder: str | os.PathLike[str], *, fsync: bool = True) -> None:
        self.folder = Path(folder)
        self._fsync = fsync

    def open(self, name: str) -> JsonlLog:
        """Return the log of *name*; see ``Sessions``."""
        path = self._path(name)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            return JsonlLog(path, fsync=self._fsync)
        except RecordingError as problem:
            raise SessionError(f"session {name!r}: {problem}") from problem
        except OSError as problem:
            raise SessionError(f"{self.folder}: {problem.strerror or problem}") from problem

    def sessions(self) -> list[SessionInfo]:
        """Return all sessions, the one that was touched last first; one that is damaged says so."""
        found = [self._info(name, path) for name, path in self._files()]
        return sorted(found, key=lambda info: (-(info.touched_ms or 0), info.name))

    def search(self, words: str, limit: int = 100) -> list[Hit]:
        """Return what says each of *words*; see ``Sessions``."""
        hits: list[Hit] = []
        for info in self.sessions():
            if info.problem:
                continue
            run = 0
            for number, event in enumerate(self.recording(info.name).events, 1):
                run += isinstance(event, RunStarted)
                if (text := said(event)) and matches(text, words):
                    hits.append(Hit(info.name, number, run, text))
                    if len(hits) == limit:
                        return hits
        return hits

    def rename(self, name: str, to: str) -> None:
        """Keep *name* under another name; see ``Sessions``."""
        other = self._path(to)
        with self._alone(name) as path:
            try:
                os.link(path, other)  # unlike a rename, this never replaces another one
            except FileExistsError:
                raise SessionError(f"session {to!r}: there is one already") from None
            path.unlink()

    def delete(self, name: str) -> None:
        """Remove a session; see ``Sessions``."""
        with self._alone(name) as path:
            path.unlink()

    def recording(self, name: str) -> Recording:
        """Return what a session holds; see ``Sessions``."""
        try:
            return read_recording(self._there(name))
        except RecordingError as problem:
            raise SessionError(f"session {name!r}: {problem}") from problem

    def export(self, name: str) -> bytes:
        """Return a session as the contents of a recording's file; see ``Sessions``."""
        recording = self.recording(name)
        return self._there(name).read_bytes()[: recording.length]

    def close(self) -> None:
        """Do nothing: no file is held."""

    def _path(self, name: str) -> Path:
        return self.folder / (urllib.parse.quote(checked_name(name), safe=" ") + SUFFIX)

    def _there(self, name: str) -> Path:
        path = self._path(name)
        if not path.is_file():
            raise SessionError(f"session {name!r}: there is none")
        return path

    @contextmanager
    def _alone(self, name: str) -> Iterator[Path]:
        """Yield the file of *name* while no other log has it."""
        path = self._there(name)
        try:
            log = JsonlLog(path, fsync=self._fsync)
        except RecordingError as problem:
            raise SessionError(f"session {name!r}: {problem}") from problem
        try:
            yield path
        except OSError as problem:
            raise SessionError(f"session {name!r}: {problem.strerror or problem}") from problem
        finally:
            log.let_go()

    def _files(self) -> Iterator[tuple[str, Path]]:
        try:
            names = sorted(os.listdir(self.folder))
        except FileNotFoundError:
            return
        except OSError as problem:
            raise SessionError(f"{self.folder}: {problem.strerror or problem}") from problem
        for each in names:
            name = urllib.parse.unquote(each.removesuffix(SUFFIX))
            if each.endswith(SUFFIX) and urllib.parse.quote(name, safe=" ") + SUFFIX == each:
                yield name, self.folder / each

    def _info(self, name: str, path: Path) -> SessionInfo:
        summing = Summing()
        try:
            with opened(path) as file:
                entries = Entries(file, str(path))
                for event, outcome in entries:
                    summing.add(event, outcome)
        except RecordingError as problem:
            return SessionInfo(name, None, None, 0, 0, "", "", None, str(problem))
        return summing.info(name, entries.begun)
