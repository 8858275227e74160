"""Only this file pins the format of the log: tags, keys, defaults, strictness, words of errors, digests."""

from __future__ import annotations

import enum
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import attrs
import orjson
import pytest

from stepfold.adapters.codec import (
    SCHEMA,
    CodecError,
    canonical,
    config_from,
    digest,
    dump_event,
    dump_start,
    load_event,
    start_from,
)
from stepfold.adapters.codec.tags import BLOCKS, ENUMS, EVENTS
from stepfold.effects.ports import Start
from stepfold.engine import Config, start
from stepfold.engine import events as e
from stepfold.engine import messages as m
from stepfold.engine.config import HookSpec, ModelSpec, SourceKind
from stepfold.engine.events import Event
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.history import History
from stepfold.engine.ids import Ids
from stepfold.engine.state import Collapse

USE = m.ToolUse("t1", "read", '{"path":"a"}', '{"caller":1}', "raw")
RESULT = m.ToolResult("t1", (m.Text("r"), m.Media("image", "{}"), m.Opaque("x", "{}")), True, '{"a":1}')
ALL_BLOCKS = (
    m.Text("hi", '{"citations":[]}'),
    m.Thinking("hm", "sig", "{}"),
    m.RedactedThinking("data", "{}"),
    USE,
    RESULT,
    m.Media("document", '{"type":"document"}'),
    m.Opaque("server_tool_use", '{"id":"s1"}', "s1", "s0"),
)
FAILURE = Failure(FailureKind.RATE_LIMITED, "slow down", 429, "rate_limit_error", 7_000, 5, "req_1")
USAGE = e.Usage(1, 2, 3, 4)
SPEC = e.ToolSpec("read", "reads", '{"a":1}', '{"type":"bash"}', None, True, True)
MESSAGE = m.Message(m.Role.USER, (m.Text("more"),), m.Origin.NUDGE, "big")

