"""``stepfold run --explain``: what a run of this config can cost at most, without a call to any model."""

from __future__ import annotations

import sys
from pathlib import Path

from stepfold.adapters.cli.exits import OK, Problem
from stepfold.adapters.config_file import Settings
from stepfold.engine import Config


def explain(
    settings: Settings, path: Path | None, model: str | None, resumed: Config | None, json: bool
) -> int:
    """
    Print the worst case.

    Args:
        settings: What the config file says.
        path: That file.
        model: The model that was typed.
        resumed: The config of a recording that is gone on with; it stands, whatever else is said.
        json: Print one JSON object a line.
    """
    from stepfold.adapters.proof.command.asked import BadInput, config_of
    from stepfold.adapters.proof.command.report import Report
    from stepfold.adapters.proof.worst.answer import computed
    from stepfold.adapters.proof.worst.quantities import Sure

    try:
        config = resumed or config_of(settings, path, model)
    except BadInput as problem:
        raise Problem(str(problem)) from problem
    report = Report(sys.stdout, sys.stderr, json)
    maxima = computed(config)
    report.line(f"A run with {config.model} can cost at most:", explains=config.model)
    report.maxima(maxima, {})
    if any(one.sure is Sure.ENDLESS for one in maxima):
        words = (
            "max_turns and max_model_calls are off: a run need not end; the numbers are those of one turn."
        )
        report.line(words, meaning=words)
    else:
        words = "No call was made. stepfold prove --config FILE plays runs that reach these numbers."
        report.line(words, meaning=words)
    return OK
