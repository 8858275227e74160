"""
Events, Config and what a run starts from as JSON and back; digests of states.

Only these functions are public, never the converter behind them: its rules
(tags, strictness, defaults left out) are the format of the log.
"""

from stepfold.adapters.codec.convert import (
    CodecError,
    config_from,
    dump_event,
    dump_start,
    event_from,
    load_event,
    plain_event,
    plain_start,
    start_from,
)
from stepfold.adapters.codec.digest import canonical, digest
from stepfold.adapters.codec.tags import EVENTS as EVENT_TAGS
from stepfold.adapters.codec.tags import SCHEMA

__all__ = [
    "EVENT_TAGS",
    "SCHEMA",
    "CodecError",
    "canonical",
    "config_from",
    "digest",
    "dump_event",
    "dump_start",
    "event_from",
    "load_event",
    "plain_event",
    "plain_start",
    "start_from",
]
