"""A script as a scenario file (docs/scenarios.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import attrs

from stepfold.adapters.proof.worst.search import ROUNDS
from stepfold.adapters.proof.worst.showing.acting import Script
from stepfold.adapters.proof.worst.world import TOO_LONG, TOOL, Answer, Says, Summary, sizes_of
from stepfold.engine.config import Config, ModelSpec
from stepfold.engine.events import HookVerdict

OFF: Final = "off"
FIRST: Final = """\
The first run only fills the view: its one answer is refused, and is not counted below but in model_calls."""


def scenario_text(config: Config, script: Script, title: str, about: str) -> str:
    """Return the file: the world of *script* against *config*, and what it must come to."""
    about = f"{about} {FIRST}" if script.full else about
    parts = [f"format = 1\ntitle = {_text(title)}\nabout = {_text(about)}"]
    parts += ["\n".join(_config(config)), *_models(config.models), "\n".join(_history())]
    if script.full:
        usage = f"{{ input_tokens = {sizes_of(config).full}, output_tokens = 0 }}"
        parts += ['[[user]]\ntext = "fill the view"', f'[[model]]\nstop = "refusal"\nusage = {usage}']
    parts += ['[[user]]\ntext = "go"']
    parts += _repeated(_answer(answer, config) for answer in script.answers)
    parts += [f'[[tool]]\nname = "{TOOL}"']
    parts += _hooks(config, script)
    parts += [_summary(each) for each in script.summaries] or [_summary(Summary(None))]
    return "\n\n".join([*parts, "\n".join(_expect(config, script))]) + "\n"


def _config(config: Config) -> Iterator[str]:
    yield "[config]"
    yield f"jitter_percent = {config.jitter_percent}"  # none by default in a scenario
    for field in attrs.fields(Config):
        if not field.init or field.name in ("models", "stop_hooks", "jitter_percent"):
            continue
        value = getattr(config, field.name)
        if value != field.default:
            yield f"{field.name} = {_value(value)}"


def _models(models: Sequence[ModelSpec]) -> Iterator[str]:
    for spec in models:
        known = {name: value for name, value in attrs.asdict(spec).items() if value is not None}
        yield "\n".join(
            ["[[config.models]]", *(f"{name} = {_value(value)}" for name, value in known.items())]
        )


def _history() -> Iterator[str]:
    for _ in range(ROUNDS):
        for role in ("user", "assistant"):
            yield f'[[history]]\nrole = "{role}"\ncontent = "x"'


def _answer(answer: Answer, config: Config) -> str:
    seconds = config.max_retry_after_ms / 1_000
    match answer.says:
        case Says.BUSY:
            return f'error = {{ status = 429, type = "rate_limit_error", retry_after = {seconds} }}'
        case Says.AWAY:
            return f'error = {{ status = 429, type = "rate_limit_error", retry_after = {seconds + 1} }}'
        case Says.DROPPED:
            return 'error = { transport = "connection reset" }'
        case Says.OVERLOADED:
            return 'error = { status = 529, type = "overloaded_error" }'
        case Says.TOO_LONG:
            return f'error = {{ status = 400, type = "invalid_request_error", message = "{TOO_LONG}" }}'
        case Says.CALLS:
            return (
                f'blocks = [{{ tool_use = {{ id = "t", name = "{TOOL}", input = {{}} }} }}]{_usage(answer)}'
            )
        case Says.PAUSED | Says.CUT | Says.DONE:
            stops = {Says.PAUSED: "pause_turn", Says.CUT: "max_tokens", Says.DONE: "end_turn"}
            return f'blocks = [{{ text = "x" }}]\nstop = "{stops[answer.says]}"{_usage(answer)}'


def _usage(answer: Answer) -> str:
    if answer.usage() is None:
        return ""
    return f"\nusage = {{ input_tokens = {answer.prompt}, output_tokens = {answer.output} }}"


def _repeated(answers: Iterator[str]) -> Iterator[str]:
    """Yield one table for the same answer several times in a row."""
    for text, same in groupby(answers):
        count = sum(1 for _ in same)
        yield f"[[model]]\n{text}" + (f"\ntimes = {count}" if count > 1 else "")


def _hooks(config: Config, script: Script) -> Iterator[str]:
    words = {HookVerdict.PASS: "pass", HookVerdict.BLOCK: "block: go on"}
    for hook, said in zip(config.stop_hooks, script.hooks, strict=True):
        answers = ", ".join(f'"{words[verdict]}"' for verdict in said or (HookVerdict.PASS,))
        yield f"[[hook]]\nname = {_text(hook.name)}\nanswers = [{answers}]\nmax_blocks = {hook.max_blocks}"


def _summary(summary: Summary) -> str:
    if summary.tokens is None:
        return f'[[compact]]\nerror = "{TOO_LONG}"'
    return f'[[compact]]\nsummary = "s"\ntokens = {summary.tokens}'


def _expect(config: Config, script: Script) -> Iterator[str]:
    yield "[expect]"
    yield f'terminal = "{script.end}"'
    yield f"model_calls = {len(script.answers) + script.full}"
    yield f"compactions = {len(script.summaries)}"
    yield f"waits_ms = [{', '.join(map(str, script.waits_ms))}]"
    ran = [
        f"{_text(hook.name)} = {len(said)}"
        for hook, said in zip(config.stop_hooks, script.hooks, strict=True)
        if said
    ]
    if ran:
        yield f"hooks_run = {{ {', '.join(ran)} }}"


def _value(value: Any) -> str:
    match value:
        case None:
            return f'"{OFF}"'
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            return _text(value)
        case _:
            return f"[{', '.join(map(_value, value))}]"


def _text(text: str) -> str:
    """Return *text* as a TOML string: as JSON writes it, but for one character that TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
