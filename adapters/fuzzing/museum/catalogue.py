"""Every exhibit, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from stepfold.adapters.fuzzing.museum import context, ladders, people, work
from stepfold.adapters.fuzzing.museum.planting import Exhibit

EXHIBITS: Final[Mapping[str, Exhibit]] = MappingProxyType(
    {
        exhibit.name: exhibit
        for room in (ladders.EXHIBITS, context.EXHIBITS, work.EXHIBITS, people.EXHIBITS)
        for exhibit in room
    }
)
