"""
Tells what each entry of a recording comes to: a program that many revisions can run.

    python telling.py FILE...

It needs of them only what does not change: ``step``, ``start``, and the codec.
Prints one JSON list a file: a value an entry; a text where the file cannot be read.
"""

from __future__ import annotations

import enum
import json
import sys
from collections.abc import Iterator
from typing import Any, Final

import attrs

LONG: Final = 200  # characters; a longer text stands as its length and its ends
START: Final = ("config", "messages", "tools", "collapses")


def told(value: Any, depth: int = 0) -> Any:
    """Return *value* as JSON data whose size does not depend on the history."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, str):
        return value if len(value) <= LONG else f"{value[:80]}…{value[-80:]} ({len(value)} characters)"
    if isinstance(value, tuple | frozenset):
        short = depth < 6 and len(value) <= 8
        return [told(item, depth + 1) for item in value] if short else {"n": len(value)}
    kind = type(value)
    if not attrs.has(kind) or kind.__name__ == "History":
        return {"n": len(value)}
    names = (field.name for field in attrs.fields(kind) if field.init)
    return {"$type": kind.__name__} | {name: told(getattr(value, name), depth + 1) for name in names}


def entries(path: str) -> Iterator[Any]:
    """Yield what each entry comes to; the last one is the words of the problem where one cannot happen."""
    from stepfold.adapters.codec import event_from, start_from
    from stepfold.engine import UnexpectedEvent, start, step

    with open(path, "rb") as file:
        if file.read(2) == b"\x1f\x8b":
            import gzip

            file = gzip.open(path)  # type: ignore[assignment]  # noqa: SIM115
        file.seek(0)
        header = json.loads(file.readline())
        begun = start_from({key: header[key] for key in START if key in header})
        state = start(begun.messages, begun.tools, begun.collapses)
        for line in file:
            if not line.endswith(b"\n"):
                break
            entry = json.loads(line)
            if "d" in entry:
                continue
            try:
                state, effects = step(state, event_from(entry["event"]), begun.config)
            except UnexpectedEvent as problem:
                yield {"problem": str(problem)}
                return
            end = None if state.end is None else state.end.reason.value
            orders = [told(effect) for effect in effects]
            yield {"effects": orders, "control": told(state.control), "end": end}


def main(paths: list[str]) -> None:
    """Print them."""
    for path in paths:
        try:
            print(json.dumps(list(entries(path))), flush=True)
        except (OSError, ValueError, KeyError) as problem:
            print(json.dumps(f"{path}: {' '.join(str(problem).split())}"), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
