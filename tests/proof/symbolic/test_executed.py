"""
What only this file catches: a proof about a copy.

The arithmetic of the spec is held against the shipped guards, moves and
measure: in states of the explorations, and in numbers that no exploration has.
"""

from __future__ import annotations

import io
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepfold.adapters.proof.spec import read_spec
from stepfold.adapters.proof.symbolic.arithmetic import Flag, Number, read_arithmetic
from stepfold.adapters.proof.symbolic.executed import Comparison, executed
from stepfold.adapters.proof.symbolic.nets import by_execution
from stepfold.adapters.proof.symbolic.views import FACTS, counters_of, facts_of, limits_of
from stepfold.adapters.proof.verdict import Status
from stepfold.adapters.proof.worlds.everything import all_slices
from stepfold.adapters.proof.worlds.facts import small
from stepfold.engine.config import Config, ConfigError
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    BlockCompleted,
    CallFacts,
    Compacted,
    CompactionFailed,
    HookAnswered,
    HookStop,
    HookVerdict,
    PermissionAnswered,
    Stop,
    StreamClosed,
    StreamFailed,
    Usage,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.measure import PLACES, measure
from stepfold.engine.messages import Text
from stepfold.engine.phases import PhaseKind, Reply, Sampling
from stepfold.engine.state import Continue, Control, Data, Entered, State, Transition
from stepfold.engine.table import TABLE, Row

SPEC = read_spec()
ARITHMETIC = read_arithmetic(SPEC)
NAMES = {kind.value: kind for kind in PhaseKind}
SLICES = {piece.name: piece for piece in all_slices(Config())}


def test_every_row_of_the_table_does_what_the_arithmetic_says() -> None:
    check = by_execution(SPEC, ARITHMETIC, SLICES.values(), lambda name, done, known: None)

    assert () == check.findings
    assert Status.PROVED is check.status


def test_a_row_that_nothing_reached_is_no_proof() -> None:
    check = by_execution(SPEC, ARITHMETIC, [SLICES["no room"]], lambda name, done, known: None)

    assert Status.FAILED is check.status
    assert "never compared: Waiting, WaitElapsed always" in check.findings


# ---------------------------------------------------------------- numbers of any size

SMALLEST = small().all_models[0].max_output_tokens  # more than its model can put out, Config refuses
SIZES = st.integers(0, 4) | st.integers(0, 10**6)


@st.composite
def controls(draw: st.DrawFn) -> Control:
    """Any numbers at all: a guard is a function of them, whether a run can have them or not."""

    def filled(kind: Any, **given: Any) -> Any:
        values = {}
        for field in attrs.fields(kind):
            default = field.default
            if field.name in given:
                values[field.name] = given[field.name]
            elif isinstance(default, bool):
                values[field.name] = draw(st.booleans())
            elif isinstance(default, int):
                values[field.name] = draw(SIZES)
            elif isinstance(default, str):
                values[field.name] = draw(st.sampled_from(type(default)))
            elif field.name == "output_limit_override":
                values[field.name] = draw(st.none() | st.integers(1, 10**5))
            elif field.name == "transition":
                values[field.name] = draw(st.none() | st.builds(Transition, st.sampled_from(Continue)))
            else:
                values[field.name] = filled(type(default))
        return kind(**values)

    control: Control = filled(Control)
    attempts = attrs.evolve(control.attempts, fallbacks=draw(st.integers(0, 2)))
    return attrs.evolve(control, attempts=attempts)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    limits = {}
    for name, domain in ARITHMETIC.limits.items():
        if name in ("nested", "sub_agent", "models", "stop_hooks", "stop_hook_blocks") or "." in name:
            continue
        if isinstance(domain, Flag):
            limits[name] = draw(st.booleans())
        else:
            assert isinstance(domain, Number)
            low = domain.low or 0
            number = st.integers(low, low + 3) | st.integers(low, 10**6)
            limits[name] = draw(st.none() | number if domain.off else number)
    if limits["escalated_output_tokens"] < limits["default_output_tokens"]:
        limits["escalated_output_tokens"] = limits["default_output_tokens"]
    if limits["max_output_tokens"] is not None:
        limits["max_output_tokens"] = min(limits["max_output_tokens"], SMALLEST)
    source = draw(st.sampled_from(["user", "agent:x", "compact"]))
    return small(**limits, source=source, fallback_models=("second", "third"))


USAGES = st.none() | st.builds(Usage, SIZES, SIZES, SIZES, SIZES)
FAILURES = st.builds(Failure, st.sampled_from(FailureKind), retry_after_ms=st.none() | SIZES)
EVENTS: dict[str, st.SearchStrategy[Any]] = {
    "StreamClosed": st.builds(StreamClosed, st.just(1), st.sampled_from(Stop), usage=USAGES),
    "StreamFailed": st.builds(StreamFailed, st.just(1), FAILURES, usage=USAGES),
    "BlockCompleted": st.builds(
        BlockCompleted, st.just(1), st.just(Text("x")), st.none() | st.just(CallFacts())
    ),
    "PermissionAnswered": st.builds(
        PermissionAnswered, st.just(1), st.booleans(), stop=st.none() | st.just(HookStop("h"))
    ),
    "Compacted": st.builds(Compacted, st.just(1), st.sampled_from(["", " ", "s"]), SIZES, usage=USAGES),
    "CompactionFailed": st.builds(CompactionFailed, st.just(1), FAILURES, usage=USAGES),
    "HookAnswered": st.builds(HookAnswered, st.just(1), st.sampled_from(HookVerdict)),
    "AbortRequested": st.builds(AbortRequested, st.sampled_from([AbortKind.SUBMIT, AbortKind.HARD])),
    "Entered": st.just(Entered()),
}


