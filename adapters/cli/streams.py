"""
Standard streams that can be closed, full, or left by their reader.

A closed one is put on the null device first: else the next file that is opened
would get its number, and a complaint would end in a recording.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

NAMES: Final = ("stdin", "stdout", "stderr")


class OutputLost(Exception):
    """The output cannot be written.  No ``OSError``: nobody on the way may take it for one of a file."""


class Output(io.FileIO):
    """The standard output; ``lost`` says why it cannot be written, and what comes after is dropped."""

    lost: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        """Write; raises ``OutputLost`` the first time that it cannot be done."""
        if self.lost is not None:
            return memoryview(data).nbytes
        try:
            return _patiently(super().write, self.fileno(), data)
        except OSError as problem:
            self.lost = problem
            raise OutputLost(str(problem)) from problem


class ErrorOutput(io.FileIO):
    """The error output; where it cannot be written nobody can be told, and the exit code has to do."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write, or drop."""
        try:
            return _patiently(super().write, self.fileno(), data)
        except OSError:
            return memoryview(data).nbytes


class Streams:
    """
    The standard streams of the process while this program has them.

    One that somebody has put something else in the place of is left as it is.
    """

    def __init__(self) -> None:
        self._before = {name: getattr(sys, name) for name in NAMES}
        self._output: Output | None = None
        self._closed = sys.stdout is None

    @classmethod
    def taken(cls) -> Streams:
        """Take the streams over."""
        streams = cls()
        for number, name in enumerate(NAMES):
            if getattr(sys, name) is None:
                _put_on_null_device(number)
                setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115
        if (output := sys.stdout) is sys.__stdout__ and output is not None:
            streams._output = Output(output.fileno(), "w", closefd=False)
            sys.stdout = _over(streams._output, output)
        if (errors := sys.stderr) is sys.__stderr__ and errors is not None:
            sys.stderr = _over(ErrorOutput(errors.fileno(), "w", closefd=False), errors)
        return streams

    @property
    def lost(self) -> OSError | None:
        """Why the output cannot be written; None where it can."""
        if self._closed:
            return OSError(errno.EBADF, "it is closed")
        return None if self._output is None else self._output.lost

    def give_back(self) -> None:
        """Put the streams back that were there before."""
        for name, stream in self._before.items():
            if getattr(sys, name) is not stream:  # else it may lack a flush
                with contextlib.suppress(OutputLost):
                    getattr(sys, name).flush()
                setattr(sys, name, stream)


def _over(raw: io.FileIO, before: TextIO) -> io.TextIOWrapper:
    """Return a text stream over *raw*, like *before*; a character that it lacks becomes a question mark."""
    before.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=before.encoding,
        errors="replace",
        line_buffering=getattr(before, "line_buffering", False),
        write_through=getattr(before, "write_through", False),
    )


def _patiently(write: Callable[[ReadableBuffer], int | None], file: int, data: ReadableBuffer) -> int:
    """Write; wait for the reader where the file does not."""
    while (done := write(data)) is None:
        import select

        select.select((), (file,), ())
    return done


def _put_on_null_device(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        file = os.open(os.devnull, os.O_RDWR)
        if file != number:
            os.dup2(file, number)
            os.close(file)
        os.set_inheritable(number, True)
