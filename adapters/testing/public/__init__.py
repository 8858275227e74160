"""
Test and fuzz agent loops; needs ``stepfold[testing]`` (docs/testing.md).

This package holds names only: everything lives below ``stepfold.adapters``.
"""

from stepfold.adapters.anthropic_api.real import RealRequest
from stepfold.adapters.scenarios.format import Scenario
from stepfold.adapters.scenarios.judging.protocol import complaints
from stepfold.adapters.scripted import (
    Answer,
    Breaks,
    Closes,
    Fails,
    ScriptedModel,
    ScriptError,
    calls,
    fails,
    says,
)
from stepfold.adapters.testing.config_space import MILDEST, SPACE
from stepfold.adapters.testing.machine.bare import BareStage
from stepfold.adapters.testing.machine.drawing import changes, chosen, configs, faults, now
from stepfold.adapters.testing.machine.hostile import HostileWorld, LiveWorld
from stepfold.adapters.testing.machine.judge import Judge, Violation, hold
from stepfold.adapters.testing.machine.live import LiveStage
from stepfold.adapters.testing.machine.live_loop import TooSlow
from stepfold.adapters.testing.machine.played import world_settings
from stepfold.adapters.testing.plugin.recordings import NotAsRecorded
from stepfold.adapters.testing.record import Record
from stepfold.adapters.testing.strategies.events import (
    call_facts,
    events,
    events_in,
    failures,
    tool_specs,
    usages,
)
from stepfold.adapters.testing.strategies.messages import (
    answer_blocks,
    blocks,
    broken_histories,
    histories,
    messages,
    result_blocks,
    texts,
    tool_uses,
)
from stepfold.adapters.testing.strategies.scenarios import scenarios, worlds
from stepfold.adapters.testing.world import ALL_FAULTS, NO_FAULTS, Fault, Pick, Tool, World, world_of
from stepfold.adapters.testing.writing.finding import Finding, write_finding
from stepfold.adapters.testing.writing.scenario_text import scenario_text

__all__ = [
    "ALL_FAULTS",
    "MILDEST",
    "NO_FAULTS",
    "SPACE",
    "Answer",
    "BareStage",
    "Breaks",
    "Closes",
    "Fails",
    "Fault",
    "Finding",
    "HostileWorld",
    "Judge",
    "LiveStage",
    "LiveWorld",
    "NotAsRecorded",
    "Pick",
    "RealRequest",
    "Record",
    "Scenario",
    "ScriptError",
    "ScriptedModel",
    "TooSlow",
    "Tool",
    "Violation",
    "World",
    "answer_blocks",
    "blocks",
    "broken_histories",
    "call_facts",
    "calls",
    "changes",
    "chosen",
    "complaints",
    "configs",
    "events",
    "events_in",
    "fails",
    "failures",
    "faults",
    "histories",
    "hold",
    "messages",
    "now",
    "result_blocks",
    "says",
    "scenario_text",
    "scenarios",
    "texts",
    "tool_specs",
    "tool_uses",
    "usages",
    "world_of",
    "world_settings",
    "worlds",
    "write_finding",
]
