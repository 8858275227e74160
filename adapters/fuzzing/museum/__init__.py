"""Faults of real loops, planted one at a time, that the fuzzer must find."""
