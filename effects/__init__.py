"""The interpreter: carries the engine's orders out and brings the world's facts in."""

from stepfold.effects.fold import LogMismatch, fold, trace
from stepfold.effects.handle import Handle
from stepfold.effects.ready.hooks import Blocks, Prevents, StopHook, Stopping
from stepfold.effects.result import CommandMark, Result, RunFailed
from stepfold.effects.run import Stream, run, run_sync, stream

__all__ = [
    "Blocks",
    "CommandMark",
    "Handle",
    "LogMismatch",
    "Prevents",
    "Result",
    "RunFailed",
    "StopHook",
    "Stopping",
    "Stream",
    "fold",
    "run",
    "run_sync",
    "stream",
    "trace",
]
