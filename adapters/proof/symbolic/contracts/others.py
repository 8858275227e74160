"""Contracts of Checking, of what crosses the loop, and of a run's begin."""

from __future__ import annotations

from typing import Final

from stepfold.adapters.proof.symbolic.given import (
    HOOKED,
    PLAIN,
    Given,
    begins,
    config,
    control,
    data,
    falls,
    hooks,
    reply,
    small,
    sound,
)
from stepfold.engine.effects import Prefetch, RunHook, StageCollapse, Summarise, Wait
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    CollapseStaged,
    Command,
    CommandQueued,
    Event,
    HookAnswered,
    HookVerdict,
    Prefetched,
    PrefetchKind,
    Resumed,
    RunStarted,
    SummaryReady,
    ToolsChanged,
    WaitElapsed,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.history import History
from stepfold.engine.messages import Message, Role, Text
from stepfold.engine.phases import Checking, Done, PhaseKind, Waiting
from stepfold.engine.terminals import Completed, Ending

EMPTY: Final = History[Message]()
HOOK: Final = RunHook(1, "a", False, EMPTY)
WAIT: Final = Wait(1, 0)
OVER: Final = Completed(Ending.END_TURN)
FAILURE: Final = Failure(FailureKind.CUT)


def _first(g: Given, event: Event) -> bool:
    """The first of two hooks is asked."""
    c, k = control(g, PhaseKind.CHECKING, hooks=hooks(g, left=1)), config(g, HOOKED)
    return falls(c, event, Checking(reply(), 0, (1,)), data(HOOK, blocks=(0, 0)), k)


def _second(g: Given, event: Event) -> bool:
    """The second of two hooks is asked, and the first let it pass."""
    c, k = control(g, PhaseKind.CHECKING, hooks=hooks(g)), config(g, HOOKED)
    return falls(c, event, Checking(reply(), 1), data(HOOK, blocks=(0, 0)), k)


def checking_next_hook(g: Given) -> None:
    """It lets it pass: the next one is asked."""
    assert sound(g)
    assert _first(g, HookAnswered(1, HookVerdict.PASS))


def checking_blocked_then_next_hook(g: Given) -> None:
    """It blocks: the next one is asked."""
    assert sound(g)
    assert _first(g, HookAnswered(1, HookVerdict.BLOCK))


def checking_blocked(g: Given) -> None:
    """The last one blocks: once more round."""
    assert sound(g) & small(g)
    assert _second(g, HookAnswered(1, HookVerdict.BLOCK))


def checking_prevented(g: Given) -> None:
    """The end."""
    assert sound(g)
    assert _second(g, HookAnswered(1, HookVerdict.PREVENT))


def checking_passed(g: Given) -> None:
    """The end: no budget is set."""
    assert sound(g)
    assert _second(g, HookAnswered(1, HookVerdict.PASS))


def checking_aborted(g: Given) -> None:
    """The end."""
    assert sound(g)
    assert _second(g, AbortRequested(AbortKind.HARD))


def checking_resumed(g: Given) -> None:
    """The hook is asked again once, then it has crashed."""
    assert sound(g)
    assert _first(g, Resumed())


# ---------------------------------------------------------------- what decides nothing


def _beside(g: Given, event: Event, *more: Prefetch | Summarise | StageCollapse) -> bool:
    """Something comes in while a run waits."""
    c = control(g, PhaseKind.WAITING)
    return falls(c, event, Waiting(FAILURE), data(WAIT, *more), config(g, PLAIN), still=True)


def beside_summary(g: Given) -> None:
    """The summary of a batch."""
    assert sound(g)
    assert _beside(g, SummaryReady(2, "s"), Summarise(2, (), Message(Role.USER, (Text("x"),))))


def beside_memories(g: Given) -> None:
    """Memories."""
    assert sound(g)
    assert _beside(g, Prefetched(2, ("m",)), Prefetch(2, PrefetchKind.MEMORIES, EMPTY))


def beside_collapse(g: Given) -> None:
    """A staged collapse."""
    assert sound(g)
    assert _beside(g, CollapseStaged(2, "s"), StageCollapse(2, ()))


def beside_tools(g: Given) -> None:
    """Other tools."""
    assert sound(g)
    assert _beside(g, ToolsChanged(()))


def beside_command(g: Given) -> None:
    """Words in the queue."""
    assert sound(g)
    assert _beside(g, CommandQueued(Command("c", (Text("x"),))))


def beside_late(g: Given) -> None:
    """A late answer."""
    assert sound(g)
    assert _beside(g, WaitElapsed(3))


# ---------------------------------------------------------------- a run begins


def run_started(g: Given) -> None:
    """A view of any size is left from the last run: a request, a compaction, or the end."""
    assert sound(g)
    k = config(g, PLAIN, fixed_prompt_tokens=g.floor, collapse=False)
    assert begins(control(g, PhaseKind.DONE), RunStarted((Text("x"),)), Done(OVER), data(), k)
