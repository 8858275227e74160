"""What only this file catches: a recording that parts from what it tells, and is said to be the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.cli import main
from stepfold.adapters.recording import RecordingError, read_recording
from stepfold.adapters.replay.files import recordings_in, replay_all
from stepfold.adapters.replay.folding import Divergence, fold_recording, whole_recording
from stepfold.adapters.replay.report import replayed
from stepfold.adapters.replay.whatif import what_if
from stepfold.engine import Config
from tests.recording.played import record_scenarios

Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of many scenarios."""
    folder = tmp_path_factory.mktemp("kept")
    record_scenarios(folder / "all")
    return folder / "all"


@pytest.fixture
def one(kept: Path) -> Path:
    return kept / "turns" / "two-prompts.jsonl"


def changed(path: Path, folder: Path, change: Callable[[Lines], object]) -> Path:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    other = folder / "changed.jsonl"
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return other


def parted(path: Path) -> Divergence:
    found = fold_recording(path).divergence
    assert found is not None
    return found


def entry_with(lines: Lines, key: str) -> dict[str, Any]:
    return next(line for line in lines if key in line)


# ------------------------------------------------------------------- the same


def test_every_scenario_is_the_same(kept: Path) -> None:
    files = recordings_in([kept])
    assert len(files) > 300
    for report in replay_all(files, None):
        assert report.ok, report.lines
        assert report.plain["compared"] == report.plain["events"]


def test_nothing_live_is_touched(one: Path) -> None:
    """No socket, no process, no thread, no clock of a loop, and the vendor's package is not even imported."""
    code = (
        "import sys\n"
        "def refuse(name, args):\n"
        "    assert not name.startswith(('socket.', 'subprocess.', 'os.exec', 'os.fork')), name\n"
        "sys.addaudithook(refuse)\n"
        "from stepfold.adapters.cli import main\n"
        f"assert main(['replay', {str(one)!r}]) == 0\n"
        "assert not {'anthropic', 'httpx'} & set(sys.modules), sys.modules.keys()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)


# ------------------------------------------------------------- each kind of divergence


def other_order(lines: Lines) -> None:
    orders = next(
        line["effects"] for line in lines if line.get("effects", [{"$type": ""}])[-1]["$type"] == "call_model"
    )
    orders[-1]["max_output_tokens"] = 5


def one_order_less(lines: Lines) -> None:
    entry_with(lines, "ended")["effects"].pop()


def other_continue(lines: Lines) -> None:
    entry_with(lines, "continued")["continued"] = ["stop_hook_blocking"]


def no_continue(lines: Lines) -> None:
    del entry_with(lines, "continued")["continued"]


def other_end(lines: Lines) -> None:
    entry_with(lines, "ended")["ended"] = "max_turns"


def answers_another(lines: Lines) -> None:
    entry_with(lines, "answers")["answers"] = "run_tool"


def other_words(lines: Lines) -> None:
    block = next(line for line in lines[1:] if line["event"]["$type"] == "tool_ended")
    block["event"]["content"][0]["text"] = "something else"


@pytest.mark.parametrize(
    ("change", "field", "recorded", "now"),
    [
        (other_order, r"effects[1].max_output_tokens", 5, 8_000),
        (one_order_less, "effects[1]", None, {"$type": "finish"}),
        (other_continue, "continued[0]", "stop_hook_blocking", "next_turn"),
        (no_continue, "continued", None, ["next_turn"]),
        (other_end, "ended", "max_turns", "completed"),
        (answers_another, "answers", "run_tool", "call_model"),
        (other_words, "effects[0].item.content.$sha", ..., ...),
    ],
)
def test_what_differs_is_named(
    one: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Lines], None],
    field: str,
    recorded: Any,
    now: Any,
) -> None:
    other = changed(one, tmp_path, change)
    found = parted(other)
    assert field == found.field
    if recorded is not ...:
        assert recorded == found.recorded
        assert now == found.now or now.items() <= found.now.items()
    assert 1 == main(["replay", str(other)])
    told = capsys.readouterr().out
    assert f"diverges: event {found.entry}, {found.field}: recorded " in told
    assert "likely cause: version and config are the same" in told


def test_a_digest_that_differs_is_the_last_to_be_named(tmp_path: Path) -> None:
    from tests.recording.test_outcomes import kept as recorded

    path = tmp_path / "a.jsonl"
    recorded(path, digests=True)
    assert fold_recording(path).ok

    other = changed(path, tmp_path, lambda lines: lines[3].update(state="0" * 16))

    assert (3, "state", "0" * 16) == (parted(other).entry, parted(other).field, parted(other).recorded)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"version": "0.0.9"}, "it was written by version 0.0.9, and this is "),
        ({"config_hash": "0" * 64}, "the config in the header is not the one that the run had"),
        ({"version": ""}, "it does not tell which version wrote it"),
    ],
)
def test_the_likely_cause(one: Path, tmp_path: Path, change: dict[str, str], cause: str) -> None:
    def both(lines: Lines) -> None:
        lines[0].update(change)
        other_end(lines)

    assert cause in parted(changed(one, tmp_path, both)).cause


