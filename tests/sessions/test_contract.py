"""What only this file catches: a store of sessions that is not like the other one, or loses something."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.cli import main
from stepfold.adapters.clock import ManualClock
from stepfold.adapters.codec import digest
from stepfold.adapters.ids import FixedIds
from stepfold.adapters.recording import parse_recording
from stepfold.adapters.replay.folding import fold_recording
from stepfold.adapters.scripted import ScriptedModel, calls
from stepfold.adapters.sessions import FileSessions, SessionError, Sessions, SqliteSessions
from stepfold.adapters.tools import tool
from stepfold.effects import fold, run_sync
from stepfold.engine import Config
from tests.cli.test_json import documented

Make = Callable[[], Sessions]


@tool(read_only=True, safe=True)
def read(path: str) -> str:
    """Read."""
    return f"the Contents of {path}"


@pytest.fixture(params=[FileSessions, SqliteSessions])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    return lambda: request.param(tmp_path / "kept")


@pytest.fixture
def store(make: Make) -> Iterator[Sessions]:
    made = make()
    yield made
    made.close()


def ran(store: Sessions, name: str, prompt: str | None, *answers: Any, **options: Any) -> Any:
    log = store.open(name)
    try:
        return run_sync(prompt, model=ScriptedModel(list(answers)), tools=[read], log=log, **options)
    finally:
        asyncio.run(log.close())


def test_many_runs_on_one_history(store: Sessions, make: Make) -> None:
    ran(store, "one", "first", calls("read", {"path": "x"}), "done")
    result = ran(store, "one", "second", "again")
    recording = store.recording("one")
    assert ["first", "the Contents of x", "done", "second", "again"] == [
        block.text if hasattr(block, "text") else block.content[0].text
        for message in result.state.data.messages
        for block in message.content
        if not hasattr(block, "input")
    ]
    state = fold(recording.events, recording.state(), recording.begun.config)
    assert digest(result.state) == digest(state)
    other = make()
    assert recording.events == other.recording("one").events
    other.close()


def test_what_is_listed(store: Sessions) -> None:
    assert [] == store.sessions()
    ran(store, "a", "first", "done", config=Config(max_turns=1))
    ran(store, "b", "other", calls("read", {"path": "x"}), "never", config=Config(max_turns=1))
    ran(store, "a", "second", "done")
    by_name = {info.name: info for info in store.sessions()}
    assert {"a", "b"} == set(by_name)
    a, b = by_name["a"], by_name["b"]
    assert (2, 6, "first", "completed", "main", "") == (a.runs, a.events, a.prompt, a.end, a.model, a.problem)
    assert (1, "other", "max_turns") == (b.runs, b.prompt, b.end)
    assert a.began_ms is not None
    assert a.touched_ms is not None
    assert a.began_ms <= a.touched_ms
    assert "a" == store.sessions()[0].name or a.touched_ms == b.touched_ms


def test_a_run_that_is_not_finished_is_listed_and_gone_on_with(store: Sessions) -> None:
    log = store.open("half")
    with pytest.raises(ZeroDivisionError):
        run_sync("go", model=ScriptedModel(["done"]), log=log, on_item=lambda item: 1 // 0)
    asyncio.run(log.close())
    (info,) = store.sessions()
    assert (1, None) == (info.runs, info.end)
    ran(store, "half", None, "done")
    assert "completed" == store.sessions()[0].end


def test_what_is_said_is_found(store: Sessions) -> None:
    ran(store, "a", "Straße nach Süden", calls("read", {"path": "map.txt"}), "Turn LEFT there")
    ran(store, "b", "other", "nothing of the kind")
    assert [("a", 1)] == [(hit.session, hit.event) for hit in store.search("STRASSE süd")]
    assert ["Turn LEFT there"] == [hit.text for hit in store.search("left turn")]
    assert {"a"} == {hit.session for hit in store.search("map.txt")}
    assert ["the Contents of map.txt"] == [hit.text for hit in store.search("contents of")]
    assert [] == store.search("left other")
    assert [] == store.search("%")
    assert 1 == len(store.search("e", limit=1))
    assert all(hit.run == 1 for hit in store.search("t"))


@pytest.mark.parametrize("name", ["a b", "ä/ö", "..", ".hidden", "a%2Fb", "CON", "x" * 80])
def test_names(store: Sessions, name: str) -> None:
    ran(store, name, "go", "done")
    assert [name] == [info.name for info in store.sessions()]
    store.rename(name, "other")
    assert ["other"] == [info.name for info in store.sessions()]
    assert 3 == len(store.recording("other").events)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 81, "\ud800", "\0"])
def test_what_is_no_name(store: Sessions, name: str) -> None:
    for use in (store.open, store.recording, store.delete, store.export):
        with pytest.raises(SessionError, match="it is no name; wanted 1 to 80 bytes of printable text"):
            use(name)


def test_renamed_and_deleted(store: Sessions) -> None:
    ran(store, "a", "go", "done")
    ran(store, "b", "go", "done")
    with pytest.raises(SessionError, match="session 'b': there is one already"):
        store.rename("a", "b")
    for use in (store.delete, store.recording, store.export, lambda name: store.rename(name, "x")):
        with pytest.raises(SessionError, match="session 'none': there is none"):
            use("none")
    store.delete("a")
    assert ["b"] == [info.name for info in store.sessions()]
    ran(store, "a", "anew", "done")
    assert 1 == {info.name: info for info in store.sessions()}["a"].runs


def test_one_log_at_a_time(store: Sessions, make: Make) -> None:
    ran(store, "a", "go", "done")
    log, other = store.open("a"), make()
    for use in (other.open, other.delete, lambda name: other.rename(name, "b")):
        with pytest.raises(SessionError, match=r"session 'a': .*another log, of this or another"):
            use("a")
    free = other.open("c")
    asyncio.run(free.close())
    asyncio.run(log.close())
    other.delete("a")
    other.close()


def test_an_export_is_a_recording(store: Sessions, tmp_path: Path) -> None:
    ran(store, "a", "go", calls("read", {"path": "x"}), "done")
    (tmp_path / "a.jsonl").write_bytes(store.export("a"))
    folded = fold_recording(tmp_path / "a.jsonl")
    assert folded.ok
    assert folded.compared == folded.events
    whole = parse_recording(store.export("a"), "a")
    assert whole is not None
    assert store.recording("a").events == whole.events


def test_both_keep_the_same(tmp_path: Path) -> None:
    kept = []
    for each in (FileSessions(tmp_path / "f"), SqliteSessions(tmp_path / "d")):
        ran(each, "a", "go", "done", clock=ManualClock(), ids=FixedIds())
        kept.append(each.export("a"))
        each.close()
    assert kept[0] == kept[1]


DIES = """
import os, signal, sys
from pathlib import Path
from stepfold.adapters.scripted import ScriptedModel, calls
from stepfold.adapters.sessions import FileSessions, SqliteSessions
from stepfold.adapters.tools import tool
from stepfold.effects import run_sync

