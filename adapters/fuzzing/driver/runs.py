"""
One whole fuzzed run of the bare engine, from a stream of small choices.

The choices are bytes: a header that says how the run is set up, then a gene of
eight bytes for each thing that happens.  The same bytes give the same run.
Where they end, the world turns friendly, so that every run comes to its end.
A byte of 0 is always the plainest choice: that is what shrinking goes towards.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import attrs

from stepfold.adapters.fuzzing.driver.machine import Machine, RanAway
from stepfold.adapters.fuzzing.driver.orders import MOVING
from stepfold.adapters.fuzzing.driver.requests import SIGNED
from stepfold.adapters.fuzzing.driver.rules import Broken, Rule, one_line
from stepfold.adapters.fuzzing.driver.setups import HEADER, Setup, setup_of
from stepfold.adapters.fuzzing.driver.watch import AT_REST, Watch
from stepfold.adapters.testing.answers import (
    ANSWERS,
    EITHER,
    answer,
    block,
    call,
    one_of_each,
    server_call,
    server_result,
)
from stepfold.adapters.testing.world import Fault, Pick
from stepfold.engine import Config, State, UnexpectedEvent
from stepfold.engine.effects import CallModel
from stepfold.engine.events import (
    AbortRequested,
    BlockCompleted,
    Command,
    CommandQueued,
    Event,
    Resumed,
    RunStarted,
    StreamFailed,
    ToolsChanged,
)
from stepfold.engine.messages import Text, Thinking
from stepfold.engine.phases import PhaseKind
from stepfold.engine.state import Step

T = TypeVar("T")
GENE: Final = 8
PATIENCE: Final = 60  # friendly events after which a run counts as one that never ends
ANSWERED: Final = 205  # a first byte below: an order is answered; else something comes from outside
SELDOM: Final = 150  # the same where a run is not for long: in all phases but Sampling
RESTS: Final = 225  # a first byte below, between two runs: the next prompt comes
SAMPLING: Final = PhaseKind.SAMPLING
KEPT_SETUPS: Final = 600
THOROUGH: Final = 8  # in one run of so many, each request is read as it goes out
PROMPT: Final = (Text("go"),)
SPEAKS: Final = ("end", "call", "call", "call", "block", "block", "end", "fail", "fail", "search")
Invariant: TypeAlias = Callable[[State, Event, tuple[Any, ...], State], object]


@attrs.define
class Played:
    """
    A run that was played.

    Args:
        setup: How it was set up.
        events: What happened, in order; with ``kept`` off, empty.
        state: Where it stands at the end.
        broken: The rule that does not hold, or None.
        steps: How many events were taken.
        stem: Whether other runs can begin as this one did.
    """

    setup: Setup
    events: list[Event]
    state: State
    broken: Broken | None = None
    steps: int = 0
    stem: bool = False


@attrs.frozen
class _Begun:
    """A run up to some place in its choices: what it is now, the rows taken, what was wrong with it."""

    run: _Run
    trail: tuple[int, ...]
    broken: Broken | None
    place: int = HEADER


class Driver:
    """
    Plays runs on one machine.

    Args:
        machine: What is fuzzed.
        invariants: Called with (state before, event, effects, state after); what they return
            but None, True and "" is what is wrong, what they raise too.
        config: The config of every run; None: each run's choices say it.
    """

    def __init__(
        self, machine: Machine, invariants: tuple[Invariant, ...] = (), config: Config | None = None
    ) -> None:
        self.machine = machine
        self._config = config
        self._invariants = invariants
        self._begun: OrderedDict[bytes, _Begun] = OrderedDict()
        self._stem: tuple[bytes, _Begun] | None = None

    def begun(self, header: bytes) -> _Begun:
        """Return what *header* sets up, with its first prompt taken; the newest are kept."""
        found = self._begun.get(header)
        if found is None:
            run = _Run(self.machine.step, setup_of(header, self._config), self._invariants)
            self.machine.trail.clear()
            broken = None
            try:
                run.prompt()
            except (Broken, RanAway) as problem:
                broken = problem if isinstance(problem, Broken) else Broken(Rule.AWAY, str(problem))
            found = self._begun[header] = _Begun(run, tuple(self.machine.trail), broken)
            if len(self._begun) > KEPT_SETUPS:
                self._begun.popitem(last=False)
        return found

    def useful(self, header: bytes) -> bool:
        """Whether a run with *header* does more than end with its prompt."""
        begun = self.begun(header)
        return begun.broken is not None or not begun.run.watch.ended

    def play(self, tape: bytes, *, keep: bool = False, stem: int = 0) -> Played:
        """
        Play the run that *tape* says; ``broken`` of what is returned says what does not hold.

        A state never changes, so a run can have many futures for one past: the
        first step is the same in all runs of one header, and is taken and
        judged once; so are the first *stem* bytes, for as long as runs that
        begin with them follow each other.
        """
        thorough = keep or tape[-1] % THOROUGH == 0
        begun = self.begun(tape[:HEADER]) if stem <= HEADER else self._grown(tape[:stem], thorough)
        run = begun.run.fork(keep)
        open = stem > HEADER and begun.broken is None and not run.watch.ended
        played = Played(run.setup, run.events, run.state, begun.broken, run.steps, open)
        trail = self.machine.trail
        trail.clear()
        trail += begun.trail
        if begun.broken is not None:
            return played
        run.watch.thorough = thorough
        try:
            run.whole(tape, begun.place)
        except Broken as broken:
            played.broken = broken
        except RanAway as problem:
            played.broken = Broken(Rule.AWAY, str(problem))
        played.state, played.steps = run.state, run.steps
        return played

    def _grown(self, head: bytes, thorough: bool) -> _Begun:
        """Return the run after the choices of *head*; it is kept until another one is wanted."""
        if self._stem is not None and self._stem[0] == head:
            return self._stem[1]
        begun = self.begun(head[:HEADER])
        run, broken, trail = begun.run.fork(False), begun.broken, self.machine.trail
        trail.clear()
        trail += begun.trail
        run.watch.thorough = thorough
        if broken is None:
            try:
                run.genes(head, HEADER)
            except Broken as problem:
                broken = problem
            except RanAway as problem:
                broken = Broken(Rule.AWAY, str(problem))
        grown = _Begun(run, tuple(trail), broken, len(head))
        self._stem = head, grown
        return grown


class _Run:
    """The run while it is played."""

    def __init__(self, step: Callable[..., Step], setup: Setup, invariants: tuple[Invariant, ...]) -> None:
        self.step = step
        self.setup = setup
        self.state = setup.first
        self.watch = Watch(setup.config)
        self.events: list[Event] = []
        self.steps = 0
        self.now_ms = 0
        self.runs = 0
        self.answers: list[Event] = []  # given since the process began: each may come again
        self._invariants = invariants
        self._keep = True

    def fork(self, keep: bool) -> _Run:
        """Return a run of its own that stands where this one stands."""
        other = _Run.__new__(_Run)
        other.step, other.setup, other.state = self.step, self.setup, self.state
        other.watch = self.watch.fork()
        other.events = list(self.events) if keep else []
        other.steps, other.now_ms, other.runs = self.steps, self.now_ms, self.runs
        other.answers = list(self.answers)
        other._invariants, other._keep = self._invariants, keep
        return other

    def whole(self, tape: bytes, place: int) -> None:
        """Play from *place* to the end of *tape*, and on until the run is over."""
        self.genes(tape, place)
        left = PATIENCE
        while not self.watch.ended:
            self.answer(friendly, any_order=False)
            left -= 1
            if left < 0:
                raise Broken(Rule.ENDS, f"it goes on after {PATIENCE} friendly answers")

    def genes(self, tape: bytes, place: int) -> None:
        """Let happen what *tape* says from *place* on."""
        watch = self.watch
        for at in range(place, len(tape) - GENE + 1, GENE):
            if watch.ended:
                if not self.setup.again:
                    break
                if tape[at] < RESTS:
                    self.prompt()
                    continue
            self.gene(tape, at)

    def prompt(self) -> None:
        """A prompt begins the next run."""
        self.runs += 1
        self.take(RunStarted(PROMPT, f"run{self.runs}", 1, self.now_ms))

    def gene(self, tape: bytes, place: int) -> None:
        """Let one thing happen."""
        what, outside = tape[place], self.setup.outside
        pick = picks(tape, place + 1)
        bound = ANSWERED if self.state.control.phase is SAMPLING else SELDOM
        if what < bound or not outside:
            if self.watch.owed:
                self.answer(pick, any_order=bool(what & 1))
            return
        world = self.setup.world
        match pick(outside):
            case Fault.ABORTS:
                self.take(AbortRequested(pick(world.aborts), self.now_ms))
            case Fault.DEATHS:
                self.take(Resumed(self.now_ms))
                self.answers.clear()
            case Fault.QUEUE:
                words = (Text(pick(world.said.texts) + "!"),)
                self.take(CommandQueued(Command(f"c{self.steps}", words), self.now_ms))
            case Fault.TOOL_CHANGES:
                self.take(ToolsChanged(pick(world.other_tools), self.now_ms))
            case Fault.IDLE_TIME:
                self.now_ms += 60_000 * max(world.minutes)
            case _:
                self.stray(pick)

    def answer(self, pick: Pick, *, any_order: bool) -> None:
        """Whatever was ordered last, or anything that is open, gets an answer of its kind."""
        watch = self.watch
        owed, order = watch.owed, None
        if any_order and len(owed) > 1:
            order = pick(list(owed.values()))
        else:
            for each in reversed(owed.values()):
                order = each if order is None or type(order) not in MOVING else order
        if order is None:
            raise Broken(Rule.DEADLOCK, "nothing is open, and the run is not over")
        world = self.setup.world
        if type(order) is CallModel:
            self.model(order, pick)
        else:
            self.give(answer(world, order, pick))

    def give(self, event: Event) -> None:
        """Take an answer that settles its order."""
        self.take(event)
        self.answers.append(event)

    def model(self, order: CallModel, pick: Pick) -> None:
        """The model says a block, calls a tool, or comes to an end."""
        world = self.setup.world
        match pick(SPEAKS):
            case "call":
                self.take(call(world, order.id, pick, f"t{self.steps}"))
            case "block":
                whole = block(world, order.id, pick)
                if type(whole.block) is Thinking and whole.block.signature:
                    signed = Thinking(whole.block.thinking, f"{SIGNED}{order.model}")
                    whole = BlockCompleted(order.id, signed)
                self.take(whole)
            case "search" if world.has(Fault.SERVER_CALLS):
                name = f"s{self.steps}"
                self.take(server_call(order.id, name))
                if pick(EITHER) and order.id in self.watch.owed:
                    self.take(server_result(order.id, name))
            case "fail" if world.said.failures:
                said = world.said
                failed = StreamFailed(
                    order.id, pick(said.failures), pick(said.usages), pick(said.open_texts), pick(EITHER)
                )
                self.give(failed)
            case _:
                self.give(answer(world, order, pick, cancelling=order.id in self.watch.cancelling))

    def stray(self, pick: Pick) -> None:
        """Something comes late, twice, for nobody, or of a kind that its order cannot have."""
        owed, gone = list(self.watch.owed.values()), self.watch.gone
        to = pick(("again", "again", "late", "nobody", "wrong", "prompt"))
        if to == "again":
            if self.answers:
                self.take(pick(self.answers))
            return
        if to == "late":
            if gone:
                self.take(pick(one_of_each(pick(gone))))
            return
        event: Event = pick(one_of_each(pick((0, 10**6))))
        if to == "wrong" and owed:
            order = pick(owed)
            event = pick([e for e in one_of_each(order.id) if type(e) not in ANSWERS[type(order)]])
        elif to == "prompt" and self.state.control.phase not in AT_REST:
            event = RunStarted(PROMPT, "another", 1, self.now_ms)
        self.refuses(event)

    def refuses(self, event: Event) -> None:
        """See to it that *event*, which nobody ordered, is refused."""
        try:
            self.step(self.state, event, self.setup.config)
        except UnexpectedEvent:
            return
        if self._keep:
            self.events.append(event)
        raise Broken(Rule.TAKEN, f"{type(event).__name__} in {self.state.control.phase}")

    def take(self, event: Event) -> None:
        """Take one step, and look at it."""
        before = self.state
        self.steps += 1
        if self.now_ms > before.now_ms:
            event = attrs.evolve(event, at_ms=self.now_ms)
        if self._keep:
            self.events.append(event)
        try:
            after, effects = self.step(before, event, self.setup.config)
        except UnexpectedEvent as problem:
            raise Broken(Rule.REFUSED, str(problem)) from None
        except RanAway:
            raise
        except Exception as problem:
            words = f"{type(problem).__name__}: {problem}, at {type(event).__name__}"
            raise Broken(Rule.RAISED, words) from problem
        self.state = after
        self.watch.saw(before, event, effects, after)
        for invariant in self._invariants:
            ask(invariant, before, event, effects, after)


def picks(tape: bytes, place: int) -> Pick:
    """Return what chooses by the bytes from *place* to the end of the gene; past it, the plainest."""
    end = place + GENE - 1

    def pick(options: Sequence[T]) -> T:
        nonlocal place
        if place >= end:
            return options[0]
        place += 1
        return options[tape[place - 1] % len(options)]

    return pick


def friendly(options: Sequence[T]) -> T:
    """Choose what is plainest."""
    return options[0]


def ask(invariant: Invariant, before: State, event: Event, effects: tuple[Any, ...], after: State) -> None:
    """Ask an invariant of the user's own; raises ``Broken`` where it does not hold."""
    name = getattr(invariant, "__name__", repr(invariant))
    try:
        said = invariant(before, event, effects, after)
    except (Exception, SystemExit) as problem:
        raise Broken(Rule.OWN, f"{name}: {type(problem).__name__}: {one_line(problem)}") from problem
    if said is not None and said is not True and said != "":
        raise Broken(Rule.OWN, f"{name}: {one_line(said)}")
