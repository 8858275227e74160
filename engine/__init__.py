"""
The pure core: ``step(state, event, config) -> (state, effects)``.

Nothing here reads a clock, draws a random number, waits, or touches a file.
Read ``table.py`` first, then ``state.py`` and ``step.py``.
"""

from stepfold.engine.config import Config, ConfigError
from stepfold.engine.state import Continue, State
from stepfold.engine.step import UnexpectedEvent, start, step
from stepfold.engine.terminals import Terminal

__all__ = ["Config", "ConfigError", "Continue", "State", "Terminal", "UnexpectedEvent", "start", "step"]