@tool
def work() -> str:
    "Work."
    os.kill(os.getpid(), signal.SIGKILL)
    return ""

store = {"f": FileSessions, "d": SqliteSessions}[sys.argv[1]](Path(sys.argv[2]))
model = ScriptedModel([calls("work", {})])
run_sync("go", model=model, tools=[work], log=store.open("a"), can_use_tool=lambda *_: True)
"""


@pytest.mark.parametrize("kind", ["f", "d"])
def test_a_process_that_is_killed_loses_nothing(tmp_path: Path, kind: str) -> None:
    done = subprocess.run([sys.executable, "-c", DIES, kind, str(tmp_path / "kept")], check=False)
    assert -signal.SIGKILL == done.returncode
    store: Sessions = (FileSessions if kind == "f" else SqliteSessions)(tmp_path / "kept")
    assert None is store.sessions()[0].end
    result = ran(store, "a", None, "all right")
    assert "all right" == result.output
    store.close()


# ------------------------------------------------------------------- a bad store


def test_a_damaged_session_hides_no_other(tmp_path: Path) -> None:
    store = FileSessions(tmp_path)
    ran(store, "good", "go", "done")
    (tmp_path / "bad.jsonl").write_text("nothing\n")
    (tmp_path / "notes.txt").write_text("not ours")
    good, bad = store.sessions()
    assert ("good", "") == (good.name, good.problem)
    assert "it is no recording" in bad.problem
    assert ["good"] == [hit.session for hit in store.search("go")]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda path: path.write_bytes(b"no database at all, but long enough to be read as one"),
            "not a database",
        ),
        (lambda path: path.mkdir(), "unable to open database file"),
        (lambda path: _newer(path), "its tables have version 9, and 1 is known here"),
    ],
)
def test_what_is_no_database(tmp_path: Path, spoil: Callable[[Path], object], words: str) -> None:
    spoil(tmp_path / "kept.db")
    with pytest.raises(SessionError, match=words):
        SqliteSessions(tmp_path / "kept.db")


def _newer(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("pragma user_version = 9")
    db.close()


def test_a_write_that_fails_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    store = SqliteSessions(tmp_path / "kept.db")
    ran(store, "a", "go", "done")
    log = store.open("a")
    log._db.execute("pragma query_only = on")  # type: ignore[attr-defined]
    with pytest.raises(OSError, match="readonly"):
        run_sync("more", model=ScriptedModel(["done"]), log=log, tools=[read])
    asyncio.run(log.close())
    assert 3 == len(store.recording("a").events)
    assert 3 == store.sessions()[0].events
    store.close()


# ------------------------------------------------------------------ the command


@pytest.mark.parametrize("folder", [False, True])
def test_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: bool
) -> None:
    place = tmp_path / "kept"
    store: Sessions = FileSessions(place) if folder else SqliteSessions(place)
    ran(store, "a", "look here", "done")
    store.close()
    monkeypatch.setenv("STEPFOLD_SESSIONS", str(place))
    assert 0 == main(["sessions", "list"])
    assert "1 runs  completed        look here" in capsys.readouterr().out
    assert 0 == main(["sessions", "list", "--json"])
    (one,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert set(documented("An object of `sessions list --json`")) == set(one)
    assert 0 == main(["sessions", "search", "LOOK", "--json"])
    (hit,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert set(documented("An object of `sessions search --json`")) == set(hit)
    assert 1 == main(["sessions", "search", "nowhere"])
    assert 0 == main(["sessions", "rename", "a", "b"])
    assert 0 == main(["sessions", "export", "b", "--record", str(tmp_path / "b.jsonl")])
    assert 0 == main(["replay", str(tmp_path / "b.jsonl")])
    assert 2 == main(["sessions", "export", "b", "--record", str(tmp_path / "b.jsonl")])
    assert 0 == main(["sessions", "delete", "b"])
    capsys.readouterr()
    assert 2 == main(["sessions", "delete", "b"])
    assert "stepfold: session 'b': there is none\n" == capsys.readouterr().err


def test_a_session_goes_with_no_recording(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["run", "x", "--session", "a", "--record", "b.jsonl"])
    assert "--session goes with none of" in capsys.readouterr().err


def test_nothing_is_left_of_a_lock(tmp_path: Path) -> None:
    store = SqliteSessions(tmp_path / "kept.db")
    ran(store, "a", "go", "done")  # what is opened once is open now
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        ran(store, "a", "go", "done")
    assert before == len(os.listdir("/proc/self/fd"))
    store.close()
