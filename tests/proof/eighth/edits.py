"""
An eighth continue, built in the order in which somebody would: each stage is a set of edits to a copy.

``refusal_retry``: an answer that was refused is withdrawn and asked for again, ``max_refusals`` times.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple


class Edit(NamedTuple):
    """In *file*, *old*, which stands there once, becomes *new*."""

    file: str
    old: str
    new: str


MOVE: Final = '''\
def refusal_retry(s: State, e: StreamClosed, k: Config) -> Move:
    """Withdraw the refusal and ask again."""
    assert isinstance(s.phase, Sampling)
    c, data, reply, shown = stream_ended(s, s.phase.reply, e, k)
    data, effects = withdraw(data, reply, e.shown, CANCELLED_RAISED)
    control = Control(
        turn=c.turn,
        stop=c.stop,
        abort=c.abort,
        compaction=_fresh(c),
        recovery=c.recovery,
        attempts=_same_model(c),
        spending=c.spending,
        fill=c.fill,
        batch=NO_BATCH,
        hooks=_no_hooks_asked(c),
        queued=c.queued,
        resending=c.resending,
    )
    return Move(control, PREPARING, unsummarised(data), (*shown, *effects))


'''
GUARD: Final = '''\
def refusal_retriable(c: Control, e: StreamClosed, k: Config) -> bool:
    """Refused, and asked for again."""
    return e.stop is REFUSAL and not k.nested


'''
MATRIX: Final = """\
[continues.refusal_retry]
spends = "refusals"
messages = "view"
compaction = "keep"
output_recoveries = "keep"
reactive_compacted = "keep"
output_limit_override = "keep"
pending_tool_summary = "none"
stop_hook_active = "keep"
turn = "keep"
tool_context = "keep"
ledgers = "keep"

"""
ROW: Final = """\
    row(Sampling,    StreamClosed,       g.refusal_retriable,         Continue.REFUSAL_RETRY,              Preparing,   continues.refusal_retry),
"""  # noqa: E501
REFUSED: Final = "    row(Sampling,    StreamClosed,       g.refused, "
NEXT_TURN: Final = '    NEXT_TURN = "next_turn"\n'

A_ROW: Final = (
    Edit("engine/state.py", NEXT_TURN, f'{NEXT_TURN}    REFUSAL_RETRY = "refusal_retry"\n'),
    Edit("engine/guards/answer.py", "def refused(", f"{GUARD}def refused("),
    Edit("engine/guards/__init__.py", "    refused,\n", "    refusal_retriable,\n    refused,\n"),
    Edit("engine/table.py", REFUSED, ROW + REFUSED),
    Edit(
        "engine/moves/continues.py", "def token_budget_continuation(", f"{MOVE}def token_budget_continuation("
    ),
)
IN_THE_SPEC: Final = (
    Edit(
        "specs/machine.toml",
        '    ["Sampling", "StreamClosed", "refused", ',
        '    ["Sampling", "StreamClosed", "refusal_retriable", "refusal_retry", "Preparing"],\n'
        '    ["Sampling", "StreamClosed", "refused", ',
    ),
    Edit("specs/machine.toml", "[continues.next_turn]\n", f"{MATRIX}[continues.next_turn]\n"),
)
A_LIMIT: Final = (
    Edit(
        "engine/state.py",
        "    staged: int = 0  # collapses",
        "    refusals: int = 0\n    staged: int = 0  # collapses",
    ),
    Edit(
        "engine/config.py",
        "    max_compaction_failures: int =",
        "    max_refusals: int = attrs.field(default=1, validator=_whole(0))\n"
        "    max_compaction_failures: int =",
    ),
    Edit(
        "engine/guards/answer.py",
        "return e.stop is REFUSAL and not k.nested",
        "return e.stop is REFUSAL and not k.nested and c.recovery.refusals < k.max_refusals",
    ),
    Edit(
        "engine/moves/continues.py",
        "recovery=c.recovery,",
        "recovery=evolve(c.recovery, refusals=c.recovery.refusals + 1),",
    ),
)
A_PLACE: Final = (
    Edit("engine/measure.py", '    "escalation",\n', '    "escalation",\n    "refusals",\n'),
    Edit(
        "engine/measure.py",
        "        int(not drained),\n",
        "        config.max_refusals - recovery.refusals,\n        int(not drained),\n",
    ),
    Edit(
        "specs/machine.toml",
        '"escalation", "drain", "fallbacks"',
        '"escalation", "refusals", "drain", "fallbacks"',
    ),
    Edit(
        "specs/machine.toml",
        "\nmax_compaction_failures = 3\n",
        "\nmax_refusals = 1\nmax_compaction_failures = 3\n",
    ),
)
IN_THE_KEY: Final = (
    Edit(
        "adapters/proof/canonical.py",
        "(recovery.stop_hook_active, recovery.withheld.value, recovery.staged > 0),",
        "(recovery.stop_hook_active, recovery.withheld.value, recovery.staged > 0, recovery.refusals),",
    ),
)
DRAIN: Final = """\
            stop_hook_active=c.recovery.stop_hook_active,
            staged=0,
        ),
"""
KEPT: Final = "            refusals=c.recovery.refusals,\n"
KEPT_BY_THE_DRAIN: Final = (Edit("engine/moves/continues.py", DRAIN, KEPT + DRAIN),)
IN_THE_SEARCH: Final = (
    Edit(
        "adapters/proof/worst/world.py",
        '    DONE = "a whole',
        '    REFUSED = "a refusal"\n    DONE = "a whole',
    ),
    Edit(
        "adapters/proof/worst/world.py",
        "case Says.PAUSED | Says.CUT",
        "case Says.REFUSED | Says.PAUSED | Says.CUT",
    ),
    Edit(
        "adapters/proof/worst/world.py",
        "stops = {Says.PAUSED: Stop.PAUSE_TURN,",
        "stops = {Says.REFUSED: Stop.REFUSAL, Says.PAUSED: Stop.PAUSE_TURN,",
    ),
    Edit("adapters/proof/worst/world.py", "ends = (Says.PAUSED,", "ends = (Says.REFUSED, Says.PAUSED,"),
    Edit(
        "adapters/proof/worst/crosscheck.py",
        '        "max_retries": 0,\n',
        '        "max_retries": 0,\n        "max_refusals": 0,\n',
    ),
    Edit(
        "adapters/proof/worst/crosscheck.py",
        "    least(max_turns=3, max_retries=2),\n",
        "    least(max_turns=3, max_retries=2),\n    least(max_turns=2, max_refusals=1),\n",
    ),
)
IN_THE_CLOSED_FORMS: Final = (
    Edit(
        "adapters/proof/worst/rungs.py",
        "        trips = self.steady + self.reactions\n",
        "        trips = (self.steady + self.reactions) * (1 + self.refusals)\n",
    ),
    Edit("adapters/proof/worst/rungs.py", "    drains: bool\n", "    refusals: int\n    drains: bool\n"),
    Edit(
        "adapters/proof/worst/rungs.py",
        "        drains=config",
        "        refusals=config.max_refusals * free,\n        drains=config",
    ),
)


def apply(folder: Path, edits: tuple[Edit, ...]) -> None:
    """Make *edits* in the copy in *folder*."""
    for file, old, new in edits:
        path = folder / file
        text = path.read_text(encoding="utf-8")
        assert 1 == text.count(old), (file, old, text.count(old))
        path.write_text(text.replace(old, new), encoding="utf-8")
