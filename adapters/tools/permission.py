"""
Permission and hooks around a call: rules, then hooks, then the user.

``Guard`` wraps a ``Tools`` port and is the ``Permission`` port as well.  Order
of a call (specification, section 6): look up, read, meaning (the wrapped
port); speculative check, filled copy, before-hooks, permission (``ask``);
run, after-hooks, new messages (``run``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, TypeVar

import attrs

from stepfold.adapters.tools.content import clean, json_text, words_of
from stepfold.adapters.tools.rules import VERDICTS, Found, Rules
from stepfold.adapters.tools.toolbox import json_object
from stepfold.adapters.tools.wanted import (
    COUNT,
    FUNCTION_OR_NOTHING,
    FUNCTIONS,
    TABLE_OR_NOTHING,
    TEXT,
    TOOLS_PORT,
    wants,
)
from stepfold.effects.flow.threads import called
from stepfold.effects.ports import Tools
from stepfold.engine.effects import AskPermission, RunTool
from stepfold.engine.events import (
    CallFacts,
    CallStatus,
    HookStop,
    PermissionAnswered,
    ToolEnded,
    ToolSpec,
    Verdict,
)
from stepfold.engine.messages import Text, ToolUse

T = TypeVar("T")
RULES = wants("Rules", lambda value: isinstance(value, Rules))


@attrs.frozen
class Allow:
    """Run the call; ``input``, if given, takes the place of the model's input."""

    input: Mapping[str, object] | None = attrs.field(default=None, validator=TABLE_OR_NOTHING)


@attrs.frozen
class Deny:
    """Do not run the call; ``words`` are for the model."""

    words: str = attrs.field(default="Permission to run this call was denied.", validator=TEXT)


@attrs.frozen
class Ask:
    """Ask the user, whatever the rules allow."""


@attrs.frozen
class Stop:
    """Do not run the call (before it), or keep its result (after it), and end the run."""

    words: str = attrs.field(default="", validator=TEXT)


@attrs.frozen
class Note:
    """Words that an after-hook adds to the result, for the model."""

    words: str = attrs.field(validator=TEXT)


@attrs.frozen
class HookCall:
    """A call as hooks see it: ``input`` is the filled-out copy."""

    use_id: str
    name: str
    input: Mapping[str, object]


Decision: TypeAlias = Allow | Deny | Ask | Stop
Remark: TypeAlias = Note | Stop
BeforeHook: TypeAlias = Callable[[HookCall], "Decision | Awaitable[Decision | None] | None"]
AfterHook: TypeAlias = Callable[[HookCall, ToolEnded], "Remark | Awaitable[Remark | None] | None"]
Said: TypeAlias = bool | str | Decision
CanUseTool: TypeAlias = Callable[[str, Mapping[str, object]], "Said | Awaitable[Said]"]
Classifier: TypeAlias = Callable[[HookCall], "Awaitable[Decision | None]"]


