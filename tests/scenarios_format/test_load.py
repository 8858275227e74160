"""Only this catches a change of the file format: what is read, what is refused, where the blame is put."""

from __future__ import annotations

import pytest

from stepfold.adapters.scenarios import format as f
from stepfold.adapters.scenarios.reading.acts import deed_of, point_of
from stepfold.adapters.scenarios.reading.load import loads
from stepfold.adapters.scripted import Breaks, Closes, Fails
from stepfold.engine.config import ModelSpec
from stepfold.engine.events import AbortKind, CallStatus, HookVerdict, Interrupt, Stop, Usage
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import (
    Media,
    Opaque,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)

HEAD = 'format = 1\ntitle = "t"\n[[user]]\ntext = "go"\n'
EVERYTHING = '''
format = 1
title = "all of it"
about = "every key once"

[config]
max_turns = 5
max_run_tokens = "off"
fallback_models = ["b"]
autocompact = false

[[history]]
role = "user"
content = "earlier"

[[history]]
role = "assistant"
content = [
  { type = "thinking", thinking = "hm", signature = "s" },
  { type = "tool_use", id = "h1", name = "read", input = { path = "x" } },
]

[[history]]
role = "user"
content = [
  { type = "tool_result", tool_use_id = "h1", content = "found", is_error = true },
  { type = "image", source = { type = "url", url = "u" } },
]

[[user]]
text = "fix"

[[user]]
text = "more"

[[model]]
blocks = [
  { text = "Let me look." },
  { thinking = "deep", signature = "sig" },
  { redacted_thinking = "opaque" },
  { tool_use = { id = "t1", name = "read", input = { path = "a" } } },
  { raw = { type = "server_tool_use", id = "s1", name = "web_search", input = {} } },
]
usage = { input_tokens = 100, output_tokens=20, cache_read_input_tokens=3, cache_creation_input_tokens=4 }
takes = 1000
times = 3
model = "b"

[[model]]
error = { status = 429, type = "rate_limit_error", message = "slow", retry_after = 7 }

[[model]]
blocks = [{ text = "half" }]
open = { tool_use = { id = "t9", name = "edit", partial_json = "{\\"pa" } }
cut = true

[[model]]
blocks = [{ text = "done" }]
stop = "stop_sequence"
times = "forever"

[[tool]]
name = "read"
safe = true
results = [
  "one", { error = "gone" }, { blocks = [{ text = "a" }, { raw = { type = "image" } }] }, { chars = 3 },
]
takes = 10
interrupt = "cancel"
max_result_chars = "infinite"
permission = { ask = "deny" }
stop = true
shell = true

[[hook]]
name = "lint"
answers = ["block: 3 errors", "prevent: never", "pass", "crash", "timeout"]
max_blocks = 2

[[compact]]
summary = "so far"
tokens = 2000

[[compact]]
error = "no"

[[collapse]]
through = 2
summary = "early"

[[act]]
at = "tool t1 started"
do = "abort hard"

[expect]
terminal = "aborted_tools"
terminals = ["completed", "aborted_tools"]
ok = false
ending = "truncated"
transitions = ["next_turn"]
model_calls = { max = 12 }
compactions = 1
tools = { t1 = "completed" }
tool_overlap = [["t1", "t2"]]
no_overlap = [["t1", "t3"]]
hooks_run = { lint = 2 }
waits_ms = [500]
shown_errors = 0
tombstones = 1
models = ["main", "b"]
request = { call = -1, shape = ["user: text", "assistant:  text   tool_use(t1)"] }
contains = { call = 1, text = "limit" }
'''


def test_every_key_of_the_format_is_read() -> None:
    scenario = loads(EVERYTHING)

    assert ("all of it", "every key once", ("fix", "more")) == (
        scenario.title, scenario.about, scenario.prompts
    )  # fmt: skip
    config = scenario.config
    assert (5, None, ("b",), False, 0) == (
        config.max_turns, config.max_run_tokens, config.fallback_models, config.autocompact,
        config.jitter_percent,
    )  # fmt: skip
    assert [("lint", 2)] == [(hook.name, hook.max_blocks) for hook in config.stop_hooks]
    assert (f.Staged(2, "early"),) == scenario.staged
    assert (f.Act(f.Point(f.Moment.TOOL_STARTED, name="t1"), f.Abort(AbortKind.HARD)),) == scenario.world.acts
    assert (f.Summary("so far", 2000), f.NoSummary("no")) == scenario.world.compactions


