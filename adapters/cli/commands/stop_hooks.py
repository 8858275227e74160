"""
Stop hooks that are shell commands.

A command runs in the tools' folder and gets the answer on its input.  Exit 0
lets the run end, 3 ends it as prevented, 126 and 127 are a crash (the command
cannot be run), anything else sends the model back with the command's output.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from stepfold.adapters.config_file import HookCommand
from stepfold.effects.ready.hooks import Blocks, FunctionHooks, Prevents, StopHook, Stopping, function_hooks

PREVENTS: Final = 3
CANNOT_RUN: Final = (126, 127)
MAX_CHARS: Final = 10_000


class HookFailed(Exception):
    """The command of a hook cannot be run."""


def command_hooks(commands: Iterable[HookCommand], folder: Path | None) -> FunctionHooks:
    """Return the ``Hooks`` port over commands that run in *folder* (None: where the program runs)."""
    return function_hooks(_hook(each, folder) for each in commands)


def _hook(command: HookCommand, folder: Path | None) -> StopHook:
    async def ask(stopping: Stopping) -> Any:
        code, output = await _ran(command.command, folder, stopping)
        words = output.strip()[-MAX_CHARS:] or f"{command.command!r} ended with exit code {code}."
        if code == 0:
            return None
        if code in CANNOT_RUN:
            raise HookFailed(words)
        return Prevents(words) if code == PREVENTS else Blocks(words)

    return StopHook(ask, command.name, command.max_blocks)


async def _ran(command: str, folder: Path | None, stopping: Stopping) -> tuple[int, str]:
    """Run *command*; killed with all that it started where nobody waits for it any more."""
    process = await asyncio.create_subprocess_shell(
        command,
        cwd=folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "STEPFOLD_STOP_HOOK_ACTIVE": "1" if stopping.active else "0"},
        start_new_session=True,
    )
    try:
        output, _ = await process.communicate(stopping.answer.encode())
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode or 0, output.decode(errors="replace")
