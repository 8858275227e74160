"""Codex: its rollouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from stepfold.adapters.transcripts.content import answered, asked, blocks_of, call, result
from stepfold.adapters.transcripts.fields import nested, rows, text, time_ms, whole
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
from stepfold.engine.events import Usage
from stepfold.engine.messages import Block, Message, Thinking

BESIDE: Final = frozenset(
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
    """
    Yield its response items; events only where they tell an end, an error, an interrupt or usage.

    What comes between two words of the user, or results, is one answer, with an
    id made up from its number; usage is told behind what it was spent on.
    """
    rollout = _Rollout(counts)
    for line, record in records:
        at_ms = time_ms(record.get("timestamp")) if isinstance(record, dict) else None
        yield from rollout.take(text(record, "type"), nested(record, "payload"), Place(line, at_ms=at_ms))


class _Rollout:
    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._session = ""
        self._model = ""
        self._number = 0  # of the last answer
        self._open = False  # it may go on
        self._spent: dict[str, Any] = {}  # what was told last of usage

    def take(self, kind: str, inner: dict[str, Any], where: Place) -> Iterator[Item]:
        where = attrs.evolve(where, session=self._session)
        match kind:
            case "session_meta":
                self._session = text(inner, "id")
                self._model = text(inner, "model") or self._model
                yield Began(
                    attrs.evolve(where, session=self._session), self._model, (), text(inner, "cli_version")
                )
            case "response_item":
                yield from self._item(inner, where)
            case "compacted":
                yield Compacted(where, "compacted")
            case "event_msg" if text(inner, "type") == "token_count":
                yield from self._usage(nested(inner, "info"), where)
            case "event_msg":
                yield from _event(inner, where, self._counts)
            case "turn_context":
                self._model = text(inner, "model") or self._model
            case "world_state":
                pass
            case _:
                self._counts.skip(kind)

    def _item(self, item: dict[str, Any], where: Place) -> Iterator[Said]:
        id = text(item, "call_id") or text(item, "id")
        match text(item, "type"):
            case "message":
                blocks = blocks_of(item.get("content"))
                if text(item, "role") == "assistant":
                    yield self._answer(where, blocks)
                elif text(item, "role") == "user":
                    yield self._asked(where, asked(blocks))
            case "function_call" | "custom_tool_call":
                arguments = item.get("arguments", item.get("input"))
                if text(item, "type") == "custom_tool_call":
                    arguments = {"input": arguments}
                yield self._answer(where, (call(id, text(item, "name"), arguments),))
            case "local_shell_call":
                yield self._answer(where, (call(id, "local_shell", nested(item, "action")),))
            case "function_call_output" | "custom_tool_call_output":
                output = item.get("output")
                wrong = isinstance(output, dict) and output.get("success") is False
                if isinstance(output, dict):
                    output = output.get("content", output.get("output", output))
                yield self._asked(where, result(id, output, is_error=wrong))
            case "reasoning":
                words = "\n".join(text(part, "text") for part in rows(item, "summary"))
                yield self._answer(where, (Thinking(words, text(item, "encrypted_content")),))
            case "ghost_snapshot" | "web_search_call":
                pass
            case kind:
                self._counts.skip(f"response_item {kind}")

    def _answer(self, where: Place, blocks: tuple[Block, ...], usage: Usage | None = None) -> Said:
        if not self._open and usage is None:
            self._number += 1
            self._open = True
        message = answered(blocks, self._model)
        return Said(where, message, f"response-{self._number}", self._model, "", usage)

    def _asked(self, where: Place, message: Message) -> Said:
        self._open = False
        return Said(where, message)

    def _usage(self, info: dict[str, Any], where: Place) -> Iterator[Said]:
        """Yield what the last answer has used; what was told before is told again with every rate limit."""
        if not info or info == self._spent:
            return
        before, self._spent = nested(self._spent, "total_token_usage"), info
        last, total = nested(info, "last_token_usage"), nested(info, "total_token_usage")
        usage = _spent(last) if last else _spent({name: _more(total, before, name) for name in total})
        if usage is not None and self._number:
            yield self._answer(where, (), usage)


def _more(total: dict[str, Any], before: dict[str, Any], name: str) -> int:
    return (whole(total, name) or 0) - (whole(before, name) or 0)


def _spent(told: dict[str, Any]) -> Usage | None:
    """Return usage as Codex tells it: what was read from the cache is part of the input."""
    cached, written = whole(told, "cached_input_tokens") or 0, whole(told, "cache_write_input_tokens") or 0
    fresh = (whole(told, "input_tokens") or 0) - cached - written
    output = whole(told, "output_tokens") or 0
    found = Usage(*(max(0, number) for number in (fresh, output, cached, written)))
    return found if found != Usage() else None


def _event(event: dict[str, Any], where: Place, counts: Counts) -> Iterator[Item]:
    match kind := text(event, "type"):
        case "error" | "stream_error":
            yield RequestFailed(where, text(event, "message"), shown=kind == "error")
        case "turn_aborted":
            yield Interrupted(where)
            yield Ended(where, text(event, "reason") or "turn_aborted", False)
        case "task_complete" | "turn_complete":
            yield Ended(where, kind, True)
        case _ if kind not in BESIDE:
            counts.skip(f"event_msg {kind}")