def test_history_is_read_in_api_form() -> None:
    first, second, third = loads(EVERYTHING).history

    assert (Role.USER, (Text("earlier"),)) == (first.role, first.content)
    assert (Thinking("hm", "s"), ToolUse("h1", "read", '{"path":"x"}')) == second.content
    assert "main" == second.model
    result, image = third.content
    assert ToolResult("h1", (Text("found"),), is_error=True) == result
    assert isinstance(image, Media)
    assert "image" == image.type


def test_answers_of_the_model() -> None:
    whole, failed, cut, last = loads(EVERYTHING).world.entries

    text, thinking, redacted, call, raw = whole.answer.blocks
    assert (Text("Let me look."), Thinking("deep", "sig"), RedactedThinking("opaque")) == (
        text, thinking, redacted
    )  # fmt: skip
    assert ToolUse("t1", "read", '{"path":"a"}') == call
    assert isinstance(raw, Opaque)
    assert ("server_tool_use", "s1") == (raw.type, raw.call_id)
    assert Closes(Stop.TOOL_USE, "tool_use") == whole.answer.outcome
    assert Usage(100, 20, 3, 4) == whole.answer.usage
    assert (3, "b", (200, 400, 600, 800, 1000, 1000)) == (
        whole.times, whole.answer.model, whole.answer.arrivals_ms
    )  # fmt: skip
    assert isinstance(failed.answer.outcome, Fails)
    failure = failed.answer.outcome.failure
    assert (FailureKind.RATE_LIMITED, 7000) == (failure.kind, failure.retry_after_ms)
    assert (Breaks(), ToolUse("t9", "edit", '{"pa')) == (cut.answer.outcome, cut.answer.open)
    assert (None, Closes(Stop.STOP_SEQUENCE, "stop_sequence")) == (last.times, last.answer.outcome)


def test_tools_and_hooks() -> None:
    world = loads(EVERYTHING).world
    (tool,) = world.tools

    assert f.Timing(10, False, Interrupt.CANCEL) == tool.timing
    assert (True, None, f.Rule.ASK_DENY, True, True) == (
        tool.safe, tool.max_result_chars, tool.rule, tool.stop, tool.shell
    )  # fmt: skip
    one, gone, blocks, chars = tool.outcomes
    assert (f.Gives((Text("one"),)), f.Raises("gone"), f.Gives((Text("xxx"),))) == (one, gone, chars)
    assert isinstance(blocks, f.Gives)
    assert [Text, Media] == [type(block) for block in blocks.content]
    (hook,) = world.hooks
    assert [
        (HookVerdict.BLOCK, "3 errors"),
        (HookVerdict.PREVENT, "never"),
        (HookVerdict.PASS, ""),
        (HookVerdict.CRASH, ""),
        (HookVerdict.TIMEOUT, ""),
    ] == [(reply.verdict, reply.words) for reply in hook.replies]


def test_expectations() -> None:
    expect = loads(EVERYTHING).expect

    assert f.EndExpected(
        "aborted_tools", ("completed", "aborted_tools"), False, "truncated", ("next_turn",)
    ) == expect.ends
    assert f.CallsExpected(
        f.AtMost(12), 1, ("main", "b"), (500,),
        f.RequestShape(-1, ("user: text", "assistant: text tool_use(t1)")), f.Contains(1, "limit"),
    ) == expect.calls  # fmt: skip
    assert f.ToolsExpected(
        (("t1", CallStatus.COMPLETED),), (("t1", "t2"),), (("t1", "t3"),), (("lint", 2),)
    ) == expect.tools
    assert f.ShownExpected(0, 1) == expect.shown


def test_what_is_not_said_has_its_default() -> None:
    text = '[[model]]\nblocks = [{ text = "hi" }]\n[[tool]]\nname = "read"\n[[hook]]\nname = "h"\n'
    scenario = loads(HEAD + text)
    (entry,) = scenario.world.entries
    (tool,) = scenario.world.tools
    (hook,) = scenario.world.hooks

    assert (Closes(Stop.END_TURN, "end_turn"), None, 0, 1) == (
        entry.answer.outcome, entry.answer.usage, entry.answer.takes_ms, entry.times
    )  # fmt: skip
    assert f.Tool("read", (f.Gives((Text("ok"),)),)) == tool
    assert f.Hook("h", (f.HookReply(HookVerdict.PASS),), 1) == hook
    assert f.Expect() == scenario.expect


def test_a_file_that_does_not_name_its_format_is_of_the_first() -> None:
    assert "t" == loads("title = 't'\n[[user]]\ntext = 'go'\n").title


