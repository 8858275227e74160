"""Recordings looked into: what happened, how it stood at a place, what else could follow, where two part."""
