"""
What only this file catches: an explorer that proves what is not so.

A search that hits its bound says "unknown"; a fault that is planted is found; the quotient of turns reaches
what exact counting reaches; and every process finds the same.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from stepfold.adapters.proof import explore as exploring
from stepfold.adapters.proof.canonical import Key
from stepfold.adapters.proof.command.prove import BAD_INPUT, NOT_PROVED, Question, Report, answer, prove
from stepfold.adapters.proof.explore import Exploration, Slice, explore
from stepfold.adapters.proof.graph import circles, components, graph_findings, traps
from stepfold.adapters.proof.matrix import Matrix
from stepfold.adapters.proof.spec import SHIPPED, read_spec
from stepfold.adapters.proof.verdict import Status, explored
from stepfold.adapters.proof.worlds.beside import OTHERS
from stepfold.adapters.proof.worlds.calls import batch
from stepfold.adapters.proof.worlds.ladders import LADDERS
from stepfold.adapters.proof.worst.crosscheck import least
from stepfold.engine import Config, Continue, State
from stepfold.engine.effects import Effect, Finish
from stepfold.engine.events import Event
from stepfold.engine.frozen import evolve
from stepfold.engine.state import Transition
from stepfold.engine.step import UnexpectedEvent, step

ROOT = Path(__file__).resolve().parents[2]
SPEC = read_spec()
SLICES = {piece.name: piece for piece in (*LADDERS, *OTHERS, batch())}
QUICK = ("hooks", "budget", "short history", "nested", "no room", "cost", "run tokens")


def quiet(piece: str, bound: int, states: int) -> None:
    pass


# ---------------------------------------------------------------- what is explored holds


@pytest.mark.parametrize("name", QUICK)
def test_a_small_exploration_finds_nothing_wrong(name: str) -> None:
    found = explore(SLICES[name], SPEC)

    assert found.complete
    assert [] == found.findings
    assert [] == traps(found)


def test_a_search_that_hits_its_bound_is_unknown_and_never_proved() -> None:
    properties, matrix, summaries = explored([SLICES["hooks"]], SPEC, 50, quiet)

    assert [Status.UNKNOWN, Status.UNKNOWN] == [properties.status, matrix.status]
    assert [False] == [one.complete for one in summaries]
    assert "hit in: hooks" in properties.words


def test_rows_that_are_never_taken_are_told() -> None:
    properties, _, _ = explored([SLICES["no room"]], SPEC, 1_000, quiet)

    assert Status.FAILED is properties.status
    assert "sometimes every terminal: never completed" in properties.findings
    assert "sometimes every limit: never blocking_limit (cost)" in properties.findings
    assert "sometimes every continue: never next_turn" in properties.findings


def test_the_progress_is_told() -> None:
    told: list[tuple[str, int, int]] = []

    found = explore(SLICES["hooks"], SPEC, progress=lambda *facts: told.append(facts))

    assert ("hooks", 0, 1) == told[0]
    assert ("hooks", found.states, found.states) == told[-1]


def test_every_process_finds_the_same() -> None:
    code = (
        "from tests.proof.test_explorer import SLICES, SPEC\n"
        "from stepfold.adapters.proof.explore import explore\n"
        "print([explore(SLICES[name], SPEC).digest() for name in ('hooks', 'budget', 'cost')])"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }

    assert 1 == len(told)
    assert 3 * 64 < len(told.pop())


# ---------------------------------------------------------------- {left, last} against exact counting


def counted(piece: Slice, turns: int) -> set[Key]:
    """Return the keys of an exact exploration with so many turns, its turns named left and last."""
    config = attrs.evolve(piece.config, max_turns=turns)
    found = explore(attrs.evolve(piece, config=config, counters=frozenset()), SPEC)
    assert found.complete
    return {as_left(key, turns) for key in found.keys}


def as_left(key: Key, turns: int) -> Key:
    return (
        key if key[0] in ("done", "aborting") else (key[0], "last" if key[1] == turns else "left", *key[2:])
    )


@pytest.mark.parametrize("name", ["hooks", "short history"])
@pytest.mark.parametrize("turns", [2, 3, 4])
def test_turns_as_left_and_last_reach_what_counting_reaches(name: str, turns: int) -> None:
    piece = SLICES[name]
    quotient = {as_left(key, 2) for key in explore(piece, SPEC).keys}

    exact = counted(piece, turns)

    assert exact <= quotient
    if turns == 4:  # what a turn leaves behind has come everywhere by then
        assert exact == quotient


# ---------------------------------------------------------------- planted faults

Fault = Callable[[State, Event, Config, State, tuple[Effect, ...]], tuple[State, tuple[Effect, ...]]]


def reason_of(state: State) -> Continue | None:
    return None if state.control.transition is None else state.control.transition.reason


def changed(state: State, **values: Any) -> State:
    return evolve(state, control=evolve(state.control, **values))


def two_finishes(before: State, event: Event, config: Config, after: State, effects: Any) -> Any:
    return after, (*effects, *(effect for effect in effects if isinstance(effect, Finish)))


def lost_order(before: State, event: Event, config: Config, after: State, effects: Any) -> Any:
    if after.control.phase.value != "checking":
        return after, effects
    data = evolve(after.data, ledger=evolve(after.data.ledger, owed=()))
    return evolve(after, data=data), effects


def uncounted_block(before: State, event: Event, config: Config, after: State, effects: Any) -> Any:
    if reason_of(after) is Continue.STOP_HOOK_BLOCKING:
        hooks = evolve(after.control.hooks, blocks_left=before.control.hooks.blocks_left)
        return changed(after, hooks=hooks), effects
    return after, effects


def wrong_stamp(before: State, event: Event, config: Config, after: State, effects: Any) -> Any:
    if reason_of(after) is Continue.NEXT_TURN:
        return changed(after, transition=Transition(Continue.STOP_HOOK_BLOCKING)), effects
    return after, effects


def finish_without_end(before: State, event: Event, config: Config, after: State, effects: Any) -> Any:
    return after, tuple(effect for effect in effects if not isinstance(effect, Finish))


FAULTS: list[tuple[Fault, str]] = [
    (two_finishes, "always one Finish"),
    (finish_without_end, "always one Finish"),
    (lost_order, "always a run that is not over is owed an answer"),
    (uncounted_block, "always the measure never rises"),
    (wrong_stamp, "its reason is the one that is stamped"),
]


@pytest.mark.parametrize(("fault", "told"), FAULTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_fault_in_step_is_found(monkeypatch: pytest.MonkeyPatch, fault: Fault, told: str) -> None:
    def faulty(state: State, event: Event, config: Config) -> tuple[State, tuple[Effect, ...]]:
        after, effects = step(state, event, config)
        return fault(state, event, config, after, effects)

    monkeypatch.setattr(exploring, "step", faulty)

    found = explore(SLICES["hooks"], SPEC, limit=5_000)

    assert [line for line in found.findings if told in line], found.findings
    assert all("after RunStarted" in line for line in found.findings)


def test_a_refusal_that_the_spec_does_not_know_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(state: State, event: Event, config: Config) -> tuple[State, tuple[Effect, ...]]:
        if type(event).__name__ == "CommandQueued" and state.control.phase.value == "running":
            raise UnexpectedEvent("not now")
        return step(state, event, config)

    monkeypatch.setattr(exploring, "step", refusing)

    found = explore(SLICES["hooks"], SPEC)

    assert [line for line in found.findings if "differ on whether this can happen" in line]


def test_a_row_that_the_spec_lacks_is_found_by_what_step_takes() -> None:
    rows = tuple(row for row in SPEC.rows if (row.phase, row.event) != ("Running", "Resumed"))

    found = explore(SLICES["hooks"], attrs.evolve(SPEC, rows=rows))

    assert [line for line in found.findings if "differ on whether this can happen" in line]


@pytest.mark.parametrize(
    ("reason", "field", "word"),
    [
        ("next_turn", "turn", "keep"),
        ("next_turn", "output_recoveries", "+1"),
        ("stop_hook_blocking", "stop_hook_active", "keep"),
        ("stop_hook_blocking", "ledgers", "keep"),
        ("stop_hook_blocking", "messages", "view, answer, nudge"),
        ("token_budget_continuation", "ledgers", "keep"),
        ("reactive_compact_retry", "reactive_compacted", False),
        ("reactive_compact_retry", "turn", "+1"),
    ],
)
def test_another_word_in_the_matrix_is_found_by_execution(reason: str, field: str, word: Any) -> None:
    wrong = {**SPEC.matrix, reason: {**SPEC.matrix[reason], field: word}}
    spec = attrs.evolve(SPEC, matrix=wrong)
    where = {"reactive_compact_retry": "short history", "token_budget_continuation": "budget"}
    findings = explore(SLICES[where.get(reason, "hooks")], spec).findings

    assert [line for line in findings if f"continues.{reason}.{field}" in line]


def test_the_matrix_says_which_cells_no_run_told_apart() -> None:
    matrix = Matrix(SPEC)
    explore(SLICES["no room"], SPEC, matrix)

    assert 70 == len(matrix.unseen())


# ---------------------------------------------------------------- the graph


def made(*edges: list[tuple[int, bool, bool]], over: int) -> Exploration:
    keys: list[Key] = [("done",) if number == over else (number,) for number in range(len(edges))]
    parents: list[tuple[int, Event | None]] = [(-1, None)] * len(edges)
    return Exploration("made", keys, list(edges), parents=parents)


def test_a_state_that_leads_to_no_end_is_a_trap() -> None:
    found = made([(1, False, False), (2, False, False)], [], [(2, False, True)], over=1)

    assert [2] == traps(found)
    assert [line for line in graph_findings(found, exempt=False) if "eventually an end" in line]


@pytest.mark.parametrize(
    ("turn", "idle", "wrong"), [(False, False, [1]), (True, False, []), (False, True, [])]
)
def test_a_circle_is_wrong_unless_it_spends_a_turn_or_decides_nothing(
    turn: bool, idle: bool, wrong: list[int]
) -> None:
    edges = [[(1, False, True)], [(0, turn, idle), (2, False, False)], []]

    assert wrong == circles(edges)


def test_components_are_found_in_long_chains_without_recursion() -> None:
    length = 5_000
    edges = [[((number + 1) % length, False, False)] for number in range(length)]

    assert 1 == len(set(components(edges)))


def test_scheduling_never_goes_in_circles() -> None:
    piece = batch(calls=2)
    found = explore(piece, SPEC)

    assert [] == found.findings
    assert [] == [*graph_findings(found, exempt=False)]


@pytest.mark.parametrize("name", ["nested"])
def test_an_abort_never_goes_in_circles(name: str) -> None:
    assert [] == [*graph_findings(explore(SLICES[name], SPEC), exempt=False)]


# ---------------------------------------------------------------- the command


def test_the_report_is_json_lines_and_the_bound_is_told() -> None:
    out = io.StringIO()
    question = Question(config=least(), states=50, slices=[SLICES["hooks"]], small=(least(),))

    code = answer(question, SPEC, Report(out, io.StringIO(), json=True))

    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert NOT_PROVED == code
    assert "unknown" == lines[-1]["verdict"]
    assert [False] == [line["complete"] for line in lines if "exploration" in line]
    assert {
        "second copy": "proved",
        "explorer": "unknown",
        "matrix": "unknown",
        "measure": "unknown",
        "worst case": "proved",
        "played": "proved",
        "every run ends": "unknown",
    } == {line["check"]: line["status"] for line in lines if "check" in line}


def test_a_config_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("max_turns = 0\n", encoding="utf-8")
    err = io.StringIO()

    assert BAD_INPUT == prove(path, out=io.StringIO(), err=err)
    assert 1 == err.getvalue().count("\n")
    assert "max_turns" in err.getvalue()


def test_a_spec_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "machine.toml"
    path.write_text(SHIPPED.read_text(encoding="utf-8").replace("format = 1", "format = 9"), encoding="utf-8")
    err = io.StringIO()

    assert BAD_INPUT == prove(spec=path, out=io.StringIO(), err=err)
    assert f"{path}:" in err.getvalue()
    assert "format" in err.getvalue()
