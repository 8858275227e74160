"""What a hostile world is made of: strategies for everything that it may say."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st

from stepfold.adapters.testing.answers import ANSWERS, one_of_each
from stepfold.engine.config import HookSpec, ModelSpec
from stepfold.engine.effects import (
    AskPermission,
    CallModel,
    Compact,
    Owed,
    Prefetch,
    RunHook,
    RunTool,
    StageCollapse,
    Summarise,
    Wait,
)
from stepfold.engine.events import (
    CallFacts,
    CallStatus,
    CollapseStaged,
    Compacted,
    CompactionFailed,
    Event,
    HookAnswered,
    HookStop,
    HookVerdict,
    Interrupt,
    PermissionAnswered,
    Prefetched,
    Stop,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
    SummaryReady,
    ToolEnded,
    ToolSpec,
    Usage,
    Verdict,
    WaitElapsed,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Media, Origin, RedactedThinking, Text, Thinking, ToolUse, user_text

words = st.sampled_from(["yes", "", " ", "x" * 6_000, "lone \ud800 surrogate"])
IMAGE = Media("image", '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}')
plain_blocks = st.one_of(
    st.builds(Text, words),
    st.builds(Thinking, st.sampled_from(["", "hm"]), st.sampled_from(["", "sig"])),
    st.just(RedactedThinking("opaque")),
)
results = st.lists(st.one_of(st.builds(Text, words), st.just(IMAGE)), max_size=2).map(tuple)
usages = st.none() | st.builds(
    Usage, st.sampled_from([0, 100, 18_500, 19_500, 30_000]), st.sampled_from([0, 10, 600])
)
facts = st.builds(
    CallFacts,
    known=st.sampled_from([True, True, True, False]),
    valid=st.sampled_from([True, True, True, False]),
    safe=st.booleans(),
    verdict=st.sampled_from([Verdict.ALLOW, Verdict.ALLOW, Verdict.ASK, Verdict.DENY]),
    interrupt=st.sampled_from(Interrupt),
    idempotent=st.booleans(),
    shell=st.booleans(),
)
calls = st.builds(
    ToolUse,
    st.sampled_from(["a", "b", "c", "", "call_7"]),
    st.sampled_from(["read", "bash", "free"]),
    st.sampled_from(["{}", '{"path":"x"}']),
)
failures = st.builds(
    Failure,
    st.one_of(
        st.sampled_from(FailureKind),
        st.sampled_from([FailureKind.PROMPT_TOO_LONG, FailureKind.MEDIA_TOO_LARGE, FailureKind.OVERLOADED]),
    ),
    st.just("words"),
    retry_after_ms=st.sampled_from([None, None, None, 0, 400_000]),
)
compactor_failures = st.builds(
    Failure,
    st.sampled_from([FailureKind.PROMPT_TOO_LONG, FailureKind.UNUSABLE, FailureKind.TIMEOUT]),
    st.just("words"),
    excess_tokens=st.sampled_from([0, 2_000]),
)
stops = st.one_of(st.sampled_from(Stop), st.sampled_from([Stop.END_TURN, Stop.MAX_TOKENS]))
hook_stops = st.sampled_from([None, None, None, HookStop("guard", "enough")])
MODELS = (
    ModelSpec("main", 40_000, 8_000, 3, 15),
    ModelSpec("second", 40_000, 4_000, 3, 15),
    ModelSpec("third", 30_000, 8_000, 3, 15),
)
TOOLS = (ToolSpec("read", clearable=True), ToolSpec("bash"), ToolSpec("free", max_result_chars=None))
OTHER_TOOLS: tuple[tuple[ToolSpec, ...], ...] = (TOOLS, (), (ToolSpec("read", max_result_chars=10),))
configs: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "models": st.just(MODELS),
        "default_output_tokens": st.just(4_000),
        "escalated_output_tokens": st.just(8_000),
        "fallback_models": st.sampled_from([(), ("second",), ("second", "third")]),
        "source": st.sampled_from(["user"] * 5 + ["agent", "compact"]),
        "thinking": st.booleans(),
        "fixed_prompt_tokens": st.sampled_from([0, 500, 0, 500, 29_500]),
        "max_turns": st.sampled_from([1, 3, 200]),
        "max_model_calls": st.sampled_from([None, None, 2, 6]),
        "max_run_tokens": st.sampled_from([None, None, None, 60_000]),
        "max_cost": st.sampled_from([None, None, None, 3]),
        "token_budget_tokens": st.sampled_from([None, 2_000, 100_000]),
        "task_budget_tokens": st.sampled_from([None, 20_000]),
        "autocompact": st.sampled_from([True, True, False]),
        "reactive_compact": st.sampled_from([True, True, False]),
        "collapse": st.sampled_from([True, True, False]),
        "collapse_staging": st.booleans(),
        "streaming_tools": st.booleans(),
        "tool_summaries": st.booleans(),
        "prefetch_memories": st.booleans(),
        "prefetch_skills": st.booleans(),
        "snip_above_tokens": st.sampled_from([None, None, 5_000]),
        "microcompact_idle_minutes": st.sampled_from([None, 1]),
        "microcompact_trigger_results": st.sampled_from([None, 1]),
        "microcompact_keep_results": st.sampled_from([0, 1]),
        "tail_min_tokens": st.just(0),
        "tail_min_messages": st.sampled_from([0, 2]),
        "tail_max_tokens": st.sampled_from([0, 1_000, 40_000]),
        "max_retries": st.sampled_from([0, 2, 10]),
        "max_resends": st.sampled_from([0, 2]),
        "max_compactor_retries": st.sampled_from([0, 2]),
        "max_parallel_tools": st.sampled_from([1, 2, 10]),
        "max_answer_blocks": st.sampled_from([3, 10_000]),
        "max_queued_commands": st.just(3),
        "max_batch_result_chars": st.sampled_from([200_000, 7_000]),
        "result_preview_bytes": st.just(20),
        "stop_hooks": st.sampled_from([(), (HookSpec("lint"),), (HookSpec("lint", 2), HookSpec("types"))]),
    }
)

# ---------------------------------------------------------------- answers


def ends_of(number: int) -> st.SearchStrategy[Event]:
    """Return how the stream of a call may end when nobody cancelled it."""
    cut = [stop for stop in Stop if stop not in (Stop.END_TURN, Stop.TOOL_USE)]
    closed = stops.flatmap(
        lambda stop: st.builds(
            StreamClosed,
            st.just(number),
            st.just(stop),
            st.just(stop.value),
            usages,
            words if stop in cut else st.just(""),
            st.booleans(),
            st.sampled_from([0, 900]),
        )
    )
    failed = st.builds(StreamFailed, st.just(number), failures, usages, words, st.booleans())
    return st.one_of(closed, closed, failed)


def answers_of(order: Owed, cancelling: bool) -> st.SearchStrategy[Event]:
    """Return everything that may come for an open order, but for blocks of an answer."""
    id = st.just(order.id)
    match order:
        case CallModel(number):
            cancelled = st.builds(StreamCancelled, id, usages, words)
            return st.one_of(cancelled, cancelled, ends_of(number)) if cancelling else ends_of(number)
        case RunTool():
            status = st.sampled_from([CallStatus.COMPLETED, CallStatus.FAILED, CallStatus.CANCELLED])
            extra = st.sampled_from([(), (user_text("from the tool", Origin.ATTACHMENT),)])
            return st.builds(ToolEnded, id, results, status, hook_stops, extra)
        case AskPermission():
            given = st.sampled_from([None, '{"other":1}'])
            return st.builds(PermissionAnswered, id, st.booleans(), st.just("words"), given, hook_stops)
        case Compact():
            summaries = st.sampled_from(["summary", "summary", " "])
            tokens = st.sampled_from([100, 18_000, 25_000, 50_000])
            more = st.sampled_from([(), (user_text("a file", Origin.ATTACHMENT),)])
            good = st.builds(Compacted, id, summaries, tokens, more, usages)
            return st.one_of(good, st.builds(CompactionFailed, id, compactor_failures, usages))
        case RunHook():
            return st.builds(HookAnswered, id, st.sampled_from(HookVerdict), st.just("words"))
        case Wait():
            return st.builds(WaitElapsed, id)
        case StageCollapse():
            return st.builds(CollapseStaged, id, st.sampled_from(["span", "span", None]))
        case Summarise():
            return st.builds(SummaryReady, id, st.sampled_from(["did it", None]))
        case Prefetch():
            return st.builds(Prefetched, id, st.sampled_from([(), ("a memory",)]))


__all__ = [
    "ANSWERS",
    "OTHER_TOOLS",
    "TOOLS",
    "answers_of",
    "calls",
    "configs",
    "facts",
    "one_of_each",
    "plain_blocks",
    "words",
]
