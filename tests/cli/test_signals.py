"""What only this file catches: a traceback, a wrong code or a file left behind after Ctrl+C."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stepfold.adapters.cli.exits import INTERRUPTED, OK
from tests.adapters.anthropic_api.loopback import Loopback
from tests.adapters.anthropic_api.sessions.playing import saying
from tests.cli.process import environment, fresh, ran, scripted, start, with_key
from tests.cli.test_demo import LADDERS

# The program, to which a signal comes while the module MODULE is looked for.
HIT = """
import os, signal, sys
number, module = int(sys.argv.pop(1)), sys.argv.pop(1)
class Striking:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), number)
sys.meta_path.insert(0, Striking())
from stepfold.adapters.cli import main
sys.exit(main())
"""
IMPORTED = (
    "stepfold.adapters.cli.program",
    "stepfold.adapters.cli.signals",
    "typer",
    "typer.core",
    "stepfold.adapters.cli.typed",
    "stepfold.adapters.cli.commands.demo",
    "asyncio.events",
    "rich.console",
    "attr",
    "stepfold.engine.table",
    "stepfold.adapters.codec",
    "stepfold.adapters.scenarios.check",
)


def unheard() -> None:
    """What a shell does for a job in the background."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def struck(folder: Path, number: int, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HIT, str(int(number)), module, *arguments],
        cwd=folder,
        env=environment(TMPDIR=str(folder)),
        capture_output=True,
        text=True,
        preexec_fn=fresh,
    )


@pytest.mark.parametrize("module", IMPORTED)
def test_ctrl_c_in_the_middle_of_an_import_is_no_traceback(module: str, tmp_path: Path) -> None:
    process = struck(tmp_path, signal.SIGINT, module, "demo")

    assert (INTERRUPTED, "") == (process.returncode, process.stdout)
    assert process.stderr in ("", "stepfold: interrupted\n")
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("stepfold.engine.table", ["check", str(LADDERS)]),
        ("stepfold.engine.table", ["graph"]),
        ("stepfold.adapters.recording", ["replay", "no.jsonl"]),
        ("anthropic._client", ["run", "x", "--record", "r.jsonl"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_every_way_to_stop_a_command_before_it_began(
    number: int, module: str, arguments: list[str], tmp_path: Path
) -> None:
    process = struck(tmp_path, number, module, *arguments)

    assert (INTERRUPTED, "", "stepfold: interrupted\n") == (
        process.returncode,
        process.stdout,
        process.stderr,
    )
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_stopped_leaves_nothing(number: int, tmp_path: Path) -> None:
    async def work() -> tuple[int | None, bytes]:
        pipe = asyncio.subprocess.PIPE
        process = await start(tmp_path, "demo", env={"TMPDIR": str(tmp_path)}, stdout=pipe, stderr=pipe)
        assert process.stdout is not None
        while not (line := await process.stdout.readline()).startswith(b"->"):
            assert line, "it ended"
        process.send_signal(number)
        _, told = await process.communicate()
        return process.returncode, told

    assert (INTERRUPTED, b"stepfold: interrupted\n") == ran(work())
    assert [] == list(tmp_path.iterdir())


def test_what_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """As under ``nohup``, or in the background of a script: the run goes on to its end."""

    async def work() -> tuple[int | None, bytes]:
        async with Loopback(scripted(saying("one answer"))) as api:
            options = {"stdout": asyncio.subprocess.PIPE, "preexec_fn": unheard}
            env = with_key(api.url)
            process = await start(tmp_path, "run", "x", "--model", "m", "--tools", ".", env=env, **options)
            while not api.requests:
                await asyncio.sleep(0.01)
            for number in (signal.SIGINT, signal.SIGHUP):
                process.send_signal(number)
            out, _ = await process.communicate()
            return process.returncode, out

    code, out = ran(work())

    assert OK == code
    assert b"one answer" in out


def test_a_caller_in_the_same_process_gets_everything_back() -> None:
    code = (
        "import signal, sys; from stepfold.adapters.cli import main\n"
        "before = sys.stdin, sys.stdout, sys.stderr, signal.getsignal(2), signal.getsignal(15)\n"
        "codes = main(['--version']), main(['graph', '--no']), main(['replay', 'no.jsonl'])\n"
        "after = sys.stdin, sys.stdout, sys.stderr, signal.getsignal(2), signal.getsignal(15)\n"
        "print(codes, before == after)"
    )

    process = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, preexec_fn=fresh
    )

    assert "(0, 2, 2) True" == process.stdout.splitlines()[-1]
    assert 2 == len(process.stderr.splitlines()), os.linesep + process.stderr