@pytest.mark.parametrize("event", EVENTS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_conditions_say_what_their_guards_say(event: str, data: st.DataObject) -> None:
    control, config, fact = data.draw(controls()), data.draw(configs()), data.draw(EVENTS[event])
    comparison = Comparison(SPEC, ARITHMETIC)
    state = State(control, Sampling(Reply(1)), Data())
    said = {f"event.{key}": value for key, value in facts_of(fact, state, config).items()}
    look = comparison.look(counters_of(control), said, limits_of(config, control.attempts.fallbacks))
    guards = {row.when.__name__: row.when for row in TABLE if row.event.__name__ == event}

    engine = {name: bool(guard(control, fact, config)) for name, guard in guards.items()}
    assert engine == {name: comparison.value(ARITHMETIC.conditions[name], look) for name in guards}


@settings(max_examples=100, deadline=None)
@given(control=controls(), config=configs(), kind=st.sampled_from(PhaseKind))
def test_the_places_are_those_of_the_measure(control: Control, config: Config, kind: PhaseKind) -> None:
    control = attrs.evolve(control, phase=kind)
    comparison, phase = Comparison(SPEC, ARITHMETIC), kind.value.capitalize()
    look = comparison.look(counters_of(control), limits_of(config, control.attempts.fallbacks))
    inside = ARITHMETIC.within.get(phase)
    ours = (
        *(comparison.value(place, look) for place in ARITHMETIC.heights),
        ARITHMETIC.rank[phase],
        0 if inside is None else comparison.value(inside, look),
    )

    assert dict(zip(PLACES, measure(control, config), strict=True)) == dict(zip(PLACES, ours, strict=True))


def test_the_least_values_are_those_that_config_accepts() -> None:
    counted = {"models", "stop_hooks"}  # of these the arithmetic knows how many there are
    fields = {field.name for field in attrs.fields(Config) if field.init} - counted
    for name, domain in ARITHMETIC.limits.items():
        if name in fields and isinstance(domain, Number):
            assert domain.low is not None
            more = {"default_output_tokens": 1} if name == "escalated_output_tokens" else {}
            if name != "max_cost":  # it wants prices, too
                Config(**{name: domain.low, **more})
            with pytest.raises(ConfigError):
                Config(**{name: domain.low - 1, **more})
            if domain.off:
                assert getattr(Config(**{name: None}), name) is None
            else:
                with pytest.raises(ConfigError):
                    Config(**{name: None})


def test_every_event_that_says_something_is_read() -> None:
    assert {kind.__name__ for kind in FACTS} == {
        name for name, facts in ARITHMETIC.facts.items() if facts.domains
    }


# ---------------------------------------------------------------- the engine changed alone


def changed(name: str, event: str, /, **parts: Any) -> tuple[Row, ...]:
    return tuple(
        attrs.evolve(row, **parts) if (row.when.__name__, row.event.__name__) == (name, event) else row
        for row in TABLE
    )


def told(table: tuple[Row, ...], name: str) -> list[str]:
    comparison = Comparison(SPEC, ARITHMETIC, table)
    return executed([SLICES[name]], comparison).findings


def test_another_guard_is_told() -> None:
    def resumable(c: Any, e: Any, k: Any) -> bool:
        return old(c, e, attrs.evolve(k, max_output_recoveries=k.max_output_recoveries + 1))

    old = next(row.when for row in TABLE if row.when.__name__ == "resumable")
    found = told(changed("resumable", "StreamClosed", when=resumable), "answers")

    assert [line for line in found if "the condition resumable: the engine says True, the spec False" in line]


def test_another_move_is_told() -> None:
    old = next(row.by for row in TABLE if row.outcome is Continue.STOP_HOOK_BLOCKING)

    def forgets(s: Any, e: Any, k: Any) -> Any:
        move = old(s, e, k)
        recovery = attrs.evolve(move.control.recovery, reactive_compacted=True)
        return move._replace(control=attrs.evolve(move.control, recovery=recovery))

    found = told(changed("blocked", "HookAnswered", by=forgets), "hooks")

    assert [line for line in found if "the change of recovery.reactive_compacted" in line]


def test_progress_is_told() -> None:
    lines = io.StringIO()
    executed([SLICES["hooks"]], Comparison(SPEC, ARITHMETIC), 50, lambda *each: print(*each, file=lines))

    assert "hooks 0 1" in lines.getvalue()
