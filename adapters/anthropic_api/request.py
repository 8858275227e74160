"""An order to the arguments of one request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from stepfold.adapters.anthropic_api import edits, models
from stepfold.adapters.anthropic_api.containers import Containers
from stepfold.adapters.anthropic_api.wire import JSON, Rendered, Wire, tool_json
from stepfold.engine.context.request import request_messages
from stepfold.engine.effects import CallModel
from stepfold.engine.messages import Message, Role

TASK_BUDGET_BETA: Final = "task-budgets-2026-03-13"
EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
CACHES: Final = ("5m", "1h")
_MARKABLE: Final = frozenset({"text", "image", "document", "tool_use", "tool_result"})


def _one_of(allowed: Sequence[str]) -> Any:
    def check(instance: object, attribute: attrs.Attribute[Any], value: str | None) -> None:
        if value is not None and value not in allowed:
            wanted = ", ".join(allowed)
            raise ValueError(f"{attribute.name}: {value!r} is not allowed; wanted {wanted} or nothing")

    return check


@attrs.frozen(kw_only=True)
class Settings:
    """
    What every request of one model port has in common.

    Args:
        system: A system prompt in place of the order's.
        thinking: What to say about thinking where the order wants some; None
            lets the table of models choose.
        effort: ``low`` to ``max``, or None for the model's own.
        betas: Names of betas to ask for with every request.
        cache: How long the prompt cache lives, ``5m`` or ``1h``; None asks for no caching.
        extra: Further fields of the body, as the API names them (``temperature``,
            ``stop_sequences``, ``mcp_servers``, ...).
    """

    system: str = ""
    thinking: Mapping[str, JSON] | None = None
    effort: str | None = attrs.field(default=None, validator=_one_of(EFFORTS))
    betas: tuple[str, ...] = ()
    cache: str | None = attrs.field(default="5m", validator=_one_of(CACHES))
    extra: Mapping[str, JSON] = attrs.field(factory=dict)


@attrs.frozen
class Request:
    """The body of one request, and the betas that it needs (none: the stable endpoint)."""

    body: Wire
    betas: tuple[str, ...]


def request_of(
    order: CallModel, settings: Settings, rendered: Rendered, containers: Containers | None = None
) -> Request:
    """
    Return the request that *order* asks for; it names the container of the newest answer that had one.

    Raises:
        ValueError: The definition of a tool is no JSON.
    """
    extra = dict(settings.extra)
    betas = list(settings.betas)
    frozen = request_messages(order)
    messages = rendered.messages(frozen)
    body: Wire = {
        "model": order.model,
        "max_tokens": order.max_output_tokens,
        "messages": _marked(messages, settings.cache),
    }
    if system := settings.system or order.system:
        body["system"] = _system(system, settings.cache)
    if order.tools:
        body["tools"] = [tool_json(spec) for spec in order.tools]
        if order.tool_choice_none:
            body["tool_choice"] = {"type": "none"}
    if thinking := _thinking(order, settings):
        body["thinking"] = thinking
    if output := _output(order, settings, extra.pop("output_config", None), betas):
        body["output_config"] = output
    if management := _management(order, extra.pop("context_management", None), frozen, betas):
        body["context_management"] = management
    if containers is not None and (container := containers.of(frozen)):
        body["container"] = container
    return Request({**body, **extra}, tuple(dict.fromkeys(betas)))


def _thinking(order: CallModel, settings: Settings) -> Wire | None:
    if order.thinking and settings.thinking is not None:
        return dict(settings.thinking)
    return models.thinking(order.model, order.thinking, order.max_output_tokens)


def _output(order: CallModel, settings: Settings, given: JSON, betas: list[str]) -> Wire:
    output: Wire = dict(given or {})
    if settings.effort is not None:
        output["effort"] = settings.effort
    if order.task_budget is not None:
        betas.append(TASK_BUDGET_BETA)
        output["task_budget"] = {"type": "tokens", "total": order.task_budget.total}
        if order.task_budget.remaining is not None:
            output["task_budget"]["remaining"] = order.task_budget.remaining
    return output


def _management(order: CallModel, given: JSON, frozen: Sequence[Message], betas: list[str]) -> Wire:
    management: Wire = dict(given or {})
    if management:
        betas.append(edits.BETA)
    if order.cleared and (edit := edits.clearing(order.cleared, frozen).wire):
        betas.append(edits.BETA)
        management["edits"] = [*management.get("edits", ()), edit]
    return management


def _system(system: str, cache: str | None) -> JSON:
    if cache is None:
        return system
    return [{"type": "text", "text": system, "cache_control": _control(cache)}]


def _marked(messages: list[Wire], cache: str | None) -> list[Wire]:
    """
    Mark where the prompt cache may end: after the last two user messages.

    The older mark is where the request before ended, so its cache is found
    again however many blocks came since.  The rendered dicts stay as they are.
    """
    if cache is None:
        return messages
    left = 2
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message["role"] != Role.USER.value or message["content"][-1]["type"] not in _MARKABLE:
            continue
        last = {**message["content"][-1], "cache_control": _control(cache)}
        messages[place] = {**message, "content": [*message["content"][:-1], last]}
        left -= 1
        if not left:
            break
    return messages


def _control(cache: str) -> Wire:
    return {"type": "ephemeral"} if cache == "5m" else {"type": "ephemeral", "ttl": cache}
