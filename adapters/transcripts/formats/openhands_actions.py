"""Older OpenHands: lists of actions and of the observations that they were answered with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from stepfold.adapters.transcripts import endings
from stepfold.adapters.transcripts.content import answered, asked, blocks_of, call, result, usage_of
from stepfold.adapters.transcripts.fields import nested, rows, text, time_ms, whole
from stepfold.adapters.transcripts.items import Began, Compacted, Ended, Interrupted, Item, Place, Said
from stepfold.adapters.transcripts.source import Counts
from stepfold.engine.messages import Block, Text, Thinking

LISTS: Final = ("history", "trajectory")
"""Where a row of an evaluation keeps the events."""
BESIDE: Final = frozenset(
    {
        "change_agent_state",
        "chat",
        "condensation_request",
        "condense",
        "loop_recovery",
        "null",
        "recall",
        "resume",
        "server_ready",
        "start",
        "stop",
        "streaming_chunk",
        "success",
    }
)
"""Actions and observations that tell nothing of the conversation."""
NO_ARGUMENTS: Final = frozenset(
    {
        "blocking",
        "confirmation_state",
        "hidden",
        "impl_source",
        "is_confirmed",
        "is_input",
        "keep_prompt",
        "security_risk",
        "thought",
        "translated_ipython_code",
    }
)
"""What stands among the arguments of an action and was none of the call's."""
ENDS: Final = frozenset({"finished", "rejected", "error", "stopped", "paused"})
REASONS: Final = (
    ("maximum iteration", "max_iterations"),
    ("maximum budget", "max_budget"),
    ("StuckInLoop", "stuck"),
)
"""What the reason of an error says, and which end it is."""


