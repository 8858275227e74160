"""The config that is asked about: what a file says, and what the table of models knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stepfold.adapters.anthropic_api.models import spec
from stepfold.adapters.config_file import Settings, read_settings
from stepfold.adapters.proof.command.contradictions import contradictions, place_of
from stepfold.adapters.wiring import DEFAULT_MODEL
from stepfold.engine.config import Config, ConfigError, ModelSpec


class BadInput(Exception):
    """What was asked cannot be answered; the text is one line for people."""


def config_asked(path: Path | None) -> Config:
    """
    Return the config in the file at *path*, or the defaults.

    Raises:
        ConfigFileError: The file cannot be used.
        BadInput: It can, but its limits contradict each other.
    """
    config = Config() if path is None else config_of(read_settings(path), path)
    if found := [f"{place_of(key, path)}: {words}" for key, words in contradictions(config)]:
        raise BadInput("; ".join(found))
    return config


def config_of(settings: Settings, path: Path | None, model: str | None = None) -> Config:
    """Return the Config of *settings*, with what the table knows of models whose limits they do not tell."""
    values: dict[str, Any] = dict(settings.values)
    name = model or values.get("model") or DEFAULT_MODEL
    given: tuple[ModelSpec, ...] = values.get("models", ())
    told = {each.name for each in given}
    names = dict.fromkeys((name, *values.get("fallback_models", ())))
    known = [found for each in names if each not in told and (found := spec(each)) is not None]
    try:
        return settings.config(model=name, models=(*given, *known))
    except ConfigError as error:
        raise BadInput(f"{place_of(error.key, path)}: {error.problem}") from error
