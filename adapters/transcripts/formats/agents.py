"""Trajectories of agents: SWE-agent, OpenHands, Codex, Gemini CLI, inspect_ai."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from stepfold.adapters.transcripts import endings
from stepfold.adapters.transcripts.content import (
    answered,
    asked,
    blocks_of,
    call,
    result,
    sound,
    usage_of,
)
from stepfold.adapters.transcripts.fields import nested, rows, text, time_ms
from stepfold.adapters.transcripts.formats.messages import said
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
from stepfold.engine.messages import Block, Text, Thinking

# --------------------------------------------------------------------- SWE-agent


def recognises_swe(first: Any, lines: bool) -> bool:
    """Whether it is a trajectory of SWE-agent, or of mini-SWE-agent with its information."""
    return (
        not lines
        and isinstance(first, dict)
        and "info" in first
        and bool({"trajectory", "messages"} & {*first})
    )


def read_swe(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
    """
    Yield thoughts with their actions as answers with a call, observations as results.

    A command that stands in the text becomes a call of the tool ``command``
    with an id made up from its number.
    """
    for _, whole in records:
        listed = rows(whole, "history") or rows(whole, "messages")
        if not listed:
            listed = [part for each in rows(whole, "trajectory") for part in _swe_step(each)]
        yield Began(Place(1), text(nested(whole, "info"), "model"))
        if any(rows(message, "tool_calls") for message in listed if isinstance(message, dict)):
            yield from said(listed, counts)
        else:
            yield from _texts(listed, counts)
        if status := text(nested(whole, "info"), "exit_status"):
            yield Ended(Place(max(1, len(listed))), status)


def _swe_step(each: Any) -> tuple[dict[str, str], ...]:
    """Return one step of a trajectory that keeps no history, as messages."""
    words = text(each, "thought") or text(each, "response")
    action = {"role": "assistant", "content": words, "action": text(each, "action")}
    return action, {"role": "user", "content": text(each, "observation")}


def _texts(messages: list[Any], counts: Counts) -> Iterator[Said]:
    open_call = ""
    for number, message in enumerate(messages, 1):
        role, words = text(message, "role"), message.get("content") if isinstance(message, dict) else None
        match role:
            case "assistant":
                blocks: tuple[Block, ...] = blocks_of(words)
                if action := text(message, "action"):
                    open_call = f"action-{number}"
                    blocks = (*blocks, call(open_call, "command", {"command": action}))
                yield Said(Place(number), answered(blocks))
            case "user" if open_call:
                yield Said(Place(number), result(open_call, words))
                open_call = ""
            case "user":
                yield Said(Place(number), asked(blocks_of(words)))
            case "system":
                pass
            case _:
                counts.skip(f"role {role}")


# --------------------------------------------------------------------- OpenHands


def recognises_openhands(first: Any, lines: bool) -> bool:
    """Whether it is a list of OpenHands' events."""
    return lines and text(first, "kind").endswith("Event")


