"""A run begins; an iteration is prepared; a request leaves."""

from __future__ import annotations

from typing import Final

import attrs

from stepfold.engine.config import SUMMARY_RESERVE_TOKENS, Config
from stepfold.engine.context.collapse import commit, span_to_stage
from stepfold.engine.context.microcompact import clear_results, clearable_ids
from stepfold.engine.context.repair import repair
from stepfold.engine.context.results import hold_to_budget, smallest_limit
from stepfold.engine.context.snip import snip
from stepfold.engine.context.tokens import estimate_messages
from stepfold.engine.effects import (
    CallModel,
    Effect,
    Notice,
    NoticeKind,
    Prefetch,
    Show,
    StageCollapse,
    TaskBudget,
)
from stepfold.engine.events import PrefetchKind, RunStarted
from stepfold.engine.frozen import evolve
from stepfold.engine.history import History
from stepfold.engine.ids import Ids
from stepfold.engine.messages import (
    Message,
    Origin,
    RedactedThinking,
    Role,
    Thinking,
    ToolResult,
    ToolUse,
)
from stepfold.engine.moves.ledger import cancel_staging, joined, learned, one_more_request, owing, spec_of
from stepfold.engine.moves.turn import shown
from stepfold.engine.phases import (
    CALLING,
    FITTING,
    PREPARING,
    Idle,
    Reply,
    Sampling,
)
from stepfold.engine.state import (
    Batch,
    Book,
    Control,
    Data,
    Entered,
    Fill,
    Hooks,
    Layers,
    Move,
    Recovery,
    Side,
    State,
    ToolContext,
)

# Bound once: on Python 3.11 the way to a member through its class costs more than a guard.
SKILLS: Final = PrefetchKind.SKILLS

MS_PER_MINUTE = 60_000
STREAMING = Batch(streaming=True)
STAGING_PERCENT = 90


def begin(s: State, e: RunStarted, k: Config) -> Move:
    """Take up the prompt; a first run repairs its history, a later one keeps what belongs to the messages."""
    data, effects = s.data, tuple[Effect, ...]()
    floor = k.fixed_prompt_tokens
    tokens = s.control.fill.tokens
    if isinstance(s.phase, Idle):
        data, effects = _adopt(data, k)
        tokens = floor + estimate_messages(data.messages)
    prompt = Message(Role.USER, e.prompt, Origin.PROMPT)
    tools, depth = data.tool_context.tools, data.tool_context.depth
    if data.side.tools_changed is not None:
        tools = data.side.tools_changed
    context = ToolContext(tools, k.model, e.run_id, depth, smallest_limit(tools, k))
    company = (*data.side.extra, prompt)  # what waited for a turn that never came is said first
    data, fill = joined(data, Fill(tokens, floor), company)
    data = evolve(
        data,
        pending_tool_summary=None,
        tool_context=context,
        side=Side(queue=data.side.queue),
        book=Book(
            seed=e.seed,
            hook_blocks=(0,) * len(k.stop_hooks),
            last_answer_ms=data.book.last_answer_ms,
        ),
    )
    control = Control(
        fill=fill,
        recovery=Recovery(staged=len(data.layers.collapses)),
        hooks=Hooks(due=len(k.stop_hooks), blocks_left=sum(hook.max_blocks for hook in k.stop_hooks)),
        queued=len(data.side.queue),
    )
    effects = (*effects, *map(shown, company))
    if k.prefetch_memories and not k.nested:
        order = Prefetch(data.ledger.next_id, PrefetchKind.MEMORIES, data.messages)
        data, effects = owing(data, order), (*effects, order)
    return Move(control, PREPARING, data, effects)


