"""What is missing from behaviours, and where: gaps, what could not be read, open tails, and what was in flight.

A place in a behaviour is the index in its list of events. Under ``total`` the list is the order. Under ``emitter`` and
``time`` what is missing has neighbours in its emitter's own order alone.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain, islice

import msgspec

from specwatch.checker.behaviour import Event, Gap, Json, Loss, Order

from .numbering import Clash, Life, Numbering, Unit, lane_of
from .reading import LogRead, Reading, Unread

KILLS = re.compile("kill|crash|oom", re.IGNORECASE)
"""Faults of these names end the emitter that they name in their parameters; one that is paused goes on."""

_NEVER = 1 << 200
"""Later than any time, and any place."""


class Losses:
    """Finds what is missing. ``runs`` has each run's events in their order, by index in the order of arrival."""

    def __init__(
        self, reading: Reading, numbering: Numbering, runs: Mapping[str | None, Sequence[int]], order: Order, skew: int
    ) -> None:
        self.reading = reading
        self.events = reading.events
        self.numbering = numbering
        self.order = order
        self.skew = skew
        self.runs = runs
        self.found: dict[str | None, list[Loss]] = {run: [] for run in runs}
        self.open_ended: list[str] = []
        """The emitters that were killed, or end without saying so."""
        # A lost record is a record of one of the rules, each of which makes so many events.
        self.widest = max((len(rule.made) for rule in reading.binding.rules), default=1)

    def find(self) -> dict[str | None, list[Loss]]:
        """By run, in an order that does not depend on the arrival of the events."""
        for part in self.reading.logs:
            if part.unread is not None:
                self.unread(part, part.unread)
        for clash in self.numbering.clashes:
            self.clash(clash)
        for unit in sorted(self.numbering.units, key=str):
            self.gaps(unit)
        self.tails()
        self.in_flight()
        for losses in self.found.values():
            losses.sort(key=lambda loss: (loss.settled, loss.reason, loss.after, loss.detail))
        return self.found

    def lose(self, loss: Loss, run: str | None) -> None:
        """What a run without steps lost may have been steps of any run, anywhere."""
        if run in self.found:
            self.found[run].append(loss)
            return
        for losses in self.found.values():
            losses.append(msgspec.structs.replace(loss, settled=0, after=-1, before=None))

    # --- places -------------------------------------------------------------------------------------------------------

    @cached_property
    def places(self) -> array[int]:
        """By index, how many events of its run stand before an event; -1 for what is no step.

        Only made where something was lost: it costs eight bytes an event.
        """
        places = array("q", [-1]) * len(self.events)
        for run in self.runs:
            for place, index in enumerate(self.steps(run)):
                places[index] = place
        return places

    def steps(self, run: str | None) -> Iterator[int]:
        return (index for index in self.runs[run] if self.events[index].lane is None)

    @cached_property
    def ends(self) -> dict[str | None, list[int]]:
        """By run and place, when this event and all before it had surely ended."""
        events = self.events
        return {run: list(accumulate((_end(events[index]) for index in self.steps(run)), max)) for run in self.runs}

    def settled(self, run: str | None, after: int, begin: int | None) -> int:
        """How many events of a run surely came before what is missing after ``after`` and not before ``begin``."""
        if self.order == "total":
            return after + 1
        if self.order == "emitter" or begin is None or run not in self.runs:
            return 0
        return bisect_left(self.ends[run], begin - self.skew)

    def time(self, index: int) -> int | None:
        event = self.events[index]
        return event.until if event.time is None else event.time

    # --- unparsed -----------------------------------------------------------------------------------------------------

    def unread(self, part: LogRead, unread: Unread) -> None:
        detail = unread.what + (f", and {unread.more} more records of this log" if unread.more else "")
        own = range(part.first, part.end)
        earlier = self.first_time(reversed(range(part.first, unread.index)))
        begin = earlier
        if earlier is not None:
            # Lines may stand out of order: it is not surely later than any that comes after it.
            later = (time for index in range(unread.index, part.end) if (time := self.time(index)) is not None)
            begin = min(chain((earlier,), later))
        # A log that holds events of some runs lost a record of one of these; one that holds none, of any.
        for run in {self.events[index].run for index in own} & self.found.keys() or set(self.found):
            before = [p for index in range(part.first, unread.index) if (p := self.place(index, run)) >= 0]
            after = [p for index in range(unread.last, part.end) if (p := self.place(index, run)) >= 0]
            if self.order == "total":
                settled = sum(index < unread.index for index in self.steps(run))
            else:
                settled = self.settled(run, -1, begin)
            loss = Loss(
                reason="unparsed",
                detail=detail,
                settled=settled,
                count=1 + unread.more,
                after=before[-1] if before else -1,
                before=after[0] if after else None,
                begin=begin,
                end=self.first_time(range(unread.last, part.end)),
            )
            self.found[run].append(loss)

    def first_time(self, indices: Iterable[int]) -> int | None:
        return next((time for index in indices if (time := self.time(index)) is not None), None)

    def is_later(self, index: int, limit: int) -> bool:
        time = self.time(index)
        return time is not None and time > limit

    def place(self, index: int, run: str | None) -> int:
        return self.places[index] if self.events[index].run == run else -1

    def clash(self, clash: Clash) -> None:
        """Two records with one number: one of them was never read as what it is."""
        emitter = clash.unit.emitter
        one, other = clash.pairs[0]
        detail = f"{emitter} gives the number {self.numbering.seq(one)} to two records"
        first = 0
        if self.order == "total":
            # In another order these depend on how the lines arrived.
            detail += f", {self.where(one)} and {self.where(other)}"
            first = max(0, min(self.places[index] for pair in clash.pairs for index in pair))
        if len(clash.pairs) > 1:
            detail += f", and {len(clash.pairs) - 1} more numbers"
        detail += ": was it started twice without a boot id?"
        loss = Loss(reason="unparsed", settled=first, detail=detail, count=len(clash.pairs), after=first - 1)
        self.lose(loss, clash.unit.run)

    def where(self, index: int) -> str:
        source = self.events[index].source
        return f"{source.file}:{source.line}" if source else "an event"

    @cached_property
    def own(self) -> dict[str, dict[str, Json]]:
        """By emitter, the parameters that ``by_emitter`` names, as far as its events tell of one value each."""
        names = self.reading.binding.by_emitter
        told: dict[str, dict[str, Json]] = {}
        several: set[tuple[str, str]] = set()
        for event in self.events if names else ():
            emitter = lane_of(event)
            for name in names:
                if name in event.params and event.lane is None:
                    value = told.setdefault(emitter, {}).setdefault(name, event.params[name])
                    if value != event.params[name]:
                        several.add((emitter, name))
        for emitter, name in several:
            del told[emitter][name]
        return told

    # --- gaps ---------------------------------------------------------------------------------------------------------

    def gaps(self, unit: Unit) -> None:
        indices = self.numbering.units[unit]
        neighbours: list[tuple[int, int | None]] | None = None
        for hole in self.numbering.holes(unit):
            self.reading.ledger.gaps.append(Gap(unit.emitter, hole.first, hole.last))
            missing = str(hole.first) if hole.first == hole.last else f"{hole.first}-{hole.last}"
            boot = f" (boot {unit.boot})" if unit.boot else ""
            begin = self.time(indices[hole.place - 1]) if hole.place else None
            end = self.time(indices[hole.place])
            if begin is not None and end is not None and end < begin:
                begin, end = end, begin  # the clock was set back in between
            neighbours = neighbours or self.neighbours(unit, indices)
            after, before = neighbours[hole.place]
            loss = Loss(
                reason="gap",
                detail=f"{unit.emitter}{boot} lacks seq {missing}",
                settled=self.settled(unit.run, after, begin),
                emitter=unit.emitter,
                count=hole.records * self.widest,
                after=after,
                before=before,
                begin=begin,
                end=end,
                params=self.own.get(unit.emitter, {}),
            )
            self.lose(loss, unit.run)

    def neighbours(self, unit: Unit, indices: Sequence[int]) -> list[tuple[int, int | None]]:
        """For k = 0 … n: the nearest steps before and after what is missing after the first k records of a numbering.

        Where its lines stand out of order, it may be as early as the earliest of those that come after it, and as late
        as the latest of those before it.
        """
        if unit.run not in self.runs:
            return [(-1, None)] * (len(indices) + 1)
        places = [self.places[index] for index in indices]
        later = list(accumulate((p if p >= 0 else _NEVER for p in reversed(places)), min, initial=_NEVER))[::-1]
        earlier = accumulate(places, max, initial=-1)
        others = self.other_lives(unit)
        size = len(self.runs[unit.run])
        found: list[tuple[int, int | None]] = []
        for after, before in zip(earlier, later, strict=True):
            if after >= before:
                after, before = before - 1, after + 1
            if others and (after < 0) != (before == _NEVER):
                # The first or last of a life: between those of other lives.
                near = bisect_left(others, max(after, 0) if after >= 0 else before)
                if after < 0:
                    after = others[near - 1] if near else -1
                else:
                    before = others[near] if near < len(others) else _NEVER
            found.append((after, before if before < size else None))
        return found

    def other_lives(self, unit: Unit) -> list[int]:
        """The places of the steps that an emitter took in other lives of it."""
        if unit.boot is None:
            return []
        life = (unit.emitter, unit.boot)
        own = (i for i in self.steps(unit.run) if lane_of(self.events[i]) == unit.emitter)
        return [self.places[index] for index in own if self.numbering.life(index) != life]

    @cached_property
    def keyed(self) -> set[str]:
        """The actions of which some event has a key: without one, such an event could be of any."""
        return {event.action for event in self.events if event.key is not None}

    # --- open tails ---------------------------------------------------------------------------------------------------

    def tails(self) -> None:
        """An emitter that was killed, or that tells of its start and not of its stop: more of it may be missing.

        That touches the keys that it held: those of which it has an event and no terminal one after it.
        """
        stopped = self.stopped()
        open_ = {life for life, at_end in stopped.items() if not at_end}
        kills = self.kills({life for life, at_end in stopped.items() if at_end})
        lives = open_ | kills.keys()
        self.open_ended = sorted({life[0] for life in lives})
        for run in self.runs if lives else ():
            own: dict[Life, list[int]] = {}
            for index in self.steps(run):
                life = self.numbering.life(index)
                if life in lives:
                    own.setdefault(life, []).append(index)
            for life, steps in sorted(own.items(), key=lambda pair: str(pair[0])):
                for killed in sorted(kills.get(life, ())):
                    if not any(self.is_later(index, killed + self.skew) for index in steps):
                        self.tail(run, life, steps, "was killed")
                        break
                    if any(self.events[index].seq is None for index in steps):
                        self.tail_within(run, life, steps, killed)
                    # Where its numbers go on the fault did not end it.
                else:
                    if life in open_:
                        self.tail(run, life, steps, "ended without EmitterStop")

    def stopped(self) -> dict[Life, bool]:
        """The lives that told of their start or their stop, and whether the last that they told is the stop."""
        told: dict[Life, tuple[int, int, bool]] = {}
        for index, event in enumerate(self.events):
            if event.lane == "emitter" and event.action in ("EmitterStart", "EmitterStop"):
                one = (-1 if event.seq is None else event.seq, index, event.action == "EmitterStop")
                life = self.numbering.life(index)
                told[life] = max(one, told.get(life, one))
        return {life: at_end for life, (_, _, at_end) in told.items()}

    def kills(self, stopped: set[Life]) -> dict[Life, set[int]]:
        """The lives that faults ended, and when: the latest of an emitter's that had begun by then."""
        named = [
            (event.params.get("emitter"), _NEVER if event.time is None else event.time)
            for event in self.events
            if event.lane == "fault" and KILLS.search(event.action)
        ]
        begun: dict[Life, int] = {}
        emitters = {emitter for emitter, _ in named}
        for index, event in enumerate(self.events if named else ()):
            if event.emitter in emitters:
                life = self.numbering.life(index)
                time = self.time(index)
                begun[life] = min(begun.get(life, _NEVER), 0 if time is None else time)
        kills: dict[Life, set[int]] = {}
        for emitter, time in named:
            lives = [
                life
                for life, begin in sorted(begun.items(), key=str)
                if life[0] == emitter and begin <= time + self.skew
            ]
            latest = max(lives, key=begun.__getitem__, default=None)
            if latest is not None and latest not in stopped:
                kills.setdefault(latest, set()).add(time)
        return kills

    def tail(self, run: str | None, life: Life, steps: list[int], how: str) -> None:
        """What a life may have done after its last step, and before the next life of its emitter."""
        last = self.places[steps[-1]]
        following = next((place for place in self.other_lives(Unit(*life, run)) if place > last), None)
        self.open(run, life, steps, how, steps[-1], following)

    def tail_within(self, run: str | None, life: Life, steps: list[int], killed: int) -> None:
        """Its emitter goes on under the same name, and nothing tells which step is of which life but the time."""
        lived = [index for index in steps if not self.is_later(index, killed + self.skew)]
        surely = [index for index in lived if not self.is_later(index, killed - self.skew)]
        following = self.places[next(index for index in steps if self.is_later(index, killed + self.skew))]
        self.open(run, life, lived, "was killed", surely[-1] if surely else None, following)

    def open(
        self, run: str | None, life: Life, steps: list[int], how: str, last: int | None, following: int | None
    ) -> None:
        held: dict[bytes, Json] = {}
        for index in steps:
            event = self.events[index]
            if event.key is None and self.keyed and event.action not in self.keyed:
                continue  # It is of no key, and so holds none: a connection that was lost.
            key = msgspec.json.encode(event.key)
            if event.action in self.reading.binding.terminal:
                held.pop(key, None)
            else:
                held[key] = event.key
        if not held:
            return
        after = -1 if last is None else self.places[last]
        begin = None if last is None else self.time(last)
        shown = ", ".join(map(str, islice(held.values(), 3))) + (", …" if len(held) > 3 else "")
        loss = Loss(
            reason="open-tail",
            detail=f"{life[0]} {how} while it held {shown}",
            settled=self.settled(run, after, begin),
            count=self.reading.binding.unwritten,
            keys=None if None in held.values() else list(held.values()),
            emitter=life[0],
            after=after,
            before=following,
            begin=begin,
            end=None if following is None else self.time(next(islice(self.steps(run), following, None))),
            params=self.own.get(life[0], {}),
        )
        self.found[run].append(loss)

    # --- in flight ----------------------------------------------------------------------------------------------------

    def in_flight(self) -> None:
        """What has begun, and not ended when the log did."""
        for run, indices in self.runs.items():
            steps = 0
            latest: dict[str, int] = {}
            for index in indices:
                event = self.events[index]
                emitter = lane_of(event)
                if event.lane is None:
                    latest[emitter] = steps
                    steps += 1
                    continue
                after = steps - 1 if self.order == "total" else latest.get(emitter, -1)
                what = event.action if event.key is None else f"{event.action} of {event.key}"
                loss = Loss(
                    reason="in-flight",
                    detail=f"{emitter} began {what}, and its end is not in the log",
                    settled=self.settled(run, after, event.time),
                    keys=None if event.key is None else [event.key],
                    emitter=emitter,
                    count=1,
                    after=after,
                    begin=event.time,
                    event=msgspec.structs.replace(event, lane=None),
                )
                self.found[run].append(loss)


def _end(event: Event) -> int:
    end = event.time if event.until is None else event.until
    return _NEVER if end is None else end
