"""Progress is for people at a terminal: it never takes what goes to a file, and JSON has none."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import threading
from pathlib import Path

import attrs
import pytest

from stepfold.adapters.scenarios.check import check_file
from tests.cli.process import PROGRAM, environment
from tests.cli.test_demo import LADDERS

COUNT = 12
SAID = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
]


@attrs.frozen
class Seen:
    """What came to the file and to the terminal."""

    out: str
    screen: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dozen recordings and a dozen transcripts."""
    made = tmp_path_factory.mktemp("progress")
    (made / "said").mkdir()
    (made / "kept").mkdir()
    check_file(LADDERS / "05_turns.toml", made)
    [recording] = made.glob("*.jsonl")
    for number in range(COUNT):
        (made / "said" / f"{number}.json").write_text(json.dumps(SAID))
        (made / "kept" / f"{number}.jsonl").write_bytes(recording.read_bytes())
    return made


def with_a_terminal_for_errors(folder: Path, *arguments: str) -> Seen:
    """Run the program as ``stepfold ... > file`` does at a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=folder,
        env=environment(TERM="xterm"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=slave,
        text=True,
    )
    os.close(slave)
    screen: list[bytes] = []

    def read() -> None:
        while True:
            try:
                data = os.read(master, 65_536)
            except OSError:  # the process let go of it
                return
            if not data:
                return
            screen.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    out, _ = process.communicate(timeout=120)
    reader.join(120)
    os.close(master)
    return Seen(out, b"".join(screen).decode(errors="replace"))


@pytest.mark.parametrize(
    ("arguments", "word", "lines"),
    [
        (["replay", "kept"], "replaying", COUNT),
        (["lint", "said"], "linting", 1),
        (["import", "said", "--out", "new"], "importing", COUNT),
    ],
)
def test_what_is_printed_goes_to_its_file_and_progress_to_the_terminal(
    arguments: list[str], word: str, lines: int, folder: Path
) -> None:
    seen = with_a_terminal_for_errors(folder, *arguments)
    assert len(seen.out.splitlines()) > lines
    assert word not in seen.out
    assert word in seen.screen
    assert f"{COUNT} " in seen.out.splitlines()[-1]
    assert seen.out.splitlines()[-1] not in seen.screen


@pytest.mark.parametrize(
    "arguments", [["replay", "kept"], ["lint", "said"], ["import", "said", "--out", "j"]]
)
def test_json_has_no_progress(arguments: list[str], folder: Path) -> None:
    seen = with_a_terminal_for_errors(folder, *arguments, "--json")
    assert "" == seen.screen
    assert [json.loads(line) for line in seen.out.splitlines()]
