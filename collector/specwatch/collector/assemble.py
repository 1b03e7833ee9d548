"""From logs to behaviours: which records count, what is missing, and in which order the events stand.

``collect`` is the collector's face. It reads every log once, in bounded memory but for the events themselves, and gives
back behaviours with the account of what was read, left out and lost.
"""

from __future__ import annotations

import gc
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from typing import IO

import msgspec

from specwatch.checker.behaviour import Behaviour, Event, Gap, Input, Json, Ledger, Loss, Order, Scope, Start

from .binding import Binding, with_settings
from .constants import constants_from, intern
from .decode import DECODERS
from .errors import CollectorError, at
from .reading import LogRead, Reading, Unread
from .receive.tail import find
from .times import duration


class Collected(msgspec.Struct, kw_only=True):
    """What the logs of one command hold. ``behaviours`` has one entry a run, or a single one without events."""

    behaviours: list[Behaviour]
    ledger: Ledger
    inputs: list[Input]
    constants: dict[str, Json] = {}
    """Constants of the spec that the binding takes from the log. A set is ``{"#set": [...]}``, sorted."""
    legend: dict[str, str] = {}
    """Interned ids: the integer as text → the id in the log (``param=integer`` if several parameters are interned)."""
    assumptions: list[str] = []
    fault_events: list[Event] = []
    """Events of lane ``fault`` or ``emitter``: kept, and no steps."""


def collect(
    paths: Sequence[str],
    binding: Binding | None = None,
    *,
    format: str | None = None,
    order: Order | None = None,
    scope: Scope | None = None,
    start: Start | None = None,
    skew: str | float | None = None,
    settings: Mapping[str, str] | None = None,
    stdin: IO[bytes] | None = None,
) -> Collected:
    """Read logs and assemble their events into behaviours. What is given here overrides the binding.

    ``paths`` are files, directories, globs or ``-``; ``format`` is a decoder or ``auto``; ``skew`` is a duration.
    Raises ``CollectorError`` for what cannot be read, for a log in which nothing is a record, and where the order of
    the events cannot be known.
    """
    binding = binding or Binding()
    if (scope or binding.scope) == "key":
        raise CollectorError("scope key is not supported yet; use scope = run", file=binding.path)
    format = format or binding.format
    if format != "auto" and format not in DECODERS:
        raise CollectorError(f"there is no format {format!r}", hint=f"formats: auto, {', '.join(DECODERS)}")
    assumptions = with_settings(binding, settings or {})
    reading = Reading(binding, format)
    with _without_garbage_collection():
        for log in find(paths, stdin):
            reading.read(log)
    reading.finish()

    order = order or binding.order or _default_order(reading)
    if order == "time":
        assumptions.append(_ordered_by_time(binding.skew if skew is None else _duration(skew)))
    assembling = _Assembling(reading, order, start or binding.start or "init")
    behaviours = assembling.behaviours()
    legend = intern(binding, behaviours)
    return Collected(
        behaviours=behaviours,
        ledger=reading.ledger,
        inputs=reading.inputs,
        constants=constants_from(binding, behaviours),
        legend=legend,
        assumptions=assumptions,
        fault_events=assembling.fault_events(),
    )


def _duration(skew: str | float) -> int:
    try:
        return duration(skew)
    except ValueError as error:
        raise CollectorError(f"the skew {error}") from None


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Reading makes no cycles, and looking for them among a million growing events would nearly double its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _default_order(reading: Reading) -> Order:
    logs = [part for part in reading.logs if any(reading.events[i].lane is None for i in range(part.first, part.end))]
    if len(logs) <= 1:
        return "total"
    for event in reading.events:
        if event.time is None and event.lane is None:
            raise at(
                event.source,
                f"the order of {len(logs)} logs is not known: this event has no time",
                "say --order total (one log after the other as named) or --order emitter (seq within an emitter)",
            )
    return "time"


