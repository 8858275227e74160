"""A worst run acted out, written as a scenario, and played."""
