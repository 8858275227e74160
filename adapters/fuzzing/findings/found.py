"""A finding: the run that broke a rule, shrunk, explained in a paragraph, written down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from stepfold.adapters.fuzzing.driver.rules import Rule
from stepfold.adapters.fuzzing.driver.runs import Played
from stepfold.adapters.fuzzing.driver.search import Player
from stepfold.adapters.fuzzing.findings.shrinking import TRIES_MAX, Unbroken, shrink
from stepfold.adapters.fuzzing.findings.shrunk import SHAPE, breaks
from stepfold.adapters.testing.writing.finding import Finding, write_finding
from stepfold.effects.ports import Start

LIVE_TRIES = 300  # plays that shrinking may cost where each goes through the interpreter


@attrs.frozen
class Found:
    """
    A run that broke a rule, as short as it could be made.

    Args:
        rule: Which.
        words: What was seen.
        tape: The choices.
        played: The run.
    """

    rule: Rule
    words: str
    tape: bytes
    played: Played

    @property
    def events(self) -> tuple[str, ...]:
        """The classes of its events."""
        return tuple(type(event).__name__ for event in self.played.events)

    def explanation(self) -> str:
        """Return one paragraph for people."""
        events = self.events
        last = events[-1] if events else "nothing"
        config = _changed(self.played)
        limits = f" The limits that matter: {config}." if config else ""
        return (
            f"{self.rule[0].upper()}{self.rule[1:]}: {self.words}. It takes {len(events)} events "
            f"({', then '.join(events)}); the last of them, {last}, is where it shows.{limits} "
            f"Rule: {self.rule.name.lower()}."
        )

    def json(self) -> dict[str, object]:
        """Return what is printed for programs."""
        return {
            "rule": self.rule.name.lower(),
            "words": self.words,
            "events": list(self.events),
            "explanation": self.explanation(),
            "tape": self.tape.hex(),
        }

    def write(self, folder: Path) -> Finding:
        """Write scenario and recording; raises ``OSError``."""
        setup = self.played.setup
        begun = Start(setup.config, setup.messages, setup.first.data.tool_context.tools, setup.collapses)
        return write_finding(
            folder,
            f"{self.rule.name.lower()}-{self.tape.hex()[-12:] or 'plain'}",
            begun,
            self.played.events,
            title=f"{self.rule.name.lower()}: {self.words}"[:200],
            about=self.explanation(),
        )


def found(player: Player, rule: Rule, tape: bytes, *, live: bool) -> Found:
    """
    Return the finding that *tape* is, shrunk.

    A run that does not come back is not played more often than it must be; one
    that does not show again is a finding of another kind.
    """
    if live and rule in (Rule.AWAY, Rule.REPLAY):
        return _as_it_is(player, rule, tape)
    try:
        short = shrink(tape, SHAPE, breaks(player, rule), LIVE_TRIES if live else TRIES_MAX)
    except Unbroken:
        return _as_it_is(player, Rule.REPLAY, tape)
    played = player.play(short.tape, keep=True)
    if played.broken is None:
        return _as_it_is(player, Rule.REPLAY, tape)
    return Found(rule, played.broken.words, short.tape, played)


def _as_it_is(player: Player, rule: Rule, tape: bytes) -> Found:
    played = player.play(tape, keep=True)
    again = "the target keeps something from run to run"
    return Found(rule, again if played.broken is None else played.broken.words, tape, played)


def _changed(played: Played) -> str:
    config: Any = played.setup.config
    fields = [field for field in attrs.fields(type(config)) if field.init and field.name != "models"]
    said = [
        f"{field.name} {getattr(config, field.name)!r}"
        for field in fields
        if getattr(config, field.name) != field.default
    ]
    return ", ".join(said[:8])
