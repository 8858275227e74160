"""
The names by which classes stand in a log.

Frozen: a class may be renamed, its tag may not, and no tag is ever used again
for something else.  ``SCHEMA`` rises when old logs need to be read differently.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from stepfold.engine import events, failures, messages

SCHEMA: Final = 2
TAG: Final = "$type"

BLOCKS: Final[Mapping[type, str]] = MappingProxyType(
    {
        messages.Text: "text",
        messages.Thinking: "thinking",
        messages.RedactedThinking: "redacted_thinking",
        messages.ToolUse: "tool_use",
        messages.ToolResult: "tool_result",
        messages.Media: "media",
        messages.Opaque: "opaque",
    }
)
EVENTS: Final[Mapping[type, str]] = MappingProxyType(
    {
        events.RunStarted: "run_started",
        events.BlockCompleted: "block_completed",
        events.StreamClosed: "stream_closed",
        events.StreamFailed: "stream_failed",
        events.StreamCancelled: "stream_cancelled",
        events.ToolEnded: "tool_ended",
        events.PermissionAnswered: "permission_answered",
        events.Compacted: "compacted",
        events.CompactionFailed: "compaction_failed",
        events.CollapseStaged: "collapse_staged",
        events.HookAnswered: "hook_answered",
        events.WaitElapsed: "wait_elapsed",
        events.SummaryReady: "summary_ready",
        events.Prefetched: "prefetched",
        events.ToolsChanged: "tools_changed",
        events.CommandQueued: "command_queued",
        events.AbortRequested: "abort_requested",
        events.Resumed: "resumed",
    }
)
ENUMS: Final[tuple[type[enum.StrEnum], ...]] = (
    messages.Role,
    messages.Origin,
    events.Stop,
    events.Verdict,
    events.Interrupt,
    events.CallStatus,
    events.HookVerdict,
    events.AbortKind,
    failures.FailureKind,
)
