"""Scenario files: a run written down as data, played in a world with virtual time."""
