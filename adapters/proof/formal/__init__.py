"""The formal model: TLC on the TLA+ of ``specs/``, and the engine held against its whole state graph."""
