"""``stepfold show``, ``fork`` and ``diff``: what is in recordings, and what else could follow."""

from __future__ import annotations

import json as jsons
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import attrs
import orjson

from stepfold.adapters.cli.exits import FAILED, OK, Problem
from stepfold.adapters.cli.terminal.words import end_line, harmless, line_of
from stepfold.adapters.codec import CodecError, event_from, plain_event
from stepfold.adapters.recording import KeptDelta, Recording, RecordingError, read_deltas
from stepfold.adapters.replay.folding import whole_recording
from stepfold.adapters.travel.aligning import Alignment, Stretch, aligned, without_numbers
from stepfold.adapters.travel.forking import forked
from stepfold.adapters.travel.timeline import Instant, Moment, instant, moments
from stepfold.engine.events import Event
from stepfold.engine.messages import texts

BAR: Final = 20  # characters of a limit's bar
TAIL: Final = 4  # messages that are shown of a view


# -------------------------------------------------------------------------- show


def show_command(file: Path, *, at: int | None, screen: bool, json: bool) -> int:
    """Print the timeline of *file*, how it stood after entry *at*, or what the screen showed."""
    recording = _read(file)
    if screen:
        return _screen(file)
    if at is not None:
        try:
            then = instant(recording, at)
        except RecordingError as error:
            raise Problem(f"{file}: {error}") from error
        if json:
            print(jsons.dumps(then.plain(), ensure_ascii=False))
        else:
            print("\n".join(_instant_lines(then)))
        return OK
    first: int | None = None
    for moment in moments(recording):
        first = moment.at_ms if first is None else first
        if json:
            print(jsons.dumps(attrs.asdict(moment), ensure_ascii=False))
        else:
            print("\n".join(_moment_lines(moment, first)))
    return OK


def _read(file: Path) -> Recording:
    try:
        return whole_recording(file)
    except RecordingError as error:
        raise Problem(str(error)) from error


def _moment_lines(moment: Moment, first_ms: int) -> Iterator[str]:
    seconds = (moment.at_ms - first_ms) / 1_000
    id = "" if moment.effect_id is None else f" {moment.effect_id}"
    orders = f"  -> {', '.join(moment.orders)}" if moment.orders else ""
    width = max(40, shutil.get_terminal_size((120, 24)).columns - 44 - len(orders))
    yield f"{moment.entry:5}  {seconds:+9.3f}s  {moment.event + id:22} {line_of(moment.words, width)}{orders}"
    for reason in moment.continued:
        yield f"       -- {reason}"
    if moment.ended is not None:
        yield f"       == {moment.ended}"


def _instant_lines(then: Instant) -> Iterator[str]:
    state = then.state
    control = state.control
    yield f"after entry {then.entry} of {then.of}: {control.phase.value}, turn {control.turn}"
    if control.transition is not None:
        yield f"  last continue: {control.transition.reason.value}"
    if state.end is not None:
        yield f"  ended: {end_line(state.end)}"
    for order in state.data.ledger.owed:
        yield f"  open: {type(order).__name__} {order.id}"
    yield "limits"
    for name, used, limit in then.limits():
        full = min(BAR, round(BAR * used / limit)) if limit else BAR
        yield f"  {name:24} {'#' * full}{'.' * (BAR - full)} {used:,} of {limit:,}"
    yield f"view: {len(state.data.messages)} messages, about {control.fill.tokens:,} tokens"
    count = len(state.data.messages)
    for number in range(max(0, count - TAIL), count):
        message = state.data.messages[number]
        kinds = ", ".join(type(block).__name__ for block in message.content)
        words = line_of(texts(message.content), 80) or f"({kinds})"
        yield f"  {number + 1:5} {message.role.value:9} {words}"


def _screen(file: Path) -> int:
    """Print the text of streams as it was shown, piece by piece."""
    try:
        _, deltas = read_deltas(file)
    except RecordingError as error:
        raise Problem(str(error)) from error
    if not deltas:
        raise Problem(f"{file}: it holds no pieces of streams; run --record FILE --deltas keeps them")
    last: KeptDelta | None = None
    for kept in deltas:
        if last is not None and (last.effect_id, last.before) != (kept.effect_id, kept.before):
            print()
        if kept.delta.get("$type") == "text_delta":
            print(harmless(str(kept.delta.get("text", ""))), end="", flush=True)
        last = kept
    print()
    return OK


# -------------------------------------------------------------------------- fork


