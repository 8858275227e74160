"""Codex: its rollouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from stepfold.adapters.transcripts.content import answered, asked, blocks_of, call, result
from stepfold.adapters.transcripts.fields import nested, rows, text, time_ms
from stepfold.adapters.transcripts.items import (
    Began,
    Compacted,
    Ended,
    Interrupted,
    Item,
    Place,
    RequestFailed,
    Said,
)
from stepfold.adapters.transcripts.source import Counts
from stepfold.engine.messages import Thinking

CODEX_BESIDE: Final = frozenset(
    {
        "agent_message",
        "agent_reasoning",
        "agent_reasoning_raw_content",
        "context_compacted",  # its own record tells it
        "exec_command_begin",
        "exec_command_end",
        "mcp_tool_call_begin",
        "mcp_tool_call_end",
        "patch_apply_begin",
        "patch_apply_end",
        "plan_update",
        "task_started",
        "thread_name_updated",
        "token_count",
        "turn_diff",
        "turn_started",
        "user_message",
        "web_search_begin",
        "web_search_end",
    }
)
"""Events of Codex that tell nothing that no response item tells."""


def recognises(first: Any, lines: bool) -> bool:
    """Whether it is a rollout of Codex."""
    return lines and text(first, "type") in ("session_meta", "response_item", "event_msg", "turn_context")


def read(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
    """Yield its response items; events only where they tell an end, an error or an interrupt."""
    session = ""
    for line, record in records:
        inner = nested(record, "payload")
        at_ms = time_ms(record.get("timestamp")) if isinstance(record, dict) else None
        where = Place(line, session, at_ms=at_ms)
        match text(record, "type"):
            case "session_meta":
                session = text(inner, "id")
                yield Began(attrs.evolve(where, session=session), "", (), text(inner, "cli_version"))
            case "response_item":
                yield from _codex_item(inner, where, counts)
            case "compacted":
                yield Compacted(where, "compacted")
            case "event_msg":
                yield from _codex_event(inner, where, counts)
            case "turn_context" | "world_state":
                pass
            case kind:
                counts.skip(kind)


def _codex_item(item: dict[str, Any], where: Place, counts: Counts) -> Iterator[Item]:
    id = text(item, "call_id") or text(item, "id")
    match text(item, "type"):
        case "message":
            blocks = blocks_of(item.get("content"))
            if text(item, "role") == "assistant":
                yield Said(where, answered(blocks), text(item, "id"))
            elif text(item, "role") == "user":
                yield Said(where, asked(blocks))
        case "function_call" | "custom_tool_call":
            arguments = item.get("arguments", item.get("input"))
            if text(item, "type") == "custom_tool_call":
                arguments = {"input": arguments}
            yield Said(where, answered((call(id, text(item, "name"), arguments),)))
        case "local_shell_call":
            yield Said(where, answered((call(id, "local_shell", nested(item, "action")),)))
        case "function_call_output" | "custom_tool_call_output":
            output = item.get("output")
            wrong = isinstance(output, dict) and output.get("success") is False
            if isinstance(output, dict):
                output = output.get("content", output.get("output", output))
            yield Said(where, result(id, output, is_error=wrong))
        case "reasoning":
            words = "\n".join(text(part, "text") for part in rows(item, "summary"))
            yield Said(where, answered((Thinking(words, text(item, "encrypted_content")),)))
        case "ghost_snapshot" | "web_search_call":
            pass
        case kind:
            counts.skip(f"response_item {kind}")


def _codex_event(event: dict[str, Any], where: Place, counts: Counts) -> Iterator[Item]:
    match kind := text(event, "type"):
        case "error" | "stream_error":
            yield RequestFailed(where, text(event, "message"), shown=kind == "error")
        case "turn_aborted":
            yield Interrupted(where)
            yield Ended(where, text(event, "reason") or "turn_aborted", False)
        case "task_complete" | "turn_complete":
            yield Ended(where, kind, True)
        case _ if kind not in CODEX_BESIDE:
            counts.skip(f"event_msg {kind}")
