"""
CrossHair, in a process of its own: ``python -m ...symbolic.confirming [--seconds N] NAME...``.

Prints one JSON object a contract: its name, what became of it, in words, and
the seconds that it took.  CrossHair replaces parts of Python while it works,
so nothing else happens in this process.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any, Final

SECONDS: Final = 120.0  # of computing, for one contract


def results(contract: Any, seconds: float) -> Iterator[tuple[str, str]]:
    """Yield (state, words) of what CrossHair says of *contract*; nothing where it finds no contract."""
    from crosshair import core
    from crosshair.core_and_libs import analyze_function, run_checkables
    from crosshair.options import AnalysisKind, AnalysisOptionSet

    # It reads directives from the parents' __init__.py, and `stepfold` is a namespace, which has none.
    vars(core)["collect_options"] = lambda thing: AnalysisOptionSet()
    options = AnalysisOptionSet(
        analysis_kind=[AnalysisKind.asserts], report_all=True, per_condition_timeout=seconds
    )
    for message in run_checkables(analyze_function(contract, options)):
        yield message.state.value, " ".join(message.message.split())


def main() -> None:
    """Check the named contracts, all of them without a name."""
    from stepfold.adapters.proof.symbolic import contracts, plugin

    plugin.install()
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    for name in asked.names or contracts.every():
        began = time.monotonic()
        found = list(results(contracts.every()[name], asked.seconds))
        state, words = max(found, key=lambda each: each[0] != "confirmed", default=("missing", "no contract"))
        seconds = round(time.monotonic() - began, 2)
        print(json.dumps({"contract": name, "state": state, "words": words, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
