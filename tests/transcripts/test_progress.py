"""What only this file catches: a bar that nobody sees, or where no terminal is, or that takes words along."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.cli.process import PROGRAM, TIMEOUT_S, environment
from tests.transcripts.test_formats import SESSION, written

BARS = {"import": "importing", "lint": "linting"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with nine transcripts, one more than go without a bar, and one that cannot be read."""
    (tmp_path / "in").mkdir()
    for number in range(9):
        written(tmp_path / "in", SESSION, f"{number}.jsonl")
    (tmp_path / "in" / "bad.json").write_text("7")
    return tmp_path


def ran(folder: Path, *arguments: str, screen: tuple[str, ...], files: str = "in") -> tuple[str, str, str]:
    """Return what *arguments* print to stdout, to stderr and to a terminal that *screen* are shown on."""
    master, slave = pty.openpty()
    out, err = folder / "out.txt", folder / "err.txt"
    with out.open("wb") as to_out, err.open("wb") as to_err:
        process = subprocess.Popen(
            [*PROGRAM, *arguments, files],
            cwd=folder,
            env=environment(TERM="xterm", COLUMNS="300"),
            stdin=subprocess.DEVNULL,
            stdout=slave if "stdout" in screen else to_out,
            stderr=slave if "stderr" in screen else to_err,
        )
    os.close(slave)
    shown = b""
    try:
        while piece := _piece(master):
            shown += piece
    finally:
        os.close(master)
    assert 2 == process.wait(TIMEOUT_S)
    return out.read_text(), err.read_text(), shown.decode()


def _piece(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:  # nobody holds the other side any more
        return b""


@pytest.mark.parametrize("command", BARS)
def test_a_bar_on_the_terminal_takes_no_words_along(folder: Path, command: str) -> None:
    plain, complaint, nothing = ran(folder, command, screen=())
    assert "" == nothing
    assert BARS[command] not in plain + complaint
    assert complaint.startswith("stepfold: in/bad.json: ")
    _clear(folder)
    out, err, shown = ran(folder, command, screen=("stderr",))
    assert (plain, "") == (out, err)
    assert f"{BARS[command]} " in shown
    assert complaint.strip() in shown
    assert "100%" in shown
    _clear(folder)
    out, err, shown = ran(folder, command, screen=("stdout", "stderr"))
    assert ("", "") == (out, err)
    assert f"{BARS[command]} " in shown
    for line in plain.splitlines():
        assert line in shown
    _clear(folder)
    out, err, shown = ran(folder, command, screen=("stdout",))
    assert ("", complaint) == (out, err)
    assert plain == shown.replace("\r\n", "\n")


@pytest.mark.parametrize("command", BARS)
def test_no_bar_beside_json_nor_for_a_few_files(folder: Path, command: str) -> None:
    out, _, shown = ran(folder, command, "--json", screen=("stderr",))
    assert 10 <= len(out.splitlines())
    assert "" == shown
    _clear(folder)
    for number in range(1, 9):
        (folder / "in" / f"{number}.jsonl").unlink()
    _, _, shown = ran(folder, command, screen=("stderr",))
    assert BARS[command] not in shown


def test_a_folder_without_transcripts_is_told_before_anything_is_written(folder: Path) -> None:
    (folder / "empty").mkdir()
    _, err, _ = ran(folder, "import", "in", screen=(), files="empty")
    assert err.startswith("stepfold: empty: there is no transcript in it")
    assert not (folder / "imported").exists()


def _clear(folder: Path) -> None:
    """Nothing is overwritten: what was imported goes."""
    for path in (folder / "imported").glob("*"):
        path.unlink()
