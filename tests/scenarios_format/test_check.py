"""Only this catches a check that prints or returns something else than the format promises."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from stepfold.adapters.recording import read_recording
from stepfold.adapters.scenarios.check import check_paths
from stepfold.adapters.scenarios.keeping import KeepError
from stepfold.effects import fold

GOOD = """
format = 1
title = "good"
[[user]]
text = "go"
[[model]]
blocks = [{ tool_use = { id = "t1", name = "read", input = {} } }]
[[model]]
blocks = [{ text = "hi" }]
[[tool]]
name = "read"
[expect]
terminal = "completed"
model_calls = 2
"""
BAD = GOOD.replace("model_calls = 2", "model_calls = 3\ntransitions = []")
MALFORMED = GOOD + "colour = 1\n"
ENDLESS = """
format = 1
title = "the script is too short"
[[user]]
text = "go"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"a/bad": BAD, "a/good": GOOD, "b/broken": MALFORMED, "b/later": GOOD}.items():
        path = tmp_path / f"{name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.lstrip())
    return tmp_path


def check(*paths: Path, as_json: bool = False, record_dir: Path | None = None) -> tuple[int, list[str]]:
    out = io.StringIO()
    code = check_paths(paths, json=as_json, record_dir=record_dir, out=out)
    return code, out.getvalue().splitlines()


def test_all_ok(folder: Path) -> None:
    good = folder / "a" / "good.toml"

    assert (0, [f"ok  {good}", "1 scenarios: 1 ok, 0 failed"]) == check(good)


def test_a_failure_says_what_differed(folder: Path) -> None:
    bad, good = folder / "a" / "bad.toml", folder / "a" / "good.toml"

    assert (
        1,
        [
            f"FAIL {bad}: transitions: expected [], got [next_turn]; model_calls: expected 3, got 2",
            f"ok  {good}",
            "2 scenarios: 1 ok, 1 failed",
        ],
    ) == check(folder / "a")


def test_a_malformed_file_wins_and_does_not_stop_the_others(folder: Path) -> None:
    broken = folder / "b" / "broken.toml"
    code, lines = check(folder)

    assert 2 == code
    assert 5 == len(lines)
    words = "expect.colour: there is no such key; allowed: terminal, "
    assert lines[2].startswith(f"MALFORMED {broken}:14: {words}")
    assert lines[3].startswith("ok  ")
    assert "4 scenarios: 2 ok, 1 failed, 1 malformed" == lines[4]


def test_json_is_one_object_a_line(folder: Path) -> None:
    code, lines = check(folder, as_json=True)
    bad, good, broken, later = map(json.loads, lines)

    assert 2 == code
    assert {
        "scenario": str(folder / "a" / "good.toml"),
        "title": "good",
        "ok": True,
        "differences": [],
        "terminal": "completed",
        "terminals": ["completed"],
        "transitions": ["next_turn"],
        "model_calls": 2,
    } == good
    assert (False, 2) == (bad["ok"], len(bad["differences"]))
    assert (False, 14, "expect.colour") == (broken["ok"], broken["line"], broken["key"])
    assert "there is no such key" in broken["error"]
    assert {"scenario", "ok", "differences", "terminal", "transitions", "model_calls"} <= set(broken)
    assert [broken["error"]] == broken["differences"]
    assert "terminal" in broken["allowed"]
    assert later["ok"]


def test_what_is_not_there_is_malformed(tmp_path: Path) -> None:
    missing, empty = tmp_path / "missing.toml", tmp_path / "empty"
    empty.mkdir()

    code, lines = check(missing, empty)

    assert 2 == code
    assert f"MALFORMED {missing}: no such file or folder" == lines[0]
    assert f"MALFORMED {empty}: no scenario files (*.toml) in this folder" == lines[1]


def test_no_text_is_no_traceback(tmp_path: Path) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"format = 1\n\xff\xfe")

    code, lines = check(binary)

    assert 2 == code
    assert f"MALFORMED {binary}:2: is not UTF-8 text; allowed: TOML in UTF-8" == lines[0]


