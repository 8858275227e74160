"""What only this file catches: the ready toolset leaving its folder, its shell outliving the run."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepfold.adapters.tools import Toolbox, folder_tools
from stepfold.engine.effects import RunTool
from stepfold.engine.events import CallFacts, CallStatus, ToolEnded
from stepfold.engine.messages import Media, Text, ToolUse

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63fcffff3f030006"
    "0201a0ad5d3d0000000049454e44ae426082"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "work folder"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("first\nsecond\nthird\n")
    (tmp_path / "secret.txt").write_text("secret")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    return root


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


async def call(box: Toolbox, name: str, **arguments: object) -> ToolEnded:
    use = ToolUse("t1", name, json.dumps(arguments))
    return await box.run(RunTool(1, use, use.input), print)


def words(end: ToolEnded) -> str:
    return "\n".join(block.text for block in end.content if isinstance(block, Text))


# ------------------------------------------------------------------------- traits


def test_what_the_loop_is_told_of_each_tool(folder: Path) -> None:
    box = folder_tools(folder)
    path: dict[str, object] = {"file_path": "x"}
    inputs: dict[str, dict[str, object]] = {
        "bash": {"command": "ls"},
        "read": path,
        "write": {**path, "content": "c"},
        "edit": {**path, "old_string": "a", "new_string": "b"},
        "glob": {"pattern": "*"},
        "grep": {"pattern": "x"},
    }

    facts = {name: box.facts(ToolUse("t", name, json.dumps(given))) for name, given in inputs.items()}

    looking = CallFacts(safe=True, idempotent=True)
    assert {
        "bash": CallFacts(shell=True),
        "read": looking,
        "write": CallFacts(idempotent=True),
        "edit": CallFacts(),
        "glob": looking,
        "grep": looking,
    } == facts
    assert {spec.name for spec in box.specs() if spec.read_only} == {"read", "glob", "grep"}
    assert all(spec.clearable and spec.description for spec in box.specs())
    for spec in box.specs():
        properties = json.loads(spec.input_schema)["properties"]
        assert all(each["description"] for each in properties.values())


def test_some_of_the_tools_can_be_chosen(folder: Path) -> None:
    assert ["read", "grep"] == [spec.name for spec in folder_tools(folder, names=("read", "grep")).specs()]
    with pytest.raises(ValueError, match="'delete' is not in the toolset"):
        folder_tools(folder, names=("delete",))
    with pytest.raises(ValueError, match="is not a folder"):
        folder_tools(folder / "src" / "a.py")


# -------------------------------------------------------------------------- files


def test_files_are_read_written_edited_and_found(folder: Path, runner: asyncio.Runner) -> None:
    box = folder_tools(folder)

    async def all_of_them() -> list[str]:
        return [
            words(await call(box, "read", file_path="src/a.py", view_range=[2, 2])),
            words(await call(box, "edit", file_path="src/a.py", old_string="second", new_string="2nd")),
            words(await call(box, "write", file_path="new/b.txt", content="hello")),
            words(await call(box, "glob", pattern="**/*.txt")),
            words(await call(box, "grep", pattern="^2nd$", path="src")),
        ]

    read, _, _, glob, grep = runner.run(all_of_them())

    assert read == "second"
    assert (folder / "src" / "a.py").read_text() == "first\n2nd\nthird\n"
    assert (folder / "new" / "b.txt").read_text() == "hello"
    assert glob == str(folder.resolve() / "new" / "b.txt")
    assert "a.py:2:2nd" in grep


def test_an_image_comes_back_as_an_image(folder: Path, runner: asyncio.Runner) -> None:
    (folder / "dot.png").write_bytes(PNG)

    end = runner.run(call(folder_tools(folder), "read", file_path="dot.png"))

    assert [block.type for block in end.content if isinstance(block, Media)] == ["image"]


@pytest.mark.parametrize("path", ["../secret.txt", "link.txt", "src/../../secret.txt", "/etc/hostname"])
def test_nothing_outside_the_folder_is_reached(path: str, folder: Path, runner: asyncio.Runner) -> None:
    box = folder_tools(folder)
    attempts: dict[str, dict[str, object]] = {
        "read": {"file_path": path},
        "write": {"file_path": path, "content": "gone"},
        "edit": {"file_path": path, "old_string": "secret", "new_string": "gone"},
        "grep": {"pattern": "secret", "path": path},
        "glob": {"pattern": "*", "path": path},
    }

    for name, given in attempts.items():
        facts = box.facts(ToolUse("t", name, json.dumps(given)))
        end = runner.run(call(box, name, **given))

        assert (name, False) == (name, facts.valid)
        assert "outside" in facts.problem
        assert CallStatus.FAILED == end.status
        assert "secret\n" not in words(end)
    assert (folder.parent / "secret.txt").read_text() == "secret"


def test_searching_does_not_follow_a_link_out(folder: Path, runner: asyncio.Runner) -> None:
    box = folder_tools(folder)

    assert words(runner.run(call(box, "grep", pattern="secret"))) == "no matches"
    assert "secret.txt" not in words(runner.run(call(box, "glob", pattern="../*")))


def test_hooks_see_full_paths(folder: Path) -> None:
    filled = folder_tools(folder).filled(ToolUse("t", "read", '{"file_path": "src/a.py"}'))

    full = str(folder.resolve() / "src" / "a.py")
    assert json.loads(filled.input) == {"file_path": full, "view_range": None}


def test_a_failure_is_in_the_words_of_the_sdk(folder: Path, runner: asyncio.Runner) -> None:
    box = folder_tools(folder)

    end = runner.run(call(box, "edit", file_path="src/a.py", old_string="none", new_string="x"))

    assert (CallStatus.FAILED, "edit: old_string not found in src/a.py") == (end.status, words(end))


# -------------------------------------------------------------------------- shell


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def ends(pid: int) -> bool:
    for _ in range(200):
        if not alive(pid):
            return True
        time.sleep(0.05)
    return False


def test_the_shell_keeps_its_state_and_tells_exit_codes(folder: Path, runner: asyncio.Runner) -> None:
    box = folder_tools(folder)

    async def session() -> list[ToolEnded]:
        commands = ("cd src; x=5", "pwd; echo $x", "echo bad >&2; false", "exit 3", "pwd", "cat", "  ")
        try:
            return [await call(box, "bash", command=command) for command in commands]
        finally:
            await box.close()

    _, state, failed, left, fresh, silent, empty = runner.run(session())

    assert words(state) == f"{folder.resolve() / 'src'}\n5"
    assert (CallStatus.FAILED, "bad\n[exit code 1]") == (failed.status, words(failed))
    assert (CallStatus.FAILED, True) == (left.status, "ended the shell" in words(left))
    assert words(fresh) == str(folder.resolve())
    assert (CallStatus.COMPLETED, "") == (silent.status, words(silent))
    assert CallStatus.FAILED == empty.status


def test_the_shell_has_no_credentials(
    folder: Path, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    box = folder_tools(folder)

    async def session() -> str:
        try:
            return words(await call(box, "bash", command="env"))
        finally:
            await box.close()

    assert "sk-secret" not in runner.run(session())


START = "sleep 600 & echo $!; echo $$"


def pids(text: str) -> list[int]:
    return [int(line) for line in text.split() if line.isdigit()]


def test_closing_ends_the_shell_and_what_it_started(folder: Path, runner: asyncio.Runner) -> None:
    box = folder_tools(folder)

    async def session() -> list[int]:
        found = pids(words(await call(box, "bash", command=START)))
        assert all(alive(pid) for pid in found)
        await box.close()
        return found

    found = runner.run(session())

    assert (2, True) == (len(found), all(ends(pid) for pid in found))


def test_a_shell_that_left_a_job_behind_does_not_hang_the_call(folder: Path, runner: asyncio.Runner) -> None:
    box = folder_tools(folder)

    async def session() -> ToolEnded:
        try:
            return await call(box, "bash", command="sleep 600 & echo $!; exit 0")
        finally:
            await box.close()

    end = runner.run(asyncio.wait_for(session(), 60))

    assert CallStatus.FAILED == end.status
    assert all(ends(pid) for pid in pids(words(end)))


@pytest.mark.parametrize("how", ["cancel", "deadline"])
def test_stopping_a_command_ends_it_and_the_next_gets_a_new_shell(
    how: str, folder: Path, runner: asyncio.Runner
) -> None:
    box, note = folder_tools(folder), folder / "pid"
    command = f"sleep 600 & echo $! > '{note}'; mv '{note}' '{note}.done'; wait"

    async def session() -> str:
        deadline = 600_000 if how == "cancel" else 3_000
        task = asyncio.create_task(call(box, "bash", command=command, timeout_ms=deadline))
        while not os.path.exists(f"{note}.done"):
            await asyncio.sleep(0.01)
        if how == "cancel":
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() is (how == "cancel")
        try:
            return words(await call(box, "bash", command="echo again"))
        finally:
            await box.close()

    told = runner.run(session())

    assert told.splitlines()[-1] == "again"
    assert "this is a new one" in told
    assert all(ends(pid) for pid in pids(Path(f"{note}.done").read_text()))
