"""What only this file catches: a call, a result, an end or an error of another agent that is lost."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.linting.linting import findings_in
from stepfold.adapters.transcripts import endings
from stepfold.adapters.transcripts.content import usage_of
from stepfold.adapters.transcripts.importing import conversations
from stepfold.adapters.transcripts.items import (
    Began,
    Compacted,
    Ended,
    Interrupted,
    Item,
    RequestFailed,
    Said,
)
from stepfold.adapters.transcripts.reading import transcript
from stepfold.engine import Config, Terminal
from stepfold.engine.events import Usage
from stepfold.engine.messages import Role, ToolResult, ToolUse
from tests.transcripts.test_formats import CHAT, CODEX, OPENHANDS, imported, items, text, written
from tests.transcripts.test_real import CANNOT, CASES, FILES, label

OTHERS = [path for path in FILES if path.is_relative_to(CASES / "other_agents") and path.name not in CANNOT]


def values(path: Path) -> list[Any]:
    """Every JSON value of a file."""
    text = path.read_text(encoding="utf-8")
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def everywhere(value: Any) -> list[dict[str, Any]]:
    """Every object within *value*, however deep."""
    found = [value] if isinstance(value, dict) else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return found + [each for one in inner for each in everywhere(one)]


CALLS = ("tool_use", "toolCall", "function_call", "custom_tool_call", "function", "tool")
IDS = ("tool_call_id", "call_id", "toolCallId", "id", "toolUseID", "tool_use_id", "callID")


@pytest.mark.parametrize("path", OTHERS, ids=label)
def test_every_call_and_every_result_stands_in_the_file(path: Path) -> None:
    """And, where the file has ids, none of its is lost: ids are looked for anywhere, whatever the format."""
    with transcript(path) as found:
        blocks = [block for item in found.items if isinstance(item, Said) for block in item.message.content]
    calls = {block.id for block in blocks if isinstance(block, ToolUse)}
    results = {block.use_id for block in blocks if isinstance(block, ToolResult)}
    objects = [each for value in values(path) for each in everywhere(value)]
    named = {str(each[key]) for each in objects for key in IDS if isinstance(each.get(key), str)}
    made_up = {id for id in calls | results if id.startswith(("action-", "step-", "call-"))}
    assert (calls | results) - made_up <= named
    wanted = {
        id
        for each in objects
        if each.get("type") in CALLS
        and ("name" in each or "function" in each or "tool" in each)
        and (id := each.get("callID") or each.get("call_id") or each.get("toolCallId") or each.get("id"))
    }
    if found.format.name not in ("inspect", "openhands", "swe-agent"):  # those repeat them in other places
        assert wanted <= calls, path


# ------------------------------------------------------------------- small ones


def seen(tmp_path: Path, records: Any, name: str) -> list[Item]:
    return items(written(tmp_path, records, name))


def test_epochs_of_one_sample_are_two_conversations(tmp_path: Path) -> None:
    samples = [{"id": 1, "epoch": epoch, "messages": CHAT, "output": {}} for epoch in (1, 2)]
    log = {"eval": {}, "status": "cancelled", "samples": samples}
    found = seen(tmp_path, log, "a.json")
    assert ["sample 1, epoch 1", "sample 1, epoch 2"] == [one.session for one in conversations(found)]
    assert ["cancelled", "cancelled"] == [item.reason for item in found if isinstance(item, Ended)]


def test_codex_tells_failures_and_counts_what_it_does_not_know(tmp_path: Path) -> None:
    more: list[dict[str, Any]] = [
        {"type": "event_msg", "payload": {"type": "quite_new"}},
        {"type": "event_msg", "payload": {"type": "token_count"}},
        {"type": "event_msg", "payload": {"type": "stream_error", "message": "cut"}},
        {"type": "event_msg", "payload": {"type": "turn_aborted", "reason": "interrupted"}},
        {"type": "compacted", "payload": {}},
        {"type": "event_msg", "payload": {"type": "context_compacted"}},
        {
            "type": "response_item",
            "payload": {
                "type": "function_call_output",
                "call_id": "c1",
                "output": {"content": "no", "success": False},
            },
        },
    ]
    with transcript(written(tmp_path, [*CODEX, *more], "a.jsonl")) as found:
        told = list(found.items)
    assert {"event_msg quite_new": 1} == found.counts.unknown
    kinds = Counter(type(item) for item in told)
    assert (1, 1, 1) == (kinds[RequestFailed], kinds[Interrupted], kinds[Compacted])
    assert {"s"} == {item.place.session for item in told}
    *_, last = (item for item in told if isinstance(item, Said))
    assert last.message.content[0].is_error  # type: ignore[union-attr]


def test_codex_tells_model_and_usage_of_each_answer(tmp_path: Path) -> None:
    def counted(*numbers: int, **total: int) -> dict[str, Any]:
        names = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
        info: dict[str, Any] = {"total_token_usage": total}
        if numbers:
            info["last_token_usage"] = dict(zip(names, numbers, strict=True))
        return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}

    def item(**payload: Any) -> dict[str, Any]:
        return {"type": "response_item", "payload": payload}

    turn = {"type": "turn_context", "payload": {"model": "gpt-x"}}
    other = {"type": "turn_context", "payload": {"model": "gpt-y"}}
    first = counted(100, 60, 10, 7, input_tokens=100, output_tokens=7)
    words = item(type="message", role="assistant", id="msg_1", content=text("I look."))
    thought = item(type="reasoning", summary=[{"type": "summary_text", "text": "hm"}])
    begun, prompt, called, came, done, end = CODEX
    records = [begun, turn, prompt, counted(1, 0, 0, 1)]  # of nothing in this file
    records += [{"type": "event_msg", "payload": {"type": "token_count", "info": None}}]
    records += [
        thought,
        words,
        called,
        first,
        came,
        first,
        other,
        done,
        counted(input_tokens=150, output_tokens=9),
    ]
    told = seen(tmp_path, [*records, end], "a.jsonl")
    said = [item for item in told if isinstance(item, Said)]
    spent = [(item.answer, item.model, item.usage) for item in said if item.usage is not None]
    assert [
        ("response-1", "gpt-x", Usage(30, 7, 60, 10)),
        ("response-2", "gpt-y", Usage(50, 2)),
    ] == spent
    models = [
        item.message.model for item in said if item.message.role is Role.ASSISTANT and item.message.content
    ]
    assert ["gpt-x", "gpt-x", "gpt-x", "gpt-y"] == models
    (one,) = conversations(told)
    assert ["Thinking", "Text", "ToolUse"] == [type(block).__name__ for block in one.messages[1].content]
    assert "" == imported(one)[0].why
    assert not [finding for finding in findings_in(told, "codex", Config()) if finding.rule != "terminal"]


def test_openhands_tells_each_status(tmp_path: Path) -> None:
    base = {"kind": "ConversationStateUpdateEvent", "key": "execution_status"}
    more = [
        {**base, "value": "running"},
        {**base, "value": "quite_new"},
        {**base, "key": "full_state", "value": {"execution_status": "stuck"}},
    ]
    with transcript(written(tmp_path, [*OPENHANDS, *more], "a.jsonl")) as found:
        ends = [item.reason for item in found.items if isinstance(item, Ended)]
    assert ["finished", "stuck"] == ends
    assert {"execution_status quite_new": 1} == found.counts.unknown


def test_a_trajectory_without_history_and_a_command_in_a_text(tmp_path: Path) -> None:
    whole = {
        "trajectory": [{"thought": "I look.", "action": "ls", "observation": "files"}],
        "info": {"exit_status": "submitted (exit_api)"},
    }
    (one,) = conversations(seen(tmp_path, whole, "a.traj"))
    assert ["ToolUse", "ToolResult"] == [type(message.content[-1]).__name__ for message in one.messages]
    mini = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "so:\n```mswea_bash_command\nls -la\n```"},
        {"role": "user", "content": "<returncode>0</returncode>"},
    ]
    (one,) = conversations(seen(tmp_path, mini, "a.json"))
    (use,) = [block for message in one.messages for block in message.content if isinstance(block, ToolUse)]
    assert ("bash", '{"command":"ls -la"}') == (use.name, use.input)
    assert isinstance(one.messages[-1].content[0], ToolResult)


def test_what_failed_in_pi_is_told(tmp_path: Path) -> None:
    records = [
        {"type": "session", "id": "s"},
        {"type": "message", "message": {"role": "assistant", "stopReason": "error", "errorMessage": "busy"}},
        {"type": "message", "message": {"role": "assistant", "content": [], "stopReason": "aborted"}},
    ]
    told = seen(tmp_path, records, "a.jsonl")
    assert ["busy"] == [item.words for item in told if isinstance(item, RequestFailed)]
    assert 1 == sum(isinstance(item, Interrupted) for item in told)
    assert isinstance(told[0], Began)


WORDS = {
    "codex": "task_complete turn_complete interrupted replaced review_ended turn_aborted",
    "openhands": """
        finished error stuck paused idle running waiting_for_confirmation deleting rejected max_iterations
        max_budget stopped loading init awaiting_user_input awaiting_user_confirmation user_confirmed
        user_rejected rate_limited
    """,
    "swe-agent": """
        submitted Submitted LimitsExceeded TimeExceeded RepeatedFormatError UserInterruption early_exit
        skipped exit_cost exit_total_execution_time exit_command_timeout exit_context exit_format exit_api
        exit_error exit_environment_error exit_forfeit exit_command
    """,
    "inspect": "stop tool_calls max_tokens model_length content_filter unknown message token cost time "
    "working context operator custom error cancelled",
    "sessions": "stop length toolUse error aborted",
    "messages": "stop tool_calls function_call length content_filter end_turn tool_use",
    "stream-json": "success error_during_execution error_max_turns error_max_budget_usd",
}


@pytest.mark.parametrize("format", WORDS)
def test_every_word_of_a_format_is_known(format: str) -> None:
    for word in WORDS[format].split():
        assert endings.known(format, word), word
    for word in WORDS["swe-agent"].split():
        if word.startswith("exit_"):
            wrapped = endings.terminal_of("swe-agent", f"submitted ({word})")
            assert endings.terminal_of("swe-agent", word) is wrapped
    assert Terminal.MAX_TURNS is endings.terminal_of("swe-agent", "TimeExceeded")


# ------------------------------------------------------- SWE-agent's named commands

OLD_PROMPT = """Use these:

