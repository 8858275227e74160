"""What only this file catches: ports that are put together otherwise than the caller asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.memory_log import MemoryLog
from stepfold.adapters.recording import read_recording
from stepfold.adapters.scripted import ScriptedModel, calls
from stepfold.adapters.tools import Deny, Rules, Toolbox, tool
from stepfold.adapters.wiring import file_reader, fixed_tokens, wired, with_limits
from stepfold.effects import Result, run_sync
from stepfold.engine import Config
from stepfold.engine.config import ModelSpec
from stepfold.engine.events import ToolSpec


@tool(read_only=True)
def look(place: str) -> str:
    """Look."""
    return f"looked {place}"


def plain(place: str) -> str:
    """Change."""
    return f"changed {place}"


def script(name: str) -> ScriptedModel:
    return ScriptedModel([calls(name, {"place": "a"}), "Done."])


def statuses(result: Result) -> list[str]:
    return [str(status) for status in result.tool_calls.values()]


def test_functions_decorated_functions_and_a_folder_together(tmp_path: Path) -> None:
    options = wired(model=script("plain"), tools=[plain, look], folder=tmp_path)
    tools = options["tools"]

    assert isinstance(options["model"], ScriptedModel)
    assert not isinstance(tools, Toolbox)
    names = [spec.name for spec in tools.specs()]  # type: ignore[union-attr]
    assert set(names) == {"look", "plain", "bash", "read", "write", "edit", "glob", "grep"}
    assert ["completed"] == statuses(run_sync("go", **options))


def test_rules_and_questions_stand_in_front_of_the_tools() -> None:
    seen: list[tuple[str, Mapping[str, object]]] = []

    def asked(name: str, input: Mapping[str, object]) -> Deny:
        seen.append((name, input))
        return Deny("not now")

    denied = run_sync("go", **wired(model=script("plain"), tools=[plain, look], can_use_tool=asked))
    ruled = run_sync("go", **wired(model=script("plain"), tools=[plain], rules=Rules(deny=["p*"])))
    read = run_sync(
        "go",
        **wired(
            model=script("look"), tools=[look], rules=Rules(allow_read_only=True), can_use_tool=asked
        ),
    )

    assert (["denied"], ["denied"], ["completed"]) == (statuses(denied), statuses(ruled), statuses(read))
    assert [("plain", {"place": "a"})] == seen


def test_a_log_may_be_a_path_or_a_port(tmp_path: Path) -> None:
    memory = MemoryLog()

    run_sync("go", **wired(model=script("look"), tools=[look], log=tmp_path / "r.jsonl"))
    run_sync("go", **wired(model=script("look"), tools=[look], log=memory))

    assert len(read_recording(tmp_path / "r.jsonl").events) == len(memory.events)


def test_a_model_by_name_gets_the_limits_of_the_table() -> None:
    own = ModelSpec("mine", 10, 5)
    given = Config(fallback_models=("mine", "odd"), models=(own,))

    config = wired(model="claude-haiku-4-5", config=given)["config"]

    assert config is not None
    assert config.model == "claude-haiku-4-5"
    assert {spec.name: spec.context_window_tokens for spec in config.models} == {
        "mine": 10,
        "claude-haiku-4-5": 200_000,
    }
    assert with_limits(Config(models=(own,)), "mine") == (own,)


def test_the_fixed_part_is_estimated_high_and_a_given_one_stands() -> None:
    spec = ToolSpec("read", "Reads.", '{"type":"object"}')

    assert fixed_tokens(Config(), ()) == 0
    assert fixed_tokens(Config(system_prompt="12345"), (spec,)) == -(-(5 + 4 + 6 + 17) // 3)
    assert fixed_tokens(Config(system_prompt="x" * 9_000, fixed_prompt_tokens=7), (spec,)) == 7


def test_files_are_read_again_inside_the_folder_only(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    (folder / "bad").write_bytes(b"\xff")
    (tmp_path / "out.txt").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "out.txt")
    read = file_reader(folder)

    asked = ("a.txt", str(folder / "a.txt"), "../out.txt", "link", "bad", "gone", ".")

    assert [("a.txt", "a"), (str(folder / "a.txt"), "a")] == read(asked)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"config": {"max_turns": 1}}, r"^wired: config is .* \(dict\); wanted a Config"),
        ({"tools": "look"}, r"^wired: tools is 'look' \(str\); wanted a list of functions"),
        ({"tools": 3}, r"^wired: tools is 3 \(int\)"),
        ({"client": "key"}, r"^client: 'key' is no client"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], told: str) -> None:
    with pytest.raises(TypeError, match=told):
        wired(**options)


def test_a_wrong_option_of_run_is_named_by_run() -> None:
    with pytest.raises(TypeError, match=r"^run_sync: there is no option 'tol'; did you mean 'tools'"):
        run_sync("go", **wired(model=script("x"), tol=3))


def test_a_wrong_tool_is_named() -> None:
    with pytest.raises(TypeError, match="is no tool"):
        wired(model=script("x"), tools=[3])  # type: ignore[list-item]
