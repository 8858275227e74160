"""
What holds in every run (specification, section 9), checked on every scenario.

Each check returns one line a violation.  They read what came over the ports,
what the consumer got, and the recorded events with the orders they caused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

from stepfold.adapters.codec import dump_event, load_event
from stepfold.adapters.scenarios.border import wire_messages
from stepfold.adapters.scenarios.format import Tool
from stepfold.adapters.scenarios.judging.limits import limit_violations
from stepfold.adapters.scenarios.judging.observe import Journal, Request, RunSeen, Span, shape_of
from stepfold.adapters.scenarios.judging.protocol import complaints
from stepfold.adapters.scenarios.judging.thinking import thinking_violations
from stepfold.adapters.scenarios.playing.play import Played
from stepfold.adapters.scenarios.playing.tape import Step, Tape, state_before
from stepfold.effects import fold, trace
from stepfold.engine import State, UnexpectedEvent, step
from stepfold.engine.effects import (
    BlockShown,
    CallModel,
    CallShown,
    Continued,
    Effect,
    ErrorShown,
    Finish,
    RunHook,
    RunTool,
    Show,
)
from stepfold.engine.events import (
    BlockCompleted,
    RunStarted,
    Stop,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
)
from stepfold.engine.messages import Origin, user_text

CHECKED = 400_000  # messages of all requests of a scenario that are checked
COMPARED = 1_000  # steps of a log that are compared with the whole history; of a longer one every n-th
CLEAN = frozenset({Stop.END_TURN, Stop.STOP_SEQUENCE, Stop.TOOL_USE, Stop.OTHER})


def violations(played: Played) -> list[str]:
    """Return what does not hold of a played scenario, crashes apart."""
    found = [*request_violations(sampled(played.observed.journal.requests, CHECKED))]
    found += thinking_violations(played, sampled(played.observed.journal.requests, CHECKED))
    for run in played.observed.runs:
        found += run_violations(run)
    found += tool_violations(played.observed.journal, played.scenario.world.tools)
    for take in played.takes:
        found += tape_violations(take.tape)
        found += replay_violations(take.tape)
    for result in played.results:
        if all(result.state != s.state for take in played.takes for s in take.tape.steps):
            found.append("replay: the state that the run returned is none of the recorded ones")
    return found


# ---------------------------------------------------------------- requests


def sampled(requests: list[Request], messages: int) -> list[Request]:
    """Return *requests*; of more than so many *messages* those at both ends (at least twenty)."""
    longest = max((len(request.order.messages) for request in requests), default=1)
    half = max(20, messages // max(1, longest)) // 2
    return requests if len(requests) <= 2 * half else [*requests[:half], *requests[-half:]]


def request_violations(requests: Iterable[Request]) -> Iterator[str]:
    """Every request has the form that the API wants."""
    for request in requests:
        messages = request.messages
        for complaint in complaints(messages, resend=request.order.resend):
            yield f"request of call {request.number}: {complaint}: {list(shape_of(messages))}"


def history_violations(state: State) -> Iterator[str]:
    """A next prompt on this view would make a valid request."""
    view = state.data.messages.append(user_text("and now?", Origin.PROMPT))
    order = CallModel(0, view, state.data.tool_context.model, 1)
    for complaint in complaints(wire_messages(order)):
        yield f"history at the end: {complaint}: {list(shape_of(wire_messages(order)))}"


# ---------------------------------------------------------------- what the consumer saw


def run_violations(run: RunSeen) -> Iterator[str]:
    """An error that is shown is the last thing shown."""
    for place, item in enumerate(run.items):
        if isinstance(item, ErrorShown) and place + 1 < len(run.items):
            after = type(run.items[place + 1]).__name__
            yield f"an error was shown ({item.failure.kind}) and {after} came after it"


# ---------------------------------------------------------------- the recorded events


def tape_violations(tape: Tape) -> Iterator[str]:
    """One terminal and last; hooks only after clean answers; each call ends once; limits; the measure."""
    yield from _terminals(tape.steps)
    yield from _hooks(tape.steps)
    yield from _calls(tape.steps)
    yield from _unsafe_calls(tape.steps)
    yield from _transitions(tape.steps)
    yield from _shown_blocks(tape.steps)
    yield from limit_violations(tape)
    if tape.steps and tape.state.end is not None:
        yield from history_violations(tape.state)


def runs_of(steps: list[Step]) -> list[list[Step]]:
    """Return the steps of each run of a log."""
    runs: list[list[Step]] = []
    for one in steps:
        if isinstance(one.event, RunStarted) or not runs:
            runs.append([])
        runs[-1].append(one)
    return runs


def _terminals(steps: list[Step]) -> Iterator[str]:
    for number, run in enumerate(runs_of(steps), 1):
        ends = [place for place, one in enumerate(run) if any(isinstance(e, Finish) for e in one.effects)]
        if len(ends) > 1:
            yield f"run {number} has {len(ends)} terminals"
        if ends:
            effects = [effect for one in run[ends[0] :] for effect in one.effects]
            finish = next(place for place, effect in enumerate(effects) if isinstance(effect, Finish))
            for effect in effects[finish + 1 :][:1]:
                yield f"run {number} goes on after its terminal: {type(effect).__name__}"


def _hooks(steps: list[Step]) -> Iterator[str]:
    clean = False
    for one in steps:
        match one.event:
            case StreamClosed(stop=stop):
                clean = stop in CLEAN
            case StreamFailed() | StreamCancelled():
                clean = False
        for effect in one.effects:
            if isinstance(effect, RunHook) and not clean:
                yield f"the stop hook {effect.hook} ran after an answer that had failed"


def _calls(steps: list[Step]) -> Iterator[str]:
    """Every call that was started or shown ends exactly once (a new answer may use an id again)."""
    started: Counter[tuple[int, str]] = Counter()
    ended: Counter[tuple[int, str]] = Counter()
    answer = 0
    for effect in (effect for one in steps for effect in one.effects):
        match effect:
            case CallModel(id):
                answer = id
            case RunTool(_, call):
                started[answer, call.id] += 1
            case Show(CallShown(use_id)):
                ended[answer, use_id] += 1
    for (_, use_id), count in ended.items():
        if count > 1:
            yield f"the call {use_id} ended {count} times"
    if steps and steps[-1].state.end is not None:
        for _, use_id in started.keys() - ended.keys():
            yield f"the call {use_id} was started and never ended"


def _unsafe_calls(steps: list[Step]) -> Iterator[str]:
    """No unsafe call starts while the answer that makes it is still open."""
    unsafe: set[str] = set()
    streaming = False
    for one in steps:
        match one.event:
            case BlockCompleted(facts=facts) if facts is not None and not facts.safe:
                unsafe.update(
                    effect.item.block.id  # type: ignore[union-attr]
                    for effect in one.effects
                    if isinstance(effect, Show) and isinstance(effect.item, BlockShown)
                )
            case StreamClosed() | StreamFailed() | StreamCancelled():
                streaming = False
        for effect in one.effects:
            if isinstance(effect, RunTool) and effect.call.id in unsafe and streaming:
                yield f"the unsafe call {effect.call.id} started before its answer was complete"
            if isinstance(effect, CallModel):
                streaming, unsafe = True, set()


def _transitions(steps: list[Step]) -> Iterator[str]:
    """The state names the transition that was taken."""
    for one in steps:
        shown = [e.item for e in one.effects if isinstance(e, Show) and isinstance(e.item, Continued)]
        kept = one.state.control.transition
        if shown and (kept is None or kept.reason.value != str(shown[-1].reason)):
            yield f"the state says that it continued by {kept}, the consumer saw {shown[-1].reason}"


def _shown_blocks(steps: list[Step]) -> Iterator[str]:
    """Every block that was shown is in the log (a call perhaps under another id)."""
    logged = {_nameless(one.event.block) for one in steps if isinstance(one.event, BlockCompleted)}
    for effect in (effect for one in steps for effect in one.effects):
        if isinstance(effect, Show) and isinstance(effect.item, BlockShown):
            block = effect.item.block
            if _nameless(block) not in logged:
                yield f"a block was shown that is not in the log: {block!r}"


def _nameless(block: object) -> tuple[str, ...]:
    name = type(block).__name__
    fields = ("text", "thinking", "signature", "data", "name", "input", "wire", "type")
    return (name, *(str(getattr(block, field, "")) for field in fields))


# ---------------------------------------------------------------- tools as their port saw them


def tool_violations(journal: Journal, tools: tuple[Tool, ...]) -> Iterator[str]:
    """An unsafe call runs alone."""
    safe = {tool.name for tool in tools if tool.safe}
    spans = journal.spans
    for span in spans:
        if span.tool not in safe:
            for other in spans:
                if other is not span and _together(span, other):
                    yield f"the unsafe call {span.use_id} ran beside {other.use_id}"


def _together(one: Span, other: Span) -> bool:
    ends = [float("inf") if span.ended_ms is None else span.ended_ms for span in (one, other)]
    return max(one.started_ms, other.started_ms) < min(ends)


# ---------------------------------------------------------------- replay


def replay_violations(tape: Tape) -> Iterator[str]:
    """The log can be folded, and gives again what it gave."""
    try:
        yield from _replay(tape)
    except UnexpectedEvent as problem:
        yield f"replay: {problem}"


def _replay(tape: Tape) -> Iterator[str]:
    """The same events, read back from their written form, give the same states and orders."""
    steps, config = tape.steps, tape.begun.config
    events = [load_event(dump_event(one.event)) for one in steps]
    before = state_before(tape.begun)
    apart = 1 + len(steps) // COMPARED
    for number, (one, (event, state, effects)) in enumerate(
        zip(steps, trace(events, before, config), strict=True), 1
    ):
        whole = number % apart == 0 or number == len(steps)
        if event != one.event or not _same(one, state, effects, whole):
            yield f"replay: event {number} ({type(event).__name__}) gives something else than it did"
            return
    for number, (earlier, one) in enumerate(pairwise(steps), 2):
        if step(earlier.state, one.event, config) != (one.state, one.effects):
            yield f"replay from event {number}: {type(one.event).__name__} gives something else than it did"
            return
    middle = len(steps) // 2
    if steps and fold(events[middle + 1 :], steps[middle].state, config) != steps[-1].state:
        yield f"replay: the fold from event {middle + 1} on ends somewhere else"


def _same(one: Step, state: State, effects: tuple[Effect, ...], whole: bool) -> bool:
    """Whether a replayed step is the recorded one; not *whole*: without what grows with the history."""
    if whole:
        return state == one.state and effects == one.effects
    return state.control == one.state.control and list(map(type, effects)) == list(map(type, one.effects))