def is_event(value: Any) -> bool:
    """Whether *value* is an action or an observation."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("action"), str) != isinstance(value.get("observation"), str)
        and "role" not in value
        and bool({"args", "extras", "source", "cause"} & {*value})
    )


def events_in(value: Any) -> list[Any]:
    """Return the events of a list, of a list of pairs, or of a row of an evaluation; [] if there are none."""
    listed = value if isinstance(value, list) else []
    for key in LISTS:
        listed = listed or rows(value, key)
    flat = [event for each in listed for event in (each if isinstance(each, list) else [each])]
    return flat if any(is_event(each) for each in flat[:3]) else []


def read_row(row: Any, line: int, counts: Counts) -> Iterator[Item]:
    """Yield what a list of events, or a row of an evaluation with one, tells."""
    session = text(row, "instance_id")
    actions = Actions(session, counts)
    if isinstance(row, dict):
        model = text(nested(row, "metadata", "llm_config"), "model")
        yield Began(Place(line, session), model)
    for number, event in enumerate(events_in(row), 1):
        yield from actions.take(event, number)
    if (error := text(row, "error")) and not actions.ended:
        yield Ended(Place(line, session), _reason("error", error), False)


class Actions:
    """
    Reads the events of one session.

    Args:
        session: Its name; "" where it has none.
        counts: What was met on the way.
    """

    def __init__(self, session: str, counts: Counts) -> None:
        self.ended = False
        self._session = session
        self._counts = counts
        self._calls: dict[int, str] = {}  # open ones, by the action's number
        self._told = ""  # the response whose usage was told last

    def take(self, event: Any, number: int) -> Iterator[Item]:
        """Yield what *event* means; *number*: its line, or its place in the list."""
        at_ms = time_ms(event.get("timestamp")) if isinstance(event, dict) else None
        where = Place(number, self._session, at_ms=at_ms)
        if not is_event(event):
            self._counts.skip(f"no event ({type(event).__name__})")
        elif text(event, "action"):
            yield from self._action(event, where)
        else:
            yield from self._observation(event, where)

    def _action(self, event: dict[str, Any], where: Place) -> Iterator[Item]:
        given = nested(event, "args")
        own = text(event, "source") != "user"
        match text(event, "action"):
            case "system":
                tools = (text(nested(each, "function"), "name") for each in rows(given, "tools"))
                yield Began(where, "", tuple(filter(None, tools)), text(given, "openhands_version"))
            case "message" if own:
                yield self._answer(event, where, _thought(given.get("content")))
            case "message":
                yield Said(where, asked(blocks_of(text(given, "content") or text(event, "message"))))
                self.ended = False
            case "finish" | "reject" as kind:
                blocks = _thought(given.get("thought"))
                if last := text(given, "final_thought") or text(nested(given, "outputs"), "content"):
                    blocks = (*blocks, Text(last))
                yield self._answer(event, where, blocks or blocks_of(text(event, "message")))
                yield from self._end(f"{kind}ed", where)
            case "condensation":
                yield Compacted(where, "condensation")
            case "pause":
                yield Interrupted(where)
            case kind if kind in BESIDE:
                pass
            case _ if own:
                yield self._call(event, where)
            case kind:
                words = text(given, "command") or text(given, "code") or text(given, "path")
                yield Said(where, asked((Text(f"{kind}: {words}"),)))

    def _answer(self, event: dict[str, Any], where: Place, blocks: tuple[Block, ...]) -> Said:
        response = nested(event, "tool_call_metadata", "model_response")
        id, model = text(response, "id"), text(response, "model")
        usage = None if id and id == self._told else usage_of(response.get("usage"))
        self._told = id
        stop = text(next(iter(rows(response, "choices")), {}), "finish_reason")
        return Said(where, answered(blocks, model), id, model, stop, usage)

    def _call(self, event: dict[str, Any], where: Place) -> Said:
        told = nested(event, "tool_call_metadata")
        number = whole(event, "id")
        id = text(told, "tool_call_id") or f"call-{where.line if number is None else number}"
        name = text(told, "function_name") or text(event, "action")
        args = nested(event, "args")
        arguments: Any = {key: value for key, value in args.items() if key not in NO_ARGUMENTS}
        for choice in rows(nested(told, "model_response"), "choices"):
            for given in rows(nested(choice, "message"), "tool_calls"):
                if text(given, "id") == id:
                    arguments = nested(given, "function").get("arguments") or {}
        self._calls[where.line if number is None else number] = id
        return self._answer(event, where, (*_thought(args.get("thought")), call(id, name, arguments)))

    def _observation(self, event: dict[str, Any], where: Place) -> Iterator[Item]:
        kind = text(event, "observation")
        if kind == "agent_state_changed":
            yield from self._state(nested(event, "extras"), where)
        elif kind not in BESIDE:
            words = event["content"] if "content" in event else text(event, "message")
            id = self._answered(event)
            if id is None:  # of nothing that the model called: it is told as words
                yield Said(where, asked(blocks_of(words)), meta=True)
            else:
                yield Said(where, result(id, words, is_error=kind in ("error", "user_rejected")))

    def _answered(self, event: dict[str, Any]) -> str | None:
        """Return the call that an observation answers; None: none that is open."""
        id = text(nested(event, "tool_call_metadata"), "tool_call_id")
        cause = whole(event, "cause")
        if not id and cause in self._calls:
            id = self._calls[cause]
        if not id and cause in (None, -1) and self._calls:
            id = self._calls[max(self._calls)]
        self._calls = {number: open for number, open in self._calls.items() if open != id}
        return id or None

    def _state(self, extras: dict[str, Any], where: Place) -> Iterator[Item]:
        state = text(extras, "agent_state").lower()
        if state in ENDS:
            yield from self._end(_reason(state, text(extras, "reason")), where)
        elif not endings.known("openhands", state):
            self._counts.skip(f"agent_state {state}")

    def _end(self, reason: str, where: Place) -> Iterator[Ended]:
        if not self.ended:
            self.ended = True
            yield Ended(where, reason, reason == "finished")


def _reason(state: str, words: str) -> str:
    if state != "error":
        return state
    return next((word for sign, word in REASONS if sign in words), state)


def _thought(given: Any) -> tuple[Block, ...]:
    """Return what was thought beside an action: a text, or an object with one and with what was not said."""
    reasoning = text(given, "reasoning_content")
    thinking: tuple[Block, ...] = (Thinking(reasoning),) if reasoning else ()
    return (*thinking, *blocks_of(text(given, "text") if isinstance(given, dict) else given))
