"""What only this file catches: a target that cannot be used and is not told so; a finding not written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepfold.adapters.recording import read_recording
from stepfold.adapters.scenarios.reading.load import load
from tests.cli.process import told

AGENT = '''
from stepfold.adapters.tools import tool

seen = []


@tool(safe=True)
def read(path: str) -> str:
    """Read a file."""
    return "contents"


@tool(safe=True)
def grows(path: str) -> str:
    """Remember."""
    seen.append(path)
    return f"call {len(seen)}"


@tool(safe=True)
def says(path: str) -> str:
    """Print."""
    print("hello from the tool")
    return "said"


def agent():
    return {"tools": [read]}


def none():
    return {"tools": []}


def boom():
    raise RuntimeError("no database")


async def later():
    return {"tools": [read]}


def leaves():
    raise SystemExit(5)


def odd():
    return {"tools": [read], "config": 3}


def wrong():
    return {"tool": [read]}


def keeping():
    return {"tools": [grows]}


def printing():
    return {"tools": [says]}


def two_calls(before, event, effects, after):
    return "three requests" if after.control.spending.model_calls > 2 else None


ten = 10
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fuzzed_agent.py").write_text(AGENT, encoding="utf-8")
    (tmp_path / "costly.toml").write_text("max_cost = 5\n")
    (tmp_path / "leaving_agent.py").write_text("raise SystemExit(7)\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere_at_all:x"], "nowhere_at_all does not import: ModuleNotFoundError"),
        (["fuzzed_agent:nope"], "there is no nope in fuzzed_agent"),
        (["fuzzed_agent:none"], "it has no tools"),
        (["fuzzed_agent:boom"], "RuntimeError: no database"),
        (["fuzzed_agent:wrong"], "'tool' is no keyword of it; allowed are"),
        (["fuzzed_agent:ten"], "it gives int; wanted keywords of run"),
        (["fuzzed_agent"], "wanted module:name"),
        (["missing.toml"], "missing.toml"),
        (["costly.toml"], "costly.toml: max_cost: models has no input_price"),
        (["--fault", "nonsense"], "there is no such fault; allowed are failures"),
        (["--invariant", "fuzzed_agent:nope"], "there is no nope in fuzzed_agent"),
        (["--invariant", "fuzzed_agent:ten"], "it is int; wanted a function"),
        (["--invariant", "fuzzed_agent"], "'fuzzed_agent': wanted module:name"),
        (["--invariant", "fuzzed_agent:boom"], "it is called with before, event, effects, after: too many"),
        (["--invariant", "fuzzed_agent:later"], "it is async; wanted a plain function"),
        (["fuzzed_agent:later"], "it is async; wanted a plain function"),
        (["fuzzed_agent:leaves"], "SystemExit: 5"),
        (["fuzzed_agent:odd"], "fuzzed_agent:odd: config is 3 (int); wanted a Config"),
        (["leaving_agent:x"], "leaving_agent does not import: SystemExit: 7"),
        (["--corpus", "fuzzed_agent.py"], "--corpus fuzzed_agent.py"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_used_is_told_in_one_line(folder: Path, arguments: list[str], words: str) -> None:
    ended = told(folder, "fuzz", *arguments, "--seconds", "0.1")

    assert (2, "") == (ended.code, ended.out)
    assert words in ended.err
    assert 1 == len(ended.err.splitlines())
    assert not (folder / "findings").exists()


def test_a_finding_is_written_and_the_corpus_kept(folder: Path) -> None:
    arguments = ["fuzz", "--invariant", "fuzzed_agent:two_calls", "--seconds", "20", "--corpus", "kept"]

    ended = told(folder, *arguments, "--html", "page.html", "--json")

    assert (1, "") == (ended.code, ended.err)
    said = json.loads(ended.out)
    ((finding,), (files,)) = said["findings"], said["files"]
    assert ("own", "two_calls: three requests") == (finding["rule"], finding["words"])
    assert len(finding["events"]) <= 7
    recording = read_recording(folder / files["recording"])
    assert finding["events"] == [type(event).__name__ for event in recording.events]
    assert load(folder / files["scenario"]).about == finding["explanation"]
    assert finding["rule"] in (folder / "page.html").read_text(encoding="utf-8")
    assert list((folder / "kept").glob("*.run"))

    assert json.loads(told(folder, *arguments, "--json").out)["runs"] <= said["corpus"] + 10, (
        "the corpus comes first"
    )


def test_nothing_is_found_in_an_engine_as_it_is(folder: Path) -> None:
    ended = told(folder, "fuzz", "--seconds", "1")
    assert (0, "") == (ended.code, ended.err)
    assert "rows" in ended.out


def test_an_agent_is_played(folder: Path) -> None:
    ended = told(folder, "fuzz", "fuzzed_agent:agent", "--seconds", "1.5", "--json")
    assert (0, "") == (ended.code, ended.err)
    said = json.loads(ended.out)
    assert said["runs"] > 3
    assert said["prints"] is None


def test_a_target_that_prints_is_told_of(folder: Path) -> None:
    ended = told(folder, "fuzz", "fuzzed_agent:printing", "--seconds", "3", "--json")
    assert "hello from the tool" == json.loads(ended.out)["prints"]


def test_a_target_that_keeps_something_is_found(folder: Path) -> None:
    ended = told(folder, "fuzz", "fuzzed_agent:keeping", "--seconds", "20", "--json")
    assert 1 == ended.code
    (finding,) = json.loads(ended.out)["findings"]
    assert "replay" == finding["rule"]
