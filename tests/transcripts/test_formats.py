"""What only this file catches: a record that is read wrongly, and input that was never meant to be read."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.cli import main
from stepfold.adapters.recording import read_recording
from stepfold.adapters.transcripts import endings, source
from stepfold.adapters.transcripts.fields import time_ms
from stepfold.adapters.transcripts.importing import Conversation, Imported, conversations, write_recording
from stepfold.adapters.transcripts.items import (
    Compacted,
    Ended,
    Interrupted,
    Item,
    RequestFailed,
    Said,
)
from stepfold.adapters.transcripts.reading import FORMATS, transcript
from stepfold.adapters.transcripts.source import TranscriptError
from stepfold.engine import Terminal
from stepfold.engine.messages import Text, ToolResult, ToolUse
from tests.cli.test_json import documented

Records = list[dict[str, Any]]


def claude(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    role = {"role": kind, "content": content, **more.pop("message", {})}
    base = {"type": kind, "sessionId": "s", "uuid": f"u{id(content)}", "isSidechain": False, "version": "2"}
    return {**base, "timestamp": "2026-01-02T03:04:05.678Z", "message": role, **more}


def use(id: str, name: str = "Read", **input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def results(*ids: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": id, "content": f"for {id}"} for id in ids]


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


def answer(content: Any, id: str, **more: Any) -> dict[str, Any]:
    return claude("assistant", content, message={"id": id, "model": "claude-x"}, **more)


SESSION: Records = [
    claude("user", "please look"),
    answer([{"type": "thinking", "thinking": "hm", "signature": "sig"}], "m1"),
    answer([use("t1", path="a")], "m1"),
    answer([use("t2", path="b")], "m1"),
    claude("user", results("t1")),
    claude("user", results("t2")),
    answer(text("done"), "m2"),
]


def written(folder: Path, records: Any, name: str = "a.jsonl") -> Path:
    path = folder / name
    lines = "".join(json.dumps(record) + "\n" for record in records)
    path.write_text(lines if name.endswith("jsonl") else json.dumps(records), encoding="utf-8")
    return path


def imported(one: Conversation) -> tuple[Imported, bytes]:
    """What *one* becomes, and what its file would hold."""
    file = io.BytesIO()
    return write_recording(one, file), file.getvalue()


def items(path: Path, format: str | None = None) -> list[Item]:
    with transcript(path, format) as found:
        return list(found.items)


# --------------------------------------------------------------------- Claude Code


def test_an_answer_in_several_lines_is_one(tmp_path: Path) -> None:
    (one,) = conversations(items(written(tmp_path, SESSION)))
    assert ["user", "assistant", "user", "assistant"] == [message.role for message in one.messages]
    assert ["Thinking", "ToolUse", "ToolUse"] == [type(block).__name__ for block in one.messages[1].content]
    done, _ = imported(one)
    assert ("", 9) == (done.why, done.events)


def test_a_record_that_is_repeated_counts_once(tmp_path: Path) -> None:
    (one,) = conversations(items(written(tmp_path, [*SESSION[:3], *SESSION])))
    assert 4 == len(one.messages)


def test_side_chains_are_conversations_of_their_own(tmp_path: Path) -> None:
    side = [
        claude("user", "sub task", isSidechain=True, agentId="ag1"),
        answer(text("sub done"), "m9", isSidechain=True, agentId="ag1"),
    ]
    main_one, other = conversations(items(written(tmp_path, [*SESSION[:4], *side, *SESSION[4:]])))
    assert ("", "ag1") == (main_one.chain, other.chain)
    assert "" == imported(main_one)[0].why == imported(other)[0].why


def test_sessions_in_one_file(tmp_path: Path) -> None:
    other = [{**record, "sessionId": "s2", "uuid": f"x{at}"} for at, record in enumerate(SESSION)]
    assert ["s", "s2"] == [one.session for one in conversations(items(written(tmp_path, SESSION + other)))]


def test_boundaries_errors_and_interrupts(tmp_path: Path) -> None:
    error = {"status": 529, "error": {"error": {"type": "overloaded_error", "message": "busy"}}}
    told = [
        {
            "type": "system",
            "subtype": "api_error",
            "sessionId": "s",
            "error": error,
            "retryInMs": 512.5,
            "retryAttempt": 2,
            "maxRetries": 10,
        },
        {
            "type": "system",
            "subtype": "compact_boundary",
            "sessionId": "s",
            "compactMetadata": {"trigger": "auto", "preTokens": 9, "postTokens": 4},
        },
        {
            "type": "system",
            "subtype": "microcompact_boundary",
            "sessionId": "s",
            "microcompactMetadata": {"trigger": "auto", "preTokens": 9, "tokensSaved": 2},
        },
        claude("user", text("[Request interrupted by user for tool use]")),
        answer(text("API Error: 500"), "m7", isApiErrorMessage=True, error="server_error"),
        {"type": "system", "subtype": "quite_new", "sessionId": "s"},
        {"type": "queer", "sessionId": "s"},
    ]
    path = written(tmp_path, [*SESSION, *told])
    with transcript(path) as found:
        seen = [item for item in found.items if not isinstance(item, Said)][1:]
    failed, whole, micro, stopped, shown = seen
    assert isinstance(failed, RequestFailed)
    expected = (529, "overloaded_error", "busy", 2, 10, 512)
    assert expected == (
        failed.status,
        failed.kind,
        failed.words,
        failed.attempt,
        failed.attempts,
        failed.wait_ms,
    )
    assert isinstance(whole, Compacted)
    assert (9, 4, False) == (whole.before_tokens, whole.after_tokens, whole.micro)
    assert isinstance(micro, Compacted)
    assert (9, 7, True) == (micro.before_tokens, micro.after_tokens, micro.micro)
    assert isinstance(stopped, Interrupted)
    assert stopped.in_tool
    assert isinstance(shown, RequestFailed)
    assert shown.shown
    assert {"system quite_new": 1, "queer": 1} == found.counts.unknown


def test_stream_json_in_lines_and_as_a_list(tmp_path: Path) -> None:
    beginning = {
        "type": "system",
        "subtype": "init",
        "session_id": "s",
        "tools": ["Read"],
        "model": "claude-x",
    }
    end = {
        "type": "result",
        "subtype": "error_max_turns",
        "is_error": True,
        "num_turns": 3,
        "session_id": "s",
    }
    turns = [
        {"type": "user", "message": {"role": "user", "content": "go"}, "session_id": "s"},
        {
            "type": "assistant",
            "message": {"role": "assistant", "id": "m", "content": text("hi")},
            "session_id": "s",
        },
    ]
    for name in ("a.jsonl", "a.json"):
        seen = items(written(tmp_path, [beginning, *turns, end], name))
        assert isinstance(seen[-1], Ended)
        assert ("error_max_turns", False, 3) == (seen[-1].reason, seen[-1].ok, seen[-1].turns)
        assert Terminal.MAX_TURNS is endings.terminal_of("stream-json", seen[-1].reason)


# ------------------------------------------------------------------------- others

CHAT: Records = [
    {"role": "system", "content": "be kind"},
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "content": "looking",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"a":1}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "x"},
    {"role": "assistant", "content": "done"},
]
API: Records = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": [use("t1")]},
    {"role": "user", "content": results("t1")},
    {"role": "assistant", "content": text("done")},
]
CODEX: Records = [
    {"type": "session_meta", "payload": {"id": "s", "cli_version": "1"}},
    {
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
    },
    {
        "type": "response_item",
        "payload": {"type": "function_call", "name": "shell", "arguments": '{"a":1}', "call_id": "c1"},
    },
    {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c1", "output": "x"}},
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "done"}],
        },
    },
    {"type": "event_msg", "payload": {"type": "task_complete"}},
]
SWE = {
    "trajectory": [],
    "history": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "I look.", "action": "ls"},
        {"role": "user", "content": "files"},
        {"role": "assistant", "content": "done"},
    ],
    "info": {"exit_status": "submitted"},
}
OPENHANDS: Records = [
    {"kind": "SystemPromptEvent", "tools": [{"name": "terminal"}]},
    {"kind": "MessageEvent", "llm_message": {"role": "user", "content": text("go")}},
    {
        "kind": "ActionEvent",
        "tool_call_id": "c1",
        "thought": text("hm"),
        "tool_call": {"id": "c1", "name": "terminal", "arguments": '{"command":"ls"}'},
    },
    {
        "kind": "ObservationEvent",
        "tool_call_id": "c1",
        "observation": {"content": text("x"), "is_error": False},
    },
    {"kind": "MessageEvent", "llm_message": {"role": "assistant", "content": text("done")}},
    {"kind": "ConversationStateUpdateEvent", "key": "execution_status", "value": "finished"},
]
GEMINI = {
    "sessionId": "s",
    "projectHash": "h",
    "messages": [
        {"type": "user", "content": "go"},
        {
            "type": "gemini",
            "content": "",
            "toolCalls": [
                {
                    "id": "c1",
                    "name": "ls",
                    "args": {},
                    "result": [{"functionResponse": {"response": {"output": "x"}}}],
                    "status": "success",
                }
            ],
        },
        {"type": "gemini", "content": "done"},
    ],
}
INSPECT = {
    "eval": {"model": "m"},
    "status": "success",
    "samples": [{"id": 1, "messages": CHAT, "output": {"choices": [{"stop_reason": "stop"}]}}],
}
WHOLE: dict[str, tuple[Any, str]] = {
    "messages": (CHAT, "a.json"),
    "codex": (CODEX, "a.jsonl"),
    "swe-agent": (SWE, "a.traj"),
    "openhands": (OPENHANDS, "a.jsonl"),
    "gemini": (GEMINI, "a.json"),
    "inspect": (INSPECT, "a.json"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_each_format_becomes_a_whole_recording(tmp_path: Path, name: str) -> None:
    records, file = WHOLE[name]
    path = written(tmp_path, records, file)
    with transcript(path) as found:
        assert name == found.format.name
        (one,) = conversations(found.items)
    asked, called, resulted, last = one.messages
    assert "go" == asked.content[0].text  # type: ignore[union-attr]
    (use_block,) = [block for block in called.content if isinstance(block, ToolUse)]
    (result,) = [block for block in resulted.content if isinstance(block, ToolResult)]
    assert use_block.id == result.use_id
    assert Text("done") == last.content[-1]
    done, _ = imported(one)
    assert "" == done.why
    assert done.events


def test_a_list_of_the_messages_api(tmp_path: Path) -> None:
    for value, name in ((API, "a.json"), (API, "a.jsonl"), ({"model": "m", "messages": API}, "b.json")):
        path = written(tmp_path, value, name)
        (one,) = conversations(items(path))
        assert "" == imported(one)[0].why


def test_no_format_is_recognised_by_two(tmp_path: Path) -> None:
    for name, (records, file) in WHOLE.items():
        first = records[0] if file.endswith("jsonl") else records
        known = [each.name for each in FORMATS if each.recognises(first, file.endswith("jsonl"))]
        assert name == known[0]


# --------------------------------------------------------------------------- ends

SDK = [
    "completed",
    "blocking_limit",
    "prompt_too_long",
    "image_error",
    "model_error",
    "stop_hook_prevented",
    "hook_stopped",
    "max_turns",
    "aborted_streaming",
    "aborted_tools",
    "rapid_refill_breaker",
    "api_error",
    "malformed_tool_use_exhausted",
    "budget_exhausted",
    "structured_output_retry_exhausted",
    "tool_deferred",
    "tool_deferred_unavailable",
    "background_requested",
    "turn_setup_failed",
]


def test_the_table_of_ends_is_total() -> None:
    assert 19 == len(SDK)
    assert set(SDK) == set(endings.AGENT_SDK)
    assert {*Terminal} <= set(endings.AGENT_SDK.values())
    for format, words in endings.WORDS.items():
        assert format in {"stepfold", *(each.name for each in FORMATS)}
        assert all(endings.known(format, word) for word in words)
    assert None is endings.terminal_of("codex", "quite new")
    assert not endings.known("codex", "quite new")
    assert None is endings.terminal_of("no format", "completed")


# ------------------------------------------------------------- what cannot be read


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"", "a.jsonl", "it is empty"),
        (b"\n\n", "a.jsonl", "it is empty"),
        (b"\x00\x01\x02", "a.jsonl", "line 1: it is binary"),
        (b"hello", "a.json", "line 1: it is no JSON: "),
        (b"hello\nworld\n", "a.jsonl", "line 1: it is no JSON: "),
        (b"[" * 100_000, "a.json", "it is no JSON: "),
        (b'{"a":1}', "a.json", "it is of no format that is known (its first record is an object with a)"),
        (b"7", "a.json", "it is of no format that is known (its first record is no object"),
        (b'{"type":"user","sessionId":', "a.json", "it is no JSON: "),
        (b"PK\x03\x04junk", "a.eval", "it is a damaged zip file"),
        (gzip.compress(b'{"role":"user"}\n' * 50)[:40], "a.jsonl.gz", "it cannot be read"),
    ],
)
def test_what_is_no_transcript(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, name: str, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert 2 == main(["import", str(path), "--out", str(tmp_path / "out")])
    err = capsys.readouterr().err
    assert words in err
    assert 1 == err.count("\n")
    assert not list((tmp_path / "out").rglob("*"))


def test_broken_lines_are_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, SESSION)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        b"".join([*lines[:2], b"{broken\n", b"[" * 5_000 + b"\n", b"7\n", *lines[2:], lines[0][:30]])
    )
    assert 0 == main(["import", str(path), "--out", str(tmp_path / "out")])
    out = capsys.readouterr().out
    assert "line 3 is left out: " in out
    assert "line 4 is left out: " in out
    assert "1 x no object (int)" in out
    assert 9 == len(read_recording(tmp_path / "out" / "a.recording.jsonl").events)


def test_a_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MOST_LINE_BYTES", 2_000)
    path = written(tmp_path, [SESSION[0], claude("user", "x" * 5_000), *SESSION[1:]])
    with transcript(path) as found:
        (one,) = conversations(found.items)
    assert [(2, "it has more than 2,000 bytes")] == found.counts.broken
    assert 4 == len(one.messages)


def test_lone_halves_of_characters(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"role":"user","content":"a\\ud800b"},{"role":"assistant","content":"ok"}]')
    with pytest.raises(TranscriptError, match="no JSON"):
        items(path)
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"role":"user","content":"go"}\n{"role":"user","content":"a\\ud800b"}\n')
    with transcript(lines) as found:
        list(found.items)
    assert 1 == found.counts.broken_lines


def test_a_format_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, SESSION)
    assert 2 == main(["import", str(path), "--format", "word", "--out", str(tmp_path / "out")])
    assert (
        "--format word: there is no such format; allowed are stream-json, claude-code, "
        in capsys.readouterr().err
    )


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, SESSION)
    out = ["--out", str(tmp_path / "out")]
    assert (0, 2) == (main(["import", str(path), *out]), main(["import", str(path), *out]))
    assert "exists already" in capsys.readouterr().err


def test_json_tells_what_the_page_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    written(tmp_path / "in", SESSION)
    (tmp_path / "in" / "b.json").write_text("7")
    assert 2 == main(["import", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--json"])
    one, bad = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    fields = set(documented("An object of `import --json`"))
    assert {"transcript", "error"} == set(bad)
    assert fields == {*one, "error"}


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Ten times as many records take hardly more memory, ids apart."""

    def peak(times: int) -> int:
        path = tmp_path / f"{times}.jsonl"
        with path.open("w") as file:
            for number in range(times):
                for record in SESSION:
                    file.write(json.dumps({**record, "uuid": "", "pad": "x" * 2_000, "n": number}) + "\n")
        tracemalloc.start()
        with transcript(path) as found:
            for _ in found.items:
                pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(2_000) - peak(200) < 250_000  # of 25 MB more


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        ("2026-01-02T03:04:05.678Z", 1767323045678),
        (1767323045, 1767323045000),
        (1767323045678, 1767323045678),
        ("soon", None),
        (None, None),
        (True, None),
        (-1, None),
        (1e300, None),
    ],
)
def test_times(value: object, ms: int | None) -> None:
    assert ms == time_ms(value)
