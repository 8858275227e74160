"""What no scenario can play, since no port can say it; each returns what is wrong, or ""."""

from __future__ import annotations

from stepfold.adapters.scenarios.playing.play import play
from stepfold.adapters.scenarios.playing.tape import state_before
from stepfold.engine import Config, UnexpectedEvent, start, step
from stepfold.engine.context.request import request_messages
from stepfold.engine.effects import CallModel
from stepfold.engine.events import AbortKind, AbortRequested, RunStarted, StreamCancelled
from stepfold.engine.messages import Text, texts
from stepfold.engine.state import State
from tests.mutants.playing import scenario

PLAYED = ("turns/one-tool-turn", "hooks/block-and-pass", "failures/connection-reset", "context/autocompact")


def answers_twice() -> str:
    """Give every answer of some runs twice: messages cross on the wire, and nothing may come of it."""
    for name in PLAYED:
        for take in play(scenario(name)).takes:
            state: State = state_before(take.tape.begun)
            for one in take.tape.steps:
                state, _ = step(state, one.event, take.tape.begun.config)
                if not hasattr(one.event, "effect_id") or type(one.event).__name__ == "BlockCompleted":
                    continue
                try:
                    again = step(state, one.event, take.tape.begun.config)
                except UnexpectedEvent as problem:
                    return f"{name}: a second answer is illegal: {problem}"
                if again != (state, ()):
                    return f"{name}: a second {type(one.event).__name__} is not passed over"
    return ""


def abort_at_rest() -> str:
    """Abort a run that is over, in the moment in which its handle cannot know yet."""
    for take in play(scenario("turns/plain-answer")).takes:
        state: State = state_before(take.tape.begun)
        for one in take.tape.steps:
            state, _ = step(state, one.event, take.tape.begun.config)
        try:
            after = step(state, AbortRequested(AbortKind.HARD), take.tape.begun.config)
        except UnexpectedEvent as problem:
            return f"an abort after the end is illegal: {problem}"
        if after != (state, ()):
            return "an abort after the end changes something"
    return ""


def open_text_at_an_abort() -> str:
    """Abort in the middle of a text block: what the user read of it stays in the history."""
    config = Config()
    state, effects = step(start(), RunStarted((Text("Tell me."),)), config)
    (call,) = [effect for effect in effects if isinstance(effect, CallModel)]
    state, _ = step(state, AbortRequested(AbortKind.HARD), config)
    state, _ = step(state, StreamCancelled(call.id, open_text="It was a dark", shown=True), config)
    kept = "".join(texts(message.content) for message in state.data.messages)
    return "" if "It was a dark" in kept else "the text of the open block is lost"


def words_in_order() -> str:
    """Queue two things in one turn: the next request holds them as they were said."""
    request = play(scenario("queue/two-in-order")).observed.journal.requests[-1].order
    said = [text for message in request_messages(request) for text in texts(message.content).split("\n")]
    return "" if said[-2:] == ["first", "second"] else f"the request ends in {said[-2:]}"
