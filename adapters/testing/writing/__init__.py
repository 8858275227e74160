"""Runs written down: scenario files and recordings for ``stepfold check`` and ``stepfold replay``."""
