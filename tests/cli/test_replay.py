"""What only this file catches: a recording that was changed and replays as if nothing had happened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.codec import digest
from stepfold.adapters.replay.folding import fold_recording
from stepfold.adapters.scenarios.check import Verdict, check_file
from tests.cli.process import told
from tests.cli.test_demo import LADDERS


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    verdict = check_file(LADDERS / "05_turns.toml", tmp_path)
    assert isinstance(verdict, Verdict)
    assert verdict.ok
    return tmp_path / "05_turns.jsonl"


Lines = list[dict[str, Any]]


def changed(path: Path, change: Callable[[Lines], object], name: str = "changed.jsonl") -> Path:
    """A copy of a recording with *change* made to its lines."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    other = path.with_name(name)
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return other


def test_transitions_and_end_are_printed(recording: Path) -> None:
    ended = told(recording.parent, "replay", recording.name)

    assert (0, "") == (ended.code, ended.err)
    assert ended.out.splitlines()[1:] == [
        "   prompt: Read everything.",
        "-- next_turn (turn 2)",
        "== max_turns: no turn left: the next would be number 3",
    ]
    assert digest(fold_recording(recording).state)[:12] in ended.out


def test_json_is_one_object_a_file(recording: Path) -> None:
    ended = told(recording.parent, "replay", recording.name, recording.name, "--json", "--same")

    one, other = (json.loads(line) for line in ended.out.splitlines())
    assert one == other
    assert {"recording", "ok", "events", "torn", "compared", "version"} <= set(one)
    assert {"runs", "digest", "difference"} <= set(one)
    run = one["runs"][0]
    assert (run["terminal"], run["transitions"], run["ok"]) == ("max_turns", ["next_turn"], False)


def test_an_event_that_does_not_fit_is_named(recording: Path) -> None:
    def other_effect(lines: Lines) -> None:
        lines[4]["event"]["effect_id"] = 99

    other = changed(recording, other_effect)

    ended = told(recording.parent, "replay", other.name)
    data = json.loads(told(recording.parent, "replay", other.name, "--json").out)

    assert 2 == ended.code  # this very version wrote it: the file lies
    assert "does not replay: event 4, effect_id: " in ended.out
    assert (False, 4, "effect_id") == (data["ok"], data["event"], data["field"])


def test_two_recordings_are_compared_event_by_event(recording: Path) -> None:
    def other_words(lines: Lines) -> None:
        ends = [line["event"] for line in lines[1:] if line["event"]["$type"] == "tool_ended"]
        ends[0]["content"][0]["text"] = "something else"

    other = changed(recording, other_words)
    shorter = changed(recording, lambda lines: lines.pop(), "shorter.jsonl")

    ended = told(recording.parent, "replay", "--same", recording.name, other.name, shorter.name)
    alone = told(recording.parent, "replay", recording.name, other.name)

    assert (1, 1) == (ended.code, alone.code)  # what the step came to has changed, too
    assert f"differs from {recording.name} at event " in ended.out
    assert "content[0].text: 'export {}' and 'something else'" in ended.out
    assert f"at event {fold_recording(recording).events}: " in ended.out
    assert "== not finished" in ended.out


def test_a_torn_last_line_is_left_out_and_told(recording: Path) -> None:
    whole = recording.read_bytes()
    recording.write_bytes(whole[:-10])

    ended = told(recording.parent, "replay", recording.name)
    data = json.loads(told(recording.parent, "replay", "--json", recording.name).out)

    assert 0 == ended.code
    torn = len(whole) - 10 - (whole[:-10].rindex(b"\n") + 1)
    assert f", {torn} bytes of a torn last line left out" in ended.out
    assert (torn, True) == (data["torn"], data["ok"])
    assert whole[:-10] == recording.read_bytes()


def test_a_last_line_that_is_whole_and_damaged_is_not_torn(recording: Path) -> None:
    lines = recording.read_bytes().splitlines(keepends=True)
    recording.write_bytes(b"".join([*lines[:-1], lines[-1][:-10] + b"\n"]))

    ended = told(recording.parent, "replay", recording.name)

    assert (2, "") == (ended.code, ended.out)
    assert f"{recording.name}, line {len(lines)}: it is damaged (not JSON: " in ended.complaint
