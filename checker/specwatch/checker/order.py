"""What is known of the order of a behaviour's events: lanes, and what must come before.

Each emitter is a *lane*: its events stand in their own order. ``total`` is one lane; under ``emitter`` nothing is known
between lanes. Under ``time`` an event *needs* events of other lanes to come first, for two reasons:

* a cause: ``after`` names them, a vector clock counts them, they began the span that is this event's parent, or a
  :class:`Cause` of the binding says so (each pickup of a task comes after the first publish of it);
* time: they ended more than ``skew`` before this one began. Nothing else follows from two clocks.

An emitter's order and causes win: a time edge that closes a cycle with them is dropped and counted, and the lanes on
both its ends have clocks that are not within ``skew``. So has a lane whose own times go back by more than that.

A *cut* says how many events of each lane have happened. What is missing from a behaviour happened somewhere between
two cuts (:class:`Window`).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import msgspec

from .behaviour import Behaviour, Event, Loss

Cut = tuple[int, ...]
Need = tuple[int, int]
"""A lane, and how many of its events must come first."""

Needs = list[list[dict[int, int]]]
"""By lane and event: how many events of other lanes must come first."""

_NO_NEEDS: tuple[Need, ...] = ()


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Every ``then`` event comes after the first ``first`` event with the same values of the parameters ``on``."""

    first: str
    then: tuple[str, ...]
    on: tuple[str, ...]
    begins: bool = False
    """Whether ``first`` begins a life: where the log has one, none was before all that the log has."""


@dataclass(frozen=True, slots=True)
class Window:
    """Where what was lost may have happened: at the cuts from ``low`` to ``high``, in each lane."""

    loss: Loss
    low: Cut
    high: Cut

    def is_open(self, cut: Cut) -> bool:
        return all(low <= here <= high for low, here, high in zip(self.low, cut, self.high, strict=True))

    def is_over(self, cut: Cut) -> bool:
        return any(here > high for here, high in zip(cut, self.high, strict=True))


@dataclass(slots=True)
class Ordered:
    """A behaviour's events by lane. ``needs[lane][index]`` are those beyond what the lane's earlier events need."""

    names: list[str]
    lanes: list[list[Event]]
    needs: list[list[tuple[Need, ...]]]
    places: list[list[int]]
    """Where each event stands in the behaviour's list."""
    dropped: int = 0
    """How many time edges went against an emitter's order or a cause."""
    suspects: frozenset[str] = frozenset()
    """The lanes on the ends of these."""
    circular: bool = False
    """Whether causes and emitters' orders go round in a circle, so that some of it must be wrong."""
    windows: list[Window] = field(default_factory=list)

    def is_ready(self, cut: Cut, lane: int) -> bool:
        """Whether the next event of a lane may come now; False at its end."""
        index = cut[lane]
        own = self.needs[lane]
        return index < len(own) and all(cut[other] >= count for other, count in own[index])

    def firsts(self) -> list[Event]:
        """The events of which any may be the first."""
        begun = (0,) * len(self.lanes)
        return [events[0] for lane, events in enumerate(self.lanes) if self.is_ready(begun, lane)]

    def is_chain(self) -> bool:
        """Whether only one order of the events is possible, which then is that of :meth:`chain`."""
        cut = [0] * len(self.lanes)
        for _ in range(sum(map(len, self.lanes))):
            ready = [lane for lane in range(len(self.lanes)) if self.is_ready(tuple(cut), lane)]
            if len(ready) != 1:
                return False
            cut[ready[0]] += 1
        return True

    def chain(self) -> list[int]:
        """The first order that is possible, lane by lane, as places in the behaviour's list."""
        cut = [0] * len(self.lanes)
        found: list[int] = []
        for _ in range(sum(map(len, self.lanes))):
            lane = next(lane for lane in range(len(self.lanes)) if self.is_ready(tuple(cut), lane))
            found.append(self.places[lane][cut[lane]])
            cut[lane] += 1
        return found


def lane_name(event: Event) -> str:
    """The emitter; the file where none is named."""
    if event.emitter is not None:
        return event.emitter
    return event.source.file if event.source is not None else ""


