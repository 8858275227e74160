"""What the report of a failed test says of what it played."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from stepfold.adapters.testing.machine.failing import FINDINGS
from stepfold.adapters.testing.record import Record
from stepfold.adapters.testing.writing.finding import Finding, write_finding


def told(nodeid: str, heard: Iterable[object], seed: str) -> str:
    """
    Return the section of the report; runs that are not written down yet are, in the folder of findings.

    Args:
        nodeid: Of the test.
        heard: Findings, records of runs, and lines.
        seed: Of the search, or "".
    """
    lines = [f"seed:        {seed}"] if seed else []
    for number, each in enumerate(_once(heard), 1):
        match each:
            case Finding():
                lines += each.lines()
            case Record():
                lines += _written(nodeid, number, each)
            case _:
                lines.append(str(each))
    return "\n".join(lines)


def _once(heard: Iterable[object]) -> Iterator[object]:
    """Yield each finding by its last word: Hypothesis tells of one again as it gets shorter."""
    last: dict[Any, object] = {}
    for each in heard:
        last[each.recording if isinstance(each, Finding) else id(each)] = each
    yield from last.values()


def _written(nodeid: str, number: int, record: Record) -> tuple[str, ...]:
    if not record.steps:
        return ("transitions: none (the run did not begin)",)
    name = nodeid.split("/")[-1] if number == 1 else f"{nodeid.split('/')[-1]}-{number}"
    seeds = [getattr(one.event, "seed", None) for one in record.steps]
    seed = next((str(each) for each in seeds if each is not None), "0")
    try:
        found = write_finding(FINDINGS, name, record.begun, record.events, title=nodeid)
    except OSError as problem:
        return (f"the recording could not be written: {problem}",)
    return (f"seed:        {seed} (of the jitter)", *found.lines())
