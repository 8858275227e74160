"""Run as a program in a copy: casts the nets over what that copy has become, and prints what they find."""

from __future__ import annotations

import json

import stepfold.engine.table
from stepfold.adapters.proof.comparison import differences
from stepfold.adapters.proof.environment import World, failed
from stepfold.adapters.proof.explore import Slice, explore
from stepfold.adapters.proof.graph import graph_findings
from stepfold.adapters.proof.invariants import FALLS
from stepfold.adapters.proof.matrix import Matrix
from stepfold.adapters.proof.spec import read_spec
from stepfold.adapters.proof.worlds.facts import closes, rounds, small
from stepfold.adapters.proof.worst.crosscheck import crosscheck
from stepfold.engine.events import Stop
from stepfold.engine.failures import FailureKind

PIECE = Slice(
    name="refusals",
    about="answers that are refused, cut, whole, or call a tool; a drain",
    config=small(collapse=True, max_retries=0, max_output_tokens=1_000, max_output_recoveries=1),
    world=World(
        closes=closes(Stop.END_TURN, Stop.MAX_TOKENS, Stop.REFUSAL),
        fails=failed(FailureKind.PROMPT_TOO_LONG),
        aborts=(),
        deaths=False,
    ),
    messages=rounds(4),
    staged=True,
)


def main() -> None:
    """Print {net: what it finds}."""
    spec = read_spec()
    matrix = Matrix(spec)
    found = explore(PIECE, spec, matrix)
    falls = [line for line in found.findings if FALLS in line]
    cells = [line for line in found.findings if "continue" in line.split("\n")[0] and line not in falls]
    worst = crosscheck(lambda name, done, known: None)
    told = {
        "table": stepfold.engine.table.__file__,
        "second copy": differences(spec),
        "explorer": [
            *graph_findings(found, exempt=False),
            *(f for f in found.findings if f not in cells + falls),
        ],
        "measure": falls,
        "matrix": cells,
        "worst case": worst.findings,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
