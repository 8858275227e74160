"""A new recording that shares the beginning of another one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from stepfold.adapters.recording import Recording, RecordingError
from stepfold.adapters.recording.format import REDACTED, header_line
from stepfold.adapters.recording.writing import recording_bytes
from stepfold.effects import trace
from stepfold.engine import UnexpectedEvent
from stepfold.engine.events import Event


def forked(recording: Recording, at: int, events: Sequence[Event] = ()) -> bytes:
    """
    Return the contents of a recording that begins as *recording* does and goes on with *events*.

    Nothing of the beginning happens again when it is gone on with: answers and
    results are in it.  What was open after it is asked again, as after a crash.

    Args:
        recording: Where the beginning comes from.
        at: How many of its entries are taken over.
        events: What follows.

    Raises:
        RecordingError: There are not so many entries, or an event cannot happen there.
    """
    count = len(recording.events)
    if not 0 <= at <= count:
        raise RecordingError(f"there is no entry {at}; wanted a number from 0 to {count}")
    begun = recording.begun
    sha = recording.header.sha or hashlib.sha256(header_line(begun)[:-1]).hexdigest()
    origin: dict[str, Any] = {"header": sha, "entries": at}
    whole = (*recording.events[:at], *events)
    number = 0
    steps = []
    try:
        for one in trace(whole, recording.state(), begun.config):
            number += 1
            steps.append(one)
    except UnexpectedEvent as error:
        which = f"event {number + 1 - at} of those that follow" if number >= at else f"entry {number + 1}"
        raise RecordingError(f"{which}: it cannot happen there: {error}") from error
    redacted = REDACTED in recording.header.keeps  # whoever goes on with the fork goes on so, too
    return recording_bytes(begun, steps, forked_from=origin, redacted=redacted)