def test_a_call_past_the_end_of_the_script_fails(tmp_path: Path) -> None:
    file = tmp_path / "short.toml"
    file.write_text(ENDLESS)

    code, lines = check(file)

    assert 1 == code
    assert f"FAIL {file}: call 1: the script has no answer left" == lines[0]


def test_recordings_are_kept_and_replay(folder: Path) -> None:
    kept = folder / "kept"
    check(folder / "a", record_dir=kept)

    assert {"good.jsonl", "bad.jsonl"} == {path.name for path in kept.iterdir()}
    recording = read_recording(kept / "good.jsonl")
    end = fold(recording.events, recording.state(), recording.begun.config).end
    assert end is not None
    assert "completed" == end.reason


def kept_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.jsonl"))


def test_recordings_of_files_with_one_name_do_not_meet(folder: Path) -> None:
    (folder / "b" / "good.toml").write_text(GOOD)
    two = ["a/good.jsonl", "b/good.jsonl"]
    both = ["a/bad.jsonl", "a/good.jsonl", "b/good.jsonl", "b/later.jsonl"]
    one, other = folder / "a", folder / "b"
    for number, (named, wanted) in enumerate(
        [
            ([folder], both),
            ([one, other], both),
            ([one / "good.toml", other / "good.toml"], two),
            (
                [one / "good.toml", other / "good.toml", one / "good.toml", one / ".." / "a" / "good.toml"],
                two,
            ),
            ([one / "good.toml", one], ["bad.jsonl", "good.jsonl"]),
            ([one / "good.toml"], ["good.jsonl"]),
            ([one / "good.toml", folder / "missing", other / "good.toml"], two),
        ]
    ):
        check(*named, record_dir=folder / f"kept{number}")

        assert wanted == kept_in(folder / f"kept{number}")


def test_two_files_that_would_have_one_recording_are_not_played(folder: Path) -> None:
    (folder / "a" / "good").write_text(GOOD)

    with pytest.raises(
        KeepError, match=r"a/good\.toml and .*a/good would both be recorded in .*/good\.jsonl"
    ):
        check(folder / "a" / "good.toml", folder / "a" / "good", record_dir=folder / "kept")
    assert not (folder / "kept").exists()


@pytest.mark.parametrize("name", ["good.jsonl", "good.2.jsonl"])
def test_what_is_there_already_is_not_overwritten_and_nothing_is_played(folder: Path, name: str) -> None:
    kept = folder / "kept"
    kept.mkdir()
    (kept / name).write_text("mine")
    (kept / "other.jsonl").write_text("mine")
    out = io.StringIO()

    with pytest.raises(KeepError, match=rf"kept/{name}: it exists already; recordings are kept in new files"):
        check_paths([folder / "a"], record_dir=kept, out=out)

    assert ("", "mine") == (out.getvalue(), (kept / name).read_text())
    assert {name, "other.jsonl"} == {path.name for path in kept.iterdir()}
    assert 0 == check(folder / "b" / "later.toml", record_dir=kept)[0]


def test_the_second_log_of_one_is_not_the_first_of_another(folder: Path) -> None:
    """Both would be ``twice.2.jsonl``; which scenarios have a second log is known when they were played."""
    gone = "[[act]]\nat = 'tool t1 started'\ndo = 'close'\n"
    twice = GOOD.replace("[[model]]", f"[[user]]\ntext = 'x'\n{gone}[[model]]", 1)
    (folder / "b" / "twice.2.toml").write_text(GOOD)
    (folder / "b" / "twice.toml").write_text(twice)

    code, lines = check(
        folder / "b" / "twice.2.toml", folder / "b" / "twice.toml", record_dir=folder / "kept"
    )

    assert ["twice.2.jsonl", "twice.jsonl"] == kept_in(folder / "kept")
    assert 2 == code
    assert "the recording cannot be kept: File exists" in lines[1]


def test_a_folder_that_cannot_be_written_to(folder: Path) -> None:
    file = folder / "a" / "good.toml"

    for kept, words in (
        (file / "below", "below: it cannot be made: Not a directory"),
        (file, "it is no folder"),
        (Path("/proc/below"), "/proc/below: it cannot be made: "),
    ):
        with pytest.raises(KeepError, match=words):
            check(file, record_dir=kept)
