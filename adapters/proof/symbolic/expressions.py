"""
The expressions of ``specs/machine.toml``: read once, evaluated over plain values or over symbols.

and, or, not, comparisons, ``in ('a', 'b')``, + - *, ``a if b else c``,
``max(a, b)``, ``ceil(a, b)`` for a / b rounded up, ``on(name)`` where a value
may be off, whole numbers, true, false and 'names'.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol, TypeAlias

import attrs

Thunk: TypeAlias = Callable[[], Any]
Lookup: TypeAlias = Callable[[str], Any]
Closed: TypeAlias = Callable[[Lookup], Any]
COMPARISONS: Final[Mapping[type[ast.cmpop], str]] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
SUMS: Final[Mapping[type[ast.operator], str]] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
FUNCTIONS: Final = {"max": 2, "ceil": 2}


class Algebra(Protocol):
    """What values are: the parts of an expression come as thunks where Python would leave one out."""

    def word(self, text: str) -> Any:
        """Return the name *text* of an enum."""

    def number(self, value: int) -> Any:
        """Return a whole number."""

    def truth(self, value: bool) -> Any:
        """Return true or false."""

    def every(self, parts: list[Thunk]) -> Any:
        """Return whether all *parts* hold."""

    def some(self, parts: list[Thunk]) -> Any:
        """Return whether one of *parts* holds."""

    def negated(self, value: Any) -> Any:
        """Return whether *value* does not hold."""

    def choice(self, condition: Any, then: Thunk, other: Thunk) -> Any:
        """Return *then* where *condition* holds, else *other*."""

    def compared(self, sign: str, left: Any, right: Any) -> Any:
        """Return how two values compare."""

    def reckoned(self, sign: str, left: Any, right: Any) -> Any:
        """Return the sum, difference, product, ``max`` or ``ceil`` of two numbers."""

    def on(self, value: Any) -> Any:
        """Return whether a value that may be off is there."""


class ExpressionError(ValueError):
    """The text is no expression of this language; says what is wrong with it."""


@attrs.frozen
class Expression:
    """One expression: its text, the names it reads, and the names that it asks for with ``on``."""

    text: str
    tree: ast.expr
    names: frozenset[str]
    asked: frozenset[str]

    def close(self, algebra: Algebra) -> Closed:
        """Return the function that evaluates this over *algebra*, given what each name stands for."""
        return _closed(self.tree, algebra)


def read_expression(text: str) -> Expression:
    """Return *text* as an expression; raises ``ExpressionError``."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"{text!r} is no expression") from error
    names, asked = set[str](), set[str]()
    for kind, name in _checked(tree):
        (asked if kind == "on" else names).add(name)
    return Expression(text, tree, frozenset(names), frozenset(asked))


