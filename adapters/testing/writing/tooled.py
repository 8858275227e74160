"""What the tools did: the ``[[tool]]`` tables of a recorded run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from stepfold.adapters.scenarios import format as f
from stepfold.adapters.scenarios.playing.tape import Step
from stepfold.engine.effects import AskPermission, RunTool
from stepfold.engine.events import (
    BlockCompleted,
    CallFacts,
    CallStatus,
    PermissionAnswered,
    ToolEnded,
    ToolSpec,
    Verdict,
)
from stepfold.engine.messages import ToolUse, texts

DEFAULT: Final[f.ToolOutcome] = f.Gives(())


@attrs.define
class _Seen:
    """What was seen of one tool."""

    facts: CallFacts = CallFacts()
    known: bool = False
    allowed: bool = True
    stop: bool = False
    outcomes: dict[int, f.ToolOutcome | None] = attrs.field(factory=dict)  # by effect id, in order


def tools_of(specs: Iterable[ToolSpec], steps: Sequence[Step], tool_ms: int) -> tuple[f.Tool, ...]:
    """
    Return a table for each tool on offer at first.

    Args:
        specs: Those tools.
        steps: The run.
        tool_ms: How long each takes.
    """
    seen = {spec.name: _Seen() for spec in specs}
    _look(seen, steps)
    return tuple(_tool(spec, seen[spec.name], tool_ms) for spec in specs)


def _look(seen: dict[str, _Seen], steps: Sequence[Step]) -> None:
    ran: dict[int, _Seen] = {}
    asked: dict[int, _Seen] = {}
    for one in steps:
        match one.event:
            case BlockCompleted(block=ToolUse(name=name), facts=CallFacts(known=True) as facts):
                tool = seen.get(name)
                if tool is not None and not tool.known:
                    tool.facts, tool.known = facts, facts.valid
            case ToolEnded(id, stop=stop) if id in ran and ran[id].outcomes[id] is None:
                ran[id].outcomes[id] = _outcome(one.event)
                ran[id].stop |= stop is not None
            case PermissionAnswered(id, allowed, stop=stop) if id in asked:
                asked[id].allowed = allowed
        for effect in one.effects:
            match effect:
                case RunTool(id, call) if call.name in seen:
                    ran[id] = seen[call.name]
                    ran[id].outcomes[id] = None
                case AskPermission(id, call) if call.name in seen:
                    asked[id] = seen[call.name]


def _outcome(ended: ToolEnded) -> f.ToolOutcome:
    if ended.status is CallStatus.COMPLETED:
        return f.Gives(ended.content)
    return f.Raises(texts(tuple(ended.content)) or ended.status.value)


def _tool(spec: ToolSpec, seen: _Seen, tool_ms: int) -> f.Tool:
    answered = [outcome for outcome in seen.outcomes.values() if outcome is not None]
    outcomes = tuple(outcome or DEFAULT for outcome in seen.outcomes.values())
    while len(outcomes) > 1 and outcomes[-1] == outcomes[-2]:
        outcomes = outcomes[:-1]
    facts = seen.facts
    return f.Tool(
        name=spec.name,
        outcomes=outcomes or (DEFAULT,),
        safe=facts.safe,
        timing=f.Timing(tool_ms, never=bool(seen.outcomes) and not answered, interrupt=facts.interrupt),
        rule=_rule(facts, seen.allowed),
        max_result_chars=spec.max_result_chars,
        stop=seen.stop,
        shell=facts.shell,
    )


def _rule(facts: CallFacts, allowed: bool) -> f.Rule:
    match facts.verdict:
        case Verdict.ALLOW:
            return f.Rule.ALLOW
        case Verdict.DENY:
            return f.Rule.DENY
        case Verdict.ASK:
            return f.Rule.ASK_ALLOW if allowed else f.Rule.ASK_DENY