COMMANDS:
open <path> [<line_number>] - opens the file - in the editor
set_cursors <start> <end> - sets both
submit - ends it
edit <start_line>:<end_line>
<replacement_text>
end_of_edit - replaces these lines

find - not one of them
"""
NEW_PROMPT = """COMMANDS:
edit:
  docstring: replaces
  signature: edit <start_line>:<end_line>
<replacement_text>
end_of_edit
  arguments:
    - start_line (integer) [required]: a - b

submit:
  docstring: submits
  signature: submit '<flag>'

decompile:
  signature: decompile <binary_path> [--function_name <function_name>]

odd:
  signature: odd {"a": 1}
"""


@pytest.mark.parametrize(
    ("prompt", "action", "name", "input"),
    [
        (OLD_PROMPT, "open 'a b.py' 12\n", "open", {"path": "a b.py", "line_number": "12"}),
        (OLD_PROMPT, "open a.py", "open", {"path": "a.py"}),
        (OLD_PROMPT, "set_cursors 1 2", "set_cursors", {"start": "1", "end": "2"}),
        (OLD_PROMPT, "set_cursors 1", "set_cursors", {"arguments": "1"}),
        (OLD_PROMPT, "submit", "submit", {}),
        (OLD_PROMPT, "submit F{x\\y}", "submit", {"arguments": "F{x\\y}"}),
        (
            OLD_PROMPT,
            "edit 1:2\n  x = 1 | 2\n\nend_of_edit\n",
            "edit",
            {"start_line": "1", "end_line": "2", "replacement_text": "  x = 1 | 2\n"},
        ),
        (OLD_PROMPT, "edit 1:2\nx\nend_of_edit\nls", "command", None),
        (OLD_PROMPT, "edit 1:2\nx\nend_of_edit\nls\nend_of_edit", "command", None),
        (OLD_PROMPT, "edit 1:2\nx", "command", None),
        (OLD_PROMPT, "open a.py\nls", "command", None),
        (OLD_PROMPT, "open a.py && ls", "command", None),
        (OLD_PROMPT, "open a.py;ls", "command", None),
        (OLD_PROMPT, "submit > a", "command", None),
        (OLD_PROMPT, "open 'a", "command", None),
        (OLD_PROMPT, "ls -a", "command", None),
        (OLD_PROMPT, "opened a", "command", None),
        (OLD_PROMPT, "end_of_edit", "command", None),
        (OLD_PROMPT, "find a", "command", None),
        (OLD_PROMPT, "goto 3", "command", None),  # this one was not told of it
        (
            NEW_PROMPT,
            "edit 3:3\nend_of_edit",
            "edit",
            {"start_line": "3", "end_line": "3", "replacement_text": ""},
        ),
        (NEW_PROMPT, "edit 3\nx\nend_of_edit", "edit", {"arguments": "3", "replacement_text": "x"}),
        (NEW_PROMPT, "submit 'F{a|b}'", "submit", {"flag": "F{a|b}"}),
        (
            NEW_PROMPT,
            "decompile --function_name f rock",
            "decompile",
            {"binary_path": "rock", "function_name": "f"},
        ),
        (NEW_PROMPT, "decompile rock --function_name", "decompile", {"arguments": "rock --function_name"}),
        (NEW_PROMPT, "odd 1", "odd", {"arguments": "1"}),
        ("no commands here", "goto 3", "goto", {"line_number": "3"}),
        ("no commands here", "scroll_up", "scroll_up", {}),
        ("no commands here", "set_cursors 1 2", "command", None),
    ],
)
def test_an_action_that_is_a_named_command_calls_it(
    tmp_path: Path, prompt: str, action: str, name: str, input: dict[str, str] | None
) -> None:
    history = [
        {"role": "system", "content": prompt},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "so", "action": action},
        {"role": "user", "content": "x"},
    ]
    found = seen(tmp_path, {"trajectory": [], "history": history, "info": {}}, "a.traj")
    (one,) = conversations(found)
    (use,) = [block for message in one.messages for block in message.content if isinstance(block, ToolUse)]
    assert name == use.name
    assert (input if input is not None else {"command": action}) == json.loads(use.input)
    assert isinstance(found[0], Began)
    told = {
        OLD_PROMPT: ("open", "set_cursors", "submit", "edit"),
        NEW_PROMPT: ("edit", "submit", "decompile", "odd"),
    }
    assert told.get(prompt, ()) == found[0].tools


@pytest.mark.skipif(not CASES.is_dir(), reason="the real transcripts are not beside this checkout")
def test_real_actions_call_what_they_name() -> None:
    """Against the first word, which is all that can be told without reading prompts."""
    named, bare = Counter[str](), Counter[str]()
    for path in (CASES / "other_agents" / "SWE-agent+SWE-agent").glob("*.traj"):
        whole = json.loads(path.read_text(encoding="utf-8"))
        if any(message.get("tool_calls") for message in whole["history"]):
            continue
        bare.update(each["action"].split()[0] for each in whole["history"] if each.get("action"))
        for item in items(path):
            blocks = item.message.content if isinstance(item, Said) else ()
            named.update(block.name for block in blocks if isinstance(block, ToolUse))
    typed = {word for word in bare if word in ("ls", "rm", "python", "curl", "echo", "file", "./rock")}
    assert sum(bare[word] for word in typed) == named.pop("command")
    assert {word: count for word, count in bare.items() if word not in typed} == named
    assert sum(named.values()) > 60


@pytest.mark.skipif(not CASES.is_dir(), reason="the real transcripts are not beside this checkout")
def test_real_rollouts_tell_their_model() -> None:
    files = sorted((CASES / "other_agents").rglob("codex-session-*.jsonl"))
    models = [{item.model for item in items(path) if isinstance(item, Said)} - {""} for path in files]
    assert [{"gpt-5-codex"}, {"gpt-5.1-codex"}] == models


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ({"input_tokens": 6, "output_tokens": 1, "cache_read_input_tokens": 30}, Usage(6, 1, 30)),
        (
            {
                "prompt_tokens": 3616,
                "completion_tokens": 111,
                "prompt_tokens_details": {"cached_tokens": 3471},
                "cache_creation_input_tokens": 139,
                "cache_read_input_tokens": 3471,
            },
            Usage(6, 111, 3471, 139),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(6, 2, 4),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": None}, Usage(10, 2)),
        ({"input": 9, "output": 2, "cached": 4, "thoughts": 1, "tool": 0, "total": 12}, Usage(5, 2, 4)),
        ({"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4}, Usage(1, 2, 3, 4)),
        ({"input_tokens": 0}, None),
        ("none", None),
    ],
)
def test_what_is_cached_counts_once(told: object, usage: Usage | None) -> None:
    assert usage == usage_of(told)