def _ordered_by_time(skew: int | None) -> str:
    text = "order: events stand in the order of their times, as if all clocks agreed; each emitter's own order is kept"
    return text if skew is None else f"{text}; a skew of {skew / 1e9:g} s between clocks is not allowed for"


Unit = tuple[str, str | None, str | None]
"""One numbering of records: emitter, boot and run."""


class _Assembling:
    """Duplicates, order and losses. Events are known by their index in the order of arrival."""

    def __init__(self, reading: Reading, order: Order, start: Start) -> None:
        self.reading = reading
        self.events = reading.events
        self.order = order
        self.start = start
        self.dropped: set[int] = set()
        self.boots = _boots(self.events)
        self.units = self._irregular_units()

    def behaviours(self) -> list[Behaviour]:
        """One behaviour a run, sorted by run; the one without a run comes first."""
        conflicts = self._numbered_twice()
        runs = self._ordered()
        positions = _Positions(self.events, runs)
        losses: dict[str | None, list[Loss]] = {run: [] for run in runs}
        for part in self.reading.logs:
            if part.unread is not None:
                self._lose_unread(part, part.unread, positions, losses)
        for run, indices, detail in conflicts:
            settled = 0 if self.order == "emitter" else max(0, min(positions.place(index) for index in indices))
            self._lose(Loss(reason="unparsed", settled=settled, detail=detail), run, losses)
        for unit, numbered in sorted(self.units.items(), key=lambda pair: str(pair[0])):
            self._lose_gaps(unit, numbered, positions, losses)
        self._lose_tails(runs, positions, losses)
        order: Order = "emitter" if self.order == "emitter" else "total"
        return [
            Behaviour(
                events=self._in_order(indices),
                order=order,
                run=run,
                losses=sorted(losses[run], key=lambda loss: (loss.settled, loss.reason, loss.detail)),
            )
            for run, indices in runs.items()
        ]

    def _in_order(self, indices: Sequence[int]) -> list[Event]:
        return self.events if self._plain else [self.events[index] for index in indices]

    def fault_events(self) -> list[Event]:
        """What is no step, each once, in the order of arrival."""
        events = enumerate(self.events)
        return [event for index, event in events if event.lane is not None and index not in self.dropped]

    @cached_property
    def _plain(self) -> bool:
        """Whether the events as they arrived are the one behaviour: then a second list of a million is spared."""
        run = self.events[0].run if self.events else None
        steps = all(event.lane is None and event.run == run for event in self.events)
        return bool(self.events) and self.order == "total" and not self.dropped and steps

    # Numberings

    def _irregular_units(self) -> dict[Unit, array[int]]:
        """The numberings in which something is missing, double or out of order, with their events as they arrived.

        The others, nearly all, need no memory.
        """
        latest: dict[Unit, int] = {}
        irregular: set[Unit] = set()
        for _, unit, seq in self._numbered():
            # Probes begin at 1; a program that begins at 0 has lost nothing either.
            before = latest.get(unit, min(0, seq - 1) if self.start == "init" else seq - 1)
            if seq != before + 1:
                irregular.add(unit)
            latest[unit] = seq
        units: dict[Unit, array[int]] = {}
        if irregular:
            for index, unit, _ in self._numbered():
                if unit in irregular:
                    units.setdefault(unit, array("q")).append(index)
        return units

    def _numbered(self) -> Iterator[tuple[int, Unit, int]]:
        for part in self.reading.logs:
            for index in range(part.first, part.end):
                event = self.events[index]
                if event.seq is not None:
                    emitter = part.name if event.emitter is None else event.emitter
                    yield index, (emitter, self.boots.get(index), event.run), event.seq

    def _numbered_twice(self) -> list[tuple[str | None, list[int], str]]:
        """Sort every numbering, drop records that came twice, and name the numbers that two different records bear."""
        conflicts: list[tuple[str | None, list[int], str]] = []
        for unit, indices in self.units.items():
            by_seq = sorted(indices, key=self._seq)
            kept = array("q")
            clashes: list[tuple[int, int]] = []
            start = 0
            while start < len(by_seq):
                end = start + 1
                while end < len(by_seq) and self._seq(by_seq[end]) == self._seq(by_seq[start]):
                    end += 1
                same = self._once(by_seq[start:end])
                kept.extend(same)
                if len(same) > 1:
                    clashes.append((same[0], same[1]))
                start = end
            self.units[unit] = kept
            if clashes:
                both = [index for pair in clashes for index in pair]
                conflicts.append((unit[2], both, self._clash(unit, clashes)))
        return conflicts

    def _once(self, indices: list[int]) -> list[int]:
        """Of records with one number, one of each content, in an order that does not depend on their arrival."""
        if len(indices) == 1:
            return indices
        contents: dict[bytes, int] = {}
        for index in indices:
            if contents.setdefault(_content(self.events[index]), index) != index:
                self.dropped.add(index)
                self.reading.count_duplicate(self.events[index])
        return [contents[content] for content in sorted(contents)]

    def _clash(self, unit: Unit, clashes: list[tuple[int, int]]) -> str:
        one, other = clashes[0]
        more = f", and {len(clashes) - 1} more numbers" if len(clashes) > 1 else ""
        return (
            f"{unit[0]} gives the number {self._seq(one)} to two records, {self._place(one)} and {self._place(other)}"
            f"{more}: was it started twice without a boot id?"
        )

    def _seq(self, index: int) -> int:
        seq = self.events[index].seq
        assert seq is not None, "a numbering holds only events with a seq"
        return seq

    def _place(self, index: int) -> str:
        source = self.events[index].source
        return f"{source.file}:{source.line}" if source else "an event"

    # Order

    def _ordered(self) -> dict[str | None, Sequence[int]]:
        if self._plain:
            return {self.events[0].run: range(len(self.events))}
        runs: dict[str | None, array[int]] = {}
        for part in self.reading.logs:
            for index in range(part.first, part.end):
                event = self.events[index]
                if event.lane is None and index not in self.dropped:
                    indices = runs.get(event.run)
                    if indices is None:
                        indices = runs[event.run] = array("q")
                    indices.append(index)
        if not runs:
            runs[None] = array("q")
        return {run: self._arranged(runs[run]) for run in sorted(runs, key=lambda run: run or "")}

    def _arranged(self, indices: Sequence[int]) -> Sequence[int]:
        if self.order == "emitter":
            return self._by_emitter(indices)
        return self._by_time(indices) if self.order == "time" else indices

    def _by_emitter(self, indices: Sequence[int]) -> list[int]:
        return [index for _, own in sorted(self._emitters(indices).items()) for index in own]

    def _emitters(self, indices: Iterable[int]) -> dict[str, list[int]]:
        """Each emitter's events in its own order: by boot, then by seq where all have one, else as the lines stand."""
        emitters: dict[str, list[int]] = {}
        for index in indices:
            emitter = self.events[index].emitter
            if emitter is None:
                raise at(
                    self.events[index].source,
                    "this event names no emitter, and order = emitter needs one",
                    'say --order total, or name the emitter in the binding: emitter = "$hostname/$pid"',
                )
            own = emitters.get(emitter)
            if own is None:
                own = emitters[emitter] = []
            own.append(index)
        for emitter, own in emitters.items():
            emitters[emitter] = self._own_order(own)
        return emitters

    def _own_order(self, indices: list[int]) -> list[int]:
        boots: dict[str | None, list[int]] = {}
        for index in indices:
            boots.setdefault(self.boots.get(index), []).append(index)
        for boot, own in boots.items():
            self._refuse_mixed(own)
            if all(self.events[index].seq is not None for index in own):
                # Of two records with one number the content decides, so that their arrival does not.
                boots[boot] = self._sorted_by_seq(own)
        lives = list(boots.values())
        if len(lives) > 1:
            begins = [min((t for i in life if (t := self.events[i].time) is not None), default=None) for life in lives]
            if all(begin is not None for begin in begins):
                lives = [life for _, life in sorted(zip(begins, lives, strict=True), key=lambda pair: pair[0] or 0)]
        return [index for life in lives for index in life]

    def _refuse_mixed(self, indices: list[int]) -> None:
        """Where some of an emitter's events have a number and stand out of line order, the others have no place."""
        numbered = [index for index in indices if self.events[index].seq is not None]
        if len(numbered) == len(indices) or all(
            self._seq(a) < self._seq(b) for a, b in zip(numbered, islice(numbered, 1, None), strict=False)
        ):
            return
        index = next(index for index in indices if self.events[index].seq is None)
        raise at(
            self.events[index].source,
            "this event has no seq, and others of its emitter have theirs out of line order: its place is not known",
            "number every event of an emitter, or none; or say --order total",
        )

    def _sorted_by_seq(self, indices: list[int]) -> list[int]:
        ordered = sorted(indices, key=self._seq)
        if any(self._seq(a) == self._seq(b) for a, b in zip(ordered, islice(ordered, 1, None), strict=False)):
            ordered.sort(key=lambda index: (self._seq(index), _content(self.events[index])))
        return ordered

    def _by_time(self, indices: Sequence[int]) -> list[int]:
        """Sorted by time, and never against an emitter's own order: an event is not earlier than the one before it.

        Ties are in the order of the log, or, where all events are numbered and so may arrive in any order, by emitter.
        """
        events = self.events
        late: dict[int, int] = {}
        named = [index for index in indices if events[index].emitter is not None]
        emitters = self._emitters(named)
        for index in indices:
            if events[index].time is None:
                raise at(
                    events[index].source,
                    "this event has no time, and order = time needs one",
                    "say --order total or --order emitter",
                )
        arranged: list[int] = []
        for _, own in sorted(emitters.items()):
            latest: int | None = None
            for index in own:
                time = events[index].time
                if latest is not None and time is not None and time < latest:
                    late[index] = latest
                else:
                    latest = time
            arranged += own
        if len(named) < len(indices) or any(events[index].seq is None for index in named):
            arranged = self._as_logged(indices, emitters)
        return sorted(arranged, key=lambda index: late.get(index, events[index].time or 0))

    def _as_logged(self, indices: Sequence[int], emitters: dict[str, list[int]]) -> list[int]:
        """Log by log, by name, as the lines stand; but in each emitter's places its own events in their own order."""
        chosen = set(indices)
        logs = sorted(self.reading.logs, key=lambda part: part.name)
        indices = [index for part in logs for index in range(part.first, part.end) if index in chosen]
        own = {emitter: iter(places) for emitter, places in emitters.items()}
        return [index if (emitter := self.events[index].emitter) is None else next(own[emitter]) for index in indices]

    # Losses

    def _lose(self, loss: Loss, run: str | None, losses: dict[str | None, list[Loss]]) -> None:
        """What a run without steps lost may have been steps of any run."""
        for hit in [run] if run in losses else list(losses):
            losses[hit].append(loss)

    def _lose_unread(
        self, part: LogRead, unread: Unread, positions: _Positions, losses: dict[str | None, list[Loss]]
    ) -> None:
        detail = unread.what + (f", and {unread.more} more records of this log" if unread.more else "")
        own = range(part.first, part.end)
        # A log that holds events of some runs lost a record of one of these; one that holds none, of any.
        for run in {self.events[index].run for index in own} & losses.keys() or set(losses):
            settled = 0 if self.order == "emitter" else positions.splits(run, own)[unread.index - part.first]
            losses[run].append(Loss(reason="unparsed", settled=settled, detail=detail))

    def _lose_gaps(
        self, unit: Unit, indices: Sequence[int], positions: _Positions, losses: dict[str | None, list[Loss]]
    ) -> None:
        emitter, boot, run = unit
        expected = 1 if self.start == "init" else None
        splits: array[int] | None = None
        for place, index in enumerate(indices):
            seq = self._seq(index)
            if expected is not None and seq > expected:
                self.reading.ledger.gaps.append(Gap(emitter, expected, seq - 1))
                missing = str(expected) if seq == expected + 1 else f"{expected}-{seq - 1}"
                detail = f"{emitter}{f' (boot {boot})' if boot else ''} lacks seq {missing}"
                settled = 0
                if run in losses and self.order != "emitter":
                    splits = splits or positions.splits(run, indices)
                    settled = splits[place]
                self._lose(Loss(reason="gap", settled=settled, detail=detail), run, losses)
            expected = seq + 1

    def _lose_tails(
        self, runs: Mapping[str | None, Sequence[int]], positions: _Positions, losses: dict[str | None, list[Loss]]
    ) -> None:
        """An emitter that tells of its start and not of its stop was killed, or runs still: more of it may be missing.

        That touches the keys that it held: those of which it has an event and no terminal one after it.
        """
        started = {
            (event.emitter, self.boots.get(index)): event.action
            for index, event in enumerate(self.events)
            if event.lane == "emitter" and event.action in ("EmitterStart", "EmitterStop")
        }
        open_ = {life for life, action in started.items() if action == "EmitterStart"}
        for run, indices in runs.items() if open_ else ():
            last: dict[tuple[str | None, str | None], int] = {}
            held: dict[tuple[str | None, str | None], dict[bytes, Json]] = {}
            for index in indices:
                event = self.events[index]
                life = (event.emitter, self.boots.get(index))
                if life in open_:
                    last[life] = index
                    key = msgspec.json.encode(event.key)
                    if event.action in self.reading.binding.terminal:
                        held.get(life, {}).pop(key, None)
                    else:
                        held.setdefault(life, {})[key] = event.key
            for life, keys in sorted(held.items(), key=lambda pair: str(pair[0])):
                if keys:
                    settled = 0 if self.order == "emitter" else positions.place(last[life]) + 1
                    shown = ", ".join(map(str, islice(keys.values(), 3))) + (", …" if len(keys) > 3 else "")
                    detail = f"{life[0]} ended without EmitterStop while it held {shown}"
                    touched = None if None in keys.values() else list(keys.values())
                    losses[run].append(Loss(reason="open-tail", settled=settled, detail=detail, keys=touched))