def ordered(behaviour: Behaviour, causes: Iterable[Cause] = (), distrusted: Collection[str] = ()) -> Ordered:
    """Finds the lanes and needs of a behaviour.

    :param causes: edges that the binding knows of; for behaviours of which the beginning is known.
    :param distrusted: lanes whose times tell nothing.
    """
    events = behaviour.events
    if behaviour.order == "total":
        size = len(events)
        one = Ordered([""], [events], [[_NO_NEEDS] * size], [list(range(size))])
        for loss in behaviour.losses:
            if loss.reason != "unparsed":
                one.windows.append(Window(loss, (loss.after + 1,), (size if loss.before is None else loss.before,)))
        return one
    by_name: dict[str, list[int]] = defaultdict(list)
    for place, event in enumerate(events):
        by_name[lane_name(event)].append(place)
    # In the order of their names: the answer does not depend on the order of arrival.
    names = sorted(by_name)
    found = Ordered(
        names,
        [[events[place] for place in by_name[name]] for name in names],
        [[_NO_NEEDS] * len(by_name[name]) for name in names],
        [by_name[name] for name in names],
    )
    if behaviour.order == "time":
        _Timing(found, behaviour, tuple(causes), distrusted).run()
    _find_windows(found, behaviour)
    return found


class _Timing:
    """The needs of a behaviour under order ``time``."""

    def __init__(
        self, found: Ordered, behaviour: Behaviour, causes: tuple[Cause, ...], distrusted: Collection[str]
    ) -> None:
        self.found = found
        self.lanes = found.lanes
        self.skew = behaviour.skew
        self.losses = behaviour.losses
        self.causes = causes
        self.distrusted = distrusted
        self.trusted = [name not in distrusted for name in found.names]
        self.begins = [[-math.inf if event.time is None else event.time for event in lane] for lane in self.lanes]
        self.ends = [[_end(event) for event in lane] for lane in self.lanes]
        self.caused: list[list[dict[int, int]]] = [[{} for _ in lane] for lane in self.lanes]
        """By lane and event: how many events of other lanes come before it as causes."""

    def run(self) -> None:
        if len(self.lanes) == 1:
            return
        self.find_causes()
        self.refuse_circles()
        both = self.with_times()
        if not self.is_acyclic(both):
            both = self.without_cycles(both)
        for lane, needs in enumerate(both):
            before: dict[int, int] = {}
            for index, own in enumerate(needs):
                more = {other: count for other, count in own.items() if count > before.get(other, 0)}
                before |= more
                self.found.needs[lane][index] = tuple(sorted(more.items()))

    # --- causes -------------------------------------------------------------------------------------------------------

    def find_causes(self) -> None:
        lanes = {name: lane for lane, name in enumerate(self.found.names)}
        numbers = [_numbered(event.seq for event in lane) for lane in self.lanes]
        counted = [
            _numbered((event.clock or {}).get(name) for event in lane)
            for name, lane in zip(lanes, self.lanes, strict=True)
        ]
        spans = self.spans()
        for lane, events in enumerate(self.lanes):
            for index, event in enumerate(events):
                for emitter, seq in event.after:
                    if emitter in lanes:
                        self.cause(lane, index, lanes[emitter], _up_to(numbers[lanes[emitter]], seq))
                for emitter, count in (event.clock or {}).items():
                    if emitter in lanes:
                        self.cause(lane, index, lanes[emitter], _up_to(counted[lanes[emitter]], count))
                parent = _span(event, "parent_span_id")
                if parent is not None and parent in spans:
                    other, first = spans[parent]
                    self.cause(lane, index, other, first + 1)
        for cause in self.causes:
            self.follow(cause)

    def cause(self, lane: int, index: int, other: int, count: int) -> None:
        """``count`` events of another lane come before an event."""
        own = self.caused[lane][index]
        if other != lane and count > own.get(other, 0):
            own[other] = count

    def spans(self) -> dict[tuple[str, str], tuple[int, int]]:
        """The first event of each span, where one lane has them all."""
        found: dict[tuple[str, str], tuple[int, int]] = {}
        several: set[tuple[str, str]] = set()
        for lane, events in enumerate(self.lanes):
            for index, event in enumerate(events):
                span = _span(event, "span_id")
                if span is not None and found.setdefault(span, (lane, index))[0] != lane:
                    several.add(span)
        return {span: place for span, place in found.items() if span not in several}

    def follow(self, cause: Cause) -> None:
        firsts: dict[bytes, tuple[int, int]] = {}
        unsure: set[bytes] = set()
        begun = self.begun(cause) if cause.begins and self.losses else {}
        for lane, events in enumerate(self.lanes):
            for index, event in enumerate(events):
                if event.action == cause.first and (values := _values(event, cause.on)) is not None:
                    if firsts.setdefault(values, (lane, index))[0] != lane:
                        unsure.add(values)  # which of two lanes was first is not known
                    if self.may_lack(lane, index, begun.get(values, -math.inf)):
                        unsure.add(values)  # the first of all may be what is missing
        for lane, events in enumerate(self.lanes):
            for index, event in enumerate(events):
                if event.action in cause.then:
                    values = _values(event, cause.on)
                    if values is not None and values in firsts and values not in unsure:
                        other, first = firsts[values]
                        self.cause(lane, index, other, first + 1)

    def begun(self, cause: Cause) -> dict[bytes, float]:
        """By the values of ``on``: the time of the earliest event that has them."""
        found: dict[bytes, float] = {}
        for begins, events in zip(self.begins, self.lanes, strict=True):
            for begin, event in zip(begins, events, strict=True):
                values = _values(event, cause.on)
                if values is not None:
                    found[values] = min(begin, found.get(values, math.inf))
        return found

    def may_lack(self, lane: int, index: int, begun: float) -> bool:
        """Whether another event of its emitter may be missing before an event, and not surely before all was begun."""
        name = self.found.names[lane]
        return any(
            loss.emitter in (None, name)
            and loss.after < self.found.places[lane][index]
            and (loss.end is None or loss.emitter in self.distrusted or loss.end + self.skew >= begun)
            for loss in self.losses
        )

    # --- times --------------------------------------------------------------------------------------------------------

    def with_times(self) -> Needs:
        """The causes, and what times add to them."""
        # The least end of an event and all after it in its lane: it never falls, and so can be searched.
        least = [_least_from(ends) for ends in self.ends]
        found = [[dict(own) for own in lane] for lane in self.caused]
        for lane, begins in enumerate(self.begins):
            if not self.trusted[lane]:
                continue
            backward = self.backward(lane)
            if backward:
                self.distrust(lane, dropped=backward)
            for index, begin in enumerate(begins):
                for other in range(len(self.lanes)):
                    if other != lane and self.trusted[other]:
                        count = bisect_left(least[other], begin - self.skew)
                        if count > found[lane][index].get(other, 0):
                            found[lane][index][other] = count
        return found

    def distrust(self, *lanes: int, dropped: int = 1) -> None:
        self.found.dropped += dropped
        self.found.suspects |= {self.found.names[lane] for lane in lanes}

    def backward(self, lane: int) -> int:
        """How many events of a lane were over, by its own clock, more than the skew before one that came earlier began:
        no clock does that which is never further from another than the skew.
        """
        latest = accumulate(self.begins[lane], max)
        return sum(end + self.skew < begin for end, begin in zip(self.ends[lane], latest, strict=True))

    def refuse_circles(self) -> None:
        """A cause that closes a cycle is no cause: it is taken out."""
        needs = self.caused
        cut = [0] * len(self.lanes)
        while True:
            self.go_on(cut, needs)
            stuck = next((lane for lane, own in enumerate(needs) if cut[lane] < len(own)), None)
            if stuck is None:
                return
            self.found.circular = True
            own = needs[stuck][cut[stuck]]
            for other in [other for other, count in own.items() if cut[other] < count]:
                del own[other]

    def is_acyclic(self, needs: Needs) -> bool:
        cut = [0] * len(self.lanes)
        self.go_on(cut, needs)
        return all(done == len(lane) for done, lane in zip(cut, self.lanes, strict=True))

    @staticmethod
    def go_on(cut: list[int], needs: Needs) -> None:
        """Moves a cut on as far as it goes."""
        moved = True
        while moved:
            moved = False
            for lane, own in enumerate(needs):
                while cut[lane] < len(own) and all(cut[other] >= count for other, count in own[cut[lane]].items()):
                    cut[lane] += 1
                    moved = True

    def without_cycles(self, needs: Needs) -> Needs:
        """Without the time edges that are part of a cycle; of their lane, an earlier event may surely come before."""
        circle = self.circles(needs)
        found = [[dict(own) for own in lane] for lane in self.caused]
        for lane, own_needs in enumerate(needs):
            for index, own in enumerate(own_needs):
                here, limit = circle[lane][index], self.begins[lane][index] - self.skew
                for other, count in own.items():
                    caused = found[lane][index].get(other, 0)
                    if count > caused and circle[other][count - 1] == here:
                        self.distrust(lane, other)
                        ends = self.ends[other]
                        while count > caused and (circle[other][count - 1] == here or ends[count - 1] >= limit):
                            count -= 1
                    if count > caused:
                        found[lane][index][other] = count
        return found

    def circles(self, needs: Needs) -> list[list[int]]:
        """By lane and event: a number that is common to those that come before each other (Tarjan's algorithm)."""
        circle = [[-1] * len(lane) for lane in self.lanes]
        low: dict[tuple[int, int], int] = {}
        for first in ((lane, index) for lane, events in enumerate(self.lanes) for index in range(len(events))):
            if first in low:
                continue
            path: list[tuple[int, int]] = []
            low[first] = len(low)
            path.append(first)
            work = [(first, low[first], self.needed(first, needs))]
            while work:
                node, number, before = work[-1]
                other = next(before, None)
                if other is None:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[node])
                    if low[node] == number:
                        while circle[node[0]][node[1]] < 0:
                            lane, index = path.pop()
                            circle[lane][index] = number
                elif other not in low:
                    low[other] = len(low)
                    path.append(other)
                    work.append((other, low[other], self.needed(other, needs)))
                elif circle[other[0]][other[1]] < 0:
                    low[node] = min(low[node], low[other])
        return circle

    @staticmethod
    def needed(event: tuple[int, int], needs: Needs) -> Iterator[tuple[int, int]]:
        """The last events that must come before one."""
        lane, index = event
        if index:
            yield lane, index - 1
        for other, count in needs[lane][index].items():
            yield other, count - 1


