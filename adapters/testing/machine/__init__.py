"""The world as a state machine that plays against bare ``step``, or the interpreter with real tools."""
