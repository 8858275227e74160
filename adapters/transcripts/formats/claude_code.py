"""Claude Code: the JSON lines of its sessions, and of ``--output-format stream-json``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from stepfold.adapters.transcripts.content import answered, asked, blocks_of, sound, usage_of
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
from stepfold.engine.messages import Text

INTERRUPTED: Final = "[Request interrupted by user"
BESIDE: Final = frozenset(
    {
        "file-history-snapshot",
        "progress",
        "summary",
        "queue-operation",
        "last-prompt",
        "permission-mode",
        "stream_event",
        "attachment",
        "custom-title",
        "agent-name",
        "tag",
        "rate_limit_event",
        "tool_progress",
        "auth_status",
    }
)
"""Types of records that tell nothing of the conversation."""
ASIDE: Final = frozenset({"stop_hook_summary", "turn_duration", "informational", "local_command", "status"})
"""Subtypes of system records that tell nothing of the conversation."""


def recognises(first: Any, lines: bool) -> bool:
    """Whether it is a session's file."""
    return lines and ("sessionId" in first or text(first, "type") in BESIDE) and "role" not in first


def recognises_stream(first: Any, lines: bool) -> bool:
    """Whether it is the output of a run."""
    if not lines:
        first = first[0] if isinstance(first, list) and first else None
    kind = text(first, "type")
    beginning = kind == "system" and text(first, "subtype") == "init"
    return beginning or (kind in ("user", "assistant", "result") and "parent_tool_use_id" in first)


def read(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
    """Yield what the records mean."""
    session = ""
    seen: set[str] = set()  # a session that was gone on with repeats its records
    for line, record in records:
        if isinstance(record, list):  # a whole file that is one list
            yield from read(((at, each) for at, each in enumerate(record, 1)), counts)
            continue
        if not isinstance(record, dict):
            counts.skip(f"no object ({type(record).__name__})")
            continue
        kind = text(record, "type")
        if (name := text(record, "uuid")) in seen:
            counts.skip(f"{kind}, repeated")
            continue
        if name:
            seen.add(name)
        where = place_of(record, line, session)
        begun, session = session, where.session
        if kind in ("user", "assistant") and session != begun:
            yield Began(where, text(nested(record, "message"), "model"), (), text(record, "version"))
        match kind:
            case "user":
                yield from _user(record, where)
            case "assistant":
                yield from _assistant(record, where)
            case "system":
                yield from _system(record, where, counts)
            case "result":
                yield _result(record, where)
            case kind if kind in BESIDE:
                pass
            case _:
                counts.skip(kind)


def place_of(record: dict[str, Any], line: int, session: str) -> Place:
    """Return where a record stands; one that names no session belongs to the one before."""
    chain = text(record, "parent_tool_use_id")
    if record.get("isSidechain") is True:
        chain = text(record, "agentId") or "sidechain"
    session = text(record, "sessionId") or text(record, "session_id") or session
    return Place(line, sound(session), sound(chain), time_ms(record.get("timestamp")))


def _user(record: dict[str, Any], where: Place) -> Iterator[Item]:
    blocks = blocks_of(nested(record, "message").get("content"))
    if record.get("isCompactSummary") is True:
        yield Said(where, asked(blocks), meta=True)
        return
    words = next((block.text for block in blocks if isinstance(block, Text)), "")
    if words.startswith(INTERRUPTED):
        yield Interrupted(where, "tool use" in words)
    yield Said(where, asked(blocks), meta=record.get("isMeta") is True)


def _assistant(record: dict[str, Any], where: Place) -> Iterator[Item]:
    message = nested(record, "message")
    blocks = blocks_of(message.get("content"))
    if record.get("isApiErrorMessage") is True:
        words = next((block.text for block in blocks if isinstance(block, Text)), "")
        yield RequestFailed(where, words, kind=text(record, "error"), shown=True)
        return
    model = text(message, "model")
    yield Said(
        where,
        answered(blocks, model),
        sound(text(message, "id")),
        sound(model),
        sound(text(message, "stop_reason")),
        usage_of(message.get("usage")),
    )


def _system(record: dict[str, Any], where: Place, counts: Counts) -> Iterator[Item]:
    match text(record, "subtype"):
        case "init":
            tools = tuple(name for name in rows(record, "tools") if isinstance(name, str))
            version = text(record, "claude_code_version")
            yield Began(where, text(record, "model"), tools, version)
        case "compact_boundary":
            told = nested(record, "compactMetadata") or nested(record, "compact_metadata")
            before = whole(told, "preTokens") or whole(told, "pre_tokens")
            after = whole(told, "postTokens") or whole(told, "post_tokens")
            yield Compacted(where, text(told, "trigger"), before, after)
        case "microcompact_boundary":
            told = nested(record, "microcompactMetadata") or nested(record, "microcompact_metadata")
            before, saved = whole(told, "preTokens"), whole(told, "tokensSaved")
            after = None if before is None or saved is None else before - saved
            yield Compacted(where, text(told, "trigger"), before, after, micro=True)
        case "api_error" | "api_retry":
            yield _failed(record, where)
        case subtype if subtype in ASIDE:
            pass
        case subtype:
            counts.skip(f"system {subtype}")


def _failed(record: dict[str, Any], where: Place) -> RequestFailed:
    error = nested(record, "error")
    inner = nested(error, "error", "error") or nested(error, "error") or error
    words = text(inner, "message") or text(error, "message") or text(record, "error")
    wait = record.get("retryInMs", record.get("retry_delay_ms"))
    return RequestFailed(
        where,
        words,
        whole(error, "status") or whole(record, "error_status"),
        text(inner, "type") or text(record, "error"),
        whole(record, "retryAttempt") or whole(record, "attempt") or 0,
        whole(record, "maxRetries") or whole(record, "max_retries") or 0,
        round(wait) if isinstance(wait, int | float) and not isinstance(wait, bool) else None,
    )


def _result(record: dict[str, Any], where: Place) -> Ended:
    reason = text(record, "terminal_reason") or text(record, "subtype")
    error = record.get("is_error")
    ok = None if not isinstance(error, bool) else not error and reason in ("success", "completed")
    return Ended(where, sound(reason), ok, whole(record, "num_turns"))
