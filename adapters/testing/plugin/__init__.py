"""
The pytest plugin: what it adds to a test session.

pytest loads this module at every start, so all that costs something is
imported where it is used.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from stepfold.adapters.testing.plugin.playing import World
    from stepfold.adapters.testing.plugin.recordings import Recordings
    from stepfold.adapters.testing.plugin.scripts import Scripts

FORBID = "STEPFOLD_FORBID_REQUESTS"  # read by the model port
MARKER = "stepfold_real_requests"
FIXTURES = ("scripted_model", "world", "recording")
HEARD = pytest.StashKey[list[object]]()
SEED = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the setting."""
    group = parser.getgroup("stepfold", "agent loops (stepfold)")
    group.addoption(
        "--stepfold-record",
        metavar="DIR",
        help="tests that use the fixture `recording` make real requests and keep what came in DIR",
    )
    group.addoption(
        "--stepfold-replay",
        metavar="DIR",
        help="tests that use the fixture `recording` are answered from the recordings in DIR",
    )
    parser.addini(MARKER, "allow real requests to a model in every test", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker; refuse options that cannot be."""
    config.addinivalue_line("markers", f"{MARKER}: this test may make real requests to a model")
    record, replay = config.getoption("stepfold_record"), config.getoption("stepfold_replay")
    if record is not None and replay is not None:
        raise pytest.UsageError("--stepfold-record and --stepfold-replay exclude each other")
    if record is not None and Path(record).exists() and not Path(record).is_dir():
        raise pytest.UsageError(f"--stepfold-record: {record} is not a folder")
    if replay is not None and not Path(replay).is_dir():
        raise pytest.UsageError(f"--stepfold-replay: {replay} is not a folder")


def _allowed(item: pytest.Item) -> bool:
    recording = item.config.getoption("stepfold_record") is not None
    uses = "recording" in getattr(item, "fixturenames", ())
    marked = item.get_closest_marker(MARKER) is not None
    return marked or (recording and uses) or bool(item.config.getini(MARKER))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Forbid real requests while a test runs, its fixtures and child processes included."""
    before = os.environ.get(FORBID)
    os.environ[FORBID] = "" if _allowed(item) else "1"
    try:
        return (yield)
    finally:
        if before is None:
            del os.environ[FORBID]
        else:
            os.environ[FORBID] = before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Listen to what the test plays; give a world its seed; hold scripts and recordings to account."""
    from stepfold.adapters.testing.told import listening

    heard = item.stash.setdefault(HEARD, [])
    machine = getattr(getattr(item, "function", None), "_hypothesis_state_machine_class", None)
    if machine is not None:
        from stepfold.adapters.testing.plugin.seeds import seeded

        item.stash[SEED] = seeded(machine, item.config)
    with listening(heard.append):
        outcome = yield
    for used in _used(item):
        used.stepfold_account()
    return outcome


def _used(item: pytest.Item) -> list[Any]:
    """Return the plugin's own fixtures that the test uses; a project may have others of these names."""
    given = [getattr(item, "funcargs", {}).get(name) for name in FIXTURES]
    return [each for each in given if type(each).__module__.startswith(f"{__name__}.")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say what was played, and where it lies, of a test that failed."""
    report = yield
    if report.failed and call.when == "call":
        heard, seed = item.stash.get(HEARD, []), item.stash.get(SEED, "")
        used = _used(item)
        if heard or used or seed:
            from stepfold.adapters.testing.plugin.reports import told

            heard = [*heard, *(one for each in used for one in each.stepfold_heard())]
            report.sections.append(("stepfold", told(item.nodeid, heard, seed)))
    return report


@pytest.fixture
def scripted_model() -> Scripts:
    """
    Make scripted models: ``scripted_model([calls("read"), "done"])``.

    The test fails where a model was asked more than it was given, or less.
    """
    from stepfold.adapters.testing.plugin.scripts import Scripts

    return Scripts()


@pytest.fixture
def world() -> Iterator[World]:
    """Run agents in virtual time: ``world.run("fix it", model=[...], tools=[...])``."""
    from stepfold.adapters.testing.plugin.playing import World

    made = World()
    yield made
    made.close()


@pytest.fixture
def recording(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Recordings]:
    """
    Record a run with a real model, or answer it from its recording.

    ``run_sync("fix it", **recording.of(lambda: AnthropicModel()), tools=[...])`` runs as it is;
    keeps what came under ``--stepfold-record DIR``; asks nobody under ``--stepfold-replay DIR``.
    """
    from stepfold.adapters.testing.plugin.recordings import recordings_of

    made = recordings_of(request.node.nodeid, request.config, tmp_path)
    yield made
    made.close()
