"""The open answer and its calls, as the world knows them."""

from __future__ import annotations

from typing import Final

import attrs

from stepfold.adapters.fuzzing.driver.rules import Broken, Rule
from stepfold.engine.config import Config
from stepfold.engine.effects import RunTool
from stepfold.engine.events import CallFacts, Stop, Verdict

CUT: Final = frozenset({Stop.MAX_TOKENS, Stop.WINDOW_EXCEEDED, Stop.REFUSAL})


@attrs.define
class OpenAnswer:
    """The open answer and its calls, as the world knows them."""

    streaming: bool = False
    stop: Stop | None = None
    shown: bool = False
    facts: dict[str, CallFacts] = attrs.field(factory=dict)
    started: dict[str, int] = attrs.field(factory=dict)
    ended: set[str] = attrs.field(factory=set)
    running: dict[int, str] = attrs.field(factory=dict)
    refused: set[str] = attrs.field(factory=set)  # by the user, or by a hook before the tool

    def fork(self) -> OpenAnswer:
        """Return a copy of its own."""
        return OpenAnswer(
            self.streaming,
            self.stop,
            self.shown,
            dict(self.facts),
            dict(self.started),
            set(self.ended),
            dict(self.running),
            set(self.refused),
        )

    @property
    def cut(self) -> bool:
        """Whether it ended so that none of its calls may run."""
        return self.stop in CUT

    def starts(self, effect: RunTool, config: Config) -> None:
        """A call begins; raises ``Broken`` where it must not, or not now."""
        use_id = effect.call.id
        facts = self.facts.get(use_id)
        if facts is None:
            raise Broken(Rule.CALLS, f"{use_id!r} ran, which the open answer does not hold")
        if not facts.known or not facts.valid or facts.verdict is Verdict.DENY or config.nested:
            raise Broken(Rule.CALLS, f"{use_id!r} ran, which is unknown, invalid, denied or of a nested run")
        if use_id in self.refused:
            raise Broken(Rule.CALLS, f"{use_id!r} ran, and the user had said no")
        if self.cut:
            raise Broken(Rule.CUT, f"{use_id!r} of an answer that ended with {self.stop} ran")
        if use_id in self.ended or (use_id in self.started and not facts.idempotent):
            raise Broken(Rule.CALLS, f"{use_id!r} ran twice, or after its end")
        self._in_company(use_id, facts, config)
        self.started[use_id] = self.started.get(use_id, 0) + 1
        if self.started[use_id] > 2:
            raise Broken(Rule.CALLS, f"{use_id!r} ran three times")
        self.running[effect.id] = use_id

    def _in_company(self, use_id: str, facts: CallFacts, config: Config) -> None:
        others = [self.facts[name] for name in self.running.values()]
        if self.streaming and not (facts.safe and config.streaming_tools):
            raise Broken(Rule.UNSAFE, f"{use_id!r} began before the answer was whole")
        if others and not (facts.safe and all(other.safe for other in others)):
            raise Broken(Rule.UNSAFE, f"{use_id!r} began beside another call")
        if len(others) >= config.max_parallel_tools:
            raise Broken(Rule.CALLS, f"more than {config.max_parallel_tools} calls at once")
