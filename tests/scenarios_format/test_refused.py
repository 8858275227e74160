"""Only this catches a wrong file that is played, or whose complaint names another place or no right value."""

from __future__ import annotations

import pytest

from stepfold.adapters.scenarios.reading.load import loads
from stepfold.adapters.toml.reader import Malformed

HEAD = 'format = 1\ntitle = "t"\n[[user]]\ntext = "go"\n'
REFUSED = [
    ("[model]\ntakes = 1", 5, "model", "write [[model]]"),
    ("[[config.stop_hooks]]\nname = 'a'\n[[hook]]\nname = 'a'", 6, "config.stop_hooks[1].name", "either"),
    ("[[config.models]]\nname = 'a'", 5, "config.models[1].context_window_tokens", ">= 1"),
    ("[config]\ncontext_window_tokens = 10", 6, "config.context_window_tokens", ">= 20001"),
    ("[config]\nmodel_max_output_tokens = 10\nmax_output_tokens = 11", 7, "config.max_output_tokens", "10"),
    ("[config]\nmodel = ''", 6, "config.model", "a name"),
    ("[config]\nmax_retries = 10_000_000_000_000", 6, "config.max_retries", "<= 1000000000000"),
    ("[[history]]\ncontent = 'a'", 5, "history[1].role", "assistant"),
    ("[[history]]\nrole='user'\ncontent=[{type=''}]", 7, "history[1].content[1]", "a type"),
    ("[[model]]\nstop = ''", 6, "model[1].stop", "not empty"),
    ("[[model]]\nopen = { text = 'a' }", 6, "model[1].open", "cut = true"),
    ("[[model]]\nopen = { text = 'a' }\ncut = false", 6, "model[1].open", "cut = true"),
    ("[[model]]\nerror = { status = 200 }", 6, "model[1].error.status", "200 beside a type"),
    ("[[model]]\nerror = { status = 204, type = 'x' }", 6, "model[1].error.status", "300 to 599"),
    ("[[model]]\nerror = { type = ' ' }", 6, "model[1].error", "status, type or transport"),
    ("[[model]]\nerror = { status = 429, retry_after = 1e300 }", 6, "model[1].error.retry_after", "<= 10000"),
    ("[[model]]\nusage = { input_tokens = 9_000_000_000_000 }", 6, "model[1].usage.input_tokens", "<= 10000"),
    ("[[tool]]\nname = 'a'\nresult = { chars = 10_000_001 }", 7, "tool[1].result.chars", "<= 10000000"),
    ("[[tool]]\nname = 'a'\nresults = [" + "{ chars = 10_000_000 }," * 11 + "]", 7, "tool[1].results", "100"),
    ("[[hook]]\nname = 'a'\nanswers = []", 7, "hook[1].answers", "block: WORDS"),
    ("[[act]]\nat = 'hook lint started'\ndo = 'crash'", 6, "act[1].at", "has not a [[hook]]"),
    ("[[act]]\nat = 'call 9999999999 opened'\ndo = 'crash'", 6, "act[1].at", "999999999"),
    ("[expect]\nhooks_run = { lint = 0 }\n[[hook]]\nname = 'lind'", 6, "expect.hooks_run.lint", "lind"),
    ("[expect]\ncontains = { call = 1, text = '' }", 6, "expect.contains.text", "not empty"),
    ("[expect]\nx = 99999999999999999999", 6, "expect.x", "9223372036854775807"),
    # text after the head, line, key, a word of what is allowed
    ("colour = 1", 5, "user[1].colour", "text"),
    ("[config]\nmax_turn = 5", 6, "config.max_turn", "max_turns"),
    ("[config]\nmax_turns = 0", 6, "config.max_turns", ">= 1"),
    ("[config]\nmax_turns = true", 6, "config.max_turns", ">= 1"),
    ("[config]\nautocompact = 1", 6, "config.autocompact", "bool"),
    ("[config]\nmodel = 3", 6, "config.model", "a name"),
    ("[config]\nsource = 'robot'", 6, "config.source", "agent:NAME"),
    ("[config]\nfallback_models = ['main']", 6, "config.fallback_models", "first model"),
    ("[config]\nstop_hooks = ['lint']", 6, "config.stop_hooks[1]", "a table of name, max_blocks"),
    ("[[history]]\nrole = 'robot'\ncontent = ''", 6, "history[1].role", "assistant"),
    ("[[history]]\nrole = 'user'", 5, "history[1].content", "blocks"),
    ("[[history]]\nrole = 'user'\ncontent = [{ text = 'a' }]", 7, "history[1].content[1]", "type"),
    ("[[model]]\n[[model]]\nblocks = [\n {text = 'a'},\n {txt = 'b'}]", 9, "model[2].blocks[2].txt", "raw"),
    ("[[model]]\nblocks = [{ text = 'a', thinking = 'b' }]", 6, "model[1].blocks[1]", "exactly one"),
    ("[[model]]\nblocks = [{ text = 'a', signature = 'b' }]", 6, "model[1].blocks[1].signature", "text"),
    ("[[history]]\nrole = 'user'\ncontent = [{ type = 'text' }]", 7, "history[1].content[1]", "each of text"),
    ("[[history]]\nrole = 'user'\ncontent = [{type = 'a', d = 1979-05-27}]", 7, "history[1].content", "JSON"),
    ("[[model]]\nblocks = [{ raw = { type = 'tool_use' } }]", 6, "model[1].blocks[1].raw", "id, name"),
    ("[[model]]\nblocks = [{ raw = { id = 'x' } }]", 6, "model[1].blocks[1].raw", "type"),
    ("[[model]]\nblocks = [{ tool_use = { id = 'x' } }]", 6, "model[1].blocks[1].tool_use.name", "text"),
    ("[[model]]\ntakes = -1", 6, "model[1].takes", ">= 0"),
    ("[[model]]\ntakes = 1.5", 6, "model[1].takes", ">= 0"),
    ("[[model]]\ntimes = 0", 6, "model[1].times", ">= 1"),
    ("[[model]]\ntimes = 'always'", 6, "model[1].times", "forever"),
    ("[[model]]\ntimes = 'forever'\n[[model]]", 6, "model[1].times", ">= 1"),
    ("[[model]]\nerror = {}", 6, "model[1].error", "status"),
    ("[[model]]\nerror = { status = 529 }\ncut = true", 7, "model[1].cut", "one of"),
    ("[[model]]\nerror = { transport = 'x', status = 500 }", 6, "model[1].error.status", "alone"),
    ("[[model]]\nerror = { status = 429, retry_after = 'soon' }", 6, "model[1].error.retry_after", "seconds"),
    ("[[model]]\nusage = { tokens = 1 }", 6, "model[1].usage.tokens", "input_tokens"),
    ("[[tool]]\nsafe = true", 5, "tool[1].name", "text"),
    ("[[tool]]\nname = 'a'\n[[tool]]\nname = 'a'", 8, "tool[2].name", "of its own"),
    ("[[tool]]\nname = 'a'\nsafe = 'yes'", 7, "tool[1].safe", "true, false"),
    ("[[tool]]\nname = 'a'\ninterrupt = 'stop'", 7, "tool[1].interrupt", "wait, cancel"),
    ("[[tool]]\nname = 'a'\npermission = 'ask'", 7, "tool[1].permission", "ask ="),
    ("[[tool]]\nname = 'a'\npermission = { ask = 'maybe' }", 7, "tool[1].permission.ask", "allow, deny"),
    ("[[tool]]\nname = 'a'\nresult = { what = 1 }", 7, "tool[1].result.what", "error, blocks, chars"),
    ("[[tool]]\nname = 'a'\nresults = []", 7, "tool[1].results", "at least one"),
    ("[[tool]]\nname = 'a'\nmax_result_chars = 'all'", 7, "tool[1].max_result_chars", "infinite"),
    ("[[hook]]\nname = 'a'\nanswers = ['stop']", 7, "hook[1].answers[1]", "prevent"),
    ("[[hook]]\nname = 'a'\nanswers = ['block 3 errors']", 7, "hook[1].answers[1]", "block: WORDS"),
    ("[[hook]]\nname = 'a'\nmax_blocks = 0", 7, "hook[1].max_blocks", ">= 1"),
    ("[[compact]]\ntokens = 1", 5, "compact[1]", "exactly one of summary, error"),
    ("[[collapse]]\nsummary = 'a'", 5, "collapse[1].through", ">= 1"),
    ("[[collapse]]\nthrough = 1\nsummary = 'a'", 6, "collapse[1].through", "[[history]]"),
    ("[[history]]\nrole = 'user'\ncontent = 'a'\n" + "[[collapse]]\nthrough = 2\nsummary = 'a'\n"
        "[[collapse]]\nthrough = 3\nsummary = 'b'", 12, "collapse[2].through", "[[history]]"),
    ("[[act]]\nat = 'call 0 opened'\ndo = 'crash'", 6, "act[1].at", "call N opened"),
    ("[[act]]\nat = 'call 1 opened'\ndo = 'abort softly'", 7, "act[1].do", "abort hard"),
    ("[[act]]\nat = 'call 1 opened'\ndo = 'queue '", 7, "act[1].do", "queue TEXT"),
    ("[expect]\nterminal = 'stopped'", 6, "expect.terminal", "aborted_tools"),
    ("[expect]\nterminals = ['completed', 'x']", 6, "expect.terminals[2]", "none"),
    ("[expect]\nending = 'good'", 6, "expect.ending", "truncated"),
    ("[expect]\ntransitions = ['again']", 6, "expect.transitions[1]", "next_turn"),
    ("[expect]\nmodel_calls = 'two'", 6, "expect.model_calls", "max"),
    ("[expect]\nmodel_calls = { min = 2 }", 6, "expect.model_calls.min", "max"),
    ("[expect]\ntools = { t1 = 'done' }", 6, "expect.tools.t1", "completed"),
    ("[expect]\ntool_overlap = [['t1']]", 6, "expect.tool_overlap[1]", "two call ids"),
    ("[expect]\nwaits_ms = [1.5]", 6, "expect.waits_ms[1]", ">= 0"),
    ("[expect]\nrequest = { call = 0, shape = [] }", 6, "expect.request.call", "-1"),
    ("[expect]\nrequest = { call = 1, shape = ['text'] }", 6, "expect.request.shape[1]", "ROLE"),
    ("[expect]\nhook_runs = {}", 6, "expect.hook_runs", "hooks_run"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "key", "allowed"), REFUSED, ids=[case[2] for case in REFUSED])
