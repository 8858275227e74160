"""Rules about calls, results and thinking: what the API, or a model, would trip over."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from stepfold.adapters.linting.finding import Finding
from stepfold.adapters.transcripts.items import Compacted, Item, Place, Said
from stepfold.engine.messages import Role, Thinking, ToolResult, ToolUse

REPEATS = 3  # times that the same calls may come to the same results


class Protocol:
    """
    Holds one conversation against the rules of the protocol.

    Remembers ids and hashes, never what was said.
    """

    def __init__(self) -> None:
        self._asked: dict[str, Place] = {}  # every call, and where
        self._open: dict[str, str] = {}  # calls without a result: name
        self._answered: set[str] = set()
        self._answer: str | None = None  # id of the answer that is being told; None: none is
        self._last: tuple[Place, bool] | None = None  # the last answer: whether it ends in thinking
        self._thinking: dict[str, bytes] = {}
        self._batch: dict[str, bytes] = {}
        self._history: bytes = b""
        self._times = 1

    def see(self, item: Item) -> Iterator[Finding]:
        """Yield what *item* shows."""
        match item:
            case Said(message=message) if message.role is Role.ASSISTANT:
                yield from self._answers(item)
            case Said():
                yield from self._results(item)
            case Compacted(micro=False):
                self._open.clear()  # what was open is in no request any more
                self._last = None
            case _:
                pass

    def _answers(self, said: Said) -> Iterator[Finding]:
        if said.answer != self._answer:
            yield from self._asked_again(said.place)
            yield from self._batch_over(said.place)
        self._answer = said.answer
        for block in said.message.content:
            if isinstance(block, ToolUse):
                yield from self._call(block, said.place)
            elif isinstance(block, Thinking) and block.signature:
                yield from self._thought(block, said.place)
        if said.message.content:
            self._last = (said.place, isinstance(said.message.content[-1], Thinking))

    def _asked_again(self, place: Place) -> Iterator[Finding]:
        """The model is asked again: every call must have its result."""
        for id, name in self._open.items():
            yield Finding("missing-result", self._asked[id], f"the call {id} of {name} has no result")
        self._open.clear()
        if self._last is not None and self._last[1]:
            yield Finding("thinking-last", self._last[0], "the answer ends in thinking, and was sent again")
        self._last = None

    def _call(self, use: ToolUse, place: Place) -> Iterator[Finding]:
        if not use.id:
            return
        if use.id in self._asked:
            first = self._asked[use.id].line
            yield Finding("duplicate-id", place, f"the call id {use.id} was used before, in line {first}")
            self._answered.discard(use.id)
        self._asked.setdefault(use.id, place)
        self._open[use.id] = use.name
        self._batch[use.id] = _hash(use.name, use.input)

    def _thought(self, block: Thinking, place: Place) -> Iterator[Finding]:
        name, text = _hash(block.signature).hex(), _hash(block.thinking)
        if self._thinking.setdefault(name, text) != text:
            yield Finding("thinking-changed", place, "its text is not the one that was signed before")

    def _results(self, said: Said) -> Iterator[Finding]:
        self._answer = self._answer or None  # one that has an id may go on behind its first results
        for block in said.message.content:
            if not isinstance(block, ToolResult):
                continue
            if block.use_id not in self._asked:
                yield Finding("orphan-result", said.place, f"the result of {block.use_id} answers no call")
            elif block.use_id in self._answered:
                yield Finding("duplicate-id", said.place, f"a second result for the call {block.use_id}")
            self._open.pop(block.use_id, None)
            self._answered.add(block.use_id)
            if block.use_id in self._batch:
                self._batch[block.use_id] = _hash(self._batch[block.use_id].hex(), repr(block.content))

    def _batch_over(self, place: Place) -> Iterator[Finding]:
        """The calls of an answer have come to something: is it what they came to before?"""
        if not self._batch:
            return
        told = _hash(*(each.hex() for each in self._batch.values()))
        self._times = self._times + 1 if told == self._history else 1
        if self._times == REPEATS:
            words = f"the same calls came to the same results {REPEATS} times in a row"
            yield Finding("repeated-call", place, words)
        self._history = told
        self._batch = {}

    def end(self, place: Place) -> Iterator[Finding]:
        """Yield what the end of the conversation shows."""
        yield from self._batch_over(place)
        for id, name in self._open.items():
            yield Finding("open-call", self._asked[id], f"the call {id} of {name} has no result at the end")


def _hash(*parts: str) -> bytes:
    whole = "\0".join(parts).encode(errors="replace")
    return hashlib.blake2b(whole, digest_size=12).digest()
