"""What stop hooks and the compactor answered: ``[[hook]]`` and ``[[compact]]`` tables of a recorded run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stepfold.adapters.scenarios import format as f
from stepfold.adapters.scenarios.playing.tape import Step
from stepfold.engine.config import HookSpec
from stepfold.engine.effects import Compact, RunHook
from stepfold.engine.events import Compacted, CompactionFailed, HookAnswered, HookVerdict
from stepfold.engine.failures import TOO_LONG

PASS = f.HookReply(HookVerdict.PASS)


def hooks_of(specs: Iterable[HookSpec], steps: Sequence[Step]) -> tuple[f.Hook, ...]:
    """Return a table for each stop hook; a question that got no answer (the process died) passes."""
    replies: dict[str, dict[int, f.HookReply]] = {spec.name: {} for spec in specs}
    for one in steps:
        if isinstance(one.event, HookAnswered):
            for answers in replies.values():
                if one.event.effect_id in answers:
                    answers[one.event.effect_id] = _reply(one.event)
        for effect in one.effects:
            if isinstance(effect, RunHook):
                replies.setdefault(effect.hook, {})[effect.id] = PASS
    return tuple(
        f.Hook(spec.name, tuple(replies[spec.name].values()) or (PASS,), spec.max_blocks) for spec in specs
    )


def _reply(event: HookAnswered) -> f.HookReply:
    worded = event.verdict in (HookVerdict.BLOCK, HookVerdict.PREVENT)
    return f.HookReply(event.verdict, " ".join(event.words.split()) if worded else "")


def summaries_of(steps: Sequence[Step]) -> tuple[f.Compaction, ...]:
    """Return one table for each request to the compactor; one that got no answer works."""
    found: dict[int, f.Compaction] = {}
    for one in steps:
        match one.event:
            case Compacted(id, summary, tokens) if id in found:
                found[id] = f.Summary(summary, tokens)
            case CompactionFailed(id, failure) if id in found:
                long = failure.kind in TOO_LONG
                found[id] = f.NoSummary("prompt is too long" if long else failure.message or failure.kind)
        found |= {e.id: f.Summary("summary", 100) for e in one.effects if isinstance(e, Compact)}
    return tuple(found.values())