# One of every event, with every field set to something else than its default.
FULL: dict[str, Event] = {
    '{"prompt":[{"text":"hi","extra":"{\\"citations\\":[]}","$type":"text"},{"thinking":"hm","signature":"sig",'
    '"extra":"{}","$type":"thinking"},{"data":"data","extra":"{}","$type":"redacted_thinking"},{"id":"t1",'
    '"name":"read","input":"{\\"path\\":\\"a\\"}","extra":"{\\"caller\\":1}","raw_input":"raw","$type":"tool_use"},'
    '{"use_id":"t1","content":[{"text":"r","$type":"text"},{"type":"image","wire":"{}","$type":"media"},'
    '{"type":"x","wire":"{}","$type":"opaque"}],"is_error":true,"extra":"{\\"a\\":1}","$type":"tool_result"},'
    '{"type":"document","wire":"{\\"type\\":\\"document\\"}","$type":"media"},{"type":"server_tool_use",'
    '"wire":"{\\"id\\":\\"s1\\"}","call_id":"s1","answers":"s0","$type":"opaque"}],"run_id":"r1","seed":7,'
    '"at_ms":1,"$type":"run_started"}': e.RunStarted(ALL_BLOCKS, "r1", 7, 1),
    '{"effect_id":1,"block":{"text":"x","$type":"text"},"facts":{"known":false,"valid":false,"safe":true,'
    '"verdict":"deny","interrupt":"cancel","idempotent":true,"shell":true,"problem":"no"},"at_ms":1,'
    '"$type":"block_completed"}': e.BlockCompleted(
        1,
        m.Text("x"),
        e.CallFacts(False, False, True, e.Verdict.DENY, e.Interrupt.CANCEL, True, True, "no"),
        1,
    ),
    '{"effect_id":1,"stop":"model_context_window_exceeded","reason":"raw","usage":{"input_tokens":1,'
    '"output_tokens":2,"cache_read_tokens":3,"cache_creation_tokens":4},"open_text":"o","shown":true,'
    '"cleared_tokens":5,"details":"d","at_ms":1,"$type":"stream_closed"}': e.StreamClosed(
        1, e.Stop.WINDOW_EXCEEDED, "raw", USAGE, "o", True, 5, "d", 1
    ),
    '{"effect_id":1,"failure":{"kind":"rate_limited","message":"slow down","status":429,'
    '"error_type":"rate_limit_error","retry_after_ms":7000,"excess_tokens":5,"request_id":"req_1"},'
    '"usage":{"input_tokens":1,"output_tokens":2,"cache_read_tokens":3,"cache_creation_tokens":4},'
    '"open_text":"o","shown":true,"at_ms":1,"$type":"stream_failed"}': e.StreamFailed(
        1, FAILURE, USAGE, "o", True, 1
    ),
    '{"effect_id":1,"usage":{"input_tokens":1,"output_tokens":2,"cache_read_tokens":3,"cache_creation_tokens":4},'
    '"open_text":"o","shown":true,"at_ms":1,"$type":"stream_cancelled"}': e.StreamCancelled(
        1, USAGE, "o", True, 1
    ),
    '{"effect_id":1,"content":[{"text":"r","$type":"text"}],"status":"failed","stop":{"hook":"h","words":"w"},'
    '"messages":[{"role":"user","content":[{"text":"more","$type":"text"}],"origin":"nudge","model":"big"}],'
    '"at_ms":1,"$type":"tool_ended"}': e.ToolEnded(
        1, (m.Text("r"),), e.CallStatus.FAILED, e.HookStop("h", "w"), (MESSAGE,), 1
    ),
    '{"effect_id":1,"allowed":true,"words":"w","input":"{}","stop":{"hook":"h"},"at_ms":1,'
    '"$type":"permission_answered"}': e.PermissionAnswered(1, True, "w", "{}", e.HookStop("h"), 1),
    '{"effect_id":1,"summary":"s","tokens":5,"attachments":[{"role":"user","content":[{"text":"more",'
    '"$type":"text"}],"origin":"nudge","model":"big"}],"usage":{"input_tokens":1,"output_tokens":2,'
    '"cache_read_tokens":3,"cache_creation_tokens":4},"at_ms":1,"$type":"compacted"}': e.Compacted(
        1, "s", 5, (MESSAGE,), USAGE, 1
    ),
    '{"effect_id":1,"failure":{"kind":"unusable"},"usage":{"input_tokens":1,"output_tokens":2,'
    '"cache_read_tokens":3,"cache_creation_tokens":4},"at_ms":1,"$type":"compaction_failed"}': (
        e.CompactionFailed(1, Failure(FailureKind.UNUSABLE), USAGE, 1)
    ),
    '{"effect_id":1,"summary":"s","at_ms":1,"$type":"collapse_staged"}': e.CollapseStaged(1, "s", 1),
    '{"effect_id":1,"verdict":"block","words":"w","at_ms":1,"$type":"hook_answered"}': e.HookAnswered(
        1, e.HookVerdict.BLOCK, "w", 1
    ),
    '{"effect_id":1,"at_ms":1,"$type":"wait_elapsed"}': e.WaitElapsed(1, 1),
    '{"effect_id":1,"summary":null,"at_ms":1,"$type":"summary_ready"}': e.SummaryReady(1, None, 1),
    '{"effect_id":1,"texts":["a","b"],"at_ms":1,"$type":"prefetched"}': e.Prefetched(1, ("a", "b"), 1),
    '{"tools":[{"name":"read","description":"reads","input_schema":"{\\"a\\":1}",'
    '"wire":"{\\"type\\":\\"bash\\"}","max_result_chars":null,"clearable":true,"read_only":true}],"at_ms":1,'
    '"$type":"tools_changed"}': e.ToolsChanged((SPEC,), 1),
    '{"command":{"id":"c1","content":[{"text":"x","$type":"text"}]},"at_ms":1,"$type":"command_queued"}': (
        e.CommandQueued(e.Command("c1", (m.Text("x"),)), 1)
    ),
    '{"kind":"hard","at_ms":1,"$type":"abort_requested"}': e.AbortRequested(e.AbortKind.HARD, 1),
    '{"at_ms":1,"$type":"resumed"}': e.Resumed(1),
}

# What a line without its defaults means: a default that changes would change old logs.
DEFAULTS: dict[str, Event] = {
    '{"prompt":[],"$type":"run_started"}': e.RunStarted((), "run", 0, 0),
    '{"effect_id":1,"block":{"id":"t","name":"n","$type":"tool_use"},"facts":{},"$type":"block_completed"}': (
        e.BlockCompleted(
            1,
            m.ToolUse("t", "n", "{}", "", ""),
            e.CallFacts(True, True, False, e.Verdict.ALLOW, e.Interrupt.WAIT, False, False, ""),
            0,
        )
    ),
    '{"effect_id":1,"block":{"text":"","$type":"text"},"$type":"block_completed"}': e.BlockCompleted(
        1, m.Text("", ""), None, 0
    ),
    '{"effect_id":1,"stop":"end_turn","$type":"stream_closed"}': e.StreamClosed(
        1, e.Stop.END_TURN, "", None, "", False, 0, "", 0
    ),
    '{"effect_id":1,"failure":{"kind":"other"},"usage":{},"$type":"stream_failed"}': e.StreamFailed(
        1, Failure(FailureKind.OTHER, "", 0, "", None, 0, ""), e.Usage(0, 0, 0, 0), "", False, 0
    ),
    '{"effect_id":1,"$type":"stream_cancelled"}': e.StreamCancelled(1, None, "", False, 0),
    '{"effect_id":1,"messages":[{"role":"user","content":[{"use_id":"t","$type":"tool_result"}]}],'
    '"$type":"tool_ended"}': e.ToolEnded(
        1,
        (),
        e.CallStatus.COMPLETED,
        None,
        (m.Message(m.Role.USER, (m.ToolResult("t", (), False, ""),), m.Origin.PROMPT, ""),),
        0,
    ),
    '{"effect_id":1,"allowed":false,"$type":"permission_answered"}': e.PermissionAnswered(
        1, False, "", None, None, 0
    ),
    '{"effect_id":1,"summary":"s","tokens":5,"$type":"compacted"}': e.Compacted(1, "s", 5, (), None, 0),
    '{"effect_id":1,"texts":[],"$type":"prefetched"}': e.Prefetched(1, (), 0),
    '{"tools":[{"name":"n"}],"$type":"tools_changed"}': e.ToolsChanged(
        (e.ToolSpec("n", "", '{"type":"object"}', "", 50_000, False, False),), 0
    ),
}


