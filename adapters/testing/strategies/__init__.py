"""Hypothesis strategies for what a loop is made of: blocks, messages, events, configs, worlds, scenarios."""