def test_hooks_of_the_config_let_every_run_end_and_come_first() -> None:
    text = "[[hook]]\nname = 'a'\nanswers = ['block: x']\n[[config.stop_hooks]]\nname = 'b'\nmax_blocks = 3\n"
    scenario = loads(HEAD + text)

    assert [("b", 3), ("a", 1)] == [(hook.name, hook.max_blocks) for hook in scenario.config.stop_hooks]
    passing, _ = scenario.world.hooks
    assert (f.HookReply(HookVerdict.PASS),) == passing.replies


def test_a_collapse_past_the_history_replaces_all_of_it() -> None:
    text = "[[history]]\nrole = 'user'\ncontent = 'a'\n[[collapse]]\nthrough = 4\nsummary = 's'\n"

    assert (f.Staged(1, "s"),) == loads(HEAD + text).staged


def test_models_of_the_config_have_their_own_limits() -> None:
    spec = "name = 'main'\ncontext_window_tokens = 50_000\nmax_output_tokens = 4_000\n"
    scenario = loads(HEAD + "[config]\nmax_turns = 'off'\n[[config.models]]\n" + spec)

    assert scenario.config.max_turns is None
    assert ModelSpec("main", 50_000, 4_000) == scenario.config.all_models[0]


def test_a_small_window_is_none_to_a_run_that_shrinks_one() -> None:
    text = "[config]\nsource = 'compact'\ncontext_window_tokens = 10\n"

    assert 10 == loads(HEAD + text).config.context_window_tokens


@pytest.mark.parametrize("more", ["stop = 'max_tokens'", "cut = true", "error = { status = 500 }"])
def test_what_breaks_an_answer_off_may_leave_a_block_open(more: str) -> None:
    (entry,) = loads(f"{HEAD}[[model]]\nopen = {{ text = 'a' }}\n{more}\n").world.entries

    assert Text("a") == entry.answer.open


def test_an_act_may_leave_a_block_open() -> None:
    act = "[[act]]\nat = 'call 1 opened'\ndo = 'abort hard'\n"
    (entry,) = loads(f"{HEAD}[[model]]\nopen = {{ text = 'a' }}\n{act}").world.entries

    assert Text("a") == entry.answer.open


@pytest.mark.parametrize(
    ("input", "kept", "raw"),
    [
        ("{ path = 'a' }", '{"path":"a"}', ""),
        ("'{\"a\": 1}'", '{"a": 1}', ""),
        ("'{query: test}'", "{}", "{query: test}"),
        ("[1]", "{}", "[1]"),
        ("''", "{}", ""),
    ],
)
def test_an_input_may_be_what_no_json_parser_accepts(input: str, kept: str, raw: str) -> None:
    text = HEAD + f"[[model]]\nblocks = [{{ tool_use = {{ id = 't', name = 'n', input = {input} }} }}]\n"
    (entry,) = loads(text).world.entries

    assert (ToolUse("t", "n", kept, raw_input=raw),) == entry.answer.blocks


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("call 2 opened", f.Point(f.Moment.CALL_OPENED, 2)),
        ("call 2 block 13", f.Point(f.Moment.CALL_BLOCK, 2, 13)),
        ("call 2 closed", f.Point(f.Moment.CALL_CLOSED, 2)),
        ("tool t1 started", f.Point(f.Moment.TOOL_STARTED, name="t1")),
        ("tool my call ended", f.Point(f.Moment.TOOL_ENDED, name="my call")),
        ("hook lint started", f.Point(f.Moment.HOOK_STARTED, name="lint")),
        ("compaction started", f.Point(f.Moment.COMPACTION_STARTED, 1)),
        ("compaction 3 started", f.Point(f.Moment.COMPACTION_STARTED, 3)),
        ("retry 1 waiting", f.Point(f.Moment.RETRY_WAITING, 1)),
        ("hook lint ended", None),
        ("call two opened", None),
        ("retry waiting", None),
    ],
)
def test_points(text: str, point: f.Point | None) -> None:
    assert point == point_of(text)


@pytest.mark.parametrize(
    ("text", "deed"),
    [
        ("abort hard", f.Abort(AbortKind.HARD)),
        ("abort submit", f.Abort(AbortKind.SUBMIT)),
        ("queue stop that, please", f.Queue("stop that, please")),
        ("crash", f.Crash()),
        ("close", f.Close()),
        ("crash now", None),
        ("queue", None),
        ("abort", None),
    ],
)
def test_deeds(text: str, deed: f.Deed | None) -> None:
    assert deed == deed_of(text)
