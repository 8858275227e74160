"""What only this file catches: a run whose output, permission, recording or exit code is not what it says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.recording import read_recording
from tests.adapters.anthropic_api.asking import answer, text_events
from tests.adapters.anthropic_api.loopback import Ending, Json, Loopback, Reply, failing, stream
from tests.adapters.anthropic_api.sessions.playing import call, calling, saying
from tests.cli.process import Ended, asked, on_terminal, ran, scripted, start, stepfold, with_key

READ = call("t1", "read", {"file_path": "a.txt"})
WRITE = call("t2", "write", {"file_path": "b.txt", "content": "new"}, 1)
WORK = (calling(READ, WRITE), saying("All done."))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("old words")
    return tmp_path


def against(
    folder: Path, replies: tuple[Reply, ...], *arguments: str, typed: str = ""
) -> tuple[Ended, list[Json]]:
    async def work() -> tuple[Ended, list[Json]]:
        async with Loopback(scripted(*replies)) as api:
            ended = await stepfold(folder, "run", *arguments, env=with_key(api.url), typed=typed)
            assert api.refused == []
            return ended, asked(api)

    return ran(work())


def results(request: Json) -> dict[str, Any]:
    """The results in the last message of a request, by id."""
    return {each["tool_use_id"]: each for each in request["messages"][-1]["content"] if "tool_use_id" in each}


def test_a_session_is_shown_line_by_line_and_nobody_is_asked_where_there_is_no_terminal(folder: Path) -> None:
    ended, requests = against(folder, WORK, "do it", "--model", "m", "--tools", "work")

    assert (0, "") == (ended.code, ended.err)
    lines = ended.out.splitlines()
    assert lines[:2] == ['-> read {"file_path": "a.txt"}', "<- read completed: old words"]
    assert "-- next_turn (turn 2)" in lines
    assert "All done." in lines
    assert "== completed: completed (end_turn)" in lines
    assert ["do it"] == [each["text"] for each in requests[0]["messages"][0]["content"]]
    assert str(folder / "work") in requests[0]["system"][0]["text"]
    offered = {tool["name"] for tool in requests[0]["tools"]}
    assert {"bash", "read", "write", "edit", "glob", "grep"} == offered
    found = results(requests[1])
    assert ("is_error" in found["t1"], found["t2"]["is_error"]) == (False, True)
    assert "no terminal" in found["t2"]["content"][0]["text"]
    assert not (folder / "work" / "b.txt").exists()


def test_allow_all_asks_nobody_but_a_rule_that_denies_stands(folder: Path) -> None:
    (folder / "c.toml").write_text("[permissions]\ndeny = ['bash']\nask = ['write']\n")
    bash = call("t3", "bash", {"command": "touch c.txt"}, 2)
    replies = (calling(READ, WRITE, bash), saying("Done."))

    options = ("--model", "m", "--tools", "work", "--allow-all", "--config", "c.toml")
    _, requests = against(folder, replies, "do it", *options)

    assert (folder / "work" / "b.txt").read_text() == "new"
    assert "rule denies the tool 'bash'" in results(requests[1])["t3"]["content"][0]["text"]
    assert not (folder / "work" / "c.txt").exists()


def test_the_prompt_may_come_from_the_input(folder: Path) -> None:
    ended, requests = against(folder, (saying("Hi."),), "-", "--model", "m", "--quiet", typed="from afar\n")

    assert (0, "Hi.\n") == (ended.code, ended.out)
    assert requests[0]["messages"][0]["content"][0]["text"] == "from afar\n"


def test_json_lines_are_objects_and_end_with_the_result(folder: Path) -> None:
    ended, _ = against(folder, WORK, "do it", "--model", "m", "--tools", "work", "--json")

    items = [json.loads(line) for line in ended.out.splitlines()]
    types = [item["type"] for item in items]
    assert types[-1] == "result"
    assert {"message", "block", "tool_ended", "transition"} <= set(types)
    result = items[-1]
    assert (result["terminal"], result["ok"], result["exit_code"]) == ("completed", True, 0)
    assert (result["output"], result["transitions"]) == ("All done.", ["next_turn"])
    assert {"t1": "completed", "t2": "denied"} == result["tools"]
    assert result["usage"]["output_tokens"] > 0


@pytest.mark.parametrize(
    ("reply", "code", "terminal"),
    [
        (failing(400, "invalid_request_error", "no such thing"), 14, "model_error"),
        (stream(answer(text_events("No."), reason="refusal")), 1, "completed"),
    ],
)
def test_the_exit_code_tells_the_end(reply: Reply, code: int, terminal: str, folder: Path) -> None:
    ended, _ = against(folder, (reply,), "do it", "--model", "m")

    assert code == ended.code
    assert f"== {terminal}: " in ended.out
    assert "Traceback" not in ended.err


def test_no_turn_left(folder: Path) -> None:
    (folder / "c.toml").write_text("model = 'm'\nmax_turns = 1\n")

    ended, requests = against(folder, WORK, "do it", "--tools", "work", "--config", "c.toml")

    assert (17, 1) == (ended.code, len(requests))


def test_words_of_the_model_do_not_steer_the_terminal(folder: Path) -> None:
    evil = "red \x1b[31mtext\x1b[0m \x1b]0;title\x07 bell\x07 \x9b2J end"

    ended, _ = against(folder, (saying(evil),), "do it", "--model", "m", "--quiet")

    assert {"r", "e", "d"} <= set(ended.out)
    assert not any(ord(each) < 32 or 127 <= ord(each) < 160 for each in ended.out.rstrip("\n"))


# ---------------------------------------------------------------------- stop hooks


def test_commands_as_stop_hooks(folder: Path) -> None:
    hook = "cat > seen.txt; test -f ok.txt || { touch ok.txt; echo three errors; exit 1; }"
    (folder / "c.toml").write_text(
        f"model = 'm'\n[[stop_hooks]]\nname = 'lint'\ncommand = '''{hook}'''\nmax_blocks = 2\n"
    )

    replies = (saying("Done."), saying("Now it is."))
    ended, requests = against(folder, replies, "do it", "--tools", "work", "--config", "c.toml")

    assert (0, 2) == (ended.code, len(requests))
    assert "-- stop_hook_blocking" in ended.out
    assert "three errors" in json.dumps(requests[1]["messages"][-1])
    assert (folder / "work" / "seen.txt").read_text() == "Now it is."


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [("echo stop; exit 3", 15, "prevented continuing: stop"), ("no-such-command-at-all", 0, "hook_crashed")],
)
def test_what_a_stop_hook_can_say(command: str, code: int, words: str, folder: Path) -> None:
    (folder / "c.toml").write_text(f"model = 'm'\n[[stop_hooks]]\nname = 'h'\ncommand = '{command}'\n")

    ended, _ = against(folder, (saying("Done."),), "do it", "--config", "c.toml")

    assert code == ended.code
    assert words in ended.out


# ---------------------------------------------------------------------- recordings


def test_a_recording_is_kept_and_gone_on_with(folder: Path) -> None:
    options = ("--model", "m", "--tools", "work", "--record", "r.jsonl")
    first, _ = against(folder, WORK, "do it", *options)
    recorded = read_recording(folder / "r.jsonl")

    resume = ("--resume", "r.jsonl", "--tools", "work")
    second, requests = against(folder, (saying("Again."),), "and more", *resume)
    third, none = against(folder, (), *resume)

    assert (0, 0, 0, []) == (first.code, second.code, third.code, none)
    texts = [block.get("text") for message in requests[0]["messages"] for block in message["content"]]
    assert [text for text in texts if text] == ["do it", "All done.", "and more"]
    assert read_recording(folder / "r.jsonl").events[: len(recorded.events)] == recorded.events
    assert recorded.begun.config.model == "m"
    assert recorded.begun.config.context_window_tokens == 200_000
    assert recorded.begun.config.fixed_prompt_tokens > 100


def test_a_recorded_stop_hook_needs_its_command(folder: Path) -> None:
    (folder / "c.toml").write_text("model = 'm'\n[[stop_hooks]]\nname = 'lint'\ncommand = 'true'\n")
    against(folder, (saying("Done."),), "do it", "--config", "c.toml", "--record", "r.jsonl")
    before = (folder / "r.jsonl").read_bytes()

    without, _ = against(folder, (), "more", "--resume", "r.jsonl")
    with_it, _ = against(folder, (saying("Done."),), "more", "--resume", "r.jsonl", "--config", "c.toml")

    assert without.complaint == "the recording has the stop hook 'lint': give its command with --config"
    assert (2, 0) == (without.code, with_it.code)
    assert (folder / "r.jsonl").read_bytes().startswith(before)


def test_a_run_that_was_killed_is_finished_by_resume(folder: Path) -> None:
    async def work() -> tuple[Ended, list[Json]]:
        async with Loopback(scripted(calling(READ), hanging())) as api:
            pipe = asyncio.subprocess.PIPE
            arguments = ("run", "do it", "--model", "m", "--tools", "work", "--record", "r.jsonl")
            process = await start(folder, *arguments, env=with_key(api.url), stdout=pipe, stderr=pipe)
            while len(asked(api)) < 2:
                await asyncio.sleep(0.02)
            process.kill()
            await process.communicate()
        async with Loopback(scripted(saying("All done."))) as api:
            resumed = ("run", "--resume", "r.jsonl", "--tools", "work")
            ended = await stepfold(folder, *resumed, env=with_key(api.url))
            other = await stepfold(folder, *resumed, "another one", env=with_key(api.url))
            assert other.code == 14  # the script is at its end: a finished run takes any prompt
            return ended, asked(api)

    ended, requests = ran(work())

    assert 0 == ended.code
    assert "old words" in json.dumps(requests[0]["messages"][-1])


def hanging() -> Reply:
    """An answer that begins and never ends."""
    return stream(answer(text_events("I begin"))[:3], Ending.HANG)


# ---------------------------------------------------------------------- a terminal


def test_permission_is_asked_on_the_terminal(folder: Path) -> None:
    another = call("t3", "write", {"file_path": "c.txt", "content": "new"})
    third = call("t4", "edit", {"file_path": "c.txt", "old_string": "new", "new_string": "x"})
    replies = (calling(READ, WRITE), calling(another), calling(third), saying("All done."))

    async def work() -> tuple[int, str, list[Json]]:
        async with Loopback(scripted(*replies)) as api:
            arguments = ("run", "do it", "--model", "m", "--tools", "work")
            async with on_terminal(folder, *arguments, env=with_key(api.url)) as terminal:
                await terminal.see("say why not: ")
                terminal.type("a\n")
                await terminal.see("say why not: ", 2)
                terminal.type("leave that file alone\n")
                return await terminal.end(), terminal.screen, asked(api)

    code, screen, requests = ran(work())

    assert 0 == code
    assert "?  write wants to run:" in screen
    assert "content: new" in screen
    assert screen.count("wants to run") == 2
    assert (folder / "work" / "c.txt").read_text() == "new"
    assert "leave that file alone" in results(requests[3])["t4"]["content"][0]["text"]


def test_a_terminal_tells_what_is_waited_for(folder: Path) -> None:
    async def work() -> tuple[int, str]:
        async with Loopback(scripted(calling(READ), stream([], Ending.HANG))) as api:
            env = {**with_key(api.url), "TERM": "xterm"}
            arguments = ("run", "do it", "--model", "m", "--tools", "work")
            async with on_terminal(folder, *arguments, env=env) as terminal:
                await terminal.see("(turn 2)")
                seen = len(terminal.screen)
                await terminal.see("0:00:01")
                terminal.interrupt()
                return await terminal.end(), terminal.screen[seen:]

    code, screen = ran(work())

    assert 130 == code
    assert "the model 0:00:0" in screen


def test_ctrl_c_stops_the_answer_cleanly(folder: Path) -> None:
    async def work() -> tuple[int, str]:
        async with Loopback(scripted(hanging())) as api:
            arguments = ("run", "do it", "--model", "m", "--record", "r.jsonl")
            async with on_terminal(folder, *arguments, env=with_key(api.url)) as terminal:
                await terminal.see("I b")
                terminal.interrupt()
                return await terminal.end(), terminal.screen

    code, screen = ran(work())

    assert 130 == code
    assert "stopping; once more gives up waiting" in screen
    assert "== aborted_streaming: " in screen
    assert "Traceback" not in screen
    assert read_recording(folder / "r.jsonl").torn == 0


def test_an_impatient_second_ctrl_c_breaks_nothing(folder: Path) -> None:
    hook = "command = 'touch begun; sleep 600'"
    (folder / "c.toml").write_text(f"model = 'm'\n[[stop_hooks]]\nname = 'h'\n{hook}\n")

    async def work() -> tuple[int, str]:
        async with Loopback(scripted(saying("Done."))) as api:
            arguments = ("run", "do it", "--tools", "work", "--config", "c.toml", "--record", "r.jsonl")
            async with on_terminal(folder, *arguments, env=with_key(api.url)) as terminal:
                while not (folder / "work" / "begun").exists():
                    await asyncio.sleep(0.02)
                for _ in range(3):
                    terminal.interrupt()
                    await asyncio.sleep(0.1)
                return await terminal.end(), terminal.screen

    code, screen = ran(work())

    assert 130 == code
    assert "Traceback" not in screen
    assert read_recording(folder / "r.jsonl").torn == 0


def test_ctrl_c_stops_a_command_and_a_question(folder: Path) -> None:
    command = call("t1", "bash", {"command": "touch begun; sleep 600"})

    async def work(wanted: str) -> tuple[int, str]:
        async with Loopback(scripted(calling(command))) as api:
            arguments = ("run", "do it", "--model", "m", "--tools", "work")
            async with on_terminal(folder, *arguments, env=with_key(api.url)) as terminal:
                await terminal.see("say why not: ")
                if wanted == "command":
                    terminal.type("y\n")
                    while not (folder / "work" / "begun").exists():
                        await asyncio.sleep(0.02)
                terminal.interrupt()
                return await terminal.end(), terminal.screen

    for wanted in ("command", "question"):
        code, screen = ran(work(wanted))
        assert 130 == code
        assert "== aborted_tools: " in screen
        assert "Traceback" not in screen
