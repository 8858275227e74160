"""Strategies for histories: broken ones as they come from outside, and sound ones."""

from __future__ import annotations

import hypothesis.strategies as st

from stepfold.engine.messages import (
    Block,
    Media,
    Message,
    Opaque,
    Origin,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)

IMAGE = Media("image", '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}')
ids = st.sampled_from(["a", "b", "c", ""])
texts = st.builds(Text, st.sampled_from(["hi", "", " \n", "lone \ud800", "long " * 50]))
thinking = st.one_of(
    st.builds(Thinking, st.sampled_from(["", "hm"]), st.sampled_from(["", "sig"])),
    st.just(RedactedThinking("data")),
)


def server_call(name: str) -> Opaque:
    """Return a call of the server's own tools."""
    wire = f'{{"type":"server_tool_use","id":"{name}","name":"web_search","input":{{}}}}'
    return Opaque("server_tool_use", wire, name)


def server_result(name: str) -> Opaque:
    """Return its result."""
    wire = f'{{"type":"web_search_tool_result","tool_use_id":"{name}","content":[]}}'
    return Opaque("web_search_tool_result", wire, answers=name)


uses = st.builds(ToolUse, ids, st.sampled_from(["read", "bash"]), st.sampled_from(["{}", '{"x":"y"}']))
results = st.builds(
    ToolResult, ids, st.lists(st.one_of(texts, st.just(IMAGE)), max_size=2).map(tuple), st.booleans()
)
server_names = st.sampled_from(["s1", "s2"])
said: st.SearchStrategy[Block] = st.one_of(
    texts, thinking, uses, uses, server_names.map(server_call), server_names.map(server_result), results
)
heard: st.SearchStrategy[Block] = st.one_of(texts, results, results, st.just(IMAGE))
boundary = Message(Role.USER, (), Origin.BOUNDARY)
answers = st.builds(
    Message,
    st.just(Role.ASSISTANT),
    st.lists(said, max_size=4).map(tuple),
    st.just(Origin.ANSWER),
    st.sampled_from(["main", "other"]),
)
questions = st.builds(
    Message, st.just(Role.USER), st.lists(heard, max_size=4).map(tuple), st.just(Origin.PROMPT)
)
change = Opaque("tool_removal", '{"type":"tool_removal","tool":{"type":"tool_reference","name":"read"}}')
blocks: st.SearchStrategy[Block] = st.one_of(said, heard, st.just(change))
# Whoever says whatever, in any order.
anything = st.lists(
    st.builds(
        Message,
        st.sampled_from([Role.USER, Role.ASSISTANT, Role.ASSISTANT, Role.SYSTEM]),
        st.lists(blocks, max_size=4).map(tuple),
        st.just(Origin.PROMPT),
        st.sampled_from(["", "main", "other"]),
    ),
    max_size=8,
)
broken = st.lists(st.one_of(answers, questions, questions, st.just(boundary)), max_size=8)


@st.composite
def sound(draw: st.DrawFn, rounds: int = 6) -> list[Message]:
    """Draw a history that the API would take: prompts, answers, calls with their results."""
    messages: list[Message] = [Message(Role.USER, (Text("first prompt"),))]
    for number in range(draw(st.integers(0, rounds))):
        size = draw(st.sampled_from([3, 300, 3_000]))
        calls = [f"t{number}_{place}" for place in range(draw(st.integers(0, 2)))]
        blocks: list[Block] = [Text(f"a{number}".ljust(size, "a"))]
        if draw(st.booleans()):
            blocks.insert(0, Thinking("hm", "sig"))
        blocks += [ToolUse(name, draw(st.sampled_from(["read", "bash"]))) for name in calls]
        messages.append(Message(Role.ASSISTANT, tuple(blocks), Origin.ANSWER, "main"))
        if calls:
            found = tuple(ToolResult(name, (Text("r".ljust(size, "r")),)) for name in calls)
            messages.append(Message(Role.USER, found, Origin.RESULTS))
        else:
            messages.append(Message(Role.USER, (Text(f"q{number}".ljust(size, "q")),)))
    return messages