def _adopt(data: Data, k: Config) -> tuple[Data, tuple[Effect, ...]]:
    """Repair a history from outside, once; learn its call ids and what its results are."""
    repaired = repair(tuple(data.messages))
    tools = {spec.name: spec for spec in data.tool_context.tools}
    names = {b.id: b.name for m in repaired.messages for b in m.content if isinstance(b, ToolUse)}
    messages = tuple(
        hold_to_budget(_signed(message, k.model), names, tools, k)[0] for message in repaired.messages
    )
    clearable: tuple[str, ...] = ()
    if k.microcompact_trigger_results is not None:
        clearable = clearable_ids(messages, data.tool_context.tools)
    data = evolve(
        data,
        messages=History[Message]().extend(messages),
        layers=evolve(data.layers, clearable=clearable),
        used_ids=learned(Ids(), messages),
    )
    if not repaired.report:
        return data, ()
    return data, (Show(Notice(NoticeKind.REPAIRED, "; ".join(repaired.report), len(repaired.report))),)


def _signed(message: Message, model: str) -> Message:
    """Thinking of unknown origin is taken to be the first model's."""
    if message.model or message.role is not Role.ASSISTANT:
        return message
    thinks = any(isinstance(block, Thinking | RedactedThinking) for block in message.content)
    return attrs.evolve(message, model=model) if thinks else message


def prepare(s: State, e: Entered, k: Config) -> Move:
    """Run the pure layers, light before heavy, and start what runs beside the iteration."""
    control, data = s.control, s.data
    if k.nested:
        return Move(control, FITTING, data)
    effects: tuple[Effect, ...] = ()
    fill, limits = control.fill, k.thresholds[control.attempts.fallbacks]
    if k.snip_above_tokens is not None and fill.tokens > k.snip_above_tokens:
        data, fill, effects = _snip(data, fill, k)
    if k.microcompact_idle_minutes is not None or k.microcompact_trigger_results is not None:
        data, fill, more = _microcompact(data, fill, s.now_ms, k)
        effects = (*effects, *more)
    if k.collapse and k.collapse_staging and 100 * fill.tokens >= STAGING_PERCENT * limits.effective:
        data, more = _stage(data, k)
        effects = (*effects, *more)
    if fill.tokens >= limits.warning and not data.book.warned:
        data = evolve(data, book=evolve(data.book, warned=True))
        effects = (
            *effects,
            Show(Notice(NoticeKind.CONTEXT_WARNING, "the context window fills up", fill.tokens)),
        )
    if k.prefetch_skills and not _outstanding(data, SKILLS):
        order = Prefetch(data.ledger.next_id, SKILLS, data.messages)
        data, effects = owing(data, order), (*effects, order)
    if fill is not control.fill:
        control = evolve(control, fill=fill)
    staged = len(data.layers.collapses)
    if staged != control.recovery.staged:
        control = evolve(control, recovery=evolve(control.recovery, staged=staged))
    return Move(control, FITTING, data, effects)


def _outstanding(data: Data, kind: PrefetchKind) -> bool:
    return kind in [effect.kind for effect in data.ledger.owed if isinstance(effect, Prefetch)]


def _freed(fill: Fill, tokens: int) -> Fill:
    if not tokens:
        return fill
    return Fill(max(fill.floor, fill.tokens - tokens), fill.floor, fill.last_round)


def _snip(data: Data, fill: Fill, k: Config) -> tuple[Data, Fill, tuple[Effect, ...]]:
    assert k.snip_above_tokens is not None
    view, freed, rounds = snip(data.messages, fill.tokens - k.snip_above_tokens)
    if not rounds:
        return data, fill, ()
    data, effects = replaced(data, view)
    notice = Notice(NoticeKind.SNIPPED, f"{rounds} old rounds left the view", freed)
    return data, _freed(fill, freed), (*effects, Show(notice))


def replaced(data: Data, view: History[Message]) -> tuple[Data, tuple[Effect, ...]]:
    """Return *data* with another view: what was staged for the old one is discarded."""
    data, effects = cancel_staging(data)
    kept = {block.use_id for message in view for block in message.content if isinstance(block, ToolResult)}
    layers = Layers(
        collapses=(),
        committed=data.layers.committed,
        edits=data.layers.edits,
        clearable=tuple(name for name in data.layers.clearable if name in kept),
        edits_pending=data.layers.edits_pending,
        staging=0,
    )
    return evolve(data, messages=view, layers=layers), effects