def fork_command(file: Path, *, at: int, events: Sequence[str], record: Path) -> int:
    """Write a new recording that begins as *file* does up to entry *at*, and goes on with *events*."""
    recording = _read(file)
    following = tuple(event for given in events for event in _given(given))
    try:
        content = forked(recording, at, following)
    except RecordingError as error:
        raise Problem(f"{file}: {error}") from error
    except CodecError as error:
        raise Problem(f"--event: {error}") from error
    try:
        with record.open("xb") as new:
            new.write(content)
    except FileExistsError:
        raise Problem(f"--record: {record} exists already; wanted a new file") from None
    except OSError as error:
        record.unlink(missing_ok=True)
        raise Problem(f"--record: {record}: {error.strerror or error}") from error
    count = at + len(following)
    print(f"{record}: {count} entries, {at} of them from {file}; stepfold run --resume goes on with it")
    return OK


def _given(text: str) -> Iterator[Event]:
    """Return the events of an ``--event``: JSON, or a file of JSON lines."""
    if text.lstrip().startswith("{"):
        lines, place = [text], "--event"
    else:
        place = text
        try:
            lines = Path(text).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            words = getattr(error, "strerror", None) or error
            raise Problem(f"--event: {text}: {words}; wanted JSON or a file of JSON lines") from error
    for number, line in enumerate(lines, 1):
        try:
            plain = orjson.loads(line)
            yield event_from(plain["event"] if isinstance(plain, dict) and "event" in plain else plain)
        except (orjson.JSONDecodeError, CodecError) as error:
            raise Problem(f"{place}, line {number}: {error}") from error


# -------------------------------------------------------------------------- diff


def diff_command(left: Path, right: Path, *, json: bool) -> int:
    """Print where two recordings part and meet again; 0 they do not, 1 they do."""
    one, other = _read(left), _read(right)
    found = aligned(one, other)
    if json:
        print(jsons.dumps(_diff_data(found, one, other), ensure_ascii=False))
    else:
        print("\n".join(_diff_lines(found, one, other, left, right)))
    return OK if found.same else FAILED


def _diff_data(found: Alignment, one: Recording, other: Recording) -> dict[str, Any]:
    return {
        "same": found.same,
        "aligned": found.whole,
        "header": [{"field": place, "left": a, "right": b} for place, a, b in found.header],
        "stretches": [attrs.asdict(stretch) for stretch in found.stretches],
        "ends": [_end(one), _end(other)],
    }


def _end(recording: Recording) -> str | None:
    end = instant(recording, len(recording.events)).state.end
    return None if end is None else end.reason.value


def _diff_lines(found: Alignment, one: Recording, other: Recording, left: Path, right: Path) -> Iterator[str]:
    yield f"--- {left}"
    yield f"+++ {right}"
    for place, a, b in found.header:
        yield f"  {place}: {line_of(repr(a), 100)} and {line_of(repr(b), 100)}"
    for stretch in found.stretches:
        if stretch.kind == "same":
            yield f"  {_range(stretch)} the same"
        elif not found.whole:
            yield f"  {_range(stretch)} differ; they are too many to align"
        else:
            yield f"@@ {_range(stretch)} @@"
            yield from _stretch_lines(stretch, one, other)
    yield f"== {_end(one) or 'not finished'} and {_end(other) or 'not finished'}"


def _range(stretch: Stretch) -> str:
    return " and ".join(
        f"{begin + 1} to {end}" if end > begin else f"none after {begin}"
        for begin, end in (stretch.left, stretch.right)
    )


def _stretch_lines(stretch: Stretch, one: Recording, other: Recording) -> Iterator[str]:
    here = [_entry(one.events[at]) for at in range(*stretch.left)]
    there = [_entry(other.events[at]) for at in range(*stretch.right)]
    if not sys.stdout.isatty():
        yield from (f"-{stretch.left[0] + at + 1:5} {text}" for at, text in enumerate(here))
        yield from (f"+{stretch.right[0] + at + 1:5} {text}" for at, text in enumerate(there))
        return
    width = (shutil.get_terminal_size((120, 24)).columns - 3) // 2
    for a, b in zip_longest(here, there, fillvalue=""):
        yield f"{line_of(a, width):{width}} | {line_of(b, width)}"


def _entry(event: Event) -> str:
    plain = without_numbers(plain_event(event))
    kind = plain.pop("$type")
    return f"{kind} {line_of(orjson.dumps(plain).decode(), 200)}"
