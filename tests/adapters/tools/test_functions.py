"""What only this file catches: a function whose schema, validation or traits reach the loop wrong."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import json
import threading
from collections.abc import Coroutine
from typing import Annotated, Any, Literal, TypeVar

import pytest
from pydantic import BaseModel, Field

from stepfold.adapters.tools import (
    CallContext,
    FunctionTool,
    Reply,
    Tool,
    Toolbox,
    ToolFailed,
    function_tools,
    tool,
)
from stepfold.adapters.tools.definition import Hints
from stepfold.effects.ports import Tools
from stepfold.engine.effects import RunTool
from stepfold.engine.events import CallFacts, CallStatus, HookStop, Interrupt, ToolEnded
from stepfold.engine.messages import Media, Origin, Text, ToolUse, user_text

T = TypeVar("T")


def ran(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def use(name: str, input: str = "{}") -> ToolUse:
    return ToolUse("t1", name, input)


def ended(box: Toolbox, name: str, input: str = "{}", seen: list[str] | None = None) -> ToolEnded:
    call = use(name, input)
    progress = (seen if seen is not None else []).append
    return ran(box.run(RunTool(7, call, input), progress))


def words(end: ToolEnded) -> str:
    return "\n".join(block.text for block in end.content if isinstance(block, Text))


def schema(box: Toolbox) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(box.specs()[0].input_schema)
    return made


Mode = Literal["exact", "loose"]


def search(pattern: str, limit: Annotated[int, Field(ge=1)] = 10, *, mode: Mode = "exact") -> str:
    """
    Search the index.

    Slow for long patterns.

    Args:
        pattern: What to look for.
        limit: How many at most.
    """
    return f"{pattern} {limit} {mode}"


# ------------------------------------------------------------------------ schema


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


# -------------------------------------------------------------------- validation


@pytest.mark.parametrize(
    ("input", "problem"),
    [
        ("{}", "- pattern is required and missing"),
        ('{"pattern": "a", "colour": 1}', "- colour is not an argument of this tool"),
        ('{"pattern": "a", "limit": "many"}', "- limit: Input should be a valid integer"),
        ('{"pattern": "a", "limit": 0}', "- limit: Input should be greater than or equal to 1; got 0"),
        ('{"pattern": "a", "mode": "odd"}', "- mode: Input should be 'exact' or 'loose'; got 'odd'"),
        ("[1]", "The input must be a JSON object. It was: [1]"),
        ('{"pat', 'The input is not valid JSON'),
        ('{"pattern": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "The input is not valid JSON"),
    ],
)
def test_a_bad_input_is_a_fact_with_words_for_the_model(input: str, problem: str) -> None:
    facts = function_tools([tool(safe=True)(search)]).facts(use("search", input))

    assert (facts.known, facts.valid, facts.safe) == (True, False, False)
    assert problem in facts.problem
    assert len(facts.problem) < 2_000


def test_input_that_was_no_json_object_says_so() -> None:
    call = ToolUse("t1", "search", "{}", raw_input='{"pattern": "ab')

    problem = function_tools([search]).facts(call).problem

    assert "not valid JSON" in problem
    assert '{"pattern": "ab' in problem


def test_an_unknown_tool_is_a_fact_that_names_the_known() -> None:
    facts = function_tools([search]).facts(use("serch"))

    assert CallFacts(known=False, valid=False, problem=facts.problem) == facts
    assert "Did you mean 'search'?" in facts.problem


def test_a_bad_input_that_runs_anyway_fails_with_the_same_words() -> None:
    box = function_tools([search])

    for name in ("search", "serch"):
        end = ended(box, name)
        assert (CallStatus.FAILED, box.facts(use(name)).problem) == (end.status, words(end))


def test_meaning_is_asked_after_the_schema() -> None:
    asked: list[object] = []

    def meaning(arguments: Any) -> str | None:
        asked.append(arguments["pattern"])
        if arguments["pattern"] == "crash":
            raise KeyError("inside")
        return "An empty pattern finds nothing." if not arguments["pattern"] else None

    box = function_tools([tool(meaning=meaning)(search)])

    assert box.facts(use("search", "{}")).valid is False
    assert asked == []
    assert box.facts(use("search", '{"pattern": ""}')).problem == "An empty pattern finds nothing."
    assert box.facts(use("search", '{"pattern": "crash"}')).problem == "KeyError: 'inside'"
    assert box.facts(use("search", '{"pattern": "a"}')).valid is True
    assert words(ended(box, "search", '{"pattern": ""}')) == "An empty pattern finds nothing."


def test_the_filled_copy_has_the_defaults_and_the_call_keeps_its_own() -> None:
    call = use("search", '{"pattern": "a"}')

    filled = function_tools([search]).filled(call)

    assert json.loads(filled.input) == {"pattern": "a", "limit": 10, "mode": "exact"}
    assert (call.input, filled.id) == ('{"pattern": "a"}', "t1")
    assert function_tools([search]).filled(use("search")) == use("search")
    assert function_tools([search]).filled(use("other")) == use("other")


# ------------------------------------------------------------------------ traits


def test_traits_reach_facts_and_specs() -> None:
    on = Hints(read_only=True, idempotent=True, safe=True, shell=True, clearable=True)
    on |= {"interrupt": "cancel", "max_result_chars": None}
    made = tool(**on)(search)
    box = function_tools([made])

    facts, spec = box.facts(use("search", '{"pattern": "a"}')), box.specs()[0]

    assert CallFacts(safe=True, interrupt=Interrupt.CANCEL, idempotent=True, shell=True) == facts
    assert (spec.read_only, spec.clearable, spec.max_result_chars) == (True, True, None)


def test_without_traits_a_tool_is_unsafe_and_waits() -> None:
    assert CallFacts() == function_tools([search]).facts(use("search", '{"pattern": "a"}'))


@pytest.mark.parametrize(
    ("predicate", "safe"),
    [
        (lambda arguments: arguments["limit"] < 5, False),
        (lambda arguments: arguments["limit"] == 10, True),
        (lambda arguments: arguments["nothing"], False),
        (lambda arguments: "yes", False),
        (lambda arguments: None, False),
    ],
)
def test_only_a_predicate_that_says_true_makes_a_call_safe(predicate: Any, safe: bool) -> None:
    box = function_tools([tool(safe=predicate)(search)])

    assert box.facts(use("search", '{"pattern": "a"}')).safe is safe


def test_an_unknown_hint_is_refused() -> None:
    with pytest.raises(TypeError, match="readonly"):
        tool(readonly=True)  # type: ignore[call-overload]


# ----------------------------------------------------------------------- results


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (None, ()),
        ("", ()),
        ("words", (Text("words"),)),
        ({"a": [1]}, (Text('{"a": [1]}'),)),
        ([], (Text("[]"),)),
        (["a", "b"], (Text('["a", "b"]'),)),
        ({1, 2} - {2}, (Text("[1]"),)),
        (float("inf"), (Text('"Infinity"'),)),
        ("half \ud83d", (Text("half \ufffd"),)),
        ("\ud83d\ude00", (Text("\U0001f600"),)),
        ([{"type": "text", "text": "a"}, Text("b")], (Text("a"), Text("b"))),
        (
            {"type": "image", "source": {"type": "url", "url": "u"}},
            (Media("image", '{"type": "image", "source": {"type": "url", "url": "u"}}'),),
        ),
    ],
)
def test_what_a_tool_returns_becomes_blocks(value: object, content: tuple[object, ...]) -> None:
    def give() -> object:
        return value

    assert ended(function_tools([give]), "give") == ToolEnded(7, content)  # type: ignore[arg-type]


def test_what_a_tool_raises_is_a_failed_call() -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def broken(kind: str) -> str:
        match kind:
            case "plain":
                raise LookupError("not here")
            case "chosen":
                raise ToolFailed([{"type": "text", "text": "as I say"}])
            case "silent":
                raise ToolFailed("")
            case "exit":
                raise SystemExit(3)
        raise Hostile

    box = function_tools([broken])
    kinds = ("plain", "chosen", "silent", "exit", "odd")
    told = {kind: ended(box, "broken", json.dumps({"kind": kind})) for kind in kinds}

    assert {CallStatus.FAILED} == {end.status for end in told.values()}
    assert words(told["plain"]) == "LookupError: not here"
    assert words(told["chosen"]) == "as I say"
    assert words(told["silent"]) == "The tool failed without a word."
    assert words(told["exit"]) == "SystemExit: 3"
    assert "Hostile" in words(told["odd"])


def test_a_reply_carries_more_than_words() -> None:
    message, stop = user_text("more", Origin.ATTACHMENT), HookStop("budget", "enough")

    def rich(bad: bool) -> Reply:
        return Reply(content="x", is_error=bad, messages=(message,), stop=stop)

    box = function_tools([rich])

    assert ToolEnded(7, (Text("x"),), stop=stop, messages=(message,)) == ended(box, "rich", '{"bad": false}')
    assert CallStatus.FAILED == ended(box, "rich", '{"bad": true}').status


# ------------------------------------------------------------------- concurrency


def test_plain_functions_run_beside_each_other_and_leave_the_loop_alone() -> None:
    meet = threading.Barrier(12, timeout=20)

    def wait() -> str:
        meet.wait()
        return str(threading.get_ident())

    async def all_at_once() -> list[ToolEnded]:
        box = function_tools([wait])
        orders = [RunTool(number, use("wait"), "{}") for number in range(12)]
        return await asyncio.gather(*(box.run(order, print) for order in orders))

    ends = ran(all_at_once())

    assert len({words(end) for end in ends}) == 12
    assert list(range(12)) == [end.effect_id for end in ends]


def test_async_functions_run_on_the_loop_and_keep_context_variables() -> None:
    name = contextvars.ContextVar("name", default="none")

    async def on_loop() -> str:
        return f"{threading.current_thread() is threading.main_thread()} {name.get()}"

    def in_thread() -> str:
        return f"{threading.current_thread() is threading.main_thread()} {name.get()}"

    async def both() -> list[str]:
        name.set("set")
        box = function_tools([on_loop, in_thread])
        return [words(await box.run(RunTool(1, use(each), "{}"), print)) for each in ("on_loop", "in_thread")]

    assert ["True set", "False set"] == ran(both())


def test_partials_and_objects_can_be_tools() -> None:
    class Adder:
        def __init__(self, base: int) -> None:
            self.base = base

        async def __call__(self, x: int) -> int:
            return self.base + x

        def method(self, x: int) -> int:
            return self.base * x

    async def add(x: int, y: int) -> int:
        return x + y

    made = (
        tool(name="object")(Adder(10)),
        tool(name="method")(Adder(10).method),
        tool(name="partial")(functools.partial(add, y=5)),
    )
    box = function_tools(made)

    assert ["11", "10", "6"] == [words(ended(box, each.name, '{"x": 1}')) for each in made]


def test_cancelling_from_outside_passes_and_from_inside_ends_the_call() -> None:
    async def stuck(inside: bool) -> None:
        if inside:
            raise asyncio.CancelledError
        await asyncio.Event().wait()

    async def both() -> tuple[ToolEnded, bool]:
        box = function_tools([stuck])
        own = await box.run(RunTool(1, use("stuck", '{"inside": true}'), '{"inside": true}'), print)
        task = asyncio.create_task(
            box.run(RunTool(2, use("stuck", '{"inside": false}'), '{"inside": false}'), print)
        )
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return own, task.cancelled()

    own, passed = ran(both())

    assert (CallStatus.CANCELLED, True) == (own.status, passed)


def test_closing_closes_every_tool_and_tells_what_went_wrong() -> None:
    closed: list[str] = []

    def closing(name: str, problem: Exception | None = None) -> Tool:
        async def close() -> None:
            closed.append(name)
            if problem is not None:
                raise problem

        async def call(arguments: object, context: CallContext) -> None: ...

        return Tool(name=name, call=call, close=close)

    box = function_tools([closing("a"), closing("b", OSError("stuck")), closing("c")])

    with pytest.raises(ExceptionGroup, match="could not be closed"):
        ran(box.close())
    assert closed == ["c", "b", "a"]
