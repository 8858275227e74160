"""What only this file catches: an older trajectory of OpenHands that is misread, or another taken for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.linting.linting import findings_in
from stepfold.adapters.transcripts.importing import conversations
from stepfold.adapters.transcripts.items import Began, Compacted, Ended, Interrupted, Item, Said
from stepfold.adapters.transcripts.reading import transcript
from stepfold.engine import Config
from stepfold.engine.events import Usage
from stepfold.engine.messages import Text, Thinking, ToolResult, ToolUse
from tests.transcripts.test_formats import imported, items, written

Records = list[dict[str, Any]]


def response(id: str, *calls: tuple[str, str, str]) -> dict[str, Any]:
    given = [{"id": call, "function": {"name": name, "arguments": input}} for call, name, input in calls]
    message = {"role": "assistant", "content": "I look.", "tool_calls": given}
    usage = {"prompt_tokens": 10, "completion_tokens": 3}
    choices = [{"finish_reason": "tool_calls", "message": message}]
    return {"id": id, "model": "gpt-x", "usage": usage, "choices": choices}


def action(id: int, kind: str, source: str = "agent", **more: Any) -> dict[str, Any]:
    args = more.pop("args", {})
    return {
        "id": id,
        "timestamp": "2025-01-02T03:04:05",
        "source": source,
        "action": kind,
        "args": args,
        **more,
    }


def observed(id: int, kind: str, content: str = "x", **more: Any) -> dict[str, Any]:
    return {"id": id, "source": "agent", "observation": kind, "content": content, "extras": {}, **more}


CALLED = {
    "tool_call_id": "c1",
    "function_name": "execute_bash",
    "model_response": response("r1", ("c0", "other", "{}"), ("c1", "execute_bash", '{"command":"ls -a"}')),
}
OLDER: Records = [
    action(0, "system", args={"content": "be kind", "tools": [{"function": {"name": "execute_bash"}}]}),
    action(1, "message", "user", args={"content": "go"}),
    action(2, "recall", "user", args={"query": "go"}),
    observed(3, "recall", cause=2),
    observed(4, "agent_state_changed", "", extras={"agent_state": "running"}),
    action(
        5,
        "run",
        args={"command": "ls -a", "thought": "I look.", "hidden": False},
        tool_call_metadata=CALLED,
    ),
    observed(6, "run", "files", cause=5, tool_call_metadata=CALLED, extras={"exit_code": 0}),
    action(7, "finish", args={"final_thought": "done", "thought": ""}),
    observed(8, "agent_state_changed", "", extras={"agent_state": "finished"}),
]
"""A small session, as the versions with function calling keep it."""


def wrapped(name: str) -> tuple[Any, str]:
    row = {"instance_id": "i-1", "history": OLDER, "metadata": {"llm_config": {"model": "gpt-x"}}}
    pairs = [[OLDER[1], OLDER[3]], [OLDER[5], OLDER[6]], [OLDER[7], OLDER[8]]]
    values: dict[str, tuple[Any, str]] = {
        "a list": (OLDER, "a.json"),
        "lines": (OLDER, "a.jsonl"),
        "a row": (row, "a.json"),
        "rows": ([row], "a.jsonl"),
        "a trajectory": ({"trajectory": OLDER}, "a.json"),
        "pairs": ({"history": pairs}, "a.json"),
    }
    return values[name]


@pytest.mark.parametrize("name", ["a list", "lines", "a row", "rows", "a trajectory", "pairs"])
def test_it_is_recognised_and_becomes_a_whole_recording(tmp_path: Path, name: str) -> None:
    value, file = wrapped(name)
    with transcript(written(tmp_path, value, file)) as found:
        assert "openhands" == found.format.name
        told = list(found.items)
    assert {} == found.counts.unknown
    (one,) = conversations(told)
    assert ("i-1" if "row" in name else "") == one.session
    assert ["user", "assistant", "user", "assistant"] == [message.role for message in one.messages]
    said = [block for message in one.messages for block in message.content]
    assert [Text("go"), Text("I look."), ToolUse("c1", "execute_bash", '{"command":"ls -a"}')] == said[:3]
    assert [ToolResult("c1", (Text("files"),)), Text("done")] == said[3:]
    assert "" == imported(one)[0].why
    assert [("finished", True)] == [(item.reason, item.ok) for item in told if isinstance(item, Ended)]
    rules = [finding.rule for finding in findings_in(told, "openhands", Config())]
    assert ["terminal"] == rules


def test_model_usage_and_tools_are_told(tmp_path: Path) -> None:
    second = {**CALLED, "tool_call_id": "c0", "function_name": "other"}
    more = [action(9, "run", tool_call_metadata=second), observed(10, "run", cause=9)]
    told = items(written(tmp_path, OLDER[:7] + more, "a.json"))
    assert isinstance(told[0], Began)
    assert ("execute_bash",) == told[0].tools
    answers = [item for item in told if isinstance(item, Said) and item.answer]
    assert [("r1", "gpt-x", Usage(10, 3)), ("r1", "gpt-x", None)] == [
        (item.answer, item.model, item.usage) for item in answers
    ]


def test_a_result_that_is_empty_stays_so(tmp_path: Path) -> None:
    silent = observed(6, "run", "", cause=5, tool_call_metadata=CALLED, message="Command `ls -a` executed.")
    (one,) = conversations(items(written(tmp_path, [*OLDER[:6], silent, *OLDER[7:]], "a.json")))
    assert (ToolResult("c1", ()),) == one.messages[2].content
    assert "" == imported(one)[0].why


def test_calls_without_ids_get_made_up_ones(tmp_path: Path) -> None:
    """As in versions before function calling: the result names the action that was its cause, or nothing."""
    old: Records = [
        action(0, "message", "user", args={"content": "go"}),
        action(1, "run", args={"command": "ls", "thought": "so", "is_confirmed": "confirmed"}),
        observed(2, "run", "files", cause=1),
        action(3, "read", args={"path": "a"}),
        observed(4, "error", "no such file", cause=-1),
        action(5, "message", args={"content": "done"}),
    ]
    (one,) = conversations(items(written(tmp_path, old, "a.json")))
    blocks = [block for message in one.messages for block in message.content]
    assert [
        Text("go"),
        Text("so"),
        ToolUse("call-1", "run", '{"command":"ls"}'),
        ToolResult("call-1", (Text("files"),)),
        ToolUse("call-3", "read", '{"path":"a"}'),
        ToolResult("call-3", (Text("no such file"),), True),
        Text("done"),
    ] == blocks
    assert "" == imported(one)[0].why


@pytest.mark.parametrize(
    ("state", "reason", "end"),
    [
        ("finished", "", "finished"),
        ("rejected", "", "rejected"),
        ("STOPPED", "", "stopped"),
        ("paused", "", "paused"),
        ("error", "", "error"),
        ("error", "RuntimeError: Agent reached maximum iteration in headless mode", "max_iterations"),
        ("error", "RuntimeError: Agent reached maximum budget for conversation", "max_budget"),
        ("error", "AgentStuckInLoopError: Agent got stuck in a loop", "stuck"),
        ("awaiting_user_input", "", None),
        ("quite_new", "", None),
    ],
)
def test_states_are_ends(tmp_path: Path, state: str, reason: str, end: str | None) -> None:
    changed = observed(9, "agent_state_changed", "", extras={"agent_state": state, "reason": reason})
    with transcript(written(tmp_path, [*OLDER[:7], changed], "a.json")) as found:
        told = [item.reason for item in found.items if isinstance(item, Ended)]
    assert ([] if end is None else [end]) == told
    assert ({"agent_state quite_new": 1} if state == "quite_new" else {}) == found.counts.unknown


def test_what_is_no_call_is_told_as_what_it_is(tmp_path: Path) -> None:
    more = [
        observed(20, "error", "that is no tool"),
        action(21, "run", "user", args={"command": "make"}),
        observed(22, "run", "made", cause=21),
        action(23, "condensation", args={"summary": "s"}),
        action(24, "pause", "user"),
        action(25, "message", args={"content": "so", "wait_for_response": True}),
        action(26, "think", args={"thought": {"text": "aloud", "reasoning_content": "silent"}}),
        observed(27, "think", "noted", cause=26),
        action(28, "quite_new", args={"a": 1}),
        {"observation": 7, "action": 3},
    ]
    with transcript(written(tmp_path, [*OLDER[:7], *more], "a.json")) as found:
        told: list[Item] = list(found.items)
    said = [item for item in told if isinstance(item, Said)][3:]
    assert [True, False, True] == [item.meta for item in said[:3]]
    words = [[getattr(block, "text", "") for block in item.message.content] for item in said[:4]]
    assert [["that is no tool"], ["run: make"], ["made"], ["so"]] == words
    assert (Thinking("silent"), Text("aloud")) == said[4].message.content[:2]
    assert "{}" == said[4].message.content[2].input  # type: ignore[union-attr]
    assert "noted" == said[5].message.content[0].content[0].text  # type: ignore[union-attr]
    assert ("quite_new", {"a": 1}) == (
        said[6].message.content[0].name,  # type: ignore[union-attr]
        json.loads(said[6].message.content[0].input),  # type: ignore[union-attr]
    )
    assert 1 == sum(isinstance(item, Compacted) for item in told)
    assert 1 == sum(isinstance(item, Interrupted) for item in told)
    assert {"no event (dict)": 1} == found.counts.unknown


def test_rows_are_sessions_and_tell_their_error(tmp_path: Path) -> None:
    rows = [
        {"instance_id": f"i-{at}", "history": OLDER[:7], "error": error}
        for at, error in enumerate(("", "boom"))
    ]
    told = items(written(tmp_path, rows, "a.jsonl"))
    assert ["i-0", "i-1"] == [one.session for one in conversations(told)]
    assert [("i-1", "error")] == [
        (item.place.session, item.reason) for item in told if isinstance(item, Ended)
    ]


@pytest.mark.parametrize(
    "value",
    [
        {"trajectory": [{"action": "ls", "observation": "x", "thought": "t"}], "info": {}},
        {"history": [{"message": {"role": "user", "content": "go"}}]},
        [{"role": "assistant", "content": "x", "action": "ls", "source": "agent"}],
    ],
)
def test_others_are_not_taken_for_it(tmp_path: Path, value: Any) -> None:
    with transcript(written(tmp_path, value, "a.json")) as found:
        assert "openhands" != found.format.name