@pytest.mark.parametrize(("line", "event"), FULL.items(), ids=lambda given: type(given).__name__)
def test_every_event_is_written_and_read_as_ever(line: str, event: Event) -> None:
    assert line == dump_event(event).decode()
    assert event == load_event(line.encode())
    # An enum equals its text, so equality alone would not see one that was read as a text.
    assert repr(event) == repr(load_event(line.encode()))


@pytest.mark.parametrize(("line", "event"), DEFAULTS.items(), ids=lambda given: type(given).__name__)
def test_what_is_left_out_means_what_it_meant(line: str, event: Event) -> None:
    assert event == load_event(line.encode())
    assert len(dump_event(event)) <= len(line)


def test_the_samples_cover_every_event_block_and_field() -> None:
    kinds = set(get_args(Event))
    assert kinds == {type(event) for event in FULL.values()} == set(EVENTS)
    assert set(get_args(m.Block)) == {type(block) for block in ALL_BLOCKS} == set(BLOCKS)
    for event in FULL.values():
        names = {field.name for field in attrs.fields(type(event))}
        assert names | {"$type"} == set(orjson.loads(dump_event(event))), type(event)
    for tags in (EVENTS, BLOCKS):
        assert len(set(tags.values())) == len(tags)
        assert 2 == SCHEMA


def types_within(kind: Any, found: set[Any]) -> set[Any]:
    """Return every class that *kind* can hold."""
    for part in get_args(kind) or (kind,):
        if part in found or part is Ellipsis:
            continue
        found.add(part)
        if get_args(part):
            types_within(part, found)
        elif attrs.has(part):
            for field in attrs.fields(attrs.resolve_types(part)):
                types_within(field.type, found)
    return found


def test_no_enum_is_forgotten() -> None:
    """One that is not registered by itself would be read as a plain text, and no error would say so."""
    held = types_within(Event, set()) | types_within(Start, set())
    enums = {kind for kind in held if isinstance(kind, type) and issubclass(kind, enum.Enum)}
    assert enums - {SourceKind} <= set(ENUMS)  # Config works that one out by itself
    assert len(enums) >= 9


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nope", "not JSON"),
        ("[]", "wanted an object with $type"),
        ("null", "wanted an object with $type"),
        ('{"effect_id":1}', "$type None is not allowed; wanted one of abort_requested"),
        ('{"$type":"tool_eaten"}', "'tool_eaten' is not allowed"),
        ('{"$type":["a"]}', "is not allowed"),
        ('{"$type":"wait_elapsed"}', "effect_id: 'effect_id' is missing"),
        ('{"$type":"wait_elapsed","effect_id":"1"}', "effect_id: wanted a whole number, got '1'"),
        ('{"$type":"wait_elapsed","effect_id":1.0}', "effect_id: wanted a whole number, got 1.0"),
        (
            '{"$type":"wait_elapsed","effect_id":18446744073709551616}',
            "effect_id: wanted a whole number from -9223372036854775808 to 18446744073709551615, got 1.8",
        ),
        ('{"$type":"wait_elapsed","effect_id":' + "1" * 5_000 + "}", "it is not JSON"),
        ('{"$type":"wait_elapsed","effect_id":' + "[" * 5_000, "it is not JSON"),
        ('{"$type":"wait_elapsed","effect_id":true}', "effect_id: wanted a whole number, got True"),
        ('{"$type":"wait_elapsed","effect_id":null}', "effect_id: wanted a whole number, got None"),
        ('{"$type":"wait_elapsed","effect_id":1,"x":1}', "unknown key 'x'; allowed are effect_id, at_ms"),
        ('{"$type":"summary_ready","effect_id":1,"summary":5}', "summary: wanted a text, got 5"),
        ('{"$type":"compacted","effect_id":1,"tokens":1,"summary":null}', "summary: wanted a text, got None"),
        ('{"$type":"prefetched","effect_id":1,"texts":"ab"}', "texts: wanted a list, got 'ab'"),
        ('{"$type":"prefetched","effect_id":1,"texts":["a",1]}', "texts[1]: wanted a text, got 1"),
        (
            '{"$type":"tool_ended","effect_id":1,"status":"done"}',
            "status: 'done' is not allowed; wanted one of",
        ),
        ('{"$type":"tool_ended","effect_id":1,"content":[{"text":"x"}]}', "content[0]: $type None"),
        (
            '{"$type":"tool_ended","effect_id":1,"content":[{"$type":"tool_use","id":"a","name":"b"}]}',
            "content[0]: $type 'tool_use' is not allowed; wanted one of media, opaque, text",
        ),
        (
            '{"$type":"block_completed","effect_id":1,"block":{"$type":"text","text":"x"},"facts":{"safe":1}}',
            "facts.safe: wanted true or false, got 1",
        ),
    ],
)
def test_what_is_wrong_is_refused_with_place_and_what_is_allowed(line: str, words: str) -> None:
    with pytest.raises(CodecError) as refused:
        load_event(line.encode())
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("event", [e.Prefetched(1, ("\ud800",)), e.WaitElapsed(2**70)])
def test_what_json_cannot_hold_is_refused(event: Event) -> None:
    with pytest.raises(CodecError, match="JSON"):
        dump_event(event)


