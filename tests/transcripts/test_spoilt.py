"""What only this file catches: anything in any place of a record that reader, rules or import trip over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from stepfold.adapters.linting.linting import findings_in
from stepfold.adapters.recording import parse_recording
from stepfold.adapters.transcripts.importing import conversations
from stepfold.adapters.transcripts.items import Item, Said
from stepfold.adapters.transcripts.reading import FORMATS, Format, transcript
from stepfold.adapters.transcripts.source import Counts
from stepfold.engine import Config
from stepfold.engine.messages import Text, ToolResult, ToolUse
from tests.transcripts.samples import SAMPLES
from tests.transcripts.test_formats import imported, written

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def spoilt(draw: st.DrawFn, value: Any) -> Any:
    """*value* with something else in one place or several."""
    if draw(st.integers(0, 7)) == 0:
        return draw(VALUES)
    if isinstance(value, dict):
        return {key: draw(spoilt(each)) for key, each in value.items() if draw(st.integers(0, 15))}
    if isinstance(value, list):
        return [draw(spoilt(each)) for each in value]
    return value


STRANGE: tuple[Any, ...] = (
    None,
    True,
    -7,
    10**20,
    0.5,
    1e300,
    "",
    "x",
    [],
    [None],
    ["x", {}],
    {},
    {"a": [7]},
)


def spoilt_once(value: Any) -> Iterator[Any]:
    """Yield *value* with each strange value in each of its places: all around it means what it meant."""
    yield from STRANGE
    for at in (
        list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    ):
        for other in spoilt_once(value[at]):
            changed = value.copy()
            changed[at] = other
            yield changed


def read(format: Format, records: list[Any]) -> list[Item]:
    """Everything that is done with what *records* tell; each recording can be read again."""
    found = list(format.read(iter(enumerate(records, 1)), Counts()))
    for one in conversations(found):
        assert parse_recording(imported(one)[1], "it") is not None
    list(findings_in(found, format.name, Config()))
    return found


def test_every_format_has_a_sample_that_is_recognised_and_read(tmp_path: Path) -> None:
    assert {format.name for format in FORMATS} == {name for name, _, _ in SAMPLES}
    for number, (name, records, file) in enumerate(SAMPLES):
        (tmp_path / f"{number}").mkdir()
        with transcript(written(tmp_path / f"{number}", records, file)) as found:
            assert name == found.format.name
            told = list(found.items)
        blocks = [block for item in told if isinstance(item, Said) for block in item.message.content]
        if name != "copilot":  # it keeps none
            assert any(isinstance(block, ToolUse) for block in blocks), name
            assert any(isinstance(block, ToolResult) for block in blocks), name
        if name != "opencode":  # a file of it is one part of a message
            assert {Text("go"), Text("please look")} & {*blocks}, name
            assert Text("done") in blocks, name


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_record_breaks_a_reader(format: Format, data: st.DataObject) -> None:
    """Of its own format or of another, with anything in any place."""
    records = data.draw(spoilt(data.draw(st.sampled_from([each for _, each, _ in SAMPLES]))))
    listed = records if isinstance(records, list) else [records]
    for given_records in (listed, [records]):
        read(format, given_records)
    if listed:
        format.recognises(listed[0], isinstance(listed[0], dict))
        format.recognises(listed[0], False)
    format.recognises(records, False)


@pytest.mark.parametrize(("name", "records", "file"), SAMPLES, ids=lambda value: str(value)[:20])
def test_one_spoilt_place_breaks_nothing(name: str, records: Any, file: str) -> None:
    """In a file that is right but for that, so that what lies deep is reached."""
    (format,) = (each for each in FORMATS if each.name == name)
    for changed in spoilt_once(records):
        lines = file.endswith("jsonl") and isinstance(changed, list)
        read(format, changed if lines else [changed])
        for first in changed[:1] if lines else [changed]:
            for other in FORMATS:
                other.recognises(first, lines and isinstance(first, dict))
