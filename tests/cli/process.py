"""The command line as a process of its own, in a folder of its own, against a loopback API."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import attrs

from tests.adapters.anthropic_api.loopback import Json, Loopback, Received, Reply, document, failing

T = TypeVar("T")
PROGRAM = (sys.executable, "-c", "import sys; from stepfold.adapters.cli import main; sys.exit(main())")
TIMEOUT_S = 120


@attrs.frozen
class Ended:
    """A process that has ended."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line of a complaint; fails where there is more, or a traceback."""
        assert "Traceback" not in self.out + self.err
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("stepfold: ")
        return lines[0].removeprefix("stepfold: ")


def environment(**more: str) -> dict[str, str]:
    """The environment of the process: nothing of this machine that changes what it does."""
    ours = ("ANTHROPIC", "STEPFOLD")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", **more}


def with_key(url: str) -> dict[str, str]:
    """The environment of somebody who has a key."""
    return {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": url}


def fresh() -> None:
    """What a shell does for a job in the foreground, wherever the tests run."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


async def start(folder: Path, *arguments: str, **options: Any) -> asyncio.subprocess.Process:
    """Start the program in *folder*."""
    given = {"preexec_fn": fresh, **options, "env": environment(**options.pop("env", {}))}
    return await asyncio.create_subprocess_exec(*PROGRAM, *arguments, cwd=folder, **given)


async def stepfold(
    folder: Path, *arguments: str, env: Mapping[str, str] | None = None, typed: str = ""
) -> Ended:
    """Run the program to its end; nothing is a terminal."""
    pipe = asyncio.subprocess.PIPE
    process = await start(folder, *arguments, env=dict(env or {}), stdin=pipe, stdout=pipe, stderr=pipe)
    out, err = await asyncio.wait_for(process.communicate(typed.encode()), TIMEOUT_S)
    return Ended(process.returncode or 0, out.decode(), err.decode())


def ran(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* to its end."""
    return asyncio.run(work)


def told(folder: Path, *arguments: str, env: Mapping[str, str] | None = None, typed: str = "") -> Ended:
    """Run the program to its end, outside of any loop."""
    return ran(stepfold(folder, *arguments, env=env, typed=typed))


# ------------------------------------------------------------------------- the API


def model_info(name: str) -> Json:
    """What the API tells of a model."""
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": "2026-01-01T00:00:00Z",
        "max_input_tokens": 200_000,
        "max_tokens": 64_000,
    }


def scripted(*replies: Reply, models: tuple[str, ...] = ("m",)) -> Callable[[Received], Reply]:
    """An API that knows *models* and gives *replies* one after the other."""
    left = list(replies)

    def answer(request: Received) -> Reply:
        if request.path.startswith("/v1/models/"):
            name = request.path.rsplit("/", 1)[-1]
            known = name in models
            return document(model_info(name)) if known else failing(404, "not_found_error", f"model: {name}")
        return left.pop(0) if left else failing(400, "invalid_request_error", "the script is at its end")

    return answer


def asked(api: Loopback) -> list[Json]:
    """The requests for messages."""
    return [request.body for request in api.requests if request.path.startswith("/v1/messages")]


# ---------------------------------------------------------------------- a terminal


@attrs.define
class Terminal:
    """A process on a terminal: what it wrote so far, and typing into it."""

    process: asyncio.subprocess.Process
    master: int
    screen: str = ""
    _grown: asyncio.Event = attrs.field(factory=asyncio.Event)

    def read(self) -> None:
        """Take what the process wrote."""
        try:
            data = os.read(self.master, 65_536)
        except OSError:  # the process let go of it
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self.master)
        self.screen += data.decode(errors="replace")
        self._grown.set()

    async def see(self, text: str, times: int = 1) -> None:
        """Wait until *text* was written."""
        async with asyncio.timeout(TIMEOUT_S):
            while self.screen.count(text) < times:
                self._grown.clear()
                await self._grown.wait()

    def type(self, text: str) -> None:
        """Type."""
        os.write(self.master, text.encode())

    def interrupt(self) -> None:
        """Ctrl+C."""
        self.process.send_signal(signal.SIGINT)

    async def end(self) -> int:
        """Wait for the end; return the exit code."""
        code = await asyncio.wait_for(self.process.wait(), TIMEOUT_S)
        await asyncio.sleep(0.05)
        return code


@asynccontextmanager
async def on_terminal(folder: Path, *arguments: str, env: Mapping[str, str]) -> AsyncIterator[Terminal]:
    """Run the program on a terminal of its own."""
    master, slave = pty.openpty()
    try:
        process = await start(folder, *arguments, env=dict(env), stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        terminal = Terminal(process, master)
        asyncio.get_running_loop().add_reader(master, terminal.read)
        try:
            yield terminal
        finally:
            asyncio.get_running_loop().remove_reader(master)
            if process.returncode is None:
                process.kill()
                await process.wait()
    finally:
        os.close(master)
