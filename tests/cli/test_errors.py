"""What only this file catches: a traceback, a second line, a file half written where something is wrong."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from stepfold.adapters.cli.exits import BUG, FAILED, USAGE
from tests.adapters.anthropic_api.loopback import Loopback, Received, Reply, failing
from tests.cli.process import PROGRAM, Ended, environment, ran, scripted, stepfold, told, with_key

LONG = "a" * 5_000
READS_A_PATH = (
    ["check"],
    ["replay"],
    ["replay", "x", "--config"],
    ["show"],
    ["diff", "x"],
    ["fork", "--at", "1", "--record", "y"],
    ["import"],
    ["lint"],
    ["lint", "x", "--config"],
    ["run", "x", "--config"],
    ["run", "x", "--resume"],
    ["prove", "--config"],
)
MAKES_A_PATH = (
    ["run", "x", "--record"],
    ["run", "x", "--tools"],
    ["demo", "--keep"],
    ["check", "x", "--record"],
    ["fork", "x", "--at", "1", "--record"],
    ["import", "x", "--out"],
    ["lint", "x", "--sarif"],
    ["sessions", "export", "x", "--record"],
)
TAKES_A_PATH = (*READS_A_PATH, *MAKES_A_PATH)
NO_API = with_key("http://127.0.0.1:9")  # nothing listens there


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "unknown.toml").write_text("\nmax_turn = 3\n")
    (tmp_path / "wrong.toml").write_text("max_turns = 'many'\n")
    (tmp_path / "broken.toml").write_text("max_turns = [\n")
    (tmp_path / "nonsense.jsonl").write_text("hello\n")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "damaged.jsonl").write_text('{"stepfold":1,"schema":1}\n{"n":1}\n{"n":2}\n')
    (tmp_path / "bad.toml").write_text("format = 1\ntitle = 'x'\ncolour = 3\n")
    (tmp_path / "torn.jsonl").write_text('{"stepfold":1,"sch')
    (tmp_path / "deep.jsonl").write_text("[" * 5_000 + "\n")
    (tmp_path / "deep.toml").write_text(f"a = {'[' * 5_000}{']' * 5_000}\n")
    (tmp_path / "digits.toml").write_text(f"max_turns = {'1' * 5_000}\n")
    (tmp_path / "bits.toml").write_text(f"max_turns = {2**70}\n")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "dir").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rum"], "No such command 'rum'. Did you mean 'run'?"),
        (["run", "x", "--tols", "."], "No such option: --tols"),
        (["run", "x", "y"], "unexpected extra argument"),
        (["-h", "-x"], "No such option: -x"),
        (["run"], "a prompt is missing"),
        (["run", "x", "--model", " "], "--model: it is empty; wanted the name of a model"),
        (["run", "  "], "the prompt is empty"),
        (["run", "-"], "the prompt is empty"),
        (["run", "x"], "no credentials: set ANTHROPIC_API_KEY"),
        (["run", "x", "--config", "no.toml"], "no.toml: cannot be read: No such file or directory"),
        (["run", "x", "--config", "."], ".: cannot be read: Is a directory"),
        (["run", "x", "--config", "unknown.toml"], "unknown.toml:2: max_turn: there is no such key"),
        (["run", "x", "--config", "wrong.toml"], "wrong.toml:1: max_turns: 'many' is not allowed"),
        (["run", "x", "--config", "broken.toml"], "broken.toml:1: is not TOML"),
        (["run", "x", "--tools", "nowhere"], "--tools: nowhere is not a folder"),
        (["run", "x", "--tools", "bad.toml"], "--tools: bad.toml is not a folder"),
        (["run", "x", "--record", "empty.jsonl"], "--record: empty.jsonl exists already"),
        (["run", "x", "--record", "no/r.jsonl"], "--record: no is not a folder"),
        (["run", "x", "--resume", "no.jsonl"], "no.jsonl: No such file or directory"),
        (["run", "x", "--resume", "nonsense.jsonl"], "nonsense.jsonl, line 1: it is no recording"),
        (["run", "x", "--resume", "empty.jsonl"], "empty.jsonl: it is empty"),
        (["run", "x", "--resume", "torn.jsonl"], "torn.jsonl, line 1: its header is torn: 18 bytes"),
        (
            ["run", "x", "--resume", "deep.jsonl"],
            "deep.jsonl, line 1: it is no recording (not JSON: depth limit",
        ),
        (["run", "x", "--config", "deep.toml"], "deep.toml:1: "),
        (["run", "x", "--config", "digits.toml"], "digits.toml:1: "),
        (["run", "x", "--config", "bits.toml"], "bits.toml:1: max_turns: "),
        (["run", "x", "--config", "bytes.toml"], "is not UTF-8 text"),
        (["run", "x", "--config", "loop"], "loop: cannot be read: Too many levels of symbolic links"),
        (["run", "x", "--record", "loop"], "--record: loop exists already"),
        (["run", "x", "--record", "dir"], "--record: dir is a folder; wanted the name of a new file"),
        (["prove", "--config", "bits.toml"], "bits.toml:1: max_turns: "),
        (["prove", "--config", "no.toml"], "no.toml: cannot be read: No such file"),
        (["prove", "--states", "0"], "'--states'"),
        (["prove", "--states", "x"], "'--states'"),
        *(([*each, ""], "it is empty; wanted a path") for each in TAKES_A_PATH),
        *(([*each, LONG], "aaa...: File name too long") for each in TAKES_A_PATH),
        *(([*each, "bad.toml/x"], "bad.toml/x: Not a directory") for each in TAKES_A_PATH),
        *(([*each, "/dev/zero"], "/dev/zero is a device; wanted a file") for each in READS_A_PATH),
        (["check", "bad.toml", "--record", "bad.toml"], "--record: bad.toml: it is no folder"),
        (["run", "x", "--resume", "damaged.jsonl"], "damaged.jsonl, line 1"),
        (["run", "x", "--resume", "a", "--record", "b"], "--record and --resume exclude each other"),
        (["run", "x", "--resume", "a", "--model", "m"], "--model and --resume exclude each other"),
        (["replay"], "Missing argument 'FILE"),
        (["replay", "no.jsonl"], "no.jsonl: No such file or directory"),
        (["replay", "nonsense.jsonl"], "nonsense.jsonl, line 1: it is no recording"),
        (["replay", "damaged.jsonl"], "damaged.jsonl, line 1"),
        (["demo", "--keep", "."], "--keep: . is not empty"),
        (["demo", "--keep", "bad.toml"], "--keep: bad.toml is not a folder"),
        (["graph", "--jsn"], "No such option: --jsn"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_one_line(arguments: list[str], words: str, folder: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())

    ended = told(folder, *arguments)

    assert (USAGE, "") == (ended.code, ended.out)
    assert words in ended.complaint
    assert before == sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("arguments", [["check", "no.toml"], ["check", "bad.toml"], ["check", "broken.toml"]])
def test_scenarios_that_cannot_be_played_are_named(arguments: list[str], folder: Path) -> None:
    ended = told(folder, *arguments)

    assert USAGE == ended.code
    assert arguments[1] in ended.out.splitlines()[0]
    assert "Traceback" not in ended.out + ended.err


def against(folder: Path, script: Callable[[Received], Reply], *arguments: str) -> Ended:
    async def work() -> Ended:
        async with Loopback(script) as api:
            return await stepfold(folder, "run", "x", *arguments, env=with_key(api.url))

    return ran(work())


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (failing(404, "not_found_error", "model: gpt"), "unknown model 'gpt': model: gpt"),
        (failing(401, "authentication_error", "invalid key"), "the API refuses the credentials: invalid key"),
        (failing(403, "permission_error", "not for you"), "the API refuses the credentials: not for you"),
        (failing(500, "api_error", "broken"), "the model 'gpt' cannot be looked up: broken"),
    ],
)
def test_a_model_that_cannot_be_used_is_told_before_anything_is_made(
    reply: Reply, words: str, tmp_path: Path
) -> None:
    ended = against(tmp_path, lambda request: reply, "--model", "gpt", "--record", "r.jsonl")

    assert (USAGE, "") == (ended.code, ended.out)
    assert words in ended.complaint
    assert [] == list(tmp_path.iterdir())


def test_no_network_and_an_unknown_model(tmp_path: Path) -> None:
    ended = told(tmp_path, "run", "x", "--model", "gpt", "--record", "r.jsonl", env=NO_API)

    assert USAGE == ended.code
    assert "the model 'gpt' cannot be looked up" in ended.complaint
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"ANTHROPIC_API_KEY": "k\u00e9y"}, "ANTHROPIC_API_KEY: it holds a character that no key has"),
        ({"ANTHROPIC_API_KEY": "key\nx"}, "ANTHROPIC_API_KEY: it holds a character that no key has"),
        ({"ANTHROPIC_API_KEY": "key "}, "ANTHROPIC_API_KEY: it holds a character that no key has"),
        ({"ANTHROPIC_AUTH_TOKEN": "k\udcff"}, "ANTHROPIC_AUTH_TOKEN: it holds a character that no key has"),
        ({"ANTHROPIC_BASE_URL": "http://[::1"}, "the client that the environment describes cannot be made: "),
        ({"ALL_PROXY": "foo://x"}, "the client that the environment describes cannot be made: "),
        ({"SSL_CERT_FILE": "/no/such/file"}, "the client that the environment describes cannot be made: "),
        ({"ANTHROPIC_BASE_URL": "garbage"}, "the model 'gpt' cannot be looked up: "),
        ({"ANTHROPIC_BASE_URL": "http://"}, "the model 'gpt' cannot be looked up: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_an_environment_that_cannot_be_used(env: dict[str, str], words: str, tmp_path: Path) -> None:
    more = {"ANTHROPIC_API_KEY": "key", **env} if "ANTHROPIC_AUTH_TOKEN" not in env else env

    ended = told(tmp_path, "run", "x", "--model", "gpt", "--record", "r.jsonl", env=more)

    assert (USAGE, "") == (ended.code, ended.out)
    assert words in ended.complaint
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        *((body, "the model 'gpt' cannot be looked up: ") for body in ("hello", "", "[]", "3", "[" * 5_000)),
        ('{"max_input_tokens": "many"}', "context_window_tokens of 'gpt' is 'many'; wanted a whole number"),
    ],
)
def test_an_address_where_something_else_answers(body: str, words: str, tmp_path: Path) -> None:
    other = Reply(pieces=(body.encode(),), headers=(("content-type", "application/json"),))

    ended = against(tmp_path, lambda request: other, "--model", "gpt", "--record", "r.jsonl")

    assert (USAGE, "") == (ended.code, ended.out)
    assert words in ended.complaint
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("size", "arguments", "words"),
    [
        (0, ["demo"], "the temporary folder: it cannot be written: No usable temporary directory"),
        (1_000, ["demo"], "the temporary folder: it cannot be written: File too large"),
        (3_000, ["demo"], "session.jsonl: it cannot be written: File too large"),
        (3_000, ["demo", "--keep", "k"], "--keep: k/session.jsonl: it cannot be written: File too large"),
    ],
)
def test_a_demo_on_a_full_disk(size: int, arguments: list[str], words: str, tmp_path: Path) -> None:
    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    process = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=tmp_path,
        env=environment(TMPDIR=str(tmp_path)),
        capture_output=True,
        text=True,
        preexec_fn=full,
    )

    assert FAILED == process.returncode
    assert words in Ended(process.returncode, process.stdout, process.stderr).complaint


@pytest.mark.parametrize("arguments", [["run", "x", "--tools", "."], ["demo", "--keep", "k"]], ids=" ".join)
def test_the_current_folder_is_gone(arguments: list[str], tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = [*PROGRAM[:2], f"import os; os.rmdir({str(gone)!r}); {PROGRAM[2]}", *arguments]

    process = subprocess.run(program, cwd=gone, env=environment(**NO_API), capture_output=True, text=True)

    assert (USAGE, "") == (process.returncode, process.stdout)
    assert "No such file or directory" in Ended(process.returncode, "", process.stderr).complaint


def test_a_money_limit_without_prices(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("model = 'gpt'\nmax_cost = 5\n")

    ended = against(tmp_path, scripted(models=("gpt",)), "--config", "c.toml")

    assert USAGE == ended.code
    assert "max_cost: models has no input_price and output_price for 'gpt'" in ended.complaint


def test_a_bug_is_one_line_and_says_how_to_see_more(tmp_path: Path) -> None:
    (tmp_path / "rich.py").write_text("raise RuntimeError('planted')\n")
    python_path = {"PYTHONPATH": str(tmp_path)}

    ended = told(tmp_path, "demo", env=python_path)
    shown = told(tmp_path, "demo", env={**python_path, "STEPFOLD_TRACEBACK": "1"})

    assert BUG == ended.code
    assert "this is a bug: RuntimeError: planted (STEPFOLD_TRACEBACK=1 shows where)" == ended.complaint
    assert "Traceback" in shown.err
