"""Rules about the loop: retries, compactions, limits, and how a run ended."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from stepfold.adapters.linting.finding import Finding
from stepfold.adapters.transcripts import endings
from stepfold.adapters.transcripts.items import (
    Began,
    Compacted,
    Ended,
    Interrupted,
    Item,
    Place,
    RequestFailed,
    Said,
)
from stepfold.engine import Config, Terminal
from stepfold.engine.messages import Role, ToolResult, ToolUse

STORM: Final = 5  # failures in a row
SOON: Final = 3  # answers between two compactions
CUT: Final = frozenset({"max_tokens", "length", "max_output_tokens"})


class Loop:
    """
    Holds one conversation against the rules of the loop.

    Args:
        format: Of the transcript; its words for ends are looked up.
        config: Whose limits it is held against.
    """

    def __init__(self, format: str, config: Config) -> None:
        self._format = format
        self._config = config
        self._failures: list[RequestFailed] = []
        self._shown: Place | None = None
        self._compacted: int | None = None  # answers since the last compaction
        self._answer: str | None = None  # id of the answer that is being told; None: none is
        self._turns = 0
        self._calls = 0
        self._cuts = 0
        self._told: set[str] = set()  # limits that were reached in this run
        self._ended = False
        self._stop = ""
        self._asks = False  # the last answer asks for tools
        self._interrupted: Interrupted | None = None

    def see(self, item: Item) -> Iterator[Finding]:
        """Yield what *item* shows."""
        match item:
            case Said(message=message) if message.role is Role.ASSISTANT:
                yield from self._answers(item)
            case Said(message=message):
                self._answer = self._answer or None  # one that has an id may go on behind its first results
                if not any(isinstance(block, ToolResult) for block in message.content) and not item.meta:
                    self._prompt()
            case RequestFailed():
                yield from self._failed(item)
            case Compacted(micro=False):
                yield from self._compaction(item)
            case Interrupted():
                self._interrupted = item
            case Ended():
                yield from self._end(item)
            case Began():
                self._prompt()
            case _:
                pass

    def _prompt(self) -> None:
        """A run begins."""
        self._turns = self._calls = self._cuts = 0
        self._told.clear()
        self._ended, self._shown, self._interrupted = False, None, None

    def _answers(self, said: Said) -> Iterator[Finding]:
        if said.answer == self._answer:
            self._asks = self._asks or _asks(said)
            self._stop = said.stop or self._stop
            return
        yield from self._recovered(said.place)
        self._answer, self._stop, self._asks = said.answer, said.stop, _asks(said)
        self._calls += 1
        self._turns += 1
        if self._compacted is not None:
            self._compacted += 1
        self._cuts = self._cuts + 1 if said.stop in CUT else 0
        yield from self._limits(said.place)

    def _limits(self, place: Place) -> Iterator[Finding]:
        config = self._config
        counts: tuple[tuple[str, int, int | None], ...] = (
            ("max_turns", self._turns, config.max_turns),
            ("max_model_calls", self._calls, config.max_model_calls),
            ("max_output_recoveries", self._cuts, config.max_output_recoveries + 1),
            ("max_retries", len(self._failures), config.max_retries),
        )
        for name, count, limit in counts:
            if limit is not None and count > limit and name not in self._told:
                self._told.add(name)
                given = limit - 1 if name == "max_output_recoveries" else limit
                yield Finding("limit", place, f"{name} = {given} of this loop would have stopped it here")

    def _failed(self, failed: RequestFailed) -> Iterator[Finding]:
        self._failures.append(failed)
        self._calls += 1
        if failed.shown:
            self._shown = failed.place
        yield from self._limits(failed.place)

    def _recovered(self, place: Place) -> Iterator[Finding]:
        """An answer came: what about the failures before it?"""
        yield from self._storm()
        hidden = [each for each in self._failures if not each.shown]
        if hidden:
            words = f"{len(hidden)} requests failed ({_kinds(hidden)}) before the one that was answered here"
            yield Finding("error-hidden", hidden[0].place, words)
        if self._shown is not None:
            yield Finding("error-shown", self._shown, "an error was shown, and the run went on after it")
        self._failures.clear()
        self._shown = None

    def _storm(self) -> Iterator[Finding]:
        if len(self._failures) < STORM:
            return
        waits = [each.wait_ms for each in self._failures if each.wait_ms is not None]
        grows = all(a <= b for a, b in pairwise(waits))
        how = f", {sum(waits) / 1_000:.1f} s waited, back-off {'grows' if grows else 'does not grow'}"
        words = f"{len(self._failures)} requests failed in a row ({_kinds(self._failures)})"
        yield Finding("retry-storm", self._failures[0].place, words + (how if waits else ""))

    def _compaction(self, item: Compacted) -> Iterator[Finding]:
        before, after = item.before_tokens, item.after_tokens
        if before is not None and after is not None and after >= before:
            yield Finding(
                "compaction-without-effect", item.place, f"{before:,} tokens before, {after:,} after"
            )
        if self._compacted is not None and self._compacted <= SOON:
            words = f"the compaction before it was {self._compacted} answers ago"
            yield Finding("compaction-again", item.place, words)
        self._compacted = 0

    def _end(self, ended: Ended) -> Iterator[Finding]:
        self._ended = True
        terminal = endings.terminal_of(self._format, ended.reason)
        if terminal is not None:
            same = terminal.value == ended.reason
            words = terminal.value if same else f"{ended.reason} is {terminal.value}"
            yield Finding("terminal", ended.place, words)
        elif endings.known(self._format, ended.reason):
            yield Finding("terminal", ended.place, f"{ended.reason} is no end of a loop")
        else:
            words = f"{ended.reason or 'an end without a word'} is not known as an end of {self._format}"
            yield Finding("terminal", ended.place, words)

    def end(self, place: Place) -> Iterator[Finding]:
        """Yield what the end of the conversation shows."""
        yield from self._storm()
        if self._ended or not (self._calls or self._interrupted):
            return
        terminal, why = self._inferred()
        yield Finding("terminal", place, f"{terminal}, for {why}; the transcript does not tell")

    def _inferred(self) -> tuple[str, str]:
        if self._interrupted is not None:
            aborted = Terminal.ABORTED_TOOLS if self._interrupted.in_tool else Terminal.ABORTED_STREAMING
            return aborted.value, "the user interrupted it"
        if self._failures:
            return Terminal.MODEL_ERROR.value, f"its last request failed ({_kinds(self._failures[-1:])})"
        if self._asks:
            return "not finished", "its last answer asks for tools"
        return (
            Terminal.COMPLETED.value,
            f"its last answer asks for nothing{self._stop and f' ({self._stop})'}",
        )


def _asks(said: Said) -> bool:
    return any(isinstance(block, ToolUse) for block in said.message.content)


def _kinds(failures: list[RequestFailed]) -> str:
    names = (each.kind or (str(each.status) if each.status else "") or each.words[:40] for each in failures)
    return ", ".join(dict.fromkeys(filter(None, names))) or "no reason told"