@attrs.frozen(kw_only=True)
class Guard:
    """
    Tools behind permission.

    Hooks and callbacks may be plain (then run in a thread) or async.  What
    raises or runs out of time has not allowed anything: the call is denied,
    with the reason.

    Args:
        tools: The tools behind it.
        rules: Deny before ask before allow, by name.
        before: Hooks before a call, by name; all are heard, "deny" and "stop" at once.
        after: Hooks after a call that ran, by name.
        classify: A speculative check, begun beside the before-hooks and used
            only where neither rules nor hooks decide.
        can_use_tool: The user's callback: ``(name, input) -> bool``, a decision, or
            a text that denies with these words for the model.
        hook_timeout_ms: The deadline of each hook in ms; asking the user has none.
    """

    tools: Tools = attrs.field(validator=TOOLS_PORT)
    rules: Rules = attrs.field(factory=Rules, validator=RULES)
    before: Mapping[str, BeforeHook] = attrs.field(factory=dict, validator=FUNCTIONS)
    after: Mapping[str, AfterHook] = attrs.field(factory=dict, validator=FUNCTIONS)
    classify: Classifier | None = attrs.field(default=None, validator=FUNCTION_OR_NOTHING)
    can_use_tool: CanUseTool | None = attrs.field(default=None, validator=FUNCTION_OR_NOTHING)
    hook_timeout_ms: int = attrs.field(default=60_000, validator=COUNT)

    # ------------------------------------------------------------ the Tools port

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the wrapped tools."""
        return self.tools.specs()

    def facts(self, call: ToolUse) -> CallFacts:
        """Return the wrapped port's facts and the verdict of the rules."""
        facts = self.tools.facts(call)
        if not facts.known or not facts.valid:
            return facts
        found = self._found(call.name)
        if found is Found.DENY:
            words = f"A permission rule denies the tool {call.name!r}. Do not try to get around it."
            return attrs.evolve(facts, verdict=Verdict.DENY, problem=words)
        asked = bool(self.before) or (
            found is Found.NOTHING and (self.can_use_tool is not None or self.classify is not None)
        )
        return attrs.evolve(facts, verdict=Verdict.ASK if asked else VERDICTS.get(found, Verdict.ALLOW))

    def filled(self, call: ToolUse) -> ToolUse:
        """Return the filled-out copy."""
        return self.tools.filled(call)

    async def run(self, order: RunTool, progress: Callable[[str], None]) -> ToolEnded:
        """Run a call, then hear the after-hooks."""
        ended = await self.tools.run(order, progress)
        if not self.after or ended.status is CallStatus.CANCELLED:
            return ended
        call = self._seen(attrs.evolve(order.call, input=order.input))
        for name, hook in self.after.items():
            try:
                remark = await self._within_deadline(called(hook, call, ended))
            except (Exception, SystemExit) as error:
                remark = Note(f"The hook {name!r} after this call failed: {words_of(error)}")
            match remark:
                case None:
                    pass
                case Note(words):
                    ended = attrs.evolve(ended, content=(*ended.content, Text(clean(words))))
                case Stop(words):
                    ended = attrs.evolve(ended, stop=HookStop(name, clean(words)))
                case odd:
                    words = f"The hook {name!r} after this call returned {odd!r}; wanted None, Note or Stop."
                    ended = attrs.evolve(ended, content=(*ended.content, Text(clean(words))))
        return ended

    async def close(self) -> None:
        """Close the wrapped tools."""
        await self.tools.close()

    # ------------------------------------------------------- the Permission port

    async def ask(self, order: AskPermission) -> PermissionAnswered:
        """Decide about one call; never raises."""
        checking: asyncio.Task[Decision | None] | None = None
        if self.classify is not None:
            checking = asyncio.create_task(_classified(self.classify, self._seen(order.call)))
        try:
            return await self._decide(order, checking)
        finally:
            if checking is not None:
                checking.cancel()
                await asyncio.gather(checking, return_exceptions=True)

    async def _decide(
        self, order: AskPermission, checking: asyncio.Task[Decision | None] | None
    ) -> PermissionAnswered:
        found = self._found(order.call.name)
        case = _Case(order.call, allowed=found is Found.ALLOW, must_ask=found is Found.ASK)
        for name, hook in self.before.items():
            case = self._weigh(case, name, await self._heard(name, hook, self._seen(case.call)))
            if case.refusal is not None:
                return case.answer(order)
        if checking is not None and not case.allowed and not case.must_ask:
            case = self._weigh(case, "check", await self._checked(checking))
        if case.refusal is None and self._wants_user(case):
            case = self._weigh(case, "user", await self._user(self._seen(case.call)))
        return case.answer(order)

    def _wants_user(self, case: _Case) -> bool:
        return case.must_ask or (not case.allowed and self.can_use_tool is not None)

    async def _user(self, call: HookCall) -> Decision:
        if self.can_use_tool is None:
            return Deny("This call needs a permission, and there is nobody to ask.")
        try:
            answer = await called(self.can_use_tool, call.name, call.input)
        except (Exception, SystemExit) as error:
            return Deny(f"Asking for permission failed: {words_of(error)}")
        match answer:
            case True:
                return Allow()
            case False:
                return Deny()
            case Allow() | Deny() | Stop():
                return answer
            case str(words):
                return Deny(words) if words else Deny()
        wanted = "wanted True, False, a text, Allow, Deny or Stop"
        return Deny(f"Asking for permission failed: can_use_tool returned {answer!r}; {wanted}.")

    def _weigh(self, case: _Case, name: str, decision: object) -> _Case:
        """Return the case after one more voice was heard; *name* is whose."""
        match decision:
            case None:
                return case
            case Ask():
                return attrs.evolve(case, must_ask=True)
            case Deny(words):
                return attrs.evolve(case, refusal=words)
            case Stop(words):
                stop = HookStop(name, clean(words))
                return attrs.evolve(case, refusal=words or f"The run was stopped by {name!r}.", stop=stop)
            case Allow(None):
                return attrs.evolve(case, allowed=True)
            case Allow(input):
                return self._changed(case, name, input or {})
        wanted = "wanted None, Allow, Deny, Ask or Stop, so the call was not run."
        return attrs.evolve(case, refusal=f"The hook {name!r} returned {decision!r}; {wanted}")

    def _changed(self, case: _Case, name: str, input: Mapping[str, object]) -> _Case:
        """Return the case with another input, if the tool takes it."""
        call = attrs.evolve(case.call, input=json_text(dict(input)))
        if problem := self.tools.facts(call).problem:
            return attrs.evolve(case, refusal=f"{name!r} changed the input. {problem}")
        return attrs.evolve(case, allowed=True, call=call)

    # ------------------------------------------------------------------- details

    def _found(self, name: str) -> Found:
        read_only = any(spec.name == name and spec.read_only for spec in self.tools.specs())
        return self.rules.find(name, read_only=read_only)

    def _seen(self, call: ToolUse) -> HookCall:
        return HookCall(call.id, call.name, json_object(self.tools.filled(call).input))

    async def _heard(self, name: str, hook: BeforeHook, call: HookCall) -> Decision | None:
        try:
            return await self._within_deadline(called(hook, call))
        except TimeoutError:
            limit = f"{self.hook_timeout_ms} ms"
            return Deny(f"The hook {name!r} did not answer in {limit}, so the call was not run.")
        except (Exception, SystemExit) as error:
            return Deny(f"The hook {name!r} failed, so the call was not run: {words_of(error)}")

    async def _checked(self, checking: asyncio.Task[Decision | None]) -> Decision | None:
        """Return what the speculative check says; where it fails, the user decides."""
        try:
            return await self._within_deadline(checking)
        except TimeoutError:
            return Ask()

    async def _within_deadline(self, answer: Awaitable[T]) -> T:
        async with asyncio.timeout(self.hook_timeout_ms / 1000):
            return await answer


async def _classified(classify: Classifier, call: HookCall) -> Decision | None:
    """Return what the speculative check says; where it fails, the user decides."""
    try:
        decision: Decision | None = await called(classify, call)
    except (Exception, SystemExit):
        return Ask()
    return decision


@attrs.frozen
class _Case:
    """One call before its decision: the input so far, and what was said of it."""

    call: ToolUse
    allowed: bool = False
    must_ask: bool = False
    refusal: str | None = None
    stop: HookStop | None = None

    def answer(self, order: AskPermission) -> PermissionAnswered:
        if self.refusal is not None:
            return PermissionAnswered(order.id, allowed=False, words=clean(self.refusal), stop=self.stop)
        changed = self.call.input if self.call.input != order.call.input else None
        return PermissionAnswered(order.id, allowed=True, input=changed)
