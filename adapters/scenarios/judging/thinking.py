"""Thinking is bound to the model that wrote it (specification, section 7)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from stepfold.adapters.anthropic_api.wire import block_json
from stepfold.adapters.scenarios.judging.observe import Request
from stepfold.adapters.scenarios.playing.play import Played
from stepfold.adapters.scenarios.playing.tape import Tape
from stepfold.engine.effects import CallModel
from stepfold.engine.events import BlockCompleted
from stepfold.engine.messages import RedactedThinking, Thinking

KINDS = ("thinking", "redacted_thinking")
Thought: TypeAlias = tuple[str, str]  # the model that wrote it, the block as JSON text


def thinking_violations(played: Played, requests: Iterable[Request]) -> Iterator[str]:
    """Thinking goes out only to the model that wrote it, byte for byte, and nowhere where it is off."""
    config = played.scenario.config
    written = {
        (config.model, _text(block_json(block)))
        for message in played.scenario.history
        for block in message.content
        if isinstance(block, Thinking | RedactedThinking)
    }
    for take in played.takes:
        written |= _written(take.tape)
    if not written:
        return
    for request in requests:
        model = request.order.model
        for block in (block for message in request.messages for block in message["content"]):
            if block["type"] in KINDS and not (config.thinking and (model, _text(block)) in written):
                yield f"request of call {request.number}: {block['type']} that {model} did not write"


def _written(tape: Tape) -> set[Thought]:
    written: set[Thought] = set()
    models: dict[int, str] = {}
    for one in tape.steps:
        match one.event:
            case BlockCompleted(effect_id, Thinking() | RedactedThinking() as block):
                written.add((models[effect_id], _text(block_json(block))))
        for effect in one.effects:
            if isinstance(effect, CallModel):
                models[effect.id] = effect.model
    return written


def _text(wire: dict[str, Any]) -> str:
    return json.dumps(wire, sort_keys=True)
