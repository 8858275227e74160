"""The log as a file of JSON lines: a header, then one event a line, append only."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
import weakref
from pathlib import Path

from stepfold.adapters.recording import Recording, RecordingError, parse_recording
from stepfold.adapters.recording.format import REDACTED
from stepfold.adapters.recording.redaction import Redact
from stepfold.adapters.recording.writing import Writer
from stepfold.effects.ports import Delta, Start
from stepfold.engine import State
from stepfold.engine.effects import Effect
from stepfold.engine.events import Event

logger = logging.getLogger(__name__)


class JsonlLog:
    """
    Keeps events in a file.

    A line is written whole or not at all: one that was torn by a crash is cut
    off when the file is opened again (``repaired`` tells), one that fails half
    way is taken back, and a file that was made and never begun is gone again
    when the log is closed.  Every append reaches the operating system before it
    returns, so it survives the process; a durable one reaches the disk, and
    with it all lines before.

    Args:
        path: Made if it is not there.  One log at a time may write to it; ``close``, or the
            end of the last reference, lets go of it.
        fsync: False: nothing waits for the disk; a crash of the machine (not
            of the process) may lose the end of the log.
        outcomes: Whether each entry tells what its step came to, which a replay compares.
        digests: Whether it also tells a fingerprint of the whole state.
        deltas: Whether the pieces of streams are kept between the entries.
        redact: Makes each text that is written (``redaction.common_secrets`` is a ready one).  The run
            goes on with the true one; a replay or a resume sees what is in the file.  A file that says that
            its texts are redacted is gone on with if one is given (``str`` leaves texts as they are).

    Raises:
        RecordingError: The file is damaged, no recording, in use, or cannot be opened; or it is redacted,
            and *redact* is not given.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fsync: bool = True,
        outcomes: bool = True,
        digests: bool = False,
        deltas: bool = False,
        redact: Redact | None = None,
    ) -> None:
        self.path = Path(path)
        self.repaired: str | None = None
        self.keeps_deltas = deltas
        self._fsync = fsync
        self._broken = ""
        self._held = False
        self._made = not self.path.exists()
        self._file = _opened(self.path)
        try:
            self._kept = self._read_and_repair(redact is not None)
        except BaseException:
            os.close(self._file)
            raise
        self._open = True
        # A log that nobody holds any more lets go of its file: the next run in this process may have it.
        self._let_go = weakref.finalize(self, os.close, self._file)
        self._writer = Writer(
            outcomes=outcomes, digests=digests, deltas=deltas, redact=redact, kept=self._kept
        )
        self._length = self._kept.length if self._kept is not None else 0

    def hold(self) -> None:
        """Belong to one run; ``RuntimeError`` where it belongs to another."""
        if self._held:
            raise RuntimeError(f"log: another run is writing {self.path}; one log holds one run at a time")
        self._held = True

    def release(self) -> None:
        """Belong to nobody."""
        self._held = False

    def _read_and_repair(self, redacting: bool) -> Recording | None:
        content = self.path.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            raise RecordingError(f"{self.path}: it is packed; unpack it to go on with it (gunzip)")
        recording = parse_recording(content, str(self.path))
        if recording is not None and REDACTED in recording.header.keeps and not redacting:
            raise RecordingError(
                f"{self.path}: its texts are redacted; say how with redact=, or redact=str for not"
            )
        whole = recording.length if recording is not None else 0
        if whole < len(content):
            os.ftruncate(self._file, whole)
            self.repaired = f"{self.path}: the last line was torn; {len(content) - whole} bytes were cut off"
            logger.warning("%s", self.repaired)
        return recording

    async def begin(self, start: Start) -> Start:
        """
        Write the header of a new file; return what the file began with.

        Raises:
            OSError: As for ``append``.
            CodecError: It does not go into JSON.
        """
        if self._writer.begun is None:
            self._write(self._writer.header(start))
            self._writer.begin(start)
            self._sync()
            if self._fsync:
                _sync_folder(self.path.parent)
            return start  # the run goes on with the true one
        return self._writer.taken_up(start)

    async def append(self, event: Event, *, durable: bool) -> None:
        """
        Write one event.

        Raises:
            OSError: It was not written, or not made safe; nothing of it is left in the file.
                ``filename`` is that of the log.
            CodecError: It does not go into JSON.
        """
        self._append(self._writer.entry(event), durable)

    async def append_outcome(
        self, event: Event, before: State, after: State, effects: tuple[Effect, ...], *, durable: bool
    ) -> None:
        """Write one event with what its step came to; raises as ``append``."""
        self._append(self._writer.entry(event, before, after, effects), durable)

    async def append_delta(self, effect_id: int, delta: Delta, at_ms: int) -> None:
        """Write a piece of a stream; raises as ``append``."""
        if line := self._writer.delta(effect_id, delta, at_ms):
            self._write(line)

    def _append(self, lines: bytes, durable: bool) -> None:
        self._write(lines)
        self._writer.written()
        self._kept = None
        if durable:
            self._sync()

    async def read(self) -> list[Event]:
        """Return all events."""
        kept = self._kept or parse_recording(self.path.read_bytes(), str(self.path))
        return list(kept.events) if kept is not None else []

    async def close(self) -> None:
        """Make all safe and let go of the file."""
        if not self._open:
            return
        self._open = False
        try:
            if self._writer.begun is None and self._made:
                self.path.unlink(missing_ok=True)
            elif not self._broken:
                self._sync()
        finally:
            self._let_go()

    def let_go(self) -> None:
        """Let go of the file as it is, without writing or removing anything."""
        self._open = False
        self._let_go()

    def _write(self, line: bytes) -> None:
        if not self._open or self._broken:
            raise OSError(errno.EIO, self._broken or "the log is closed", str(self.path))
        try:
            done = os.write(self._file, line)
            while done < len(line):
                done += os.write(self._file, line[done:])
        except OSError as problem:
            self._take_back(problem)
            raise self._named(problem) from problem
        except BaseException as problem:
            self._take_back(problem)
            raise
        self._length += len(line)

    def _take_back(self, problem: BaseException) -> None:
        self._broken = f"an earlier write failed ({problem})"
        os.ftruncate(self._file, self._length)
        self._broken = ""

    def _sync(self) -> None:
        if not self._fsync:
            return
        try:
            os.fsync(self._file)
        except OSError as problem:
            # What the kernel could not write it may have forgotten: nothing here can be trusted any more.
            self._broken = f"an earlier fsync failed ({problem})"
            raise self._named(problem) from problem

    def _named(self, problem: OSError) -> OSError:
        """Return *problem* with the name of the file, which the system does not tell of an open one."""
        return OSError(problem.errno, problem.strerror or str(problem), str(self.path))


def _opened(path: Path) -> int:
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise RecordingError(f"{path}: {problem.strerror or problem}") from problem
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise RecordingError(f"{path}: it is a device or a pipe; wanted a file")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        os.close(file)
        raise RecordingError(f"{path}: another log, of this or another process, has it") from problem
    return file


def _sync_folder(folder: Path) -> None:
    """Make the file's name safe as well as its contents."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
