"""
Frozen classes that are cheap to define, to build and to copy.

``frozen`` is ``attrs.frozen`` with one ``__repr__``, ``__eq__`` and ``__hash__``
for all classes in place of three generated ones each: that is a third of the
time in which the engine is imported.  Nothing refers weakly to a class with
slots unless it asks for that.

A call of a class costs far more than a call of a function, and a frozen class
writes its own fields the long way round.  So what is built in every step has a
function that builds it (``constructor``): written once, at import, as attrs
writes an ``__init__``.  The instance is filled as one of an open class with the
same slots, and its class is set when it is whole.  The type checker sees the
originals and knows every field by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import attrs

P = ParamSpec("P")
T = TypeVar("T")

if TYPE_CHECKING:
    from attrs import evolve, frozen

    def constructor(kind: Callable[P, T]) -> Callable[P, T]:
        """Return a function that does what calling *kind* does."""
        return kind

else:

    def _values(instance):
        return tuple(getattr(instance, name) for name in instance.__match_args__)

    def _repr(self):
        fields = zip(self.__match_args__, _values(self), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in fields)})"

    def _eq(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return self is other or _values(self) == _values(other)

    def _hash(self):
        return hash((type(self).__name__, _values(self)))

    def frozen(cls=None, *, slots=False, weakref_slot=False):
        """Decorate a class as ``attrs.frozen`` does; ``slots`` for what is built or kept in great numbers."""

        def decorate(cls):
            cls.__repr__, cls.__eq__, cls.__hash__ = _repr, _eq, _hash
            return attrs.frozen(cls, slots=slots, weakref_slot=weakref_slot, repr=False, eq=False)

        return decorate if cls is None else decorate(cls)

    _KEPT = ("kept",)  # stands for a field that stays as it is

    def constructor(kind):
        """Return a function for calling *kind*, a frozen class with slots or a named tuple."""
        scope = {"KIND": kind, "KEPT": _KEPT}  # in capitals, as no field is
        if issubclass(kind, tuple):
            names, defaults = ", ".join(kind._fields), tuple(kind._field_defaults.values())
            scope["NEW"] = tuple.__new__
            exec(f"def built({names}): return NEW(KIND, ({names}))", scope)
        else:
            names = kind.__match_args__
            defaults = tuple(
                field.default for field in attrs.fields(kind) if field.default is not attrs.NOTHING
            )
            origin = {"__orig_bases__": kind.__orig_bases__} if hasattr(kind, "__orig_bases__") else {}
            scope["OPENED"] = type(f"Open{kind.__name__}", kind.__bases__, {"__slots__": names, **origin})
            copying = _filling("evolved", ("OLD", *names), names, "OLD.{0} if {0} is KEPT else {0}")
            exec(_filling("built", names, names, "{0}") + copying, scope)
            kind.evolved = scope["evolved"]
            kind.evolved.__defaults__ = (_KEPT,) * len(names)
        scope["built"].__defaults__ = defaults
        return scope["built"]

    def _filling(name, arguments, fields, value):
        """Return the source of a function that fills an open instance and closes it."""
        fills = "".join(f" THIS.{field} = {value.format(field)}\n" for field in fields)
        head = f"def {name}({', '.join(arguments)}):\n THIS = OPENED()\n"
        return f"{head}{fills} THIS.__class__ = KIND\n return THIS\n"

    def evolve(instance, **changes):
        """Return a copy of *instance* (a frozen class) with *changes*."""
        kind = instance.__class__
        if hasattr(kind, "evolved"):
            return kind.evolved(instance, **changes)
        if not hasattr(instance, "__dict__"):
            return attrs.evolve(instance, **changes)
        copy = kind.__new__(kind)
        fields = copy.__dict__
        fields.update(instance.__dict__)
        fields.update(changes)
        return copy


__all__ = ["constructor", "evolve", "frozen"]
