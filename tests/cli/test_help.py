"""What only this file catches: a page that tells something else than the program, and slow help."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from stepfold.adapters.cli.exits import (
    BUG,
    FAILED,
    INTERRUPTED,
    OK,
    OUTPUT_LOST,
    PIPE_CLOSED,
    SKIPPED,
    USAGE,
    exit_code,
)
from stepfold.adapters.cli.typed import app
from stepfold.adapters.config_file import parse_settings
from stepfold.engine.events import AbortKind
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.terminals import (
    AbortedStreaming,
    AbortedTools,
    BlockingLimit,
    Completed,
    End,
    Ending,
    HookStopped,
    ImageError,
    Limit,
    MaxTurns,
    ModelError,
    PromptTooLong,
    StopHookPrevented,
    Terminal,
)
from tests.cli.process import environment, told

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
COMMANDS = [
    command.name or command.callback.__name__ for command in app.registered_commands if command.callback
]
NO = Failure(FailureKind.OTHER)
ENDS: list[tuple[End, int]] = [
    (Completed(Ending.END_TURN), 0),
    (Completed(Ending.STOP_SEQUENCE), 0),
    *((Completed(ending), 1) for ending in Ending if ending not in (Ending.END_TURN, Ending.STOP_SEQUENCE)),
    (BlockingLimit(Limit.CONTEXT, 1, 1), 11),
    (PromptTooLong(NO), 12),
    (ImageError(NO), 13),
    (ModelError(NO, 1), 14),
    (StopHookPrevented("h"), 15),
    (HookStopped("h"), 16),
    (MaxTurns(2), 17),
    (AbortedStreaming(AbortKind.HARD), 130),
    (AbortedTools(AbortKind.HARD), 130),
]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_the_page_shows_the_help(command: str, tmp_path: Path) -> None:
    ended = told(tmp_path, *([command] if command else []), "--help")

    assert (0, "") == (ended.code, ended.err)
    assert f"```text\n{ended.out.rstrip()}\n```" in PAGE
    assert (f"## stepfold {command}" if command else "# The command line") in PAGE


@pytest.mark.parametrize(("end", "code"), ENDS, ids=lambda value: getattr(value, "reason", value))
def test_every_end_has_its_code_and_the_page_says_so(end: End, code: int) -> None:
    assert code == exit_code(end)
    rows = [line for line in PAGE.splitlines() if line.startswith(f"| {code} |")]
    assert len(rows) == 1
    assert f"`{end.reason}`" in rows[0]


def test_the_page_lists_exactly_the_codes_there_are() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}

    assert {OK, FAILED, USAGE, SKIPPED, BUG, INTERRUPTED, OUTPUT_LOST, PIPE_CLOSED} | {
        code for _, code in ENDS
    } == listed
    assert set(Terminal) == {end.reason for end, _ in ENDS}


def test_the_config_file_of_the_page_is_one() -> None:
    text = PAGE.split("```toml\n")[1].split("```")[0]

    settings = parse_settings(text, "cli.md")

    assert settings.config().max_turns == 50
    assert (1, ("bash",)) == (len(settings.hooks), settings.deny)


def test_help_needs_no_engine_and_no_sdk(tmp_path: Path) -> None:
    code = (
        "import sys; from stepfold.adapters.cli import main; main(['run', '--help']);"
        "print([name for name in sys.modules if name in ('anthropic', 'rich.console', 'asyncio')"
        " or name.startswith('stepfold.engine')], file=sys.stderr)"
    )

    process = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )

    assert process.stderr.strip() == "[]"


def test_the_entry_point_is_the_one_that_is_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert project["scripts"]["stepfold"] == "stepfold.adapters.cli:main"


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    for argument in ("version", "--version"):
        assert told(tmp_path, argument).out == f"stepfold {project['version']}\n"
