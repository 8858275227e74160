"""What only this file catches: a timeline that hides something, a fork that repeats, a diff that errs."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from stepfold.adapters.cli import main
from stepfold.adapters.jsonl_log import JsonlLog
from stepfold.adapters.recording import Recording, RecordingError, parse_recording, read_recording
from stepfold.adapters.scripted import ScriptedModel, calls
from stepfold.adapters.tools import tool
from stepfold.adapters.travel.aligning import MOST, aligned
from stepfold.adapters.travel.forking import forked
from stepfold.adapters.travel.timeline import instant, moments
from stepfold.effects import run_sync
from stepfold.engine.events import BlockCompleted
from stepfold.engine.messages import Text
from tests.cli.test_json import documented

ran: list[str] = []


@tool(read_only=True, safe=True)
def read(path: str) -> str:
    """Read."""
    ran.append(path)
    return f"contents of {path}"


def recorded(path: Path, *answers: Any, prompt: str | None = "look", **options: Any) -> Recording:
    log = JsonlLog(path, **options)
    run_sync(prompt, model=ScriptedModel(list(answers)), tools=[read], log=log)
    asyncio.run(log.close())
    return read_recording(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    recorded(tmp_path / "a.jsonl", calls("read", {"path": "x"}), calls("read", {"path": "y"}), "All done.")
    ran.clear()
    return tmp_path / "a.jsonl"


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# -------------------------------------------------------------------------- show


def test_the_timeline_has_every_entry(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["show", str(path)])
    out = capsys.readouterr().out
    count = len(read_recording(path).events)
    assert [*range(1, count + 1)] == [
        int(line[:5]) for line in out.splitlines() if line[:5].strip().isdigit()
    ]
    assert 2 == out.count("-- next_turn")
    assert out.endswith("== completed\n")
    for words in ("look", 'read {"path', "completed: contents of y", "All done."):
        assert words in out


def test_the_timeline_as_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["show", str(path), "--json"])
    found = objects(capsys.readouterr().out)
    assert {*documented("An object of `show --json`")} == {key for each in found for key in each}
    assert [attrs.asdict(moment) for moment in moments(read_recording(path))] == [
        each | {"orders": tuple(each["orders"]), "continued": tuple(each["continued"])} for each in found
    ]


def test_one_instant(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = read_recording(path)
    for entry in range(len(recording.events) + 1):
        then = instant(recording, entry)
        assert 0 == main(["show", str(path), "--at", str(entry)])
        out = capsys.readouterr().out
        assert f"after entry {entry} of {len(recording.events)}: {then.state.control.phase.value}" in out
        for order in then.state.data.ledger.owed:
            assert f"open: {type(order).__name__} {order.id}" in out
        assert f"view: {len(then.state.data.messages)} messages" in out
    assert 0 == main(["show", str(path), "--at", "2", "--json"])
    (one,) = objects(capsys.readouterr().out)
    assert (2, "State") == (one["entry"], one["state"]["$type"])


@pytest.mark.parametrize("number", ["-1", "99"])
def test_an_entry_that_is_not_there(path: Path, capsys: pytest.CaptureFixture[str], number: str) -> None:
    assert 2 == main(["show", str(path), "--at", number])
    assert f"there is no entry {number}; wanted a number from 0 to 9" in capsys.readouterr().err


def test_the_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path / "a.jsonl", calls("read", {"path": "x"}), "All done.", deltas=True)
    assert 0 == main(["show", str(tmp_path / "a.jsonl"), "--screen"])
    assert "All done.\n" == capsys.readouterr().out[-10:]
    recorded(tmp_path / "b.jsonl", "All done.")
    assert 2 == main(["show", str(tmp_path / "b.jsonl"), "--screen"])
    assert "it holds no pieces of streams" in capsys.readouterr().err


# -------------------------------------------------------------------------- fork


def test_a_fork_goes_on_and_does_nothing_again(path: Path, tmp_path: Path) -> None:
    """Forked anywhere: what had answered is not asked again, what had run does not run again."""
    whole = read_recording(path)
    before = path.read_bytes()
    for at in range(1, len(whole.events) + 1):
        new = tmp_path / f"{at}.jsonl"
        new.write_bytes(forked(whole, at))
        ran.clear()
        then = instant(whole, at).state
        if then.end is not None:
            continue
        answered = sum(event.__class__.__name__ == "StreamClosed" for event in whole.events[:at])
        script = [calls("read", {"path": "x"}), calls("read", {"path": "y"}), "All done."]
        rest = script[answered:]
        result = recorded(new, *rest, prompt=None)
        ended = [event for event in whole.events[:at] if event.__class__.__name__ == "ToolEnded"]
        assert "All done." == instant(result, len(result.events)).state.data.messages[-1].content[-1].text
        assert not {*ran} & {*["x", "y"][: len(ended)]}, "a tool that had ended ran again"
    assert before == path.read_bytes()


def test_a_fork_tells_where_it_comes_from(path: Path) -> None:
    whole = read_recording(path)
    new = parse_recording(forked(whole, 3), "new")
    assert new is not None
    header = path.read_bytes().split(b"\n")[0]
    assert new.header.forked_from is not None
    assert 3 == new.header.forked_from["entries"]
    assert hashlib.sha256(header).hexdigest() == new.header.forked_from["header"]
    assert whole.events[:3] == new.events
    assert whole.begun == new.begun


def test_events_that_follow(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = tmp_path / "new.jsonl"
    words = '{"$type":"tool_ended","effect_id":2,"content":[{"$type":"text","text":"other contents"}]}'
    assert 0 == main(["fork", str(path), "--at", "3", "--event", words, "--record", str(new)])
    assert "4 entries, 3 of them from" in capsys.readouterr().out
    assert 0 == main(["replay", str(new)])
    assert "other contents" in str(read_recording(new).events[-1])
    (tmp_path / "more.jsonl").write_text(words + "\n")
    other = tmp_path / "other.jsonl"
    given = ["--event", str(tmp_path / "more.jsonl"), "--record", str(other)]
    assert 0 == main(["fork", str(path), "--at", "3", *given])
    assert new.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--at", "99"], "there is no entry 99; wanted a number from 0 to 9"),
        (["--at", "-1"], "there is no entry -1"),
        (["--at", "3", "--event", '{"$type":"resumed","x":1}'], "--event, line 1: unknown key 'x'"),
        (["--at", "3", "--event", "{"], "--event, line 1: "),
        (["--at", "3", "--event", "none.jsonl"], "none.jsonl: No such file"),
        (
            ["--at", "3", "--event", '{"$type":"tool_ended","effect_id":9}'],
            "event 1 of those that follow: it cannot happen there",
        ),
    ],
)
def test_a_fork_that_cannot_be(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], words: str
) -> None:
    new = tmp_path / "new.jsonl"
    assert 2 == main(["fork", str(path), *given, "--record", str(new)])
    err = capsys.readouterr().err
    assert words in err
    assert 1 == err.count("\n")
    assert not new.exists()


def test_a_fork_never_overwrites(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = path.read_bytes()
    assert 2 == main(["fork", str(path), "--at", "3", "--record", str(path)])
    assert "exists already" in capsys.readouterr().err
    assert before == path.read_bytes()


# -------------------------------------------------------------------------- diff


def test_the_same_run_twice_does_not_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        recorded(tmp_path / f"{name}.jsonl", calls("read", {"path": "x"}, id="t1"), "All done.")
    assert 0 == main(["diff", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")])
    assert "1 to 6 and 1 to 6 the same" in capsys.readouterr().out


def test_where_two_part_and_meet_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    recorded(one, calls("read", {"path": "x"}, id="t1"), "All done.")
    recorded(other, calls("read", {"path": "y"}, id="t1"), "All done.")
    assert 1 == main(["diff", str(one), str(other)])
    out = capsys.readouterr().out
    assert "@@ 2 to 2 and 2 to 2 @@" in out
    assert "  5 to 6 and 5 to 6 the same" in out
    assert "== completed and completed" in out

    assert 1 == main(["diff", str(one), str(other), "--json"])
    (told,) = objects(capsys.readouterr().out)
    assert set(documented("An object of `diff --json`")) == set(told)
    covered = [0, 0]
    for stretch in told["stretches"]:
        for side, name in enumerate(("left", "right")):
            begin, end = stretch[name]
            assert covered[side] == begin
            covered[side] = end
    assert covered == [len(read_recording(one).events), len(read_recording(other).events)]


def test_what_they_started_from_is_compared(tmp_path: Path) -> None:
    one = recorded(tmp_path / "a.jsonl", "All done.")
    other = attrs.evolve(
        one, begun=attrs.evolve(one.begun, config=attrs.evolve(one.begun.config, max_turns=5))
    )
    assert (("config.max_turns", 200, 5),) == aligned(one, other).header


def test_too_many_entries_are_not_aligned(tmp_path: Path) -> None:
    one = recorded(tmp_path / "a.jsonl", "All done.")
    first, *rest = one.events
    many = tuple(BlockCompleted(1, Text(str(number))) for number in range(MOST + 1))
    found = aligned(one, attrs.evolve(one, events=(first, *many, *rest)))
    assert not found.whole
    assert ["same", "changed", "same"] == [stretch.kind for stretch in found.stretches]


@pytest.mark.parametrize("command", ["show", "fork", "diff"])
def test_a_file_that_lies(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line.replace('"effect_id":2', '"effect_id":77') for line in lines))
    more = {"show": [], "fork": ["--at", "2", "--record", str(tmp_path / "n")], "diff": [str(path)]}
    assert 2 == main([command, str(path), *more[command]])
    err = capsys.readouterr().err
    assert f"{path}, entry 4: it cannot happen there: " in err
    with pytest.raises(RecordingError):
        read_recording(tmp_path / "none")
