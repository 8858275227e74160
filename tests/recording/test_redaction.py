"""What only this file catches: a secret that reaches the disk, a redacted recording that is none any more."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.jsonl_log import JsonlLog
from stepfold.adapters.recording import RecordingError, read_deltas, read_recording
from stepfold.adapters.recording.redaction import common_secrets, redacted
from stepfold.adapters.replay.folding import fold_recording
from stepfold.adapters.scripted import Answer, ScriptedModel, calls
from stepfold.adapters.tools import tool
from stepfold.adapters.travel.forking import forked
from stepfold.effects import LogMismatch, run_sync
from stepfold.effects.ports import TextDelta
from stepfold.engine import Config
from stepfold.engine.messages import Text

KEY = "sk-ant-" + "a1B2c3D4" * 4
MAIL = "ann@mail.example"
HOME = "/home/ann"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"use {KEY} now", "use [key]" + "*" * (len(KEY) - 5) + " now"),
        (f"mail {MAIL}, please", "mail [mail]" + "*" * (len(MAIL) - 6) + ", please"),
        ("/home/ann/x and C:\\Users\\ann\\x", "/home/[ho/x and C:\\Users\\[ho\\x"),
        ('{"api_key": "abcd1234efgh"}', '{"api_key": "[key]*******"}'),
        ("PASSWORD=hunter-2-hunter", "PASSWORD=[key]**********"),
        ("Authorization: Bearer abc.def-123456", "Authorization: Bearer [key]*********"),
        ("ghp_" + "a1" * 12, "[key]" + "*" * 23),
        ("AKIA" + "A1" * 8, "[key]" + "*" * 15),
        ("eyJhbGciOiJI.eyJzdWIiOiJI.c2ln", "[key]" + "*" * 25),
        ("a token of thanks, a secret garden", "a token of thanks, a secret garden"),
        ("the password is long", "the password is long"),
        ("max_tokens = 4000", "max_tokens = 4000"),
        ("", ""),
    ],
)
def test_what_is_secret(text: str, wanted: str) -> None:
    assert wanted == common_secrets(text)
    assert len(text) == len(common_secrets(text))


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000,
        "eyJ" * 30_000,
        "token" + " " * 100_000,
        "token=" * 20_000,
        "-----BEGIN A" * 10_000,
        "a@" * 50_000,
    ],
    ids=lambda text: text[:9],
)
def test_a_long_text_without_secrets_is_looked_through_once(text: str) -> None:
    """Where a pattern looked again from every place, this would take hours."""
    assert text == common_secrets(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ({"to": MAIL}, {"to": "[mail]**********"}),
        ({"name": KEY, "n": 1.5}, {"name": "[key]" + "*" * (len(KEY) - 5), "n": 1.5}),
        ({KEY: [MAIL]}, {"[key]" + "*" * (len(KEY) - 5): ["[mail]**********"]}),
        (
            {"pem": "-----BEGIN PRIVATE KEY-----\nabc", "id": MAIL, "password": "hunter-2-hunter"},
            {"pem": "[key]" + "*" * 26, "id": "[mail]**********", "password": "[key]**********"},
        ),
    ],
)
@pytest.mark.parametrize("escaped", [False, True])
def test_a_call_stays_json_and_what_is_escaped_is_seen(text: Any, wanted: Any, escaped: bool) -> None:
    plain = json.dumps(text)
    if escaped:
        plain = plain.replace("@", "\\u0040").replace("sk-", "\\u0073k-")
    assert wanted == json.loads(redacted({"input": plain}, common_secrets)["input"])


def test_nothing_secret_reaches_the_disk_and_it_still_replays(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    log = JsonlLog(path, redact=common_secrets, digests=True, deltas=True)

    @tool(read_only=True)
    def fetch(key: str) -> str:
        """Fetch."""
        return f"for {key}: {MAIL} in {HOME}/x"

    model = ScriptedModel([calls("fetch", {"key": KEY}), Answer((Text(f"it is {KEY}, {MAIL}"),))])
    config = Config(system_prompt=f"mail {MAIL}")
    result = run_sync(f"use {KEY}", model=model, tools=[fetch], log=log, config=config)
    asyncio.run(log.close())
    assert KEY in result.output
    whole = path.read_text()
    for secret in (KEY, MAIL, HOME, KEY[:12]):
        assert secret not in whole
    folded = fold_recording(path)
    assert folded.ok, folded.divergence
    assert folded.compared == folded.events
    assert "redacted" in folded.header.keeps
    assert result.end == folded.state.end


def test_a_secret_in_two_pieces_is_none_in_the_file(tmp_path: Path) -> None:
    from stepfold.adapters.recording.writing import Writer
    from stepfold.effects.ports import Start
    from stepfold.engine.events import BlockCompleted, RunStarted

    writer = Writer(outcomes=False, digests=False, deltas=True, redact=common_secrets, kept=None)
    written = [writer.header(Start(Config()))]
    writer.begin(Start(Config()))
    written.append(writer.entry(RunStarted((Text("go"),))))
    writer.written()
    for at, piece in enumerate((KEY[:9], KEY[9:20], KEY[20:] + " it is")):
        written.append(writer.delta(1, TextDelta(piece), at))
    written.append(writer.entry(BlockCompleted(1, Text(KEY))))
    writer.written()
    (tmp_path / "a.jsonl").write_bytes(b"".join(written))
    _, (one,) = read_deltas(tmp_path / "a.jsonl")
    assert "[key]" + "*" * (len(KEY) - 5) + " it is" == one.delta["text"]
    assert (2, 0) == (one.before, one.at_ms)


def test_a_redacted_log_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for prompt in (f"use {KEY}", f"again {KEY}"):
        log = JsonlLog(path, redact=common_secrets)
        run_sync(prompt, model=ScriptedModel(["done"]), log=log, system=f"mail {MAIL}")
        asyncio.run(log.close())
    assert KEY not in path.read_text()
    assert MAIL not in path.read_text()
    folded = fold_recording(path)
    assert folded.ok
    assert folded.compared == folded.events == 6
    log = JsonlLog(path, redact=common_secrets)
    with pytest.raises(LogMismatch, match="system_prompt"):
        run_sync("more", model=ScriptedModel(["done"]), log=log, system="another one")
    asyncio.run(log.close())


def test_what_is_redacted_is_not_gone_on_with_by_mistake(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    log = JsonlLog(path, redact=common_secrets)
    run_sync("go", model=ScriptedModel(["done"]), log=log)
    asyncio.run(log.close())
    with path.open("ab") as file:
        file.write(b"torn")
    before = path.read_bytes()
    with pytest.raises(RecordingError, match="its texts are redacted; say how with redact="):
        JsonlLog(path)
    assert before == path.read_bytes()
    (tmp_path / "fork").write_bytes(forked(read_recording(path), 1))
    with pytest.raises(RecordingError, match="its texts are redacted"):
        JsonlLog(tmp_path / "fork")
    log = JsonlLog(path, redact=str)
    run_sync(f"mail {MAIL}", model=ScriptedModel(["done"]), log=log)
    asyncio.run(log.close())
    assert MAIL in path.read_text()
    assert fold_recording(path).ok
