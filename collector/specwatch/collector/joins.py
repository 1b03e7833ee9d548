"""Two records that are one event, its start and its end: which belong together.

An end belongs to the latest start before it, in its log or by their numbers, that agrees in the values that they are
joined on. What one log leaves over is looked for in the others, so that a rotation in between does no harm.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import msgspec

from specwatch.checker.behaviour import Event

from .decode.lines import Broken
from .mapper import Half, Mapper


class Placed(msgspec.Struct, frozen=True):
    """A half, and the index of its event in the order of arrival; ``log`` is the number of its log."""

    index: int
    log: int
    half: Half


class Unfit(NamedTuple):
    """An end whose joined event does not fit the rule."""

    end: Placed
    broken: Broken


class Joins:
    """Halves that wait for their other half. What is joined replaces the start among ``events``."""

    def __init__(self, events: list[Event], mapper: Mapper) -> None:
        self._events = events
        self._mapper = mapper
        self._starts: dict[tuple[str, bytes], list[Placed]] = {}
        self._ends: dict[tuple[str, bytes], list[Placed]] = {}

    def add(self, placed: Placed) -> Unfit | None:
        """Join a half with the other, if that is there."""
        key = (placed.half.rule.name, placed.half.on)
        others = self._starts if placed.half.is_end else self._ends
        waiting = others.get(key, [])
        for number in range(len(waiting) - 1, -1, -1):
            start, end = (waiting[number], placed) if placed.half.is_end else (placed, waiting[number])
            if _follows(start, end):
                del waiting[number]
                if not waiting:
                    del others[key]
                return self._join(start, end)
        own = self._ends if placed.half.is_end else self._starts
        own.setdefault(key, []).append(placed)
        return None

    def left(self) -> list[Placed]:
        """The halves that still wait, in the order of arrival."""
        waiting = chain(*self._starts.values(), *self._ends.values())
        return sorted(waiting, key=lambda placed: placed.index)

    def _join(self, start: Placed, end: Placed) -> Unfit | None:
        joined = self._mapper.joined(start.half, end.half)
        if isinstance(joined, Event):
            self._events[start.index] = joined
            return None
        # The start is used up: what it began has ended, and is not in flight.
        self._events[start.index].lane = end.half.event.lane
        return Unfit(end, joined)


def _follows(start: Placed, end: Placed) -> bool:
    one, other = start.half.event, end.half.event
    if one.seq is not None and other.seq is not None and (one.emitter, one.boot) == (other.emitter, other.boot):
        return one.seq < other.seq
    if start.log == end.log:
        return start.index < end.index
    return one.time is None or other.time is None or one.time <= other.time
