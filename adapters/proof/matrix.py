"""
What each continue does to each field, by execution: before and after every continue that is taken.

A cell that says "keep" is only told from a reset where the field was not at
its start before; ``unseen`` lists the cells that no run told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs

from stepfold.adapters.proof.spec import FIELDS, Spec
from stepfold.adapters.proof.walk import Taken
from stepfold.engine.config import Config
from stepfold.engine.messages import Origin
from stepfold.engine.state import Compaction, Spending, State

NOTHING: Final = Compaction()
# Where each field stands, but for messages and ledgers.
PLACES: Final[Mapping[str, Callable[[State], Any]]] = {
    "output_recoveries": lambda s: s.control.recovery.output_recoveries,
    "reactive_compacted": lambda s: s.control.recovery.reactive_compacted,
    "output_limit_override": lambda s: s.control.recovery.output_limit_override,
    "pending_tool_summary": lambda s: s.data.pending_tool_summary,
    "stop_hook_active": lambda s: s.control.recovery.stop_hook_active,
    "turn": lambda s: s.control.turn,
    "tool_context": lambda s: s.data.tool_context,
}
STARTS: Final[Mapping[str, Any]] = {
    "output_recoveries": 0,
    "reactive_compacted": False,
    "output_limit_override": None,
    "pending_tool_summary": None,
    "stop_hook_active": False,
    "turn": None,
    "tool_context": None,
}
# What the last messages of the view are called, by the words of the specification.
ENDS: Final[Mapping[str, tuple[Origin, ...]]] = {
    "view, partial, resume": (Origin.RESUME,),
    "view, answer, errors": (Origin.HOOK,),
    "view, answer, nudge": (Origin.NUDGE,),
    "view, answer, results": (Origin.RESULTS, Origin.COMMAND, Origin.ATTACHMENT),
}


@attrs.define
class Matrix:
    """The 7 x 10 cells: watched, and which of them were told apart from another value."""

    spec: Spec
    told: set[tuple[str, str]] = attrs.Factory(set)

    def watch(self, taken: Taken, config: Config) -> Iterator[str]:
        """Yield the cells that this continue breaks."""
        reason = str(taken.row.outcome)
        words = self.spec.matrix.get(reason)
        if words is None:
            yield f"the spec has no continue {reason}"
            return
        for name in FIELDS:
            word = words[name]
            try:
                right = _holds(name, word, taken, config)
            except ValueError as problem:
                yield f"continues.{reason}.{name}: {problem}"
                continue
            if not right:
                yield f"continues.{reason}.{name}: the spec says {word!r}; the engine does something else"
            elif _tells(name, word, taken):
                self.told.add((reason, name))

    def unseen(self) -> list[str]:
        """Return the cells that no continue told apart."""
        cells = [(reason, name) for reason in self.spec.matrix for name in FIELDS]
        return [f"continues.{reason}.{name}" for reason, name in cells if (reason, name) not in self.told]


def _holds(name: str, word: Any, taken: Taken, config: Config) -> bool:
    match name:
        case "messages":
            return _messages(word, taken)
        case "compaction":
            return _compaction(word, taken)
        case "ledgers":
            return _ledgers(word, taken)
    before, after = PLACES[name](taken.before), PLACES[name](taken.after)
    match word:
        case "keep":
            return bool(after == before)
        case "+1":
            return bool(after == before + 1)
        case "none":
            return after is None
        case "new":
            return _new(name, before, after, taken)
        case str():
            raise ValueError(f"{word!r} is not known; wanted keep, none, +1, new or a value")
        case _ if name == "output_limit_override":
            return bool(after == config.escalated_output_tokens)
        case _:
            return bool(after == word)


def _new(name: str, before: Any, after: Any, taken: Taken) -> bool:
    """A pending summary is the order that was just made; tools are those that the host offers by now."""
    if name == "pending_tool_summary":
        made = [o.id for o in taken.after.data.ledger.owed if type(o).__name__ == "Summarise"]
        return after is None or after in made
    changed = taken.before.data.side.tools_changed
    return bool(after == before if changed is None else after.tools == changed)


def _tells(name: str, word: Any, taken: Taken) -> bool:
    """Return whether this continue would have shown another word for what it is."""
    before = taken.before
    match name:
        case "messages" | "turn" | "ledgers":
            return True
        case "compaction":
            book = before.control.compaction
            return book.compacted and (word != "cleared" or book.failures > 0)
        case "tool_context":
            return word != "new" or before.data.side.tools_changed is not None
        case "pending_tool_summary" if word == "new":
            return taken.after.data.pending_tool_summary is not None
    value = PLACES[name](before)
    if word in ("none", "keep", "+1") or word == STARTS[name]:
        return bool(value != STARTS[name])
    return bool(value == STARTS[name])


def _messages(word: str, taken: Taken) -> bool:
    before, after = taken.before.data.messages, taken.after.data.messages
    if word in ("drained", "compacted"):  # another view, which its own tests judge
        return True
    if len(after) < len(before) or tuple(after.first(len(before))) != tuple(before):
        return False
    if word == "view":
        return len(after) == len(before)
    if word not in ENDS:
        raise ValueError(f"{word!r} is not known; wanted view, drained, compacted, {', '.join(ENDS)}")
    return len(after) > len(before) and after[-1].origin in ENDS[word]


def _compaction(word: str, taken: Taken) -> bool:
    before, after = taken.before.control.compaction, taken.after.control.compaction
    kept = (before.compacted, before.turns_since, before.failures)
    match word:
        case "keep":
            wanted = kept
        case "cleared":
            wanted = (False, 0, before.failures)
        case "a turn older":
            wanted = (before.compacted, before.turns_since + before.compacted, before.failures)
        case _:
            raise ValueError(f"{word!r} is not known; wanted keep, cleared or a turn older")
    return (after.compacted, after.turns_since, after.failures) == wanted


def _ledgers(word: str, taken: Taken) -> bool:
    """Hook blocks are spent by the answer that blocks; what is left of them falls with the continue."""
    old, new = taken.before.control, taken.after.control
    budget, later = _budget(old.spending), _budget(new.spending)
    blocks = (taken.before.data.book.hook_blocks, old.hooks.blocks_left)
    left = (taken.after.data.book.hook_blocks, new.hooks.blocks_left)
    match word:
        case "keep":
            return budget == later and blocks == left
        case "blocks":
            return budget == later and sum(left[0]) >= sum(blocks[0]) and left[1] < blocks[1]
        case "continuation":
            used = old.spending.output_tokens
            return blocks == left and later == (budget[0] + 1, used - budget[2], used)
    raise ValueError(f"{word!r} is not known; wanted keep, blocks or continuation")


def _budget(spent: Spending) -> tuple[int, int, int]:
    return spent.continuations, spent.last_delta, spent.last_total
