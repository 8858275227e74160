"""Stop hooks: all that are not spent, in order, before the decision."""

from __future__ import annotations

from stepfold.engine.config import Config
from stepfold.engine.effects import Background, Effect, Notice, NoticeKind, RunHook, Show
from stepfold.engine.events import HookAnswered, HookStop, HookVerdict, Resumed, StreamClosed
from stepfold.engine.frozen import evolve, frozen
from stepfold.engine.history import History
from stepfold.engine.messages import Message, Origin, user_text
from stepfold.engine.moves.ledger import beside, owing, spec_of
from stepfold.engine.moves.reply import stream_ended, whole_answer
from stepfold.engine.phases import Checking, Reply, Sampling, Settling
from stepfold.engine.state import Control, Data, Hooks, Move, State


@frozen
class Verdicts:
    """What the hooks asked so far have answered."""

    control: Control
    data: Data
    reply: Reply
    errors: tuple[tuple[str, str], ...]
    prevented: HookStop | None
    effects: tuple[Effect, ...] = ()


def unspent(hook_blocks: tuple[int, ...], k: Config) -> tuple[int, ...]:
    """Return the places of the hooks that may still send the model back."""
    return tuple(p for p, hook in enumerate(k.stop_hooks) if hook_blocks[p] < hook.max_blocks)


def spent_hooks(data: Data, k: Config) -> tuple[str, ...]:
    """Return the names of the hooks that are not asked again."""
    blocks = data.book.hook_blocks
    return tuple(hook.name for p, hook in enumerate(k.stop_hooks) if blocks[p] >= hook.max_blocks)


def check(s: State, e: StreamClosed, k: Config) -> Move:
    """The answer is clean and calls nothing: ask the first hook."""
    assert isinstance(s.phase, Sampling)
    c, data, reply, shown = stream_ended(s, s.phase.reply, e, k)
    due = unspent(data.book.hook_blocks, k)
    order = _ask(due[0], c, data, reply, k)
    hooks = Hooks(due=len(due), left=len(due) - 1, blocks_left=c.hooks.blocks_left)
    c = evolve(c, hooks=hooks, attempts=evolve(c.attempts, crashed=False))
    effects = (*shown, *background(c, data, reply, k), order)
    return Move(c, Checking(reply, due[0], due[1:]), owing(data, order), effects)


def background(c: Control, data: Data, reply: Reply, k: Config) -> tuple[Effect, ...]:
    """Classification, suggestions, memory extraction: main runs only."""
    return () if k.sub_agent else (Background(_answered(c, data, reply, k)),)


def _answered(c: Control, data: Data, reply: Reply, k: Config) -> History[Message]:
    """Return the view with the answer that is judged at its end; it joins for good later."""
    return data.messages.extend(whole_answer(reply, spec_of(c, k).name))


def _ask(place: int, c: Control, data: Data, reply: Reply, k: Config) -> RunHook:
    name = k.stop_hooks[place].name
    return RunHook(data.ledger.next_id, name, c.recovery.stop_hook_active, _answered(c, data, reply, k))


def settle(s: State, e: StreamClosed, k: Config) -> Move:
    """No hook is to be asked."""
    assert isinstance(s.phase, Sampling)
    c, data, reply, shown = stream_ended(s, s.phase.reply, e, k)
    return Move(c, Settling(reply), data, (*shown, *background(c, data, reply, k)))


def checked(s: State, e: HookAnswered | Resumed, k: Config) -> Verdicts:
    """Return the verdicts with this answer among them; a second crash counts as the hook's crash."""
    assert isinstance(s.phase, Checking)
    phase, data, hooks = s.phase, s.data, s.control.hooks
    name = k.stop_hooks[phase.asked].name
    verdict, words = (
        (e.verdict, e.words) if isinstance(e, HookAnswered) else (HookVerdict.CRASH, "the process died")
    )
    errors, stop, effects = phase.errors, phase.prevented, tuple[Effect, ...]()
    if isinstance(e, Resumed):
        ledger = data.ledger
        owed = tuple(effect for effect in ledger.owed if not isinstance(effect, RunHook))
        data = evolve(data, ledger=evolve(ledger, owed=owed))
    match verdict:
        case HookVerdict.BLOCK:
            errors = (*errors, (name, words))
            blocks = tuple(n + (p == phase.asked) for p, n in enumerate(data.book.hook_blocks))
            data = evolve(data, book=evolve(data.book, hook_blocks=blocks))
            hooks = evolve(
                hooks,
                due=len(unspent(blocks, k)),
                blocking=hooks.blocking + 1,
            )
        case HookVerdict.PREVENT:
            stop = stop or HookStop(name, words)
            hooks = evolve(hooks, prevented=True)
        case HookVerdict.CRASH:
            effects = (Show(Notice(NoticeKind.HOOK_CRASHED, f"stop hook {name} crashed: {words}")),)
        case HookVerdict.TIMEOUT:
            effects = (Show(Notice(NoticeKind.HOOK_TIMED_OUT, f"stop hook {name} timed out")),)
        case HookVerdict.PASS:
            pass
    if isinstance(e, Resumed) and (stop is None or phase.waiting):
        effects = (*effects, *beside(data))  # a run that ends here begins nothing again
    control = evolve(s.control, hooks=hooks, attempts=evolve(s.control.attempts, crashed=False))
    return Verdicts(control, data, phase.reply, errors, stop, effects)


def ask_next(s: State, e: HookAnswered | Resumed, k: Config) -> Move:
    """Another hook is to be asked before the decision."""
    assert isinstance(s.phase, Checking)
    now = checked(s, e, k)
    place, rest = s.phase.waiting[0], s.phase.waiting[1:]
    order = _ask(place, now.control, now.data, now.reply, k)
    control = evolve(now.control, hooks=evolve(now.control.hooks, left=len(rest)))
    phase = Checking(now.reply, place, rest, now.errors, now.prevented)
    return Move(control, phase, owing(now.data, order), (*now.effects, order))


def pass_hooks(s: State, e: HookAnswered | Resumed, k: Config) -> Move:
    """The hooks let it end."""
    now = checked(s, e, k)
    return Move(now.control, Settling(now.reply), now.data, now.effects)


def errors_of(now: Verdicts) -> tuple[Message, ...]:
    """Return one user message for each hook that blocks."""
    return tuple(
        user_text(f"Stop hook {name} asks for more work: {words}", Origin.HOOK) for name, words in now.errors
    )
