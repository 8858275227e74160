"""The worst case of a config: how much a run can cost at most, and a run that costs it."""
