"""In which order events are handed over.

Under ``total`` that is the order of the lines. Under ``emitter`` and ``time`` it says nothing more than each emitter's
own order, and does not depend on how the lines arrived. What times tell beyond that is the checker's to say.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise

from specwatch.checker.behaviour import Order

from .errors import at
from .mapper import OPEN
from .numbering import Numbering


def ordered(numbering: Numbering, order: Order) -> dict[str | None, Sequence[int]]:
    """The events of each run, sorted by run; the one without a run comes first. Without events, that one is there.

    Events are known by their index in the order of arrival. What has begun and not ended is in its place too.
    Raises ``CollectorError`` where an event has no place in the order.
    """
    events, dropped = numbering.events, numbering.dropped
    run = events[0].run if events else None
    if events and order == "total" and not dropped and all(e.lane is None and e.run == run for e in events):
        return {run: range(len(events))}
    runs: dict[str | None, array[int]] = {}
    for index, event in enumerate(events):
        if event.lane in (None, OPEN) and index not in dropped:
            indices = runs.get(event.run)
            if indices is None:
                indices = runs[event.run] = array("q")
            indices.append(index)
    if not runs:
        runs[None] = array("q")
    arranged = _Arranged(numbering)
    return {run: arranged.by(order, runs[run]) for run in sorted(runs, key=lambda run: run or "")}


class _Arranged:
    def __init__(self, numbering: Numbering) -> None:
        self.numbering = numbering
        self.events = numbering.events

    def by(self, order: Order, indices: Sequence[int]) -> Sequence[int]:
        if order == "total":
            return indices
        return self.by_emitter(indices) if order == "emitter" else self.by_time(indices)

    def by_emitter(self, indices: Sequence[int]) -> list[int]:
        for index in indices:
            if self.events[index].emitter is None:
                raise at(
                    self.events[index].source,
                    "this event names no emitter, and order = emitter needs one",
                    'say --order total, or name the emitter in the binding: emitter = "$hostname/$pid"',
                )
        return [index for _, own in sorted(self.lanes(indices).items()) for index in own]

    def by_time(self, indices: Sequence[int]) -> list[int]:
        """By time, and never against an emitter's own order: an event is not earlier than the one before it."""
        for index in indices:
            if self.time(index) is None:
                raise at(
                    self.events[index].source,
                    "this event has no time, and order = time needs one",
                    "say --order total or --order emitter",
                )
        found: list[tuple[int, int]] = []
        for _, own in sorted(self.lanes(indices).items()):
            found += zip(self.late(own), own, strict=True)
        # The sort is stable: of equal times the emitters' names decide.
        found.sort(key=lambda pair: pair[0])
        return [index for _, index in found]

    def lanes(self, indices: Sequence[int]) -> dict[str, list[int]]:
        """Each emitter's events in its own order."""
        lanes: dict[str, dict[str | None, list[int]]] = {}
        for index in indices:
            emitter, boot = self.numbering.life(index)
            lanes.setdefault(emitter, {}).setdefault(boot, []).append(index)
        return {emitter: self.lives(lives) for emitter, lives in lanes.items()}

    def lives(self, lives: dict[str | None, list[int]]) -> list[int]:
        """One life after the other: by the time of their first events, where all have one."""
        own = [(boot or "", self.own_order(life)) for boot, life in lives.items()]
        if len(own) > 1:
            begins = [min((time for i in life if (time := self.time(i)) is not None), default=None) for _, life in own]
            known = [begin for begin in begins if begin is not None]
            if len(known) == len(own):
                own = [life for _, life in sorted(zip(known, own, strict=True))]
        return [index for _, life in own for index in life]

    def own_order(self, indices: list[int]) -> list[int]:
        """A life's events by seq where all have one; else as the lines stand, its logs one after the other or merged by
        time.
        """
        numbered = [index for index in indices if self.events[index].seq is not None]
        if len(numbered) == len(indices):
            return self.numbering.sorted(indices)
        indices = self.as_logged(indices)
        self.refuse_disorder(indices)
        return indices

    def as_logged(self, indices: list[int]) -> list[int]:
        if any(self.time(index) is None for index in indices):
            return indices
        logs: dict[str, list[int]] = {}
        for index in indices:
            source = self.events[index].source
            logs.setdefault(source.file if source else "", []).append(index)
        found = [pair for own in logs.values() for pair in zip(self.late(own), own, strict=True)]
        found.sort(key=lambda pair: pair[0])
        return [index for _, index in found]

    def late(self, indices: list[int]) -> list[int]:
        """Times that never go back: each event's own, or that of one before it, if that is later."""
        times: list[int] = []
        for index in indices:
            time = self.time(index) or 0
            times.append(max(time, times[-1]) if times else time)
        return times

    def time(self, index: int) -> int | None:
        event = self.events[index]
        return event.until if event.time is None else event.time

    def refuse_disorder(self, indices: list[int]) -> None:
        """Where some of an emitter's events have a number and stand out of line order, the others have no place."""
        numbered = [index for index in indices if self.events[index].seq is not None]
        if all(self.numbering.seq(a) <= self.numbering.seq(b) for a, b in pairwise(numbered)):
            return
        index = next(index for index in indices if self.events[index].seq is None)
        raise at(
            self.events[index].source,
            "this event has no seq, and others of its emitter have theirs out of line order: its place is not known",
            "number every event of an emitter, or none; or say --order total",
        )
