"""Transcripts of other agents, read into one neutral form, item by item."""
