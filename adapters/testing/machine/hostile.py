"""
The hostile world, as a Hypothesis state machine to be subclassed.

``HostileWorld`` plays against the bare ``step``; ``LiveWorld`` against the real
interpreter with the user's own tools and hooks.  What a subclass may set
stands in their docstrings; rules and invariants are added as Hypothesis says.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import precondition, rule

from stepfold.adapters.testing import answers
from stepfold.adapters.testing.machine.bare import BareStage
from stepfold.adapters.testing.machine.drawing import now
from stepfold.adapters.testing.machine.judge import hold
from stepfold.adapters.testing.machine.live import LiveStage
from stepfold.adapters.testing.machine.played import PlayedWorld
from stepfold.adapters.testing.machine.whole import judge_bare, judge_live
from stepfold.adapters.testing.world import Fault
from stepfold.effects.ports import Start
from stepfold.effects.setup import Options
from stepfold.engine.events import RunStarted
from stepfold.engine.frozen import evolve
from stepfold.engine.messages import Text


class HostileWorld(PlayedWorld):
    """
    The hostile world around the bare ``step``: also answers that come late, twice or to nobody.

    Tools are looked up and judged (``facts``), never run; stop hooks are names in ``config``.
    See ``PlayedWorld`` for what a subclass may set.
    """

    stage: BareStage

    def _staged(self, begun: Start, seed: int) -> BareStage:
        config, tools = begun.config, self._caller.specs or self.world.specs
        return BareStage(Start(config, begun.messages, tools, begun.collapses), seed)

    @precondition(lambda self: self._has(Fault.STRAYS))
    @rule(
        late=now(lambda self: st.sampled_from([0, *sorted(self.stage.gone)])),
        kind=st.integers(0, 12),
        nobody=st.sampled_from([0, -1, 10**6]),
    )
    def astray(self, late: int, kind: int, nobody: int) -> None:
        """What is late changes nothing; what goes to nobody, or is of a wrong kind, is refused."""
        stage = self.stage
        if late in stage.gone:
            before = stage.state
            hold(not stage.take(answers.one_of_each(late)[kind]), "a late answer causes something")
            same = evolve(before, now_ms=stage.state.now_ms) == stage.state
            hold(same, "a late answer changes something")
            self._happened()
        hold(stage.refuses(answers.one_of_each(nobody)[kind]), "an answer to nobody is taken")
        for order in stage.owed.values():
            for event in answers.one_of_each(order.id):
                if type(event) not in answers.ANSWERS[type(order)]:
                    hold(stage.refuses(event), f"{type(event).__name__} answers {type(order).__name__}")
        if not self.at_rest:
            hold(stage.refuses(RunStarted((Text("me too"),))), "a run begins within a run")

    def _judge_whole(self) -> None:
        judge_bare(self.record)


class LiveWorld(PlayedWorld):
    """
    The hostile world around the real interpreter, with the user's own tools, hooks and policies.

    Beside what ``PlayedWorld`` names, a subclass may set:

    Attributes:
        stop_hooks: As ``run`` takes them; none: the world plays those that ``config`` names.
        can_use_tool: As ``run`` takes it; None: the world answers what the tools ask about.
        options: Further options of ``run``.
    """

    stop_hooks: Any = ()
    can_use_tool: Any = None
    options: Options = Options()
    stage: LiveStage

    def _staged(self, begun: Start, seed: int) -> LiveStage:
        given: Options = {
            "tools": self.tools,
            "stop_hooks": self.stop_hooks,
            "can_use_tool": self.can_use_tool,
            "config": begun.config,
            "messages": begun.messages,
            "collapses": begun.collapses,
        }
        return LiveStage({**given, **self.options}, self.world, seed)

    def _judge_whole(self) -> None:
        judge_live(self.stage)
