"""
Raw events of one stream to parts of an answer: deltas, usage, whole blocks, and one end.

The SDK's own accumulator parses a tool's input anew on every delta; this one
keeps the pieces and parses once, so a delta costs the same however long the
input is.  What it makes of a stream is what the SDK makes of it, and where the
SDK says nothing (a second ``message_start``, no end) it says that the stream
was cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs

from stepfold.adapters.anthropic_api.containers import Container, container_of
from stepfold.adapters.anthropic_api.failures import cut
from stepfold.adapters.anthropic_api.wire import JSON, block_of, clean, dumps, loads, object_text
from stepfold.effects.ports import Delta, InputDelta, ModelPart, TextDelta, ThinkingDelta
from stepfold.engine.events import Stop, StreamClosed, StreamFailed, Usage
from stepfold.engine.failures import Failure
from stepfold.engine.messages import Block, Opaque, Text, ToolUse

# Of these a delta of an unknown type changes nothing: a field that the API does not know in a block
# that it knows would be refused when the block goes back.
KNOWN_BLOCKS: Final = frozenset(
    {
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "mcp_tool_use",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "advisor_tool_result",
        "mcp_tool_result",
        "mcp_tool_listing",
        "container_upload",
        "compaction",
        "fallback",
    }
)
# An answer that ended like this may leave a block open; any other that does is not whole.
CUT_STOPS: Final = frozenset({Stop.MAX_TOKENS, Stop.WINDOW_EXCEEDED, Stop.REFUSAL, Stop.OTHER})

_NEEDED: Final = frozenset({"message_start", "message_delta", "content_block_start", "content_block_stop"})
# For each kind of delta that carries text: its field, the one kind of block that it belongs to
# ("" where any may have an input) and the part it makes.
_GROWS: Final[Mapping[str, tuple[str, str, Callable[[str], Delta]]]] = {
    "text_delta": ("text", "text", TextDelta),
    "input_json_delta": ("partial_json", "", InputDelta),
    "thinking_delta": ("thinking", "thinking", ThinkingDelta),
}
_USAGE: Final = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_creation_tokens",
}


@attrs.define
class _Open:
    """A block that grows: how it began, its pieces of text and its lists, by field."""

    wire: dict[str, JSON]
    pieces: dict[str, list[str]] = attrs.field(factory=dict)
    lists: dict[str, list[JSON]] = attrs.field(factory=dict)

    @property
    def kind(self) -> str:
        return str(self.wire["type"])

    @property
    def unknown(self) -> bool:
        return self.wire["type"] not in KNOWN_BLOCKS

    def grow(self, field: str, piece: str) -> None:
        held = self.pieces.get(field)
        if held is None:
            self.pieces[field] = [piece]
        else:
            held.append(piece)

    def extend(self, field: str, items: Iterable[JSON]) -> None:
        if field not in self.lists:
            self.lists[field] = list(self.wire.get(field) or ())
        self.lists[field].extend(items)

    def merge(self, delta: Mapping[str, JSON]) -> None:
        """Keep all of an unknown delta of an unknown block: text and lists grow, the rest is set."""
        for field, value in delta.items():
            if field == "type":
                continue
            before = self.wire.get(field)
            if isinstance(value, str) and isinstance(before, str):
                self.grow(field, value)
            elif isinstance(value, list) and isinstance(before, list):
                self.extend(field, value)
            else:
                self.wire[field] = value

    def done(self) -> Block:
        """Return the whole block."""
        wire = {**self.wire, **self.lists}
        for field, pieces in self.pieces.items():
            if field != "input":
                wire[field] = str(wire.get(field) or "") + "".join(pieces)
        written = "".join(self.pieces.get("input", ()))
        if not written:
            return block_of(wire)
        input, bad = object_text(written)
        if self.kind != "tool_use":  # the server's own call: nobody here can run it, so only its form matters
            return block_of({**wire, "input": loads(input)})
        block = block_of({**wire, "input": {}})
        return attrs.evolve(block, input=input, raw_input=bad) if isinstance(block, ToolUse) else block


class Fold:
    """
    One answer as it comes in.  ``effect_id`` is the id of the order.

    ``container`` is where its code ran, if it was told; ``calls`` the ids of its calls.
    """

    def __init__(self, effect_id: int) -> None:
        self._effect_id = effect_id
        self._open: dict[int, _Open] = {}
        self._usage: Usage | None = None
        self._reason: str | None = None
        self._details = ""
        self._cleared = 0
        self._started = False
        self.container: Container | None = None
        self.calls: list[str] = []
        self.stopped = False  # message_stop has come
        self.broken = ""  # why the stream can be no answer; nothing more is to be read

    # ------------------------------------------------------------ events

    def take(self, event: JSON) -> tuple[ModelPart, ...]:
        """Return the parts that *event* brings: none, mostly one.  An unknown event brings nothing."""
        if not isinstance(event, dict):
            return self._break("an event that is no object")
        kind = event.get("type")
        if not isinstance(kind, str):
            return self._break("an event without a type")
        if kind == "content_block_delta":  # by far the most frequent
            return self._delta(event)
        match event:
            case {"type": "content_block_start", "index": int(index), "content_block": wire}:
                return self._begin(index, wire)
            case {"type": "content_block_stop", "index": int(index)}:
                return self._end_block(index)
            case {"type": "message_start", "message": dict() as message}:
                return self._start(message)
            case {"type": "message_delta", "delta": dict() as delta}:
                return self._finish(delta, event)
            case {"type": "message_stop"}:
                self.stopped = True
                return ()
        if kind in _NEEDED:
            return self._break(f"an event without its parts: {dumps(event)[:200]}")
        return ()

    def whole(self, message: JSON) -> tuple[ModelPart, ...]:
        """Return the parts of an answer that came in one piece instead of a stream."""
        if not isinstance(message, Mapping) or message.get("type") != "message":
            return self._break("the answer is no message of the API")
        self.stopped = True
        return self._start(message)

    def _start(self, message: Mapping[str, JSON]) -> tuple[ModelPart, ...]:
        if self._started:
            return self._break("a second answer began in the stream")
        self._started = True
        parts = self._count(message.get("usage"))
        self._take_reason(message)
        self._take_edits(message.get("context_management"))
        content = message.get("content")
        for index, wire in enumerate(content if isinstance(content, list) else ()):
            self._begin(index, wire)
            done = () if self.broken else self._end_block(index)
            shown = tuple(TextDelta(part.text) for part in done if isinstance(part, Text) and part.text)
            parts = (*parts, *shown, *done)
        return parts

    def _begin(self, index: int, wire: JSON) -> tuple[ModelPart, ...]:
        if not self._started or index in self._open:
            return self._break("a block began where none can begin")
        if not isinstance(wire, Mapping) or not isinstance(wire.get("type"), str):
            return self._break(f"a content block without a type: {dumps(wire)[:200]}")
        self._open[index] = _Open(dict(wire))
        return ()

    def _delta(self, event: Mapping[str, JSON]) -> tuple[ModelPart, ...]:
        index = event.get("index")
        block = self._open.get(index) if isinstance(index, int) else None
        if block is None:
            return self._break("a piece came for a block that is not open")
        delta = event.get("delta")
        kind = delta.get("type") if isinstance(delta, dict) else None
        if not isinstance(delta, dict) or not isinstance(kind, str):
            return self._break("a piece of a block is missing, or has no type")
        field = _GROWS.get(kind)
        if field is None:
            self._change(block, kind, delta)
            return ()
        written, of, make = field
        text = delta.get(written)
        if not isinstance(text, str) or not (of in ("", block.kind) or block.unknown):
            return ()
        block.grow(of or "input", text)
        return (make(clean(text)),) if text else ()

    def _change(self, block: _Open, kind: str, delta: dict[str, JSON]) -> None:
        match kind, block.kind:
            case "signature_delta", "thinking":
                block.wire["signature"] = delta.get("signature")
            case "citations_delta", "text":
                block.extend("citations", (delta.get("citation"),))
            case "compaction_delta", "compaction":
                block.wire.update({field: value for field, value in delta.items() if field != "type"})
            case "citations_delta", _ if block.unknown:
                block.extend("citations", (delta.get("citation"),))
            case _ if block.unknown:
                block.merge(delta)

    def _end_block(self, index: int) -> tuple[ModelPart, ...]:
        block = self._open.pop(index, None)
        if block is None:
            return self._break("a block ended that is not open")
        done = block.done()
        if isinstance(done, ToolUse):
            self.calls.append(done.id)
        elif isinstance(done, Opaque) and done.call_id:
            self.calls.append(done.call_id)
        return (done,)

    def _finish(self, delta: Mapping[str, JSON], event: Mapping[str, JSON]) -> tuple[ModelPart, ...]:
        if not self._started:
            return self._break("an answer ended that had not begun")
        self._take_reason(delta)
        self._take_edits(event.get("context_management"))
        return self._count(event.get("usage"))

    # ------------------------------------------------------------ what is known

    def _count(self, usage: JSON) -> tuple[ModelPart, ...]:
        """Take a cumulative usage: it overwrites, and what it does not name keeps its value."""
        if not isinstance(usage, Mapping):
            return ()
        known = {field: _whole(usage[name]) for name, field in _USAGE.items() if usage.get(name) is not None}
        self._usage = attrs.evolve(self._usage or Usage(), **known)
        return (self._usage,)

    def _take_reason(self, holder: Mapping[str, JSON]) -> None:
        reason = holder.get("stop_reason")
        if isinstance(reason, str):
            self._reason = reason
        self.container = container_of(holder.get("container")) or self.container
        match holder.get("stop_details"):
            case dict() as details:
                words = (details.get("category"), details.get("explanation"))
                self._details = ": ".join(word for word in words if isinstance(word, str) and word)

    def _take_edits(self, management: JSON) -> None:
        match management:
            case {"applied_edits": list() as edits}:
                applied = (edit for edit in edits if isinstance(edit, dict))
                self._cleared = sum(_whole(edit.get("cleared_input_tokens")) for edit in applied)

    def _break(self, why: str) -> tuple[ModelPart, ...]:
        self.broken = why
        return ()

    # ------------------------------------------------------------ the end

    @property
    def complete(self) -> bool:
        """Whether the answer is whole, ``message_stop`` or not: a stop reason came and nothing is missing."""
        if self.broken or self._reason is None:
            return False
        whole = all(block.kind == "text" for block in self._open.values())
        return whole or stop_of(self._reason) in CUT_STOPS

    def end(self, failure: Failure | None = None) -> StreamClosed | StreamFailed:
        """
        Return the end of the answer.

        Args:
            failure: What broke the stream; None where it just ended.  A break
                after a complete answer does not matter.
        """
        if self.complete:
            reason = self._reason or ""
            return StreamClosed(
                self._effect_id,
                stop_of(reason),
                reason,
                self._usage,
                cleared_tokens=self._cleared,
                details=self._details,
            )
        if self.broken:
            failure = cut(self.broken)
        return StreamFailed(self._effect_id, failure or cut(self._missing()), self._usage)

    def _missing(self) -> str:
        if not self._started:
            return "the stream ended before the answer began"
        if self._reason is not None:
            return "the answer ended with a block still open"
        return "the stream ended before the answer did"


def _whole(tokens: JSON) -> int:
    """Return a number of tokens as an integer >= 0, whatever was sent."""
    if isinstance(tokens, float):
        return max(0, int(tokens)) if abs(tokens) < 1e15 else 0
    return max(0, tokens) if isinstance(tokens, int) else 0


def stop_of(reason: str) -> Stop:
    """Return the stop that the API's word *reason* names; an unknown one is ``OTHER``."""
    try:
        return Stop(reason)
    except ValueError:
        return Stop.OTHER
