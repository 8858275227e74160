"""``Scenario`` -> the text of a scenario file: what ``load`` reads, the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from stepfold.adapters.scenarios import format as f
from stepfold.adapters.testing.writing import blocks, toml_values
from stepfold.engine.config import Config, ModelSpec
from stepfold.engine.events import HookVerdict, Interrupt

_FIELDS: Final = tuple(field for field in attrs.fields(Config) if field.init and field.name != "stop_hooks")
_OFF: Final = "off"
_RULES: Final[dict[f.Rule, Any]] = {
    f.Rule.ALLOW: None,
    f.Rule.DENY: "deny",
    f.Rule.ASK_ALLOW: {"ask": "allow"},
    f.Rule.ASK_DENY: {"ask": "deny"},
}


def scenario_text(scenario: f.Scenario) -> str:
    """
    Return *scenario* as TOML.

    ``loads`` of it is *scenario* again, as far as the format can say it: of
    failures the kind, of texts what UTF-8 can hold.
    """
    head = [f"format = {f.FORMAT}", f"title = {toml_values.text(scenario.title)}"]
    if scenario.about:
        head.append(f"about = {toml_values.text(scenario.about)}")
    parts = [head, *(_lines(*part) for part in _tables(scenario))]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _lines(header: str, values: dict[str, Any]) -> list[str]:
    return [header, *toml_values.lines(values)]


def _tables(scenario: f.Scenario) -> Iterator[tuple[str, dict[str, Any]]]:
    world = scenario.world
    if config := _config(scenario.config):
        yield "[config]", config
    yield from (("[[history]]", blocks.message(each)) for each in scenario.history)
    yield from (("[[user]]", {"text": prompt}) for prompt in scenario.prompts)
    yield from (("[[model]]", blocks.entry(each)) for each in world.entries)
    yield from (("[[tool]]", _tool(each)) for each in world.tools)
    yield from (("[[hook]]", _hook(each)) for each in world.hooks)
    yield from (("[[compact]]", _compaction(each)) for each in world.compactions)
    for staged in scenario.staged:
        yield "[[collapse]]", {"through": staged.through, "summary": staged.summary}
    yield from (("[[act]]", {"at": point_text(each.at), "do": deed_text(each.do)}) for each in world.acts)
    if expect := _expect(scenario.expect):
        yield "[expect]", expect


def _config(config: Config) -> dict[str, Any]:
    """Return the keys that differ from what a scenario has without them."""
    without = {field.name: field.default for field in _FIELDS} | {"jitter_percent": 0}
    found: dict[str, Any] = {}
    for name, usual in without.items():
        value = getattr(config, name)
        if value == usual:
            continue
        if name == "models":
            value = [_model(spec) for spec in value]
        found[name] = _OFF if value is None else value
    return found


def _model(spec: ModelSpec) -> dict[str, Any]:
    return attrs.asdict(spec)


def _tool(tool: f.Tool) -> dict[str, Any]:
    results = [_outcome(each) for each in tool.outcomes]
    return {
        "name": tool.name,
        "safe": tool.safe or None,
        "result": results[0] if len(results) == 1 else None,
        "results": results if len(results) > 1 else None,
        "takes": tool.timing.takes_ms or None,
        "never": tool.timing.never or None,
        "interrupt": "cancel" if tool.timing.interrupt is Interrupt.CANCEL else None,
        "max_result_chars": _result_limit(tool.max_result_chars),
        "permission": _RULES[tool.rule],
        "stop": tool.stop or None,
        "shell": tool.shell or None,
    }


def _outcome(outcome: f.ToolOutcome) -> str | dict[str, Any]:
    return {"error": outcome.words} if isinstance(outcome, f.Raises) else blocks.result(outcome.content)


def _result_limit(chars: int | None) -> int | str | None:
    return "infinite" if chars is None else (chars if chars != 50_000 else None)


def _hook(hook: f.Hook) -> dict[str, Any]:
    worded = (HookVerdict.BLOCK, HookVerdict.PREVENT)
    answers = [
        f"{reply.verdict.value}: {reply.words}" if reply.verdict in worded else reply.verdict.value
        for reply in hook.replies
    ]
    return {"name": hook.name, "answers": answers, "max_blocks": hook.max_blocks}


def _compaction(compaction: f.Compaction) -> dict[str, Any]:
    match compaction:
        case f.NoSummary(error):
            return {"error": error}
        case f.Summary(text, tokens):
            return {"summary": text, "tokens": tokens}


def point_text(point: f.Point) -> str:
    """Return a point of a run in the words of ``at``."""
    match point.moment:
        case f.Moment.CALL_OPENED | f.Moment.CALL_CLOSED:
            return f"call {point.number} {point.moment.value.removeprefix('call ')}"
        case f.Moment.CALL_BLOCK:
            return f"call {point.number} block {point.block}"
        case f.Moment.COMPACTION_STARTED | f.Moment.RETRY_WAITING:
            kind, what = point.moment.value.split()
            return f"{kind} {point.number} {what}"
    kind, what = point.moment.value.split()
    return f"{kind} {point.name} {what}"


def deed_text(deed: f.Deed) -> str:
    """Return what happens from outside in the words of ``do``."""
    match deed:
        case f.Abort(kind):
            return f"abort {kind.value}"
        case f.Queue(text):
            return f"queue {text}"
        case f.Crash():
            return "crash"
        case f.Close():
            return "close"


def _expect(expect: f.Expect) -> dict[str, Any]:
    calls, tools, request = expect.calls, expect.tools, expect.calls.request
    count = calls.model_calls
    found: dict[str, Any] = {
        **attrs.asdict(expect.ends),
        "model_calls": {"max": count.max} if isinstance(count, f.AtMost) else count,
        "compactions": calls.compactions,
        "models": calls.models,
        "waits_ms": calls.waits_ms,
        "tools": {name: status.value for name, status in tools.tools} or None,
        "tool_overlap": tools.overlap or None,
        "no_overlap": tools.no_overlap or None,
        "hooks_run": dict(tools.hooks_run) or None,
        **attrs.asdict(expect.shown),
        "request": None if request is None else attrs.asdict(request),
        "contains": None if calls.contains is None else attrs.asdict(calls.contains),
    }
    return {name: value for name, value in found.items() if value is not None}
