"""Gemini CLI and inspect_ai: their sessions and logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stepfold.adapters.transcripts.content import answered, asked, blocks_of, call, result, sound, usage_of
from stepfold.adapters.transcripts.fields import nested, rows, text, time_ms
from stepfold.adapters.transcripts.formats.messages import said
from stepfold.adapters.transcripts.items import Began, Ended, Item, Place, RequestFailed, Said
from stepfold.adapters.transcripts.source import Counts
from stepfold.engine.messages import Block, Text, Thinking

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
