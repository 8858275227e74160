"""
What only this file catches: a sequence of events that nobody thought of.

The world is a state machine that plays against the bare ``step``: a model with every stop and every
failure, tools, permissions, hooks, a compactor, a user who aborts and queues, a supervisor that lets
the process die, and messages that come late, twice, or to nobody.  ``Judge`` holds every step against
the invariants of the specification, section 9.

``STEPFOLD_DEEP=20`` makes the search twenty times as long, and no two of them alike.
"""

from __future__ import annotations

import os
from typing import Any

import attrs
import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from stepfold.adapters.scenarios.border import wire_messages
from stepfold.engine import step
from stepfold.engine.effects import CallModel, CancelModel, Owed
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    BlockCompleted,
    CallFacts,
    Command,
    CommandQueued,
    Event,
    Resumed,
    RunStarted,
    ToolsChanged,
    ToolSpec,
)
from stepfold.engine.messages import Block, Opaque, Text, ToolUse
from stepfold.engine.phases import PhaseKind
from stepfold.engine.state import Collapse
from tests.engine.driven.company import COMPANY
from tests.engine.driven.drive import Drive, talk
from tests.engine.driven.friendly import complete
from tests.engine.driven.hostile import (
    ANSWERS,
    OTHER_TOOLS,
    TOOLS,
    answers_of,
    calls,
    configs,
    facts,
    one_of_each,
    plain_blocks,
    words,
)
from tests.engine.driven.judge import Judge, valid_history

DEEP = int(os.environ.get("STEPFOLD_DEEP", "1"))
RUNS = 6  # runs on one history, so that a search ends
SPANS = (Collapse(2, "first span"), Collapse(4, "second span"))


