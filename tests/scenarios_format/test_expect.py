"""Only this catches an expectation that can never fail: each is turned wrong once, and must say so."""

from __future__ import annotations

import pytest

from stepfold.adapters.scenarios.judging.expect import differences
from stepfold.adapters.scenarios.playing.play import play
from stepfold.adapters.scenarios.reading.load import loads

WORLD = """
format = 1
title = "t"
[config]
fallback_models = ["second"]
[[user]]
text = "go"
[[model]]
blocks = [
  { text = "I look." },
  { tool_use = { id = "t1", name = "read", input = {} } },
  { tool_use = { id = "t2", name = "read", input = { n = 2 } } },
  { tool_use = { id = "t3", name = "write", input = {} } },
]
[[model]]
blocks = [{ text = "half" }]
error = { type = "api_error", message = "no" }
[[model]]
blocks = [{ text = "on and on" }]
stop = "max_tokens"
times = "forever"
[[tool]]
name = "read"
safe = true
result = "the contents"
takes = 10
[[tool]]
name = "write"
result = { error = "disk full" }
[[hook]]
name = "lint"
[expect]
"""
RIGHT = [
    'terminal = "completed"',
    'terminals = ["completed"]',
    "ok = false",
    'ending = "truncated"',
    """transitions = ["next_turn", "max_output_tokens_escalate", "max_output_tokens_recovery",
    "max_output_tokens_recovery", "max_output_tokens_recovery"]""",
    "model_calls = 7",
    "model_calls = { max = 7 }",
    "compactions = 0",
    'tools = { t1 = "completed", t3 = "failed" }',
    'tool_overlap = [["t1", "t2"]]',
    'no_overlap = [["t1", "t3"], ["t2", "t3"]]',
    "hooks_run = { lint = 0 }",
    "waits_ms = [500]",
    "waits_ms = [400]",
    "shown_errors = 1",
    "tombstones = 2",
    'models = ["main", "main", "main", "main", "main", "main", "main"]',
    """request = { call = 2, shape = ["user: text", "assistant: text tool_use(t1) tool_use(t2) tool_use(t3)",
    "user: tool_result(t1) tool_result(t2) tool_result(t3)!"] }""",
    'contains = { call = 2, text = "the contents" }',
    'contains = { call = 2, text = "disk full" }',
    'contains = { call = -1, text = "on and on" }',
]
WRONG = {
    'terminal = "model_error"': "terminal: expected model_error, got completed",
    'terminals = ["completed", "completed"]': "terminals: expected [completed, completed], got [completed]",
    "ok = true": "ok: expected true, got false",
    'ending = "end_turn"': "ending: expected end_turn, got truncated",
    'transitions = ["next_turn"]': "transitions: expected [next_turn], got [next_turn, max_output",
    "model_calls = 6": "model_calls: expected 6, got 7",
    "model_calls = { max = 6 }": "model_calls: expected at most 6, got 7",
    "compactions = 1": "compactions: expected 1, got 0",
    'tools = { t3 = "completed" }': "tool t3: expected completed, got failed",
    'tools = { t9 = "completed" }': "tool t9: expected completed, got no such call",
    'tool_overlap = [["t1", "t3"]]': "tool_overlap t1 t3: expected at the same time, got one after the other",
    'tool_overlap = [["t1", "t9"]]': "tool_overlap t1 t9: expected at the same time, got t9 did not run",
    'no_overlap = [["t2", "t1"]]': "no_overlap t2 t1: expected one after the other, got at the same time",
    'no_overlap = [["t1", "t9"]]': "no_overlap t1 t9: expected one after the other, got t9 did not run",
    'no_overlap = [["a", "b"]]': "no_overlap a b: expected one after the other, got a and b did not run",
    'no_overlap = [["t1", "t1"]]': "no_overlap t1 t1: expected one after the other, got t1 did not run twice",
    "hooks_run = { lint = 1 }": "hooks_run lint: expected 1, got 0",
    "waits_ms = [501]": "waits_ms: expected at least [501], got [500]",
    "waits_ms = []": "waits_ms: expected 0 waits [], got 1 [500]",
    "waits_ms = [500, 500]": "waits_ms: expected 2 waits [500, 500], got 1 [500]",
    "shown_errors = 0": "shown_errors: expected 0, got 1",
    "tombstones = 0": "tombstones: expected 0, got 2",
    'models = ["main"]': "models: expected [main], got [main, main",
    'request = { call = 2, shape = ["user: text"] }': "request of call 2: expected [user: text], got [user",
    'request = { call = 8, shape = ["user: text"] }': "request of call 8: expected [user: text], got 7 calls",
    'contains = { call = 1, text = "the contents" }': "request of call 1: expected the text 'the contents'",
    'contains = { call = -9, text = "x" }': "request of call -9: expected the text 'x', got 7 calls",
}  # fmt: skip


@pytest.mark.parametrize("expectation", RIGHT)
def test_what_is_right_passes(expectation: str) -> None:
    scenario = loads(WORLD + expectation)

    assert [] == differences(scenario.expect, play(scenario).observed)


@pytest.mark.parametrize(("expectation", "words"), WRONG.items())
def test_what_is_wrong_is_told(expectation: str, words: str) -> None:
    scenario = loads(WORLD + expectation)

    (difference,) = differences(scenario.expect, play(scenario).observed)

    assert difference.startswith(words)


@pytest.mark.parametrize(
    ("at", "do", "words"),
    [
        ("tool t9 started", "abort hard", "this point never came"),
        ("call 8 opened", "queue x", "this point never came"),
        ("call 1 block 5", "crash", "this point never came"),
        ("hook lint started", "abort submit", "this point never came"),
        ("compaction started", "close", "this point never came"),
        ("retry 2 waiting", "abort hard", "this point never came"),
    ],
)
def test_an_act_that_could_not_happen_is_told(at: str, do: str, words: str) -> None:
    act = f"[[act]]\nat = 'call 1 opened'\ndo = 'queue y'\n[[act]]\nat = '{at}'\ndo = '{do}'\n"
    scenario = loads(WORLD.replace("[expect]", act))

    assert [f"act 2, line 35 ('{at}': '{do}'): {words}"] == play(scenario).observed.journal.problems


@pytest.mark.parametrize("do", ["abort hard", "queue x", "crash", "close"])
def test_an_act_that_comes_with_the_end_has_happened(do: str) -> None:
    scenario = loads(WORLD.replace("[expect]", f"[[act]]\nat = 'call 7 closed'\ndo = '{do}'\n"))

    assert [] == play(scenario).observed.journal.problems


def test_words_that_come_with_the_end_of_a_run_are_for_the_next() -> None:
    acts = "[[user]]\ntext = 'more'\n[[act]]\nat = 'call 1 closed'\ndo = 'queue and this'\n"
    call = "[[model]]\nblocks = [{ tool_use = { id = 't1', name = 'read', input = {} } }]\n"
    said = "[[model]]\nblocks = [{ text = 'hi' }]\n"
    scenario = loads(f"title = 't'\n[[user]]\ntext = 'go'\n{said}{call}{said}{acts}[[tool]]\nname = 'read'\n")

    requests = play(scenario).observed.journal.requests

    assert ["and this" in str(request.messages) for request in requests] == [False, False, True]


def test_an_answer_of_the_wrong_model_is_told() -> None:
    scenario = loads(WORLD.replace('stop = "max_tokens"', 'model = "second"'))

    problems = play(scenario).observed.journal.problems

    assert "model of call 3: expected second, got main" == problems[0]
