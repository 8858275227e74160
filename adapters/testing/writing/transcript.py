"""
A recorded run -> the scenario in which it happens again.

The recording says what every port answered; a scenario says it by tables, one
for each tool and hook.  What the format cannot say (late answers, other tools
in the midst of a run, an order of answers that no time gives) is left out;
``Transcript.exact`` tells whether the scenario, played, takes the same course.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from stepfold.adapters.scenarios import format as f
from stepfold.adapters.scenarios.judging.observe import Journal
from stepfold.adapters.scenarios.playing.acts import Director
from stepfold.adapters.scenarios.playing.play import Played, play
from stepfold.adapters.scenarios.playing.tape import Step, state_before
from stepfold.adapters.scenarios.playing.virtual_time import VirtualClock
from stepfold.adapters.scripted import says
from stepfold.adapters.testing.writing.answered import hooks_of, summaries_of
from stepfold.adapters.testing.writing.called import entries_of
from stepfold.adapters.testing.writing.tooled import tools_of
from stepfold.effects.ports import Start
from stepfold.engine import State, UnexpectedEvent, step
from stepfold.engine.effects import Continued, Show
from stepfold.engine.events import (
    AbortRequested,
    BlockCompleted,
    CommandQueued,
    Event,
    HookAnswered,
    Resumed,
    RunStarted,
    StreamClosed,
    StreamFailed,
    ToolEnded,
    ToolsChanged,
)
from stepfold.engine.messages import texts

THE_REST: Final = f.Entry(says("all is done"), f.FOREVER)
LAST_RESORT: Final = "The order of events differs from the recording, which is exact."
PACES: Final = ((0, 0), (1_000, 0), (0, 10_000), (1_000, 10_000))  # ms a block, ms a tool


@attrs.frozen
class Transcript:
    """
    A scenario made of a recording.

    Args:
        scenario: Expects what the run came to, as far as it takes the same course.
        exact: Played, it goes round and ends for the reasons that were recorded.
    """

    scenario: f.Scenario
    exact: bool


def steps_of(begun: Start, events: Iterable[Event]) -> list[Step]:
    """Return *events* with the states and orders of each, up to the first that the engine refuses."""
    state, steps = state_before(begun), []
    for event in events:
        try:
            state, effects = step(state, event, begun.config)
        except UnexpectedEvent:
            break
        steps.append(Step(event, state, effects))
    return steps


def transcript(begun: Start, steps: Sequence[Step], *, title: str, about: str = "") -> Transcript:
    """
    Return the scenario of a recorded run that was begun by a prompt.

    Args:
        begun: What the runs of the recording started from.
        steps: Its events with their orders.
        title: Of the scenario.
        about: What it shows, for people.
    """
    best: tuple[int, f.Scenario, Played | None] | None = None
    for block_ms, tool_ms in PACES:
        scenario = _scenario(begun, steps, title, about, block_ms, tool_ms)
        played = _played(scenario)
        likeness = 0 if played is None else _likeness(played, steps)
        if best is None or likeness > best[0]:
            best = likeness, scenario, played
        if likeness == 3:
            break
    assert best is not None
    likeness, scenario, played = best
    exact = likeness >= 2
    if not exact:
        words = f"{about}\n{LAST_RESORT}" if about else LAST_RESORT
        return Transcript(attrs.evolve(scenario, about=words), False)
    assert played is not None
    acts = tuple(act for place, act in enumerate(scenario.world.acts) if place in played.fired)
    world = attrs.evolve(scenario.world, acts=acts)  # one that never happened changed nothing
    return Transcript(attrs.evolve(scenario, world=world, expect=_expected(played)), True)


def _played(scenario: f.Scenario) -> Played | None:
    """Return what *scenario* comes to; None where playing it breaks off, as a broken loop may make it."""
    try:
        return play(scenario)
    except Exception:  # whatever it is: the recording is exact, and ``check`` will say it
        return None


def _scenario(
    begun: Start, steps: Sequence[Step], title: str, about: str, block_ms: int, tool_ms: int
) -> f.Scenario:
    prompts = tuple(texts(s.event.prompt) for s in steps if isinstance(s.event, RunStarted))
    return f.Scenario(
        title=title,
        about=about,
        config=begun.config,
        prompts=tuple(prompt if prompt.strip() else "go" for prompt in prompts) or ("go",),
        history=begun.messages,
        staged=tuple(f.Staged(each.through, each.summary) for each in begun.collapses),
        world=f.World(
            entries=(*entries_of(steps, block_ms), THE_REST),
            tools=tools_of(begun.tools, steps, tool_ms),
            hooks=hooks_of(begun.config.stop_hooks, steps),
            compactions=summaries_of(steps),
            acts=tuple(_acts(steps)),
        ),
    )


# ---------------------------------------------------------------- what happens from outside


def _acts(steps: Sequence[Step]) -> Iterator[f.Act]:
    """Yield what came from outside, each at the newest point before it that is the first of its name."""
    director = Director((), VirtualClock(), Journal())
    seen: set[f.Point] = set()
    newest: f.Point | None = None
    for one in steps:
        deed = _deed(one.event)
        if deed is not None and newest is not None:
            yield f.Act(newest, deed)
        fresh = director.note(one.event, one.effects) - seen
        seen |= fresh
        if fresh:
            newest = min(fresh, key=_order)


def _order(point: f.Point) -> tuple[bool, str, int, str]:
    """Order the points of one event: what begins tells better where the run is than what ends."""
    ends = point.moment in (f.Moment.CALL_BLOCK, f.Moment.CALL_CLOSED, f.Moment.TOOL_ENDED)
    return ends, point.moment.value, point.number, point.name


def _deed(event: Event) -> f.Deed | None:
    match event:
        case AbortRequested(kind):
            return f.Abort(kind)
        case CommandQueued(command) if (words := texts(command.content)).strip():
            return f.Queue(words)
        case Resumed():
            return f.Crash()
    return None


# ---------------------------------------------------------------- is it the same run?


def _likeness(played: Played, steps: Sequence[Step]) -> int:
    """Return 3 where what was played begins with the recorded events, 2 with its reasons, else 0."""
    again = [one for take in played.takes for one in take.tape.steps]
    if course(again)[: len(course(steps))] != course(steps):
        return 0
    return 3 if _kinds(again)[: len(_kinds(steps))] == _kinds(steps) else 2


def course(steps: Sequence[Step]) -> list[str]:
    """Return why the loop went round and how it ended, in order."""
    found: list[str] = []
    over = False
    for one in steps:
        found += [
            str(effect.item.reason)
            for effect in one.effects
            if isinstance(effect, Show) and isinstance(effect.item, Continued)
        ]
        if one.state.end is not None and not over:
            found.append(one.state.end.reason.value)
        over = one.state.end is not None
    return found


def _kinds(steps: Sequence[Step]) -> list[tuple[str, ...]]:
    """Return what decided the course: the events that are neither late nor beside it."""
    found: list[tuple[str, ...]] = []
    before: State | None = None
    for one in steps:
        after = one.state
        same = before is not None and (before.control, before.phase) == (after.control, after.phase)
        late = same and not one.effects and before is not None and before.data is after.data
        if not late and not isinstance(one.event, ToolsChanged):
            found.append(_kind(one.event))
        before = after
    return found


def _kind(event: Event) -> tuple[str, ...]:
    name = type(event).__name__
    match event:
        case StreamClosed(stop=stop):
            return name, stop.value
        case StreamFailed(failure=failure):
            return name, failure.kind.value
        case HookAnswered(verdict=verdict):
            return name, verdict.value
        case ToolEnded(status=status):
            return name, status.value
        case AbortRequested(kind):
            return name, kind.value
        case BlockCompleted(block=block):
            return name, type(block).__name__
    return (name,)


def _expected(played: Played) -> f.Expect:
    seen = played.observed
    ends = f.EndExpected(
        terminal=seen.last.terminal,
        terminals=tuple(run.terminal for run in seen.runs) if len(seen.runs) > 1 else None,
        transitions=seen.last.transitions,
    )
    return f.Expect(ends=ends, calls=f.CallsExpected(model_calls=len(seen.journal.requests)))
