"""What only this file catches: a scenario that is written down and reads as another one."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from stepfold.adapters.scenarios.format import Entry, Scenario
from stepfold.adapters.scenarios.reading.load import load, loads
from stepfold.adapters.scripted import Answer, Fails
from stepfold.adapters.testing.writing import toml_values
from stepfold.adapters.testing.writing.scenario_text import scenario_text
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Text, ToolUse

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests" / "scenarios").rglob("*.toml"))
ONE = load(ROOT / "tests" / "scenarios" / "limits" / "blocks-of-one-answer.toml")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_scenario_reads_as_it_was_written(path: Path) -> None:
    scenario = load(path)

    assert scenario == loads(scenario_text(scenario))


def with_answer(answer: Answer) -> Scenario:
    return attrs.evolve(ONE, world=attrs.evolve(ONE.world, entries=(Entry(answer),)))


@pytest.mark.parametrize("blocks", [(), (Text("half"),)], ids=["at once", "in its stream"])
@pytest.mark.parametrize("kind", FailureKind)
def test_a_failure_is_known_again_by_its_kind(kind: FailureKind, blocks: tuple[Text, ...]) -> None:
    given = Failure(kind, "words", retry_after_ms=1_500)

    [entry] = loads(scenario_text(with_answer(Answer(blocks, Fails(given))))).world.entries

    told = entry.answer.outcome
    same = {FailureKind.CRASHED: FailureKind.SERVER, FailureKind.WINDOW_EXCEEDED: FailureKind.PROMPT_TOO_LONG}
    never = (FailureKind.TRUNCATED, FailureKind.UNUSABLE)  # what no model call fails with
    wanted = FailureKind.OTHER if kind in never else same.get(kind, kind)
    assert wanted is (told.failure.kind if isinstance(told, Fails) else FailureKind.CUT)


@pytest.mark.parametrize(
    "use",
    [
        ToolUse("t", "read"),
        ToolUse("t", "read", '{"a":1,"b":[true,"x"]}'),
        ToolUse("t", "read", '{"a": 1}'),
        ToolUse("t", "read", '{"a":null}'),
        ToolUse("t", "read", "{}", raw_input="[1]"),
        ToolUse("t", "read", "{}", raw_input='{"a'),
        ToolUse('quote " and \\', "näme", '{"ä":"\\n"}'),
    ],
)
def test_a_call_keeps_its_input_to_the_letter(use: ToolUse) -> None:
    [entry] = loads(scenario_text(with_answer(Answer((use,))))).world.entries
    assert (use,) == entry.answer.blocks


@pytest.mark.parametrize("words", ["", "a\nb\tc", 'say "hi" \\', "\x7f \x01", "π", "\u2028"])
def test_texts_are_written_as_they_are(words: str) -> None:
    [entry] = loads(scenario_text(with_answer(Answer((Text(words),))))).world.entries
    assert (Text(words),) == entry.answer.blocks


def test_what_utf8_cannot_say_is_replaced() -> None:
    assert '"lone ? surrogate"' == toml_values.text("lone \ud800 surrogate")


def test_what_toml_cannot_say_is_refused() -> None:
    with pytest.raises(TypeError, match="has no place in TOML"):
        toml_values.value(object())