def test_what_the_format_does_not_know_is_refused(text: str, line: int, key: str, allowed: str) -> None:
    with pytest.raises(Malformed) as refusal:
        loads(HEAD + text + "\n", "file.toml")

    assert (line, key) == (refusal.value.line, refusal.value.key)
    assert allowed in str(refusal.value)
    assert str(refusal.value).startswith(f"file.toml:{line}: {key}: ")


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ('format = "1"\ntitle = "t"\n[[user]]\ntext = "a"', 1, "format"),
        ('format = 2\ntitle = "t"\n[[user]]\ntext = "a"', 1, "format"),
        ("format = 1\n[[user]]\ntext = 'a'", 1, "title"),
        ("format = 1\ntitle = 't'", 1, "[[user]]"),
        ("format = 1\ntitle = 't'\n[[user]]\ntext = ' '", 4, "not empty"),
        ("format = 1\ntitle = 't'\nuser = 'me'", 3, "user"),
        ("format = 1\ntitle = = 2", 2, "TOML"),
        ("format = 1\nx = " + "[" * 101 + "]" * 101, 2, "at most 100 levels"),
        ("format = 1\n" + "a." * 101 + "b = 1", 2, "at most 100 levels"),
        ("format = 1\n" + "a." * 50_000 + "b = 1", 2, "at most 100 levels"),
        ("format = 1\n[" + "'a' . " * 50_000 + "b]", 2, "at most 100 levels"),
        ("format = 1\nx = 1" + "0" * 5_000, 2, "more than 64 bits"),
        ("format = 1\nx = [[1],\n" + "  1,\n" * 5_000, 2, "TOML"),
        ('format = 1\nx = """\n  1,\n\n', 2, "TOML"),
        ("format = 1\nx = [\n  1,\n", 2, "TOML"),
        ("format = 1\ntitl = 't'", 2, "did you mean title?"),
        ("format = 1\ntitle = '", 2, "TOML"),
        ("format = 1\nformat = 1", 2, "TOML"),
    ],
)
def test_the_head_of_a_file(text: str, line: int, word: str) -> None:
    with pytest.raises(Malformed) as refusal:
        loads(text, "file.toml")

    assert line == refusal.value.line
    assert word in str(refusal.value)