class _Positions:
    """Where events came to stand: for an index in the order of arrival, its place in its run's behaviour."""

    def __init__(self, events: list[Event], runs: Mapping[str | None, Sequence[int]]) -> None:
        self._events = events
        self._runs = runs
        self._table: array[int] | None = None

    def place(self, index: int) -> int:
        """How many events of its run stand before this one; -1 for what is no step."""
        if self._table is None:
            # Only made where something was lost: it costs eight bytes an event.
            self._table = array("q", [-1]) * len(self._events)
            for indices in self._runs.values():
                for place, own in enumerate(indices):
                    self._table[own] = place
        return self._table[index]

    def splits(self, run: str | None, indices: Sequence[int]) -> array[int]:
        """For k = 0 … n: how many events of the run surely stand before a record lost after the first k of ``indices``.

        These are the n events of one log or numbering. Where they are out of order, the lost record may stand as early
        as the earliest of those that come after it.
        """
        places = [self.place(index) if self._events[index].run == run else -1 for index in indices]
        earliest = len(self._runs[run])
        result = array("q", [earliest]) * (len(places) + 1)
        for k in range(len(places) - 1, -1, -1):
            if places[k] >= 0:
                earliest = min(earliest, places[k])
            result[k] = earliest
        latest = -1
        for k, place in enumerate(places):
            result[k] = min(result[k], latest + 1)
            latest = max(latest, place)
        result[-1] = min(result[-1], latest + 1)
        return result


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


def _content(event: Event) -> bytes:
    """What an event says, without where it was read."""
    return msgspec.json.encode(msgspec.structs.replace(event, source=None), order="deterministic")
