"""What only this file catches: a function whose signature or docstring reaches the model wrong."""

from __future__ import annotations

import json
import threading
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from stepfold.adapters.tools import (
    CallContext,
    FunctionTool,
    function_tools,
    tool,
)
from stepfold.effects.ports import Tools
from stepfold.engine.effects import RunTool
from tests.adapters.tools.calling import ended, ran, schema, search, use, words


def test_schema_and_words_come_from_signature_and_docstring() -> None:
    box = function_tools([search])

    spec = box.specs()[0]

    assert (spec.name, spec.description) == ("search", "Search the index.\n\nSlow for long patterns.")
    assert schema(box) == {
        "type": "object",
        "additionalProperties": False,
        "required": ["pattern"],
        "properties": {
            "pattern": {"type": "string", "description": "What to look for."},
            "limit": {"type": "integer", "minimum": 1, "default": 10, "description": "How many at most."},
            "mode": {"type": "string", "enum": ["exact", "loose"], "default": "exact"},
        },
    }


def test_words_in_an_annotation_win_over_the_docstring() -> None:
    def look(place: Annotated[str, Field(description="from the annotation")]) -> None:
        """
        Look.

        Args:
            place: from the docstring
        """

    assert schema(function_tools([look]))["properties"]["place"]["description"] == "from the annotation"


def test_a_field_as_default_is_understood() -> None:
    def pick(count: int = Field(3, ge=1), *, must: str = Field(description="needed")) -> str:
        return f"{count} {must}"

    box = function_tools([pick])

    assert schema(box)["required"] == ["must"]
    assert words(ended(box, "pick", '{"must": "x"}')) == "3 x"


@pytest.mark.parametrize("name", ["schema", "json", "copy", "self_", "model_config", "_hidden", "validate"])
def test_a_parameter_may_have_any_name(name: str) -> None:
    space: dict[str, Any] = {}
    exec(f"def odd({name}: int) -> int:\n    return {name} + 1", space)

    assert words(ended(function_tools([space["odd"]]), "odd", json.dumps({name: 1}))) == "2"


def test_nested_models_arrive_as_models() -> None:
    class Point(BaseModel):
        x: int
        y: int = 0

    def far(points: list[Point]) -> int:
        return max(point.x + point.y for point in points)

    box = function_tools([_with_globals(far, Point=Point)])

    assert words(ended(box, "far", '{"points": [{"x": 1}, {"x": 2, "y": 5}]}')) == "7"
    filled = box.filled(use("far", '{"points": [{"x": 1}]}'))
    assert json.loads(filled.input) == {"points": [{"x": 1, "y": 0}]}


def _with_globals(function: Any, **names: object) -> Any:
    function.__globals__.update(names)
    return function


def test_the_context_is_no_argument() -> None:
    def tell(ctx: CallContext, text: str) -> str:
        ctx.progress("half")
        return f"{ctx.name} {ctx.use_id} {ctx.effect_id} {text}"

    box, seen = function_tools([tell]), list[str]()

    end = ended(box, "tell", '{"text": "hi"}', seen)

    assert list(schema(box)["properties"]) == ["text"]
    assert (words(end), seen) == ("tell t1 7 hi", ["half"])


def test_keyword_arguments_of_any_name_and_arguments_by_place() -> None:
    def free(first: int, /, **rest: int) -> int:
        return first + sum(rest.values())

    assert words(ended(function_tools([free]), "free", '{"first": 1, "a": 2, "b": 3}')) == "6"


def test_what_cannot_be_a_tool_is_refused_when_it_is_offered() -> None:
    def many(*names: str) -> None: ...

    def foreign(thing: threading.Thread) -> None: ...

    def missing(thing: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037

    for function, problem in ((many, r"\*names"), (foreign, "Thread"), (missing, "Nowhere")):
        with pytest.raises(TypeError, match=problem):
            function_tools([function])
    with pytest.raises(TypeError, match="is no tool"):
        function_tools([3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="has no name"):
        tool(lambda: None)
    with pytest.raises(ValueError, match="two tools are named 'search'"):
        function_tools([search, search])
    with pytest.raises(ValueError, match="no tool name"):
        function_tools([tool(name="a b")(search)])


def test_a_decorated_function_can_still_be_called() -> None:
    @tool
    def double(x: int) -> int:
        return 2 * x

    assert isinstance(double, FunctionTool)
    assert double(4) == 8


def test_a_decorated_function_is_a_port_by_itself() -> None:
    port: Tools = tool(safe=True)(search)
    box, call = function_tools([tool(safe=True)(search)]), use("search", '{"pattern": "a"}')

    assert box.specs() == port.specs()
    assert (box.facts(call), box.filled(call)) == (port.facts(call), port.filled(call))
    assert ended(box, "search", call.input) == ran(port.run(RunTool(7, call, call.input), print))
    ran(port.close())
