"""The numbers that emitters give their records: what came twice, what is missing, and which numbers tell nothing.

A record that is several events has one number; these are told apart by their ``part``. What makes no event and has a
number (the lanes of ``mapper``) is missing from no numbering.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import msgspec

from specwatch.checker.behaviour import Event

from .mapper import IGNORED, OPEN, UNMATCHED, UNPARSED
from .reading import Reading

_STAND_INS = (OPEN, IGNORED, UNMATCHED, UNPARSED)
"""Lanes that give way to an event that has their number."""


Life = tuple[str, str | None]
"""An emitter, and its boot where it had several."""


class Unit(NamedTuple):
    """One numbering of records: one life of an emitter, in one run."""

    emitter: str
    boot: str | None
    run: str | None


class Hole(NamedTuple):
    """Numbers that are missing, ``first`` to ``last``: so many ``records``, or parts of one.

    ``place`` is that of the record after it among those of its unit.
    """

    first: int
    last: int
    records: int
    place: int


class Clash(NamedTuple):
    """Numbers that two different records bear, each with the indices of two such."""

    unit: Unit
    pairs: list[tuple[int, int]]


def lane_of(event: Event) -> str:
    """The emitter; the file where none is named."""
    if event.emitter is not None:
        return event.emitter
    return event.source.file if event.source is not None else ""


class Numbering:
    """The numbering of all logs. Events are known by their index in the order of arrival."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.events = reading.events
        self.dropped: set[int] = set()
        """Events that came twice, and were counted as that; and stand-ins that are not needed."""
        self._boots = _boots(self.events)
        self._runs = self._only_runs()
        self._begins_at_one = reading.start == "init"
        self._drop_doubles()
        self.units = self._irregular_units()
        """The numberings in which something is missing, double or out of order, with their events by number, each once.

        The others, nearly all, need no memory.
        """
        self.clashes = self._numbered_twice()

    def life(self, index: int) -> Life:
        """The emitter of an event, and which of its lives."""
        return lane_of(self.events[index]), self._boots.get(index)

    def seq(self, index: int) -> int:
        """The number of an event of a numbering."""
        seq = self.events[index].seq
        assert seq is not None, "a numbering holds only events with a seq"
        return seq

    def holes(self, unit: Unit) -> Iterator[Hole]:
        """What is missing of a numbering, from the lowest number."""
        # Probes begin at 1; a program that begins at 0 has lost nothing either.
        before: tuple[int, int] | None = (0, 0) if self._begins_at_one else None
        for place, index in enumerate(self.units[unit]):
            seq, part = self.seq(index), self.events[index].part
            if before is not None and seq == before[0]:
                if part > before[1] + 1:
                    yield Hole(seq, seq, part - before[1] - 1, place)
            elif before is not None and (records := seq - before[0] - 1 + part):
                yield Hole(before[0] + 1, seq if part else seq - 1, records, place)
            before = seq, part

    def sorted(self, indices: Sequence[int]) -> list[int]:
        """Numbered events by number. Of two with one number the content decides, so that their arrival does not."""
        ordered = sorted(indices, key=self._number)
        if any(self._number(a) == self._number(b) for a, b in pairwise(ordered)):
            ordered.sort(key=lambda index: (self._number(index), content(self.events[index])))
        return ordered

    def _number(self, index: int) -> tuple[int, int]:
        return self.seq(index), self.events[index].part

    def _unit(self, index: int, event: Event) -> Unit:
        emitter = lane_of(event) if event.emitter is None else event.emitter
        boot = self._boots.get(index)
        run = self._runs.get((emitter, boot)) if event.run is None else event.run
        return Unit(emitter, boot, run)

    def _only_runs(self) -> dict[Life, str]:
        """The run of each life that has one alone: what says none is of that too, as the start and stop of a probe."""
        if all(event.run is None for event in self.events):
            return {}
        runs: dict[Life, set[str]] = {}
        for index, event in enumerate(self.events):
            if event.run is not None:
                runs.setdefault(self.life(index), set()).add(event.run)
        return {life: next(iter(own)) for life, own in runs.items() if len(own) == 1}

    def _drop_doubles(self) -> None:
        for places in self.reading.doubles:
            for index in places:
                self.dropped.add(index)
                self.reading.count_duplicate(index)

    def _irregular_units(self) -> dict[Unit, array[int]]:
        latest: dict[Unit, tuple[int, int]] = {}
        irregular: set[Unit] = set()
        unit_of = self._unit
        for index, event in enumerate(self.events):
            seq, part = event.seq, event.part
            if seq is None:
                continue
            unit = unit_of(index, event)
            before = latest.get(unit)
            if before is None:
                regular = part == 0 and (seq <= 1 or not self._begins_at_one)
            elif part == 0:
                regular = seq == before[0] + 1
            else:
                regular = (seq, part - 1) == before
            if not regular:
                irregular.add(unit)
            latest[unit] = seq, part
        units: dict[Unit, array[int]] = {}
        if irregular:
            for index, event in enumerate(self.events):
                if event.seq is not None and (unit := unit_of(index, event)) in irregular:
                    units.setdefault(unit, array("q")).append(index)
        return units

    def _numbered_twice(self) -> list[Clash]:
        """Sort every numbering, drop records that came twice, and name the numbers that two different records bear."""
        found: list[Clash] = []
        for unit, indices in self.units.items():
            kept = array("q")
            pairs: list[tuple[int, int]] = []
            for _, several in groupby(sorted(indices, key=self._number), key=self._number):
                same = self._once(list(several))
                kept.extend(same)
                if len(same) > 1:
                    pairs.append((same[0], same[1]))
            self.units[unit] = kept
            if pairs:
                found.append(Clash(unit, pairs))
        return found

    def _once(self, indices: list[int]) -> list[int]:
        """Of events with one number, one of each content, in an order that does not depend on their arrival."""
        if len(indices) == 1:
            return indices
        contents: dict[bytes, int] = {}
        for index in indices:
            if contents.setdefault(content(self.events[index]), index) != index:
                self.dropped.add(index)
                self.reading.count_duplicate(index)
        once = [contents[said] for said in sorted(contents)]
        own = [index for index in once if self.events[index].lane not in _STAND_INS]
        if own and len(own) < len(once):
            self.dropped.update(set(once) - set(own))
            return own
        return once


def _boots(events: list[Event]) -> dict[int, str]:
    """Which life of its emitter an event belongs to, where an emitter had several.

    A boot id may stand only on the record of the start: what comes after it in the log is of the same life.
    """
    lives: dict[str | None, set[str]] = {}
    for event in events:
        if event.boot is not None:
            lives.setdefault(event.emitter, set()).add(event.boot)
    several = {emitter for emitter, boots in lives.items() if len(boots) > 1}
    boots: dict[int, str] = {}
    current: dict[str | None, str] = {}
    for index, event in enumerate(events if several else ()):
        if event.emitter in several:
            if event.boot is not None:
                current[event.emitter] = event.boot
            if event.emitter in current:
                boots[index] = current[event.emitter]
    return boots


def content(event: Event) -> bytes:
    """What an event says, without where it was read."""
    return msgspec.json.encode(msgspec.structs.replace(event, source=None), order="deterministic")
