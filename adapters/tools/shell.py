"""One bash process that lives from the first command to the end of the run."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, cast

import attrs

from stepfold.adapters.tools.definition import ToolFailed

if TYPE_CHECKING:
    from anthropic.lib.tools.agent_toolset import BashSession
    from anyio.abc import ByteReceiveStream, ByteSendStream, Process

NO_EXIT_CODE = -1


class Shell:
    """
    A shell in *folder*, started with the first command.

    The SDK's ``BashSession`` talks to it.  The process leads a group of its
    own, so that ending it ends what it started as well.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._session: BashSession | None = None
        self._watch: asyncio.Task[None] | None = None

    async def run(self, command: str, *, timeout_ms: int) -> str:
        """
        Return what *command* printed.

        Raises ``ToolFailed`` where it fails, where it takes longer than
        *timeout_ms* ms, and where it ends the shell.  In the last two cases,
        and where the caller is cancelled, the shell and all that it started
        are killed; the next command gets a new one.
        """
        from anyio import BrokenResourceError, ClosedResourceError

        lost = "[the last shell had ended: this is a new one]\n" if self._ended() else ""
        session = await self._open()
        try:
            output, code = await session.exec(command, timeout=timeout_ms / 1000)
        except TimeoutError as error:
            raise ToolFailed(f"{lost}The command did not end in {timeout_ms} ms and was stopped.") from error
        except (BrokenResourceError, ClosedResourceError) as error:
            await self.close()
            raise ToolFailed(f"{lost}The shell ended; the next command gets a new one.") from error
        if code == NO_EXIT_CODE:
            await self.close()
            raise ToolFailed(f"{lost}{output}\n[the command ended the shell; the next one gets a new shell]")
        if code != 0:
            raise ToolFailed(f"{lost}{output}\n[exit code {code}]")
        return lost + output

    async def close(self) -> None:
        """End the shell and all that it started."""
        session, self._session = self._session, None
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()
            await asyncio.wait([watch])
        if session is not None:
            await session.close()

    def _ended(self) -> bool:
        return self._session is not None and self._session.closed

    async def _open(self) -> BashSession:
        from anthropic.lib.tools.agent_toolset import BashSession

        if self._ended():
            await self.close()
        if self._session is None:
            group = await _start(self._folder)
            self._watch = asyncio.create_task(group.end_together())
            self._session = BashSession(cast("Process", group))
        return self._session


async def _start(folder: Path) -> _Group:
    """Start bash without the credentials of this process: the model writes its commands."""
    import anyio

    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANTHROPIC_")}
    process = await anyio.open_process(
        ["/bin/bash", "--noprofile", "--norc"],
        cwd=folder,
        env={**kept, "PS1": "", "PS2": "", "TERM": "dumb"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    return _Group(process)


@attrs.frozen
class _Group:
    """A process as the SDK wants it, whose ``kill`` reaches the whole group."""

    process: Process

    @property
    def stdin(self) -> ByteSendStream | None:
        return self.process.stdin

    @property
    def stdout(self) -> ByteReceiveStream | None:
        return self.process.stdout

    @property
    def returncode(self) -> int | None:
        return self.process.returncode

    async def end_together(self) -> None:
        """Wait for the shell and kill what is left of its group, also where the wait is cancelled."""
        try:
            await self.process.wait()
        finally:
            self.kill()

    def kill(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return  # nothing is left of it

    async def wait(self) -> int:
        return await self.process.wait()

    async def aclose(self) -> None:
        await self.process.aclose()
