"""``stepfold run``: from a prompt to its end, live."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, Final

import attrs

from stepfold.adapters.cli.commands.explain import explain
from stepfold.adapters.cli.commands.model import Vendor, limits_of, vendor
from stepfold.adapters.cli.commands.sessions import session_store
from stepfold.adapters.cli.commands.stop_hooks import command_hooks
from stepfold.adapters.cli.exits import FAILED, INTERRUPTED, Problem, exit_code
from stepfold.adapters.cli.terminal.asking import AskOnTerminal, is_terminal, nobody
from stepfold.adapters.cli.terminal.json_view import JsonView
from stepfold.adapters.cli.terminal.stopping import stopping
from stepfold.adapters.cli.terminal.view import View
from stepfold.adapters.codec import CodecError, dump_start
from stepfold.adapters.config_file import ConfigFileError, Settings, read_settings
from stepfold.adapters.recording import Recording, RecordingError, read_recording
from stepfold.adapters.recording.format import REDACTED
from stepfold.adapters.recording.redaction import common_secrets
from stepfold.adapters.replay.folding import fold_again
from stepfold.adapters.sessions.port import SessionError
from stepfold.adapters.tools.content import clean
from stepfold.adapters.tools.permission import CanUseTool
from stepfold.adapters.tools.rules import Rules
from stepfold.adapters.wiring import DEFAULT_MODEL, file_log, vendor_model, wired
from stepfold.effects import Handle, LogMismatch
from stepfold.effects import run as run_loop
from stepfold.effects.ports import Hooks, Log, Start
from stepfold.engine import Config, ConfigError
from stepfold.engine.config import ModelSpec

SYSTEM: Final = """\
You work in the folder {folder}, with the tools that are offered. Look before you change anything, \
change no more than the task needs, and say at the end what you did.\
"""


@attrs.frozen(kw_only=True)
class Wishes:
    """What was typed."""

    prompt: str | None
    model: str | None = None
    folder: Path | None = None
    config: Path | None = None
    record: Path | None = None
    resume: Path | None = None
    session: str | None = None
    deltas: bool = False
    redact: bool = False
    allow_all: bool = False
    quiet: bool = False
    explain: bool = False
    json: bool = False


def run_command(wishes: Wishes) -> int:
    """Run; return the exit code of the end.  What cannot be done is a ``Problem``, before a file is made."""
    settings = _settings(wishes.config)
    _check_names(wishes)
    if wishes.explain:
        recording = None if wishes.resume is None else _resumed(wishes, wishes.prompt)
        begun = None if recording is None else recording.begun.config
        return explain(settings, wishes.config, wishes.model, begun, wishes.json)
    prompt = _prompt(wishes)
    resumed = _resumed(wishes, prompt)
    _check_record(wishes)
    if resumed is not None and REDACTED in resumed.header.keeps and wishes.resume is not None:
        wishes = attrs.evolve(wishes, redact=True)  # it says so of all that it holds
    client = vendor()
    try:
        return asyncio.run(_session(wishes, settings, prompt, resumed, client))
    except asyncio.CancelledError:
        raise Problem("given up: the run was cut off; --resume goes on with it", INTERRUPTED) from None
    except (LogMismatch, RecordingError, SessionError, ConfigError) as error:
        raise Problem(str(error)) from error
    except CodecError as error:
        raise Problem(f"the run cannot be recorded, and was cut off: {error}", FAILED) from error
    except OSError as error:
        what = f"{error.filename}: it cannot be written" if error.filename else "the run was cut off"
        raise Problem(f"{what}: {error.strerror or error}", FAILED) from error


# --------------------------------------------------------------- before the run


def _settings(path: Path | None) -> Settings:
    if path is None:
        return Settings()
    try:
        return read_settings(path)
    except ConfigFileError as error:
        raise Problem(str(error)) from error


def _check_names(wishes: Wishes) -> None:
    if wishes.model is not None and not wishes.model.strip():
        raise Problem("--model: it is empty; wanted the name of a model")
    if wishes.folder is None:
        return
    if not wishes.folder.is_dir():
        raise Problem(f"--tools: {wishes.folder} is not a folder")
    try:
        wishes.folder.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # the current folder is gone
        raise Problem(f"--tools: {wishes.folder}: {getattr(error, 'strerror', None) or error}") from error


def _prompt(wishes: Wishes) -> str | None:
    if wishes.prompt is None:
        if wishes.resume is None and wishes.session is None:
            raise Problem("a prompt is missing: stepfold run PROMPT, or - to read it from the input")
        return None
    if not (text := clean(_input() if wishes.prompt == "-" else wishes.prompt)).strip():
        where = ": nothing came from the input" if wishes.prompt == "-" else ""
        raise Problem(f"the prompt is empty{where}")
    return text


def _input() -> str:
    try:
        return sys.stdin.buffer.read().decode(errors="replace")
    except OSError as error:
        raise Problem(f"the input cannot be read: {error.strerror or error}") from error


def _resumed(wishes: Wishes, prompt: str | None) -> Recording | None:
    if wishes.record is not None and wishes.resume is not None:
        raise Problem("--record and --resume exclude each other: --resume writes to its own file")
    if wishes.session is not None and (wishes.record or wishes.resume or wishes.deltas or wishes.redact):
        raise Problem("--session goes with none of --record, --resume, --deltas and --redact")
    if wishes.model is not None and wishes.resume is not None:
        raise Problem("--model and --resume exclude each other: a recording keeps its model")
    kept = _kept(wishes)
    if kept is None:
        return None
    name, recording = kept
    if wishes.model is not None:
        raise Problem(f"--model: {name} is there already, and keeps its model")
    folded = fold_again(recording, name)
    if (found := folded.divergence) is not None and found.unfit:
        raise Problem(f"{name}: it does not replay: event {found.entry}, {found.field}: {found.words}")
    unfinished = bool(folded.runs) and folded.state.end is None
    if prompt is not None and unfinished and prompt != folded.runs[-1].prompt:
        raise Problem(f"{name}: its last run is not finished; leave out the prompt to finish it first")
    if prompt is None and not folded.runs:
        raise Problem(f"{name}: it holds no run to go on with; give a prompt to begin one")
    return recording


def _kept(wishes: Wishes) -> tuple[str, Recording] | None:
    """Return what is gone on with, and its name; None: a run begins anew."""
    try:
        if wishes.session is not None:
            with session_store() as store:
                if wishes.session not in {info.name for info in store.sessions()}:
                    return None
                return f"session {wishes.session!r}", store.recording(wishes.session)
        return None if wishes.resume is None else (str(wishes.resume), read_recording(wishes.resume))
    except (RecordingError, SessionError) as error:
        raise Problem(str(error)) from error


def _check_record(wishes: Wishes) -> None:
    path = wishes.record
    if path is None:
        if wishes.resume is None and (wishes.deltas or wishes.redact):
            raise Problem("--deltas and --redact go with --record or --resume: there is no recording to keep")
        return
    if path.is_dir():
        raise Problem(f"--record: {path} is a folder; wanted the name of a new file")
    if os.path.lexists(path):
        raise Problem(f"--record: {path} exists already; wanted a new file, or --resume to go on with it")
    if not path.parent.is_dir():
        raise Problem(f"--record: {path.parent} is not a folder")


async def _config(wishes: Wishes, settings: Settings, client: Vendor) -> Config:
    """Return the Config of a new run, with the limits of its models."""
    name = wishes.model or settings.values.get("model") or DEFAULT_MODEL
    system = settings.values.get("system_prompt") or ""
    if not system and wishes.folder is not None:
        system = SYSTEM.format(folder=clean(str(wishes.folder.resolve())))
    names = dict.fromkeys((name, *settings.values.get("fallback_models", ())))
    given: tuple[ModelSpec, ...] = settings.values.get("models", ())
    known = {spec.name for spec in given}
    asked = await limits_of(client, [each for each in names if each not in known])
    try:
        config = settings.config(model=name, models=(*given, *asked), system_prompt=system)
        dump_start(Start(config))  # it can be recorded
    except (ConfigError, CodecError) as error:
        raise Problem(f"{wishes.config or 'config'}: {error}") from error
    return config


# ----------------------------------------------------------------------- the run


async def _session(
    wishes: Wishes, settings: Settings, prompt: str | None, resumed: Recording | None, client: Vendor
) -> int:
    try:
        config = resumed.begun.config if resumed else await _config(wishes, settings, client)
        return await _run(wishes, settings, prompt, config, client, resumed=resumed is not None)
    finally:
        await client.close()


async def _run(
    wishes: Wishes,
    settings: Settings,
    prompt: str | None,
    config: Config,
    client: Vendor,
    *,
    resumed: bool,
) -> int:
    view = JsonView(sys.stdout) if wishes.json else View(sys.stdout, quiet=wishes.quiet)
    options = wired(
        model=vendor_model(config, client.client),
        folder=wishes.folder,
        config=config,
        rules=_rules(wishes, settings),
        can_use_tool=_asking(view),
        stop_hooks=_hooks(config, settings, wishes.folder),
    )
    if resumed:
        options["config"] = None  # what was recorded stands
    handle = Handle()
    log = None
    try:
        with view, stopping(handle, _this_task(), view.say):
            log = options["log"] = _log(wishes)
            view.wait_for("the model")
            result = await run_loop(prompt, on_item=view.show, handle=handle, **options)
            view.finish(result)
    finally:
        if log is not None:
            await log.close()
    return exit_code(result.end)


def _log(wishes: Wishes) -> Log | None:
    if wishes.session is not None:
        with session_store() as store:
            return store.open(wishes.session)
    if (path := wishes.record or wishes.resume) is None:
        return None
    redact = common_secrets if wishes.redact else None
    return file_log(path, deltas=wishes.deltas, redact=redact)


def _hooks(config: Config, settings: Settings, folder: Path | None) -> Hooks:
    """Return the stop hooks; a recording knows their names, and the config file their commands."""
    given = {hook.name for hook in settings.hooks}
    if missing := [spec.name for spec in config.stop_hooks if spec.name not in given]:
        raise Problem(f"the recording has the stop hook {missing[0]!r}: give its command with --config")
    return command_hooks(settings.hooks, folder)


def _rules(wishes: Wishes, settings: Settings) -> Rules:
    if wishes.allow_all:
        return Rules(allow=("*",), deny=settings.deny)
    return Rules(allow=settings.allow, ask=settings.ask, deny=settings.deny, allow_read_only=True)


def _asking(view: View | JsonView) -> CanUseTool:
    return AskOnTerminal(view) if is_terminal() else nobody


def _this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task
