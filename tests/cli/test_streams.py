"""What only this file catches: a traceback, or a wrong blame, where a stream is closed, full or left."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from stepfold.adapters.cli.exits import FAILED, OK, OUTPUT_LOST, PIPE_CLOSED, USAGE
from stepfold.adapters.recording import read_recording
from stepfold.adapters.scenarios.check import check_file
from tests.adapters.anthropic_api.loopback import Loopback
from tests.adapters.anthropic_api.sessions.playing import saying
from tests.cli.process import PROGRAM, Ended, environment, ran, scripted, start, with_key
from tests.cli.test_demo import LADDERS

SCENARIO = LADDERS / "05_turns.toml"
COMMANDS: dict[str, list[str]] = {
    "help": ["--help"],
    "version": ["--version"],
    "graph": ["graph", "--json"],
    "replay": ["replay", "05_turns.jsonl"],
    "check": ["check", str(SCENARIO)],
    "check --json": ["check", "--json", str(SCENARIO)],
    "demo": ["demo"],
    "prove": ["prove", "--states", "1"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("streams")
    check_file(SCENARIO, made)
    return made


def closing(number: int) -> dict[str, Any]:
    return {"preexec_fn": lambda: os.close(number)}


def ended(folder: Path, arguments: list[str], **streams: Any) -> Ended:
    """Run the program with *streams* in the place of pipes."""
    given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    process = subprocess.run([*PROGRAM, *arguments], cwd=folder, env=environment(), text=True, **given)
    assert "Traceback" not in f"{process.stdout}{process.stderr}"
    return Ended(process.returncode, process.stdout or "", process.stderr or "")


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_cannot_be_written_is_one_line(command: str, folder: Path) -> None:
    closed = ended(folder, COMMANDS[command], **closing(1))
    with open("/dev/full", "w") as device:
        full = ended(folder, COMMANDS[command], stdout=device)

    assert (OUTPUT_LOST, "the output cannot be written: it is closed") == (closed.code, closed.complaint)
    words = "the output cannot be written: No space left on device"
    assert (OUTPUT_LOST, words) == (full.code, full.complaint)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_goes_away_is_no_error(command: str, folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as left:
        gone = ended(folder, COMMANDS[command], stdout=left)

    assert (PIPE_CLOSED, "") == (gone.code, gone.err)


@pytest.mark.parametrize("command", ["version", "graph", "replay", "check", "demo"])
def test_other_streams_change_nothing(command: str, folder: Path) -> None:
    as_ever = ended(folder, COMMANDS[command])
    with open("/dev/full", "w") as device:
        full = ended(folder, COMMANDS[command], stderr=device)

    last = as_ever.out.splitlines()[-1]
    assert (OK, last) == (full.code, full.out.splitlines()[-1])
    for number in (0, 2):
        closed = ended(folder, COMMANDS[command], **closing(number))
        assert (OK, last, "") == (closed.code, closed.out.splitlines()[-1], closed.err)


@pytest.mark.parametrize("arguments", [["rum"], ["replay", "no.jsonl"], ["run", "-"]], ids=" ".join)
def test_a_complaint_that_nobody_hears_keeps_its_code(arguments: list[str], folder: Path) -> None:
    with open("/dev/full", "w") as device:
        full = ended(folder, arguments, stderr=device)
    closed = ended(folder, arguments, **closing(2))

    assert {(USAGE, "")} == {(full.code, full.out), (closed.code, closed.out)}


def test_nobody_hears_anything(folder: Path) -> None:
    assert OUTPUT_LOST == ended(folder, ["graph"], preexec_fn=lambda: os.closerange(0, 3)).code


# ------------------------------------------------------------------------ a run


@attrs.frozen
class Ran:
    """A run with ``--record`` that has ended, and how often the model was asked."""

    ended: Ended
    asked: int


def recorded(folder: Path, *arguments: str, **streams: Any) -> Ran:
    async def work() -> Ran:
        pipe = subprocess.PIPE
        given = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, **streams}
        script = scripted(saying("one answer"))
        async with Loopback(script) as api:
            words = ("run", *arguments, "--model", "m", "--record", "r.jsonl")
            process = await start(folder, *words, env=with_key(api.url), **given)
            out, err = await process.communicate()
            told = Ended(process.returncode or 0, (out or b"").decode(), (err or b"").decode())
            return Ran(told, sum(request.path.startswith("/v1/messages") for request in api.requests))

    return ran(work())


def test_a_run_whose_reader_goes_away_can_be_gone_on_with(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as left:
        run = recorded(tmp_path, "x", stdout=left)

    assert (PIPE_CLOSED, "") == (run.ended.code, run.ended.err)
    assert len(read_recording(tmp_path / "r.jsonl").events) >= 1


@pytest.mark.parametrize("form", [(), ("--json",), ("--quiet",)], ids="".join)
def test_a_run_whose_output_is_full_blames_the_output(form: tuple[str, ...], tmp_path: Path) -> None:
    with open("/dev/full", "w") as device:
        run = recorded(tmp_path, "x", *form, stdout=device)

    assert OUTPUT_LOST == run.ended.code
    assert "the output cannot be written: No space left on device" == run.ended.complaint


def test_a_run_without_an_output_never_begins(tmp_path: Path) -> None:
    run = recorded(tmp_path, "x", **closing(1))

    assert (OUTPUT_LOST, 0, []) == (run.ended.code, run.asked, list(tmp_path.iterdir()))


@pytest.mark.parametrize("number", [0, 2])
def test_a_run_needs_neither_input_nor_error_output(number: int, tmp_path: Path) -> None:
    run = recorded(tmp_path, "x", **closing(number))

    assert (OK, "") == (run.ended.code, run.ended.err)
    assert "one answer" in run.ended.out
    assert b"\x1b" not in (tmp_path / "r.jsonl").read_bytes()
    assert read_recording(tmp_path / "r.jsonl").torn == 0


@pytest.mark.parametrize(
    ("streams", "words"),
    [
        (lambda: closing(0), "the prompt is empty: nothing came from the input"),
        (
            lambda: {"stdin": os.open("/dev/null", os.O_WRONLY)},
            "the input cannot be read: Bad file descriptor",
        ),
    ],
)
def test_a_prompt_from_an_input_that_cannot_be_read(
    streams: Callable[[], dict[str, Any]], words: str, tmp_path: Path
) -> None:
    given = streams()
    try:
        run = recorded(tmp_path, "-", **given)
    finally:
        if "stdin" in given:
            os.close(given["stdin"])

    assert (USAGE, words) == (run.ended.code, run.ended.complaint)
    assert [] == list(tmp_path.iterdir())


def test_a_recording_that_is_full_is_named(tmp_path: Path) -> None:
    whole = recorded(tmp_path, "x")
    size = (tmp_path / "r.jsonl").stat().st_size
    (tmp_path / "r.jsonl").unlink()

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size - 100, size - 100))

    run = recorded(tmp_path, "x", preexec_fn=small)

    assert OK == whole.ended.code
    assert FAILED == run.ended.code
    assert "r.jsonl: it cannot be written: File too large" == run.ended.complaint
    assert read_recording(tmp_path / "r.jsonl").torn == 0
