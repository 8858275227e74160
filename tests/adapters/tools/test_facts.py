"""What only this file catches: an input or a trait of a function that reaches the loop wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stepfold.adapters.tools import (
    function_tools,
    tool,
)
from stepfold.adapters.tools.definition import Hints
from stepfold.engine.events import CallFacts, CallStatus, Interrupt
from stepfold.engine.messages import ToolUse
from tests.adapters.tools.calling import ended, search, use, words

# ------------------------------------------------------------------- validation


@pytest.mark.parametrize(
    ("input", "problem"),
    [
        ("{}", "- pattern is required and missing"),
        ('{"pattern": "a", "colour": 1}', "- colour is not an argument of this tool"),
        ('{"pattern": "a", "limit": "many"}', "- limit: Input should be a valid integer"),
        ('{"pattern": "a", "limit": 0}', "- limit: Input should be greater than or equal to 1; got 0"),
        ('{"pattern": "a", "mode": "odd"}', "- mode: Input should be 'exact' or 'loose'; got 'odd'"),
        ("[1]", "The input must be a JSON object. It was: [1]"),
        ('{"pat', 'The input is not valid JSON'),
        ('{"pattern": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "The input is not valid JSON"),
    ],
)
def test_a_bad_input_is_a_fact_with_words_for_the_model(input: str, problem: str) -> None:
    facts = function_tools([tool(safe=True)(search)]).facts(use("search", input))

    assert (facts.known, facts.valid, facts.safe) == (True, False, False)
    assert problem in facts.problem
    assert len(facts.problem) < 2_000


def test_input_that_was_no_json_object_says_so() -> None:
    call = ToolUse("t1", "search", "{}", raw_input='{"pattern": "ab')

    problem = function_tools([search]).facts(call).problem

    assert "not valid JSON" in problem
    assert '{"pattern": "ab' in problem


def test_an_unknown_tool_is_a_fact_that_names_the_known() -> None:
    facts = function_tools([search]).facts(use("serch"))

    assert CallFacts(known=False, valid=False, problem=facts.problem) == facts
    assert "Did you mean 'search'?" in facts.problem


def test_a_bad_input_that_runs_anyway_fails_with_the_same_words() -> None:
    box = function_tools([search])

    for name in ("search", "serch"):
        end = ended(box, name)
        assert (CallStatus.FAILED, box.facts(use(name)).problem) == (end.status, words(end))


def test_meaning_is_asked_after_the_schema() -> None:
    asked: list[object] = []

    def meaning(arguments: Any) -> str | None:
        asked.append(arguments["pattern"])
        if arguments["pattern"] == "crash":
            raise KeyError("inside")
        return "An empty pattern finds nothing." if not arguments["pattern"] else None

    box = function_tools([tool(meaning=meaning)(search)])

    assert box.facts(use("search", "{}")).valid is False
    assert asked == []
    assert box.facts(use("search", '{"pattern": ""}')).problem == "An empty pattern finds nothing."
    assert box.facts(use("search", '{"pattern": "crash"}')).problem == "KeyError: 'inside'"
    assert box.facts(use("search", '{"pattern": "a"}')).valid is True
    assert words(ended(box, "search", '{"pattern": ""}')) == "An empty pattern finds nothing."


def test_the_filled_copy_has_the_defaults_and_the_call_keeps_its_own() -> None:
    call = use("search", '{"pattern": "a"}')

    filled = function_tools([search]).filled(call)

    assert json.loads(filled.input) == {"pattern": "a", "limit": 10, "mode": "exact"}
    assert (call.input, filled.id) == ('{"pattern": "a"}', "t1")
    assert function_tools([search]).filled(use("search")) == use("search")
    assert function_tools([search]).filled(use("other")) == use("other")


# ----------------------------------------------------------------------- traits


def test_traits_reach_facts_and_specs() -> None:
    on = Hints(read_only=True, idempotent=True, safe=True, shell=True, clearable=True)
    on |= {"interrupt": "cancel", "max_result_chars": None}
    made = tool(**on)(search)
    box = function_tools([made])

    facts, spec = box.facts(use("search", '{"pattern": "a"}')), box.specs()[0]

    assert CallFacts(safe=True, interrupt=Interrupt.CANCEL, idempotent=True, shell=True) == facts
    assert (spec.read_only, spec.clearable, spec.max_result_chars) == (True, True, None)


def test_without_traits_a_tool_is_unsafe_and_waits() -> None:
    assert CallFacts() == function_tools([search]).facts(use("search", '{"pattern": "a"}'))


@pytest.mark.parametrize(
    ("predicate", "safe"),
    [
        (lambda arguments: arguments["limit"] < 5, False),
        (lambda arguments: arguments["limit"] == 10, True),
        (lambda arguments: arguments["nothing"], False),
        (lambda arguments: "yes", False),
        (lambda arguments: None, False),
    ],
)
def test_only_a_predicate_that_says_true_makes_a_call_safe(predicate: Any, safe: bool) -> None:
    box = function_tools([tool(safe=predicate)(search)])

    assert box.facts(use("search", '{"pattern": "a"}')).safe is safe


def test_an_unknown_hint_is_refused() -> None:
    with pytest.raises(TypeError, match="readonly"):
        tool(readonly=True)  # type: ignore[call-overload]
