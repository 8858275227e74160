"""What a rule says, and which rules there are (docs/lint.md)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from stepfold.adapters.transcripts.items import Place


class Severity(enum.StrEnum):
    """How bad a finding is; a note is no reason to fail."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@attrs.frozen
class Rule:
    """A rule: its severity, and what it means in a sentence."""

    severity: Severity
    about: str


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "orphan-result": Rule(Severity.ERROR, "A result answers no call that came before it."),
        "missing-result": Rule(Severity.ERROR, "A call has no result when the model is asked again."),
        "open-call": Rule(Severity.NOTE, "A call has no result at the end of the conversation."),
        "duplicate-id": Rule(Severity.ERROR, "Two calls have one id, or two results answer one call."),
        "thinking-changed": Rule(Severity.ERROR, "Thinking with one signature has two texts."),
        "thinking-last": Rule(Severity.ERROR, "Thinking is the last block of an answer that was sent again."),
        "repeated-call": Rule(Severity.WARNING, "The same calls came to the same results again and again."),
        "compaction-without-effect": Rule(Severity.WARNING, "A compaction did not make the context smaller."),
        "compaction-again": Rule(Severity.WARNING, "The context was compacted again after a few turns."),
        "retry-storm": Rule(Severity.WARNING, "Many requests failed one after the other."),
        "error-shown": Rule(Severity.WARNING, "An error was shown though the run went on."),
        "error-hidden": Rule(Severity.NOTE, "Requests failed and were tried again; nobody was told."),
        "limit": Rule(Severity.WARNING, "A limit of this loop would have stopped it there."),
        "terminal": Rule(Severity.NOTE, "How the run ended, among the ten reasons of this loop."),
    }
)


@attrs.frozen
class Finding:
    """
    Something that a rule found.

    Args:
        rule: Its name, a key of ``RULES``.
        place: Where.
        words: What, in one sentence.
    """

    rule: str
    place: Place
    words: str

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return RULES[self.rule].severity
