"""
What would have happened under other limits, as far as a recording can tell.

Two folds go side by side: one as it was recorded, one under the other Config.
An answer is given to the order that stands in the place of the one that it was
recorded for.  The first place where the other fold asks for something else, or
ends, is where the recording has no answer any more.
"""

from __future__ import annotations

from typing import Any

import attrs

from stepfold.adapters.recording import Fingerprints, Recording
from stepfold.adapters.recording.comparing import differ
from stepfold.adapters.recording.outcome import TAGS, plain_effect
from stepfold.engine import Config, State, UnexpectedEvent, step
from stepfold.engine.effects import Effect, Owed
from stepfold.engine.events import Event


@attrs.frozen
class WhatIf:
    """
    What would have happened.

    Args:
        entry: Number of the last entry that fits, counted from 1; 0: none does.
        entries: How many the recording holds.
        ended: Reason of the end that the run would have come to there; None: it had come to none.
        why: Of that end, or why the recording has no answer; "" where it goes through.
        asked: What would have been asked that the recording has no answer to.
        assumed: Fields of orders that differ though the recorded answer was taken, as ``call_model.model``.
    """

    entry: int
    entries: int
    ended: str | None
    why: str
    asked: tuple[str, ...]
    assumed: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether it goes through to the recording's end."""
        return not self.why


def what_if(recording: Recording, config: Config) -> WhatIf:
    """Fold *recording* under *config* as well, until they part."""
    return _Pair(recording, config).folded()


class _Pair:
    def __init__(self, recording: Recording, config: Config) -> None:
        self._recording = recording
        self._config = config
        self._names: dict[int, int] = {}  # ids of orders: recorded, other
        self._assumed: dict[str, None] = {}
        self._prints = Fingerprints()

    def folded(self) -> WhatIf:
        recorded = other = self._recording.state()
        for number, event in enumerate(self._recording.events, 1):
            recorded, wanted = step(recorded, event, self._recording.begun.config)
            try:
                other, got = step(other, self._named(event), self._config)
            except (UnexpectedEvent, KeyError) as problem:
                words = f"the next recorded event does not fit: {problem}"
                return self._parted(number - 1, other, words, ())
            missing = self._paired(wanted, got)
            ended = other.end is not None and recorded.end is None
            if ended or missing or _kinds(recorded) != _kinds(other):
                end = other.end
                words = (
                    f"it ends: {end.why}"
                    if ended and end is not None
                    else f"it asks for {', '.join(missing)}, which was not asked then"
                    if missing
                    else "it does not ask for what was asked then"
                )
                return self._parted(number, other, words, missing)
        end = other.end
        count = len(self._recording.events)
        return WhatIf(count, count, end.reason.value if end else None, "", (), tuple(self._assumed))

    def _parted(self, entry: int, other: State, words: str, asked: tuple[str, ...]) -> WhatIf:
        end = other.end
        ended = end.reason.value if end else None
        count = len(self._recording.events)
        return WhatIf(entry, count, ended, words, asked, tuple(self._assumed))

    def _named(self, event: Event) -> Event:
        id: Any = getattr(event, "effect_id", None)
        return event if id is None else attrs.evolve(event, effect_id=self._names[id])  # type: ignore[arg-type]

    def _paired(self, wanted: tuple[Effect, ...], got: tuple[Effect, ...]) -> tuple[str, ...]:
        """Pair orders by kind, in order; return the kinds that only the other fold asks for."""
        old, new = _owed(wanted), _owed(got)
        missing = []
        for order in new:
            twin = next((each for each in old if type(each) is type(order)), None)
            if twin is None:
                missing.append(TAGS[type(order)])
                continue
            old.remove(twin)
            self._names[twin.id] = order.id
            found = differ(self._plain(twin), self._plain(order), TAGS[type(order)], times=True)
            if found is not None:
                self._assumed[found[0]] = None
        return tuple(missing)

    def _plain(self, order: Owed) -> dict[str, Any]:
        plain: dict[str, Any] = plain_effect(order, self._prints)
        return plain | {"id": 0}


def _owed(effects: tuple[Effect, ...]) -> list[Owed]:
    return [effect for effect in effects if isinstance(effect, Owed)]


def _kinds(state: State) -> list[str]:
    return sorted(TAGS[type(order)] for order in state.data.ledger.owed)
