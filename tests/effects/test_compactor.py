"""Only this file checks the nested run that writes summaries: its request, its limits, what it answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stepfold.adapters.clock import ManualClock
from stepfold.effects import run
from stepfold.effects.compactor import SPAN_PROMPT, SUMMARY_PROMPT, NestedCompactor, nested_config
from stepfold.effects.ports import TextDelta
from stepfold.engine import Config
from stepfold.engine.config import ModelSpec
from stepfold.engine.context.tokens import estimate_message, estimate_messages
from stepfold.engine.effects import Compact, CompactReason, StageCollapse
from stepfold.engine.events import (
    CollapseStaged,
    Compacted,
    CompactionFailed,
    Stop,
    StreamClosed,
    StreamFailed,
    ToolSpec,
    Usage,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Media, Message, Origin, Role, Text, ToolResult, ToolUse, texts, user_text
from tests.effects.fakes import FakeModel, forever, text, use

IMAGE = Media("image", '{"type":"image"}')


def read(id: str, path: str) -> tuple[Message, Message]:
    """Return a call that read a file and its result."""
    call = ToolUse(id, "read", f'{{"path": "{path}"}}')
    result = ToolResult(id, (Text("old contents"), IMAGE))
    return (
        Message(Role.ASSISTANT, (call,), Origin.ANSWER),
        Message(Role.USER, (result,), Origin.RESULTS),
    )


HEAD = (user_text("fix it", Origin.PROMPT), *read("t1", "a.py"), *read("t2", "b.py"), *read("t3", "a.py"))
TAIL = (user_text("go on", Origin.COMMAND), *read("t4", "c.py"))


def order(**changes: Any) -> Compact:
    given: dict[str, Any] = {
        "id": 7,
        "reason": CompactReason.AUTO,
        "head": HEAD,
        "tail": TAIL,
        "model": "big",
    }
    return Compact(**{**given, **changes})


def compactor(model: FakeModel, **options: Any) -> NestedCompactor:
    given: dict[str, Any] = {
        "config": Config(models=(ModelSpec("big", 200_000, 64_000), ModelSpec("small", 50_000, 4_000))),
        "tools": lambda: (ToolSpec("read"),),
        "clock": ManualClock(),
    }
    return NestedCompactor(model, **{**given, **options})


async def test_the_request_holds_the_head_the_prompt_and_tools_that_cannot_be_called() -> None:
    model = FakeModel(text("a fine summary"))
    answer = await compactor(model).compact(order())
    (sent,) = model.orders
    assert "big" == sent.model
    assert 20_000 == sent.max_output_tokens
    assert (True, ("read",)) == (sent.tool_choice_none, tuple(spec.name for spec in sent.tools))
    messages = tuple(sent.messages)
    assert SUMMARY_PROMPT == texts(messages[-1].content)
    assert list(HEAD) == list(messages[: len(HEAD)])
    assert isinstance(answer, Compacted)
    assert (7, "a fine summary", ()) == (answer.effect_id, answer.summary, answer.attachments)


async def test_a_small_model_is_asked_for_no_more_than_it_can_put_out() -> None:
    model = FakeModel(text("short"))
    await compactor(model).compact(order(model="small"))
    assert 4_000 == model.orders[0].max_output_tokens


async def test_tokens_are_those_of_the_whole_new_view() -> None:
    answer = await compactor(FakeModel(text("s" * 3_000))).compact(order(floor=500))
    assert isinstance(answer, Compacted)
    assert 500 + 1_000 + estimate_messages(TAIL) == answer.tokens


async def test_the_head_goes_out_as_the_order_has_it() -> None:
    for strip in (False, True):
        model = FakeModel(text("s"))
        await compactor(model).compact(order(strip_media=strip))
        results = [b for m in model.orders[0].messages for b in m.content if isinstance(b, ToolResult)]
        assert all(IMAGE in block.content for block in results)


async def test_after_media_too_large_neither_summary_nor_view_holds_any() -> None:
    too_large = Failure(FailureKind.MEDIA_TOO_LARGE, "the image exceeds 8000 pixels")
    model = FakeModel([StreamFailed(1, too_large)], text("s"), text("x"))
    result = await run("go on", model=model, messages=[*HEAD, *TAIL])
    with_image, *without = [IMAGE.wire in str(order.messages) for order in model.orders]

    assert result.ok
    assert (True, [False, False]) == (with_image, without)


async def test_recent_files_are_read_again_within_their_tokens() -> None:
    asked: list[tuple[str, ...]] = []

    def restore(paths: tuple[str, ...]) -> list[tuple[str, str]]:
        asked.append(paths)
        return [(path, path * 300) for path in paths]

    answer = await compactor(FakeModel(text("s")), restore=restore).compact(order(restore=600))
    assert [("a.py", "b.py")] == asked
    assert isinstance(answer, Compacted)
    (kept,) = answer.attachments
    assert "a.py" * 300 in texts(kept.content)
    assert kept.origin is Origin.ATTACHMENT
    assert estimate_message(kept) <= 600
    assert 1 + estimate_messages((*TAIL, kept)) == answer.tokens
    for tokens in (0, 10):
        answer = await compactor(FakeModel(text("s")), restore=restore).compact(order(restore=tokens))
        assert isinstance(answer, Compacted)
        assert () == answer.attachments


async def test_a_restore_that_raises_is_for_the_border() -> None:
    async def restore(paths: object) -> Any:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await compactor(FakeModel(text("s")), restore=restore).compact(order(restore=600))


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ([StreamClosed(0, Stop.END_TURN)], FailureKind.UNUSABLE, "empty"),
        (text("  "), FailureKind.UNUSABLE, "empty"),
        (text("half", stop=Stop.MAX_TOKENS), FailureKind.UNUSABLE, "truncated"),
        (text("no", stop=Stop.REFUSAL), FailureKind.UNUSABLE, "refusal"),
        ([Text("let me look"), *use(("t9", "read"))], FailureKind.UNUSABLE, "tool call"),
        ([StreamFailed(0, Failure(FailureKind.OVERLOADED, "busy"))], FailureKind.OVERLOADED, "busy"),
        ([TextDelta("x")], FailureKind.CUT, "without its end"),
        ([RuntimeError("bug")], FailureKind.OTHER, "bug"),
    ],
)
async def test_what_is_no_summary(answer: list[Any], kind: FailureKind, words: str) -> None:
    model = FakeModel(answer, answer)
    failed = await compactor(model).compact(order())
    assert isinstance(failed, CompactionFailed)
    assert (7, kind) == (failed.effect_id, failed.failure.kind)
    assert words in failed.failure.message
    assert 1 == len(model.orders)


async def test_a_request_that_is_too_long_keeps_its_kind_and_excess() -> None:
    for kind in (FailureKind.PROMPT_TOO_LONG, FailureKind.REQUEST_TOO_LARGE):
        model = FakeModel([StreamFailed(0, Failure(kind, "too long", excess_tokens=4_321))])
        failed = await compactor(model).compact(order())
        assert isinstance(failed, CompactionFailed)
        assert (kind, 4_321) == (failed.failure.kind, failed.failure.excess_tokens)


async def test_usage_is_told_with_the_summary_and_with_the_failure() -> None:
    answer = await compactor(FakeModel([Usage(100, 5), *text("s")])).compact(order())
    assert Usage(100, 5) == answer.usage
    failed = await compactor(FakeModel([Usage(100, 5), *text("")[2:]])).compact(order())
    assert Usage(100, 5) == failed.usage


async def test_a_span_is_staged() -> None:
    model = FakeModel(text("note"), text("", stop=Stop.REFUSAL))
    port = compactor(model)
    assert CollapseStaged(3, "note") == await port.stage(StageCollapse(3, HEAD))
    assert CollapseStaged(4, None) == await port.stage(StageCollapse(4, HEAD))
    assert SPAN_PROMPT == texts(tuple(model.orders[0].messages)[-1].content)


async def test_cancelling_it_closes_the_stream() -> None:
    model = FakeModel([TextDelta("s"), forever])
    work = asyncio.create_task(compactor(model).compact(order()))
    while not model.yielded:
        await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert 1 == model.closed


def test_a_nested_config_is_bounded_and_keeps_what_shapes_the_request() -> None:
    parent = Config(
        model="a",
        fallback_models=("b",),
        max_model_calls=0,
        max_run_tokens=0,
        token_budget_tokens=5,
        system_prompt="be kind",
        fixed_prompt_tokens=50,
    )
    nested = nested_config(parent, "collapse", "b")
    assert ("collapse", "b", (), 1) == (nested.source, nested.model, nested.fallback_models, nested.max_turns)
    assert (None, None, None) == (nested.max_model_calls, nested.max_run_tokens, nested.token_budget_tokens)
    assert ("be kind", 50) == (nested.system_prompt, nested.fixed_prompt_tokens)


async def test_a_run_compacts_itself_with_its_own_model() -> None:
    """The whole way: over the threshold, summarised by the same model, and on with the small view."""
    long = tuple(
        Message(role, (Text("word " * 10_000),), origin)
        for _ in range(20)
        for role, origin in ((Role.USER, Origin.PROMPT), (Role.ASSISTANT, Origin.ANSWER))
    )
    model = FakeModel(text("what happened so far"), text("done"))
    result = await run("go on", model=model, messages=long)
    assert (True, "done", 2) == (result.ok, result.output, len(model.orders))
    assert model.orders[0].tool_choice_none
    assert not model.orders[1].tool_choice_none
    sent = [texts(message.content) for message in model.orders[1].messages]
    assert any("what happened so far" in words for words in sent)
    assert "go on" in sent[-1]
    assert estimate_messages(model.orders[1].messages) < 60_000
