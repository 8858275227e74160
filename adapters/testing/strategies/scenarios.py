"""Strategies for worlds and for whole scenarios, as files say them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import attrs
import hypothesis.strategies as st

from stepfold.adapters.scenarios import format as f
from stepfold.adapters.scenarios.border import failure_of, transport_failure
from stepfold.adapters.scripted import Answer, Breaks, Closes, Fails, Outcome, says
from stepfold.adapters.testing.config_space import MILDEST
from stepfold.adapters.testing.machine.calling import talk
from stepfold.adapters.testing.machine.drawing import changes, chosen, faults
from stepfold.adapters.testing.world import ALL_FAULTS, Fault, Pick, Tool, World, world_of
from stepfold.engine.config import HookSpec
from stepfold.engine.events import AbortKind, HookVerdict, Stop, Verdict
from stepfold.engine.failures import Failure
from stepfold.engine.messages import Block, Text, ToolUse

THE_REST: Final = f.Entry(says("all is done"), f.FOREVER)
LONG_PROMPT: Final = "prompt is too long: 210000 tokens > 200000 maximum"
_ERRORS: Final[tuple[tuple[Fault, Failure], ...]] = (
    (Fault.FAILURES, failure_of(status=500, error_type="api_error", message="Internal server error")),
    (Fault.FAILURES, transport_failure("connection reset")),
    (Fault.FAILURES, transport_failure("timeout: nothing came")),
    (Fault.FAILURES, failure_of(status=429, error_type="rate_limit_error", retry_after_seconds=0.5)),
    (Fault.OVERLOADS, failure_of(status=529, error_type="overloaded_error", message="Overloaded")),
    (Fault.OVERLOADS, failure_of(status=429, error_type="rate_limit_error", retry_after_seconds=400)),
    (Fault.FATAL_FAILURES, failure_of(status=400, error_type="invalid_request_error", message="no")),
    (Fault.FATAL_FAILURES, failure_of(status=401, error_type="authentication_error", message="who?")),
    (Fault.TOO_LONG, failure_of(status=400, error_type="invalid_request_error", message=LONG_PROMPT)),
    (Fault.TOO_LONG, failure_of(status=413, error_type="request_too_large", message="too large")),
    (
        Fault.MEDIA,
        failure_of(status=400, error_type="invalid_request_error", message="image exceeds 5 MB maximum"),
    ),
)
_RULES: Final = {
    Verdict.ALLOW: (f.Rule.ALLOW,),
    Verdict.DENY: (f.Rule.DENY,),
    Verdict.ASK: (f.Rule.ASK_ALLOW, f.Rule.ASK_DENY),
}
_TIMES_MS: Final = (0, 10, 1_000)


def worlds(of: Collection[Fault] = ALL_FAULTS) -> st.SearchStrategy[World]:
    """Return worlds with random subsets of these faults."""
    return faults(of).map(world_of)


def scenarios(of: Collection[Fault] = ALL_FAULTS) -> st.SearchStrategy[f.Scenario]:
    """
    Return whole scenarios that play to their end: what ``loads`` makes of a file.

    ``scenario_text`` writes one down, ``stepfold check`` plays it.  Nothing
    is expected but what always holds.

    Args:
        of: The faults of which each scenario has a random subset.
    """
    return st.tuples(worlds(of), changes(), st.sampled_from([0, 1, 6])).flatmap(
        lambda drawn: chosen(lambda pick: _scenario(drawn[0], drawn[1], drawn[2], pick))
    )


def _scenario(world: World, changed: dict[str, Any], rounds: int, pick: Pick) -> f.Scenario:
    hooks = tuple(_hook(world, spec, pick) for spec in changed.pop("stop_hooks", ()))
    specs = tuple(HookSpec(hook.name, hook.max_blocks) for hook in hooks)
    entries = tuple(f.Entry(_answer(world, number, pick)) for number in range(pick(range(6))))
    calls = tuple(b.id for entry in entries for b in entry.answer.blocks if isinstance(b, ToolUse))
    return f.Scenario(
        title="drawn",
        about="",
        config=attrs.evolve(MILDEST, stop_hooks=specs, **changed),
        prompts=("go", "on")[: pick((1, 2)) if world.has(Fault.MORE_RUNS) else 1],
        history=tuple(talk(rounds, 1_500)),
        staged=(f.Staged(2, "first span"), f.Staged(4, "second span"))[: pick((0, 2))] if rounds > 1 else (),
        world=f.World(
            entries=(*entries, THE_REST),
            tools=tuple(_tool(world, tool, pick) for tool in world.tools if not tool.facts.idempotent),
            hooks=hooks,
            compactions=tuple(_compaction(world, pick) for _ in range(pick(range(3)))),
            acts=tuple(_acts(world, calls, hooks, pick)),
        ),
    )


def _answer(world: World, number: int, pick: Pick) -> Answer:
    said = world.said
    blocks: list[Block] = []
    for place in range(pick(range(4))):
        if pick((False, True)):
            id = (pick(said.call_ids) or f"t{number}.{place}") if said.call_ids else f"t{number}.{place}"
            input, raw = pick(said.call_inputs)
            blocks.append(ToolUse(id, pick(said.call_names), input, raw_input=raw))
        else:
            blocks.append(_sound(pick(said.blocks)))
    open_text = pick(said.open_texts)
    cut = Text(_clean(open_text)) if open_text and pick((False, True)) else None
    outcome = _outcome(world, any(isinstance(block, ToolUse) for block in blocks), pick)
    if isinstance(outcome, Fails) and (blocks or cut) and not outcome.failure.status:
        outcome = outcome if outcome.failure.kind.value in ("transport", "timeout") else Breaks()
    return Answer(tuple(blocks), outcome, pick(said.usages), pick(_TIMES_MS), cut)


def _outcome(world: World, calls: bool, pick: Pick) -> Outcome:
    failures = [failure for fault, failure in _ERRORS if world.has(fault)]
    bad = bool(failures) and pick((False, False, True))
    if bad:
        return Breaks() if pick((False, False, True)) else Fails(pick(failures))
    stop = pick(world.said.stops)
    if stop in (Stop.END_TURN, Stop.TOOL_USE):
        stop = Stop.TOOL_USE if calls else Stop.END_TURN
    return Closes(stop, "odd" if stop is Stop.OTHER else stop.value)


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _sound(block: Block) -> Block:
    return Text(_clean(block.text)) if isinstance(block, Text) else block


def _tool(world: World, tool: Tool, pick: Pick) -> f.Tool:
    never = pick((False, False, False, True)) if world.has(Fault.ABORTS) else False
    outcomes = [_result(world, pick) for _ in range(pick((1, 2)))]
    return f.Tool(
        name=tool.spec.name,
        outcomes=tuple(outcomes),
        safe=tool.facts.safe,
        timing=f.Timing(pick(_TIMES_MS), never, tool.facts.interrupt),
        rule=pick(_RULES[tool.facts.verdict]),
        max_result_chars=tool.spec.max_result_chars,
        stop=pick((False, False, True)) if world.has(Fault.TOOL_STOPS) else False,
        shell=tool.facts.shell,
    )


def _result(world: World, pick: Pick) -> f.ToolOutcome:
    failed = world.has(Fault.TOOL_FAILURES) and pick((False, True))
    if failed:
        return f.Raises("it broke")
    content = pick(world.done.results)
    return f.Gives(tuple(Text(_clean(b.text)) if isinstance(b, Text) else b for b in content))


def _hook(world: World, spec: HookSpec, pick: Pick) -> f.Hook:
    replies = []
    for _ in range(pick((1, 2, 3))):
        verdict = pick(world.done.verdicts)
        worded = verdict in (HookVerdict.BLOCK, HookVerdict.PREVENT)
        replies.append(f.HookReply(verdict, "words" if worded else ""))
    return f.Hook(spec.name, tuple(replies), spec.max_blocks)


def _compaction(world: World, pick: Pick) -> f.Compaction:
    failed = world.has(Fault.COMPACTOR_FAILURES) and pick((False, True))
    if failed:
        return f.NoSummary(pick(("overloaded", LONG_PROMPT)))
    return f.Summary(pick(world.done.summaries), pick((None, *world.done.summary_tokens)))


def _acts(world: World, calls: Sequence[str], hooks: Sequence[f.Hook], pick: Pick) -> Sequence[f.Act]:
    deeds: list[f.Deed] = []
    if world.has(Fault.ABORTS):
        deeds += [f.Abort(AbortKind.HARD), f.Abort(AbortKind.SUBMIT)]
    if world.has(Fault.DEATHS):
        deeds.append(f.Crash())
    if world.has(Fault.QUEUE):
        deeds.append(f.Queue("also this"))
    moment = f.Moment
    points = [
        *(f.Point(moment.CALL_OPENED, number) for number in (1, 2, 3)),
        *(f.Point(moment.CALL_BLOCK, number, 1) for number in (1, 2)),
        *(f.Point(moment.CALL_CLOSED, number) for number in (1, 2)),
        *(f.Point(kind, name=id) for kind in (moment.TOOL_STARTED, moment.TOOL_ENDED) for id in calls),
        *(f.Point(moment.HOOK_STARTED, name=hook.name) for hook in hooks),
        f.Point(moment.COMPACTION_STARTED, 1),
        f.Point(moment.RETRY_WAITING, 1),
    ]
    return [f.Act(pick(points), pick(deeds)) for _ in range(pick(range(3)))] if deeds else []
