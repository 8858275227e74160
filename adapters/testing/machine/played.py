"""What both hostile worlds share: how a run begins, everything that may happen, and how it is judged."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from stepfold.adapters.scenarios.border import wire_messages
from stepfold.adapters.testing import answers
from stepfold.adapters.testing.config_space import MILDEST, SPACE
from stepfold.adapters.testing.machine.bare import BareStage
from stepfold.adapters.testing.machine.calling import Caller, talk
from stepfold.adapters.testing.machine.drawing import changes, chosen, faults, now
from stepfold.adapters.testing.machine.failing import FINDINGS, report
from stepfold.adapters.testing.machine.judge import Judge
from stepfold.adapters.testing.machine.live import LiveStage
from stepfold.adapters.testing.machine.whole import climb
from stepfold.adapters.testing.record import Record
from stepfold.adapters.testing.world import ALL_FAULTS, RUNS_MAX, Fault, World, world_of
from stepfold.effects.ports import Start
from stepfold.engine.config import Config
from stepfold.engine.effects import CallModel
from stepfold.engine.events import AbortKind, BlockCompleted, Event, ToolSpec
from stepfold.engine.messages import Message
from stepfold.engine.phases import PhaseKind
from stepfold.engine.state import Collapse

ENDS = (PhaseKind.IDLE, PhaseKind.DONE)
SPANS = (Collapse(2, "first span"), Collapse(4, "second span"))
STEPS = 40  # events that a run is made of, about
SELDOM = st.sampled_from([False, True, False])


def world_settings(**changes: Any) -> settings:
    """
    Return settings that fit a world: Hypothesis' own, without a deadline, health checks and explanations.

    Args:
        changes: Settings of Hypothesis, by name: ``max_examples``, ``stateful_step_count``, ...
    """
    usual = {
        "deadline": None,
        "stateful_step_count": STEPS,
        "suppress_health_check": list(HealthCheck),
        "phases": [phase for phase in settings().phases if phase is not Phase.explain],
    }
    return settings(**{**usual, **changes})


class PlayedWorld(RuleBasedStateMachine):
    """
    What both worlds share; subclass ``HostileWorld`` or ``LiveWorld``.

    A subclass may set, on the class or in its ``__init__``:

    Attributes:
        config: Of the runs; None: small limits, all gates open.
        space: {key of Config: other values to try}, a few changed in each run; None: whatever
            makes the loop take other ways, where no *config* is given.
        faults: What may go wrong; each run has a random subset.
        tools: ``Tools`` ports, as ``run`` takes them; none: the world has tools of its own.
        inputs: {tool: inputs to call it with}; those left out are made from the schema.
        history: The messages before the first run; None draws them.
        prompts: What the runs begin with, in order; the last repeats.
        findings: The folder that the files of a failing run go to.

    Rules and invariants read ``record`` (what has happened in the log), ``state`` and ``world``.
    """

    config: Config | None = None
    space: Mapping[str, tuple[Any, ...]] | None = None
    faults: Collection[Fault] = ALL_FAULTS
    tools: Any = ()
    inputs: Mapping[str, Sequence[Mapping[str, Any]]] = {}
    history: Sequence[Message] | None = None
    prompts: Sequence[str] = ("go",)
    findings: Path = FINDINGS
    stage: BareStage | LiveStage
    world: World

    # ------------------------------------------------------------ the beginning

    @initialize(
        faults=now(lambda self: faults(self.faults)),
        changes=now(lambda self: changes(self._space())),
        rounds=now(lambda self: st.sampled_from([0, 1, 6] if self.history is None else [0])),
        staged=st.sampled_from([0, 2]),
        seed=st.integers(0, 3),
        at_once=st.sampled_from([True, True, False]),
    )
    def begin(
        self,
        faults: frozenset[Fault],
        changes: dict[str, Any],
        rounds: int,
        staged: int,
        seed: int,
        at_once: bool,
    ) -> None:
        """Begin a history."""
        config = attrs.evolve(MILDEST if self.config is None else self.config, **changes)
        self._caller = Caller(self.tools, self.inputs)
        self.world = self._caller.named(world_of(faults))
        messages = tuple(talk(rounds, 1_500) if self.history is None else self.history)
        spans = SPANS[:staged] if rounds > 1 and config.collapse else ()
        self.stage = self._staged(Start(config, messages, (), spans), seed)
        self._judge = Judge(self.record.config)
        self._judged = 0
        if at_once or isinstance(self.stage, LiveStage):
            self._prompt()

    def _space(self) -> Mapping[str, tuple[Any, ...]]:
        """Return {key: values}, that of the config first."""
        if self.space is None:
            return SPACE if self.config is None else {}
        config = MILDEST if self.config is None else self.config
        return {key: (getattr(config, key), *values) for key, values in self.space.items()}

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.TestCase.settings = world_settings()

    def _staged(self, begun: Start, seed: int) -> BareStage | LiveStage:
        raise NotImplementedError("subclass HostileWorld or LiveWorld")

    # ------------------------------------------------------------ what is so

    @property
    def record(self) -> Record:
        """What has happened in the log so far."""
        return self.stage.record

    @property
    def state(self) -> Any:
        """The state of the loop now."""
        return self.record.state

    @property
    def at_rest(self) -> bool:
        """Whether no run is under way."""
        return self.state.control.phase in ENDS

    @property
    def model(self) -> CallModel | None:
        """The call whose stream is open, or None."""
        return next((order for order in self.stage.owed.values() if isinstance(order, CallModel)), None)

    def _has(self, *wanted: Fault) -> bool:
        return all(fault in self.world.faults for fault in wanted)

    def _happened(self) -> None:
        """Judge what has come since the last look."""
        steps = self.record.steps
        before = steps[self._judged - 1].state if self._judged else self.record.first
        for one in steps[self._judged :]:
            self._judged += 1
            self._judge.watch(before, one.event, one.effects, one.state)
            before = one.state

    def _fresh(self, more: int = 0) -> str:
        return f"t{len(self.record.steps) + 1 + more}"

    # ------------------------------------------------------------ runs and answers

    def _prompt(self) -> None:
        self.stage.prompt(self.prompts[min(self.stage.runs, len(self.prompts) - 1)])
        self._happened()

    @precondition(lambda self: self.at_rest and (not self.stage.runs or self._has(Fault.MORE_RUNS)))
    @precondition(lambda self: self.stage.runs < RUNS_MAX)
    @rule()
    def another_prompt(self) -> None:
        """The user sends a prompt."""
        self._prompt()

    def _answers(self) -> st.SearchStrategy[Event]:
        orders = list(self.stage.owed.values())
        order = st.one_of(st.just(orders[-1]), st.sampled_from(orders))
        cancelling = self.stage.cancelling
        return order.flatmap(
            lambda one: chosen(
                lambda pick: answers.answer(self.world, one, pick, cancelling=one.id in cancelling)
            )
        )

    def _answer(self, event: Event) -> None:
        self.stage.answer(event)
        self._happened()

    @precondition(lambda self: self.stage.owed)
    @rule(event=now(lambda self: self._answers()))
    def answer(self, event: Event) -> None:
        """What was ordered last, or anything that is open, gets an answer."""
        self._answer(event)

    @precondition(lambda self: self.stage.owed)
    @rule(event=now(lambda self: self._answers()))
    def answer_too(self, event: Event) -> None:
        """The same: most of what happens is an answer."""
        self._answer(event)

    # ------------------------------------------------------------ the model

    def _calls(self, most: int) -> st.SearchStrategy[list[BlockCompleted]]:
        order = self.model
        assert order is not None

        def call(number: int) -> st.SearchStrategy[BlockCompleted]:
            return chosen(lambda pick: self._caller.call(self.world, order.id, pick, self._fresh(number)))

        return st.integers(1, most).flatmap(lambda count: st.tuples(*map(call, range(count))).map(list))

    @precondition(lambda self: self.model)
    @rule(event=now(lambda self: chosen(lambda pick: answers.block(self.world, self.model.id, pick))))
    def block(self, event: BlockCompleted) -> None:
        """The model says something."""
        self._answer(event)

    @precondition(lambda self: self.model)
    @rule(calls=now(lambda self: self._calls(1)))
    def call(self, calls: list[BlockCompleted]) -> None:
        """The model calls a tool."""
        self._answer(calls[0])

    @precondition(lambda self: self.model and self.model.id not in self.stage.cancelling)
    @rule(calls=now(lambda self: self._calls(3)), end=now(lambda self: self._ends()))
    def whole_answer(self, calls: list[BlockCompleted], end: Event) -> None:
        """A whole answer with calls, and its end."""
        for call in calls:
            if self.model is not None:
                self._answer(call)
        if self.model is not None:
            self._answer(end)

    def _ends(self) -> st.SearchStrategy[Event]:
        order = self.model
        assert order is not None
        return chosen(lambda pick: answers.end_of(self.world, order.id, pick))

    @precondition(lambda self: self._has(Fault.SERVER_CALLS) and self.model)
    @rule(answered=st.booleans())
    def server_call(self, answered: bool) -> None:
        """The model calls a tool of the server's own, answered now or later."""
        order, name = self.model, self._fresh()
        assert order is not None
        self._answer(answers.server_call(order.id, name))
        if answered and self.model is order:
            self._answer(answers.server_result(order.id, name))

    @precondition(lambda self: self._has(Fault.SERVER_CALLS) and self.model and self._pending())
    @rule()
    def late_server_result(self) -> None:
        """The server answers a call of an earlier response."""
        order = self.model
        assert order is not None
        self._answer(answers.server_result(order.id, self._pending()[0]))

    def _pending(self) -> list[str]:
        """Return the server calls of the open request that nothing answers, there or in the answer so far."""
        order = self.model
        assert order is not None
        blocks = [block for message in wire_messages(order) for block in message["content"]]
        asked = [block["id"] for block in blocks if block["type"] == "server_tool_use"]
        done = {block["tool_use_id"] for block in blocks if block["type"] == "web_search_tool_result"}
        for event in self.record.events:
            if isinstance(event, BlockCompleted) and event.effect_id == order.id:
                done.add(getattr(event.block, "answers", ""))
        return [name for name in asked if name not in done]

    # ------------------------------------------------------------ the user, the host, the supervisor

    @precondition(lambda self: self._has(Fault.ABORTS) and self.stage.runs)
    @rule(kind=st.sampled_from([AbortKind.HARD, AbortKind.SUBMIT]), really=SELDOM)
    def abort(self, kind: AbortKind, really: bool) -> None:
        """The user stops the run."""
        if really:
            self.stage.abort(kind)
            self._happened()

    @precondition(lambda self: self._has(Fault.DEATHS) and self.stage.runs)
    @rule(really=SELDOM)
    def death(self, really: bool) -> None:
        """The process dies; a new one takes up the log."""
        if really:
            self.stage.die()
            self._happened()

    @precondition(lambda self: self._has(Fault.QUEUE))
    @rule(text=now(lambda self: st.sampled_from(self.world.said.texts)))
    def queue(self, text: str) -> None:
        """The user says something beside the run."""
        self.stage.queue(f"also {text}")
        self._happened()

    @precondition(lambda self: self._has(Fault.TOOL_CHANGES) and not self.tools)
    @rule(tools=now(lambda self: st.sampled_from(self.world.other_tools)))
    def other_tools(self, tools: tuple[ToolSpec, ...]) -> None:
        """The host offers other tools."""
        self.stage.change_tools(tools)
        self._happened()

    @rule(minutes=now(lambda self: st.sampled_from(self.world.minutes)))
    def time_passes(self, minutes: int) -> None:
        """Time passes; in a live world, what is due happens."""
        if isinstance(self.stage, BareStage):
            self.stage.wait(minutes * 60_000)
        elif minutes or self.stage.busy:
            self.stage.wait(minutes * 60_000)
            self._happened()

    # ------------------------------------------------------------ the end

    def _judge_whole(self) -> None:
        raise NotImplementedError

    def teardown(self) -> None:
        """Judge the whole history; write down one that failed."""
        if not hasattr(self, "stage"):
            return
        problem = sys.exc_info()[1]
        try:
            if problem is None:
                climb(self.record)
                self._judge_whole()
            else:
                report(self, problem)
        except Exception as found:
            if problem is None:
                report(self, found)
            raise
        finally:
            self.stage.close()
