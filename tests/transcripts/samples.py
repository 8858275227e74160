"""Small files of every format: a prompt, a call with its result, an answer, as far as the format has them."""

from __future__ import annotations

from typing import Any, Final

from tests.transcripts.test_formats import API, SESSION, WHOLE, results, text, use
from tests.transcripts.test_openhands_actions import OLDER

AMP = {
    "id": "T-1",
    "messages": [
        {"role": "user", "messageId": 0, "content": text("go")},
        {
            "role": "assistant",
            "messageId": 1,
            "content": [
                {"type": "tool_use", "complete": True, "id": "c1", "name": "Read", "input": {"path": "a"}}
            ],
            "state": {"type": "complete", "stopReason": "tool_use"},
            "usage": {"model": "m", "inputTokens": 3, "outputTokens": 7, "cacheReadInputTokens": 1},
        },
        {
            "role": "user",
            "messageId": 2,
            "content": [
                {
                    "type": "tool_result",
                    "toolUseID": "c1",
                    "run": {"status": "error", "error": {"message": "no"}, "result": {"content": "x"}},
                }
            ],
        },
        {"role": "assistant", "messageId": 3, "content": text("done"), "state": {"stopReason": "end_turn"}},
    ],
}
CONTINUE = {
    "sessionId": "s",
    "history": [
        {"message": {"role": "user", "content": "go"}, "contextItems": []},
        {
            "message": {
                "role": "assistant",
                "content": "I look.",
                "toolCalls": [
                    {"id": "c1", "type": "function", "function": {"name": "Read", "arguments": '{"a":1}'}}
                ],
                "usage": {"prompt_tokens": 3, "completion_tokens": 4},
            },
            "toolCallStates": [
                {"toolCallId": "c1", "status": "errored", "output": [{"content": "x", "name": "Tool Result"}]}
            ],
        },
        {"message": {"role": "assistant", "content": "done"}},
    ],
}
SESSIONS = [
    {"type": "session", "version": 3, "id": "s", "timestamp": "2026-03-31T10:10:00.000Z"},
    {"type": "model_change", "id": "m"},
    {
        "type": "message",
        "id": "a",
        "message": {"role": "user", "content": text("go"), "timestamp": 1774951801000},
    },
    {
        "type": "message",
        "message": {
            "role": "assistant",
            "model": "m",
            "content": [
                {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
                {"type": "toolCall", "id": "c1", "name": "edit", "arguments": {"path": "a"}},
            ],
            "usage": {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4},
            "stopReason": "toolUse",
        },
    },
    {
        "type": "message",
        "message": {"role": "toolResult", "toolCallId": "c1", "content": text("x"), "isError": True},
    },
    {"type": "message", "message": {"role": "assistant", "stopReason": "error", "errorMessage": "busy"}},
    {"type": "compaction", "id": "c", "summary": "s"},
    {"type": "message", "message": {"role": "assistant", "content": text("done"), "stopReason": "aborted"}},
]
COPILOT = {
    "responderUsername": "GitHub Copilot",
    "sessionId": "s",
    "requests": [
        {
            "message": {"text": "go", "parts": [{"kind": "text", "text": "go"}]},
            "response": [
                {"value": "do"},
                {"kind": "inlineReference", "inlineReference": {}},
                {"value": "ne"},
            ],
            "responseId": "r1",
            "modelId": "m",
            "timestamp": 1774951801000,
            "isCanceled": True,
            "result": {"errorDetails": {"message": "busy"}},
        }
    ],
}
COPILOT_EVENTS = [
    {
        "type": "session.start",
        "data": {"sessionId": "s", "copilotVersion": "1"},
        "timestamp": "2026-05-11T23:13:12Z",
    },
    {"type": "user.message", "data": {"content": "go"}},
    {
        "type": "assistant.message",
        "data": {
            "messageId": "m1",
            "content": "I look.",
            "toolRequests": [
                {"toolCallId": "c1", "name": "read", "arguments": '{"a":1}', "type": "function"}
            ],
        },
    },
    {"type": "tool.execution_start", "data": {"toolCallId": "c1"}},
    {
        "type": "tool.execution_complete",
        "data": {
            "toolCallId": "c1",
            "success": False,
            "result": {"content": "x"},
            "error": {"message": "no"},
        },
    },
    {"type": "session.error", "data": {"message": "busy"}},
    {"type": "abort", "data": {}},
    {"type": "assistant.message", "data": {"messageId": "m2", "content": "done"}},
    {"type": "session.shutdown", "data": {"reason": "complete"}},
]
WINDSURF = [
    {"type": "user_input", "status": "done", "user_input": {"user_response": "go"}},
    {"type": "planner_response", "status": "done", "planner_response": {"response": "I look."}},
    {"type": "view_file", "status": "error", "view_file": {"path": "a", "content": "x"}},
    {
        "type": "run_command",
        "status": "done",
        "run_command": {"command": "ls", "output": "x", "exit_code": 0},
    },
    {"type": "planner_response", "status": "done", "planner_response": {"response": "done"}},
]
OPENCODE = {
    "type": "tool",
    "sessionID": "s",
    "messageID": "m1",
    "tool": "edit",
    "callID": "c1",
    "state": {"status": "completed", "input": {"a": 1}, "output": "x", "error": "no", "time": {"start": 1}},
}
STREAM = [
    {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Read"], "model": "m"},
    {
        "type": "user",
        "message": {"role": "user", "content": "go"},
        "session_id": "s",
        "parent_tool_use_id": None,
    },
    {
        "type": "assistant",
        "message": {
            "role": "assistant",
            "id": "m1",
            "model": "m",
            "content": [use("t1", path="a")],
            "usage": {"input_tokens": 1, "output_tokens": 2},
            "stop_reason": "tool_use",
        },
        "parent_tool_use_id": "side",
        "session_id": "s",
    },
    {"type": "user", "message": {"role": "user", "content": results("t1")}, "session_id": "s"},
    {
        "type": "system",
        "subtype": "api_retry",
        "session_id": "s",
        "attempt": 1,
        "max_retries": 10,
        "retry_delay_ms": 512.5,
        "error_status": 529,
        "error": {"error": {"error": {"type": "overloaded_error", "message": "busy"}}},
    },
    {
        "type": "system",
        "subtype": "compact_boundary",
        "compact_metadata": {"trigger": "auto", "pre_tokens": 9},
    },
    {
        "type": "assistant",
        "message": {"role": "assistant", "id": "m2", "content": text("done")},
        "session_id": "s",
    },
    {"type": "result", "subtype": "success", "is_error": False, "num_turns": 2, "session_id": "s"},
]
PROMPT = "COMMANDS:\nopen <path> [<line>] - opens it\nedit <start>:<end>\n<text>\nend_of_edit - edits\n"
NAMED = {
    "history": [
        {"role": "system", "content": PROMPT},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "I look.", "action": "open a 3"},
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "so", "action": "edit 1:2\nx\nend_of_edit"},
        {"role": "user", "content": "edited"},
        {"role": "assistant", "content": "done"},
    ],
    "trajectory": [],
    "info": {"exit_status": "submitted", "model": "m"},
}
COUNTED = {
    "total_token_usage": {"input_tokens": 5, "output_tokens": 2},
    "last_token_usage": {"input_tokens": 5, "cached_input_tokens": 1, "output_tokens": 2},
}
ROLLOUT = [
    {"type": "session_meta", "payload": {"id": "s", "cli_version": "1"}},
    {"type": "turn_context", "payload": {"model": "m"}},
    *WHOLE["codex"][0][1:3],
    {"type": "event_msg", "payload": {"type": "token_count", "info": COUNTED}},
    *WHOLE["codex"][0][3:],
]

SAMPLES: Final[list[tuple[str, Any, str]]] = [
    *((format, records, file) for format, (records, file) in WHOLE.items()),
    ("claude-code", SESSION, "a.jsonl"),
    ("messages", API, "a.json"),
    ("stream-json", STREAM, "a.jsonl"),
    ("codex", ROLLOUT, "a.jsonl"),
    ("openhands", OLDER, "a.json"),
    ("openhands", OLDER, "a.jsonl"),
    ("openhands", {"instance_id": "i", "history": OLDER, "error": "boom"}, "a.json"),
    ("swe-agent", NAMED, "a.traj"),
    ("amp", AMP, "a.json"),
    ("continue", CONTINUE, "a.json"),
    ("sessions", SESSIONS, "a.jsonl"),
    ("copilot", COPILOT, "a.json"),
    ("copilot", [{"kind": 0, "v": COPILOT}, {"kind": 1, "k": ["requests"]}], "a.jsonl"),
    ("copilot-events", COPILOT_EVENTS, "a.jsonl"),
    ("windsurf", WINDSURF, "a.jsonl"),
    ("opencode", OPENCODE, "a.json"),
]
"""Its format, what it holds, and the name of a file that does."""
