"""Driven runs in which the process dies."""

from __future__ import annotations

from stepfold.engine.events import AbortKind, CallFacts, HookVerdict, Stop, Verdict
from stepfold.engine.failures import FailureKind
from tests.engine.driven.answers import ONE_HOOK, TWO_HOOKS
from tests.engine.driven.context import full
from tests.engine.driven.drive import UNSAFE, Drive


def crash_in_call() -> Drive:
    """The process dies with a call open, then in back-off, until the retries are spent."""
    drive = Drive(max_retries=2)
    drive.begin()
    drive.call("a")
    drive.resume()
    drive.fail(FailureKind.TRANSPORT)
    drive.resume()
    return drive


def crash_for_ever() -> Drive:
    """A supervisor that restarts for ever."""
    drive = Drive(max_retries=1, stop_hooks=ONE_HOOK)
    drive.begin()
    drive.text()
    drive.resume()
    drive.text()
    drive.resume()
    return drive


def crash_in_wait() -> Drive:
    """The process dies in back-off, with a retry left."""
    drive = Drive()
    drive.begin()
    drive.fail(FailureKind.TRANSPORT)
    drive.resume()
    drive.waited()
    drive.finish()
    return drive


def crash_in_compaction() -> Drive:
    """Once: begun again; twice: a failure for the breaker."""
    drive = full()
    drive.resume()
    drive.resume()
    drive.finish()
    return drive


def crash_barred() -> Drive:
    """A compaction would be begun again, but no request is left."""
    drive = full(max_model_calls=2)
    drive.resume()
    return drive


def crash_in_reaction() -> Drive:
    """Once: begun again; twice: the withheld error comes out."""
    drive = Drive()
    drive.begin()
    drive.fail(FailureKind.PROMPT_TOO_LONG)
    drive.resume()
    drive.resume()
    return drive


def crash_in_media_reaction() -> Drive:
    """The same with media."""
    drive = Drive()
    drive.begin()
    drive.fail(FailureKind.MEDIA_TOO_LARGE)
    drive.resume()
    drive.resume()
    return drive


def reaction_crash_barred() -> Drive:
    """A reactive compaction would be begun again, but no request is left."""
    drive = Drive(max_model_calls=2)
    drive.begin()
    drive.fail(FailureKind.PROMPT_TOO_LONG)
    drive.resume()
    return drive


def crash_in_tools() -> Drive:
    """Calls that ran are unknown, an idempotent one runs again once, a permission is asked again."""
    drive = Drive()
    drive.begin()
    drive.call("ran")
    drive.call("again", facts=CallFacts(safe=True, idempotent=True))
    drive.call("asked", facts=CallFacts(safe=True, verdict=Verdict.ASK))
    drive.call("later", facts=UNSAFE)
    drive.close(Stop.TOOL_USE)
    drive.resume()
    drive.permit("asked", allowed=False)
    drive.tool("again")
    drive.tool("later")
    drive.finish()
    return drive


def crash_in_hook(verdicts: tuple[HookVerdict, ...], last: int) -> Drive:
    """Hooks answer as told; the process dies twice in hook number *last*."""
    drive = Drive(stop_hooks=TWO_HOOKS)
    drive.begin()
    drive.text()
    drive.close()
    for place, verdict in enumerate(verdicts):
        if place == last:
            drive.resume()
            drive.resume()
        else:
            drive.hook(verdict, "words")
    return drive


def crash_in_hooks() -> Drive:
    """The first hook crashes the process; the second passes."""
    drive = crash_in_hook((HookVerdict.CRASH, HookVerdict.PASS), 0)
    assert drive.end.ok
    return drive


def crash_after_prevent() -> Drive:
    """The second hook crashes the process; the first had prevented."""
    return crash_in_hook((HookVerdict.PREVENT, HookVerdict.CRASH), 1)


def crash_after_block() -> Drive:
    """The second hook crashes the process; the first had blocked."""
    return crash_in_hook((HookVerdict.BLOCK, HookVerdict.CRASH), 1)


def crash_after_pass() -> Drive:
    """The second hook crashes the process; the first had passed."""
    return crash_in_hook((HookVerdict.PASS, HookVerdict.CRASH), 1)


def crash_in_abort() -> Drive:
    """The process dies while an abort waits."""
    drive = Drive()
    drive.begin()
    drive.call("a")
    drive.abort(AbortKind.SUBMIT)
    drive.resume()
    return drive
