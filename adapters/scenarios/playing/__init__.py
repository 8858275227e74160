"""The simulated world, and playing a scenario in it."""
