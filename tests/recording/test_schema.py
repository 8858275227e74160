"""What only this file catches: a format that changes without anybody saying so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from stepfold.adapters.recording.schema import recording_schema, text
from tests.recording.played import record_scenarios
from tests.recording.test_outcomes import kept

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "docs" / "recording.schema.json"
CHECK = jsonschema.Draft202012Validator(recording_schema())


def test_the_golden_schema_is_that_of_the_code() -> None:
    """A change of the format needs a line in docs/recordings.md, perhaps a new SCHEMA, and this file."""
    assert GOLDEN.read_text(encoding="utf-8") == text()
    jsonschema.Draft202012Validator.check_schema(recording_schema())


def test_every_recording_of_every_scenario_is_of_it(tmp_path: Path) -> None:
    record_scenarios(tmp_path / "all")
    lines = [line for path in (tmp_path / "all").rglob("*.jsonl") for line in path.read_text().splitlines()]
    assert len(lines) > 3_000
    for line in lines[::7]:
        CHECK.validate(json.loads(line))


def test_deltas_and_digests_are_of_it(tmp_path: Path) -> None:
    for line in kept(tmp_path / "a.jsonl", deltas=True, digests=True):
        CHECK.validate(line)


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"n": 0, "event": {"$type": "resumed"}},
        {"n": 1, "event": {"$type": "resumed", "x": 1}},
        {"n": 1, "event": {"$type": "woken"}},
        {"n": 1, "event": {"$type": "resumed"}, "ended": "never"},
        {"d": 1, "effect_id": 1, "at_ms": 0},
    ],
)
def test_what_is_none_is_none(line: dict[str, Any]) -> None:
    assert not CHECK.is_valid(line)
