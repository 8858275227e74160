"""
A copy of a frozen state class with some fields changed.

The classes of ``state`` and ``phases`` are built with ``slots=False``: then a
copy costs a third of ``attrs.evolve``, which goes through ``__init__``.  The
type checker sees ``attrs.evolve`` and knows every field by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attrs import evolve
else:

    def evolve(instance, **changes):
        """Return a copy of *instance* (a frozen class without slots) with *changes*."""
        kind = instance.__class__
        copy = kind.__new__(kind)
        fields = copy.__dict__
        fields.update(instance.__dict__)
        fields.update(changes)
        return copy


__all__ = ["evolve"]
