"""Fuzzing: a loop played against a hostile world, what that found, and faults that it must find."""