def test_a_start_is_written_in_full_and_read_back() -> None:
    config = Config(
        model="a",
        fallback_models=("b",),
        models=(ModelSpec("a", 1, 2, 3, 4), ModelSpec("b", 5, 6)),
        max_turns=None,
        stop_hooks=(HookSpec("lint", 2),),
    )
    begun = Start(config, (MESSAGE,), (SPEC,), (Collapse(2, "sum"),), "go")
    plain = orjson.loads(dump_start(begun))
    assert begun == start_from(plain)
    assert {field.name for field in attrs.fields(Config) if field.init} == set(plain["config"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"max_turn": 1}, "unknown key 'max_turn'; allowed are model, "),
        ({"max_turns": 0}, "max_turns: 0 is not allowed"),
        ({"max_turns": "5"}, "max_turns: wanted a whole number"),
        (
            {"max_turns": 2**64},
            "max_turns: wanted a whole number from -9223372036854775808 to 1844674407370955",
        ),
        ({"max_turns": -(2**70)}, "max_turns: wanted a whole number from"),
        ({"max_turns": 10**5_000}, "max_turns: wanted a whole number from"),
        ({"max_turns": 10**5_000}, "got one of 16610 bits"),
        ({"model": 10**5_000}, "model: wanted a text, got one of 16610 bits"),
        ({"source_kind": "user"}, "unknown key 'source_kind'"),
        ({"fallback_models": "ab"}, "fallback_models: wanted a list"),
        ({"stop_hooks": [{"name": "a", "max_block": 1}]}, "stop_hooks[0]: unknown key 'max_block'"),
    ],
)
def test_a_config_names_what_is_wrong(given: dict[str, Any], words: str) -> None:
    with pytest.raises(CodecError) as refused:
        config_from(given)
    assert words in str(refused.value)
    assert Config(max_turns=3) == config_from({"max_turns": 3})


def test_equal_contents_have_equal_digests_and_others_have_not() -> None:
    one = History[str]().extend(map(str, range(200)))
    other = History[str]().extend(map(str, range(100))).extend(map(str, range(100, 200)))
    assert digest(one) == digest(other)
    assert digest(one) != digest(one.append("x"))
    assert digest(frozenset("abc")) == digest(frozenset("cba"))
    assert digest(e.WaitElapsed(1)) != digest(e.Resumed(1))
    assert {"$type": "WaitElapsed", "effect_id": 1, "at_ms": 0} == canonical(e.WaitElapsed(1))
    sums = [digest(number) for number in (2**64 - 1, 2**64, 2**64 + 1, -(2**64), 10**5_000, str(2**64))]
    assert len(sums) == len(set(sums))
    with pytest.raises(TypeError, match="canonical"):
        canonical(object())


PROGRAM = """
from stepfold.adapters.codec import digest
from stepfold.engine import start
from stepfold.engine.ids import Ids
ids = Ids()
for n in range(1000):
    ids = ids.add(f"call-{n}")
print(digest(ids), digest(start()))
"""


@pytest.mark.parametrize("seed", ["0", "1", "4711"])
def test_digests_do_not_hang_on_the_hash_seed(seed: str) -> None:
    ids = Ids()
    for number in range(1000):
        ids = ids.add(f"call-{number}")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert [digest(ids), digest(start())] == done.stdout.split()
