"""
What each format's word for an end is among the ten reasons of this loop.

A word that is not here is told as it is, and stands for no reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from stepfold.engine import Terminal

_C: Final = Terminal.COMPLETED
_M: Final = Terminal.MODEL_ERROR
_T: Final = Terminal.MAX_TURNS
_S: Final = Terminal.ABORTED_STREAMING
_B: Final = Terminal.BLOCKING_LIMIT

AGENT_SDK: Final[Mapping[str, Terminal | None]] = MappingProxyType(
    {
        # the ten that both loops have
        **{reason.value: reason for reason in Terminal},
        # further ones of the SDK
        "rapid_refill_breaker": _B,
        "api_error": _M,
        "malformed_tool_use_exhausted": _M,
        "budget_exhausted": _T,
        "structured_output_retry_exhausted": _M,
        "tool_deferred": None,  # the host runs the tool: no end of the loop
        "tool_deferred_unavailable": None,
        "background_requested": None,
        "turn_setup_failed": _M,
    }
)
"""``terminal_reason`` of the Claude Agent SDK."""

SWE_EXITS: Final[Mapping[str, Terminal]] = MappingProxyType(
    {
        "exit_cost": _T,
        "exit_total_execution_time": _T,
        "exit_command_timeout": _T,
        "exit_context": _B,
        "exit_format": _M,
        "exit_api": _M,
        "exit_error": _M,
        "exit_environment_error": _M,
        "exit_forfeit": _C,
        "exit_command": _S,
    }
)
"""How SWE-agent leaves its loop; what had been done is submitted all the same, and the word wrapped then."""

WORDS: Final[Mapping[str, Mapping[str, Terminal | None]]] = MappingProxyType(
    {
        "stepfold": {reason.value: reason for reason in Terminal},
        "claude-code": AGENT_SDK,
        "stream-json": {
            **AGENT_SDK,
            "success": _C,
            "error_during_execution": _M,
            "error_max_turns": _T,
            "error_max_budget_usd": _T,
            "error_max_structured_output_retries": _M,
        },
        "codex": {
            "task_complete": _C,
            "turn_complete": _C,
            "interrupted": _S,
            "replaced": _S,
            "review_ended": _C,
            "turn_aborted": _S,
            "budget_limited": _T,
        },
        "openhands": {
            "finished": _C,
            "error": _M,
            "stuck": _T,
            "paused": _S,
            "idle": None,  # it waits for a person, or works: no end
            "running": None,
            "waiting_for_confirmation": None,
            "deleting": None,
            # of its older versions
            "rejected": _C,
            "max_iterations": _T,
            "max_budget": _T,
            "stopped": _S,
            "loading": None,
            "init": None,
            "awaiting_user_input": None,
            "awaiting_user_confirmation": None,
            "user_confirmed": None,
            "user_rejected": None,
            "rate_limited": None,
        },
        "swe-agent": {
            "submitted": _C,
            "Submitted": _C,
            "LimitsExceeded": _T,
            "TimeExceeded": _T,
            "RepeatedFormatError": _M,
            "UserInterruption": _S,
            "early_exit": _S,
            "skipped": None,  # it never began
            **SWE_EXITS,
            **{f"submitted ({word})": reason for word, reason in SWE_EXITS.items()},
        },
        "sessions": {"stop": _C, "length": _C, "toolUse": None, "error": _M, "aborted": _S},
        "inspect": {
            "stop": _C,
            "tool_calls": _C,
            "max_tokens": _C,
            "model_length": Terminal.PROMPT_TOO_LONG,
            "content_filter": _C,
            "unknown": None,
            "context": Terminal.PROMPT_TOO_LONG,
            "message": _T,
            "token": _T,
            "cost": _T,
            "time": _T,
            "working": _T,
            "operator": _S,
            "custom": None,
            "error": _M,
            "cancelled": _S,
        },
        "messages": {
            "stop": _C,
            "tool_calls": None,  # one answer of a chat: the loop goes on
            "function_call": None,
            "length": _C,
            "content_filter": _C,
            "end_turn": _C,
            "tool_use": None,
        },
        "copilot-events": {"complete": _C, "session.end": _C, "session.shutdown": _C, "error": _M},
    }
)
"""By format, then by word; None: a word that is known and names no end of a loop."""


def terminal_of(format: str, word: str) -> Terminal | None:
    """Return the reason that *word* of *format* stands for; None where it stands for none that is known."""
    return WORDS.get(format, {}).get(word)


def known(format: str, word: str) -> bool:
    """Whether *word* is one that *format* is known to use."""
    return word in WORDS.get(format, {})
