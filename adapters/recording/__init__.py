"""
Recordings: what a log keeps of its runs, as JSON lines (docs/recordings.md).

A header tells what the runs started from; then comes one entry per event, and
with it, where the log keeps that, what the step came to.
"""

from stepfold.adapters.recording.comparing import Difference, compare
from stepfold.adapters.recording.format import (
    Header,
    KeptDelta,
    Outcome,
    Recording,
    RecordingError,
    delta_line,
    event_line,
    header_line,
)
from stepfold.adapters.recording.outcome import Fingerprints, outcome_of
from stepfold.adapters.recording.reading import Entries, parse_recording, read_deltas, read_recording

__all__ = [
    "Difference",
    "Entries",
    "Fingerprints",
    "Header",
    "KeptDelta",
    "Outcome",
    "Recording",
    "RecordingError",
    "compare",
    "delta_line",
    "event_line",
    "header_line",
    "outcome_of",
    "parse_recording",
    "read_deltas",
    "read_recording",
]