class World(RuleBasedStateMachine):
    """The hostile world."""

    @initialize(
        config=configs,
        rounds=st.sampled_from([0, 1, 6]),
        staged=st.sampled_from([0, 0, 2]),
        place=st.sampled_from([None] * 6 + list(COMPANY)),
        at_once=st.sampled_from([True, True, False]),
    )
    def begin(
        self, config: dict[str, Any], rounds: int, staged: int, place: PhaseKind | None, at_once: bool
    ) -> None:
        """Begin before a first run, in it, or in one phase of a run that has come a long way."""
        self.gone: set[int] = set()  # orders that were answered or cancelled: whatever comes is late
        self.runs = 0
        if place is not None:
            self.drive = COMPANY[place]()
            self.runs = 1
        else:
            self.drive = Drive(talk(rounds, 1_500), TOOLS, SPANS[:staged] if rounds > 1 else (), **config)
        self.judge = Judge(self.drive.config)
        state = self.drive.first
        for event, after, effects in zip(
            self.drive.events, self.drive.states, self.drive.outputs, strict=True
        ):
            self.judge.watch(state, event, effects, after)
            state = after
        if place is None and at_once:
            self.prompt("yes", 1)

    def do(self, event: Event) -> None:
        event = attrs.evolve(event, at_ms=self.drive.now_ms)
        before, open_ = self.drive.state, set(self.drive.owed)
        effects = self.drive.do(event)
        self.judge.watch(before, event, effects, self.drive.state)
        if isinstance(event, Resumed):
            self.gone.clear()  # what the dead process had open is in nobody's hands
        else:
            self.gone |= open_ - set(self.drive.owed)

    @property
    def at_rest(self) -> bool:
        return self.drive.state.control.phase in (PhaseKind.IDLE, PhaseKind.DONE)

    @property
    def model(self) -> CallModel | None:
        """The call whose stream is open."""
        return next(iter(self.drive.opened(CallModel)), None)

    @property
    def cancelling(self) -> bool:
        """Whether that stream is being closed from here."""
        order = self.model
        return order is not None and CancelModel(order.id) in self.drive.effects

    # ------------------------------------------------------------ whoever is asked

    @precondition(lambda self: self.at_rest and self.runs < RUNS)
    @rule(text=words, seed=st.integers(0, 3))
    def another_prompt(self, text: str, seed: int) -> None:
        self.prompt(text, seed)

    def prompt(self, text: str, seed: int) -> None:
        self.runs += 1
        self.do(RunStarted((Text("go"), Text(text)), f"run{self.runs}", seed))

    @precondition(lambda self: self.drive.owed)
    @rule(data=st.data())
    def answer(self, data: Any) -> None:
        """Whatever was ordered last, or anything that is open, gets an answer of its kind."""
        orders = list(self.drive.owed.values())
        order: Owed = data.draw(st.one_of(st.just(orders[-1]), st.sampled_from(orders)))
        self.do(data.draw(answers_of(order, self.cancelling)))

    @precondition(lambda self: self.drive.owed)
    @rule(data=st.data())
    def answer_too(self, data: Any) -> None:
        """The same: most of what happens is an answer."""
        self.answer(data)

    # ------------------------------------------------------------ the model

    @precondition(lambda self: self.model)
    @rule(block=plain_blocks)
    def block(self, block: Block) -> None:
        assert self.model is not None
        self.do(BlockCompleted(self.model.id, block))

    @precondition(lambda self: self.model)
    @rule(call=calls, facts=facts)
    def call(self, call: ToolUse, facts: CallFacts) -> None:
        assert self.model is not None
        self.do(BlockCompleted(self.model.id, call, facts))

    @precondition(lambda self: self.model and not self.cancelling)
    @rule(data=st.data(), uses=st.lists(st.tuples(calls, facts), min_size=1, max_size=3))
    def whole_answer(self, data: Any, uses: list[tuple[ToolUse, CallFacts]]) -> None:
        """A whole answer with calls, and its end."""
        order = self.model
        assert order is not None
        for call, given in uses:
            self.do(BlockCompleted(order.id, call, given))
        self.do(data.draw(answers_of(order, cancelling=False)))

    @precondition(lambda self: self.model)
    @rule(answered=st.booleans())
    def server_call(self, answered: bool) -> None:
        assert self.model is not None
        name = f"s{len(self.drive.events)}"
        wire = f'{{"type":"server_tool_use","id":"{name}","name":"web_search","input":{{}}}}'
        self.do(BlockCompleted(self.model.id, Opaque("server_tool_use", wire, name)))
        if answered:
            self.server_result(name)

    def server_result(self, name: str) -> None:
        assert self.model is not None
        wire = f'{{"type":"web_search_tool_result","tool_use_id":"{name}","content":[]}}'
        self.do(BlockCompleted(self.model.id, Opaque("web_search_tool_result", wire, answers=name)))

    @precondition(lambda self: self.model and self.pending_server_calls())
    @rule()
    def late_server_result(self) -> None:
        self.server_result(self.pending_server_calls()[0])

    def pending_server_calls(self) -> list[str]:
        """Return the server calls of the request that nothing answers, there or in the answer so far."""
        order = self.model
        assert order is not None
        blocks = [block for message in wire_messages(order) for block in message["content"]]
        asked = [block["id"] for block in blocks if block["type"] == "server_tool_use"]
        done = {block["tool_use_id"] for block in blocks if block["type"] == "web_search_tool_result"}
        for event in self.drive.events:
            if isinstance(event, BlockCompleted) and event.effect_id == order.id:
                done.add(getattr(event.block, "answers", ""))
        return [name for name in asked if name not in done]

    # ------------------------------------------------------------ the user, the host, the supervisor

    @precondition(lambda self: self.runs > 0)
    @rule(
        kind=st.sampled_from([AbortKind.HARD, AbortKind.SUBMIT]),
        really=st.sampled_from([False, True, False]),
    )
    def abort(self, kind: AbortKind, really: bool) -> None:
        if really:
            self.do(AbortRequested(kind))

    @precondition(lambda self: self.runs > 0)
    @rule(really=st.booleans())
    def death(self, really: bool) -> None:
        if really:
            self.do(Resumed())

    @rule(
        text=words,
        number=st.integers(0, 9),
        tools=st.sampled_from(OTHER_TOOLS),
        minutes=st.sampled_from([0, 9]),
    )
    def meanwhile(self, text: str, number: int, tools: tuple[ToolSpec, ...], minutes: int) -> None:
        """Time passes; words are queued, or the tools change."""
        self.drive.now_ms += minutes * 60_000
        if number < 5:
            self.do(CommandQueued(Command(f"c{number}", (Text("also"), Text(text)))))
        else:
            self.do(ToolsChanged(tools))

    # ------------------------------------------------------------ messages that come late, twice, to nobody

    @rule(data=st.data(), kind=st.integers(0, 12), nobody=st.sampled_from([0, -1, 10**6]))
    def astray(self, data: Any, kind: int, nobody: int) -> None:
        """What is late changes nothing; what goes to nobody, or is of a wrong kind, is refused."""
        drive = self.drive
        if self.gone:
            number = data.draw(st.sampled_from(sorted(self.gone)))
            before = drive.state
            assert () == drive.do(one_of_each(number)[kind])
            assert before == drive.state, "a late answer changes something"
        assert drive.refuses(one_of_each(nobody)[kind])
        for order in drive.owed.values():
            for event in one_of_each(order.id):
                if type(event) not in ANSWERS[type(order)]:
                    assert drive.refuses(event)
        if not self.at_rest:
            assert drive.refuses(RunStarted((Text("me too"),)))

    # ------------------------------------------------------------ at the end of the search

    def teardown(self) -> None:
        if not hasattr(self, "drive") or not self.drive.events:
            return
        self.replayed()
        last = len(self.drive.events) - 1
        for place in range(last + 1) if DEEP > 1 else sorted({last // 3, last // 2, last}):
            self.resumed_after(place)

    def replayed(self) -> None:
        """The same events give the same states and effects."""
        drive, state = self.drive, self.drive.first
        for event, after, effects in zip(drive.events, drive.states, drive.outputs, strict=True):
            state, same = step(state, event, drive.config)
            assert (after, effects) == (state, same)

    def resumed_after(self, place: int) -> None:
        """A process that dies here is taken up, meets a friendly world, and ends with a valid history."""
        other = self.drive.upto(place)
        begun = any(isinstance(event, RunStarted) for event in other.events)
        if other.state.end is not None or not begun:
            return
        other.do(Resumed())
        complete(other)
        valid_history(other.state)


TestWorld = World.TestCase
TestWorld.settings = settings(
    max_examples=600 * DEEP,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=DEEP == 1,
    database=None,
    print_blob=True,
)
