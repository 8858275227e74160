"""What guards read, and the condition of every last row."""

from __future__ import annotations

from stepfold.engine.config import Config, ModelSpec
from stepfold.engine.events import (
    Event,
)
from stepfold.engine.state import Control, Entered, Late

AnyEvent = Event | Entered | Late


def always(c: Control, e: AnyEvent, k: Config) -> bool:
    """The last row of a cell."""
    return True


def current_model(c: Control, k: Config) -> ModelSpec:
    """Return the model that the next request goes to."""
    return k.all_models[c.attempts.fallbacks]
