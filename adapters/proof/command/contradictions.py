"""Limits of a config that contradict each other: no request could leave, or one forbids what another says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from stepfold.engine.config import Config


def contradictions(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the key and what is wrong with it, in words."""
    floor, first = config.fixed_prompt_tokens, config.all_models[0]
    blocking = config.thresholds[0].blocking
    if not config.nested and blocking <= 0:
        window = first.context_window_tokens
        need = window - blocking + 1
        yield (
            "context_window_tokens",
            f"{window} of {first.name!r} leaves no room for any request; wanted {need} or more",
        )
    elif not config.nested and floor >= blocking:
        yield (
            "fixed_prompt_tokens",
            f"{floor} is at or over the blocking limit of {first.name!r}, so no request can leave;"
            f" wanted less than {blocking}",
        )
    for key in ("max_model_calls", "max_run_tokens", "max_cost"):
        if getattr(config, key) == 0:
            yield key, "0 lets no request leave; wanted a whole number >= 1, or off"
    if config.tail_min_tokens > config.tail_max_tokens:
        words = f"{config.tail_min_tokens} is over tail_max_tokens, which is {config.tail_max_tokens}"
        yield "tail_min_tokens", words


def place_of(key: str, path: Path | None) -> str:
    """Return where *key* is written, as "file:line: key", or the key alone where it is nowhere."""
    if path is None:
        return key
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if re.match(rf"\s*\"?{re.escape(key)}\"?\s*=", line):
            return f"{path}:{number}: {key}"
    return f"{path}: {key}"
