"""What must hold in every run (specification, section 9), by name, and the exception that one does not."""

from __future__ import annotations

import enum


class Rule(enum.StrEnum):
    """A property that the watch checks; the words say what is wrong where it does not hold."""

    ENDS = "the measure does not fall: nothing says that such a run ever ends"
    ONE_END = "a run has one terminal, and nothing follows it"
    TERMINAL = "the terminal is not the one that this cause has"
    REQUEST = "the API would refuse this request"
    HISTORY = "the next prompt on this history would be refused"
    ERROR = "the consumer saw an error before recovery was spent"
    WITHDRAWN = "what a failed attempt showed stays shown, or is withdrawn twice"
    BREAKER = "autocompact was tried with its breaker open"
    RECOVERIES = "a rung of a ladder was taken more often than it may be between two resets"
    REQUESTS = "a request left though a hard limit stood before it"
    TURNS = "more turns than the limit allows"
    WAIT = "a wait longer than any that is allowed"
    BLOCKED = "the run was blocked though it may go on"
    HOOKS = "stop hooks were not asked as they should be"
    CUT = "an answer that was cut or refused was acted on"
    CALLS = "a call ran that must not run, ran twice, or never ended"
    UNSAFE = "an unsafe call began too early or beside another"
    RESULT = "a result is not what its tool gave"
    OWED = "what the run waits for is not what the world owes it"
    DEADLOCK = "the run is not over and waits for nothing"
    LATE = "an answer that nobody waits for changed something"
    REFUSED = "an event that may come at any time was refused"
    TAKEN = "an event that nobody ordered was taken"
    RAISED = "step raised something else than UnexpectedEvent"
    AWAY = "a step never came to its end"
    ABORT = "an abort was not obeyed"
    QUEUE = "queued words were lost"
    REASON = "the state does not name the transition that was taken"
    TIME = "time went backwards"
    SIZE = "the token count is not that of the view"
    REPLAY = "the same events gave something else the second time"
    OWN = "an invariant of the user's own does not hold"


class Broken(Exception):
    """A rule does not hold; the run is a finding."""

    def __init__(self, rule: Rule, words: str) -> None:
        super().__init__(f"{rule}: {words}")
        self.rule = rule
        self.words = words


def one_line(said: object) -> str:
    """Return the words of others as one line that steers no terminal."""
    return "".join(char for char in " ".join(str(said).split()) if char.isprintable())