# ------------------------------------------------------------------ a file that lies


def swapped(lines: Lines) -> None:
    lines[2]["event"], lines[3]["event"] = lines[3]["event"], lines[2]["event"]


def to_nobody(lines: Lines) -> None:
    lines[2]["event"]["effect_id"] = 99


def twice_begun(lines: Lines) -> None:
    lines[2]["event"] = lines[1]["event"]


@pytest.mark.parametrize("change", [to_nobody, twice_begun])
def test_an_event_that_cannot_happen(
    one: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Lines], None]
) -> None:
    other = changed(one, tmp_path, change)
    assert parted(other).unfit
    assert 2 == main(["replay", str(other)])
    with pytest.raises(RecordingError, match="entry 2: it cannot happen there: "):
        whole_recording(other)

    def older(lines: Lines) -> None:
        change(lines)
        lines[0]["version"] = "0.0.9"

    assert 1 == main(["replay", str(changed(one, tmp_path, older))])  # another code may have taken it
    assert "does not replay: event 2, " in capsys.readouterr().out


def test_an_entry_that_is_gone_is_damage(one: Path, tmp_path: Path) -> None:
    other = changed(one, tmp_path, lambda lines: lines.pop(3))
    with pytest.raises(RecordingError, match="line 4: its number is 4, wanted 3"):
        fold_recording(other)


# ------------------------------------------------------------------------ many files


def test_a_folder_is_gone_through_and_one_bad_file_keeps_nothing_back(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "some"
    folder.mkdir()
    for number, file in enumerate(sorted((kept / "turns").glob("*.jsonl"))):
        (folder / f"{number:02}.jsonl").write_bytes(file.read_bytes())
    (folder / "05.jsonl").write_text("nothing\n")
    lines = (folder / "06.jsonl").read_text()
    (folder / "06.jsonl").write_text(lines.replace('"ended":"completed"', '"ended":"max_turns"'))

    code = main(["replay", str(folder), "--workers", "2", "--json"])

    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert 2 == code
    assert sorted(str(path) for path in folder.iterdir()) == [each["recording"] for each in told]
    assert ["05.jsonl", "06.jsonl"] == [Path(each["recording"]).name for each in told if not each["ok"]]
    assert "error" in told[5]


def test_processes_tell_what_one_tells(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["replay", str(kept / "hooks"), "--workers", "2"])
    both = capsys.readouterr().out
    main(["replay", str(kept / "hooks"), "--workers", "1"])
    assert both == capsys.readouterr().out


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: folder / "no.jsonl", "No such file"),
        (lambda folder: folder, "there is no recording in it"),
    ],
)
def test_what_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], Path], words: str
) -> None:
    assert 2 == main(["replay", str(make(tmp_path))])
    err = capsys.readouterr().err
    assert words in err
    assert 1 == err.count("\n")


# ------------------------------------------------------------------------- what if


def test_the_same_config_comes_to_the_same(kept: Path) -> None:
    for file in recordings_in([kept / "turns", kept / "failures"]):
        recording = read_recording(file)
        found = what_if(recording, recording.begun.config)
        assert found.same, (file, found)
        assert (len(recording.events), ()) == (found.entry, found.assumed)


def test_a_smaller_limit_ends_it_earlier(kept: Path) -> None:
    recording = read_recording(kept / "turns" / "the-same-call-for-ever.jsonl")
    found = what_if(recording, Config(max_turns=2))
    assert "max_turns" == found.ended
    assert 0 < found.entry < found.entries
    assert found.why.startswith("it ends: no turn left")


def test_a_larger_limit_asks_for_what_was_never_answered(kept: Path) -> None:
    recording = read_recording(kept / "turns" / "the-same-call-for-ever.jsonl")
    found = what_if(recording, Config(max_turns=50))
    assert (None, ("call_model",)) == (found.ended, found.asked)
    assert found.entry == found.entries
    assert "it asks for call_model, which was not asked then" == found.why


def test_what_is_assumed_is_told(one: Path) -> None:
    found = what_if(read_recording(one), Config(model="other"))
    assert "call_model.model" in found.assumed


@pytest.mark.parametrize("text", ["max_turns = 0\n", "colour = 1\n", "max_turns\n"])
def test_settings_that_cannot_be(
    one: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "limits.toml").write_text(text)
    assert 2 == main(["replay", str(one), "--config", str(tmp_path / "limits.toml")])
    assert 1 == capsys.readouterr().err.count("\n")


def test_changes_that_do_not_go_with_the_recording(one: Path) -> None:
    report = replayed(str(one), {"fallback_models": ("main",)})
    assert report.unreadable
    assert "its config with these changes cannot be" in report.plain["error"]
