"""What only this file catches: a finding whose files show another run than the one that was found."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

from stepfold.adapters.recording import read_recording
from stepfold.adapters.scenarios.check import check_paths
from stepfold.adapters.scenarios.judging.expect import differences
from stepfold.adapters.scenarios.playing.play import play
from stepfold.adapters.scenarios.reading.load import load
from stepfold.adapters.testing.writing.finding import Finding, write_finding
from stepfold.effects import fold
from stepfold.effects.ports import Start
from stepfold.engine.events import Event, RunStarted, ToolEnded, ToolsChanged
from stepfold.engine.messages import Text
from tests.engine.driven.drive import Drive
from tests.engine.driven.walks import WALKS

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests" / "scenarios").rglob("*.toml"))


def begun_of(drive: Drive) -> Start:
    data = drive.first.data
    return Start(drive.config, tuple(data.messages), data.tool_context.tools, data.layers.collapses)


def accepted(finding: Finding) -> None:
    """The scenario comes to what it expects."""
    assert finding.scenario is not None
    played = play(load(finding.scenario))
    assert [] == differences(played.scenario.expect, played.observed)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_played_scenario_is_found_again(path: Path, tmp_path: Path) -> None:
    """Every scenario of the tests, played, written down from its events alone, and played again."""
    scenario = load(path)
    played = play(scenario)
    if len(played.takes) > 1:
        return  # the consumer went away: two logs
    tape = played.takes[0].tape
    events = [one.event for one in tape.steps]

    finding = write_finding(tmp_path, path.stem, tape.begun, events, title=scenario.title)

    kept = read_recording(finding.recording)
    assert events == list(kept.events)
    assert tape.state == fold(kept.events, kept.state(), kept.begun.config)
    assert finding.exact
    accepted(finding)


def test_the_program_takes_both_files(tmp_path: Path) -> None:
    tape = play(load(FILES[0])).takes[0].tape
    events = [one.event for one in tape.steps]
    finding = write_finding(tmp_path, "a name / with: signs", tape.begun, events, title="two\nlines")

    out = StringIO()
    assert finding.scenario == tmp_path / "a-name-with-signs.toml"
    assert 0 == check_paths([finding.scenario], out=out), out.getvalue()
    assert [str(finding.recording)] == [line.split()[-1] for line in finding.lines() if "recording" in line]


@pytest.mark.parametrize("name", WALKS)
def test_a_driven_run_is_written_down(name: str, tmp_path: Path) -> None:
    drive = WALKS[name]()
    finding = write_finding(tmp_path, name, begun_of(drive), drive.events, title=name)

    assert drive.continued == [each for each in finding.transitions if each in drive.continued]
    assert finding.events == len(read_recording(finding.recording).events) == len(drive.events)
    assert finding.scenario is not None
    assert name == load(finding.scenario).title
    if finding.exact:
        accepted(finding)


def test_what_the_engine_refuses_is_left_out(tmp_path: Path) -> None:
    drive = WALKS["plain"]()
    events = [*drive.events, ToolEnded(99), *drive.events]
    finding = write_finding(tmp_path, "x", begun_of(drive), events, title="x")
    assert len(drive.events) == finding.events


def test_a_log_without_a_prompt_is_a_recording_alone(tmp_path: Path) -> None:
    finding = write_finding(tmp_path, "x", begun_of(Drive()), [ToolsChanged(())], title="x")
    assert (None, 1) == (finding.scenario, finding.events)
    assert "none: no prompt began the run" in finding.lines()[2]


def test_surrogates_are_replaced_in_every_text(tmp_path: Path) -> None:
    events: list[Event] = [RunStarted((Text("go \ud800"),))]
    finding = write_finding(tmp_path, "x", begun_of(Drive()), events, title="lone \ud800")
    [begun] = read_recording(finding.recording).events
    assert isinstance(begun, RunStarted)
    assert (Text("go ?"),) == begun.prompt
    assert finding.scenario is not None
    assert ("lone ?", ("go ?",)) == (load(finding.scenario).title, load(finding.scenario).prompts)


def test_nothing_half_written_is_left(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").mkdir()
    with pytest.raises(OSError, match=r"x\.jsonl"):
        write_finding(tmp_path, "x", begun_of(Drive()), [], title="x")
    assert [tmp_path / "x.jsonl"] == list(tmp_path.iterdir())