def _find_windows(found: Ordered, behaviour: Behaviour) -> None:
    for loss in behaviour.losses:
        if loss.reason == "unparsed":
            continue
        low, high = [], []
        for name, events, places in zip(found.names, found.lanes, found.places, strict=True):
            if name == loss.emitter:
                low.append(bisect_right(places, loss.after))
                high.append(len(places) if loss.before is None else bisect_left(places, loss.before))
                continue
            first, last = 0, len(events)
            if behaviour.order == "time":
                if loss.begin is not None:
                    limit = loss.begin - behaviour.skew
                    first = next((i + 1 for i in range(last - 1, -1, -1) if _end(events[i]) < limit), 0)
                if loss.end is not None:
                    limit = loss.end + behaviour.skew
                    last = next(
                        (i for i, event in enumerate(events) if event.time is not None and event.time > limit), last
                    )
            low.append(min(first, last))
            high.append(last)
        found.windows.append(Window(loss, tuple(low), tuple(high)))


def _end(event: Event) -> float:
    if event.until is not None:
        return event.until
    return math.inf if event.time is None else event.time


def _least_from(ends: Sequence[float]) -> list[float]:
    least = list(ends)
    for index in range(len(least) - 2, -1, -1):
        least[index] = min(least[index], least[index + 1])
    return least


def _numbered(numbers: Iterable[int | None]) -> tuple[list[int], list[int]] | None:
    """The numbers of a lane's events and their places, of those that have one; None where lives repeat numbers."""
    found: list[int] = []
    places: list[int] = []
    for place, number in enumerate(numbers):
        if number is not None:
            if found and number < found[-1]:
                return None
            found.append(number)
            places.append(place)
    return found, places


def _up_to(numbered: tuple[list[int], list[int]] | None, number: int) -> int:
    """How many events stand up to the last one that is numbered ``number`` or less."""
    if numbered is None:
        return 0
    count = bisect_right(numbered[0], number)
    return numbered[1][count - 1] + 1 if count else 0


def _span(event: Event, name: str) -> tuple[str, str] | None:
    extra = event.extra or {}
    span = extra.get(name)
    return (str(extra.get("trace_id", "")), span) if isinstance(span, str) and span else None


def _values(event: Event, names: Sequence[str]) -> bytes | None:
    """The values of some parameters; None where one of them is not known."""
    if any(name not in event.params for name in names):
        return None
    return msgspec.json.encode([event.params[name] for name in names], order="deterministic")


__all__ = ["Cause", "Cut", "Ordered", "Window", "lane_name", "ordered"]