def _checked(node: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield ("name", dotted) and ("on", dotted) for all names; raise for what is not in the language."""
    match node:
        case ast.Constant(value=bool() | int() | str()):
            return
        case ast.Name() | ast.Attribute():
            name = _dotted(node)
            if name not in ("true", "false"):
                yield "name", name
        case ast.BoolOp(values=parts):
            for part in parts:
                yield from _checked(part)
        case ast.UnaryOp(op=ast.Not(), operand=part):
            yield from _checked(part)
        case ast.IfExp(test=test, body=then, orelse=other):
            for part in (test, then, other):
                yield from _checked(part)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SUMS:
            yield from _checked(left)
            yield from _checked(right)
        case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.Tuple(elts=items)]):
            yield from _checked(left)
            for item in items:
                yield from _checked(item)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
            yield from _checked(left)
            yield from _checked(right)
        case ast.Call(func=ast.Name(id="on"), args=[part], keywords=[]):
            yield "on", _dotted(part)
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]) if FUNCTIONS.get(name) == len(parts):
            for part in parts:
                yield from _checked(part)
        case _:
            raise ExpressionError(f"{ast.unparse(node)!r} is not in the language of expressions")


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{_dotted(value)}.{name}"
    raise ExpressionError(f"{ast.unparse(node)!r} is no name")


def _closed(node: ast.expr, algebra: Algebra) -> Closed:
    match node:
        case ast.Constant(value=bool() as truth):
            value = algebra.truth(truth)
            return lambda look: value
        case ast.Constant(value=int() as number):
            value = algebra.number(number)
            return lambda look: value
        case ast.Constant(value=str() as text):
            value = algebra.word(text)
            return lambda look: value
        case ast.Name(id="true" | "false" as text):
            value = algebra.truth(text == "true")
            return lambda look: value
        case ast.Name() | ast.Attribute():
            name = _dotted(node)
            return lambda look: look(name)
        case ast.Call(func=ast.Name(id="on"), args=[part]):
            name = _dotted(part)
            return lambda look: algebra.on(look(f"on {name}"))
    return _composed(node, algebra)


def _composed(node: ast.expr, algebra: Algebra) -> Closed:
    match node:
        case ast.BoolOp(op=op, values=values):
            parts = [_closed(value, algebra) for value in values]
            joined = algebra.every if isinstance(op, ast.And) else algebra.some
            return lambda look: joined([_later(part, look) for part in parts])
        case ast.UnaryOp(operand=operand):
            inner = _closed(operand, algebra)
            return lambda look: algebra.negated(inner(look))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            asked, then, other = (_closed(part, algebra) for part in (test, body, orelse))
            return lambda look: algebra.choice(asked(look), _later(then, look), _later(other, look))
        case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.Tuple(elts=items)]):
            one, many = _closed(left, algebra), [_closed(item, algebra) for item in items]
            return lambda look: algebra.some([_equal(algebra, one, item, look) for item in many])
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            sign, a, b = COMPARISONS[type(op)], _closed(left, algebra), _closed(right, algebra)
            return lambda look: algebra.compared(sign, a(look), b(look))
        case ast.BinOp(left=left, op=operator, right=right):
            sign, a, b = SUMS[type(operator)], _closed(left, algebra), _closed(right, algebra)
            return lambda look: algebra.reckoned(sign, a(look), b(look))
        case ast.Call(func=ast.Name(id=name), args=[left, right]):
            a, b = _closed(left, algebra), _closed(right, algebra)
            return lambda look: algebra.reckoned(name, a(look), b(look))
    raise AssertionError(f"{ast.unparse(node)!r} was checked before")


def _later(part: Closed, look: Lookup) -> Thunk:
    return lambda: part(look)


def _equal(algebra: Algebra, one: Closed, other: Closed, look: Lookup) -> Thunk:
    return lambda: algebra.compared("==", one(look), other(look))


class Plain:
    """Python's own integers, booleans and texts; what is off is None."""

    def word(self, text: str) -> str:
        """Return *text*."""
        return text

    def number(self, value: int) -> int:
        """Return *value*."""
        return value

    def truth(self, value: bool) -> bool:
        """Return *value*."""
        return value

    def every(self, parts: list[Thunk]) -> bool:
        """Return whether all hold; stops at the first that does not."""
        return all(part() for part in parts)

    def some(self, parts: list[Thunk]) -> bool:
        """Return whether one holds; stops at the first that does."""
        return any(part() for part in parts)

    def negated(self, value: Any) -> bool:
        """Return ``not value``."""
        return not value

    def choice(self, condition: Any, then: Thunk, other: Thunk) -> Any:
        """Return one of the two."""
        return then() if condition else other()

    def compared(self, sign: str, left: Any, right: Any) -> bool:
        """Return the comparison."""
        match sign:
            case "==":
                return bool(left == right)
            case "!=":
                return bool(left != right)
            case "<":
                return bool(left < right)
            case "<=":
                return bool(left <= right)
            case ">":
                return bool(left > right)
        return bool(left >= right)

    def reckoned(self, sign: str, left: Any, right: Any) -> Any:
        """Return the number."""
        match sign:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "max":
                return max(left, right)
        return -(-left // right)

    def on(self, value: Any) -> bool:
        """Return whether *value* is not None."""
        return value is not None
