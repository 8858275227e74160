"""What only this file catches: an outcome that is not of its step, or grows with the history."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, get_args

import pytest

from stepfold.adapters.codec import digest
from stepfold.adapters.jsonl_log import JsonlLog
from stepfold.adapters.recording import Fingerprints, outcome_of, read_recording
from stepfold.adapters.recording.format import config_hash
from stepfold.adapters.recording.outcome import TAGS
from stepfold.adapters.scenarios.playing.play import play
from stepfold.adapters.scenarios.reading.load import load
from stepfold.adapters.scripted import ScriptedModel, calls
from stepfold.adapters.tools import tool
from stepfold.effects import run_sync
from stepfold.effects.ports import Start
from stepfold.engine import Config, start, step
from stepfold.engine.effects import Effect, Shown
from stepfold.engine.events import BlockCompleted, CallFacts, RunStarted, Stop, StreamClosed, ToolEnded
from stepfold.engine.history import History
from stepfold.engine.messages import Text, ToolUse

SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios").rglob("*.toml"))
NAMES = """
    call_model cancel_model run_tool cancel_tool cancel ask_permission compact stage_collapse run_hook wait
    summarise prefetch show tombstone background mark_command finish
    block_shown call_shown message_shown error_shown summary_shown continued notice
"""


@tool(read_only=True)
def read(path: str) -> str:
    """Read."""
    return f"contents of {path} for a@b.example"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def kept(path: Path, **options: Any) -> list[dict[str, Any]]:
    """A run with one call, in a log with these options."""
    log = JsonlLog(path, **options)
    model = ScriptedModel([calls("read", {"path": "x"}), "done"])
    run_sync("look", model=model, tools=[read], log=log)
    asyncio.run(log.close())
    return lines(path)


def test_the_names_of_effects_are_frozen() -> None:
    assert set(NAMES.split()) == set(TAGS.values())
    assert {*get_args(Effect), *get_args(Shown)} == set(TAGS)


def test_the_header_tells_versions_config_prompt_and_what_is_kept(tmp_path: Path) -> None:
    header = kept(tmp_path / "a.jsonl", digests=True, deltas=True)[0]
    assert (1, 2, "0.1.0", "look") == tuple(
        header[key] for key in ("stepfold", "schema", "version", "prompt")
    )
    assert ["deltas", "digests", "outcomes"] == header["keeps"]
    recording = read_recording(tmp_path / "a.jsonl")
    assert config_hash(recording.begun.config) == header["config_hash"] == digest(recording.begun.config)
    assert ["read"] == [spec["name"] for spec in header["tools"]]


def test_an_entry_tells_what_it_answers_and_what_its_step_came_to(tmp_path: Path) -> None:
    first, call, closed, ended, *_, last = (line for line in kept(tmp_path / "a.jsonl")[1:])
    assert "answers" not in first
    assert {"$type": "call_model", "id": 1}.items() <= first["effects"][-1].items()
    assert "call_model" == call["answers"] == closed["answers"] == last["answers"]
    assert "run_tool" == ended["answers"]
    assert ["next_turn"] == ended["continued"]
    assert "completed" == last["ended"]
    assert not any("state" in line for line in (first, call, closed, ended, last))


def test_outcomes_can_be_left_out(tmp_path: Path) -> None:
    header, *entries = kept(tmp_path / "a.jsonl", outcomes=False)
    assert "keeps" not in header
    assert [{"n", "event"}] * len(entries) == [set(entry) for entry in entries]


def test_a_digest_is_of_the_whole_state(tmp_path: Path) -> None:
    kept(tmp_path / "a.jsonl", digests=True)
    recording = read_recording(tmp_path / "a.jsonl")
    state = recording.state()
    for event, outcome in zip(recording.events, recording.outcomes, strict=True):
        state, _ = step(state, event, recording.begun.config)
        assert outcome["state"] == Fingerprints().of(state)


@pytest.mark.parametrize("path", SCENARIOS[::4], ids=lambda path: path.stem)
def test_fingerprints_that_are_remembered_are_those_taken_anew(path: Path) -> None:
    prints, seen = Fingerprints(), {}
    for take in play(load(path)).takes:
        for one in take.tape.steps:
            told = prints.of(one.state)
            assert told == Fingerprints().of(one.state)
            seen.setdefault(told, set()).add(digest(one.state))
    assert all(len(each) == 1 for each in seen.values())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b"), ("ab",)),
        (("a",), "a"),
        ((1,), ("1",)),
        ((True,), (1,)),
        ((None,), ("None",)),
        ("x" * 40, "x" * 41),
        (("s#",), (b"".decode(),)),
        ((Text("a"), Text("b")), (Text("b"), Text("a"))),
        (Config(max_turns=1), Config(max_turns=2)),
        (frozenset({"a"}), ("a",)),
        (History().extend(("a", "b")), History().extend(("b", "a"))),
    ],
)
def test_what_differs_has_another_fingerprint(one: object, other: object) -> None:
    prints = Fingerprints()
    assert prints.of(one) != prints.of(other)


def test_what_has_no_fingerprint_is_refused() -> None:
    with pytest.raises(TypeError, match="has no fingerprint"):
        Fingerprints().of([1])


def test_an_entry_does_not_grow_with_the_history() -> None:
    """A hundred thousand entries: size, and fingerprints taken, stay what they are at the beginning."""
    config, prints = (
        Config(max_turns=None, max_model_calls=None, autocompact=False, context_window_tokens=10**9),
        Counting(),
    )
    state = start(())
    sizes: list[int] = []
    taken: list[int] = []
    id = 1
    state, _ = step(state, RunStarted((Text("go"),)), config)
    while len(sizes) < 100_000:
        for event in turn(id, len(sizes)):
            before = state
            state, effects = step(state, event, config)
            if len(sizes) % 25_000 < 400:
                count = prints.count
                told = outcome_of(before, event, state, effects, prints, digests=True)
                sizes.append(len(json.dumps(told)))
                taken.append(prints.count - count)
            else:
                sizes.append(0)
                taken.append(0)
        id = state.data.ledger.next_id - 1
    windows = [slice(at + 100, at + 400) for at in range(0, 100_000, 25_000)]
    assert max(sizes[windows[-1]]) <= max(sizes[windows[0]]) + 60  # numbers have more digits
    assert sum(taken[windows[-1]]) <= 2 * sum(taken[windows[0]])


class Counting(Fingerprints):
    """Counts what it looks at anew."""

    count = 0

    def _whole(self, value: Any, kind: type[Any]) -> bytes:
        self.count += 1
        return super()._whole(value, kind)


def turn(id: int, number: int) -> tuple[Any, ...]:
    use = ToolUse(f"t{number}", "read", '{"path":"x"}')
    facts = CallFacts(safe=True)
    return (
        BlockCompleted(id, use, facts),
        StreamClosed(id, Stop.TOOL_USE),
        ToolEnded(id + 1, (Text("y"),)),
    )


def test_start_tells_the_prompt_of_the_first_run_only(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    kept(path)
    log = JsonlLog(path)
    run_sync("and now", model=ScriptedModel(["done"]), tools=[read], log=log)
    asyncio.run(log.close())
    assert "look" == read_recording(path).begun.prompt
    assert Start(Config()) == Start(Config(), prompt="")
