"""What only this file catches: another revision that is this one, or is not, and is said to be."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from stepfold.adapters.cli import main
from stepfold.adapters.recording import RecordingError
from stepfold.adapters.replay.against import RevisionError, compare_with
from tests.cli.test_json import documented
from tests.recording.played import record_scenarios

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")


def git(repository: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    subprocess.run(["git", "-C", str(repository), *who, *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This code as revision ``same``; with other words for a notice ``other``; without an engine ``none``."""
    top = tmp_path_factory.mktemp("repository")
    for name in ("engine", "effects", "adapters"):
        shutil.copytree(ROOT / name, top / name, ignore=shutil.ignore_patterns("__pycache__"))
    git(top, "init", "--quiet")
    git(top, "add", ".")
    git(top, "commit", "--quiet", "-m", "same")
    git(top, "tag", "same")
    turn = top / "engine" / "moves" / "turn.py"
    words = turn.read_text()
    assert "the same call came" in words
    turn.write_text(words.replace("the same call came", "one call came"))
    git(top, "commit", "--quiet", "-am", "other")
    git(top, "tag", "other")
    git(top, "rm", "--quiet", "-r", "engine")
    git(top, "commit", "--quiet", "-m", "none")
    git(top, "tag", "none")
    return top


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("recordings")
    record_scenarios(folder, "turns")
    return sorted(str(path) for path in folder.rglob("*.jsonl"))


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    return place


def test_the_same_code_comes_to_the_same(repository: Path, files: list[str]) -> None:
    found = list(compare_with("same", files, repository))
    assert files == [one.path for one in found]
    assert [0] * len(files) == [one.entry for one in found]
    assert all(one.entries > 1 for one in found)


def test_another_code_is_named_with_both_values(repository: Path, files: list[str], cache: Path) -> None:
    parted = [one for one in compare_with("other", files, repository) if one.entry]
    assert parted
    for one in parted:
        assert "one call came" in str(one.there)
        assert "the same call came" in str(one.here)
        assert f"entry {one.entry}, effects[" in one.line("other")
    assert 2 == len(list((cache / "stepfold" / "revisions").iterdir()))


def test_what_cannot_be_compared_with(repository: Path, files: list[str], tmp_path: Path) -> None:
    for revision, top, words in (
        ("nothing", repository, "nothing: there is no such revision in "),
        ("none", repository, "none: it has no engine/, effects/ and adapters/ at its top"),
        ("same", tmp_path, "it is no git repository"),
    ):
        with pytest.raises(RevisionError, match=words):
            list(compare_with(revision, files, top))
    with pytest.raises(RecordingError, match=r"none\.jsonl"):
        list(compare_with("same", [str(tmp_path / "none.jsonl")], repository))


def test_the_command(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this checkout is no git repository")
    assert main(["replay", files[0], "--against", "HEAD", "--json"]) in (0, 1)  # the tree may be ahead of it
    (one,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert set(documented("An object of `replay --against --json`")) == set(one)
    assert 2 == main(["replay", files[0], "--against", "nothing"])
    assert "nothing: there is no such revision" in capsys.readouterr().err
