"""Strategies for blocks, messages and histories."""

from __future__ import annotations

import json

import hypothesis.strategies as st

from stepfold.adapters.testing.world import IMAGE, LONG
from stepfold.engine.messages import (
    Block,
    Media,
    Message,
    Opaque,
    Origin,
    RedactedThinking,
    ResultBlock,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)

TEXTS = st.one_of(
    st.sampled_from(["yes", "", " ", "a\nb", "π", LONG]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
IDS = st.sampled_from(["t1", "t2", "t3"])
NAMES = st.sampled_from(["read", "edit", "bash"])
INPUTS = st.dictionaries(
    st.sampled_from(["path", "text"]), st.one_of(st.integers(-9, 9), st.booleans(), TEXTS), max_size=2
).map(lambda given: json.dumps(given, ensure_ascii=False, separators=(",", ":")))
_SERVER = '{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}'
_FOUND = '{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}'


def texts() -> st.SearchStrategy[str]:
    """Return texts that a log can hold: plain, empty, blank, long, any characters but surrogates."""
    return TEXTS


def tool_uses() -> st.SearchStrategy[ToolUse]:
    """Return calls of client tools; some whose input is no JSON object."""
    whole = st.builds(ToolUse, IDS, NAMES, INPUTS)
    broken = st.builds(ToolUse, IDS, NAMES, st.just("{}"), raw_input=st.sampled_from(["[1]", '{"pa', "null"]))
    return st.one_of(whole, whole, broken)


def result_blocks() -> st.SearchStrategy[ResultBlock]:
    """Return blocks that may stand in a tool's result."""
    return st.one_of(st.builds(Text, TEXTS), st.just(IMAGE))


def blocks() -> st.SearchStrategy[Block]:
    """Return blocks of every class."""
    return st.one_of(
        st.builds(Text, TEXTS),
        st.builds(Thinking, TEXTS, st.sampled_from(["sig", ""])),
        st.builds(RedactedThinking, st.sampled_from(["opaque", "other"])),
        tool_uses(),
        st.builds(ToolResult, IDS, st.lists(result_blocks(), max_size=2).map(tuple), st.booleans()),
        st.sampled_from([IMAGE, Media("document", '{"type":"document","source":{"type":"text"}}')]),
        st.sampled_from(
            [
                Opaque("server_tool_use", _SERVER, call_id="s1"),
                Opaque("web_search_tool_result", _FOUND, answers="s1"),
            ]
        ),
    )


def answer_blocks() -> st.SearchStrategy[Block]:
    """Return blocks that a model may write."""
    return blocks().filter(lambda block: not isinstance(block, ToolResult | Media))


def messages() -> st.SearchStrategy[Message]:
    """Return any message, whether or not it could stand in a conversation."""
    content = st.lists(blocks(), max_size=3).map(tuple)
    return st.builds(
        Message, st.sampled_from(Role), content, st.sampled_from(Origin), st.sampled_from(["main", ""])
    )


def broken_histories() -> st.SearchStrategy[tuple[Message, ...]]:
    """Return any messages in any order, as they might come from outside: a run repairs them once."""
    outside = messages().filter(lambda message: message.origin not in (Origin.BOUNDARY, Origin.BOUNDARY_NOTE))
    return st.lists(outside, max_size=6).map(tuple)


@st.composite
def histories(draw: st.DrawFn, max_rounds: int = 4) -> tuple[Message, ...]:
    """
    Draw a conversation as the API takes it: questions, calls with their results, answers.

    Args:
        draw: Given by Hypothesis.
        max_rounds: How many questions there are at most.
    """
    found: list[Message] = []
    for number in range(draw(st.integers(0, max_rounds))):
        found.append(Message(Role.USER, (Text(f"question {number}"),)))
        for batch in range(draw(st.integers(0, 2))):
            names = draw(st.lists(NAMES, min_size=1, max_size=3))
            uses = [
                ToolUse(f"h{number}.{batch}.{place}", name, draw(INPUTS)) for place, name in enumerate(names)
            ]
            results = tuple(ToolResult(use.id, (Text("done"),), draw(st.booleans())) for use in uses)
            found.append(Message(Role.ASSISTANT, tuple(uses), Origin.ANSWER, "main"))
            found.append(Message(Role.USER, results, Origin.RESULTS))
        found.append(Message(Role.ASSISTANT, (Text(f"answer {number}"),), Origin.ANSWER, "main"))
    return tuple(found)