def read_openhands(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
    """Yield its actions as answers with a call, its observations as results."""
    for line, record in records:
        where = Place(line, at_ms=time_ms(record.get("timestamp")) if isinstance(record, dict) else None)
        match kind := text(record, "kind"):
            case "ActionEvent":
                yield Said(where, answered(_action(record)), text(record, "llm_response_id"))
            case "ObservationEvent":
                observed = nested(record, "observation")
                content = observed.get("content", text(observed, "output"))
                wrong = observed.get("is_error") is True
                yield Said(where, result(text(record, "tool_call_id"), content, is_error=wrong))
            case "UserRejectObservation" | "AgentErrorEvent":
                words = text(record, "rejection_reason") or text(record, "error")
                yield Said(where, result(text(record, "tool_call_id"), words, is_error=True))
            case "MessageEvent":
                message = nested(record, "llm_message")
                blocks = blocks_of(message.get("content"))
                agent = text(message, "role") == "assistant"
                yield Said(where, answered(blocks) if agent else asked(blocks))
            case "Condensation" | "CondensationEvent":
                yield Compacted(where, kind)
            case "PauseEvent" | "InterruptEvent":
                yield Interrupted(where)
            case "ConversationErrorEvent":
                yield RequestFailed(where, text(record, "detail"), kind=text(record, "code"), shown=True)
            case "ConversationStateUpdateEvent":
                status = text(nested(record, "value"), "execution_status")
                if text(record, "key") == "execution_status":
                    status = text(record, "value")
                if status in ("finished", "error", "stuck", "paused"):
                    yield Ended(where, status, status == "finished")
                elif status and not endings.known("openhands", status):
                    counts.skip(f"execution_status {status}")
            case "SystemPromptEvent":
                names = (text(tool, "name") or text(tool, "title") for tool in rows(record, "tools"))
                yield Began(where, "", tuple(filter(None, names)))
            case _:
                counts.skip(kind)


def _action(record: dict[str, Any]) -> tuple[Block, ...]:
    given = nested(record, "tool_call")
    function = nested(given, "function") or given
    thought = blocks_of(record.get("thought"))
    thinking: tuple[Block, ...] = ()
    if reasoning := text(record, "reasoning_content"):
        thinking = (Thinking(reasoning),)
    arguments = function.get("arguments", record.get("action") or {})
    name = text(function, "name") or text(record, "tool_name")
    id = text(record, "tool_call_id") or text(given, "id")
    return (*thinking, *thought, call(id, name, arguments))


# ------------------------------------------------------------------------- Codex

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


def recognises_codex(first: Any, lines: bool) -> bool:
    """Whether it is a rollout of Codex."""
    return lines and text(first, "type") in ("session_meta", "response_item", "event_msg", "turn_context")


def read_codex(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
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


# -------------------------------------------------------------------- Gemini CLI


def recognises_gemini(first: Any, lines: bool) -> bool:
    """Whether it is a session of Gemini CLI, whole or in lines."""
    if lines:
        return text(first, "type") in ("user", "gemini") and "content" in first and "message" not in first
    listed = rows(first, "messages")
    return bool(listed) and "projectHash" in first


def read_gemini(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
    """Yield its messages; results stand in its calls."""
    for line, record in records:
        if isinstance(record, dict) and "messages" in record:
            yield Began(Place(1, text(record, "sessionId")))
            for number, message in enumerate(rows(record, "messages"), 1):
                yield from _gemini(message, number, counts)
        elif isinstance(record, dict) and "$set" in record:
            continue
        else:
            yield from _gemini(record, line, counts)


def _gemini(message: Any, number: int, counts: Counts) -> Iterator[Item]:
    where = Place(number, at_ms=time_ms(message.get("timestamp")) if isinstance(message, dict) else None)
    match text(message, "type"):
        case "user":
            yield Said(where, asked(blocks_of(message.get("content"))))
        case "gemini":
            thoughts = [text(each, "description") for each in rows(message, "thoughts")]
            blocks: list[Block] = [Thinking(words) for words in thoughts if words]
            if words := text(message, "content"):
                blocks.append(Text(words))
            calls = [each for each in rows(message, "toolCalls") if isinstance(each, dict)]
            blocks += [
                call(text(each, "id") or f"call-{number}-{at}", text(each, "name"), each.get("args") or {})
                for at, each in enumerate(calls)
            ]
            model, usage = text(message, "model"), usage_of(message.get("tokens"))
            yield Said(where, answered(tuple(blocks), model), text(message, "id"), model, "", usage)
            for at, each in enumerate(calls):
                if "result" not in each:
                    continue
                wrong = text(each, "status") in ("error", "cancelled")
                id = text(each, "id") or f"call-{number}-{at}"
                yield Said(where, result(id, _gemini_result(each["result"]), is_error=wrong))
        case "error":
            yield RequestFailed(where, text(message, "content"), shown=True)
        case "info" | "warning":
            pass
        case kind:
            counts.skip(kind)


def _gemini_result(given: Any) -> Any:
    answers = (
        [nested(each, "functionResponse", "response") for each in given] if isinstance(given, list) else []
    )
    words = [text(each, "output") or text(each, "error") for each in answers]
    return "\n".join(words) if any(words) else given


# -------------------------------------------------------------------- inspect_ai


def recognises_inspect(first: Any, lines: bool) -> bool:
    """Whether it is an evaluation log of inspect_ai."""
    return not lines and isinstance(first, dict) and "eval" in first and "status" in first


def read_inspect(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
    """Yield each sample as a session."""
    for _, log in records:
        for number, sample in enumerate(rows(log, "samples"), 1):
            names = (sample.get("id"), sample.get("epoch", 1)) if isinstance(sample, dict) else ("", 1)
            where = Place(number, sound("sample {}, epoch {}".format(*names)))
            yield Began(where, text(nested(log, "eval"), "model"))
            yield from said(rows(sample, "messages"), counts, 1, where)
            choices = rows(nested(sample, "output"), "choices")
            limit = text(nested(sample, "limit"), "type")
            error = text(nested(sample, "error"), "message")
            status = text(log, "status")
            stopped = "error" if error else status if status in ("error", "cancelled") else ""
            reason = limit or stopped or text(next(iter(choices), {}), "stop_reason")
            if error:
                yield RequestFailed(where, error, shown=True)
            if reason:
                yield Ended(where, reason, reason == "stop")
