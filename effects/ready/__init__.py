"""Ports that are there without an adapter: hooks and permission from functions, time, chance."""
