"""Every field of recordings is damaged, one at a time: only this shows which damage is taken for a bug."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from stepfold.adapters.cli.commands import run as run_module
from stepfold.adapters.cli.commands.replay import ReplayWishes, replay_command
from stepfold.adapters.cli.commands.run import Wishes, run_command
from stepfold.adapters.cli.exits import FAILED, OK, USAGE, Problem
from stepfold.adapters.scenarios.check import check_paths
from tests.cli.test_demo import LADDERS

GONE: Final = ""
# JSON that is well formed, whatever it means where it stands.
DAMAGES: Final = (
    GONE,
    "null",
    "true",
    "-1",
    "18446744073709551615",
    "18446744073709551616",
    "1" * 5_000,
    "1.5",
    '""',
    '"\\u0000"',
    "[]",
    '[{"$type": []}]',
    "[" * 900 + "]" * 900,
)
FEW: Final = (GONE, "null", DAMAGES[-1])  # for what stands beside an event: only a replay looks at it
OUTCOMES: Final = (("answers",), ("continued",), ("ended",), ("effects",))
MARK: Final = "@damage@"
NO_KEY: Final = "no credentials"
Path_ = tuple[str | int, ...]


def places(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


def damaged(line: str, path: Path_, damage: str) -> str:
    """Return *line* with *damage* at *path*."""
    if not path:
        return damage
    data = json.loads(line)
    holder = data
    for step in path[:-1]:
        holder = holder[step]
    if damage is GONE:
        del holder[path[-1]]
    else:
        holder[path[-1]] = MARK
    return json.dumps(data).replace(json.dumps(MARK), damage)


def cases(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield what was damaged, and the recording: each field of each kind of event, once."""
    seen: Counter[tuple[object, ...]] = Counter()
    for file in sorted(folder.glob("*.jsonl")):
        lines = file.read_text().splitlines()
        for number, line in enumerate(lines):
            kind = json.loads(line).get("event", {}).get("$type", "header")
            for path in places(json.loads(line)):
                seen[kind, path] += 1
                if seen[kind, path] > 1:
                    continue
                for damage in DAMAGES if path[:1] not in OUTCOMES else FEW:
                    broken = [*lines[:number], damaged(line, path, damage), *lines[number + 1 :]]
                    yield f"{file.name} {kind} {path} {damage[:30]}", "\n".join(broken) + "\n"
    assert len(seen) > 150


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recordings")
    with open("/dev/null", "w") as nowhere:
        assert OK == check_paths([LADDERS], record_dir=folder, out=nowhere)
    return folder


def test_a_damaged_recording_is_never_taken_for_a_bug(
    recordings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_key() -> None:
        raise Problem(NO_KEY)

    monkeypatch.setattr(run_module, "vendor", no_key)
    file = tmp_path / "r.jsonl"
    codes: Counter[int] = Counter()
    for what, content in cases(recordings):
        file.write_text(content)
        replayed = code_of(file, what)
        with pytest.raises(Problem) as refused:  # at the latest for the want of a key
            run_command(Wishes(prompt="go on", resume=file))
        assert USAGE == refused.value.code, what
        goes_on = "its last run is not" in (words := str(refused.value)) or NO_KEY in words
        assert replayed is FAILED or (replayed is OK) == goes_on, what
        assert "\n" not in words, what
        assert content == file.read_text(), what
        codes[replayed] += 1
        capsys.readouterr()
    assert {OK, FAILED, USAGE} == set(codes)
    assert codes[USAGE] > codes[OK]


def code_of(file: Path, what: str) -> int:
    """Return the exit code of ``replay``; FAILED is for what parts from today's code."""
    code = replay_command(ReplayWishes(files=[file], same=True, json=True))
    assert code == replay_command(ReplayWishes(files=[file, file], same=True)), what
    return code
