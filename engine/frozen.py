"""
Frozen classes that are cheap to define, to build and to copy.

``frozen`` is ``attrs.frozen`` with one ``__repr__``, ``__eq__`` and ``__hash__``
for all classes in place of three generated ones each: that is a third of the
time in which the engine is imported.  ``evolve`` is ``attrs.evolve`` without
the way through ``__init__``, for classes without slots: a third of its time.
The type checker sees the originals and knows every field by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from attrs import evolve, frozen
else:

    _new = object.__new__

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
        """Decorate a class as ``attrs.frozen`` does; ``slots`` for what is kept in great numbers."""

        def decorate(cls):
            cls.__repr__, cls.__eq__, cls.__hash__ = _repr, _eq, _hash
            return attrs.frozen(cls, slots=slots, weakref_slot=weakref_slot, repr=False, eq=False)

        return decorate if cls is None else decorate(cls)

    def evolve(instance, **changes):
        """Return a copy of *instance* (a frozen class without slots) with *changes*."""
        copy = _new(instance.__class__)
        fields = copy.__dict__
        fields |= instance.__dict__
        fields |= changes
        return copy


__all__ = ["evolve", "frozen"]
