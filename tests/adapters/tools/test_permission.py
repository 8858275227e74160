"""What only this file catches: a call that runs though a rule, a hook or the user said no."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from stepfold.adapters.tools import Allow, Ask, Deny, Guard, Rules, Stop, function_tools, tool
from stepfold.adapters.tools.permission import HookCall, Note
from stepfold.adapters.tools.rules import Found
from stepfold.engine.effects import AskPermission, RunTool
from stepfold.engine.events import CallStatus, HookStop, PermissionAnswered, ToolEnded, Verdict
from stepfold.engine.messages import Text, ToolUse


@tool(read_only=True)
def look(place: str = "here") -> str:
    return f"looked {place}"


@tool
def change(place: str, count: int = 1) -> str:
    return f"changed {place} {count}"


TOOLS = function_tools([look, change])
LOOK = ToolUse("t1", "look", "{}")
CHANGE = ToolUse("t2", "change", '{"place": "a"}')


def asked(guard: Guard, call: ToolUse = CHANGE) -> PermissionAnswered:
    return asyncio.run(guard.ask(AskPermission(5, call)))


# ------------------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        (Rules(), Found.NOTHING),
        (Rules(allow=["change"]), Found.ALLOW),
        (Rules(allow=["ch*"], ask=["c*"]), Found.ASK),
        (Rules(allow=["change"], ask=["change"], deny=["*"]), Found.DENY),
        (Rules(allow=["chang"]), Found.NOTHING),
        (Rules(allow=["CHANGE"]), Found.NOTHING),
        (Rules(allow_read_only=True), Found.NOTHING),
    ],
)
def test_deny_before_ask_before_allow(rules: Rules, found: Found) -> None:
    assert rules.find("change") is found


def test_read_only_is_the_weakest_allow() -> None:
    assert Rules(allow_read_only=True).find("look", read_only=True) is Found.ALLOW
    assert Rules(allow_read_only=True, ask=["look"]).find("look", read_only=True) is Found.ASK


@pytest.mark.parametrize(
    ("guard", "verdict"),
    [
        (Guard(tools=TOOLS), Verdict.ALLOW),
        (Guard(tools=TOOLS, can_use_tool=lambda name, input: True), Verdict.ASK),
        (Guard(tools=TOOLS, can_use_tool=lambda name, input: True, rules=Rules(allow=["*"])), Verdict.ALLOW),
        (Guard(tools=TOOLS, rules=Rules(ask=["change"])), Verdict.ASK),
        (Guard(tools=TOOLS, rules=Rules(deny=["change"])), Verdict.DENY),
        (Guard(tools=TOOLS, rules=Rules(allow=["*"]), before={"h": lambda call: None}), Verdict.ASK),
    ],
)
def test_the_verdict_of_a_call(guard: Guard, verdict: Verdict) -> None:
    assert guard.facts(CHANGE).verdict is verdict


def test_a_denial_by_rule_has_words_and_a_bad_call_keeps_its_own() -> None:
    guard = Guard(tools=TOOLS, rules=Rules(deny=["*"]))

    assert "'change'" in guard.facts(CHANGE).problem
    for call in (ToolUse("t", "change", "{}"), ToolUse("t", "nothing", "{}")):
        assert TOOLS.facts(call) == guard.facts(call)


# ------------------------------------------------------------------------- hooks


def test_hooks_see_the_filled_copy_and_a_change_reaches_the_tool_only() -> None:
    seen: list[HookCall] = []

    def first(call: HookCall) -> Allow:
        seen.append(call)
        return Allow({**call.input, "count": 7})

    async def second(call: HookCall) -> None:
        seen.append(call)

    answer = asked(Guard(tools=TOOLS, before={"first": first, "second": second}))

    assert [{"place": "a", "count": 1}, {"place": "a", "count": 7}] == [call.input for call in seen]
    assert (answer.allowed, json.loads(answer.input or "")) == (True, {"place": "a", "count": 7})
    assert CHANGE.input == '{"place": "a"}'


def test_an_input_that_nobody_changed_is_not_sent_back() -> None:
    guard = Guard(tools=TOOLS, before={"h": lambda call: Allow()})

    assert PermissionAnswered(5, allowed=True) == asked(guard)


def test_a_change_that_does_not_fit_is_a_denial() -> None:
    answer = asked(Guard(tools=TOOLS, before={"h": lambda call: Allow({"count": "x"})}))

    assert answer.allowed is False
    assert "'h' changed the input" in answer.words
    assert "place is required" in answer.words


@pytest.mark.parametrize("voice", [Deny("no"), Stop("halt")])
def test_a_no_ends_it_at_once(voice: Deny | Stop) -> None:
    heard: list[str] = []

    def later(call: HookCall) -> None:
        heard.append("later")

    hooks = {"h": lambda call: voice, "later": later}
    answer = asked(Guard(tools=TOOLS, before=hooks, rules=Rules(allow=["*"])))

    assert (answer.allowed, answer.words, heard) == (False, voice.words, [])
    assert answer.stop == (HookStop("h", "halt") if isinstance(voice, Stop) else None)


def test_a_hook_that_raises_or_hangs_has_not_allowed_anything() -> None:
    def raising(call: HookCall) -> None:
        raise RuntimeError("broken")

    async def hanging(call: HookCall) -> None:
        await asyncio.Event().wait()

    raised = asked(Guard(tools=TOOLS, before={"h": raising}))
    hung = asked(Guard(tools=TOOLS, before={"h": hanging}, hook_timeout_ms=1))

    assert (raised.allowed, hung.allowed) == (False, False)
    assert "RuntimeError: broken" in raised.words
    assert "did not answer in 1 ms" in hung.words


# ---------------------------------------------------------------------- the user


@pytest.mark.parametrize(
    ("answer", "allowed"),
    [
        (True, True),
        (False, False),
        (Allow(), True),
        (Deny("no"), False),
        (Stop("x"), False),
        (None, False),
        ("yes", False),
    ],
)
def test_only_a_clear_yes_allows(answer: Any, allowed: bool) -> None:
    assert asked(Guard(tools=TOOLS, can_use_tool=lambda name, input: answer)).allowed is allowed


def test_the_user_is_asked_with_the_filled_input_and_may_change_it() -> None:
    seen: list[tuple[str, Mapping[str, object]]] = []

    async def user(name: str, input: Mapping[str, object]) -> Allow:
        seen.append((name, input))
        return Allow({"place": "b"})

    answer = asked(Guard(tools=TOOLS, can_use_tool=user))

    assert [("change", {"place": "a", "count": 1})] == seen
    assert (True, '{"place": "b"}') == (answer.allowed, answer.input)


def test_a_callback_that_raises_denies() -> None:
    def user(name: str, input: Mapping[str, object]) -> bool:
        raise EOFError

    told = _told(asked(Guard(tools=TOOLS, can_use_tool=user)))

    assert (False, "Asking for permission failed: EOFError") == told


def _told(answer: PermissionAnswered) -> tuple[bool, str]:
    return answer.allowed, answer.words


@pytest.mark.parametrize(
    ("rules", "hook", "asks"),
    [
        (Rules(), None, True),
        (Rules(), Allow(), False),
        (Rules(allow=["*"]), None, False),
        (Rules(ask=["*"]), Allow(), True),
        (Rules(allow=["*"]), Ask(), True),
        (Rules(), Ask(), True),
    ],
)
def test_who_decides(rules: Rules, hook: Any, asks: bool) -> None:
    called: list[str] = []

    def user(name: str, input: Mapping[str, object]) -> bool:
        called.append(name)
        return True

    guard = Guard(tools=TOOLS, rules=rules, before={"h": lambda call: hook}, can_use_tool=user)

    assert asked(guard).allowed is True
    assert (["change"] if asks else []) == called


def test_asking_where_there_is_nobody_is_a_denial() -> None:
    assert asked(Guard(tools=TOOLS, rules=Rules(ask=["*"]))).allowed is False


# --------------------------------------------------------------- speculative check


def test_the_check_runs_beside_the_hooks_and_decides_where_they_do_not() -> None:
    order: list[str] = []

    async def check(call: HookCall) -> Deny:
        order.append("check begun")
        await asyncio.sleep(0)
        order.append("check done")
        return Deny("looks bad")

    async def hook(call: HookCall) -> None:
        order.append("hook begun")
        for _ in range(5):
            await asyncio.sleep(0)
        order.append("hook done")

    guard = Guard(tools=TOOLS, before={"h": hook}, classify=check, can_use_tool=lambda name, input: True)
    answer = asked(guard)

    assert (False, "looks bad") == _told(answer)
    assert order.index("check done") < order.index("hook done")


def test_a_check_that_is_not_needed_is_cancelled_and_one_that_fails_asks_the_user() -> None:
    ended: list[str] = []

    async def hanging(call: HookCall) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    async def failing(call: HookCall) -> None:
        raise RuntimeError

    async def hook(call: HookCall) -> Allow:
        await asyncio.sleep(0)
        return Allow()

    def never(name: str, input: Mapping[str, object]) -> bool:
        return False

    assert asked(Guard(tools=TOOLS, before={"h": hook}, classify=hanging, can_use_tool=never)).allowed is True
    assert ended == ["ended"]
    assert asked(Guard(tools=TOOLS, classify=failing, can_use_tool=never)).allowed is False
    assert asked(Guard(tools=TOOLS, classify=failing, can_use_tool=lambda name, input: True)).allowed is True


# ------------------------------------------------------------------- after a call


def ran(guard: Guard, call: ToolUse = CHANGE, input: str | None = None) -> ToolEnded:
    return asyncio.run(guard.run(RunTool(9, call, call.input if input is None else input), print))


def test_after_hooks_see_what_ran_and_may_add_words_or_stop() -> None:
    seen: list[tuple[HookCall, ToolEnded]] = []

    def note(call: HookCall, ended: ToolEnded) -> Note:
        seen.append((call, ended))
        return Note("formatted")

    def stop(call: HookCall, ended: ToolEnded) -> Stop:
        return Stop("enough")

    end = ran(Guard(tools=TOOLS, after={"note": note, "stop": stop}), input='{"place": "b"}')

    assert {"place": "b", "count": 1} == seen[0][0].input
    assert (Text("changed b 1"), Text("formatted")) == end.content
    assert HookStop("stop", "enough") == end.stop
    assert CallStatus.COMPLETED == end.status


def test_an_after_hook_that_fails_leaves_the_result_and_says_so() -> None:
    def broken(call: HookCall, ended: ToolEnded) -> None:
        raise ValueError("bad")

    end = ran(Guard(tools=TOOLS, after={"fmt": broken}))

    assert CallStatus.COMPLETED == end.status
    assert end.content[1:] == (Text("The hook 'fmt' after this call failed: ValueError: bad"),)


def test_a_guard_adds_nothing_where_there_is_nothing_to_add() -> None:
    guard = Guard(tools=TOOLS)

    assert TOOLS.specs() == guard.specs()
    assert TOOLS.filled(LOOK) == guard.filled(LOOK)
    assert ToolEnded(9, (Text("looked here"),)) == ran(guard, LOOK)
    assert attrs.evolve(TOOLS.facts(LOOK)) == guard.facts(LOOK)
    asyncio.run(guard.close())
