"""Only this file checks that an option of the wrong kind is refused by name before anything happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

from stepfold.adapters.memory_log import MemoryLog
from stepfold.adapters.scripted import ScriptedModel
from stepfold.adapters.tools import function_tools, tool
from stepfold.effects import Handle, StopHook, run, run_sync, stream
from stepfold.effects.setup import Options
from stepfold.engine import Config
from stepfold.engine.config import HookSpec
from stepfold.engine.events import PermissionAnswered
from stepfold.engine.messages import Message, Role, Text, ToolResult, ToolUse, texts
from stepfold.engine.state import Collapse
from tests.effects.fakes import FakeModel, FakeTools, text, use

WAYS: dict[str, Callable[..., Any]] = {
    "run": lambda prompt, **options: asyncio.run(run(prompt, **options)),
    "run_sync": run_sync,
    "stream": stream,
}


def look(path: str) -> str:
    """Look."""
    return path


def spread(*paths: str) -> str:
    """No model can say this."""
    return ""


class Half:
    """Has one method of every port that has several."""

    def compact(self) -> None: ...
    def append(self) -> None: ...
    def now_ms(self) -> None: ...
    def run_id(self) -> None: ...
    def specs(self) -> None: ...


class OddSpecs(FakeTools):
    """Offers names in place of tools."""

    def specs(self) -> Any:
        return ("look",)


WRONG: list[tuple[str, Any, str]] = [
    ("model", "claude-x", r"model is 'claude-x' \(str\); wanted a Model port: an object with call \(wired"),
    ("model", None, "model is None; wanted a Model port"),
    ("model", ScriptedModel, "model is the class ScriptedModel itself; wanted an object of it"),
    ("model", Half(), "model is .*Half.*; wanted a Model port"),
    ("tools", "read", r"tools is 'read' \(str\); wanted a list of Tools ports"),
    ("tools", 3, r"tools is 3 \(int\)"),
    ("tools", None, "tools is None"),
    ("tools", {"read": look}, r"tools is .* \(dict\)"),
    ("tools", look, r"tools is <function look.*@tool of stepfold.adapters.tools"),
    ("tools", [look], r"tools\[0\] is <function look.*@tool of stepfold.adapters.tools"),
    ("tools", [tool(look), Half()], r"tools\[1\] is .*Half.*specs, facts, filled, run, close"),
    ("tools", [tool(look), tool(look)], "tools: two tools are named 'look'"),
    ("tools", [tool(spread)], "tools: .*spread.*paths"),
    ("stop_hooks", "lint", r"stop_hooks is 'lint' \(str\); wanted a list of functions"),
    ("stop_hooks", print, "stop_hooks is <built-in function print.*wanted a list"),
    ("stop_hooks", StopHook(print, "lint"), "stop_hooks is StopHook.*wanted a list"),
    ("stop_hooks", [3], r"stop_hooks\[0\] is 3 \(int\); wanted a function or a StopHook"),
    ("stop_hooks", [print, print], "stop_hooks: two stop hooks are named 'print'; StopHook"),
    ("can_use_tool", True, r"can_use_tool is True \(bool\); wanted a function \(name, input\)"),
    ("config", {"max_turns": 3}, r"config is .* \(dict\); wanted a Config of stepfold.engine"),
    ("config", Config, "config is the class Config itself"),
    ("config", Config(stop_hooks=(HookSpec("lint"),)), "stop_hooks: config names lint, but none was given"),
    ("system", 3, r"system is 3 \(int\); wanted a text"),
    ("log", "run.jsonl", r"log is 'run.jsonl' \(str\); wanted a Log port: .*JsonlLog\(PATH\)"),
    ("log", Half(), "log is .*Half.*append, read, close"),
    ("messages", "hello", r"messages is 'hello' \(str\); wanted a list of Message objects"),
    ("messages", Message(Role.USER, ()), "messages is Message"),
    ("messages", [{"role": "user"}], r"messages\[0\] is .*role.* \(dict\); wanted a Message"),
    ("messages", [Message(Role.USER, "hi")], r"messages\[0\]: its content is 'hi'; wanted a tuple of blocks"),  # type: ignore[arg-type]
    ("messages", [Message("user", ())], r"messages\[0\]: its role is 'user'; wanted a Role"),  # type: ignore[arg-type]
    ("messages", [Message(Role.USER, ({"type": "text"},))], r"messages\[0\]: .* is no block"),  # type: ignore[arg-type]
    ("messages", [Message(Role.USER, (Text(3),))], r"messages\[0\]: .* has a text that is no text"),  # type: ignore[arg-type]
    ("messages", [Message(Role.USER, (ToolResult("a", "r"),))], r"messages\[0\]: .*a content that is no"),  # type: ignore[arg-type]
    ("collapses", [3], r"collapses\[0\] is 3 \(int\); wanted a Collapse"),
    ("collapses", [Collapse("x", "s")], r"collapses\[0\] is Collapse.*wanted a number of messages"),  # type: ignore[arg-type]
    ("collapses", [Collapse(1, "s")], r"collapses\[0\] reaches through 1; wanted from 1 to 0"),
    ("tools", OddSpecs(), r"tools: OddSpecs: one of its specs is 'look' \(str\); wanted a ToolSpec"),
    ("compactor", Half(), "compactor is .*Half.*compact, stage"),
    ("restore", "src", r"restore is 'src' \(str\); wanted a function"),
    ("summariser", 3, r"summariser is 3 \(int\); wanted a Summariser port"),
    ("prefetcher", 3, r"prefetcher is 3 \(int\); wanted a Prefetcher port"),
    ("microcompactor", 3, r"microcompactor is 3 \(int\); wanted a Microcompactor port"),
    ("background", 3, r"background is 3 \(int\); wanted a function"),
    ("clock", Half(), "clock is .*Half.*now_ms, sleep"),
    ("ids", Half(), "ids is .*Half.*run_id, seed"),
    ("on_command", 3, r"on_command is 3 \(int\); wanted a function"),
    ("handle", "h", r"handle is 'h' \(str\); wanted a Handle"),
    ("modle", 3, "there is no option 'modle'; did you mean 'model'. the options are background, can_use"),
    ("zzz", 3, "there is no option 'zzz'; the options are"),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "value", "words"), WRONG, ids=lambda value: str(value)[:24])
def test_a_wrong_option_is_refused_by_name(way: str, name: str, value: Any, words: str) -> None:
    model, log = FakeModel(text("x")), MemoryLog()
    options = {"model": model, "log": log, name: value}
    with pytest.raises((TypeError, ValueError), match=f"^{way}: {words}") as refused:
        WAYS[way]("p", **options)
    assert "\n" not in str(refused.value)
    assert ([], []) == (model.orders, log.events)


def test_collapses_go_forward_through_the_messages() -> None:
    history = [Message(Role.USER, (Text(str(n)),)) for n in range(3)]
    collapses = [Collapse(2, "a"), Collapse(2, "b")]
    with pytest.raises(ValueError, match=r"^run_sync: collapses\[1\] reaches through 2; wanted from 3 to 3"):
        run_sync("p", model=FakeModel(), messages=history, collapses=collapses)


def test_every_option_is_in_that_table() -> None:
    assert set(get_type_hints(Options)) <= {name for name, _, _ in WRONG}


@pytest.mark.parametrize("way", WAYS)
def test_without_a_model_nothing_runs(way: str) -> None:
    with pytest.raises(TypeError, match=f"^{way}: model is missing; wanted a Model port"):
        WAYS[way]("p")


@pytest.mark.parametrize("way", ["run", "run_sync"])
def test_who_listens_is_a_function(way: str) -> None:
    with pytest.raises(TypeError, match=rf"^{way}: on_item is 3 \(int\); wanted a function"):
        WAYS[way]("p", model=FakeModel(), on_item=3)
    with pytest.raises(TypeError, match=r"^stream: there is no option 'on_item'"):
        stream("p", model=FakeModel(), on_item=print)  # type: ignore[call-arg]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        (3, r"prompt is 3 \(int\); wanted a text, or a list of Text, Media and Opaque blocks"),
        (b"go", r"prompt is b'go' \(bytes\)"),
        ({"text": "go"}, r"prompt is .* \(dict\)"),
        (["go"], r"prompt\[0\] is 'go' \(str\)"),
        ([Text("go"), ToolUse("a", "read")], r"prompt\[1\] is ToolUse"),
        ([ToolResult("a")], r"prompt\[0\] is ToolResult"),
        ([Text(3)], r"prompt\[0\]: Text.* has a text that is no text"),  # type: ignore[arg-type]
        ("", "prompt is empty"),
        (" \n", "prompt is empty"),
        ([], "prompt is empty"),
        ([Text(""), Text(" ")], "prompt is empty"),
    ],
)
def test_a_prompt_is_words(way: str, prompt: Any, words: str) -> None:
    model = FakeModel(text("x"))
    with pytest.raises((TypeError, ValueError), match=f"^{way}: {words}"):
        WAYS[way](prompt, model=model)
    assert [] == model.orders


def test_what_is_left_out_may_be_given_as_none() -> None:
    optional = set(get_type_hints(Options)) - {"model", "tools", "stop_hooks", "messages", "collapses"}
    nothing: dict[str, Any] = dict.fromkeys(optional)

    assert run_sync("p", model=FakeModel(text("x")), **nothing).ok


def test_lists_may_be_anything_that_can_be_gone_through_once() -> None:
    model = FakeModel(use(("t1", "look")), text("x"))
    history = (Message(Role.USER, (Text(words),)) for words in ("one", "two"))
    hooks = iter([StopHook(lambda stopping: None, "lint")])
    result = run_sync("p", model=model, tools=(t for t in [tool(look)]), messages=history, stop_hooks=hooks)

    assert result.ok
    assert ["one", "two", "p"] == [texts(message.content) for message in result.messages[:3]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("lint",), "StopHook: ask is 'lint'"),
        ((print, ""), "StopHook: name is ''"),
        ((print, 3), "StopHook: name is 3"),
        ((print, "lint", 0), "StopHook: max_blocks is 0; wanted a whole number >= 1"),
        ((print, "lint", True), "StopHook: max_blocks is True"),
        ((print, "lint", None), "StopHook: max_blocks is None"),
    ],
)
def test_a_stop_hook_says_what_it_cannot_be(arguments: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        StopHook(*arguments)


@pytest.mark.parametrize(
    ("words", "told"), [(3, r"text is 3 \(int\)"), ("", "text is empty"), ([ToolUse("a", "b")], r"text\[0\]")]
)
def test_queued_words_are_words(words: Any, told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^queue: {told}"):
        Handle().queue(words)


def test_a_handle_says_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="abort: 'softly' is no kind of abort; wanted hard or submit"):
        Handle().abort("softly")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"change_tools: tools\[0\] is 'read' \(str\); wanted a ToolSpec"):
        Handle().change_tools(["read"])  # type: ignore[list-item]


class Asked:
    """A permission port that refuses."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def ask(self, order: Any) -> PermissionAnswered:
        self.calls.append(order.call.name)
        return PermissionAnswered(order.id, False, "no")


def test_a_permission_port_is_asked_about_every_call_as_a_function_is() -> None:
    asked, tools = Asked(), FakeTools(a=lambda *_: "ran")
    run_sync("p", model=FakeModel(use(("t1", "a")), text("x")), tools=tools, can_use_tool=asked)

    assert (["a"], []) == (asked.calls, tools.runs)


def test_tools_that_ask_are_heard_beside_others() -> None:
    class Guarded(FakeTools, Asked):
        def __init__(self) -> None:
            FakeTools.__init__(self, a=lambda *_: "ran")
            Asked.__init__(self)

        def facts(self, call: ToolUse) -> Any:
            from stepfold.engine.events import CallFacts, Verdict

            return CallFacts(verdict=Verdict.ASK)

    guarded, other = Guarded(), function_tools([look])
    run_sync("p", model=FakeModel(use(("t1", "a")), text("x")), tools=[other, guarded])

    assert (["a"], []) == (guarded.calls, guarded.runs)