def _microcompact(data: Data, fill: Fill, now_ms: int, k: Config) -> tuple[Data, Fill, tuple[Effect, ...]]:
    """By time: clear in the view. Cached: hand old results to the server's edits, the view unchanged."""
    effects: tuple[Effect, ...] = ()
    keep = k.microcompact_keep_results
    last, idle = data.book.last_answer_ms, k.microcompact_idle_minutes
    if idle is not None and last is not None and now_ms - last >= idle * MS_PER_MINUTE:
        ids = clearable_ids(data.messages, data.tool_context.tools)
        view, freed = clear_results(data.messages, frozenset(ids[: max(0, len(ids) - keep)]))
        if freed:
            data = evolve(data, messages=view)
            fill = _freed(fill, freed)
            effects = (Show(Notice(NoticeKind.MICROCOMPACTED, "old tool results were cleared", freed)),)
    trigger, waiting = k.microcompact_trigger_results, data.layers.clearable
    if trigger is not None and len(waiting) > trigger:
        cut = max(0, len(waiting) - keep)
        layers = evolve(
            data.layers,
            edits=(*data.layers.edits, *waiting[:cut]),
            clearable=waiting[cut:],
            edits_pending=cut > 0,
        )
        data = evolve(data, layers=layers)
    return data, fill, effects


def _stage(data: Data, k: Config) -> tuple[Data, tuple[Effect, ...]]:
    """Ask for a summary of the oldest rounds not yet staged; one request at a time."""
    if data.layers.staging:
        return data, ()
    messages = tuple(data.messages)
    span = span_to_stage(messages, data.layers.collapses, k)
    if span is None:
        return data, ()
    order = StageCollapse(data.ledger.next_id, messages[span[0] : span[1]], span[1])
    data = evolve(owing(data, order), layers=evolve(data.layers, staging=span[1]))
    return data, (order,)


def drained(control: Control, data: Data) -> tuple[Control, Data, tuple[Effect, ...], int]:
    """Commit every staged collapse; return how many."""
    count = len(data.layers.collapses)
    view, freed = commit(data.messages, data.layers.collapses)
    committed = data.layers.committed + count
    data, cancelled = replaced(data, view)
    data = evolve(data, layers=evolve(data.layers, committed=committed))
    control = evolve(control, fill=_freed(control.fill, freed), recovery=evolve(control.recovery, staged=0))
    notice = Notice(NoticeKind.COLLAPSED, f"{count} staged summaries took the place of old messages", freed)
    return control, data, (*cancelled, Show(notice)), count


def drain_staged(s: State, e: Entered, k: Config) -> Move:
    """Commit what is staged before autocompact is tested."""
    control, data, effects, _ = drained(s.control, s.data)
    return Move(control, FITTING, data, effects)


def fits(s: State, e: Entered, k: Config) -> Move:
    """Go on to the request."""
    return Move(s.control, CALLING, s.data)


def call_model(s: State, e: Entered, k: Config) -> Move:
    """Send the view to the current model."""
    control, data = s.control, s.data
    spec = spec_of(control, k)
    limit = control.recovery.output_limit_override or k.max_output_tokens or k.default_output_tokens
    if k.nested:
        limit = min(k.max_output_tokens or SUMMARY_RESERVE_TOKENS, SUMMARY_RESERVE_TOKENS)
    budget = None
    if k.task_budget_tokens is not None:
        budget = TaskBudget(k.task_budget_tokens, data.book.task_remaining)
    order = CallModel(
        id=data.ledger.next_id,
        messages=data.messages,
        model=spec.name,
        max_output_tokens=min(limit, spec.max_output_tokens),
        tools=data.tool_context.tools,
        thinking=k.thinking,
        resend=control.resending,
        task_budget=budget,
        cleared=data.layers.edits,
        system=k.system_prompt,
    )
    control = evolve(control, spending=one_more_request(control), batch=STREAMING, blocks=0)
    return Move(control, Sampling(Reply(order.id)), owing(data, order), (order,))
