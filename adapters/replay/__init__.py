"""Recordings folded with today's code, and where they part from what they tell."""
