"""The outside: one file an alternative; `wiring.py` puts them together."""
